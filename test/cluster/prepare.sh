#!/usr/bin/env bash
# Brings up the cluster and makes the project's images at the same time, since one mostly waits and the other computes, and loads the images.
# usage: prepare.sh [NAME...]   NAME is a folder of images/; default: all   (CLUSTER and more as for up.sh)
#   BEEGFS_IMAGES, BENCHMARK_IMAGES  real programs in the place of doubles, as for real-values.sh; they are loaded as well
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
use_cluster_tools
# Podman is installed and the node image made before: the rest depends on both.
if [[ -z ${NODE_IMAGE:-} ]] && ! registry_answers; then "$here/node-image.sh" >/dev/null; fi
"$here/up.sh" &
up=$!
trap 'kill "$up" 2>/dev/null || true' EXIT
built=$("$root_dir/images/build.sh" "$@")
real=$("$here/real-values.sh" --images)
wait "$up"
trap - EXIT
mapfile -t images < <(printf '%s\n' "$built" "$real" | grep .)
"$here/load.sh" "${images[@]}"
