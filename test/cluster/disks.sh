#!/usr/bin/env bash
# Gives the nodes of a test cluster disks of their own: loop devices over sparse files, with the stable names, serial
# numbers and udev records that real disks have (no udevd runs on a kind node). A node has device files only for its own.
# usage: disks.sh attach NODE SERIAL SIZE SSD|HDD   makes the file if there is none (SIZE as for truncate(1), such as 1G),
#                                                   attaches it and prints the kernel's name for it
#        disks.sh detach NODE SERIAL                takes the disk out and waits until the kernel let it go; the file stays
#        disks.sh file NODE SERIAL                  prints the path of the file, to look at what is on the disk
#        disks.sh remove                            detaches all disks of the cluster and removes their files
# (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
use_engine
files=$work_dir/disks-$cluster
need losetup=mount truncate=coreutils

file_of() { echo "$files/$1/$2.img"; } # file_of NODE SERIAL

# devices_of FILE prints the loop devices that a file is attached to; one that is still mounted somewhere stays there.
devices_of() { as_root losetup -n -O NAME -j "$1" | tr -d ' '; }

# wwn_of SERIAL prints a World Wide Name that is always the same for a serial.
wwn_of() { printf '0x5%s' "$(printf '%s' "$1" | sha256sum | cut -c1-15)"; }

attach() { # attach NODE SERIAL SIZE SSD|HDD
  local node=$1 serial=$2 size=$3 media=$4 file device name minor wwn rotational=0
  file=$(file_of "$node" "$serial")
  mkdir -p "${file%/*}"
  [[ -e $file ]] || truncate -s "$size" "$file"
  device=$(devices_of "$file" | sed -n 1p)
  [[ -n $device ]] || device=$(as_root losetup -f --show "$file")
  name=${device#/dev/}
  minor=${name#loop}
  wwn=$(wwn_of "$serial")
  [[ $media == SSD ]] || rotational=1
  as_root tee "/sys/block/$name/queue/rotational" >/dev/null <<<"$rotational"
  engine exec -i "$node" sh -eu -s -- "$name" "$minor" "$serial" "$wwn" <<'NODE'
name=$1 minor=$2 serial=$3 wwn=$4
mount -o remount,rw /sys   # kind makes it read-only; on a real node the queues of disks can be set
mkdir -p /dev/disk/by-id /run/udev/data
rm -f "/dev/$name"
mknod -m 0660 "/dev/$name" b 7 "$minor"
for link in "wwn-$wwn" "ata-E2E_DISK_$serial"; do ln -sfn "../../$name" "/dev/disk/by-id/$link"; done
# The record of udevd (udev_database): S are links below /dev, I says when it was initialized, E are properties.
cat > "/run/udev/data/b7:$minor" <<RECORD
S:disk/by-id/wwn-$wwn
S:disk/by-id/ata-E2E_DISK_$serial
I:1
E:ID_SERIAL=E2E_DISK_$serial
E:ID_SERIAL_SHORT=$serial
E:ID_MODEL=E2E_DISK
E:ID_WWN=$wwn
E:ID_WWN_WITH_EXTENSION=$wwn
E:ID_BUS=ata
G:systemd
V:1
RECORD
NODE
  # udev's message comes when the links are there; the kernel's own came before, and an agent may have looked in vain.
  as_root tee "/sys/block/$name/uevent" >/dev/null <<<change
  echo "$name"
}

detach() { # detach NODE SERIAL
  local file device name wwn i
  file=$(file_of "$1" "$2")
  wwn=$(wwn_of "$2")
  for device in $(devices_of "$file"); do
    name=${device#/dev/}
    engine exec "$1" rm -f "/dev/$name" "/run/udev/data/b7:${name#loop}" "/dev/disk/by-id/wwn-$wwn" "/dev/disk/by-id/ata-E2E_DISK_$2" </dev/null
    as_root losetup -d "$device"
  done
  # A device that somebody has open, such as an agent that looks at it, goes when that is closed: until then losetup -d has only
  # promised it, and whoever attached the file again would be given the device that is about to go.
  for ((i = 0; i < 300; i++)); do
    [[ -n $(devices_of "$file") ]] || return 0
    sleep 0.2
  done
  die "$1: $2 is detached from $(devices_of "$file" | paste -sd' '), but still in use after a minute: look for a mount of it in each container"
}

remove() {
  local file device
  [[ -d $files ]] || return 0
  for file in "$files"/*/*.img; do
    [[ -e $file ]] || continue
    for device in $(devices_of "$file"); do as_root losetup -d "$device"; done
  done
  rm -rf "$files"
}

case ${1:-} in
  attach) (($# == 5)) || die "usage: $0 attach NODE SERIAL SIZE SSD|HDD"; attach "${@:2}" ;;
  detach) (($# == 3)) || die "usage: $0 detach NODE SERIAL"; detach "${@:2}" ;;
  file) (($# == 3)) || die "usage: $0 file NODE SERIAL"; file_of "${@:2}" ;;
  remove) remove ;;
  *) die "usage: $0 attach|detach|file|remove ...: see the top of this file" ;;
esac
