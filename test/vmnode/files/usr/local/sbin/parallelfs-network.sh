#!/bin/bash
# Brings up the network of the virtual machine: name, address and gateway stand on the command line of the kernel, as pfs.KEY=VALUE. The name
# of the control plane and routes to the pods of other nodes come from /etc/parallelfs-joined, since the machine has joined.
set -euo pipefail
value() { sed -n "s/.*\bpfs\.$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
hostname "$(value name)"
ip link set lo up
ip address replace "$(value address)" dev eth0
ip link set eth0 up
ip route replace default via "$(value gateway)"
sysctl -q -w net.ipv4.ip_forward=1
printf '127.0.0.1 localhost\n%s %s\n' "$(value address | cut -d/ -f1)" "$(value name)" > /etc/hosts
echo "nameserver $(value gateway)" > /etc/resolv.conf
# shellcheck source=/dev/null
[[ ! -e /etc/parallelfs-joined ]] || . /etc/parallelfs-joined
