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

// kernel is what the supervision asks of the operating system.
type kernel struct {
	at func(path string) ([]Entry, error)
	// ask is the question for the filesystem's size; the answer may never come. stop takes the question back, where that is possible.
	ask func(path string) (answer <-chan error, stop func())
	// unmount is umount2(2); it may never return.
	unmount func(path string, flags int) error
	// bind mounts at view what is mounted at path; it may never return. hide removes the directory of a view.
	bind func(path, view string) error
	hide func(view string) error
	// prepare is Prepare.
	prepare func(path string) (immutable bool, err error)
	// cannot says why the kernel can't mount a filesystem of a type, empty when it can as far as is known; sure is true when the kernel
	// can't load what is missing either.
	cannot func(fsType string) (why string, sure bool)
	// up brings the network of a mount up.
	up     func(ctx context.Context, n spec.KernelNetwork, lookup environment.Lookup) error
	limits limits
}

// limits are how long things may take.
type limits struct {
	// answer: a question to a mount that may be dead, before it counts as alive and hung; and every step of an unmount but the first.
	answer time.Duration
	// unmount: the first step of an unmount of a filesystem of the kernel, which writes back what was not written yet.
	unmount time.Duration
	// busy: processes on a filesystem of the kernel, before it is taken out of the tree under them; and between two tries.
	busy, between time.Duration
}

// answerLimit is how long a mounted filesystem may take to answer a question.
const answerLimit = 5 * time.Second

func thisKernel(m spec.Mount) kernel {
	k := kernel{
		at: at, unmount: unmountInChild, bind: bind, hide: removeView, prepare: Prepare,
		cannot: func(fsType string) (string, bool) { return cannot(fsType, m.Modules, m.Host) },
		up: func(ctx context.Context, n spec.KernelNetwork, lookup environment.Lookup) error {
			return network.ThisNode(lookup).Up(ctx, n)
		},
		// A pod has 60 s to end: 10 s for a mount command or a question, then these.
		limits: limits{answer: answerLimit, unmount: 20 * time.Second, busy: 10 * time.Second, between: time.Second},
		ask:    func(path string) (<-chan error, func()) { return ask(path), func() {} },
	}
	if m.Kernel {
		k.ask = askInChild
	}
	return k
}

func cannot(fsType string, known []spec.KernelModule, onNode bool) (why string, sure bool) {
	// A program that the node's umount(8) knows serves it in the kernel's place (mount(8), FILESYSTEM SUBTYPES).
	if onNode && host.Program(host.Root, "umount.fuse."+fsType) != "" {
		return "", false
	}
	k := modules.ThisHost(known).Look()
	why = k.Cannot(fsType)
	return why, why != "" && k.Sees() && k.State(fsType) == modules.Missing && !helped(fsType, onNode)
}

// helped is true when mount(8), that of the node or of this container, has a program of its own for a type, which may do without a module
// of the kernel (mount(8), EXTERNAL HELPERS).
func helped(fsType string, onNode bool) bool {
	helper := "mount." + filepath.Base(fsType)
	if onNode {
		return host.Program(host.Root, helper) != ""
	}
	_, err := os.Stat("/sbin/" + helper)
	return err == nil
}

// clear detaches every mount of this filesystem from its path, working or not, because the program that served it is
// not ours to watch. A filesystem of the kernel needs no program: one that is not dead is taken over, and there is true then. It
// refuses to touch what another filesystem has mounted there, unless that is dead and of the same type.
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
