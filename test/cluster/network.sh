#!/usr/bin/env bash
# Takes a node of a test cluster off its network, as a broken switch does, and puts it back. All that runs there goes on, and nobody reaches it.
# usage: network.sh cut|join NODE    (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine

# The rules stand before those of Kubernetes, which let through what belongs to a connection.
cut() { # cut NODE
  engine exec -i "$1" sh -eu -s <<'NODE'
while read -r chain direction; do
  iptables -w -C "$chain" "$direction" eth0 -j DROP 2>/dev/null || iptables -w -I "$chain" "$direction" eth0 -j DROP
done <<RULES
INPUT -i
OUTPUT -o
FORWARD -i
FORWARD -o
RULES
NODE
}

join() { # join NODE
  engine exec -i "$1" sh -eu -s <<'NODE'
while read -r chain direction; do
  while iptables -w -D "$chain" "$direction" eth0 -j DROP 2>/dev/null; do :; done
done <<RULES
INPUT -i
OUTPUT -o
FORWARD -i
FORWARD -o
RULES
NODE
}

(($# == 2)) || die "usage: $0 cut|join NODE"
case $1 in
  cut | join) "$1" "$2" ;;
  *) die "usage: $0 cut|join NODE" ;;
esac
