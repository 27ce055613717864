#!/usr/bin/env bash
# Prints values of the operator's chart that put real programs in the place of the doubles of values.yaml, as two variables say:
#   BEEGFS_IMAGES     mgmtd=IMAGE,meta=IMAGE,storage=IMAGE,tools=IMAGE: the daemons of BeeGFS 7.4.6, all four of them
#   BENCHMARK_IMAGES  TOOL=IMAGE,…: images with benchmarks, such as mdtest and ior
# Without them, they are values that change nothing.
# usage: real-values.sh [--images]   --images prints the images alone, one per line
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
version=7.4.6
only_images=${1:-}
[[ -z $only_images || $only_images == --images ]] || die "usage: $0 [--images]"
declare -A beegfs=() benchmark=()

# read_images NAME TEXT KEYS fills the array NAME from key=image,… with keys among KEYS.
read_images() {
  local -n into=$1
  local pair pairs
  IFS=, read -ra pairs <<<"$2"
  for pair in "${pairs[@]}"; do
    [[ $pair == *=?* && $3 == *" ${pair%%=*} "* ]] || die "${4}: '$pair' is not <name>=<image>, with the names$3"
    [[ -z ${into[${pair%%=*}]:-} ]] || die "${4}: ${pair%%=*} is named twice"
    into[${pair%%=*}]=${pair#*=}
  done
}

# value prints an image as a value of the chart.
value() { # value KEY IMAGE
  local image=$2 tag="" digest=""
  case ${image##*/} in
    *@*) digest=${image##*@} image=${image%@*} ;;
    *:*) tag=${image##*:} image=${image%:*} ;;
    *) tag=latest ;;
  esac
  echo "    $1: {repository: \"$image\", tag: \"$tag\", digest: \"$digest\"}"
}

roles=" mgmtd meta storage tools "
if [[ -n ${BEEGFS_IMAGES:-} ]]; then
  read_images beegfs "$BEEGFS_IMAGES" "$roles" BEEGFS_IMAGES
  for role in $roles; do
    # Half of a BeeGFS would be real, and the other half a double that can't talk to it.
    [[ -n ${beegfs[$role]:-} ]] || die "BEEGFS_IMAGES: no image for $role; name one for each of$roles"
  done
fi
[[ -z ${BENCHMARK_IMAGES:-} ]] ||
  read_images benchmark "$BENCHMARK_IMAGES" " iozone mdtest ior fio postmark vdbench netmist mdsSurvey obdfilterSurvey storagebench custom " BENCHMARK_IMAGES

if [[ -n $only_images ]]; then
  printf '%s\n' "${beegfs[@]}" "${benchmark[@]}" | grep . | sort -u || true
  exit 0
fi
if ((${#beegfs[@]} + ${#benchmark[@]} == 0)); then
  echo "{}"
  exit 0
fi
echo "images:"
if ((${#beegfs[@]})); then
  echo "  daemons:"
  for role in $roles; do value "beegfs-$role-$version" "${beegfs[$role]}"; done
fi
if ((${#benchmark[@]})); then
  echo "  benchmarks:"
  for tool in "${!benchmark[@]}"; do value "$tool" "${benchmark[$tool]}"; done
fi
