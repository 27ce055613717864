// Package preview decides what a FileSystem would do if it were applied. It asks the same pure functions as the operator, in the same
// order, and writes nothing. It lacks what only an agent or the filesystem itself can see.
package preview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/decisions"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
)

// Cluster is what a preview is made from.
type Cluster struct {
	Backends backend.Set
	Images   backend.Images
	// ID is the identity of the cluster (StorageTarget.spec.cluster).
	ID string
	// FileSystems, Targets and Records are those of all namespaces, and Nodes those of the cluster.
	FileSystems []v1alpha1.FileSystem
	Targets     []v1alpha1.StorageTarget
	Records     []v1alpha1.FileSystemNode
	Nodes       []backend.Node
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Attachments holds the volumes that Kubernetes has attached, by node.
	Attachments map[string][]plan.Attachment
	Now         time.Time
}

// Preview is what a FileSystem would do.
type Preview struct {
	// New is true if the cluster has no such FileSystem.
	New bool
	// Refused is why nothing would happen until a person changes something; nil if nothing is refused.
	Refused *backend.Problem
	// FileSystem has the complete spec, and the record that would be made.
	FileSystem *v1alpha1.FileSystem
	// Places lists the nodes of each role.
	Places []Place
	// Ports are those that the filesystem would take on each of its nodes; the count is 0 for a filesystem that claims none.
	Ports backend.PortRange
	// Directories lists data directories outside of disks, as node:path.
	Directories []string
	// Disks lists the disks that would be taken up, and Leaves the StorageTargets that would be released.
	Disks  []Disk
	Leaves []string
	// Joins lists what would be recorded permanently, in the operator's words.
	Joins []string
	// Restarts lists the servers that would restart.
	Restarts []Restart
	// Stops lists the daemons that would be removed.
	Stops []string
	// Problems lists what a person has to change about disks and CPUs, and does not stop the rest.
	Problems []backend.Problem
}

// Place is a role and its nodes.
type Place struct {
	Role  string   `json:"role"`
	Nodes []string `json:"nodes"`
}

// Disk is a disk that would become a target.
type Disk struct {
	Target, Node, Pool string
	Role               v1alpha1.Role
	Device             v1alpha1.DeviceIdentity
	KernelName         string
	// Found is how the inventory shows the disk.
	Found plan.Found
	// Decision is what the agent would decide if it saw no more than the inventory shows.
	Decision plan.Decision
}

// Restart is a server that would restart.
type Restart struct {
	Daemon string   `json:"daemon"`
	Nodes  []string `json:"nodes,omitempty"`
	Why    string   `json:"why"`
}

// Of returns what the FileSystem would do. It has the spec as a person wrote it, with the defaults of the API server.
func (c Cluster) Of(fs *v1alpha1.FileSystem) (*Preview, error) {
	b, ok := c.Backends[fs.Spec.Type]
	if !ok {
		return nil, fmt.Errorf("this program has no filesystem of type %q", fs.Spec.Type)
	}
	fs = fs.DeepCopy()
	out := &Preview{New: true}
	var before *course
	for i := range c.FileSystems {
		if live := &c.FileSystems[i]; live.Namespace == fs.Namespace && live.Name == fs.Name {
			out.New, fs.UID, fs.Status = false, live.UID, *live.Status.DeepCopy()
			if live.Status.Metadata != nil {
				// A live spec that is refused itself has no servers to compare with.
				before, _ = c.follow(b, live.DeepCopy())
			}
		}
	}
	if out.New {
		fs.UID, fs.Status = "preview", v1alpha1.FileSystemStatus{}
	}
	after, err := c.follow(b, fs)
	var invalid *backend.InvalidSpecError
	switch {
	case errors.As(err, &invalid):
		out.FileSystem, out.Refused = fs, &backend.Problem{Reason: invalid.Reason, Message: invalid.Message}
		return out, nil
	case err != nil:
		return nil, err
	}
	out.FileSystem, out.Joins = after.in.FileSystem, after.joins
	out.Problems = after.problems
	c.places(out, b, after)
	c.disks(out, after)
	if before != nil {
		restarts(out, b, before, after)
		upgrade(out, b)
	}
	return out, nil
}

// course is one pass of the operator that is only thought through.
type course struct {
	in       backend.Input
	own      []v1alpha1.StorageTarget
	nodes    plan.TargetNodes
	joins    []string
	problems []backend.Problem
	sets     map[string]*appsv1.DaemonSet
}

// follow thinks a pass through, up to what its servers are made of.
func (c Cluster) follow(b backend.Backend, fs *v1alpha1.FileSystem) (*course, error) {
	p, asked := &course{}, fs.Spec.DeepCopy()
	fs.Complete()
	p.in = c.input(b, fs, p)
	if err := choose(b, p, asked); err != nil {
		return nil, err
	}
	if problem := nodefacts.AddressProblem(p.in, b.Families(fs)); problem != nil {
		p.problems = append(p.problems, *problem)
	}
	allocation, err := decisions.AllocateReachable(b, p.in)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is a sentence for a person
	}
	p.joins = allocation.Joins
	if err := c.choosesDisks(b, p, &allocation, asked); err != nil {
		return nil, err
	}
	if err := p.record(b, &allocation); err != nil {
		return nil, err
	}
	// Values such as the nodes of metaloggers are chosen once the metadata has a node.
	if err := choose(b, p, asked); err != nil {
		return nil, err
	}
	pinnings, conflicts := decisions.Pinnings(c.Backends, b, p.in)
	p.in.Pinnings = pinnings
	p.say(conflicts)
	p.in.FileSystemNodes = b.Nodes(p.in.Indexed())
	p.in = p.in.Indexed()
	err = p.members(b)
	return p, err
}

// choose fills in what the spec leaves open.
func choose(b backend.Backend, p *course, asked *v1alpha1.FileSystemSpec) error {
	chosen, err := decisions.ChooseOpen(b, p.in, asked)
	if err != nil {
		return err //nolint:wrapcheck // it is a sentence for a person
	}
	p.in.FileSystem.Status.Chosen = chosen
	p.in.FileSystem.Complete()
	return nil
}

// choosesDisks chooses the disks, and allocates again if that had to wait for them.
func (c Cluster) choosesDisks(b backend.Backend, p *course, a *backend.Allocation, asked *v1alpha1.FileSystemSpec) error {
	if len(p.own) == 0 && !slices.ContainsFunc(decisions.RoleTargets(p.in.FileSystem), assign.OnDevices) {
		p.in.Chosen = true
		return nil
	}
	question := decisions.DiskQuestion(b, p.in, c.ID, a.TargetNodes)
	question.Others, question.Attachments = c.others(p.in.FileSystem), c.Attachments
	var there map[string]*v1alpha1.StorageTarget
	question.Existing, there = plan.Existing(p.own, question.GaveUp)
	selection := plan.Select(question)
	p.say(selection.Problems)
	p.in.Targets = selection.Targets
	for i := range p.in.Targets {
		t := &p.in.Targets[i]
		if live := there[t.Name]; live != nil {
			t.UID, t.Generation, t.Status = live.UID, live.Generation, live.Status
			t.Spec.ApprovedPlan, t.Spec.Remove, t.Spec.DestroyFor = live.Spec.ApprovedPlan, live.Spec.Remove, live.Spec.DestroyFor
		}
	}
	p.in.Chosen, p.nodes = true, a.TargetNodes
	p.in = p.in.Indexed()
	if err := choose(b, p, asked); err != nil {
		return err
	}
	again, err := decisions.AllocateReachable(b, p.in)
	if err != nil {
		return err //nolint:wrapcheck // it is a sentence for a person
	}
	*a = again
	p.joins = again.Joins
	return nil
}

// mostRounds bounds the rounds in which numbers are given, each of which gives up to backend.MostPromises.
const mostRounds = 1000

// record takes over what an allocation would record.
func (p *course) record(b backend.Backend, a *backend.Allocation) error {
	if a.Waits || a.Unread != "" {
		p.problems = append(p.problems, backend.Problem{Reason: v1alpha1.ReasonRecordsUnread, Message: a.Unread})
	}
	for range mostRounds {
		p.in.FileSystem.Status = a.Status
		p.in.FileSystemNodes = assign.WithRecords(p.in.FileSystemNodes, a.Nodes)
		p.in = p.in.Indexed()
		if a.Waits || !a.More {
			break
		}
		more, err := b.Allocate(p.in)
		if err != nil {
			return err //nolint:wrapcheck // it is a sentence for a person
		}
		*a = more
	}
	return nil
}

// members finds what the servers would be made of.
func (p *course) members(b backend.Backend) error {
	p.sets = map[string]*appsv1.DaemonSet{}
	if p.in.FileSystem.Status.Metadata == nil {
		return nil // its disks have to be read first
	}
	objects, err := b.Members(p.in)
	if err != nil {
		return err //nolint:wrapcheck // it is a sentence for a person
	}
	for _, object := range objects {
		if set, is := object.(*appsv1.DaemonSet); is {
			p.sets[set.Name] = set
		}
	}
	return nil
}

func (p *course) say(problems []plan.Problem) {
	for _, problem := range problems {
		p.problems = append(p.problems, backend.Problem{Reason: problem.Reason, Message: problem.Message})
	}
}

// input returns the backend's input, and puts the StorageTargets of the FileSystem into the course.
func (c Cluster) input(b backend.Backend, fs *v1alpha1.FileSystem, p *course) backend.Input {
	in := backend.Input{
		FileSystem: fs, Images: c.Images, Nodes: nodefacts.WithAddresses(c.Nodes, b.Families(fs)), Inventories: c.Inventories,
		OthersNodes: map[types.UID][]v1alpha1.FileSystemNode{},
	}
	for i := range c.FileSystems {
		if other := &c.FileSystems[i]; other.UID != fs.UID {
			in.Others = append(in.Others, other.Completed())
		}
	}
	slices.SortFunc(in.Others, func(a, b v1alpha1.FileSystem) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for i := range c.Records {
		n := c.Records[i]
		if n.Namespace == fs.Namespace && n.Spec.FileSystem.UID == string(fs.UID) {
			in.FileSystemNodes = append(in.FileSystemNodes, n)
		} else {
			uid := types.UID(n.Spec.FileSystem.UID)
			in.OthersNodes[uid] = append(in.OthersNodes[uid], n)
		}
	}
	slices.SortFunc(in.FileSystemNodes, func(a, b v1alpha1.FileSystemNode) int { return strings.Compare(a.Spec.Node, b.Spec.Node) })
	for i := range c.Targets {
		if t := c.Targets[i]; isOf(&t, fs) {
			p.own = append(p.own, t)
		}
	}
	slices.SortFunc(p.own, func(a, b v1alpha1.StorageTarget) int {
		return strings.Compare(a.Spec.Node+"/"+a.Name, b.Spec.Node+"/"+b.Name)
	})
	in.Targets = slices.DeleteFunc(slices.Clone(p.own), func(t v1alpha1.StorageTarget) bool { return !t.DeletionTimestamp.IsZero() })
	in.Claims = c.Backends.Claims(in.Others, in.OthersNodes)
	return in.Indexed()
}

// others returns the StorageTargets of other FileSystems.
func (c Cluster) others(fs *v1alpha1.FileSystem) []v1alpha1.StorageTarget {
	return slices.DeleteFunc(slices.Clone(c.Targets), func(t v1alpha1.StorageTarget) bool { return isOf(&t, fs) })
}

func isOf(t *v1alpha1.StorageTarget, fs *v1alpha1.FileSystem) bool {
	return t.Namespace == fs.Namespace && t.Spec.FileSystem.UID == string(fs.UID)
}
