#!/usr/bin/env bash
# Runs the tests of this folder: a virtual machine joins a cluster of kind as a node, and a real Lustre runs there through the operator. The last
# test has a second machine join, which reaches one disk of the first one.
# usage: LUSTRE=DIR run.sh [ARGUMENT of go test...]   such as -run TestTheMachine
#   LUSTRE          a Lustre that somebody has built, with its kernel: docs/testing.md says what DIR holds
#   CLUSTER         name, default parallelfs-node
#   KEEP_CLUSTER=1  leaves cluster and machines up, to look around and to run some of the tests again; without it, all is removed
#   IMAGE_PREFIX    of the operator's images, default localhost/parallelfs
#   VM_ACCEL=kvm    where a machine starts with it; QEMU emulates the processor otherwise
set -euo pipefail
# shellcheck source=test/vmnode/lib.sh
. "$(dirname "$0")/lib.sh"

cleanup() {
  if [[ -n ${KEEP_CLUSTER:-} ]]; then
    say "cluster and machines are left up: export KUBECONFIG=$kubeconfig; $here/machine.sh ask COMMAND; remove them with $here/machine.sh down; MACHINE=2 $here/machine.sh down; CLUSTER=$CLUSTER make cluster-down"
    return
  fi
  MACHINE=2 "$here/machine.sh" down
  "$here/machine.sh" down
  "$root_dir/test/cluster/down.sh"
}
trap cleanup EXIT

use_cluster_tools
seconds=$SECONDS
"$root_dir/images/build.sh" manager node agent >/dev/null
folder=$("$here/disk.sh")
if ! running; then
  say "images and disk: $((SECONDS - seconds)) s"
  seconds=$SECONDS
  # The machine's root is made of this one, with its network plugins.
  NODE_IMAGE=$("$root_dir/test/cluster/node-image.sh") "$root_dir/test/cluster/up.sh"
  say "cluster: $((SECONDS - seconds)) s"
  seconds=$SECONDS
  "$here/machine.sh" start "$folder"
  # The machine starts meanwhile.
  "$root_dir/test/cluster/load.sh" "$prefix/manager:dev"
  "$root_dir/tools/build.sh" --link "$root_dir/bin" helm >/dev/null
  privileged_namespace "$namespace" # of the agents
  "$root_dir/bin/helm" --kubeconfig "$kubeconfig" --namespace "$namespace" upgrade --install parallelfs-operator \
    "$root_dir/charts/parallelfs-operator" --values "$root_dir/test/cluster/values.yaml" --values "$here/values.yaml" \
    --set "image.manager.repository=$prefix/manager,image.node.repository=$prefix/node,image.agent.repository=$prefix/agent" \
    --set image.manager.tag=dev,image.node.tag=dev,image.agent.tag=dev --wait --timeout 10m >/dev/null
  "$here/machine.sh" ask true </dev/null
  say "the machine runs commands: $((SECONDS - seconds)) s after its start"
  seconds=$SECONDS
  "$here/machine.sh" join >/dev/null
  say "the machine is a Ready node: $((SECONDS - seconds)) s"
fi
cd "$root_dir"
export PATH=$root_dir/bin:$PATH KUBECONFIG=$kubeconfig VMNODE_NODE=$node VMNODE_SECOND=${node%1}2 VMNODE_MACHINE=$here/machine.sh VMNODE_FOLDER=$folder VMNODE_IMAGE=$prefix/agent:dev
${GOTEST:-go test -v} -tags vmnode -count=1 -failfast -timeout 12h ./test/vmnode/ "$@"
