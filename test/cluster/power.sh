#!/usr/bin/env bash
# Takes the power of a node of a test cluster away, and gives it back: all that runs there ends at once, nothing runs, and then it starts with
# another boot id, as a machine does. Its kernel is the machine's own and goes on: what was written there and not synced is not lost.
# usage: power.sh off|on NODE    (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine

# off ends the kubelet and the runtime first, which would start again what ends; containers go on without them. A machine that starts has no
# mounts of its pods.
off() { # off NODE
  engine exec -i "$1" sh -eu -s <<'NODE'
systemctl stop kubelet containerd
kill -KILL -1
awk '$2 ~ "^(/var/lib/kubelet/|/run/containerd/)" || $3 ~ "^fuse" { print $2 }' /proc/mounts | tac | xargs -r umount -l
NODE
}

on() { # on NODE
  engine exec -i "$1" sh -eu -s <<'NODE'
cat /proc/sys/kernel/random/uuid > /run/boot_id
umount /proc/sys/kernel/random/boot_id 2>/dev/null || true
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
systemctl start containerd kubelet
NODE
}

(($# == 2)) || die "usage: $0 off|on NODE"
case $1 in
  off | on) "$1" "$2" ;;
  *) die "usage: $0 off|on NODE" ;;
esac
