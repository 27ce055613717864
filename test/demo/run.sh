#!/usr/bin/env bash
# The demo: a cluster, the operator by its Helm chart, a MooseFS filesystem, a benchmark of it, and the tables of both.
# Safe to run again: it goes on where it was. `make cluster-down` removes everything.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/lib.sh
. tools/lib.sh
need column=bsdextrautils
kubectl() { bin/kubectl "$@"; }

make --no-print-directory deploy

say "labeling the workers: one for metadata and one for its copy, all for storage and clients"
mapfile -t nodes < <(kubectl get nodes -l '!node-role.kubernetes.io/control-plane' -o name | sort)
((${#nodes[@]} >= 2)) || die "the demo needs two workers: WORKERS=3 make cluster-up"
kubectl label --overwrite "${nodes[@]}" parallelfs.dev/agent= parallelfs.dev/scratch-storage= parallelfs.dev/scratch-client= >/dev/null
kubectl label --overwrite "${nodes[0]}" parallelfs.dev/scratch-metadata= >/dev/null
kubectl label --overwrite "${nodes[1]}" parallelfs.dev/scratch-metalogger= >/dev/null

say "applying the FileSystem (config/samples/filesystem.yaml)"
kubectl apply -f config/samples/filesystem.yaml
say "waiting until the filesystem itself says that it is ready"
kubectl -n storage wait filesystem/scratch --for=condition=Ready --timeout=5m

say "applying the BenchmarkRun (config/samples/iozone-single.yaml)"
kubectl apply -f config/samples/iozone-single.yaml
progress="" last=""
until kubectl -n storage wait benchmarkrun/iozone-sweep --for=jsonpath='{.status.completionTime}' --timeout=5s >/dev/null 2>&1; do
  progress=$(kubectl -n storage get benchmarkrun/iozone-sweep -o jsonpath='{.status.progress} {.status.current} {.status.timeLeft}')
  [[ $progress == "$last" ]] || say "  $progress"
  last=$progress
  ((SECONDS < 3600)) || die "the benchmark has not ended: bin/kubectl -n storage describe benchmarkrun iozone-sweep"
done

echo
kubectl -n storage get filesystems -o wide
echo
kubectl -n storage get benchmarkruns -o wide
echo
kubectl -n storage get benchmarkrun iozone-sweep -o go-template-file=test/demo/results.gotemplate | column -t -s $'\t'
cat <<TEXT

Look around:
  export KUBECONFIG=$PWD/test/cluster/.work/kubeconfig PATH=$PWD/bin:\$PATH
  kubectl -n storage describe filesystem scratch
  kubectl -n storage get pods -o wide
  kubectl -n storage exec daemonset/scratch-client -- ls -l /mnt/scratch
  kubectl explain benchmarkrun.spec
Another run, spread over two clients by MPI:
  kubectl apply -f config/samples/iozone-distributed.yaml
Clean up:
  make cluster-down
TEXT
