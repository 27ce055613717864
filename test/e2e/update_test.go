//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// installBefore installs the operator of the commit that UPDATE names: run.sh has put its tree there, and made its images.
func installBefore() {
	GinkgoHelper()
	var images []string
	for _, image := range []string{"manager", "node", "agent"} {
		images = append(images, "image."+image+".repository=localhost/parallelfs-before/"+image)
	}
	installFrom(filepath.Join(root, "test", "cluster", ".work", "before"), images...)
}

// steady writes files for half a minute, four times. Nothing is run again, so that whatever disturbs it fails it.
const steady = `
	tool: custom
	custom:
		command: [sh, -c, "seq 30 | while read -r i; do dd if=/dev/zero of=file$i bs=64k count=4 conv=fsync || exit 1; sleep 1; done && echo wrote 30"]
		metrics: [{name: wrote, unit: files, regex: "wrote ([0-9]+)"}]
	repetitions: 4
`

// operatorIsUpdated updates the operator by its chart, as the chart's README says, on a cluster with filesystems, programs and a benchmark.
func (s *story) operatorIsUpdated() {
	names := []string{"scratch", "comb"}
	var before string

	It("has filesystems of the operator before, and a benchmark", func() {
		s.isReady(newest, twoCopies)
		bees := *s
		bees.port += 100
		bees.apply(bees.comb("", ""))
		Eventually(s.readyNamed, long).WithArguments("comb").Should(BeTrue(), func() string { return s.whyNotReadyOf("comb") })
		Expect(s.saysOf(v1alpha1.ConditionNodeImageWaits)).To(BeEmpty())
		s.apply(strings.ReplaceAll(s.measuringRun("steady", steady), "retries: 2, invalidRetries: 3", "retries: 0, invalidRetries: 0"))
		Eventually(func() string { return s.benchmarkRun("steady").Status.Current }, long).ShouldNot(BeEmpty())
		s.running("steady", "client")
		before = s.daemons()
	})

	It("goes to the operator of now without a restart of any daemon, and the benchmark goes on", func() {
		Expect(hasField("filesystems", "backups")).To(BeFalse(), "UPDATE is to name a commit with an older API, such as 6c669cf")
		unready := s.watchReady(names...)
		begun := time.Now()
		out := s.use("ssd", func() {
			install()
			for _, name := range names {
				Eventually(func() string { return conditionText(s.fileSystemNamed(name), v1alpha1.ConditionNodeImageWaits) }, long).
					Should(HavePrefix(v1alpha1.ReasonOperatorUpdated), name)
			}
		})
		updated := time.Since(begun).Round(time.Second)
		Expect(s.benchmarkRun("steady").Status.CompletionTime).To(BeNil(), "it goes on meanwhile")
		Expect(hasField("filesystems", "backups")).To(BeTrue(), "the definitions come with the chart")
		Expect(hasField("filesystemnodes", "givenUp")).To(BeTrue())
		Expect(s.daemons()).To(Equal(before))

		run := s.finish("steady")
		Expect(run.Status.Points).To(HaveLen(1))
		Expect(run.Status.Points[0].Repetitions).To(Equal(int32(4)))
		Expect(s.daemons()).To(Equal(before))
		Expect(unready()).To(BeEmpty())
		nothingWasLost(out, false)
		for _, name := range names {
			Eventually(s.readyNamed).WithArguments(name).Should(BeTrue(), func() string { return s.whyNotReadyOf(name) })
			fs := s.fileSystemNamed(name)
			Expect(fs.Status.Version).To(Equal(fs.Spec.Version))
			report("what "+name+" says", conditionText(fs, v1alpha1.ConditionNodeImageWaits))
		}
		report("the update of the operator", fmt.Sprintf("%s until both filesystems were looked after by the new one\n%s\n%s", updated, out, s.daemons()))
		s.results("steady")
	})

	It("gives the nodes guards, and its node image to the servers of whoever asks for it", func() {
		for _, node := range workers {
			Eventually(func() string { return s.guardOn(node) }, long).ShouldNot(BeEmpty(), node)
		}
		out := s.use("ssd", func() {
			s.kubectl("annotate", "filesystem", "scratch", v1alpha1.AnnotationTakeUpNodeImage+"=localhost/parallelfs/node:dev")
			Eventually(func() string { return s.saysOf(v1alpha1.ConditionNodeImageWaits) }, 2*long).Should(BeEmpty())
			s.isWhole()
		})
		report("the servers take up the node image of the new operator", out.String())
		nothingWasLost(out, true)
	})

	It("deletes what the operator before has made", func() {
		s.kubectl("delete", "filesystems", "--all", "--timeout=300s")
		Eventually(s.daemons, long).Should(BeEmpty())
	})
}

// daemons are the pods of all filesystems of the story, with their identities and the restarts of each container. Guards and the pods of Jobs
// are none.
func (s *story) daemons() string {
	GinkgoHelper()
	return s.kubectl("get", "pods", "-l", v1alpha1.LabelFileSystem+","+v1alpha1.LabelComponent+",!"+v1alpha1.LabelGuard+",!batch.kubernetes.io/job-name", "--sort-by=.metadata.name", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// hasField is true when the definition of a kind has a field of the spec.
func hasField(kind, field string) bool {
	GinkgoHelper()
	return kubectl("get", "crd", kind+".parallelfs.dev", "-o",
		"jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties."+field+".type}") != ""
}

// watchReady looks each second whether filesystems are Ready, until it is stopped. It then returns what they said when one was not.
func (s *story) watchReady(names ...string) (stop func() string) {
	done, ended := make(chan struct{}), make(chan struct{})
	said := ""
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			for _, name := range names {
				fs := &v1alpha1.FileSystem{}
				if api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: name}, fs) != nil {
					continue // the API server has no time; the next look is in a second
				}
				if !meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionReady) {
					said = fmt.Sprintf("%s at %s: %v", name, time.Now().Format(time.TimeOnly), fs.Status.Conditions)
				}
			}
		}
	}()
	return func() string {
		close(done)
		<-ended
		return said
	}
}
