package beegfs

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

const rackLabel = "topology.kubernetes.io/rack"

// racks puts nodes into racks; a node with the rack "" has no label.
func racks(in *backend.Input, of map[string]string) nodefacts.Domains {
	in.FileSystem.Spec.FailureDomains.Label = rackLabel
	for node, rack := range of {
		labels := map[string]string{}
		if rack != "" {
			labels[rackLabel] = rack
		}
		found := false
		for i := range in.Nodes {
			if in.Nodes[i].Name == node {
				found = true
				if rack != "" {
					in.Nodes[i].Labels[rackLabel] = rack
				}
			}
		}
		if !found {
			in.Nodes = append(in.Nodes, backend.Node{Name: node, Labels: labels})
		}
	}
	return nodefacts.NewDomains(*in)
}

func TestBuddiesAreOnDifferentNodesAndInDifferentFailureDomainsAsLongAsThereAreAny(t *testing.T) {
	alike := map[string]string{"a": "r1", "b": "r1", "c": "r2", "d": "r2"}
	cases := map[string]struct {
		members []member
		racks   map[string]string
		pairs   [][2]int32
	}{
		"without racks, the nodes that have most go first": {[]member{{1, "a"}, {2, "a"}, {3, "b"}, {4, "c"}}, nil, [][2]int32{{1, 3}, {2, 4}}},
		"what is left on one node stays alone":             {[]member{{1, "a"}, {2, "a"}, {3, "a"}, {4, "b"}}, nil, [][2]int32{{1, 4}}},
		"a node alone makes no pair":                       {[]member{{1, "a"}, {2, "a"}}, nil, nil},
		"by racks, and not by names": {
			[]member{{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}}, alike, [][2]int32{{1, 3}, {2, 4}}},
		"a rack with more than the other pairs the rest in itself": {
			[]member{{1, "a"}, {2, "a"}, {3, "b"}, {4, "b"}, {5, "c"}, {6, "c"}}, alike, [][2]int32{{1, 5}, {2, 4}, {3, 6}}},
		"all in one rack are paired all the same": {[]member{{1, "a"}, {2, "b"}}, alike, [][2]int32{{1, 2}}},
		"a node without the label is a failure domain of its own": {
			[]member{{1, "a"}, {2, "b"}, {3, "x"}, {4, "x"}}, map[string]string{"a": "r1", "b": "r1", "x": ""}, [][2]int32{{1, 3}, {2, 4}}},
		"a rack that is called like a node is not that node": {
			[]member{{1, "a"}, {2, "x"}, {3, "b"}, {4, "a"}}, map[string]string{"a": "x", "b": "x", "x": ""}, [][2]int32{{1, 2}, {3, 4}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			domains := nodefacts.Domains{}
			if c.racks != nil {
				domains = racks(&backend.Input{FileSystem: &v1alpha1.FileSystem{}}, c.racks)
			}
			NewWithT(t).Expect(pairs(c.members, domains)).To(Equal(c.pairs))
		})
	}
}

func TestAllBuddiesOfAThousandNodesAreInDifferentRacks(t *testing.T) {
	g := NewWithT(t)
	of, members := map[string]string{}, []member{}
	for n := range int32(1000) {
		of[fmt.Sprintf("n%d", n)] = fmt.Sprintf("r%d", n/25)
		for d := range int32(24) {
			members = append(members, member{1 + n*24 + d, fmt.Sprintf("n%d", n)})
		}
	}
	domains := racks(&backend.Input{FileSystem: &v1alpha1.FileSystem{}}, of)
	groups := pairs(members, domains)
	g.Expect(groups).To(HaveLen(12000))
	for _, group := range groups {
		a, b := members[group[0]-1].node, members[group[1]-1].node
		if !domains.Apart(a, b) {
			t.Fatalf("%s and %s are in one rack", a, b)
		}
	}
}

// mirrored returns a healthy filesystem whose pool ssd and metadata are mirrored across oss1 and oss2, which are in these racks.
func mirrored(t *testing.T, racksOf map[string]string) backend.Input {
	t.Helper()
	in := healthy(t, "7.4.6")
	in.FileSystem.Spec.StoragePools[0].Copies = 2
	in.FileSystem.Spec.BeeGFS.MirrorMetadata = true
	in.FileSystem.Status.BeeGFS.MetadataMirrored = new(metav1.NewTime(noon.Add(-time.Hour)))
	in.State.MetadataMirrored = true
	for role, of := range map[v1alpha1.Role]map[int32]string{
		v1alpha1.RoleMetadata: nodesByID(in, v1alpha1.RoleMetadata), v1alpha1.RoleStorage: nodesByID(in, v1alpha1.RoleStorage),
	} {
		var members []member
		for _, id := range backend.SortedKeys(of) {
			if t := listed(in, role, id); role == v1alpha1.RoleMetadata || t.PoolID == poolID(0) {
				members = append(members, member{id, of[id]})
			}
		}
		for i, group := range pairs(members, nodefacts.Domains{}) {
			in.State.Mirrors = append(in.State.Mirrors, backend.Mirror{Role: role, ID: int32(i) + 1, Primary: group[0], Secondary: group[1]})
		}
	}
	slices.SortFunc(in.State.Mirrors, func(a, b backend.Mirror) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Primary, b.Primary))
	})
	if racksOf != nil {
		racks(&in, racksOf)
	}
	in.Jobs = nil
	for _, p := range workOf(in).pools {
		in.Jobs = append(in.Jobs, backend.Job{Name: p.name, Component: componentConfigure, Succeeded: true, Ended: noon.Add(-30 * time.Minute)})
	}
	return in
}

// together returns the pods that may be restarted with others.
func together(in backend.Input) []string {
	return backend.SortedKeys(New().Observe(in).Together)
}

func TestServersAreRestartedTogetherOnlyWhereEveryBuddyIsProvenElsewhere(t *testing.T) {
	apart := map[string]string{"oss1": "r1", "oss2": "r2"}
	storage := []string{"storage-ssd--oss1", "storage-ssd--oss2"}
	metadata := []string{
		"meta--0-oss1", "meta--0-oss2", "meta--1-oss1", "meta--1-oss2", "meta--2-oss1", "meta--2-oss2", "meta--3-oss1", "meta--3-oss2"}
	first := func(in *backend.Input, role v1alpha1.Role) backend.Mirror {
		return in.State.Mirrors[slices.IndexFunc(in.State.Mirrors, func(m backend.Mirror) bool { return m.Role == role })]
	}
	cases := map[string]struct {
		racks  map[string]string
		change func(in *backend.Input)
		pods   []string
	}{
		"all that is mirrored, and not the pool with one copy": {racks: apart, pods: slices.Concat(metadata, storage)},
		"without racks, each node is a failure domain":         {pods: slices.Concat(metadata, storage)},
		"none when both sides are in one rack":                 {racks: map[string]string{"oss1": "r1", "oss2": "r1"}},
		"none while the node of the buddies is not in the cluster": {racks: apart, change: func(in *backend.Input) {
			in.Nodes = slices.DeleteFunc(in.Nodes, func(n backend.Node) bool { return n.Name == "oss2" })
		}},
		"none while BeeGFS does not answer":            {racks: apart, change: func(in *backend.Input) { in.State = nil }},
		"no metadata server before it is all mirrored": {racks: apart, pods: storage, change: func(in *backend.Input) { in.State.MetadataMirrored = false }},
		"not the server whose buddy is behind": {racks: apart, pods: append(slices.Clone(metadata), storage[1]), change: func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in, v1alpha1.RoleStorage).Secondary).Consistency = cli.Behind
		}},
		"not the server whose buddy is in a state that BeeGFS does not know": {racks: apart, pods: append(slices.Clone(metadata), storage[1]), change: func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in, v1alpha1.RoleStorage).Secondary).Consistency = ""
		}},
		"not the server whose buddy is offline": {racks: apart, pods: append(slices.Clone(metadata), storage[1]), change: func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in, v1alpha1.RoleStorage).Secondary).Online = false
		}},
		"not the servers of which one target has no buddy": {racks: apart, pods: metadata, change: func(in *backend.Input) {
			gone := first(in, v1alpha1.RoleStorage)
			in.State.Mirrors = slices.DeleteFunc(in.State.Mirrors, func(m backend.Mirror) bool { return m == gone })
		}},
		"not the server of which a disk was taken out with what is on it, nor its buddy": {racks: apart, pods: metadata, change: func(in *backend.Input) {
			target := first(in, v1alpha1.RoleStorage).Primary
			for _, server := range in.Given() {
				for _, t := range server.Targets {
					if server.Role == v1alpha1.RoleStorage && t.ID == target {
						in.Targets = deleteTarget(in.Targets, t.Name)
					}
				}
			}
		}},
		"not the server whose buddy has stopped since BeeGFS was asked": {racks: apart, pods: append(slices.Clone(metadata), storage[1]), change: func(in *backend.Input) {
			for i := range in.Pods {
				if in.Pods[i].Name.Name == storage[1] {
					in.Pods[i].Ready = false
				}
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := mirrored(t, c.racks)
			if c.change != nil {
				c.change(&in)
			}
			if got := together(in); len(c.pods) > 0 {
				NewWithT(t).Expect(got).To(ConsistOf(c.pods))
			} else {
				NewWithT(t).Expect(got).To(BeEmpty())
			}
		})
	}
}

func TestTheConditionSpreadNamesGroupsInOneFailureDomainAndNodesWithoutTheLabel(t *testing.T) {
	g := NewWithT(t)
	g.Expect(New().Observe(mirrored(t, nil)).Spread).To(BeNil(), "nobody asked for it")
	g.Expect(New().Observe(mirrored(t, map[string]string{"oss1": "r1", "oss2": "r2"})).Spread).To(HaveValue(And(
		HaveField("Reason", v1alpha1.ReasonAsAsked), HaveField("Message", "the nodes are in 2 failure domains, and the sides of all 6 buddy groups in different ones"))))
	in := mirrored(t, map[string]string{"oss1": "r1", "oss2": "r1"})
	g.Expect(New().Observe(in).Spread).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonCopiesTogether),
		HaveField("Message", And(HavePrefix("6 buddy groups have both sides in one failure domain: metadata group 1 (1 on node oss1, 5 on node oss2)"),
			HaveSuffix("a group stays as it was made"))))))
	g.Expect(workOf(in).commands).To(BeEmpty(), "groups that exist are never changed")
	in = mirrored(t, map[string]string{"oss1": "r1", "oss2": ""})
	seen := New().Observe(in)
	g.Expect(seen.Spread).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonNodesUnlabeled), HaveField("Message", And(
		HavePrefix("1 node has no label topology.kubernetes.io/rack, so each is a failure domain of its own: oss2"), ContainSubstring("kubectl label node NODE"))))))
	g.Expect(seen.Problems).To(BeEmpty(), "it holds up nothing")
	in.State = nil
	g.Expect(New().Observe(in).Spread).To(HaveValue(HaveField("Reason", v1alpha1.ReasonDataUnknown)))
}

func TestNoGroupIsMadeWhileTheFailureDomainOfANodeIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	in := mirrored(t, map[string]string{"oss1": "r1", "oss2": "r2"})
	in.State.Mirrors, in.Jobs = nil, nil
	in.FileSystem.Status.BeeGFS.MetadataMirrored, in.State.MetadataMirrored = nil, false
	in.FileSystem.Spec.BeeGFS.MirrorMetadata = false
	g.Expect(lines(in, workOf(in).commands)).To(HaveLen(2))
	in.Nodes = slices.DeleteFunc(in.Nodes, func(n backend.Node) bool { return n.Name == "oss2" })
	g.Expect(workOf(in).commands).To(BeEmpty())
	g.Expect(workOf(in).why).To(ContainElement("buddy groups of pool ssd are made when all its targets are online, and their nodes in the cluster"))
}

func TestAPoolWhoseTargetsHaveNoInodeLeftIsFull(t *testing.T) {
	g := NewWithT(t)
	in := mirrored(t, nil)
	full := func(used int64) []string {
		for i := range in.State.Targets {
			in.State.Targets[i].Inodes, in.State.Targets[i].UsedInodes = 1000, used
		}
		seen := New().Observe(in)
		full, _ := seen.Full(in.FileSystem.Spec.StoragePools)
		return full
	}
	g.Expect(full(900)).To(BeEmpty())
	g.Expect(full(1000)).To(ContainElement(And(HavePrefix("ssd ("), ContainSubstring("100% of inodes"))))
}
