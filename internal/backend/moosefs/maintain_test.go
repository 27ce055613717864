package moosefs

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// threeNodes returns a filesystem with two pools of two copies, ssd and hdd, on n1, n2 and n3; the master is on n1.
func threeNodes(t *testing.T) backend.Input {
	t.Helper()
	in := healthy(t)
	in.FileSystem.Spec.StoragePools[1].Copies, in.State.StorageClasses["bulk"] = 2, "2B"
	in.State.ClassesInUse, in.State.Data.Fewest = []string{"bulk", "ssd"}, 2
	likeN2(&in, "n3", "10.0.0.3")
	return in.Indexed()
}

// likeN2 gives a node the servers that n2 has.
func likeN2(in *backend.Input, node, ip string) {
	if !slices.ContainsFunc(in.Nodes, func(n backend.Node) bool { return n.Name == node }) {
		in.Nodes = append(slices.Clone(in.Nodes), backend.Node{Name: node, IP: ip, Ready: true})
	}
	record := *in.FileSystemNodes[slices.IndexFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == "n2" })].DeepCopy()
	record.Name, record.Spec.Node = "scratch-"+node, node
	in.FileSystemNodes = append(in.FileSystemNodes, record)
	for _, s := range slices.Clone(in.State.Servers) {
		if s.IP == "10.0.0.2" {
			s.IP = ip
			in.State.Servers = append(in.State.Servers, s)
		}
	}
	for _, p := range slices.Clone(in.Pods) {
		if p.Node == "n2" {
			p.Node = node
			in.Pods = append(in.Pods, p)
		}
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		p.Name = types.NamespacedName{Namespace: "storage", Name: p.Server()}
	}
}

func TestTheAbsenceOfANodeOfAMooseFS(t *testing.T) {
	record := func(node string, ended bool) func(in *backend.Input) {
		return func(in *backend.Input) {
			m := v1alpha1.NodeMaintenance{Node: node, Address: "10.0.0." + node[1:], Since: metav1.NewTime(noon)}
			if ended {
				m.Ended = new(metav1.NewTime(noon))
			}
			in.FileSystem.Status.Maintenance = append(in.FileSystem.Status.Maintenance, m)
		}
	}
	told := func(ip string) func(in *backend.Input) {
		return func(in *backend.Input) {
			for i := range in.State.Servers {
				s := &in.State.Servers[i]
				s.Maintained = s.Maintained || s.IP == ip && s.Role == v1alpha1.RoleStorage
			}
		}
	}
	type changes = []func(in *backend.Input)
	const mixed = "it has 2 chunkservers, and files of a storage class that is not the operator's own may have all their copies on them"
	for name, c := range map[string]struct {
		node   string
		change changes
		costs  string
		most   int
		waits  string
	}{
		"all that it holds has a copy elsewhere":                {node: "n2", most: 1},
		"the master is on it":                                   {node: "n1", most: 1, costs: "there is one master"},
		"two of a domain may go, when there are three copies":   {node: "n2", most: 2, change: changes{three}},
		"a pool keeps one copy":                                 {node: "n2", most: 1, costs: "pool ssd keeps one copy", change: changes{func(in *backend.Input) { in.FileSystem.Spec.StoragePools[0].Copies = 1 }}},
		"users have files with one copy":                        {node: "n2", most: 1, costs: "there are chunks with one copy", change: changes{func(in *backend.Input) { in.State.Data.Fewest = 1 }}},
		"a pool has too few nodes to write":                     {node: "n2", most: 1, costs: "pool ssd keeps 3 copies on as many nodes, and without this one 2 can take new files", change: changes{func(in *backend.Input) { in.FileSystem.Spec.StoragePools[0].Copies = 3 }}},
		"a pool has too few nodes, because another one is away": {node: "n2", most: 1, costs: "pool ssd keeps 2 copies on as many nodes, and without this one 1 can take new files", change: changes{record("n3", false)}},
		"one that is back is not away":                          {node: "n2", most: 1, change: changes{record("n3", true)}},
		"files of users may have all copies on one node": {node: "n2", most: 1, costs: mixed, change: changes{func(in *backend.Input) {
			in.State.ClassesInUse, in.State.StorageClasses["mine"] = []string{"mine"}, "2*"
		}}},
		"files of two labels, too": {node: "n2", most: 1, costs: mixed, change: changes{func(in *backend.Input) {
			in.State.ClassesInUse, in.State.StorageClasses["mine"] = []string{"mine"}, "1A,1B"
		}}},
		"a class that is not strict, too": {node: "n2", most: 1, costs: mixed, change: changes{func(in *backend.Input) { in.State.StorageClasses["ssd"] = "2A; mode STD" }}},
		"three copies of what users have are enough for two": {node: "n2", most: 1, change: changes{func(in *backend.Input) {
			three(in)
			in.State.ClassesInUse, in.State.StorageClasses["mine"] = []string{"mine"}, "3*"
		}}},
		"a probe of an earlier operator does not say":              {node: "n2", most: 1, costs: mixed, change: changes{func(in *backend.Input) { in.State.ClassesInUse = nil }}},
		"without any data nobody needs to say":                     {node: "n2", most: 1, change: changes{func(in *backend.Input) { in.State.ClassesInUse, in.State.Data = nil, backend.DataHealth{Known: true} }}},
		"a node without data may go with all others of its kind":   {node: "n9", most: backend.Most},
		"MooseFS does not show it yet":                             {node: "n2", most: 1, waits: "the chunkservers of the node are in maintenance mode", change: changes{record("n2", false)}},
		"MooseFS shows it":                                         {node: "n2", most: 1, change: changes{record("n2", false), told("10.0.0.2")}},
		"MooseFS does not show the end yet":                        {node: "n2", most: 1, waits: "the chunkservers of the node are not in maintenance mode any more", change: changes{record("n2", true), told("10.0.0.2")}},
		"MooseFS shows that it is over":                            {node: "n2", most: 1, change: changes{record("n2", true)}},
		"the master lists no chunkserver while all are away":       {node: "n2", most: 1, waits: "a chunkserver is connected: mfscli lists none while all are away", change: changes{record("n2", true), func(in *backend.Input) { s := *in.State; s.Servers = nil; in.State = &s }}},
		"what a person has switched on is no matter of the record": {node: "n2", most: 1, change: changes{told("10.0.0.2")}},
		"the state is unknown while the master is silent":          {node: "n2", most: 1, costs: mixed, waits: "the master answers", change: changes{record("n2", false), func(in *backend.Input) { in.State = nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := threeNodes(t)
			for _, change := range c.change {
				change(&in)
			}
			in = in.Indexed()
			got := New().Absence(in, New().Observe(in), c.node)
			g.Expect(got).To(Equal(backend.Absence{Costs: c.costs, Together: c.most, Waits: c.waits}))
		})
	}
}

// three gives all data three copies, on four nodes.
func three(in *backend.Input) {
	likeN2(in, "n4", "10.0.0.4")
	in.State.Data.Fewest = 3
	for i := range in.FileSystem.Spec.StoragePools {
		in.FileSystem.Spec.StoragePools[i].Copies = 3
	}
}

// maintenanceJobsOf returns the maintenance jobs among the members, and the names of those that are kept.
func maintenanceJobsOf(t *testing.T, in backend.Input) (commands []string, kept []string) {
	t.Helper()
	g := NewWithT(t)
	objects, err := New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		switch o := o.(type) {
		case *metav1.PartialObjectMetadata:
			kept = append(kept, o.Name)
		case *batchv1.Job:
			if o.Labels[v1alpha1.LabelComponent] != componentMaintenance {
				continue
			}
			var told spec.Configure
			g.Expect(json.Unmarshal([]byte(o.Spec.Template.Annotations[podspec.ToldAnnotation]), &told)).To(Succeed())
			g.Expect(told.Mount).To(BeNil())
			g.Expect(o.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add).To(BeEmpty())
			for _, c := range told.Commands {
				g.Expect(c.Argv[:6]).To(Equal([]string{"mfscli", "-n", "-H", "10.0.0.1", "-P", "9421"}))
				commands = append(commands, c.Argv[6])
			}
		}
	}
	return commands, kept
}

func TestAJobSwitchesTheModesThatTheRecordAsksForAndTheMasterDoesNotShow(t *testing.T) {
	g := NewWithT(t)
	in := threeNodes(t)
	commands, kept := maintenanceJobsOf(t, in)
	g.Expect(append(commands, kept...)).To(BeEmpty())

	in.FileSystem.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n2", Address: "10.0.0.2"}, {Node: "gone", Address: "10.0.0.3", Ended: new(metav1.NewTime(noon))}}
	for i := range in.State.Servers {
		s := &in.State.Servers[i]
		s.Maintained = s.IP != "10.0.0.2" && s.Role == v1alpha1.RoleStorage
	}
	commands, _ = maintenanceJobsOf(t, in)
	g.Expect(commands).To(HaveExactElements("-CM1/10.0.0.2/9435", "-CM1/10.0.0.2/9436", "-CM0/10.0.0.3/9435", "-CM0/10.0.0.3/9436"))

	taken := in
	taken.Nodes = append(slices.Clone(in.Nodes), backend.Node{Name: "attacker", IP: "10.0.0.2"})
	commands, _ = maintenanceJobsOf(t, taken.Indexed())
	g.Expect(commands).To(HaveExactElements("-CM0/10.0.0.3/9435", "-CM0/10.0.0.3/9436"), "two nodes report 10.0.0.2")

	name, _ := maintenanceName(in)
	runs := backend.Job{Name: "scratch-maintenance-of-before", Component: componentMaintenance}
	in.Jobs = append(in.Jobs, runs)
	in = in.Indexed()
	commands, kept = maintenanceJobsOf(t, in)
	g.Expect(commands).To(BeEmpty(), "what a job does changes what is left to do")
	g.Expect(kept).To(ContainElement(runs.Name))

	in.Jobs = []backend.Job{{Name: name, Component: componentMaintenance, Succeeded: true, Ended: noon.Add(-time.Minute)}}
	in = in.Indexed()
	commands, kept = maintenanceJobsOf(t, in)
	g.Expect(commands).To(BeEmpty())
	g.Expect(kept).To(ContainElement(name))
	g.Expect(New().Absence(in, New().Observe(in), "n2").Waits).To(BeEmpty(), "a probe of an earlier operator does not show it")
	g.Expect(New().Observe(in).Repeat).NotTo(ContainElement(name))
	in.Jobs[0].Ended = noon.Add(-time.Hour)
	g.Expect(New().Observe(in.Indexed()).Repeat).To(ContainElement(name), "mfscli ends with 0 whatever the master says")

	in.State, in.StateError = nil, "nobody listens"
	commands, kept = maintenanceJobsOf(t, in.Indexed())
	g.Expect(commands).To(BeEmpty())
	g.Expect(kept).To(ContainElement(name), "what is there goes on while nobody knows")
}
