#!/usr/bin/env bash
# Brings up the kind cluster for tests and the demo: one control plane and three workers. A cluster that is healthy is
# left alone; one that is half made, stopped or of another size is made again.
# usage: up.sh
#   CLUSTER           name, default parallelfs          WORKERS     number of workers, default 3
#   CONTAINER_ENGINE  podman (default) or docker        NODE_IMAGE  kind node image; default: kind's own where a registry answers,
#   BASE_REGISTRY     where Debian's images are             else one built here by node-image.sh
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# healthy is true when every node that there should be answers and is Ready.
healthy() {
  local ready
  [[ -s $kubeconfig ]] || return 1
  ready=$(run_kubectl --request-timeout=5s get nodes -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' 2>/dev/null |
    grep -c '^True$') || return 1
  ((ready == workers + 1))
}

# node_image prints the image of the nodes: the one asked for, the one that kind publishes and pins, or our own.
node_image() {
  local published
  if [[ -n ${NODE_IMAGE:-} ]]; then echo "$NODE_IMAGE"; return; fi
  if registry_answers; then
    published=$(sed -n 's/^const Image = "\(.*\)"/\1/p' "$(cd "$root_dir/tools/kind" && go mod download sigs.k8s.io/kind && go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/pkg/apis/config/defaults/image.go")
    published=${BASE_REGISTRY:-docker.io}/$published
    if engine image inspect "$published" >/dev/null 2>&1; then echo "$published"; return; fi
    say "pulling $published"
    if as_engine timeout 600 "$engine_name" pull -q "$published" >&2; then echo "$published"; return; fi
    say "it could not be pulled"
  fi
  "$(dirname "$0")/node-image.sh"
}

# kind_config prints kind's configuration. The kubelet and containerd must run where OOM scores can't be lowered
# (a machine that is a container itself); on other machines the two settings change nothing that matters here.
kind_config() { # kind_config HAS_CNI
  echo 'kind: Cluster'
  echo 'apiVersion: kind.x-k8s.io/v1alpha4'
  [[ $1 == yes ]] || echo 'networking: {disableDefaultCNI: true}'
  cat <<'YAML'
featureGates: {KubeletInUserNamespace: true}
containerdConfigPatches:
- |-
  [plugins."io.containerd.grpc.v1.cri"]
    restrict_oom_score_adj = true
  # registry.sh says there where the nodes find its registry.
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
# A kubelet looks at its pods once a minute, and only then gives them changed ConfigMaps: tests would wait for little else.
kubeadmConfigPatches:
- |-
  kind: KubeletConfiguration
  syncFrequency: 5s
# The cluster need not outlive its machine: etcd leaves the disk to those whose data is measured.
- |-
  kind: ClusterConfiguration
  etcd: {local: {extraArgs: {unsafe-no-fsync: "true"}}}
  apiServer:
    extraArgs: {admission-control-config-file: /etc/kubernetes-admission/admission.yaml}
    extraVolumes: [{name: admission, hostPath: /etc/kubernetes-admission, mountPath: /etc/kubernetes-admission, readOnly: true}]
nodes:
- role: control-plane
YAML
  echo "  extraMounts: [{hostPath: '$root_dir/test/cluster/admission', containerPath: /etc/kubernetes-admission, readOnly: true}]"
  for ((i = 0; i < workers; i++)); do
    # The directory stands for the files of a filesystem whose client is a double (test/doubles/README.md): it is the same on all nodes.
    echo '- role: worker'
    echo "  extraMounts: [{hostPath: '$shared_dir', containerPath: /mnt/.beegfs-double}, {hostPath: '$shared_dir', containerPath: /mnt/.lustre-double}]"
  done
}

# pod_network is kind's own, of which each node has a part.
pod_network=10.244.0.0/16

# connect gives a cluster without kind's network plugin a plain routed one: on each node ptp and host-local over its
# podCIDR, and a route to every other node's.
connect() {
  local nodes node cidr other other_cidr other_ip
  nodes=$(run_kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}')
  while read -r node cidr _; do
    [[ -n $cidr ]] || die "node $node has no podCIDR yet: run this again"
    engine exec -i "$node" tee /etc/cni/net.d/10-ptp.conflist >/dev/null <<JSON
{"cniVersion":"0.4.0","name":"ptp","plugins":[
 {"type":"ptp","ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"$cidr"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
JSON
    # Pods see each other's own addresses, as on every cluster: MPI drops a connection from any other.
    engine exec "$node" sh -c "iptables -t nat -C POSTROUTING -s $pod_network -d $pod_network -j ACCEPT 2>/dev/null ||
      iptables -t nat -I POSTROUTING -s $pod_network -d $pod_network -j ACCEPT" </dev/null
    while read -r other other_cidr other_ip; do
      [[ $other == "$node" ]] || engine exec "$node" ip route replace "$other_cidr" via "$other_ip" </dev/null
    done <<<"$nodes"
  done <<<"$nodes"
}

# wait_for_nodes waits until every node has registered: kind does not, and a node that comes later would not be connected.
wait_for_nodes() {
  local there=0
  for ((i = 0; i < 60; i++)); do
    there=$(run_kubectl get nodes -o name | wc -l)
    ((there < workers + 1)) || return 0
    sleep 1
  done
  die "only $there of $((workers + 1)) nodes have registered. Look at the kubelet of the missing one: $engine_name exec NODE journalctl -u kubelet. \
Where several clusters run, it may lack inotify instances: sysctl fs.inotify.max_user_instances=512"
}

# wait_for_cidrs waits until the control plane has given every node its part of the pod network.
wait_for_cidrs() {
  run_kubectl wait --for=jsonpath='{.spec.podCIDR}' nodes --all --timeout=60s >/dev/null
}

need_go
use_cluster_tools
one_at_a_time
if healthy; then
  say "cluster $cluster is up: export KUBECONFIG=$kubeconfig"
  exit 0
fi
if [[ -n $(cluster_nodes) ]]; then
  say "cluster $cluster is not as it should be: making it again"
  run_kind delete cluster --name "$cluster" --kubeconfig "$kubeconfig"
fi

if [[ $engine_name == podman && $(engine info --format '{{.Host.NetworkBackend}}') != netavark ]]; then
  die "podman's network backend is not netavark, and no other lets the nodes of a cluster find each other by name: set network_backend = \"netavark\" \
below [network] in /etc/containers/containers.conf or the file that CONTAINERS_CONF names"
fi
[[ -e /lib/modules ]] || as_root mkdir -p /lib/modules   # kind mounts it into each node; a kernel without modules has none
image=$(node_image)
has_cni=no
if engine run --rm --entrypoint test "$image" -e /kind/manifests/default-cni.yaml; then has_cni=yes; fi
mkdir -p "$shared_dir"
kind_config "$has_cni" > "$work_dir/$cluster.yaml"
say "creating cluster $cluster: 1 control plane, $workers workers, nodes from $image"
run_kind create cluster --name "$cluster" --image "$image" --config "$work_dir/$cluster.yaml" --kubeconfig "$kubeconfig" >&2
((EUID == 0)) || as_root chown "$(id -u):$(id -g)" "$kubeconfig"
# kind gives every node files of the loop devices that the machine has. An agent would look at them, and a mkfs of somebody else's
# fails at the moment when it does.
for node in $(cluster_nodes); do engine exec "$node" sh -c 'rm -f /dev/loop[0-9]*' </dev/null; done
wait_for_nodes
if [[ $has_cni == no ]]; then
  say "connecting the nodes' pod networks"
  wait_for_cidrs
  connect
fi
say "waiting for the nodes and the cluster's DNS"
run_kubectl wait --for=condition=Ready nodes --all --timeout=180s >/dev/null
run_kubectl -n kube-system rollout status deployment/coredns --timeout=180s >/dev/null
say "cluster $cluster is up: export KUBECONFIG=$kubeconfig"
