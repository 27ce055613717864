#!/usr/bin/env bash
# Prints the reference of a Debian base image, after pulling it from a registry or, where none answers, making it from
# Debian's packages. usage: images/base.sh debian:bookworm-slim
#   BASE_REGISTRY  registry with Debian's published images (default docker.io), or none: always make it here
# An image that is there already is used as it is; remove it (podman rmi) to get a newer one.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../tools/lib.sh"
[[ ${1:-} =~ ^debian:([a-z]+)-slim$ ]] || die "usage: $0 debian:SUITE-slim"
suite=${BASH_REMATCH[1]}
need curl=curl
use_engine

# One script at a time makes it; who comes second finds it.
mkdir -p "$cache"
exec 6>"$cache/base-$suite.lock"
flock 6
published=${BASE_REGISTRY:-docker.io}/library/$1
for image in "localhost/$1" "$published"; do
  if engine image inspect "$image" >/dev/null 2>&1; then echo "$image"; exit 0; fi
done
if registry_answers; then
  say "pulling $published"
  if as_engine timeout 300 "$engine_name" pull -q "$published" >/dev/null; then echo "$published"; exit 0; fi
  say "it could not be pulled"
fi

say "making localhost/$1 from Debian's packages (about a minute)"
need mmdebstrap=mmdebstrap
[[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || need debian-archive-keyring=debian-archive-keyring
tar=$(mktemp -u "${TMPDIR:-/tmp}/base.XXXXXX.tar")
trap 'as_root rm -f "$tar"' EXIT
sources=("deb http://deb.debian.org/debian $suite main")
# unstable has neither.
[[ $suite == sid ]] || sources+=("deb http://deb.debian.org/debian $suite-updates main" "deb http://deb.debian.org/debian-security $suite-security main")
# The same documentation is left out as in the published slim images. dpkg waits for no disk: an image that a crash cut off is made again.
as_root mmdebstrap --quiet --variant=minbase --include=ca-certificates --dpkgopt=force-unsafe-io \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  "$suite" "$tar" "${sources[@]}" >&2
engine import -m "Debian $suite from packages" "$tar" "localhost/$1" >/dev/null
echo "localhost/$1"
