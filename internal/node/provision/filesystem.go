package provision

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/plan"
)

// The mounts of targets are made with fsopen(2) and not with mount(8), for three reasons. First, the kernel names the option that it
// refuses without any device, so that options can be checked before the first mkfs. Second, the filesystem is mounted detached, where no
// process can see it, and is attached only after it was proven. Third, a detached mount disappears with the process, so a killed process
// leaves none behind.

// attributes holds the options that belong to the mount and not to the filesystem (mount_setattr(2)). The value false clears one, or is the
// kernel's default.
var attributes = map[string]int{
	"noatime": unix.MOUNT_ATTR_NOATIME, "strictatime": unix.MOUNT_ATTR_STRICTATIME, "nodiratime": unix.MOUNT_ATTR_NODIRATIME,
	"nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV, "noexec": unix.MOUNT_ATTR_NOEXEC,
	"nosymfollow": unix.MOUNT_ATTR_NOSYMFOLLOW,
	// Defaults of the kernel, and options that have a meaning in fstab(5) only.
	"atime": 0, "relatime": 0, "norelatime": 0, "nostrictatime": 0, "diratime": 0, "suid": 0, "dev": 0, "exec": 0, "symfollow": 0,
	"defaults": 0, "auto": 0, "noauto": 0, "nouser": 0,
}

// parameter is one option of the filesystem itself.
type parameter struct{ key, value string }

// flag reports whether an option has no value.
func (p parameter) flag() bool { return p.value == "" }

// split separates the options of the mount from those of the filesystem.
func split(options []string) (attr int, own []parameter) {
	for _, option := range options {
		if bits, known := attributes[option]; known {
			attr |= bits
			continue
		}
		key, value, _ := strings.Cut(option, "=")
		own = append(own, parameter{key, value})
	}
	return attr, own
}

// superblock is a filesystem that is being configured (fsopen(2)).
type superblock struct{ fd int }

func openSuperblock(fsType string) (*superblock, error) {
	fd, err := unix.Fsopen(fsType, unix.FSOPEN_CLOEXEC)
	switch {
	case errors.Is(err, unix.ENODEV):
		return nil, fmt.Errorf("the kernel of this node can't mount %s; load or install its module (modprobe %s)", fsType, fsType)
	case err != nil:
		return nil, fmt.Errorf("can't ask the kernel for %s: %w", fsType, os.NewSyscallError("fsopen", err))
	}
	return &superblock{fd}, nil
}

func (s *superblock) close() { _ = unix.Close(s.fd) } // nothing was written through it

func (s *superblock) set(p parameter) error {
	var err error
	if p.flag() {
		err = unix.FsconfigSetFlag(s.fd, p.key)
	} else {
		err = unix.FsconfigSetString(s.fd, p.key, p.value)
	}
	return s.explain(err)
}

// explain adds the kernel's own messages, which the kernel leaves in the descriptor as lines that begin with e, w or i.
func (s *superblock) explain(err error) error {
	if err == nil {
		return nil
	}
	var words []string
	line := make([]byte, 1024)
	for {
		n, readErr := unix.Read(s.fd, line)
		if readErr != nil || n <= 0 {
			break
		}
		if kind, text, ok := strings.Cut(strings.TrimSpace(string(line[:n])), " "); ok && kind == "e" {
			words = append(words, text)
		}
	}
	if len(words) == 0 {
		return err
	}
	return fmt.Errorf("%s (%w)", strings.Join(words, "; "), err)
}

// CheckOptions checks every mount option separately with the kernel, without a device and without writing anything. An option whose value
// has a meaning only on a given device is checked when it is mounted.
func CheckOptions(fsType string, options []string) plan.Kernel {
	var found plan.Kernel
	_, own := split(options)
	for _, p := range own {
		s, err := openSuperblock(fsType)
		if err != nil {
			found.FSTypeMissing = err.Error()
			return found
		}
		if err := s.set(p); err != nil {
			if found.RefusedOptions == nil {
				found.RefusedOptions = map[string]string{}
			}
			found.RefusedOptions[p.String()] = err.Error()
		}
		s.close()
	}
	if len(own) == 0 {
		s, err := openSuperblock(fsType)
		if err != nil {
			found.FSTypeMissing = err.Error()
			return found
		}
		s.close()
	}
	return found
}

func (p parameter) String() string {
	if p.flag() {
		return p.key
	}
	return p.key + "=" + p.value
}

// volume is a filesystem to mount, with the present paths of its devices.
type volume struct {
	format            format.Format
	device, logDevice string
	options           []string
}

// detached is a mounted filesystem that is not attached to the tree. No other process can reach it. It is unmounted when it is closed or
// the process ends.
type detached struct{ file *os.File }

// mount mounts the volume detached.
func (v volume) mount() (*detached, error) {
	attr, own := split(v.options)
	name := string(v.format.Name())
	if v.logDevice != "" {
		log := v.format.Log()
		if log == nil {
			return nil, fmt.Errorf("the %s on %s has no log on a device of its own, and the target names %s for one", name, v.device, v.logDevice)
		}
		own = append(own, parameter{log.MountOption, v.logDevice})
	}
	s, err := openSuperblock(name)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for _, p := range append([]parameter{{"source", v.device}}, own...) {
		if err := s.set(p); err != nil {
			return nil, fmt.Errorf("the kernel refuses the mount option %s of %s: %w", p, v.device, err)
		}
	}
	if err := s.explain(unix.FsconfigCreate(s.fd)); err != nil {
		return nil, fmt.Errorf("the kernel can't mount the %s on %s: %w; dmesg says more", name, v.device, err)
	}
	fd, err := unix.Fsmount(s.fd, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return nil, fmt.Errorf("the kernel can't mount the %s on %s: %w", name, v.device, s.explain(os.NewSyscallError("fsmount", err)))
	}
	return &detached{os.NewFile(uintptr(fd), v.device)}, nil
}

// readOnly mounts the volume detached and without changing a bit of the device: the kernel opens the device read-only and replays no
// journal.
func (v volume) readOnly() (*detached, error) {
	v.options = append(v.format.WithoutReplay(), "nosuid", "nodev", "noexec")
	return v.mount()
}

// path returns the top of the filesystem, for this process.
func (d *detached) path() string { return "/proc/self/fd/" + strconv.Itoa(int(d.file.Fd())) }

// Close unmounts it, unless it was attached. The error is that of close(2).
func (d *detached) Close() error { return d.file.Close() }

// attach attaches the mount at its mountpoint.
func (d *detached) attach(mountpoint string) error {
	err := unix.MoveMount(int(d.file.Fd()), "", unix.AT_FDCWD, mountpoint, unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("can't mount on %s: %w", mountpoint, os.NewSyscallError("move_mount", err))
	}
	return nil
}

// syncFileSystem writes everything that the filesystem has in memory to its device (syncfs(2)).
func syncFileSystem(path string) (err error) {
	top, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, top.Close()) }()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(top.Fd())))
}

// readAtMost reads a small file as a whole.
func readAtMost(path string, limit int64) (content []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", info.Name())
	}
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return content, nil
}
