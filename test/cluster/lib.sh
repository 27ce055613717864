# shellcheck shell=bash
# Sourced by the scripts of test/cluster/: which cluster, its tools, and what its nodes are.
# shellcheck source=tools/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"

cluster=${CLUSTER:-parallelfs}
workers=${WORKERS:-3}
kubeconfig=$work_dir/kubeconfig
[[ $cluster == parallelfs ]] || kubeconfig=$work_dir/kubeconfig-$cluster
# shared_dir is the directory that all nodes of the cluster have at /mnt/.beegfs-double and /mnt/.lustre-double.
shared_dir=$work_dir/shared-$cluster
export cluster workers kubeconfig shared_dir

# use_cluster_tools makes kind and kubectl callable, and the engine known.
use_cluster_tools() {
  need curl=curl
  use_engine
  "$root_dir/tools/build.sh" --link "$root_dir/bin" kind kubectl >/dev/null
  mkdir -p "$work_dir"
}

# kind and kubectl never touch the user's own configuration.
run_kind() { as_engine env KIND_EXPERIMENTAL_PROVIDER="$engine_name" "$root_dir/bin/kind" "$@"; }
run_kubectl() { "$root_dir/bin/kubectl" --kubeconfig "$kubeconfig" "$@"; }

# cluster_nodes prints the containers that are the cluster's nodes, running or not; worker_nodes those that take pods.
cluster_nodes() { engine ps -a --filter "label=io.x-k8s.kind.cluster=$cluster" --format '{{.Names}}' | sort; }
worker_nodes() {
  local all
  all=$(engine ps -a --filter "label=io.x-k8s.kind.cluster=$cluster" --filter label=io.x-k8s.kind.role=worker --format '{{.Names}}' | sort)
  [[ -n $all ]] || all=$(cluster_nodes)
  echo "$all"
}

# privileged_namespace makes a namespace for privileged pods: the cluster's default is the Pod Security standard restricted.
privileged_namespace() { # privileged_namespace NAME
  run_kubectl get namespace "$1" >/dev/null 2>&1 || run_kubectl create namespace "$1" >/dev/null
  run_kubectl label --overwrite namespace "$1" pod-security.kubernetes.io/enforce=privileged >/dev/null
}

# one_at_a_time waits until no other script changes the cluster.
one_at_a_time() {
  exec 9>"$work_dir/lock"
  flock -n 9 || { say "waiting for another script that works on the cluster"; flock 9; }
}

# save_images FILE IMAGE... writes one archive of several images, which the engine's user can read.
save_images() {
  local several=() log
  [[ $engine_name != podman ]] || several=(--multi-image-archive)
  log=$(engine save ${several[@]+"${several[@]}"} -o "$1" "${@:2}" 2>&1 >/dev/null) || die "saving ${*:2} failed: $log"
}
