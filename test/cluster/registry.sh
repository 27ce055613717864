#!/usr/bin/env bash
# Gives the test cluster a container registry that its nodes pull from, and prints its name: localhost:PORT, for the nodes and for this machine
# alike. It is plain HTTP without a login. It goes with the cluster. usage: registry.sh up|down   (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine
container=$cluster-registry

# registry_image prints the image of the registry, after making it when it is missing or outdated: the engine has its layers otherwise.
registry_image() {
  local base image=localhost/parallelfs/registry:dev
  base=$("$root_dir/images/base.sh" debian:bookworm-slim)
  engine build -q --network=host --build-arg BASE="$base" -t "$image" "$root_dir/test/cluster/registry" >/dev/null || die "building $image failed"
  echo "$image"
}

# host_port prints where this machine reaches the registry; the engine has chosen the port.
host_port() { engine port "$container" 5000/tcp | sed -n 's/^127\.0\.0\.1://p'; }

up() {
  local image node port address
  [[ -n $(cluster_nodes) ]] || die "there is no cluster $cluster: make it with up.sh"
  if [[ $(engine inspect -f '{{.State.Running}}' "$container" 2>/dev/null) != true ]]; then
    down
    image=$(registry_image)
    say "starting the registry $container"
    # Beside the nodes, which are on the network of kind.
    engine run -d --name "$container" --network kind -p 127.0.0.1::5000 "$image" >/dev/null
  fi
  port=$(host_port)
  address=$(engine inspect -f '{{(index .NetworkSettings.Networks "kind").IPAddress}}' "$container")
  for ((i = 0; i < 100; i++)); do
    curl -fsS -m 5 -o /dev/null "http://127.0.0.1:$port/v2/" 2>/dev/null && break
    sleep 0.1
  done
  ((i < 100)) || die "the registry does not answer: $engine_name logs $container"
  # What is localhost:PORT on this machine is the registry's address for a node. containerd reads the file at each pull.
  for node in $(cluster_nodes); do
    engine exec "$node" mkdir -p "/etc/containerd/certs.d/localhost:$port" </dev/null
    engine exec -i "$node" tee "/etc/containerd/certs.d/localhost:$port/hosts.toml" >/dev/null <<TOML
[host."http://$address:5000"]
  capabilities = ["pull", "resolve"]
TOML
  done
  echo "localhost:$port"
}

down() { engine rm -f -v "$container" >/dev/null 2>&1 || true; }

case ${1:-} in
  up) need curl=curl; up ;;
  down) down ;;
  *) die "usage: $0 up|down" ;;
esac
