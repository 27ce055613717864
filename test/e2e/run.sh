#!/usr/bin/env bash
# Runs the end-to-end tests on a kind cluster of their own, and removes it afterwards.
# usage: run.sh [GINKGO ARGUMENT...]   such as --focus='BenchmarkRun'
#   KEEP_CLUSTER=1  leaves the cluster up, to look around and to run again without making it
#   MORE=1          also runs the stories with the label more, which `make test` leaves out; arguments choose from all stories, too
#   PROCS           number of stories that run side by side, default 3
#   BEEGFS_IMAGES   mgmtd=IMAGE,meta=IMAGE,storage=IMAGE,tools=IMAGE: real daemons of BeeGFS 7.4.6 instead of the doubles
#   BENCHMARK_IMAGES  TOOL=IMAGE,…: real benchmarks instead of the doubles, such as mdtest and ior
#   UPDATE          a commit that has ADR 0077, or a later one: only the update of the operator from the chart and the images of that commit
#                   to those that are here
#   UPGRADE_TO      a version of MooseFS with a folder images/moosefs-VERSION, such as 4.59.2: also an upgrade to that one
#   REPORTS         directory for Ginkgo's report, as test/tiers/run.sh sets it
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

test/cluster/prepare.sh
if [[ -n ${UPGRADE_TO:-} ]]; then
  image=$(images/build.sh "moosefs-$UPGRADE_TO")
  test/cluster/load.sh "$image"
fi
if [[ -n ${UPDATE:-} ]]; then
  # Images of other names: of those that are here, the nodes and the engine have one of each.
  git cat-file -e "$UPDATE:docs/adr/0077-stored-formats-are-frozen.md" 2>/dev/null ||
    die "UPDATE=$UPDATE is no commit of this repository with docs/adr/0077-stored-formats-are-frozen.md: name that one or a later one, such as ff7e17f"
  say "making chart and images of $UPDATE"
  before=$work_dir/before
  rm -rf "$before"
  mkdir -p "$before"
  git archive "$UPDATE" | tar -x -C "$before"
  images=$(IMAGE_PREFIX=localhost/parallelfs-before "$before/images/build.sh" manager node agent)
  mapfile -t images <<<"$images"
  test/cluster/load.sh "${images[@]}"
fi
tools/build.sh --link bin helm kubectl >/dev/null
go build -trimpath -ldflags '-s -w' -o bin/ ./cmd/kubectl-pfs github.com/onsi/ginkgo/v2/ginkgo
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ ./test/e2e/load ./test/e2e/hostile ./test/e2e/objectstore # they run in pods
go test -c -tags e2e -vet=off -trimpath -ldflags '-s -w' -o test/e2e/e2e.test ./test/e2e
export KUBECONFIG=$kubeconfig
(($#)) || [[ -n ${MORE:-}${BEEGFS_IMAGES:-} ]] || set -- --label-filter='!more'
# A spec that fails shows why at once; one that passes shows its figures.
bin/ginkgo --procs="${PROCS:-3}" --timeout=3h -v --no-color ${REPORTS:+--output-dir="$REPORTS" --json-report=test-e2e.json} "$@" test/e2e/e2e.test
