#!/usr/bin/env bash
# Builds tools that are pinned by a `tool` line in one of the modules beside this script, and prints where they are.
# usage: tools/build.sh [--link DIR] NAME...      NAME is the last element of a tool's package path, or of its module
#
# The binaries are static and lie in the cache under the module's name and a hash of everything that decides what they
# are, so a version is compiled once per machine. What is missing of one module is built by one `go build`, and by one
# script at a time. --link also makes DIR/NAME point to each of them.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/lib.sh"
need_go

link=
if [[ ${1:-} == --link ]]; then link=$2; shift 2; fi
(($#)) || die "usage: $0 [--link DIR] NAME..."

# The name of a tool is the last element of its package path, except for a major version: etcd is go.etcd.io/etcd/server/v3.
tool_names() { # tool_names MODULE_DIR: lines of "NAME PACKAGE"
  awk '/^tool \(/ {on = 1; next} on && /^\)/ {on = 0} on {print $1} /^tool [^(]/ {print $2}' "$1/go.mod" |
    while read -r package; do
      case $package in
        go.etcd.io/etcd/server/*) echo "etcd $package" ;;
        *) echo "${package##*/} $package" ;;
      esac
    done
}

ldflags_of() { # ldflags_of MODULE_DIR
  local flags="-s -w" version
  if [[ ${1##*/} == kubernetes ]]; then
    # Kubernetes takes its version from the linker; kubeadm refuses to work with components that report none.
    version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3} $1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2}' "$1/go.mod")
    for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
      flags+=" -X $p.gitVersion=$version -X $p.gitMajor=1 -X $p.gitMinor=$(cut -d. -f2 <<<"$version")"
    done
  fi
  echo "$flags"
}

# find_tools fills two tables: in which module a tool is, and which package it is.
declare -A module_of=() package_of=()
find_tools() {
  local dir name package
  for dir in "$root_dir"/tools/*/; do
    dir=${dir%/}
    [[ -f $dir/go.mod ]] || continue
    while read -r name package; do
      module_of[$name]=$dir
      package_of[$name]=$package
    done < <(tool_names "$dir")
  done
}

# place prints the directory of a module's binaries in the cache.
place() { # place MODULE_DIR
  local key
  key=$({ cat "$1"/*; echo "$(ldflags_of "$1") $(tags_of "$1")"; go env GOVERSION GOARCH; } | hash_of)
  echo "$cache/tools/${1##*/}-$key"
}

tags_of() { # tags_of MODULE_DIR
  if [[ ${1##*/} == containerd ]]; then echo no_aufs,no_zfs,no_btrfs,no_devmapper; fi
}

# build_missing builds those of a module's tools that are not in the cache.
build_missing() { # build_missing MODULE_DIR PLACE NAME...
  local dir=$1 out=$2 names=() packages=() name
  for name in "${@:3}"; do
    [[ -x $out/$name ]] || { names+=("$name"); packages+=("${package_of[$name]}"); }
  done
  ((${#names[@]})) || return 0
  say "building ${names[*]} (once for this version)"
  rm -rf "$out/new"
  mkdir -p "$out/new"
  # Compilers that seldom collect garbage end sooner. Near GOMEMLIMIT, they collect it as usual (package runtime).
  (cd "$dir" && GOGC=400 GOMEMLIMIT=2GiB CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -tags "$(tags_of "$dir")" -ldflags "$(ldflags_of "$dir")" -o "$out/new/" "${packages[@]}")
  # Go names the binary of a major version after what stands before it.
  [[ ! -e $out/new/server ]] || mv "$out/new/server" "$out/new/etcd"
  mv "$out"/new/* "$out/"
  rmdir "$out/new"
}

find_tools
declare -A wanted=() places=()
for name; do
  dir=${module_of[$name]:-}
  [[ -n $dir ]] || die "no module in tools/ has a tool called '$name'"
  wanted[$dir]+=" $name"
  [[ -n ${places[$dir]:-} ]] || places[$dir]=$(place "$dir")
done
for dir in "${!wanted[@]}"; do
  mkdir -p "${places[$dir]}"
  read -ra names <<<"${wanted[$dir]}"
  (
    flock 8
    build_missing "$dir" "${places[$dir]}" "${names[@]}"
  ) 8> "${places[$dir]}/lock"
done
for name; do
  out=${places[${module_of[$name]}]}/$name
  [[ -z $link ]] || { mkdir -p "$link" && ln -sfn "$out" "$link/$name"; }
  echo "$out"
done
