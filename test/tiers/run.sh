#!/usr/bin/env bash
# Runs the tiers of the tests side by side, and prints at the end where the time went.
# usage: test/tiers/run.sh [TIER...]    TIER is a target of the Makefile such as lint or test-e2e; default: all
#
# All packages are compiled first, once for all tiers. Then the queues below run side by side. The output of a tier is in
# dist/tests/TIER.log, and its end is shown when the tier fails; dist/tests/times.json holds the table.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
need_go
cd "$root_dir"

# A line is a queue: its tiers run one after the other, beside the other queues. The cluster has the longest way. Two queues compute at a
# time, because more of them would only make each other late.
queues=(
  "test-e2e"
  "verify lint test-unit test-chart test-envtest"
  "test-disks test-vm"
)
((! $#)) || queues=("$*")

reports=$root_dir/dist/tests
rm -rf "$reports"
mkdir -p "$reports"
export REPORTS=$reports
begun=$SECONDS

# compile compiles the packages and tests of all tiers, without linking them. Tiers that begin side by side would each compile them.
compile() {
  local from=$SECONDS
  say "compiling"
  go list -export -test -deps -tags "$(build_tags)" ./... >/dev/null
  say "compiled after $((SECONDS - from)) s"
}

# tier runs one tier, and keeps its output, its duration, the CPU seconds of its processes and its exit code. Pods and virtual disks are
# not its processes: their CPU seconds are in the last line of the table alone.
tier() { # tier TARGET
  local from=$SECONDS code=0 cpu=0
  say "$1 begins"
  # A session of its own, so that a stop reaches all of its processes. Linux shares the CPUs out between sessions and between containers
  # (sched(7), "The autogroup feature"). These two tiers have one busy process, which would get as little as each of the cluster's many, and
  # they would end last: where root runs this, they get more. The shell's built-in times prints the CPU time of its children.
  local nice=0
  case $1 in test-disks | test-vm) nice=-10 ;; esac
  # shellcheck disable=SC2016  # the other shell expands them
  setsid bash -c '{ echo "$3" > /proc/self/autogroup; } 2>/dev/null; make --no-print-directory "$1"; code=$?; times > "$2"; exit "$code"' - "$1" "$reports/$1.times" "$nice" \
    </dev/null >"$reports/$1.log" 2>&1 &
  session=$!
  trap 'kill -- "-$session" 2>/dev/null; exit 1' TERM
  wait "$session" || code=$?
  [[ ! -s $reports/$1.times ]] || cpu=$(cpu_seconds < "$reports/$1.times")
  printf '{"tier": "%s", "seconds": %d, "cpuSeconds": %d, "code": %d}\n' "$1" $((SECONDS - from)) "$cpu" "$code" > "$reports/$1.tier"
  if ((code == 0)); then
    say "$1 has passed after $((SECONDS - from)) s"
  else
    say "$1 has FAILED after $((SECONDS - from)) s; the end of dist/tests/$1.log:"
    tail -n 80 "$reports/$1.log" >&2
  fi
}

# cpu_seconds adds up the second line of the shell's built-in times, such as 1m2.300s 0m4.500s.
cpu_seconds() {
  awk 'NR == 2 {for (i = 1; i <= 2; i++) {split($i, t, "m"); sum += t[1] * 60 + t[2]}} END {printf "%d", sum}'
}

# busy prints the CPU seconds that the whole machine has spent since it started (proc(5), /proc/stat, in ticks of 1/100 s).
busy() { awk '$1 == "cpu" {print int(($2 + $3 + $4 + $7 + $8) / 100)}' /proc/stat; }

queue() { # queue TIER...
  for target; do tier "$target"; done
}

pids=()
stop() { ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true; }
trap stop EXIT
busy_before=$(busy)
compile
for line in "${queues[@]}"; do
  # shellcheck disable=SC2086  # a queue is a list of words
  queue $line &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || true; done
pids=()

go run ./test/tiers --seconds $((SECONDS - begun)) --cpu-seconds $(($(busy) - busy_before)) "$reports"
