#!/usr/bin/env bash
# Runs the tiers of the tests side by side, and prints at the end where the time went.
# usage: test/tiers/run.sh [TIER...]    TIER is a target of the Makefile such as lint or test-e2e; default: all
#
# What mostly waits (the cluster, the disks) runs beside what computes. All others run one after the other. What a tier prints lies in
# dist/tests/TIER.log, and the end of it is shown when the tier fails; dist/tests/times.json holds the table.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
need_go
cd "$root_dir"

# A line is a queue: its tiers run one after the other, beside the other queues. The first one has the longest way, and a cluster costs
# something for as long as it is there: the others get what it leaves.
queues=(
  "test-e2e"
  "test-disks"
  "verify test-unit test-chart test-envtest"
  "test-vm lint"
)
((! $#)) || queues=("$*")

reports=$root_dir/dist/tests
rm -rf "$reports"
mkdir -p "$reports"
export REPORTS=$reports
begun=$SECONDS

# tier runs one tier, and keeps what it printed, how long it took and how it ended.
tier() { # tier TARGET
  local from=$SECONDS code=0
  say "$1 begins"
  # Linux shares the time out between sessions first, and then by priority within each: sched(7), "The autogroup feature".
  # shellcheck disable=SC2016  # the other shell expands them
  setsid bash -c '{ echo "$2" > /proc/self/autogroup; } 2>/dev/null; exec nice -n "$2" make --no-print-directory "$1"' - "$1" "$yields" \
    </dev/null >"$reports/$1.log" 2>&1 &
  session=$!
  trap 'kill -- "-$session" 2>/dev/null; exit 1' TERM
  wait "$session" || code=$?
  printf '{"tier": "%s", "seconds": %d, "code": %d}\n' "$1" $((SECONDS - from)) "$code" > "$reports/$1.tier"
  if ((code == 0)); then
    say "$1 has passed after $((SECONDS - from)) s"
  else
    say "$1 has FAILED after $((SECONDS - from)) s; the end of dist/tests/$1.log:"
    tail -n 80 "$reports/$1.log" >&2
  fi
}

queue() { # queue TIER...
  for target; do tier "$target"; done
}

yields=0
pids=()
stop() { ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true; }
trap stop EXIT
for line in "${queues[@]}"; do
  # shellcheck disable=SC2086  # a queue is a list of words
  queue $line &
  pids+=($!)
  yields=10
done
for pid in "${pids[@]}"; do wait "$pid" || true; done
pids=()

go run ./test/tiers --seconds $((SECONDS - begun)) "$reports"
