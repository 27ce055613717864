package moosefs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/node/spec"
)

const rackLabel = "topology.kubernetes.io/rack"

// racks puts nodes into racks.
func racks(in *backend.Input, of map[string]string) {
	in.FileSystem.Spec.FailureDomains.Label = rackLabel
	for i := range in.Nodes {
		delete(in.Nodes[i].Labels, rackLabel)
		if rack := of[in.Nodes[i].Name]; rack != "" {
			in.Nodes[i].Labels[rackLabel] = rack
		}
	}
}

// secretOf returns the content of a filesystem's Secret, and the hash of the master's template.
func secretOf(t *testing.T, in backend.Input) (data map[string][]byte, master spec.Run, hash string) {
	t.Helper()
	objects, err := New().Members(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Secret:
			if o.Name == secretName(in.FileSystem) {
				data = o.Data
			}
		case *appsv1.DaemonSet:
			if o.Labels[v1alpha1.LabelComponent] == componentMaster {
				hash = o.Spec.Template.Annotations[backend.TemplateHashAnnotation]
			}
		}
	}
	if err := json.Unmarshal(data["master.json"], &master); err != nil {
		t.Fatal(err)
	}
	return data, master, hash
}

func TestTheMasterGetsTheRackOfEachNodeThatHoldsDataWithoutARestart(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	data, run, before := secretOf(t, in)
	g.Expect(string(data[topologyKey])).To(HavePrefix("# "), "nobody asked for it")
	g.Expect(run.Reload).To(Equal([]string{"/etc/parallelfs/mfstopology.cfg"}))
	g.Expect(run.Files[0].Content).To(ContainSubstring("TOPOLOGY_FILENAME = /etc/parallelfs/mfstopology.cfg\n"))

	in.FileSystem.Spec.MooseFS.Config.Metadata["CHUNKS_UNIQUE_MODE"] = "0"
	_, _, with := secretOf(t, in)
	delete(in.FileSystem.Spec.MooseFS.Config.Metadata, "CHUNKS_UNIQUE_MODE")
	racks(&in, map[string]string{"n1": "r1", "n3": "r1"})
	data, _, after := secretOf(t, in)
	g.Expect(string(data[topologyKey])).To(Equal("10.0.0.1 r1\n10.0.0.2 node/n2\n"), "a node without the label is alone, and n3 holds nothing")
	g.Expect(after).To(Equal(with), "one restart, for the option that is the operator's now")
	g.Expect(after).NotTo(Equal(before))
	racks(&in, map[string]string{"n1": "r1", "n2": "r2"})
	data, _, again := secretOf(t, in)
	g.Expect(string(data[topologyKey])).To(Equal("10.0.0.1 r1\n10.0.0.2 r2\n"))
	g.Expect(again).To(Equal(after), "another rack is read without a restart")

	long := "row-12." + strings.Repeat("r", 55)
	racks(&in, map[string]string{"n1": long + "1", "n2": long + "2"})
	data, _, _ = secretOf(t, in)
	g.Expect(string(data[topologyKey])).To(MatchRegexp("^10.0.0.1 row-12.r/[0-9a-f]{12}\n10.0.0.2 row-12.r/[0-9a-f]{12}\n$"), "long names are short, and differ")
	lines := strings.Fields(string(data[topologyKey]))
	g.Expect(lines[1]).NotTo(Equal(lines[3]))

	in.FileSystem.Spec.MooseFS.Config.Metadata["CHUNKS_UNIQUE_MODE"] = "1"
	_, err := New().Members(in)
	g.Expect(err).To(MatchError(ContainSubstring("spec.moosefs.config.metadata.CHUNKS_UNIQUE_MODE is set by the operator itself")))
}

func TestAPoolAsksForDifferentRacksWhenItHasEnoughOfThem(t *testing.T) {
	cases := map[string]struct {
		version string
		racks   map[string]string
		copies  int32
		class   string
		mode    string
		reason  string
		says    string
	}{
		"it is not requested":                 {"4.57.5", nil, 2, "2A", "", "", ""},
		"one rack for each copy":              {"4.57.5", map[string]string{"n1": "r1", "n2": "r2"}, 2, "2A/[RACK]", "0", v1alpha1.ReasonAsAsked, "are in 2 failure domains"},
		"a node alone counts":                 {"4.57.5", map[string]string{"n1": "r1"}, 2, "2A/[RACK]", "0", v1alpha1.ReasonNodesUnlabeled, "1 node has no label " + rackLabel},
		"fewer racks than copies":             {"4.57.5", map[string]string{"n1": "r1", "n2": "r1"}, 2, "2A", "0", v1alpha1.ReasonCopiesTogether, "pool ssd keeps 2 copies, and its nodes are in 1 failure domain"},
		"one copy is in one rack":             {"4.57.5", map[string]string{"n1": "r1", "n2": "r1"}, 1, "1A", "0", v1alpha1.ReasonAsAsked, "are in 1 failure domain"},
		"3.x has a mode instead":              {"3.0.117", map[string]string{"n1": "r1", "n2": "r2"}, 2, "2A", "2", v1alpha1.ReasonAsAsked, "are in 2 failure domains"},
		"3.x with fewer racks than copies":    {"3.0.117", map[string]string{"n1": "r1", "n2": "r1"}, 2, "2A", "0", v1alpha1.ReasonCopiesTogether, "MooseFS 3 has one rule for all pools"},
		"3.x when nobody asks for it":         {"3.0.117", nil, 2, "2A", "", "", ""},
		"a rack of an unknown node is none":   {"4.57.5", map[string]string{"n1": "r1", "n2": "gone"}, 2, "2A", "0", v1alpha1.ReasonCopiesTogether, "in 1 failure domains"},
		"an empty label is no failure domain": {"4.57.5", map[string]string{"n1": "r1", "n2": ""}, 2, "2A/[RACK]", "0", v1alpha1.ReasonNodesUnlabeled, "failure domain of its own: n2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := everything(c.version)
			in.FileSystem.Spec.StoragePools[0].Copies = c.copies
			backendtest.Remember(t, New(), &in)
			if c.racks != nil {
				racks(&in, c.racks)
			}
			in.Nodes = slices.DeleteFunc(in.Nodes, func(n backend.Node) bool { return c.racks[n.Name] == "gone" })
			data, master, _ := secretOf(t, in)
			g.Expect(string(data["storageclasses.json"])).To(ContainSubstring(`"` + c.class + `"`))
			if c.mode == "" {
				g.Expect(master.Files[0].Content).NotTo(ContainSubstring("CHUNKS_UNIQUE_MODE"))
			} else {
				g.Expect(master.Files[0].Content).To(ContainSubstring("CHUNKS_UNIQUE_MODE = " + c.mode + "\n"))
			}
			seen := New().Observe(in)
			if c.reason == "" {
				g.Expect(seen.Spread).To(BeNil())
				return
			}
			g.Expect(seen.Spread).To(HaveValue(And(HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.says)))))
		})
	}
}

func TestAFilesystemServesWhileItsClassesGetTheRacks(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t)
	racks(&in, map[string]string{"n1": "r1", "n2": "r2"})
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(ConsistOf(And(HaveField("Reason", v1alpha1.ReasonPoolsNotPlaced), HaveField("Message", ContainSubstring(`should be "2A/[RACK]"`)))))
	g.Expect(seen.Serves).To(BeTrue())
	in.State.StorageClasses["ssd"] = "2A/[RACK]"
	g.Expect(New().Observe(in).Problems).To(BeEmpty())
	in.State.StorageClasses["ssd"] = "1A/[RACK]"
	g.Expect(New().Observe(in).Serves).To(BeFalse())
}

func TestAsManyChunkserversAreRestartedTogetherAsLeaveACopyOfEverything(t *testing.T) {
	cases := map[string]struct {
		copies []int32
		data   backend.DataHealth
		most   int
	}{
		"three copies of all leave one when two are away":                                  {[]int32{3, 3}, backend.DataHealth{Known: true, Stable: 7, Fewest: 3}, 2},
		"two copies of something allow one":                                                {[]int32{3, 3}, backend.DataHealth{Known: true, Stable: 7, Fewest: 2}, 1},
		"a class of somebody else with one copy allows one":                                {[]int32{3, 3}, backend.DataHealth{Known: true, Stable: 7, Fewest: 1}, 1},
		"a pool with fewer copies counts before its files":                                 {[]int32{4, 2}, backend.DataHealth{Known: true, Stable: 7, Fewest: 4}, 1},
		"without data, the pools count":                                                    {[]int32{4, 3}, backend.DataHealth{Known: true}, 2},
		"unknown is not safe: the data is not counted":                                     {[]int32{3, 3}, backend.DataHealth{Stable: 7, Fewest: 3}, 0},
		"unknown is not safe: copies are missing":                                          {[]int32{3, 3}, backend.DataHealth{Known: true, Undergoal: 1, Stable: 6, Fewest: 3}, 0},
		"unknown is not safe: there are chunks, of so many copies that nobody understands": {[]int32{3, 3}, backend.DataHealth{Known: true, Stable: 7}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t)
			for i, copies := range c.copies {
				in.FileSystem.Spec.StoragePools[i].Copies = copies
			}
			for i := range in.Pods {
				in.Pods[i].Name.Name = in.Pods[i].Component + in.Pods[i].StoragePool + in.Pods[i].Node
			}
			in.State.Data = c.data
			seen := New().Observe(in)
			if c.most == 0 {
				g.Expect(seen.Together).To(BeEmpty())
				return
			}
			g.Expect(seen.Together).To(HaveLen(4), "the master and metaloggers are restarted alone")
			g.Expect(seen.Together).To(HaveKeyWithValue("chunkserverssdn1", c.most))
		})
	}
	in := healthy(t)
	in.State = nil
	NewWithT(t).Expect(New().Observe(in).Together).To(BeEmpty())
}
