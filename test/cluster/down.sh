#!/usr/bin/env bash
# Removes the cluster that up.sh made: its nodes with all their data, and its kubeconfig. Images and the cache stay, so
# that the next up.sh is quick. usage: down.sh   (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# release_mount_points takes away what would keep the volumes of a node from being removed: mounts of targets and of filesystems, and the
# immutable directories below them. The servers of a mount may be gone, and then nobody answers: it is detached by its name, which asks no
# server (umount -c), and nothing here waits longer than its time limit.
release_mount_points() { # release_mount_points NODE
  # shellcheck disable=SC2016  # the shell of the node expands it
  engine exec "$1" timeout -k 5 60 sh -c '
    awk "\$5 ~ \"^/var/lib/parallelfs/\" || / - fuse[. ]/ {print \$5}" /proc/self/mountinfo | sort -r | while read -r mount; do
      timeout -k 1 10 umount -c -l "$mount"
      timeout -k 1 10 chattr -i "$mount"
    done
    (cd /var/lib/parallelfs || exit 0
     timeout -k 1 20 find . -xdev -type d -exec chattr -i {} +)' </dev/null >/dev/null 2>&1 || true
}

need_go
use_cluster_tools
one_at_a_time
if [[ -n $(cluster_nodes) ]]; then
  for node in $(worker_nodes); do release_mount_points "$node"; done
  say "removing cluster $cluster"
  run_kind delete cluster --name "$cluster" --kubeconfig "$kubeconfig"
else
  say "there is no cluster $cluster"
fi
"$(dirname "$0")/disks.sh" remove
as_root rm -rf "$shared_dir"
rm -f "$kubeconfig" "$work_dir/$cluster.yaml"
say "kept: container images ($engine_name images) and $cache"
