package moosefs

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// following returns a filesystem with a metalogger on n2, which the master lists, and its master on n1.
func following() (backend.Input, backend.Observation) {
	in := everything("4.57.5")
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Directory: "/data/meta"}
	in.FileSystem.Spec.MooseFS.Metaloggers.NodeSelector = v1alpha1.NodeSelector{"kubernetes.io/hostname": "n2"}
	for i := range in.Nodes {
		in.Nodes[i].Labels = map[string]string{"kubernetes.io/hostname": in.Nodes[i].Name}
	}
	started := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	in.Pods = []backend.Pod{
		{Name: types.NamespacedName{Name: "master"}, Component: componentMaster, Node: "n1", Ready: true, Started: started},
		{Name: types.NamespacedName{Name: "metalogger"}, Component: componentMetalogger, Node: "n2", Ready: true, Started: started},
	}
	return in.Indexed(), backend.Observation{Servers: []backend.ServerStatus{{Name: "metalogger.n2", Online: true}}}
}

func copiesNow(now time.Time) []backend.MetadataCopy {
	in, seen := following()
	return New().MetadataCopies(in, seen, now)
}

func TestACopyFollowsAgainWhen(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	before := copiesNow(now)
	NewWithT(t).Expect(before).To(HaveExactElements(And(HaveField("Source.Node", "n2"), HaveField("Source.Kind", v1alpha1.RecoveryFollower),
		HaveField("Follows", Not(BeEmpty())), HaveField("Pod.Name", "metalogger"))))
	for name, c := range map[string]struct {
		change  func(in *backend.Input, seen *backend.Observation)
		follows bool
		away    string
	}{
		"the master was started":     {func(in *backend.Input, _ *backend.Observation) { in.Pods[0].Started = now }, true, ""},
		"the metalogger was started": {func(in *backend.Input, _ *backend.Observation) { in.Pods[1].Started = now }, true, ""},
		"its pod is another one":     {func(in *backend.Input, _ *backend.Observation) { in.Pods[1].Name.Name = "metalogger-2" }, true, ""},
		"its pod is not ready":       {func(in *backend.Input, _ *backend.Observation) { in.Pods[1].Ready = false }, false, ""},
		"there is no pod":            {func(in *backend.Input, _ *backend.Observation) { in.Pods = in.Pods[:1] }, false, "there is no pod of it on the node"},
		"the master does not list it": {func(_ *backend.Input, seen *backend.Observation) {
			seen.Servers[0].Online, seen.Servers[0].Message = false, "the master does not list this metalogger"
		}, false, "the master does not list this metalogger"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in, seen := following()
			c.change(&in, &seen)
			is := New().MetadataCopies(in, seen, now)
			g.Expect(is).To(HaveLen(1))
			g.Expect(is[0].Follows).NotTo(Equal(before[0].Follows))
			g.Expect(is[0].Follows != "").To(Equal(c.follows))
			g.Expect(is[0].Away).To(Equal(c.away))
			g.Expect(is[0].Began).To(Equal(in.Pods[0].Started))
		})
	}
}

func TestAMetaloggerDownloadsAllOfTheMetadataByItsTimetable(t *testing.T) {
	for name, c := range map[string]struct {
		options   v1alpha1.Options
		now, last string
	}{
		"each day":                 {nil, "2026-11-23T12:00:00Z", "2026-11-23T00:10:30Z"},
		"not yet today":            {nil, "2026-11-23T00:10:29Z", "2026-11-22T00:10:30Z"},
		"each four hours":          {v1alpha1.Options{"META_DOWNLOAD_FREQ": "4"}, "2026-11-23T12:00:00Z", "2026-11-23T08:10:30Z"},
		"at most half of its logs": {v1alpha1.Options{"META_DOWNLOAD_FREQ": "24", "BACK_LOGS": "8"}, "2026-11-23T12:11:00Z", "2026-11-23T12:10:30Z"},
		"never":                    {v1alpha1.Options{"META_DOWNLOAD_FREQ": "0"}, "2026-11-23T12:00:00Z", "0001-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in, seen := following()
			in.FileSystem.Spec.MooseFS.Metaloggers.Config = c.options
			now, err := time.Parse(time.RFC3339, c.now)
			g.Expect(err).NotTo(HaveOccurred())
			is := New().MetadataCopies(in, seen, now)
			g.Expect(is).To(HaveLen(1))
			g.Expect(is[0].Fetched.UTC().Format(time.RFC3339)).To(Equal(c.last))
		})
	}
}

func TestTheMastersNodeWaitsForAProvenCopyOnAnotherNodeOrAPersonsWordForThisVersion(t *testing.T) {
	g := NewWithT(t)
	in, seen := following()
	fs := in.FileSystem
	copyOn := func(node string, result v1alpha1.MetadataCopyResult) v1alpha1.MetadataCopyStatus {
		return v1alpha1.MetadataCopyStatus{Node: node, Follows: "1a2b", Result: result}
	}
	waits := func() string { return New().Absence(in, seen, "n1").Before }
	g.Expect(waits()).To(BeEmpty(), "there is no metalogger, so no copy can be proven")
	fs.Status.MetadataCopies = []v1alpha1.MetadataCopyStatus{copyOn("n1", v1alpha1.MetadataCopyProven), copyOn("n2", v1alpha1.MetadataCopyUnread)}
	g.Expect(waits()).To(HavePrefix("a copy of the metadata is proven (to do without, set spec.updates.upgradeWithoutBackup to"), "the copy beside the master goes with it")
	g.Expect(New().Absence(in, seen, "n2").Before).To(BeEmpty(), "the master is not on this node")
	fs.Spec.Updates.UpgradeWithoutBackup = fs.Spec.Version
	g.Expect(waits()).To(BeEmpty())
	fs.Spec.Updates.UpgradeWithoutBackup = ""
	fs.Status.MetadataCopies[1].Result = v1alpha1.MetadataCopyProven
	g.Expect(waits()).To(BeEmpty())
}
