# shellcheck shell=bash
# Sourced by the scripts of test/vmnode: the cluster, and the virtual machine that is one of its nodes.
export CLUSTER=${CLUSTER:-parallelfs-node}
# The one node that kind makes has the control plane and the operator; the machine has all else.
export WORKERS=0
# shellcheck source=test/cluster/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

here=$root_dir/test/vmnode
node=$cluster-machine
control=$cluster-control-plane
# machine_dir holds what belongs to one machine: its disks, QEMU's number, the socket that commands go through, the console.
machine_dir=$work_dir/machine-$cluster
tap=pfsnode0
prefix=${IMAGE_PREFIX:-localhost/parallelfs}
images=("$prefix/node:dev" "$prefix/agent:dev")
namespace=parallelfs-system
export here node control machine_dir tap prefix images namespace

# ask runs a command in the machine, and waits until it runs commands.
ask() { as_root "$root_dir/dist/ask" "$machine_dir/port" "$@"; }

# running is true while QEMU is.
running() { [[ -s $machine_dir/pid ]] && as_root kill -0 "$(as_root cat "$machine_dir/pid")" 2>/dev/null; }
