#!/usr/bin/env bash
# Measures what the operator costs by the size of a filesystem, with a real kube-apiserver and etcd, and prints a table.
# usage: test/scale/run.sh [N...]      N storage nodes with 24 disks each; default: 125 250
#        SCALE_RUNS BenchmarkRuns for each; default: 50 up to 100 nodes, 200 for more. SCALE_ARGS further options of bin/scale, such as
#        --profile or --limit=2h. It ends with 1 when a goal was missed.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
need_go
cd "$root_dir"
case ${1:-} in -h | --help) sed -n 's/^# \{0,1\}//; 2,5p' "$0"; exit ;; esac
KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(test/cluster/envtest-assets.sh)}
export KUBEBUILDER_ASSETS
# Figures are worth what counts them.
go test -vet=off -tags scale -ldflags=-s ./test/scale >&2
go build -ldflags '-s -w' -o bin/manager ./cmd/manager
go build -tags scale -ldflags '-s -w' -o bin/scale ./test/scale
# Files of the servers lie in memory where there are gibibytes left for them: the disk of a test machine is not what is measured.
if [[ -w /dev/shm ]] && (($(df --output=avail -k /dev/shm | tail -1) > 6 * 1024 * 1024)); then export TMPDIR=/dev/shm; fi
read -ra arguments <<<"${SCALE_ARGS:-}"
((!$#)) || arguments+=(--nodes "$*")
[[ -z ${SCALE_RUNS:-} ]] || arguments+=(--runs "$SCALE_RUNS")
say "tests and programs took ${SECONDS} s"
exec bin/scale --reports "${REPORTS:-$root_dir/dist/tests}" "${arguments[@]}"
