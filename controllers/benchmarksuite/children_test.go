package benchmarksuite

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestASuiteThatCanNotBeMeantIsRefused(t *testing.T) {
	const devices = `{"metadataServers":{"targets":{"select":null,"devices":[{"node":"n1","id":"wwn-0x1"}]}}}`
	variants := func(patches ...string) func(s *v1alpha1.BenchmarkSuite) {
		return func(s *v1alpha1.BenchmarkSuite) {
			for i, p := range patches {
				s.Spec.Variants[i].FileSystem = patch(p)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(s *v1alpha1.BenchmarkSuite)
		says   string
	}{
		"a patch that makes no FileSystem": {
			variants(`{}`, `{"metadataServers":{"targets":{"select":{"countPerNode":"many"}}}}`),
			"variant two: spec.fileSystem with spec.variants[two].fileSystem: ",
		},
		"a name that is too long for a FileSystem": {
			func(s *v1alpha1.BenchmarkSuite) {
				s.Name = strings.Repeat("n", 32)
				s.Spec.Variants[1].Name = "much-longer"
			},
			"which has 44 characters, and at most 40 are allowed; shorten metadata.name of the suite, or the variant's name",
		},
		"a policy that takes over what is there": {
			variants(`{"provisioning":{"formatPolicy":"Never"}}`), "variant one: spec.fileSystem.provisioning.formatPolicy is Never",
		},
		"data that is taken over, and destroyed": {
			func(s *v1alpha1.BenchmarkSuite) {
				destroys(s)
				s.Spec.Variants[0].FileSystem = patch(`{"type":"BeeGFS","beegfs":{"adopt":[{"name":"meta-0.n1"}]}}`)
			},
			"variant one: spec.fileSystem.beegfs.adopt takes over data that was there before, which is never the suite's to wipe",
		},
		"a directory for two variants": {
			func(s *v1alpha1.BenchmarkSuite) {
				destroys(s)
				variants(`{"metadataServers":{"targets":{"select":null,"directories":["/data/meta"]}}}`, `{"metadataServers":{"targets":{"select":null,"directories":["/data/meta"]}}}`)(s)
			},
			"variants one and two both keep data in the directory /data/meta (metadataServers and metadataServers, on the same nodes): a directory is never wiped",
		},
		"a disk for two variants that is not wiped between them": {
			variants(devices, devices), "variants one and two both use the disk wwn-0x1 of node n1 (metadataServers and metadataServers), and spec.afterVariant Delete leaves on it",
		},
		"two that stay, mounted over each other": {
			func(s *v1alpha1.BenchmarkSuite) {
				keeps(s)
				const mounted = `{"clients":{"nodeSelector":{"c":""},"mountPath":"/mnt/fs"}}`
				variants(mounted, mounted)(s)
			},
			"variants one and two are both mounted at /mnt/fs on the same nodes",
		},
		"a table that was not published": {
			func(s *v1alpha1.BenchmarkSuite) { s.Spec.Baseline = &v1alpha1.SuiteBaseline{Published: "hearsay"} },
			`spec.baseline.published: there is no table "hearsay"`,
		},
		"two runs of one name": {
			func(s *v1alpha1.BenchmarkSuite) {
				s.Spec.Variants[1].Name = "one-big"
				s.Spec.Runs[0].Name, s.Spec.Runs[1].Name = "big-reads", "reads"
			},
			"the BenchmarkRuns of run big-reads of variant one and of run reads of variant one-big would both be named night-one-big-reads",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, refused := build(aSuite(c.change), backends)
			g.Expect(refused).NotTo(BeNil())
			g.Expect(refused.reason).To(Equal(v1alpha1.ReasonInvalidSpec))
			g.Expect(refused.message).To(ContainSubstring(c.says))
		})
	}
	t.Run("the disk of two variants that is wiped between them is no reason", func(t *testing.T) {
		_, refused := build(aSuite(destroys, variants(devices, devices)), backends)
		NewWithT(t).Expect(refused).To(BeNil())
	})
	t.Run("nor is a directory on other nodes", func(t *testing.T) {
		_, refused := build(aSuite(variants(`{"metadataServers":{"nodeSelector":{"a":"x"},"targets":{"select":null,"directories":["/data/meta"]}}}`,
			`{"metadataServers":{"targets":{"select":null,"directories":["/data/meta"]}}}`)), backends)
		NewWithT(t).Expect(refused).To(BeNil())
	})
}

func TestASuitePlansItsVariants(t *testing.T) {
	g := NewWithT(t)
	plans, refused := build(aSuite(destroys, func(s *v1alpha1.BenchmarkSuite) {
		s.Spec.FileSystem = raw(strings.Replace(mooseSpec, `{`, `{"deletionPolicy":"Destroy","confirmDestroy":"`+fsUID+`",`, 1))
		s.Spec.Variants[1].Run = patch(`{"processes":64,"iozone":{"fileSize":"2g"}}`)
		s.Spec.Runs[0].Spec = raw(`{"tool":"iozone","iozone":{"fileSize":"1g","directIO":true},"target":{"fileSystem":{"name":"mine","storagePool":"ssd"}},"suspend":true,"ttlSecondsAfterFinished":3600,"clients":{"nodeSelector":{"a":"b"}}}`)
		s.Spec.Results = &v1alpha1.ResultsSpec{PersistentVolumeClaim: &v1alpha1.ResultsClaim{Name: "claim"}}
		s.Spec.Baseline = &v1alpha1.SuiteBaseline{Published: "moosefs-2017-single"}
	}), backends)
	g.Expect(refused).To(BeNil())
	spec := func(object map[string]any) string {
		text, err := json.Marshal(object["spec"])
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	fs := plans[1].fileSystem
	g.Expect(fs.GetName()).To(Equal("night-two"))
	g.Expect(fs.GetNamespace()).To(Equal("lab"))
	g.Expect(fs.GetOwnerReferences()).To(BeEmpty(), "it must not go with the suite: data is on it")
	g.Expect(made(aSuite(), fs)).To(BeTrue())
	g.Expect(spec(fs.Object)).To(MatchJSON(strings.Replace(strings.Replace(mooseSpec, `{`, `{"deletionPolicy":"Retain",`, 1), `"moosefs":{}`, `"moosefs":{"basePort":9500}`, 1)))
	run := plans[1].runs[0]
	g.Expect(run.GetName()).To(Equal("night-two-reads"))
	g.Expect(metav1.IsControlledBy(run, aSuite())).To(BeTrue())
	g.Expect(spec(run.Object)).To(MatchJSON(`{"tool":"iozone","iozone":{"fileSize":"2g","directIO":true},"target":{"fileSystem":{"name":"night-two","storagePool":"ssd"}},
		"processes":64,"clients":{"nodeSelector":{"a":"b"}},"baseline":{"published":"moosefs-2017-single","variant":"two"},
		"results":{"persistentVolumeClaim":{"name":"claim"}}}`))
	g.Expect(plans[0].runs[1].Object["spec"]).To(HaveKeyWithValue("target", HaveKeyWithValue("fileSystem", HaveKeyWithValue("name", "night-one"))))
}

func TestTheNameOfARunHasAtMost40Characters(t *testing.T) {
	g := NewWithT(t)
	g.Expect(runName("night", "one", "reads")).To(Equal("night-one-reads"))
	long, other := runName("beegfs-2015-scale-out", "20-nodes-at-once", "creates"), runName("beegfs-2015-scale-out", "20-nodes-at-once", "creations")
	g.Expect(long).To(MatchRegexp("^beegfs-2015-scale-out-20-nodes-[a-z0-9]{8}$"))
	g.Expect(len(long)).To(BeNumerically("<=", 40))
	g.Expect(other).NotTo(Equal(long))
}
