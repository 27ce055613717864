// Package backendtest tests the contract of backends. A backend's own tests call Contract with a filesystem that uses all features of the
// backend.
package backendtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/spec"
)

// Contract runs the suite for every version. The input needs no record and no state: Contract adds the backend's own record. Initialized
// changes the input to that of a filesystem whose daemons have prepared their directories, in addition to status.metadata; nil if nothing
// else changes.
func Contract(t *testing.T, b backend.Backend, fresh func(version string) backend.Input, initialized func(in *backend.Input)) {
	t.Helper()
	for _, version := range b.Versions() {
		t.Run(version, func(t *testing.T) {
			contract(t, b, func() backend.Input { return fresh(version) }, func(in *backend.Input) {
				in.FileSystem.Status.Metadata.Initialized = in.FileSystem.CreationTimestamp.DeepCopy()
				if initialized != nil {
					initialized(in)
				}
			})
		})
	}
}

func contract(t *testing.T, b backend.Backend, fresh func() backend.Input, initialized func(in *backend.Input)) {
	t.Helper()
	recorded := func(t *testing.T) backend.Input {
		t.Helper()
		in := fresh()
		Remember(t, b, &in)
		return in
	}
	objects := func(t *testing.T, in backend.Input) []client.Object {
		t.Helper()
		out, err := b.Members(in)
		if err != nil {
			t.Fatalf("Members: %v", err)
		}
		for _, n := range b.Nodes(in) {
			out = append(out, &n)
		}
		return out
	}

	t.Run("the same question gets the same answer, and the question is left as it was", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		before := text(t, in)
		first := text(t, objects(t, in))
		for range 20 {
			g.Expect(text(t, objects(t, in))).To(gomega.Equal(first))
		}
		g.Expect(text(t, b.Observe(in))).To(gomega.Equal(text(t, b.Observe(in))))
		g.Expect(text(t, in)).To(gomega.Equal(before))
	})

	t.Run("the order of the disks makes no difference", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		first, seen := text(t, objects(t, in)), text(t, b.Observe(in))
		record, err := b.Allocate(in)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		for i := range in.Targets {
			slices.Reverse(in.Targets[i:])
			g.Expect(text(t, objects(t, in))).To(gomega.Equal(first))
			g.Expect(text(t, b.Observe(in))).To(gomega.Equal(seen))
			g.Expect(b.Allocate(in)).To(gomega.Equal(record))
		}
	})

	t.Run("what becomes of a disk changes no template of a pod, and neither does where a daemon is pinned to", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		before := templateHashes(objects(t, in))
		for i := range in.Targets {
			in.Targets[i].Spec.Remove = !in.Targets[i].Spec.Remove
			in.Targets[i].Status = v1alpha1.StorageTargetStatus{}
		}
		for node := range in.Pinnings {
			for daemon := range in.Pinnings[node] {
				in.Pinnings[node][daemon] = spec.Pinning{CPUs: "63"}
			}
		}
		g.Expect(templateHashes(objects(t, in))).To(gomega.Equal(before))
		in.Targets = nil
		g.Expect(templateHashes(objects(t, in))).To(gomega.Equal(before))
	})

	t.Run("a record that was made is only added to", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		again, err := b.Allocate(in)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(again.Status).To(gomega.Equal(in.FileSystem.Status))
		g.Expect(again.Nodes).To(gomega.BeEmpty())
		g.Expect(again.Joins).To(gomega.BeEmpty(), "what is recorded does not join")

		for i := range in.Nodes {
			in.Nodes[i].Labels = nil
		}
		in.Targets = nil
		unlabeled, err := b.Allocate(in)
		g.Expect(err).NotTo(gomega.HaveOccurred(), "nodes that hold data must not be forgotten when their labels or disks go")
		g.Expect(unlabeled).To(gomega.Equal(again))
	})

	t.Run("nothing is initialized again once the record says that it was", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		// If servers mount their own targets, the agents create the directories.
		if before := text(t, objects(t, in)); strings.Contains(before, initializes) {
			g.Expect(before).To(gomega.MatchRegexp(granted))
		}
		initialized(&in)
		g.Expect(text(t, objects(t, in))).NotTo(gomega.MatchRegexp(granted))
	})

	t.Run("withdrawing the permission to initialize restarts nothing", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		before := templateHashes(objects(t, in))
		initialized(&in)
		g.Expect(templateHashes(objects(t, in))).To(gomega.Equal(before))
	})

	t.Run("every daemon is in a DaemonSet that never restarts it by itself", func(t *testing.T) {
		g := gomega.NewWithT(t)
		for _, set := range daemonSets(objects(t, recorded(t))) {
			g.Expect(set.Spec.UpdateStrategy.Type).To(gomega.Equal(appsv1.OnDeleteDaemonSetStrategyType), set.Name)
			g.Expect(set.Spec.Template.Annotations).To(gomega.HaveKey(backend.TemplateHashAnnotation), set.Name)
		}
	})

	t.Run("a release of the operator changes no template of a pod, and a server has the name of its pod", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		before := templateHashes(objects(t, in))
		namesServers(t, b, in, daemonSets(objects(t, in)))
		in.Images.Node, in.Images.PullPolicy = "another/node:2", "Always"
		g.Expect(templateHashes(objects(t, in))).To(gomega.Equal(before))
	})

	t.Run("every server is told of its node by the node's own object, which stays when it has no server left", func(t *testing.T) {
		keepsNodes(t, b, recorded(t))
	})

	t.Run("no data daemon has a liveness probe", func(t *testing.T) {
		g := gomega.NewWithT(t)
		for _, set := range daemonSets(objects(t, recorded(t))) {
			for _, c := range set.Spec.Template.Spec.Containers {
				g.Expect(c.LivenessProbe).To(gomega.BeNil(), "%s/%s", set.Name, c.Name)
			}
		}
	})

	t.Run("pods have no token of the API server, and only a mount is privileged", func(t *testing.T) {
		g := gomega.NewWithT(t)
		for _, set := range daemonSets(objects(t, recorded(t))) {
			pod := set.Spec.Template.Spec
			g.Expect(pod.AutomountServiceAccountToken).To(gomega.HaveValue(gomega.BeFalse()), set.Name)
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				if component := set.Labels[v1alpha1.LabelComponent]; c.Name == component && slices.Contains(mounts, component) ||
					pod.HostPID && slices.Contains(onNodes, c.Command[1]) {
					continue
				}
				g.Expect(c.SecurityContext).NotTo(gomega.BeNil(), c.Name)
				g.Expect(c.SecurityContext.Privileged).To(gomega.BeNil(), "%s/%s", set.Name, c.Name)
				g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(gomega.HaveValue(gomega.BeFalse()), "%s/%s", set.Name, c.Name)
				g.Expect(c.SecurityContext.Capabilities.Drop).To(gomega.ContainElement(corev1.Capability("ALL")), "%s/%s", set.Name, c.Name)
			}
		}
	})

	t.Run("objects lie in the namespace, start with the name, and have no owner", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		for _, o := range objects(t, in) {
			g.Expect(o.GetNamespace()).To(gomega.Equal(in.FileSystem.Namespace))
			g.Expect(o.GetName()).To(gomega.HavePrefix(in.FileSystem.Name + "-"))
			g.Expect(validation.IsDNS1123Subdomain(o.GetName())).To(gomega.BeEmpty())
			g.Expect(o.GetOwnerReferences()).To(gomega.BeEmpty())
		}
	})

	t.Run("the password stands in the Secret only", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		for _, o := range objects(t, in) {
			if _, secret := o.(*corev1.Secret); !secret {
				g.Expect(text(t, o)).NotTo(gomega.ContainSubstring(in.Password), "%T %s", o, o.GetName())
			}
		}
		g.Expect(text(t, b.Observe(in))).NotTo(gomega.ContainSubstring(in.Password))
	})

	t.Run("the key of the probe stands in a Secret of its own, which only its container has, and no template changes with it", func(t *testing.T) {
		in := recorded(t)
		keepsTheKey(t, in, objects(t, in))
		g := gomega.NewWithT(t)
		g.Expect(text(t, b.Observe(in))).NotTo(gomega.ContainSubstring(in.ProbeKey))
		before := templateHashes(objects(t, in))
		in.ProbeKey = "another"
		g.Expect(templateHashes(objects(t, in))).To(gomega.Equal(before))
	})

	t.Run("a filesystem that nobody has heard of is not Ready, and shows why", func(t *testing.T) {
		g := gomega.NewWithT(t)
		in := recorded(t)
		in.StateError = "the probe does not answer"
		seen := b.Observe(in)
		g.Expect(seen.Problems).NotTo(gomega.BeEmpty())
		g.Expect(seen.Problems[0].Message).To(gomega.ContainSubstring(in.StateError))
		for _, target := range seen.Targets {
			g.Expect(target.Online).To(gomega.BeFalse())
			g.Expect(target.Message).NotTo(gomega.BeEmpty())
		}
	})
}

// keepsNodes checks that each node with a pod of a server has a FileSystemNode, in which the server finds its configuration.
func keepsNodes(t *testing.T, b backend.Backend, in backend.Input) {
	t.Helper()
	g := gomega.NewWithT(t)
	objects, err := b.Members(in)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	nodes := map[string]v1alpha1.FileSystemNode{}
	for _, n := range b.Nodes(in) {
		g.Expect(n.Spec.FileSystem).To(gomega.Equal(v1alpha1.TargetOwner{Name: in.FileSystem.Name, UID: string(in.FileSystem.UID)}))
		g.Expect(n.Labels).To(gomega.And(gomega.HaveKeyWithValue(v1alpha1.LabelFileSystem, in.FileSystem.Name),
			gomega.HaveKeyWithValue(v1alpha1.LabelNode, n.Spec.Node)))
		g.Expect(nodes).NotTo(gomega.HaveKey(n.Spec.Node), "a node has one")
		nodes[n.Spec.Node] = n
		names := map[string]bool{}
		for _, m := range n.Spec.Members {
			g.Expect(names).NotTo(gomega.HaveKey(m.Name), "a member stands in it once")
			names[m.Name] = true
			targets := map[string]bool{}
			for _, t := range m.Targets {
				g.Expect(targets).NotTo(gomega.HaveKey(t.Name), "a target stands in %s once", m.Name)
				targets[t.Name] = true
			}
		}
	}
	g.Expect(nodes).NotTo(gomega.BeEmpty())
	directory, servers := spec.NodeDirectory(in.FileSystem.Namespace, in.FileSystem.Name), map[string]bool{}
	for _, set := range daemonSets(objects) {
		pod := set.Spec.Template
		if !slices.Contains(b.Order(), pod.Labels[v1alpha1.LabelComponent]) {
			continue
		}
		mount := corev1.VolumeMount{Name: "node", MountPath: directory, ReadOnly: true}
		g.Expect(pod.Spec.Containers[0].VolumeMounts).To(gomega.ContainElement(mount), set.Name)
		servers[strings.TrimPrefix(set.Name, in.FileSystem.Name+"-")] = true
		for _, n := range in.Nodes {
			if runsOn(pod.Spec, n) {
				g.Expect(nodes).To(gomega.HaveKey(n.Name), set.Name)
				g.Expect(nodes[n.Name].Spec.Members).To(gomega.ContainElement(gomega.HaveField("Name", strings.TrimPrefix(set.Name, in.FileSystem.Name+"-"))))
			}
		}
	}
	g.Expect(servers).NotTo(gomega.BeEmpty())
	retired := v1alpha1.NodeMember{Name: "storage-old", Role: v1alpha1.RoleStorage, StoragePool: "old", ID: 7, Retired: true,
		Targets: []v1alpha1.MemberTarget{{Name: "disk", ID: 70}}}
	left := v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: "zz-left", Members: []v1alpha1.NodeMember{
		retired, {Name: "told", Role: v1alpha1.RoleManagement, Variables: map[string]v1alpha1.VariableValue{"A": "b"}},
	}}}
	in.FileSystemNodes = append(in.FileSystemNodes, left)
	after := b.Nodes(in)
	g.Expect(len(after)).To(gomega.Equal(len(nodes) + 1))
	g.Expect(after[len(after)-1].Spec.Node).To(gomega.Equal("zz-left"))
	g.Expect(after[len(after)-1].Spec.Members).To(gomega.HaveExactElements(retired), "what was given stays, and nothing else")
}

// runsOn reports whether a pod is to run on a node.
func runsOn(pod corev1.PodSpec, n backend.Node) bool {
	if pod.Affinity != nil {
		terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return slices.Contains(t.MatchFields[0].Values, n.Name) })
	}
	for key, value := range pod.NodeSelector {
		if have, ok := n.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// keepsTheKey checks that the key of the probe is in its Secret only, and that only the probe's container mounts that Secret.
func keepsTheKey(t *testing.T, in backend.Input, objects []client.Object) {
	t.Helper()
	g := gomega.NewWithT(t)
	g.Expect(in.ProbeKey).NotTo(gomega.BeEmpty())
	name := exchange.ProbeSecretName(in.FileSystem)
	g.Expect(objects).To(gomega.ContainElement(gomega.And(gomega.BeAssignableToTypeOf(&corev1.Secret{}), gomega.HaveField("Name", name),
		gomega.HaveField("Data", map[string][]byte{exchange.ProbeKey: []byte(in.ProbeKey)}))))
	for _, o := range objects {
		if o.GetName() != name {
			g.Expect(text(t, []client.Object{o})).NotTo(gomega.ContainSubstring(in.ProbeKey), "%T %s", o, o.GetName())
		}
	}
	var have []string
	for _, set := range daemonSets(objects) {
		pod := set.Spec.Template.Spec
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == name })
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, m := range c.VolumeMounts {
				if i >= 0 && m.Name == pod.Volumes[i].Name {
					have = append(have, c.Name)
					g.Expect(m.SubPath).To(gomega.BeEmpty(), "the kubelet never changes a file that is mounted alone")
				}
			}
		}
	}
	g.Expect(have).To(gomega.And(gomega.Not(gomega.BeEmpty()), gomega.HaveEach("probe")))
}

// Remember adds the backend's record to the input, as the controller does in some passes.
func Remember(t testing.TB, b backend.Backend, in *backend.Input) {
	t.Helper()
	for {
		allocation, err := b.Allocate(*in)
		if err != nil {
			t.Fatalf("Allocate: %v", err)
		}
		in.FileSystem.Status = allocation.Status
		in.FileSystemNodes = assign.WithRecords(in.FileSystemNodes, allocation.Nodes)
		if len(allocation.Nodes) == 0 && !allocation.More {
			return
		}
	}
}

// Configured returns the configuration of a node's servers, by the name of the member, without targets that are only recorded.
func Configured(b backend.Backend, in backend.Input, node string) map[string]v1alpha1.NodeMember {
	out := map[string]v1alpha1.NodeMember{}
	for _, n := range b.Nodes(in) {
		if n.Spec.Node == node {
			for _, member := range n.Spec.Members {
				member.Targets = slices.DeleteFunc(member.Targets, func(t v1alpha1.MemberTarget) bool { return t.Path == "" })
				out[member.Name] = member
			}
		}
	}
	return out
}

func daemonSets(objects []client.Object) []*appsv1.DaemonSet {
	var out []*appsv1.DaemonSet
	for _, o := range objects {
		if set, ok := o.(*appsv1.DaemonSet); ok {
			out = append(out, set)
		}
	}
	return out
}

func templateHashes(objects []client.Object) map[string]string {
	out := map[string]string{}
	for _, set := range daemonSets(objects) {
		out[set.Name] = set.Spec.Template.Annotations[backend.TemplateHashAnnotation]
	}
	return out
}

// mounts lists the components with a container of the same name that mounts: clients, and servers whose targets are mounts.
var mounts = []string{"client", ComponentMount}

// onNodes lists the verbs that run programs of the node itself, in a pod with the node's process ids.
var onNodes = []string{"serve", "mount", "probe"}

// initializes is in the configuration of a server that prepares its directories.
const initializes = `"initialize":`

// granted matches the permission to initialize in JSON, with or without indentation.
const granted = `"granted": ?true`

// text returns the JSON of a value, followed by the decoded content of Secrets and ConfigMaps.
func text(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var b strings.Builder
	b.Write(raw)
	if objects, ok := value.([]client.Object); ok {
		for _, o := range objects {
			switch o := o.(type) {
			case *corev1.Secret:
				for _, name := range slices.Sorted(maps.Keys(o.Data)) {
					b.Write(o.Data[name])
				}
			case *corev1.ConfigMap:
				for _, name := range slices.Sorted(maps.Keys(o.Data)) {
					b.WriteString(o.Data[name])
				}
			}
		}
	}
	return b.String()
}

// namesServers checks that the name of each server that the operator restarts can be derived from its pod.
func namesServers(t *testing.T, b backend.Backend, in backend.Input, sets []*appsv1.DaemonSet) {
	t.Helper()
	g := gomega.NewWithT(t)
	var servers []string
	for _, i := range b.Observe(in).Servers {
		servers = append(servers, i.Name)
	}
	for _, set := range sets {
		labels := set.Spec.Template.Labels
		pod := backend.Pod{
			Component: labels[v1alpha1.LabelComponent], StoragePool: labels[v1alpha1.LabelStoragePool], Slot: labels[v1alpha1.LabelSlot],
		}
		if slices.Contains(b.Order(), pod.Component) {
			g.Expect(servers).To(gomega.ContainElement(gomega.HavePrefix(pod.Server())), set.Name)
		}
	}
}
