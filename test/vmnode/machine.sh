#!/usr/bin/env bash
# Starts the virtual machine that joins the test cluster as a node, and removes it.
# usage: machine.sh start FOLDER   with what disk.sh has made: starts QEMU, whose network is that of kind's nodes
#        machine.sh join           makes it a node of the cluster, which then is Ready
#        machine.sh ask COMMAND…   runs a command in it
#        machine.sh down           ends QEMU, and removes the machine with all that is on its disks
# (CLUSTER as for run.sh)
set -euo pipefail
# shellcheck source=test/vmnode/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine

# disks of the machine: serial, EUI-64, NUMA node and size. The last one is nobody's.
disks=("PFSVM-A 525400a0000000a1 0 1536M" "PFSVM-B 525400a0000000b2 0 2G" "PFSVM-C 525400a0000000c3 1 2G" "PFSVM-D 525400a0000000d4 1 2G")

start() { # start FOLDER
  local folder=$1 bridge subnet gateway arguments=() slot=0 serial eui numa size accel=${VM_ACCEL:-tcg} processor=max,-cx16
  ! running || die "the machine runs already: $0 down"
  [[ $engine_name == podman ]] || die "the machine is put on podman's network: CONTAINER_ENGINE=podman"
  need qemu-system-x86_64=qemu-system-x86 ip=iproute2 jq=jq
  [[ -c /dev/net/tun ]] || die "there is no /dev/net/tun, which gives the machine a network"
  bridge=$(engine network inspect kind | jq -r '.[0].network_interface')
  subnet=$(engine network inspect kind | jq -r '.[0].subnets[] | select(.subnet | contains(".")) | .subnet')
  gateway=$(engine network inspect kind | jq -r '.[0].subnets[] | select(.subnet | contains(".")) | .gateway')
  [[ $subnet == */24 ]] || die "kind's network is $subnet: a /24 was expected, in which the machine takes .250"
  mkdir -p "$machine_dir"
  as_root ip tuntap add "$tap" mode tap
  as_root ip link set "$tap" master "$bridge" up
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
  [[ $accel != kvm ]] || processor=host
  # What is written to its own disk lies in a file without a name, which ends with QEMU; a restart of the machine keeps it. Emulated
  # processors and disks that wait for a busy machine must not look broken (test/vm/machine_test.go).
  as_root env TMPDIR="$machine_dir" qemu-system-x86_64 -daemonize -pidfile "$machine_dir/pid" \
    -machine q35 -accel "$accel" -cpu "$processor" -nodefaults -no-user-config -display none \
    -serial "file:$machine_dir/console" -kernel "$folder/vmlinuz" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check net.ifnames=0 nvme_core.io_timeout=600 nvme_core.admin_timeout=600 \
pfs.name=$node pfs.address=${subnet%.*}.250/24 pfs.gateway=$gateway" \
    -smp 2,sockets=2,cores=1,threads=1 -m 4096M \
    -object memory-backend-ram,id=memory0,size=2048M -numa node,nodeid=0,cpus=0,memdev=memory0 \
    -object memory-backend-ram,id=memory1,size=2048M -numa node,nodeid=1,cpus=1,memdev=memory1 \
    -chardev "socket,id=port,path=$machine_dir/port,server=on,wait=off" -device virtio-serial-pci -device virtserialport,chardev=port,name=parallelfs \
    -drive "if=none,id=system,format=raw,snapshot=on,file=$folder/root.img" -device virtio-blk-pci,drive=system,serial=system \
    -netdev "tap,id=net,ifname=$tap,script=no,downscript=no" -device virtio-net-pci,netdev=net,mac=52:54:00:70:66:73 \
    -device pxb-pcie,id=root0,bus=pcie.0,bus_nr=64,numa_node=0 -device pxb-pcie,id=root1,bus=pcie.0,bus_nr=128,numa_node=1 \
    "${arguments[@]}"
}

# join has the machine's kubelet join, and connects its pods as up.sh connects those of other nodes.
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

down() {
  local pid
  if running; then
    pid=$(as_root cat "$machine_dir/pid")
    as_root kill "$pid"
    while as_root kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
  fi
  as_root ip link delete "$tap" 2>/dev/null || true
  as_root rm -rf "$machine_dir"
}

case ${1:-} in
  start) start "${@:2}" ;;
  join) join ;;
  ask) ask "${@:2}" ;;
  down) down ;;
  *) die "usage: $0 start|join|ask|down: see the top of this file" ;;
esac
