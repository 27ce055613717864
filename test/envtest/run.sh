#!/usr/bin/env bash
# Tests controllers, admission and the chart's policies against a real kube-apiserver and etcd.
# usage: test/envtest/run.sh [ARGUMENT OF go test]...      such as -run Killed, -v, -count=1
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
need_go
cd "$root_dir"
KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(test/cluster/envtest-assets.sh)}
tools/build.sh --link bin helm >/dev/null
export KUBEBUILDER_ASSETS HELM=$root_dir/bin/helm
go build -tags envtest -ldflags '-s -w' -o bin/envtest-serve ./test/envtest/serve

# Files of the servers lie in memory where there is a gibibyte left for them.
place=${TMPDIR:-/tmp}
if [[ -w /dev/shm ]] && (($(df --output=avail -k /dev/shm | tail -1) > 1024 * 1024)); then place=/dev/shm; fi
# Go keeps the result of a package until something changes that its tests read. What the server is made of, they don't read: it is in the
# directory's name, which they do.
made_of=$({ cat config/crd/bases/*.yaml go.sum; readlink -f "$KUBEBUILDER_ASSETS"/*; } | hash_of)
directory=$place/parallelfs-envtest-$UID-$(hash_of <<<"$root_dir")-$made_of
# One run at a time: a second one in this folder waits.
exec 8<"$root_dir/test/envtest"
flock 8

# Tests wait for the API server most of their time, so that more of them run at once than there are CPUs.
# Lint has vetted what is compiled here.
mapfile -t packages < <(packages_with envtest test/envtest controllers internal/node/agent)
((${#packages[@]})) || die "no package has a test with the build tag envtest"
# GOTEST is how the Makefile runs tests.
# shellcheck disable=SC2086  # it is a command with its arguments
exec bin/envtest-serve "$directory" ${GOTEST:-go test -vet=off -ldflags=-s} -tags envtest -parallel 6 -timeout 3h "$@" "${packages[@]}"
