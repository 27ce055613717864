#!/usr/bin/env bash
# Prints values of the operator's chart that put real daemons of BeeGFS 7.4.6 in the place of the doubles of values.yaml, as the variable
# BEEGFS_IMAGES says: mgmtd=IMAGE,meta=IMAGE,storage=IMAGE,tools=IMAGE. Without it, they are values that change nothing.
# usage: beegfs-values.sh [--images]   --images prints the images alone, one per line
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
version=7.4.6
only_images=${1:-}
roles=" mgmtd meta storage tools "
[[ -z $only_images || $only_images == --images ]] || die "usage: $0 [--images]"

if [[ -z ${BEEGFS_IMAGES:-} ]]; then
  [[ -n $only_images ]] || echo "{}"
  exit 0
fi
declare -A image_of
IFS=, read -ra pairs <<<"$BEEGFS_IMAGES"
for pair in "${pairs[@]}"; do
  role=${pair%%=*} image=${pair#*=}
  [[ $pair == *=?* && $roles == *" $role "* ]] || die "BEEGFS_IMAGES: '$pair' is not <role>=<image>, with the roles$roles"
  [[ -z ${image_of[$role]:-} ]] || die "BEEGFS_IMAGES: $role is named twice"
  image_of[$role]=$image
done
for role in $roles; do
  # Half of a BeeGFS would be real, and the other half a double that can't talk to it.
  [[ -n ${image_of[$role]:-} ]] || die "BEEGFS_IMAGES: no image for $role; name one for each of$roles"
done

if [[ -n $only_images ]]; then
  printf '%s\n' "${image_of[@]}" | sort -u
  exit 0
fi
echo "images:"
echo "  daemons:"
for role in $roles; do
  image=${image_of[$role]} tag="" digest=""
  case ${image##*/} in
    *@*) digest=${image##*@} image=${image%@*} ;;
    *:*) tag=${image##*:} image=${image%:*} ;;
    *) tag=latest ;;
  esac
  echo "    beegfs-$role-$version: {repository: \"$image\", tag: \"$tag\", digest: \"$digest\"}"
done
