#!/usr/bin/env bash
# Runs the tests that kill what they test at some places, at all of these places: those of the unit tier, of disks and of the control plane.
# usage: test/places/run.sh [ARGUMENT OF go test]...      such as -v
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
need_go
cd "$root_dir"
export KILLS=all DISKS=all

# tests prints the names of the tests in some files that take places, as a pattern.
tests() {
  awk '/^func / { name = $2; sub(/\(.*/, "", name) }
    /places\.(Kills\.Of|Disks\.Some)\(/ { if (name !~ /^Test/) { print FILENAME ": " name " takes places and is no test" > "/dev/stderr"; exit 1 } print name }' "$@" |
    sort -u | paste -sd'|' | sed 's/.*/^(&)$/'
}
packages() { dirname "$@" | sort -u | sed 's|^|./|'; }

mapfile -t files < <(grep -rl --include='*_test.go' 'places\.Kills\.Of(\|places\.Disks\.Some(' internal benchmarks cmd controllers)
mapfile -t disks < <(grep -lE '^//go:build .*\bdisks\b' "${files[@]}")
mapfile -t envtest < <(grep -lE '^//go:build .*\benvtest\b' "${files[@]}")
mapfile -t unit < <(grep -LE '^//go:build ' "${files[@]}")
# GOTEST is how the Makefile runs tests.
gotest=${GOTEST:-go test -vet=off -ldflags=-s}
as_root=()
((EUID == 0)) || as_root=(-exec "sudo --preserve-env=KILLS,DISKS,PARALLELFS_SEED")
# shellcheck disable=SC2046,SC2086  # they are a command with its arguments, and names of packages
{
  $gotest -count=1 -timeout 3h -run "$(tests "${unit[@]}")" "$@" $(packages "${unit[@]}")
  test/envtest/run.sh -count=1 -run "$(tests "${envtest[@]}")" "$@"
  hold_loop_devices
  $gotest -tags disks -count=1 -p 1 -timeout 3h "${as_root[@]}" -run "$(tests "${disks[@]}")" "$@" $(packages "${disks[@]}")
}
