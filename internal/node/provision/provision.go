// Package provision carries out, on one target after the other, the decisions of package plan: it formats, mounts, proves, marks, unmounts
// and wipes disks, and sets their queues. Every step begins after a fresh look, under a lock of the device, and is followed by a look at
// its result. An exit code alone proves nothing.
package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Provisioner works on the disks of one node.
type Provisioner struct {
	// Look takes a fresh look at the recorded device. A missing device is no error.
	Look func(ctx context.Context, want v1alpha1.DeviceIdentity) (plan.Facts, error)
	// Holding takes a fresh look at the only device that holds a filesystem with this UUID and is not smaller than size.
	Holding func(ctx context.Context, uuid string, size int64) (plan.Facts, error)
	// Claims is shared with Look, so that no look disturbs an operation.
	Claims *Claims
	// Run runs programs of the image, OnNode those of the node itself (host.Command).
	Run, OnNode Runner
	// Check checks a filesystem and its mount options with the kernel (CheckOptions).
	Check func(fsType string, options []string) plan.Kernel
	// Path is the mountpoint of a target (spec.TargetPath).
	Path func(namespace, fileSystem, target string) string
	// Dev, Sys and Proc are /dev, /sys and the /proc of the host.
	Dev, Sys, Proc string
	// Now is the clock, NewUUID makes the UUIDs of new filesystems.
	Now     func() time.Time
	NewUUID func() string
	// Patience is how long to wait for other users of a mount on the way to a target. Pods that start at that moment have copies of it.
	Patience time.Duration
	// Hook, if set, is called before every step and, with done, after it. Its error ends the pass there, as a kill would.
	Hook func(step string, done bool) error
}

// New returns a Provisioner for this node, whose disks the looker finds. All looks of the process must use the Claims of the result.
func New(looker devices.Looker, newUUID func() string) *Provisioner {
	claims := &Claims{}
	looker.Claim = claims.Ask(looker.Claim)
	return &Provisioner{
		Look: looker.Recorded, Holding: looker.Holding, Claims: claims, Run: Run, OnNode: RunOnNode, Check: CheckOptions, Path: spec.TargetPath,
		Dev: "/dev", Sys: "/sys", Proc: "/proc",
		Now: time.Now, NewUUID: newUUID, Patience: busyLimit,
	}
}

// Record writes the agent's part of a target's status to the API server, and updates the target. Nothing is done to a disk before it has
// returned nil.
type Record func(ctx context.Context, target *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error

// mostRounds is how many actions one pass takes. The way from a blank disk to a target needs fewer.
const mostRounds = 16

// ErrUndecided means that the decisions did not end.
var ErrUndecided = errors.New("the plan did not come to an end; this is an error of the operator, please report it")

// Pass advances one target as far as possible: it looks, decides, acts, and looks again, until nothing is left to do. It records the status
// before the first step and after the last. After an error, the pass must be repeated later.
func (p *Provisioner) Pass(ctx context.Context, target *v1alpha1.StorageTarget, record Record) error {
	// now is the target as input of decisions, target the one in the API server.
	now := target.DeepCopy()
	write := func(ctx context.Context, _ *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
		err := record(ctx, target, wanted)
		if err == nil {
			target.DeepCopyInto(now)
		}
		return err
	}
	for range mostRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		look, err := p.look(ctx, now)
		if err != nil {
			return err
		}
		decision := plan.Decide(now, look, p.Now(), p.NewUUID)
		switch {
		case decision.Action == plan.None:
			status := p.status(now, look, decision)
			status.Files = p.files(ctx, now, status.MountPath)
			return write(ctx, now, status)
		case decision.Action == plan.Adopt && now.Status.Provisioned != nil:
			// The marker on the disk proves that the target is finished. One write records that together with the result.
			now.Status.Provisioned = decision.Provisioned
			continue
		}
		acting, end := lasting(ctx)
		err = p.act(acting, now, look, decision, write)
		end()
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", target.Name, ErrUndecided)
}

// finishLimit is how long an action in progress may continue after the program is asked to end, because an interrupted mkfs starts again
// from its beginning.
const finishLimit = 100 * time.Second

// lasting returns a context that ends finishLimit after the given one.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(finishLimit):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// StepError is the failure of a step. The target's status already has it.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %s: %s", e.Step, e.Err) }

func (e *StepError) Unwrap() error { return e.Err }

// act carries out one decision.
func (p *Provisioner) act(
	ctx context.Context, target *v1alpha1.StorageTarget, look plan.Look, decision plan.Decision, record Record,
) error {
	switch decision.Action {
	case plan.Record, plan.Adopt:
		return p.step(string(decision.Action), func() error {
			return record(ctx, target, p.status(target, look, decision))
		})
	case plan.Format, plan.Mount, plan.Mark, plan.Unmount, plan.Wipe:
	case plan.None:
		return nil
	default:
		return fmt.Errorf("%s: this agent does not know the action %q; the operator and its agent must be of the same version", target.Name, decision.Action)
	}
	if p.announces(target, decision) {
		if err := record(ctx, target, p.status(target, look, underWay(decision))); err != nil {
			return err
		}
	}
	err := p.locked(ctx, target, look, decision)
	if settles(err) && reasonOf(target) != v1alpha1.ReasonProvisioningFailed {
		waiting := decision
		waiting.Ready.Message += "; " + err.Error()
		if err := record(ctx, target, p.status(target, look, waiting)); err != nil {
			return err
		}
		err = p.patiently(ctx, func() error { return p.settle(p.mountpoint(target)) })
	}
	var failed *StepError
	if !errors.As(err, &failed) {
		return err
	}
	return errors.Join(err, record(ctx, target, p.status(target, look, failure(decision, failed))))
}

// stepSettle is the last step of marking a target; see mark.
const stepSettle = "SettleMark"

// settle unmounts a target that was marked.
func (p *Provisioner) settle(path string) error {
	return p.try(stepSettle, func() error { return p.unmountAll(path) })
}

// settles reports whether an error means that a marked target can't be unmounted because another process has a copy of the mount.
func settles(err error) bool {
	var failed *StepError
	_, busy := errors.AsType[*busyError](err)
	return busy && errors.As(err, &failed) && failed.Step == stepSettle
}

const (
	// busyLimit is longer than a container runtime needs to start a container.
	busyLimit = 30 * time.Second
	busyPause = time.Second
)

// patiently repeats settle until the mount is not in use, or Patience is over. It tries at least once.
func (p *Provisioner) patiently(ctx context.Context, do func() error) error {
	limit := time.NewTimer(p.Patience)
	defer limit.Stop()
	pause := time.NewTicker(busyPause)
	defer pause.Stop()
	for {
		err := do()
		if !settles(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-limit.C:
			return err
		case <-pause.C:
		}
	}
}

// announces reports whether the status shows an action before it begins, because the action takes long. A step that has failed before is
// repeated without that, because otherwise the status would change with every attempt.
func (p *Provisioner) announces(target *v1alpha1.StorageTarget, decision plan.Decision) bool {
	if decision.Action != plan.Format && decision.Action != plan.Wipe {
		return false
	}
	switch reasonOf(target) {
	case v1alpha1.ReasonProvisioningFailed, v1alpha1.ReasonWipeFailed:
		return false
	case v1alpha1.ReasonProvisioning:
		return decision.Action == plan.Wipe // the status has the plan that is being carried out, with its commands
	default:
		return true
	}
}

// underWay names the running commands.
func underWay(d plan.Decision) plan.Decision {
	var commands []string
	for _, s := range d.Steps {
		if s.Kind == plan.StepWipe || s.Kind == plan.StepMakeFileSystem {
			commands = append(commands, strings.Join(s.Argv, " "))
		}
	}
	d.Ready.Message += "; running: " + strings.Join(commands, ", then ")
	return d
}

// locked carries out a decision under the lock of its devices. After it has the lock, it decides again, and carries out only the same
// decision.
func (p *Provisioner) locked(ctx context.Context, target *v1alpha1.StorageTarget, look plan.Look, decision plan.Decision) (err error) {
	var locks []*os.File
	defer func() {
		for _, l := range locks {
			err = errors.Join(err, l.Close())
		}
	}()
	err = p.step("Lock", func() error {
		for _, device := range p.devices(look) {
			l, err := lock(ctx, device)
			if err != nil {
				return &StepError{"Lock", err}
			}
			locks = append(locks, l)
		}
		return nil
	})
	if err != nil {
		return err
	}
	again, err := p.look(ctx, target)
	if err != nil {
		return err
	}
	if second := plan.Decide(target, again, p.Now(), p.NewUUID); !sameWork(decision, second) {
		return nil // the next round decides on the present state
	}
	return p.carryOut(ctx, target, again, decision, locks)
}

// sameWork reports whether two decisions do the same to the same devices.
func sameWork(a, b plan.Decision) bool {
	return a.Action == b.Action && reflect.DeepEqual(a.Steps, b.Steps) && equality.Semantic.DeepEqual(a.Provisioned, b.Provisioned)
}

// devices returns the paths of the target's devices, the data device first.
func (p *Provisioner) devices(look plan.Look) []string {
	var all []string
	if look.Device.Found {
		all = append(all, p.path(look.Device))
	}
	if look.Log != nil && look.Log.Found {
		all = append(all, p.path(*look.Log))
	}
	return all
}

// step runs one named step between its hooks. A step's own failure is a StepError.
func (p *Provisioner) step(name string, do func() error) error {
	if p.Hook != nil {
		if err := p.Hook(name, false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if p.Hook != nil {
		return p.Hook(name, true)
	}
	return nil
}

// try is step for an action on a device: the target's status shows its failure.
func (p *Provisioner) try(name string, do func() error) error {
	return p.step(name, func() error {
		if err := do(); err != nil {
			return &StepError{name, err}
		}
		return nil
	})
}
