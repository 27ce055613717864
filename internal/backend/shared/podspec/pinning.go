package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// Bound reports whether the node binary binds the daemons of a role to numbered CPUs.
func Bound(pinning *v1alpha1.CPUPinning) bool {
	return pinning != nil && (pinning.Mode == v1alpha1.PinningNUMANode || pinning.Mode == v1alpha1.PinningCPUSet)
}

// exclusive reports whether the kubelet assigns exclusive CPUs to the daemons of a role.
func exclusive(pinning *v1alpha1.CPUPinning) bool {
	return pinning != nil && pinning.Mode == v1alpha1.PinningKubeletStatic && pinning.CPUs != nil
}

// Pin makes a pod request its CPUs, and returns everything that goes into the hash of its template: the configuration, and the pinning that
// the node binary carries out when the daemon starts.
func Pin(pod *corev1.PodTemplateSpec, field string, pinning *v1alpha1.CPUPinning, config ...any) ([]any, error) {
	switch {
	case Bound(pinning):
		return append(config, pinning), nil
	case exclusive(pinning):
		return config, guarantee(pod, field, pinning)
	default:
		return config, nil
	}
}

// guarantee gives a pod the QoS class Guaranteed. For that, every container must set requests equal to limits, and the first one, the
// daemon, must request whole CPUs: the kubelet's static CPU manager then makes them exclusive (Kubernetes: policies for assigning CPUs to
// containers).
func guarantee(pod *corev1.PodTemplateSpec, field string, pinning *v1alpha1.CPUPinning) error {
	memory := pinning.Memory
	if memory.Sign() <= 0 {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec, "%s.cpuPinning.memory %q is no memory; write it like 16Gi", field, memory.String())
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Resources = exactly(resource.MustParse("100m"), resource.MustParse("64Mi"))
	}
	for i := range pod.Spec.Containers {
		// The probe runs the filesystem's own tools every few seconds, such as mfscli, a Python program.
		pod.Spec.Containers[i].Resources = exactly(resource.MustParse("500m"), resource.MustParse("256Mi"))
	}
	pod.Spec.Containers[0].Resources = exactly(*resource.NewQuantity(int64(*pinning.CPUs), resource.DecimalSI), memory)
	return nil
}

// exactly returns requests that equal the limits.
func exactly(cpu, memory resource.Quantity) corev1.ResourceRequirements {
	list := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: cpu.DeepCopy(), corev1.ResourceMemory: memory.DeepCopy()}
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}

// Placements collects where the daemons of a filesystem run.
type Placements struct {
	in backend.Input
	// strays lists daemons that run on other CPUs than they should, unknown lists those whose CPUs can't be read.
	strays, unknown []string
	// unknownReason is the reason of the first entry in unknown.
	unknownReason string
	// asked is true if a role asks for CPUs.
	asked bool
}

// NewPlacements returns an empty collection.
func NewPlacements(in backend.Input) *Placements { return &Placements{in: in} }

// Of returns where a daemon runs, as the agent of its node has read it from the kernel; nil on a node without an agent. The argument daemon
// is its name among the daemons of the node (spec.Run.Daemon), and server its name in ServerStatus.
func (p *Placements) Of(
	node, daemon, server string, pinning *v1alpha1.CPUPinning, disks []*v1alpha1.StorageTarget,
) *v1alpha1.Placement {
	asks := Bound(pinning) || exclusive(pinning)
	p.asked = p.asked || asks
	inventory, agent := p.in.Inventories[node]
	if !agent {
		if asks {
			p.unseen(v1alpha1.ReasonAgentMissing, "%s: no agent runs on node %s; give it the label %s", server, node, v1alpha1.LabelAgent)
		}
		return nil
	}
	placement := &v1alpha1.Placement{Devices: kernelNames(disks)}
	wanted, known := p.in.Pinnings[node][daemon]
	if Bound(pinning) {
		placement.WantedCPUs = wanted.CPUs
	}
	i := slices.IndexFunc(inventory.Daemons, func(d v1alpha1.DaemonPlacement) bool { return d.Name == p.daemonName(daemon) })
	if i < 0 {
		if asks {
			p.unseen(v1alpha1.ReasonStarting, "%s: the agent does not see it run", server)
		}
		return placement
	}
	found := inventory.Daemons[i]
	placement.CPUs, placement.NUMANodes, placement.MemoryPolicy = found.CPUs, found.NUMANodes, found.MemoryPolicy
	switch {
	case Bound(pinning) && !known:
		p.unseen(v1alpha1.ReasonPinningConflict, "%s: its desired CPUs are unknown", server)
	case Bound(pinning):
		placement.Drift = backend.Shorten(plan.Drift(wanted, found))
	case exclusive(pinning):
		placement.Drift = backend.Shorten(shared(*pinning.CPUs, found))
	}
	if placement.Drift != "" {
		p.strays = append(p.strays, server+": "+placement.Drift)
	}
	return placement
}

// OfKernel returns where the kernel threads run that serve instead of a daemon which asks for CPUs. The backend has found the placement;
// the argument unknown is why it could not, nil if it could.
func (p *Placements) OfKernel(
	server string, found v1alpha1.Placement, disks []*v1alpha1.StorageTarget, unknown *backend.Problem,
) *v1alpha1.Placement {
	p.asked, found.Devices = true, kernelNames(disks)
	if unknown != nil {
		p.unseen(unknown.Reason, "%s: %s", server, unknown.Message)
	}
	if found.Drift != "" {
		p.strays = append(p.strays, server+": "+found.Drift)
	}
	return &found
}

func (p *Placements) daemonName(daemon string) string {
	return p.in.FileSystem.Namespace + "/" + p.in.FileSystem.Name + "/" + daemon
}

func (p *Placements) unseen(reason, format string, args ...any) {
	if p.unknownReason == "" {
		p.unknownReason = reason
	}
	p.unknown = append(p.unknown, fmt.Sprintf(format, args...))
}

// shared describes how the CPUs of a daemon differ from the exclusive ones that the kubelet should have assigned.
func shared(cpus int32, found v1alpha1.DaemonPlacement) string {
	if set, err := cpuset.Parse(found.CPUs); err == nil && set.Size() == int(cpus) {
		return ""
	}
	return fmt.Sprintf("it may run on CPUs %s, and asks for %d of its own; the kubelet of the node needs cpuManagerPolicy: static", found.CPUs, cpus)
}

// kernelNames returns the current kernel names of the disks.
func kernelNames(disks []*v1alpha1.StorageTarget) []string {
	var out []string
	for _, t := range disks {
		if t.Status.KernelName != "" {
			out = append(out, t.Status.KernelName)
		}
	}
	slices.Sort(out)
	return out
}

// Pinned summarizes where the daemons run that ask for CPUs, as the condition Pinned; nil if none asks.
func (p *Placements) Pinned() *backend.Problem {
	switch {
	case !p.asked:
		return nil
	case len(p.strays) > 0:
		return &backend.Problem{Reason: v1alpha1.ReasonDrifted, Message: backend.List(p.strays)}
	case len(p.unknown) > 0:
		return &backend.Problem{Reason: p.unknownReason, Message: backend.List(p.unknown)}
	default:
		return &backend.Problem{
			Reason: v1alpha1.ReasonAsAsked, Message: "every daemon that asks for CPUs runs on them, as the kernel of its node says",
		}
	}
}
