#!/usr/bin/env bash
# Prints the directory with kube-apiserver, etcd and kubectl for tests against a real API server (KUBEBUILDER_ASSETS),
# after compiling what is missing. They are the same binaries as in the cluster's node image.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
"$root_dir/tools/build.sh" --link "$root_dir/bin/envtest" kube-apiserver etcd kubectl >/dev/null
echo "$root_dir/bin/envtest"
