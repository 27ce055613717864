package outcomes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/members"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
	"parallelfs.dev/operator/internal/backend"
)

// Found returns what the results will be measured on, as things are now, by this version of the operator.
func Found(w *scope.Scope, version string) scope.Provenance {
	if w.Volume != nil {
		return foundVolume(w, version)
	}
	fs := w.FileSystem
	var out scope.Provenance
	out.Operator = version
	out.FileSystemSpec = fs.Spec.DeepCopy()
	out.ServerCounts, out.TargetCounts, out.MembersHash = w.Members.ServerCounts(), w.Members.TargetCounts(), w.Members.Hash()
	var every []int
	for i := range w.Points {
		every = append(every, i)
	}
	used := w.Used(every...).First(members.MaxMembers)
	out.Servers, out.Targets = used.Servers, used.Targets
	running := cmp.Or(fs.Status.Version, fs.Spec.Version)
	if fs.Status.Management != nil && fs.Status.Management.Version != "" {
		running = fs.Status.Management.Version
	}
	out.FileSystem = v1alpha1.Cut(fmt.Sprintf("%s %s, %s, generation %d", fs.Spec.Type, running, fs.UID, fs.Generation), scope.MaxCurrent)
	out.ConfigHash = configHash(w.Daemons)
	out.Image = w.Image
	if c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPinned); c != nil {
		out.Pinning = c.Reason
		if c.Status != metav1.ConditionTrue {
			out.Pinning = v1alpha1.Cut(c.Reason+": "+c.Message, scope.MaxPinning)
		}
	}
	if fs.Status.Summary != nil && fs.Status.Summary.RDMA != "" {
		out.Transport = fs.Status.Summary.RDMA
		c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionTransportAsSpecified)
		if c != nil && c.Status != metav1.ConditionTrue {
			out.Transport += "; " + c.Reason
		}
	}
	taking := w.TakingPart()
	for _, c := range taking[:min(len(taking), scope.MaxProvenanceNodes)] {
		node := v1alpha1.NodeProvenance{Node: c.Name, CPUs: int32(c.CPUs)} //nolint:gosec // CPUs of one node
		if n := w.Nodes[c.Name]; n != nil {
			node.Kernel = v1alpha1.Cut(n.Status.NodeInfo.KernelVersion, scope.MaxNodeText)
		}
		if i := w.Inventories[c.Name]; i != nil {
			node.CPUModel = v1alpha1.Cut(i.Status.CPU.Model, scope.MaxNodeText)
			if i.Status.Kernel.Release != "" {
				node.Kernel = i.Status.Kernel.Release
			}
		}
		out.Clients = append(out.Clients, node)
	}
	return out
}

// configHash returns a hash over the configuration of all servers and of the run's clients; each pod carries a hash of its own. It does not
// depend on the number of pods, which is counted elsewhere.
func configHash(pods []corev1.Pod) string {
	var all []string
	for i := range pods {
		p := &pods[i]
		if hash := p.Annotations[backend.TemplateHashAnnotation]; hash != "" && trust.OwnedByDaemonSet(p) {
			all = append(all, fmt.Sprintf("%s=%s", trust.DaemonOf(p), hash))
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(all), "\n")))
	return hex.EncodeToString(sum[:])
}
