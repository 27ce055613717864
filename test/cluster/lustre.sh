#!/usr/bin/env bash
# Puts the doubles of Lustre's programs into the nodes that take pods, at /usr/sbin under the names of the real ones: the operator runs the
# node's own, because they belong to its kernel. They make targets on a real ext4, so a node needs e2fsprogs; one that lacks it is said, and
# the tests of Lustre are skipped there. What runs already goes on with the older double. usage: lustre.sh   (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
need_go
use_engine
programs=(mkfs.lustre tunefs.lustre mount.lustre mount.lustre_tgt umount.fuse.lustre umount.fuse.lustre_tgt lctl lfs lfs_migrate llog_reader lnetctl
  mds-survey obdfilter-survey)
binary=$root_dir/dist/lustre-double
mkdir -p "$root_dir/dist"
(cd "$root_dir" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o dist/ ./test/doubles/lustre/cmd/lustre-double)
hash=$(hash_of < "$binary")
for node in $(worker_nodes); do
  [[ $(engine exec "$node" cat /usr/sbin/lustre-double.hash </dev/null 2>/dev/null) != "$hash" ]] || continue
  engine exec -i "$node" sh -euc 'cat > /usr/sbin/lustre-double.new' < "$binary"
  engine exec -i "$node" sh -eu -s -- "$hash" "${programs[@]}" <<'NODE'
hash=$1
shift
chmod 755 /usr/sbin/lustre-double.new
mv /usr/sbin/lustre-double.new /usr/sbin/lustre-double   # one that runs can't be written to
for name; do ln -sfn lustre-double "/usr/sbin/$name"; done
for name in gawk vmstat killall; do                       # the surveys of the real ones call them, so a node must have them
  command -v $name >/dev/null || ln -s /bin/true "/usr/sbin/$name"
done
mkdir -p /etc/modprobe.d                                  # where modules are given options, though a double has none
echo "$hash" > /usr/sbin/lustre-double.hash
for program in mke2fs debugfs e2label tune2fs; do
  command -v $program >/dev/null || echo "$(hostname) has no $program (e2fsprogs), so it has no Lustre" >&2
done
NODE
done
