# shellcheck shell=bash
# Sourced by the scripts of tools/, images/ and test/cluster/: messages, the cache, the container engine and missing packages.

root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${PARALLELFS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parallelfs-operator}
work_dir=$root_dir/test/cluster/.work
export root_dir cache work_dir

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# as_root runs a command as root: directly, or through sudo, which may ask for a password.
as_root() {
  if ((EUID == 0)); then "$@"; return; fi
  command -v sudo >/dev/null || die "'$1' needs root, and there is no sudo: run this as root"
  sudo "$@"
}

# need installs Debian packages whose command is missing: need COMMAND=PACKAGE...
need() {
  local pair missing=()
  for pair; do PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}"); done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || die "missing: ${missing[*]}. Only Debian and Ubuntu are supported: install these packages yourself, then try again"
  say "installing ${missing[*]} with apt-get"
  # Tiers of tests install side by side, and apt-get waits for nobody who reads its lists.
  as_root flock /run/lock/parallelfs-apt apt-get update -qq
  as_root flock /run/lock/parallelfs-apt env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "${missing[@]}" >/dev/null
}

# unpacked prints where a program of a Debian package is. The package is unpacked in the cache and not installed, so that none of its services
# starts. It is for programs that need no other files: unpacked prometheus usr/bin/promtool.
unpacked() { # unpacked PACKAGE PATH
  local place=$cache/debian/$1 new
  if [[ ! -x $place/$2 ]]; then
    command -v apt-get >/dev/null || die "missing: $1. Only Debian and Ubuntu are supported"
    mkdir -p "$cache/debian"
    (
      flock 8
      [[ ! -x $place/$2 ]] || exit 0
      say "downloading the package $1"
      as_root flock /run/lock/parallelfs-apt apt-get update -qq
      new=$(mktemp -d "$cache/debian/new.XXXXXX")
      (cd "$new" && apt-get download -qq "$1" && dpkg-deb -x ./*.deb unpacked) >&2
      rm -rf "$place"
      mv "$new/unpacked" "$place"
      rm -r "$new"
    ) 8>"$place.lock"
  fi
  echo "$place/$2"
}

# packages_with prints the packages below directories that have tests with a build tag. `make test-unit` runs the tests of all others.
packages_with() { # packages_with TAG DIRECTORY...
  grep -rlE "^//go:build .*\\b$1\\b" --include='*_test.go' "${@:2}" | xargs -n1 dirname | sort -u | sed 's|^|./|'
}

# build_tags prints the build tags of all tiers, as .golangci.yml lists them.
build_tags() { sed -nE 's/^ *build-tags: \[(.*)\]$/\1/p' "$root_dir/.golangci.yml" | tr -d ' '; }

# need_go checks for Go: every tool is built from its module.
need_go() {
  command -v go >/dev/null || die "Go 1.26 or newer is needed: see https://go.dev/doc/install"
}

# use_engine chooses podman, or what CONTAINER_ENGINE says, and installs podman when it is missing. Podman always runs
# as root here: the nodes of the cluster mount filesystems and need real devices, which a rootless container can't have.
# Docker is used as the user when that is allowed. After it, `engine` runs the engine and `as_engine` any command beside it.
use_engine() {
  [[ -z ${engine_name:-} ]] || return 0
  engine_name=${CONTAINER_ENGINE:-podman}
  engine_sudo=()
  case $engine_name in
    docker)
      command -v docker >/dev/null || die "CONTAINER_ENGINE=docker, but there is no docker: install it, or unset CONTAINER_ENGINE to use podman"
      if ! docker info >/dev/null 2>&1; then
        as_root docker info >/dev/null 2>&1 || die "docker does not answer: start it, or unset CONTAINER_ENGINE to use podman"
        ((EUID == 0)) || engine_sudo=(sudo)
      fi ;;
    podman)
      # The nodes of a cluster find each other by their names, which aardvark-dns serves.
      need podman=podman runc=runc iptables=iptables /usr/lib/podman/netavark=netavark /usr/lib/podman/aardvark-dns=aardvark-dns
      ((EUID == 0)) || engine_sudo=(sudo)
      podman_settings ;;
    *) die "CONTAINER_ENGINE is '$engine_name': use podman or docker" ;;
  esac
}

# as_engine runs a command with the rights and the settings that the engine needs. Descriptors 7 and 9 are the locks of loop devices and of
# test/cluster: podman's monitor of a container would inherit them and keep the locks for as long as the container runs.
as_engine() {
  ${engine_sudo[@]+"${engine_sudo[@]}"} env ${CONTAINERS_CONF:+CONTAINERS_CONF="$CONTAINERS_CONF"} "$@" 7>&- 9>&-
}

engine() { as_engine "$engine_name" "$@"; }

# podman_settings writes podman settings for this project alone, because podman's defaults do not work everywhere, and leaves an
# existing configuration as it is. A podman that was once started without netavark stays with CNI, which serves no names. Without
# CAP_SYS_RESOURCE (in a container, mostly) no limit can be raised, so the containers get the machine's own; and crun before 1.9
# refuses a cgroup hierarchy that is not version 2.
podman_settings() {
  local bounding options=("[network]" 'network_backend = "netavark"')
  [[ ! -e /etc/containers/containers.conf && -z ${CONTAINERS_CONF:-} ]] || return 0
  # shellcheck disable=SC2016  # awk, not the shell, reads $2
  bounding=$(as_root awk '/^CapBnd/ {print $2}' /proc/self/status)
  if ! ((16#$bounding >> 24 & 1)); then
    options+=("[containers]" "default_ulimits = [\"nofile=$(ulimit -Hn):$(ulimit -Hn)\", \"nproc=$(hard_processes):$(hard_processes)\"]")
  fi
  [[ -e /sys/fs/cgroup/cgroup.controllers ]] || options+=("[engine]" 'runtime = "runc"')
  mkdir -p "$work_dir"
  printf '%s\n' "${options[@]}" > "$work_dir/containers.conf"
  export CONTAINERS_CONF=$work_dir/containers.conf
}

# hard_processes prints the limit on processes. While podman builds, it lowers its own to the kernel's number of processes
# (kernel.pid_max), and can't raise it again for what it starts.
hard_processes() {
  local limit most
  limit=$(ulimit -Hu)
  most=$(< /proc/sys/kernel/pid_max)
  if [[ $limit == unlimited ]] || ((limit > most)); then limit=$most; fi
  echo "$limit"
}

# registry_answers is true when docker.io or the registry in BASE_REGISTRY can be reached; it waits 5 s at most.
# BASE_REGISTRY=none skips the question: everything is made from Debian packages and Go modules.
registry_answers() {
  local registry=${BASE_REGISTRY:-docker.io} code
  [[ $registry != none ]] || return 1
  if [[ $registry == docker.io ]]; then registry="registry-1.docker.io"; fi
  code=$(curl -sS -m 5 -o /dev/null -w '%{http_code}' "https://${registry%%/*}/v2/" 2>/dev/null) || return 1
  [[ $code == 200 || $code == 401 ]]
}

# hold_loop_devices waits until no other script of this machine has loop devices of its own, and keeps the others waiting until it ends:
# tests see the loop devices of the whole machine.
hold_loop_devices() {
  exec 7>>"${TMPDIR:-/tmp}/parallelfs-loop-devices.lock"
  flock -n 7 || { say "waiting for other tests with loop devices"; flock 7; }
}

# hash_of prints 12 digits that stand for the content of what is read.
hash_of() { sha256sum | cut -c1-12; }
