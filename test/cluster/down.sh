#!/usr/bin/env bash
# Removes the cluster that up.sh made: its nodes with all their data, and its kubeconfig. Images and the cache stay, so
# that the next up.sh is quick. usage: down.sh   (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
need_go
use_cluster_tools
one_at_a_time
if [[ -n $(cluster_nodes) ]]; then
  # Mountpoints of filesystems are immutable, and would keep the nodes' volumes from being removed.
  for node in $(worker_nodes); do
    engine exec "$node" sh -c 'cd /var/lib/parallelfs/targets && umount -l ./*/* ; chattr -i ./*/*' </dev/null >/dev/null 2>&1 || true
  done
  say "removing cluster $cluster"
  run_kind delete cluster --name "$cluster" --kubeconfig "$kubeconfig"
else
  say "there is no cluster $cluster"
fi
"$(dirname "$0")/disks.sh" remove
as_root rm -rf "$shared_dir"
rm -f "$kubeconfig" "$work_dir/$cluster.yaml"
say "kept: container images ($engine_name images) and $cache"
