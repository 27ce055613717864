#!/usr/bin/env bash
# Builds tools that are pinned by a `tool` line in one of the modules beside this script, and prints where they are.
# usage: tools/build.sh [--link DIR] NAME...      NAME is the last element of a tool's package path, or of its module
#
# The binaries are static and lie in the cache under the module's name and a hash of everything that decides what they
# are, so a version is compiled once per machine. --link also makes DIR/NAME point to each of them.
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

build() { # build NAME: prints the path of the binary
  local name=$1 dir package tags="" flags key out
  for dir in "$root_dir"/tools/*/; do
    dir=${dir%/}
    [[ -f $dir/go.mod ]] || continue
    # awk reads on to the end: a reader that stops early ends this script with SIGPIPE, now and then.
    package=$(tool_names "$dir" | awk -v n="$name" '$1 == n {print $2}')
    [[ -z $package ]] || break
  done
  [[ -n ${package:-} ]] || die "no module in tools/ has a tool called '$name'"
  [[ ${dir##*/} != containerd ]] || tags=no_aufs,no_zfs,no_btrfs,no_devmapper
  flags=$(ldflags_of "$dir")
  key=$({ cat "$dir/go.mod" "$dir/go.sum"; echo "$flags $tags"; go env GOVERSION GOARCH; } | hash_of)
  out=$cache/tools/${dir##*/}-$key/$name
  if [[ ! -x $out ]]; then
    say "building $name from $package (once for this version)"
    mkdir -p "${out%/*}"
    (cd "$dir" && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -tags "$tags" -ldflags "$flags" -o "$out.new$$" "$package")
    mv "$out.new$$" "$out"
  fi
  [[ -z $link ]] || { mkdir -p "$link" && ln -sfn "$out" "$link/$name"; }
  echo "$out"
}

for name; do build "$name"; done
