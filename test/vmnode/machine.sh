#!/usr/bin/env bash
# Starts a virtual machine that joins the test cluster as a node, and removes it.
# usage: machine.sh start FOLDER   with what disk.sh has made: starts QEMU, whose network is that of kind's nodes
#        machine.sh join           makes it a node of the cluster, which then is Ready
#        machine.sh ask COMMAND…   runs a command in it
#        machine.sh off            takes its power away
#        machine.sh down           does that, and removes the machine with all that is on its disks; that of both goes with the first
# (CLUSTER as for run.sh; MACHINE=2 for the second machine, default 1)
set -euo pipefail
# shellcheck source=test/vmnode/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine

# disks of the first machine: serial, EUI-64, NUMA node and size. The last one is nobody's. The second machine has none of its own.
disks=() sockets=1
[[ $machine != 1 ]] || {
  disks=("PFSVM-A 525400a0000000a1 0 1536M" "PFSVM-B 525400a0000000b2 0 2G" "PFSVM-C 525400a0000000c3 1 2G" "PFSVM-D 525400a0000000d4 1 2G")
  sockets=2
}

start() { # start FOLDER
  local folder=$1 bridge subnet gateway arguments=() slot=0 socket serial eui numa size accel=${VM_ACCEL:-tcg} processor=max,-cx16
  ! running || die "the machine runs already: $0 down"
  [[ $engine_name == podman ]] || die "the machine is put on podman's network: CONTAINER_ENGINE=podman"
  need qemu-system-x86_64=qemu-system-x86 ip=iproute2 jq=jq
  [[ -c /dev/net/tun ]] || die "there is no /dev/net/tun, which gives the machine a network"
  bridge=$(engine network inspect kind | jq -r '.[0].network_interface')
  subnet=$(engine network inspect kind | jq -r '.[0].subnets[] | select(.subnet | contains(".")) | .subnet')
  gateway=$(engine network inspect kind | jq -r '.[0].subnets[] | select(.subnet | contains(".")) | .gateway')
  [[ $subnet == */24 ]] || die "kind's network is $subnet: a /24 was expected, in which the machines take .251 and .252"
  mkdir -p "$machine_dir"
  as_root ip tuntap add "$tap" mode tap
  as_root ip link set "$tap" master "$bridge" up
  for ((socket = 0; socket < sockets; socket++)); do
    arguments+=(
      -object "memory-backend-ram,id=memory$socket,size=2048M" -numa "node,nodeid=$socket,cpus=$socket,memdev=memory$socket"
      -device "pxb-pcie,id=root$socket,bus=pcie.0,bus_nr=$((64 * (socket + 1))),numa_node=$socket")
  done
  for disk in "${disks[@]}"; do
    read -r serial eui numa size <<<"$disk"
    truncate -s "$size" "$machine_dir/$serial.raw"
    arguments+=(
      -device "pcie-root-port,id=port$slot,bus=root$numa,chassis=$((slot + 1)),slot=$((slot + 1))"
      -drive "if=none,id=nvmedisk$slot,format=raw,cache=unsafe,discard=unmap,file=$machine_dir/$serial.raw"
      -device "nvme,id=nvme$slot,bus=port$slot,serial=$serial"
      -device "nvme-ns,bus=nvme$slot,drive=nvmedisk$slot,eui64=0x$eui")
    slot=$((slot + 1))
  done
  # Nothing of what one machine writes to the disk of both may be in the memory of the other.
  [[ -e $shared ]] || truncate -s 2G "$shared"
  arguments+=(
    -device "pcie-root-port,id=shared,bus=root0,chassis=9,slot=9"
    -drive "if=none,id=shareddisk,format=raw,cache=none,discard=unmap,file.locking=off,file=$shared"
    -device "nvme,id=nvmeshared,bus=shared,serial=PFSVM-S"
    -device "nvme-ns,bus=nvmeshared,drive=shareddisk,eui64=0x525400a0000000f1,share-rw=on")
  [[ $accel != kvm ]] || processor=host
  # What is written to its own disk lies in a file without a name, which ends with QEMU; a restart of the machine keeps it. Emulated
  # processors and disks that wait for a busy machine must not look broken (test/vm/machine_test.go).
  as_root env TMPDIR="$machine_dir" qemu-system-x86_64 -daemonize -pidfile "$machine_dir/pid" \
    -machine q35 -accel "$accel" -cpu "$processor" -nodefaults -no-user-config -display none \
    -serial "file:$machine_dir/console" -kernel "$folder/vmlinuz" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check net.ifnames=0 nvme_core.io_timeout=600 nvme_core.admin_timeout=600 \
systemd.machine_id=0123456789abcdef0123456789abcde$machine \
pfs.name=$node pfs.address=${subnet%.*}.25$machine/24 pfs.gateway=$gateway" \
    -smp "$sockets,sockets=$sockets,cores=1,threads=1" -m "$((sockets * 2048))M" \
    -chardev "socket,id=port,path=$machine_dir/port,server=on,wait=off" -device virtio-serial-pci -device virtserialport,chardev=port,name=parallelfs \
    -drive "if=none,id=system,format=raw,snapshot=on,file=$folder/root.img" -device virtio-blk-pci,drive=system,serial=system \
    -netdev "tap,id=net,ifname=$tap,script=no,downscript=no" -device "virtio-net-pci,netdev=net,mac=52:54:00:70:66:7$machine" \
    "${arguments[@]}"
}

# join has the machine's kubelet join, and connects its pods with those of kind's node, as up.sh does.
join() {
  local own other other_cidr cidr pod_network=10.244.0.0/16
  own=$(ask sed -n 's/.*pfs.address=\([0-9.]*\).*/\1/p' /proc/cmdline </dev/null)
  read -r other_cidr other < <(run_kubectl get node "$control" -o jsonpath='{.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}')
  echo "echo '$other $control' >> /etc/hosts
ip route replace $other_cidr via $other
iptables -t nat -C POSTROUTING -s $pod_network -d $pod_network -j ACCEPT 2>/dev/null || iptables -t nat -I POSTROUTING -s $pod_network -d $pod_network -j ACCEPT" |
    ask bash -euc 'cat > /etc/parallelfs-joined; . /etc/parallelfs-joined'
  # What a kubelet does again and again is dear where its processor is emulated.
  printf "%s\n" GOGC=400 "KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service --node-ip=$own --housekeeping-interval=2m --sync-frequency=1m" |
    ask sh -c "cat > /etc/default/kubelet"
  engine exec "$control" kubeadm token create --print-join-command </dev/null |
    ask bash -c "\$(cat) --node-name '$node' --ignore-preflight-errors=all"
  run_kubectl wait --for=create "node/$node" --timeout=300s >/dev/null
  run_kubectl wait --for=jsonpath='{.spec.podCIDR}' "node/$node" --timeout=300s >/dev/null
  cidr=$(run_kubectl get node "$node" -o jsonpath='{.spec.podCIDR}')
  engine exec "$control" cat /etc/cni/net.d/10-ptp.conflist </dev/null | sed "s|$other_cidr|$cidr|" | ask sh -c 'cat > /etc/cni/net.d/10-ptp.conflist'
  engine exec "$control" ip route replace "$cidr" via "$own" </dev/null
  run_kubectl wait --for=condition=Ready "node/$node" --timeout=600s >/dev/null
}

off() {
  local pid
  running || return 0
  pid=$(as_root cat "$machine_dir/pid")
  as_root kill -KILL "$pid"
  while as_root kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
}

down() {
  off
  as_root ip link delete "$tap" 2>/dev/null || true
  as_root rm -rf "$machine_dir"
  [[ $machine != 1 ]] || rm -f "$shared"
}

case ${1:-} in
  start) start "${@:2}" ;;
  join) join ;;
  ask) ask "${@:2}" ;;
  off) off ;;
  down) down ;;
  *) die "usage: $0 start|join|ask|off|down: see the top of this file" ;;
esac
