package mounts

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/modules"
	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/spec"
)

// kernel holds the supervision's access to the operating system.
type kernel struct {
	at func(path string) ([]Entry, error)
	// ask queries the filesystem's size; the answer may never arrive. stop cancels the query if possible.
	ask func(path string) (answer <-chan error, stop func())
	// unmount is umount2(2); it may never return.
	unmount func(path string, flags int) error
	// bind mounts the filesystem at path also at view; it may never return. hide removes the directory of a view.
	bind func(path, view string) error
	hide func(view string) error
	// prepare is Prepare.
	prepare func(path string) (immutable bool, err error)
	// cannot explains why the kernel can't mount a filesystem of a type. It is empty if no obstacle is known. sure is true if the kernel can't
	// load the missing module either.
	cannot func(fsType string) (why string, sure bool)
	// up brings up the network of a mount.
	up     func(ctx context.Context, n spec.KernelNetwork, lookup environment.Lookup) error
	limits limits
}

// limits holds the time limits.
type limits struct {
	// answer limits a query of a mount that may be dead, before the mount counts as alive but hanging. It also limits every step of an unmount
	// except the first.
	answer time.Duration
	// unmount limits the first step of an unmount of a kernel filesystem, which writes back unwritten data.
	unmount time.Duration
	// busy is how long processes may use a kernel filesystem before it is detached from the tree. between is the pause between two tries.
	busy, between time.Duration
}

// answerLimit is the time in which a mounted filesystem must answer a query.
const answerLimit = 5 * time.Second

func thisKernel(m spec.Mount) kernel {
	k := kernel{
		at: at, unmount: unmountInChild, bind: bind, hide: removeView, prepare: Prepare,
		cannot: func(fsType string) (string, bool) { return cannot(fsType, m.Modules, m.Host) },
		up: func(ctx context.Context, n spec.KernelNetwork, lookup environment.Lookup) error {
			return network.ThisNode(lookup).Up(ctx, n)
		},
		// A pod has 60 s to end: 10 s for a mount command or a query, then these.
		limits: limits{answer: answerLimit, unmount: 20 * time.Second, busy: 10 * time.Second, between: time.Second},
		ask:    func(path string) (<-chan error, func()) { return ask(path), func() {} },
	}
	if m.Kernel {
		k.ask = askInChild
	}
	return k
}

func cannot(fsType string, known []spec.KernelModule, onNode bool) (why string, sure bool) {
	// A program that the node's umount(8) supports serves it instead of the kernel (mount(8), FILESYSTEM SUBTYPES).
	if onNode && host.Program(host.Root, "umount.fuse."+fsType) != "" {
		return "", false
	}
	k := modules.ThisHost(known).Look()
	why = k.Cannot(fsType)
	return why, why != "" && k.Sees() && k.State(fsType) == modules.Missing && !helped(fsType, onNode)
}

// helped is true if mount(8) of the node or of this container has a helper program for the type (mount(8), EXTERNAL HELPERS). A helper may
// work without a kernel module.
func helped(fsType string, onNode bool) bool {
	helper := "mount." + filepath.Base(fsType)
	if onNode {
		return host.Program(host.Root, helper) != ""
	}
	_, err := os.Stat("/sbin/" + helper)
	return err == nil
}

// clear detaches every mount of this filesystem from its path, working or not, because this process does not supervise the program that
// served it. A kernel filesystem needs no program: if it is not dead it is taken over, and there is true. clear refuses to touch a mount of
// another filesystem, unless that is dead and of the same type.
func (k kernel) clear(m spec.Mount, log *slog.Logger) (there bool, err error) {
	for {
		entries, err := k.at(m.Path)
		if err != nil {
			return false, err
		}
		switch state := Assess(entries, m); state {
		case Absent:
			return false, nil
		case Foreign:
			return false, finalError{describe(state, entries, m)}
		case Another:
			if !k.dead(m.Path, entries) {
				return false, finalError{describe(state, entries, m)}
			}
		case Ours:
			if m.Kernel && !k.dead(m.Path, entries) {
				log.Info("the filesystem is mounted already; the mount is taken over, with the options that it was mounted with",
					"path", m.Path, "source", entries[len(entries)-1].Source)
				return true, nil
			}
		}
		log.Info("detaching a mount that was left over", "path", m.Path, "source", entries[len(entries)-1].Source)
		if err := k.detach(m.Path, len(entries)); err != nil {
			return false, err
		}
	}
}

func (k kernel) dead(path string, entries []Entry) bool {
	answer, stop := k.ask(path)
	defer stop()
	select {
	case err := <-answer:
		return Dead(entries[len(entries)-1].FSType, err)
	case <-time.After(k.limits.answer):
		return false
	}
}
