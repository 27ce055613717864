#!/usr/bin/env bash
# Prints the reference of a kind node image that is made without any container registry, after making it when it is
# missing or outdated: Debian packages (systemd, runc, iptables) and binaries from the Go module proxy (Kubernetes,
# containerd, etcd, CoreDNS, CNI plugins; versions in tools/*/go.mod). About 10 minutes on 2 cores with cold caches.
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
need_go
use_engine

module_version() { (cd "$root_dir/tools/$1" && go list -m -f '{{.Version}}' "$2"); }
version=$(module_version kubernetes k8s.io/kubernetes)
image=localhost/parallelfs/kind-node:$version
base=$("$root_dir/images/base.sh" debian:bookworm-slim)
key=$(cat "$here/node-image.sh" "$here"/node-image/{Dockerfile,pause/main.go} "$root_dir"/tools/{kubernetes,containerd,etcd,coredns,cni,kind}/go.mod "$root_dir/tools/coredns/main.go" | hash_of)
if [[ $(engine image inspect -f '{{index .Config.Labels "dev.parallelfs.content"}}' "$image" 2>/dev/null) == "$key" ]]; then
  echo "$image"
  exit 0
fi

say "making the node image $image; about 10 minutes the first time"
mkdir -p "$cache"
context=$(mktemp -d "$cache/node-image.XXXXXX")
builder=parallelfs-node-image-$$
cleanup() {
  engine rm -f "$builder" >/dev/null 2>&1 || true
  as_root rm -rf "$context"
}
trap cleanup EXIT
tools=$context/tools
"$root_dir/tools/build.sh" --link "$tools" kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl \
  containerd ctr containerd-shim-runc-v2 etcd coredns host-local loopback ptp portmap >/dev/null
(cd "$root_dir" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$tools/pause" ./test/cluster/node-image/pause)
take() { # take DIR NAME...: the named binaries, into a directory of the build context
  mkdir -p "$context/$1"
  for name in "${@:2}"; do cp -L "$tools/$name" "$context/$1/"; done
}

say "building the node's base: kind's files, systemd, containerd and the kubelet"
# go list prints no directory for a module that is not downloaded yet, as on a machine that has kind's program in the cache only.
cp -r "$(cd "$root_dir/tools/kind" && go mod download sigs.k8s.io/kind && go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files" "$context/files"
chmod -R u+w "$context/files"
take bin containerd ctr containerd-shim-runc-v2 kubeadm kubelet kubectl
take cni host-local loopback ptp portmap
engine build -q --network=host --build-arg BASE="$base" --build-arg KUBERNETES="$version" --label "dev.parallelfs.content=$key" \
  -t localhost/parallelfs/kind-base:"$version" -f "$here/node-image/Dockerfile" "$context" >/dev/null

# The control plane runs as static pods, so its images must be in the node's containerd already, by the names that
# kubeadm gives them. CoreDNS and etcd are of the versions in these names: see tools/etcd and tools/coredns.
say "building the images of the control plane"
images=()
component() { # component BINARY REFERENCE [BASE RUN]
  take components "$1"
  printf 'FROM %s\n%s\nCOPY %s /usr/local/bin/%s\nENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nENTRYPOINT ["/usr/local/bin/%s"]\n' \
    "${3:-scratch}" "${4:-}" "$1" "$1" "$1" > "$context/Dockerfile"
  engine build -q --network=host -t "$2" -f "$context/Dockerfile" "$context/components" >/dev/null
  images+=("$2")
  rm "$context/components/$1"
}
for name in kube-apiserver kube-controller-manager kube-scheduler; do component "$name" "registry.k8s.io/$name:$version"; done
component kube-proxy "registry.k8s.io/kube-proxy:$version" "$base" \
  'RUN apt-get update && apt-get install -y --no-install-recommends iptables nftables conntrack kmod && rm -rf /var/lib/apt/lists/*'
names=$("$tools/kubeadm" config images list --kubernetes-version "$version")
component etcd "$(grep /etcd: <<<"$names")"
component coredns "$(grep /coredns: <<<"$names")"
component pause "$(grep /pause: <<<"$names")"
# containerd has its own idea of pause's version.
component pause "$(sed -n 's/.*"\(registry.k8s.io\/pause:[^"]*\)".*/\1/p' "$context/files/etc/containerd/config.toml" | grep . || echo registry.k8s.io/pause:3.10)"

say "putting them into the node image"
save_images "$context/images.tar" "${images[@]}"
engine run -d --privileged --name "$builder" --entrypoint sleep localhost/parallelfs/kind-base:"$version" infinity >/dev/null
engine cp "$context/images.tar" "$builder:/images.tar"
# Nothing is unpacked here: an overlay filesystem on another can't hold the whiteouts of an image's layers.
# shellcheck disable=SC2016  # the shell of the container expands it
engine exec "$builder" bash -ec '
  rm -rf /var/lib/containerd
  containerd >/var/log/containerd.log 2>&1 & pid=$!
  until ctr version >/dev/null 2>&1; do kill -0 $pid || { tail /var/log/containerd.log >&2; exit 1; }; sleep 0.2; done
  ctr -n k8s.io images import --no-unpack --digests=false /images.tar >/dev/null
  rm /images.tar
  kill $pid; wait $pid || true'
engine commit -q --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' "$builder" "$image" >/dev/null
say "made $image"
echo "$image"
