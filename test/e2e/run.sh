#!/usr/bin/env bash
# Runs the end-to-end tests on a kind cluster of their own, and removes it afterwards.
# usage: run.sh [GINKGO ARGUMENT...]   such as --ginkgo.focus='BenchmarkRun'
#   KEEP_CLUSTER=1  leaves the cluster up, to look around and to run again without making it
#   BEEGFS_IMAGES   mgmtd=IMAGE,meta=IMAGE,storage=IMAGE,tools=IMAGE: real daemons of BeeGFS 7.4.6 instead of the doubles
#   BENCHMARK_IMAGES  TOOL=IMAGE,…: real benchmarks instead of the doubles, such as mdtest and ior
set -euo pipefail
export CLUSTER=${CLUSTER:-parallelfs-e2e}
cd "$(dirname "$0")/../.."
# shellcheck source=test/cluster/lib.sh
. test/cluster/lib.sh

cleanup() {
  if [[ -n ${KEEP_CLUSTER:-} ]]; then
    say "the cluster is left up: export KUBECONFIG=$kubeconfig; remove it with CLUSTER=$CLUSTER make cluster-down"
  else
    test/cluster/down.sh
  fi
  if [[ -s $failures ]]; then cat "$failures" >&2; fi
}
failures=test/cluster/.work/failures
rm -f "$failures"
trap cleanup EXIT
test/cluster/up.sh
built=$(images/build.sh)
real=$(test/cluster/real-values.sh --images)
mapfile -t images < <(printf '%s\n' "$built" "$real" | grep .)
test/cluster/load.sh "${images[@]}"
tools/build.sh --link bin helm kubectl >/dev/null
go build -o bin/kubectl-pfs ./cmd/kubectl-pfs
export KUBECONFIG=$kubeconfig
go test -v -tags e2e -count=1 -timeout 75m ./test/e2e/ --ginkgo.v "$@"
