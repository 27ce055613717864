#!/usr/bin/env bash
# Takes a node of a test cluster off its network, as a broken switch does, and puts it back. All that runs there goes on, and nobody reaches it.
# usage: network.sh cut|join NODE    (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine

# The rules stand before those of Kubernetes, which let through what belongs to a connection. Nodes reach each other by IPv6, too.
cut() { # cut NODE
  engine exec -i "$1" sh -eu -s <<'NODE'
for tables in iptables ip6tables; do
  for rule in "INPUT -i" "OUTPUT -o" "FORWARD -i" "FORWARD -o"; do
    $tables -w -C $rule eth0 -j DROP 2>/dev/null || $tables -w -I $rule eth0 -j DROP
  done
done
NODE
}

join() { # join NODE
  engine exec -i "$1" sh -eu -s <<'NODE'
for tables in iptables ip6tables; do
  for rule in "INPUT -i" "OUTPUT -o" "FORWARD -i" "FORWARD -o"; do
    while $tables -w -D $rule eth0 -j DROP 2>/dev/null; do :; done
  done
done
NODE
}

(($# == 2)) || die "usage: $0 cut|join NODE"
case $1 in
  cut | join) "$1" "$2" ;;
  *) die "usage: $0 cut|join NODE" ;;
esac
