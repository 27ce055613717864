#!/usr/bin/env bash
# Builds the project's container images that are missing or outdated, prints their references, and pushes them to a registry when one is named.
# An image carries a hash of its Dockerfile, files and base as a label; one that has the right hash is left alone.
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../tools/lib.sh"
prefix=${IMAGE_PREFIX:-localhost/parallelfs}

usage() {
  cat <<'TEXT'
Builds the container images that are missing or outdated, and pushes them to a registry when one is named.

usage: images/build.sh [NAME...]                                            builds, and prints the references
       images/build.sh --registry REGISTRY [--tag TAG] [--values FILE] [NAME...]   builds, pushes, and prints the references with their digests

  NAME                 a folder of images/, such as manager or moosefs-4.57.5, or beegfs-doubles and a version of BeeGFS behind it, such as
                       beegfs-doubles-8.3.1. Without one: all but moosefs-4.59.2; with --registry, the images that the chart uses
  --registry REGISTRY  where to push, such as registry.example.com/team: the value imageRegistry of the chart. Images get the names that
                       the chart expects, such as registry.example.com/team/parallelfs/manager. Log in first, if the registry asks for it
                       (sudo podman login registry.example.com). A registry on localhost is asked over plain HTTP
  --tag TAG            tag of the operator's own images (manager, node, agent, benchmarks). Default: the chart's appVersion, which the chart
                       expects. An image with a version in its name has that version as its tag
  --values FILE        writes values of the chart: the registry and the digest of each image that was pushed. A node then runs these images and
                       no others, whatever is pushed under the same tags later: helm install --values FILE
  --dry-run            with --registry: prints the references, and builds and pushes nothing

  CONTAINER_ENGINE     podman (default; runs as root) or docker
  BASE_REGISTRY        registry with Debian's published images (default docker.io), or none: base images are made from Debian packages
  IMAGE_PREFIX         name of the local images, default localhost/parallelfs

examples:
  images/build.sh manager
  images/build.sh --registry registry.example.com/team --values dist/images.yaml
  helm install parallelfs-operator charts/parallelfs-operator --namespace parallelfs-system --values dist/images.yaml
TEXT
}

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

# folder prints the folder of an image: one for all versions of beegfs-doubles.
folder() { # folder NAME
  local dir=$root_dir/images/$1
  [[ $1 != beegfs-doubles ]] || die "beegfs-doubles needs a version of BeeGFS behind it, such as beegfs-doubles-8.3.1"
  [[ $1 != beegfs-doubles-* ]] || dir=$root_dir/images/beegfs-doubles
  [[ -f $dir/Dockerfile ]] || die "there is no image '$1': $(cd "$root_dir/images" && printf '%s ' */)"
  echo "$dir"
}

build() { # build NAME
  local name=$1 dir list files=() ref base="" base_id="" key context version=""
  dir=$(folder "$name")
  # The version is an argument of the build.
  [[ $name != beegfs-doubles-* ]] || version=${name#beegfs-doubles-}
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

# names_of_chart prints the images that the chart uses. The others are of tests, or are named by whoever needs them.
names_of_chart() { printf '%s\n' manager node agent benchmarks moosefs-3.0.117 moosefs-4.57.5 mpi-operator; }

# pushed_reference prints what an image is called in the registry: its own version is the tag where there is one.
pushed_reference() { # pushed_reference NAME
  local ref
  ref=$(reference "$1")
  ref=$registry/parallelfs/${ref##*/}
  echo "${ref/%:dev/:$tag}"
}

# push pushes an image and prints its digest in the registry.
push() { # push LOCAL REFERENCE
  local file options=()
  say "pushing $2"
  if [[ $engine_name == podman ]]; then
    # As docker does it: a registry of this machine has no certificate.
    case $registry in localhost | localhost[:/]* | 127.*) options=(--tls-verify=false) ;; esac
    file=$(mktemp)
    engine push -q --format v2s2 ${options[@]+"${options[@]}"} --digestfile "$file" "$1" "$2" >&2 || { rm -f "$file"; die "pushing $2 failed: the message is above$(login_hint)"; }
    cat "$file"
    rm -f "$file"
  else
    engine tag "$1" "$2"
    engine push -q "$2" >&2 || die "pushing $2 failed: the message is above$(login_hint)"
    engine image inspect -f '{{range .RepoDigests}}{{println .}}{{end}}' "$2" | sed -n "s|^${2%:*}@||p" | grep -m 1 .
  fi
}

login_hint() { echo ". If it is about rights: $([[ $engine_name == docker ]] || echo 'sudo ')$engine_name login ${registry%%/*}"; }

# keys prints where the chart's values name an image.
keys() { # keys NAME
  case $1 in
    manager | node | agent) echo "image.$1" ;;
    benchmarks) printf 'images.benchmarks.%s\n' iozone fio postmark custom ;;
    moosefs-*) echo "images.daemons.$1" ;;
    mpi-operator) echo mpiOperator.image ;;
  esac
}

# values prints the chart's values for what was pushed: lines of NAME REFERENCE DIGEST are read.
values() {
  local name ref digest key repository
  local -A sections=()
  while read -r name ref digest; do
    repository=${ref#"$registry/"}
    repository=${repository%:*}
    for key in $(keys "$name"); do
      case $key in
        image.*) sections[image]+="  ${key#*.}: {repository: $repository, tag: \"${ref##*:}\", digest: \"$digest\"}"$'\n' ;;
        images.*.*)
          key=${key#*.}
          sections[${key%%.*}]+="    ${key#*.}: {repository: $repository, tag: \"${ref##*:}\", digest: \"$digest\"}"$'\n' ;;
        *) sections[mpi]+="  image: {repository: $repository, tag: \"${ref##*:}\", digest: \"$digest\"}"$'\n' ;;
      esac
    done
  done
  echo "# The images that were pushed to $registry: values of the operator's chart, written by images/build.sh."
  echo "imageRegistry: \"$registry\""
  [[ -z ${sections[image]:-} ]] || printf 'image:\n%s' "${sections[image]}"
  [[ -z ${sections[daemons]:-}${sections[benchmarks]:-} ]] || echo "images:"
  [[ -z ${sections[daemons]:-} ]] || printf '  daemons:\n%s' "${sections[daemons]}"
  [[ -z ${sections[benchmarks]:-} ]] || printf '  benchmarks:\n%s' "${sections[benchmarks]}"
  [[ -z ${sections[mpi]:-} ]] || printf 'mpiOperator:\n%s' "${sections[mpi]}"
}

registry="" tag="" values_file="" dry_run="" names=()
while (($#)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --registry=* | --tag=* | --values=*) set -- "${1%%=*}" "${1#*=}" "${@:2}"; continue ;;
    --registry | --tag | --values)
      [[ -n ${2:-} && $2 != -* ]] || die "$1 needs a value behind it: images/build.sh --help has examples"
      case $1 in --registry) registry=$2 ;; --tag) tag=$2 ;; --values) values_file=$2 ;; esac
      shift ;;
    --dry-run) dry_run=yes ;;
    -*) die "there is no option '$1': images/build.sh --help lists them" ;;
    *) names+=("$1") ;;
  esac
  shift
done
if [[ -z $registry ]]; then
  [[ -z $tag$values_file$dry_run ]] || die "--tag, --values and --dry-run are about what is pushed, and --registry says where: images/build.sh --help has examples"
else
  registry=${registry%/}
  [[ $registry != *://* ]] || die "--registry takes no scheme: write ${registry#*://} in the place of $registry"
  [[ ${registry%%/*} == *[.:]* || ${registry%%/*} == localhost ]] ||
    die "'$registry' has no name of a host at its beginning, so nodes would pull from docker.io, where anybody may own the name: write HOST/$registry"
  [[ $registry =~ ^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$ ]] || die "'$registry' is no registry: write it as registry.example.com/team or registry.example.com:5000"
  tag=${tag:-$(sed -n 's/^appVersion: *//p' "$root_dir/charts/parallelfs-operator/Chart.yaml" | tr -d '"')}
  [[ $tag =~ ^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$ ]] || die "'$tag' is no tag: it has letters, digits and . _ - only"
  ((${#names[@]})) || mapfile -t names < <(names_of_chart)
  for name in "${names[@]}"; do folder "$name" >/dev/null; done
  if [[ -n $dry_run ]]; then
    for name in "${names[@]}"; do pushed_reference "$name"; done
    exit 0
  fi
fi

need_go
need curl=curl
use_engine
# In docker's format an image keeps its id when it is saved and loaded, by which test/cluster/load.sh skips work.
docker_format=()
[[ $engine_name != podman ]] || docker_format=(--format docker)
if ((${#names[@]} == 0)); then
  for dir in "$root_dir"/images/*/; do
    # What is made only when it is named: Debian unstable moves on, and no test that runs by itself may depend on it.
    [[ $(basename "$dir") == moosefs-4.59.2 ]] || names+=("$(basename "$dir")")
  done
  names=("${names[@]/#beegfs-doubles/beegfs-doubles-7.4.6}" beegfs-doubles-7.4.5 beegfs-doubles-8.3.1)
fi
compile "${names[@]}"
if [[ -z $registry ]]; then
  for name in "${names[@]}"; do build "$name"; done
  exit 0
fi
# Nothing is pushed before everything is built.
declare -A built=()
for name in "${names[@]}"; do built[$name]=$(build "$name"); done
pushed=""
for name in "${names[@]}"; do
  ref=$(pushed_reference "$name")
  digest=$(push "${built[$name]}" "$ref")
  pushed+="$name $ref $digest"$'\n'
  echo "$ref@$digest"
done
if [[ -n $values_file ]]; then
  mkdir -p "$(dirname "$values_file")"
  values <<<"${pushed%$'\n'}" > "$values_file"
  say "wrote $values_file: helm install parallelfs-operator charts/parallelfs-operator --namespace parallelfs-system --values $values_file"
fi
