#!/usr/bin/env bash
# Installs the operator in the test cluster, or upgrades it.
# usage: deploy.sh RELEASE NAMESPACE   (CLUSTER and more as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
use_cluster_tools
release=$1 namespace=$2
run_helm() { "$root_dir/bin/helm" --kubeconfig "$kubeconfig" --namespace "$namespace" "$@"; }

"$root_dir/tools/build.sh" --link "$root_dir/bin" helm >&2
installed=no
if run_helm status "$release" >/dev/null 2>&1; then installed=yes; fi
privileged_namespace "$namespace" # of the agents
"$(dirname "$0")/real-values.sh" | run_helm upgrade --install "$release" "$root_dir/charts/parallelfs-operator" \
  --values "$(dirname "$0")/values.yaml" --values - --wait --timeout 5m
if [[ $installed == yes ]]; then
  # A rebuilt image has the same name, which Helm does not see.
  run_kubectl --namespace "$namespace" rollout restart deployment,daemonset --selector "app.kubernetes.io/instance=$release"
  run_kubectl --namespace "$namespace" rollout status deployment,daemonset --selector "app.kubernetes.io/instance=$release" --timeout 5m
fi
