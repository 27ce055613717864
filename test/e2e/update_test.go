//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

// before is the tree of the commit in UPDATE, which run.sh has checked out.
var before = filepath.Join(root, "test", "cluster", ".work", "before")

// frozenFormats exists in all commits whose stored formats, labels and names this operator still supports.
const frozenFormats = "docs/adr/0077-stored-formats-are-frozen.md"

// installBefore installs the operator of the commit in UPDATE, whose images run.sh has built.
func installBefore() {
	GinkgoHelper()
	Expect(filepath.Join(before, frozenFormats)).To(BeARegularFile(), "UPDATE is to name a commit that has it, or a later one, such as ff7e17f")
	var images []string
	for _, image := range []string{"manager", "node", "agent"} {
		images = append(images, "image."+image+".repository=localhost/parallelfs-before/"+image)
	}
	installFrom(before, images...)
}

// steady writes files for half a minute, four times. Nothing is retried, so any disturbance makes it fail.
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
	var daemons string

	It("has filesystems of the earlier operator, and a benchmark", func() {
		s.isReady(newest, twoCopies)
		bees := *s
		bees.port += 100
		bees.apply(bees.comb("", ""))
		Eventually(s.readyNamed, long).WithArguments("comb").Should(BeTrue(), func() string { return s.whyNotReadyOf("comb") })
		Expect(s.saysOf(v1alpha1.ConditionNodeImageWaits)).To(BeEmpty())
		s.apply(strings.ReplaceAll(s.measuringRun("steady", steady), "retries: 2, invalidRetries: 3", "retries: 0, invalidRetries: 0"))
		Eventually(func() string { return s.benchmarkRun("steady").Status.Current }, long).ShouldNot(BeEmpty())
		s.running("steady", "client")
		daemons = s.daemons()
	})

	It("updates to the present operator without a restart of any daemon, and the benchmark continues", func() {
		Expect(managerImage()).To(Equal("localhost/parallelfs-before/manager:dev"))
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
		Expect(managerImage()).To(Equal("localhost/parallelfs/manager:dev"))
		definitionsAreOurs()
		Expect(s.daemons()).To(Equal(daemons))

		run := s.finish("steady")
		Expect(run.Status.Points).To(HaveLen(1))
		Expect(run.Status.Points[0].Repetitions).To(Equal(int32(4)))
		Expect(s.daemons()).To(Equal(daemons))
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

	It("keeps the guards of the nodes, and gives its node image to servers on request", func() {
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

	It("deletes the objects of the earlier operator", func() {
		s.deleteFileSystem("--all", patience.Flag(5*time.Minute))
		Eventually(s.daemons, long).Should(BeEmpty())
	})
}

// daemons returns the pods of all filesystems of the story, with their identities and the restarts of each container. It leaves out guards
// and the pods of Jobs.
func (s *story) daemons() string {
	GinkgoHelper()
	return s.kubectl("get", "pods", "-l", v1alpha1.LabelFileSystem+","+v1alpha1.LabelComponent+",!"+v1alpha1.LabelGuard+",!batch.kubernetes.io/job-name", "--sort-by=.metadata.name", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// managerImage returns the image of the manager that the chart has installed.
func managerImage() string {
	GinkgoHelper()
	return kubectl("-n", systemNamespace, "get", "deployments", "-l", "app.kubernetes.io/component=manager", "-o",
		"jsonpath={.items[*].spec.template.spec.containers[*].image}")
}

// definitionsAreOurs checks that the chart installed the definitions of all kinds: they equal those of this tree, field by field.
func definitionsAreOurs() {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		want := schemaOf(content)
		Expect(schemaOf([]byte(kubectl("get", "crd", want.Metadata.Name, "-o", "json")))).To(Equal(want), want.Metadata.Name)
	}
}

// definition holds the compared part of a kind's definition: everything to which the API server adds nothing.
type definition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Schema any    `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func schemaOf(content []byte) (out definition) {
	GinkgoHelper()
	Expect(yaml.Unmarshal(content, &out)).To(Succeed())
	return out
}

// watchReady checks each second whether filesystems are Ready, until it is stopped. It then returns the messages from the times when one
// was not.
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
					continue // the API server is busy; the next check is in a second
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
