#!/usr/bin/env bash
# Removes the cluster that up.sh made: its nodes with all their data, and its kubeconfig. Images and the cache stay, so
# that the next up.sh is quick. usage: down.sh   (CLUSTER as for up.sh)
#   KEEP_DISKS=1   leaves the disks of disks.sh with all that is on them, for a new cluster of the same name
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# stop_node ends a node at once, with all that it has mounted: nobody has to ask a filesystem whose servers are gone, and no agent puts back what
# is taken away. Mount points of filesystems are immutable, which would keep the node's volume from being removed.
stop_node() { # stop_node NODE
  local volume
  volume=$(engine inspect -f '{{range .Mounts}}{{if eq .Destination "/var"}}{{.Source}}{{end}}{{end}}' "$1")
  engine kill "$1" >/dev/null 2>&1 || true # it may be stopped already
  [[ -z $volume ]] || as_root timeout -k 5 60 find "$volume/lib/parallelfs" -xdev -type d -exec chattr -i {} + 2>/dev/null || true
}

need_go
use_cluster_tools
one_at_a_time
"$(dirname "$0")/registry.sh" down
if [[ -n $(cluster_nodes) ]]; then
  for node in $(worker_nodes); do stop_node "$node"; done
  say "removing cluster $cluster"
  run_kind delete cluster --name "$cluster" --kubeconfig "$kubeconfig"
else
  say "there is no cluster $cluster"
fi
[[ -n ${KEEP_DISKS:-} ]] || "$(dirname "$0")/disks.sh" remove
as_root rm -rf "$shared_dir"
rm -f "$kubeconfig" "$work_dir/$cluster.yaml"
say "kept: container images ($engine_name images) and $cache"
