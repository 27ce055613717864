#!/usr/bin/env bash
# Builds the project's container images that are missing or outdated, all of them but moosefs-4.59.2 or those named, and prints their
# references. usage: images/build.sh [NAME...]   NAME is a folder beside this script, such as moosefs-4.57.5 or manager, or
# beegfs-doubles and a version of BeeGFS behind it, such as beegfs-doubles-8.3.1
#   CONTAINER_ENGINE  podman (default) or docker
#   BASE_REGISTRY     registry with Debian's published images (default docker.io), or none: see images/base.sh
#   IMAGE_PREFIX      default localhost/parallelfs
# An image carries a hash of its Dockerfile, files and base as a label; one that has the right hash is left alone.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../tools/lib.sh"
prefix=${IMAGE_PREFIX:-localhost/parallelfs}

# reference prints the image of a folder: the version is the tag where there is one.
reference() {
  case $1 in
    moosefs-*) echo "$prefix/moosefs:${1#moosefs-}" ;;
    beegfs-doubles-*) echo "$prefix/beegfs-doubles:${1#beegfs-doubles-}" ;;
    mpi-operator) echo "$prefix/mpi-operator:$(cd "$root_dir/tools/mpi-operator" && go list -m -f '{{.Version}}' github.com/kubeflow/mpi-operator | tr -d v)" ;;
    *) echo "$prefix/$1:dev" ;;
  esac
}

# compile builds all of the project's programs that the named images hold, by one `go build`: it loads and compiles what they share once.
# Go itself knows which are up to date.
compile() { # compile NAME...
  local name packages=()
  for name; do
    case $name in
      agent | node | manager) packages+=("./cmd/$name") ;;
      beegfs-doubles-*) packages+=(./test/doubles/beegfs/cmd/beegfs-double) ;;
    esac
  done
  ((${#packages[@]})) || return 0
  say "compiling ${packages[*]##*/}"
  mkdir -p "$root_dir/dist"
  (cd "$root_dir" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o dist/ "${packages[@]}")
}

# files prints the files that an image is made of, one per line: the static binary that it holds, or sources that are compiled in the
# image's own build; nothing for an image of Debian packages.
files() {
  case $1 in
    agent | node | manager) echo "$root_dir/dist/$1" ;;
    beegfs-doubles-*) echo "$root_dir/dist/beegfs-double" ;;
    mpi-operator) "$root_dir/tools/build.sh" mpi-operator ;;
    mpi-doubles) printf '%s\n' "$root_dir"/test/doubles/{mdtest,ior}/*.c "$root_dir"/test/doubles/mpi/*.h ;;
  esac
}

build() { # build NAME
  local name=$1 dir list files=() ref base="" base_id="" key context version=""
  [[ $name != beegfs-doubles ]] || die "beegfs-doubles needs a version of BeeGFS behind it, such as beegfs-doubles-8.3.1"
  dir=$root_dir/images/$name
  if [[ $name == beegfs-doubles-* ]]; then
    # One folder for all versions: the version is an argument of the build.
    dir=$root_dir/images/beegfs-doubles version=${name#beegfs-doubles-}
  fi
  [[ -f $dir/Dockerfile ]] || die "there is no image '$name': $(cd "$root_dir/images" && printf '%s ' */)"
  ref=$(reference "$name")
  list=$(files "$name")
  [[ -z $list ]] || mapfile -t files <<<"$list"
  base=$(sed -n 's/^ARG BASE=localhost\///p' "$dir/Dockerfile")
  case $base in
    "") ;;
    # Another image of the project, whose layers are shared.
    parallelfs/*) base=$(build "$(basename "${base%:*}")") ;;
    *) base=$("$root_dir/images/base.sh" "$base") ;;
  esac
  [[ -z $base ]] || base_id=$(engine image inspect -f '{{.Id}}' "$base")
  key=$({ cat "$dir/Dockerfile"; echo "$base_id$version"; ((${#files[@]} == 0)) || cat "${files[@]}"; } | hash_of)
  if [[ $(engine image inspect -f '{{index .Config.Labels "dev.parallelfs.content"}}' "$ref" 2>/dev/null) == "$key" ]]; then
    say "$ref is up to date"
  else
    say "building $ref"
    # Only what the image needs goes into the build context: the binary, sources, or nothing.
    context=$(mktemp -d)
    ((${#files[@]} == 0)) || ln "${files[@]}" "$context/" 2>/dev/null || cp "${files[@]}" "$context/"
    # On the machine's own network: the engine's default one may have the addresses of another, which another engine has left.
    engine build -q --network=host ${docker_format[@]+"${docker_format[@]}"} ${base:+--build-arg BASE="$base"} \
      ${version:+--build-arg VERSION="$version"} --label "dev.parallelfs.content=$key" \
      -t "$ref" -f "$dir/Dockerfile" "$context" >/dev/null || { rm -rf "$context"; die "building $ref failed: its output is above"; }
    rm -rf "$context"
  fi
  echo "$ref"
}

need_go
need curl=curl
use_engine
# In docker's format an image keeps its id when it is saved and loaded, by which test/cluster/load.sh skips work.
docker_format=()
[[ $engine_name != podman ]] || docker_format=(--format docker)
names=("$@")
if ((${#names[@]} == 0)); then
  for dir in "$root_dir"/images/*/; do
    # What is made only when it is named: Debian unstable moves on, and no test that runs by itself may depend on it.
    [[ $(basename "$dir") == moosefs-4.59.2 ]] || names+=("$(basename "$dir")")
  done
  names=("${names[@]/#beegfs-doubles/beegfs-doubles-7.4.6}" beegfs-doubles-7.4.5 beegfs-doubles-8.3.1)
fi
compile "${names[@]}"
for name in "${names[@]}"; do build "$name"; done
