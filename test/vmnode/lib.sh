# shellcheck shell=bash
# Sourced by the scripts of test/vmnode: the cluster, and the virtual machines that are nodes of it. MACHINE=2 means the second one, default 1.
export CLUSTER=${CLUSTER:-parallelfs-node}
# The one node that kind makes has the control plane and the operator; the machines have all else.
export WORKERS=0
# shellcheck source=test/cluster/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

here=$root_dir/test/vmnode
machine=${MACHINE:-1}
node=$cluster-machine-$machine
control=$cluster-control-plane
# machine_dir holds what belongs to one machine: its disks, QEMU's number, the socket that commands go through, the console.
machine_dir=$work_dir/$node
tap=pfsnode$machine
# shared is the disk that both machines reach.
shared=$work_dir/$cluster-shared.raw
prefix=${IMAGE_PREFIX:-localhost/parallelfs}
images=("$prefix/node:dev" "$prefix/agent:dev")
namespace=parallelfs-system
export here machine node control machine_dir shared tap prefix images namespace

# ask runs a command in the machine, and waits until it runs commands.
ask() { as_root "$root_dir/dist/ask" "$machine_dir/port" "$@"; }

# running is true while QEMU is.
running() { [[ -s $machine_dir/pid ]] && as_root kill -0 "$(as_root cat "$machine_dir/pid")" 2>/dev/null; }
