#!/usr/bin/env bash
# Runs the tests of this folder: the node binary on a Debian kernel under QEMU, with two NUMA nodes and NVMe disks.
# usage: test/vm/run.sh [ARGUMENTS OF go test], such as -run TestPinning
#
# The kernel and the programs beside it are Debian packages, which are downloaded once and unpacked in the cache; nothing but
# QEMU is installed. Settings: PARALLELFS_CACHE, and VM_ACCEL=kvm|tcg, which is found out otherwise.
#
# With LUSTRE=DIR, the tests of Lustre run instead, on the Lustre that somebody has built in DIR, with the kernel that is there as well
# (docs/testing.md says what DIR holds).
set -euo pipefail
# shellcheck source=tools/lib.sh
. "$(dirname "$0")/../../tools/lib.sh"
need_go
need qemu-system-x86_64=qemu-system-x86

here=$root_dir/test/vm
machine=x86_64-linux-gnu
# The programs that the agent's image has too, and what a machine needs to start: udev makes /dev/disk/by-id as on a real node.
packages=(linux-image-cloud-amd64 busybox-static dash cpio kmod udev dmsetup util-linux mount fdisk e2fsprogs xfsprogs btrfs-progs smartmontools
  moosefs-master moosefs-chunkserver moosefs-client)
programs=(busybox dash lsblk blkid wipefs mount umount findmnt fsfreeze blockdev lscpu losetup taskset sfdisk swapon mkswap chattr lsattr mke2fs mkfs.ext4 tune2fs
  mkfs.xfs xfs_repair xfs_db mkfs.btrfs btrfs modprobe kmod udevadm dmsetup dumpe2fs e2fsck fsck.ext4 smartctl
  mfsmaster mfschunkserver mfsmount)
modules=(nvme virtio_pci virtio_console virtio_blk ext4 xfs btrfs loop dm_mod fuse)
lustre=${LUSTRE:+$(realpath -e "$LUSTRE")}
if [[ -n $lustre ]]; then
  # The kernel is that of DIR. Lustre's tools are linked with more, and call shells and what a shell calls.
  packages=("${packages[@]:1}" bash coreutils findutils grep sed mawk procps iproute2 libyaml-0-2 libnl-genl-3-200 libreadline8 libkeyutils1 libext2fs2)
  modules+=(dummy virtio_net)
fi

# packages_in_cache downloads and unpacks the packages with all that they depend on, as if nothing were installed.
packages_in_cache() {
  local key archives
  key=$(printf '%s\n' "${packages[@]}" | hash_of)
  debian=$cache/vm/debian-$key
  [[ ! -d $debian ]] || return 0
  command -v apt-get dpkg-deb >/dev/null || die "the kernel of the virtual machine is a Debian package, and there is no apt-get: run this on Debian"
  say "downloading ${#packages[@]} Debian packages with what they depend on (80 MB, once)"
  archives=$cache/vm/archives-$key
  mkdir -p "$archives/partial"
  : > "$archives/status"
  download "$archives" || { as_root apt-get update -qq && download "$archives"; } ||
    die "apt-get can't download ${packages[*]}: see above"
  rm -rf "$debian.new"
  mkdir -p "$debian.new"/usr/{bin,sbin,lib,lib64}
  for directory in bin sbin lib lib64; do ln -s "usr/$directory" "$debian.new/$directory"; done
  for package in "$archives"/*.deb; do
    # Programs lie in /bin and in /usr/bin; dpkg-deb -x would make two directories of the link.
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$debian.new" --keep-directory-symlink --no-same-owner
  done
  mv "$debian.new" "$debian"
  rm -rf "$archives"
}

# download needs no root: the state of packages that it sees is an empty one, and the directories are its own.
download() { # download ARCHIVES
  apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User= -o Dir::Cache::archives="$1" -o Dir::State::status="$1/status" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
    --yes --no-install-recommends --download-only install "${packages[@]}" >&2
}

# inside runs a program of the packages with their own libraries: those of this machine may be others.
inside() { # inside [--list | --argv0 NAME] PROGRAM ARGUMENTS...
  local path=$debian/lib/$machine:$debian/usr/lib/$machine
  [[ -z $lustre ]] || path+=:$lustre/usr/lib64:$lustre/usr/lib/$machine:$lustre/usr/lib
  "$debian/lib/$machine/ld-linux-x86-64.so.2" --library-path "$path" "$@"
}

# kernel_of_lustre makes a tree of links to the kernel of DIR and all of its modules, because depmod writes into such a tree.
kernel_of_lustre() {
  local directory found
  found=("$lustre"/boot/vmlinuz-*)
  [[ -f ${found[0]} && ${#found[@]} == 1 ]] || die "LUSTRE=$lustre must have one kernel, as boot/vmlinuz-RELEASE: unpack the package of the kernel there that Lustre was built for"
  kernels=$cache/vm/lustre
  rm -rf "$kernels"
  mkdir -p "$kernels"/{boot,lib/modules}
  ln -s "${found[0]}" "$kernels/boot/"
  for directory in "$lustre/lib/modules" "$lustre/usr/lib/modules"; do
    [[ ! -d $directory ]] || cp -as "$directory/." "$kernels/lib/modules/"
  done
  [[ -n $(find "$kernels/lib/modules/${found[0]##*/vmlinuz-}" -name 'ldiskfs.ko*' -print -quit) ]] ||
    die "LUSTRE=$lustre has no module ldiskfs for its kernel ${found[0]##*/vmlinuz-}: build Lustre for that kernel, with servers and ldiskfs, and make install DESTDIR=$lustre"
}

# modules_of_lustre prints the names of Lustre's own modules, which lie beside those of the kernel.
modules_of_lustre() { # modules_of_lustre VERSION
  find "$kernels/lib/modules/$1" -mindepth 2 -path "$kernels/lib/modules/$1/kernel" -prune -o -path "$kernels/lib/modules/$1/build" -prune -o -name '*.ko*' -print |
    sed 's|.*/||; s|\.ko.*||'
}

# lustre_image adds what is Lustre's: its modules without what a debugger reads, and its programs as they lie in DIR.
lustre_image() { # lustre_image ROOT VERSION
  local root=$1 directory file
  for directory in crypto lib arch/x86/crypto; do # what checksums are made with is loaded by name
    find -L "$kernels/lib/modules/$2/kernel/$directory" -name '*.ko*' -exec cp -L {} "$root/lib/modules/$2/" \;
  done
  find "$root/lib/modules/$2" -name '*.ko' -exec strip --strip-debug {} +
  for directory in bin sbin lib lib64 etc usr; do
    [[ -d $lustre/$directory ]] || continue
    tar -c -C "$lustre" --exclude='*/modules' --exclude='*/include' --exclude='*/share' --exclude='*/src' --exclude='*.a' --exclude='*/lustre/tests' "$directory" |
      tar -x -C "$root" --keep-directory-symlink --no-same-owner
  done
  ln -sf mawk "$root/bin/awk"
  # mount.lustre believes it, and what was mounted in another start is not mounted.
  ln -s ../proc/self/mounts "$root/etc/mtab"
}

# system_image makes the part of the initial file system that comes from packages, once.
system_image() {
  local key root version directory library file
  kernels=$debian
  [[ -z $lustre ]] || kernel_of_lustre
  kernel=$(echo "$kernels"/boot/vmlinuz-*)
  version=${kernel##*/vmlinuz-}
  key=$({ echo "$debian"; cat "$0" "$here/init"; [[ -z $lustre ]] || find "$lustre" -printf '%P %s %T@\n' | LC_ALL=C sort; } | hash_of)
  system=$cache/vm/system-$key.cpio
  [[ ! -f $system ]] || return 0
  say "making the virtual machine's file system"
  root=$cache/vm/root
  rm -rf "$root"
  mkdir -p "$root"/{dev,proc,sys,run,tmp,mnt,etc,root,var/lib,node} "$root"/usr/{bin,lib,lib64}
  ln -s bin "$root/usr/sbin"
  for directory in bin sbin lib lib64; do ln -s "usr/$directory" "$root/$directory"; done
  cp "$here/init" "$root/init"
  ln -s dash "$root/bin/sh"
  [[ -z $lustre ]] || mapfile -t programs < <(cd "$debian" && find bin/ sbin/ -mindepth 1 ! -name sh -printf '%f\n')
  for file in "${programs[@]}"; do
    library=$(program "$file")
    cp -P "$library" "$root/bin/$file"
  done
  ln -s udevadm "$root/bin/systemd-udevd"
  cp -L "$debian/lib/$machine/ld-linux-x86-64.so.2" "$root/lib64/"
  mkdir -p "$root/lib/udev" "$root/etc/udev"
  cp -r "$debian/lib/udev/." "$root/lib/udev/"
  cp "$debian/etc/mke2fs.conf" "$root/etc/"
  printf 'root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/sh\nmfs:x:9421:9421::/:/bin/sh\n' > "$root/etc/passwd"
  # The groups are those that udev's rules name.
  awk -F'"' '/GROUP="/ {for (i = 2; i <= NF; i += 2) if ($(i-1) ~ /GROUP=$/) print $i}' "$root"/lib/udev/rules.d/*.rules | sort -u |
    awk 'BEGIN {print "root:x:0:"; print "daemon:x:1:"; print "mfs:x:9421:"} $1 != "root" && $1 !~ /[^a-z]/ {print $1 ":x:" 100 + NR ":"}' > "$root/etc/group"
  echo pfs-vm > "$root/etc/hostname"
  [[ -z $lustre && -e $kernels/lib/modules/$version/modules.dep ]] || inside --argv0 depmod "$debian/bin/kmod" -b "$kernels" "$version"
  [[ -z $lustre ]] || mapfile -t -O "${#modules[@]}" modules < <(modules_of_lustre "$version")
  for file in "${modules[@]}"; do
    inside --argv0 modprobe "$debian/bin/kmod" -d "$kernels" -S "$version" --show-depends "$file"
  done | awk '/^insmod/ {print $2}' | sort -u | while read -r file; do
    mkdir -p "$root/lib/modules/$version"
    cp -L "$file" "$root/lib/modules/$version/"
  done
  cp -L "$kernels/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
  [[ -z $lustre ]] || lustre_image "$root" "$version"
  # What the programs are linked with; the loader says it itself.
  find "$root/bin/" "$root/lib/" "$root/lib64/" -type f ! -name '*.ko*' -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print | while read -r file; do
    [[ ${file##*/} != busybox && ${file##*/} != ld-linux-* ]] || continue
    inside --list "$file"
  done | awk '/=> \// {print $3} /not found/ {print; exit 1}' | sort -u | while read -r library; do cp -L "$library" "$root/lib/"; done
  inside --argv0 depmod "$debian/bin/kmod" -b "$root" "$version"
  archive "$root" > "$system.new"
  mv "$system.new" "$system"
  rm -rf "$root"
}

program() { # program NAME: the path of a program of the packages
  local directory
  for directory in bin sbin; do
    [[ ! -e $debian/$directory/$1 && ! -L $debian/$directory/$1 ]] || { echo "$debian/$directory/$1"; return; }
  done
  die "none of the packages has the program '$1'"
}

archive() { # archive ROOT: a cpio archive, all of which is root's
  (cd "$1" && find . | LC_ALL=C sort | inside "$(program cpio)" --quiet -o -H newc -R 0:0)
}

# accelerator prints kvm when a virtual machine starts with it, else tcg, which emulates the processor. A /dev/kvm may end QEMU at once, or,
# inside of another virtual machine, emulate every instruction itself: then it is hundreds of times slower than tcg, and stops at some
# instruction that it does not know. So a machine is started, which shuts itself down; with tcg it takes a few seconds.
accelerator() {
  local said
  [[ -z ${VM_ACCEL:-} ]] || { echo "$VM_ACCEL"; return; }
  [[ -w /dev/kvm ]] || { echo tcg; return; }
  said=$(timeout --kill-after=5 30 qemu-system-x86_64 -accel kvm -machine q35 -m 512 -nodefaults -no-user-config -display none -no-reboot -serial stdio \
    -kernel "$kernel" -initrd "$system" -append 'console=ttyS0 quiet panic=-1 rdinit=/bin/busybox -- poweroff -f' </dev/null 2>&1) || true
  if [[ $said == *'reboot: Power down'* ]]; then echo kvm; else echo tcg; fi
}

[[ -z $lustre ]] || need strip=binutils
mkdir -p "$cache/vm"
exec 8> "$cache/vm/lock"
flock 8
packages_in_cache
system_image
exec 8>&-

# What is tested comes last: the kernel unpacks one archive after the other.
work=$(mktemp -d "${TMPDIR:-/tmp}/parallelfs-vm.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/node"
say "building the node binary and the programs of the tests"
cd "$root_dir"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$work/root/node/" ./cmd/node ./cmd/agent ./test/vm/guest ./test/vm/daemon ./test/vm/pass
tags=vm
if [[ -n $lustre ]]; then
  # The tests that otherwise run with doubles; in the machine, the node's own programs are the real ones.
  tags=vm,lustre
  set -- -run '^TestLustre' "$@"
  for package in internal/node/serve internal/node/format/ldiskfs test/doubles/lustre; do
    mkdir -p "$work/root/node/$package"
    CGO_ENABLED=0 go test -c -vet=off -trimpath -ldflags '-s -w' -tags disks -o "$work/root/node/$package/tests" "./$package"
    [[ ! -d $package/testdata ]] || cp -r "$package/testdata" "$work/root/node/$package/"
  done
fi
archive "$work/root" > "$work/node.cpio"
cat "$system" "$work/node.cpio" > "$work/initrd"
rm -rf "$work/root" "$work/node.cpio"

VM_ACCEL=$(accelerator)
export TMPDIR=$work VM_ACCEL VM_KERNEL=$kernel VM_INITRD=$work/initrd
say "testing on Linux ${kernel##*/vmlinuz-} under QEMU with $VM_ACCEL"
# GOTEST is how the Makefile runs tests.
${GOTEST:-go test -v} -tags "$tags" -count=1 -timeout 3h ./test/vm/ "$@"
