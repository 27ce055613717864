#!/usr/bin/env bash
# Copies container images to the nodes that take pods. A node that has an image of the same id is left alone; all others
# get what they miss from one archive, at the same time. usage: load.sh IMAGE...   (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
(($#)) || die "usage: $0 IMAGE..."
use_engine
mkdir -p "$work_dir"
nodes=$(worker_nodes)
[[ -n $nodes ]] || die "there is no cluster $cluster: make it with up.sh"

# A node's containerd names each image twice: by its reference and by its id. Both point to one digest when the
# reference means the image of that id.
missing() { # missing NODE: the images that the node does not have, one per line
  local image id digests
  engine exec "$1" ctr -n k8s.io images ls </dev/null | awk 'NR > 1 {print $1, $3}' > "$work_dir/images-$1"
  for image in "${wanted[@]}"; do
    id=$(engine image inspect -f '{{.Id}}' "$image") || die "there is no image $image: build it with images/build.sh"
    digests=$(awk -v r="$image" -v i="sha256:${id#sha256:}" '$1 == r || $1 == i {print $2}' "$work_dir/images-$1")
    [[ $(wc -l <<<"$digests") == 2 && $(sort -u <<<"$digests" | wc -l) == 1 ]] || echo "$image"
  done
}

wanted=("$@")
for image in "${wanted[@]}"; do
  # One that was not built here comes from its registry, once.
  [[ $image == localhost/* ]] || engine image inspect "$image" >/dev/null 2>&1 || { say "pulling $image"; engine pull -q "$image" >/dev/null; }
done
declare -A misses
all=""
for node in $nodes; do
  misses[$node]=$(missing "$node")
  rm -f "$work_dir/images-$node"
  all+=${misses[$node]:+${misses[$node]}$'\n'}
done
if [[ -z $all ]]; then say "the nodes have all ${#wanted[@]} images"; exit 0; fi
mapfile -t images < <(sort -u <<<"$all" | grep .)

say "loading ${images[*]}"
directory=$(mktemp -d)
trap 'as_root rm -rf "$directory"' EXIT
archive=$directory/images.tar
save_images "$archive" "${images[@]}"
pids=()
for node in $nodes; do
  [[ -n ${misses[$node]} ]] || continue
  as_root cat "$archive" | engine exec -i "$node" ctr -n k8s.io images import --digests=false - >/dev/null &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || die "a node did not take the images: look at the messages above"; done
say "loaded"
