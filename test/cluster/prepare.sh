#!/usr/bin/env bash
# Brings up the cluster and makes the project's images at the same time, since one mostly waits and the other computes, and loads the images.
# usage: prepare.sh [NAME...]   NAME is a folder of images/; default: all   (CLUSTER and more as for up.sh)
#   BEEGFS_IMAGES, BENCHMARK_IMAGES  real programs in the place of doubles, as for real-values.sh; they are loaded as well
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
use_cluster_tools
jobs=()
references=$(mktemp)
trap 'kill "${jobs[@]}" 2>/dev/null || true; rm -f "$references"' EXIT
# Images are made from the beginning, in the gaps that the cluster leaves: while packages are installed, downloads come and nodes start. What
# the node image needs is compiled first, because the cluster waits for it.
{ nice -n 10 "$root_dir/images/build.sh" "$@" && nice -n 10 "$root_dir/tools/build.sh" helm >/dev/null; } > "$references" &
jobs=($!)
if [[ -z ${NODE_IMAGE:-} ]] && ! registry_answers; then "$here/node-image.sh" >/dev/null; fi
"$here/up.sh" &
jobs+=($!)
real=$("$here/real-values.sh" --images)
for job in "${jobs[@]}"; do wait "$job"; done
jobs=()
built=$(cat "$references")
"$here/lustre.sh"
mapfile -t images < <(printf '%s\n' "$built" "$real" | grep .)
"$here/load.sh" "${images[@]}"
