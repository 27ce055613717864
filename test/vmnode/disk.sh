#!/usr/bin/env bash
# Makes what the virtual machine starts from, and prints the folder: the kernel, a first file system that is a few modules, and root.img, a disk
# with the node image of kind, what a machine needs beside it, the operator's images in its containerd, and Lustre as it lies in LUSTRE=DIR.
# usage: LUSTRE=DIR disk.sh   (CLUSTER and more as for run.sh)
set -euo pipefail
# shellcheck source=test/vmnode/lib.sh
. "$(dirname "$0")/lib.sh"
need_go
use_engine
need mke2fs=e2fsprogs cpio=cpio strip=binutils depmod=kmod busybox=busybox-static xz=xz-utils

# containerd takes images into a file system that is this machine's, where it unpacks them as fast as that can.
# shellcheck disable=SC2016  # the shell of the container expands it
images_into() { # images_into ROOT ARCHIVE
  engine run -i --rm --privileged --network none -v "$1/var/lib/containerd:/var/lib/containerd" -v "$2:/images.tar:ro" --entrypoint bash "$base" -ec '
    containerd >/dev/null 2>&1 & pid=$!
    until ctr version >/dev/null 2>&1; do kill -0 $pid; sleep 0.2; done
    ctr() { command ctr -n k8s.io "$@"; }
    ctr images import --digests=false /images.tar >/dev/null
    for image in $(ctr images ls -q | grep -E "/(pause|kube-proxy):"); do
      ctr images mount "$image" /mnt >/dev/null
      ctr images unmount --rm /mnt >/dev/null
    done
    # The control plane is elsewhere.
    ctr images rm --sync $(ctr images ls -q | grep -E "/(kube-apiserver|kube-controller-manager|kube-scheduler|etcd|coredns[^/]*):") >/dev/null
    kill $pid; wait $pid || true' < /dev/null
}

# lustre_into puts modules and programs where the kernel and the operator look for them.
lustre_into() { # lustre_into ROOT
  local directory
  for directory in "$lustre"/{lib,usr/lib}/modules; do
    [[ ! -d $directory ]] || as_root cp -a "$directory/." "$1/usr/lib/modules/"
  done
  as_root find "$1/usr/lib/modules" -name build -type l -delete
  as_root find "$1/usr/lib/modules" -name '*.ko' -path '*/updates/*' -exec strip --strip-debug {} +
  for directory in bin sbin lib lib64 etc usr; do
    [[ -d $lustre/$directory ]] || continue
    tar -c -C "$lustre" --exclude='*/modules' --exclude='*/include' --exclude='*/share' --exclude='*/src' --exclude='*.a' --exclude='*/lustre/tests' "$directory" |
      as_root tar -x -C "$1" --keep-directory-symlink --no-same-owner
  done
  # mount.lustre believes it, and what was mounted in another start is not mounted.
  as_root ln -sfn ../proc/self/mounts "$1/etc/mtab"
  as_root depmod -b "$1" "$release"
}

# module_of prints a module as the kernel takes it.
module_of() {
  case $1 in
    *.xz) xz -dc "$1" ;;
    *) cat "$1" ;;
  esac
}

# first_files makes the first file system: busybox, and the drivers of the machine's disk and network.
first_files() { # first_files ROOT
  local root module number=10
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,dev,proc,sys,root,modules}
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  cp "$here/initrd-init" "$root/init"
  chmod 755 "$root/init"
  for module in $(for name in virtio_blk virtio_net; do modprobe -d "$1" -S "$release" --show-depends "$name"; done | awk '/^insmod/ && !seen[$2]++ {print $2}'); do
    module_of "$module" > "$root/modules/$number-$(basename "${module%.xz}")"
    number=$((number + 1))
  done
  (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0)
  rm -rf "$root"
}

lustre=${LUSTRE:?LUSTRE=DIR names a Lustre that somebody has built: docs/testing.md says what DIR holds}
lustre=$(realpath -e "$lustre")
kernels=("$lustre"/boot/vmlinuz-*)
[[ -f ${kernels[0]} && ${#kernels[@]} == 1 ]] || die "LUSTRE=$lustre must have one kernel, as boot/vmlinuz-RELEASE: docs/testing.md says what DIR holds"
release=${kernels[0]##*/vmlinuz-}

base=$("$root_dir/test/cluster/node-image.sh")
say "making the machine's root from $base"
guest=localhost/parallelfs/kind-machine:dev
engine build -q --network=host --build-arg BASE="$base" -t "$guest" -f "$here/Dockerfile" "$here" >/dev/null
CGO_ENABLED=0 go build -C "$root_dir" -trimpath -ldflags '-s -w' -o dist/ ./test/vm/guest ./test/vm/ask
key=$({ engine image inspect -f '{{.Id}}' "$guest" "${images[@]}"; cat "$0" "$here/initrd-init" "$root_dir/dist/guest"; find "$lustre" -printf '%P %s %T@\n' | LC_ALL=C sort; } | hash_of)
made=$cache/vm/node-$key
if [[ ! -d $made ]]; then
  as_root rm -rf "$cache"/vm/node-*
  work=$(mktemp -d "$cache/vm/making.XXXXXX")
  trap 'as_root rm -rf "$work"' EXIT
  mkdir -p "$work/root" "$work/made"
  container=$(engine create --network none "$guest")
  engine export "$container" | as_root tar -x -C "$work/root"
  engine rm "$container" >/dev/null
  as_root cp "$root_dir/dist/guest" "$work/root/usr/local/sbin/guest"
  save_images "$work/images.tar" "${images[@]}"
  say "putting images into its containerd"
  images_into "$work/root" "$work/images.tar"
  lustre_into "$work/root"
  cp "${kernels[0]}" "$work/made/vmlinuz"
  first_files "$work/root" > "$work/made/initrd"
  say "making a disk of $(as_root du -sh "$work/root" | cut -f1)"
  truncate -s 8G "$work/made/root.img"
  as_root mke2fs -q -t ext4 -O ^metadata_csum -E lazy_itable_init=1,nodiscard -d "$work/root" "$work/made/root.img"
  mv "$work/made" "$made"
fi
echo "$made"
