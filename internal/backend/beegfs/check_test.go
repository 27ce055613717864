package beegfs

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestTheJobOfACheckRunsFsckWithoutRepairs(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t, version)
			job, err := New().CheckJob(in, "scratch-check-1a2b")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(job.Name).To(Equal("scratch-check-1a2b"))
			g.Expect(job.Labels).To(BeEmpty(), "it is no child of the filesystem")
			g.Expect(job.Spec.Template.Labels).To(BeEmpty())
			g.Expect(*job.Spec.BackoffLimit).To(BeZero(), "a person asks again")
			pod := job.Spec.Template.Spec
			g.Expect(pod.Affinity).To(Equal(podspec.OnNodes(in.FileSystem.Status.Metadata.Node)))
			c := pod.Containers[0]
			g.Expect(c.Command).To(ContainElements("check", "--spec"))
			g.Expect(c.SecurityContext.Privileged).To(BeNil())
			g.Expect(c.VolumeMounts).To(ContainElements(HaveField("MountPath", "/check"), HaveField("MountPath", cli.AuthDirectory)))
			g.Expect(pod.Volumes).To(ContainElement(And(HaveField("Name", "check"), HaveField("EmptyDir.SizeLimit", Not(BeNil())))),
				"it never fills the disk of the management service")
			var told spec.Check
			g.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.ToldAnnotation]), &told)).To(Succeed())
			g.Expect(told.Backend).To(Equal("BeeGFS"))
			g.Expect(told.Version).To(Equal(version))
			g.Expect(told.Commands).To(HaveLen(1))
			g.Expect(told.Commands[0]).To(ContainElements("--checkfs", "--readOnly"))
			if cli.Is8(version) {
				g.Expect(told.Commands[0]).To(ContainElements("--connAuthFile="+cli.AuthFile, "--sysMgmtdHost=10.0.0.1", HavePrefix("--connMgmtdPort=")))
			} else {
				g.Expect(told.Commands[0]).To(ContainElement("--cfgFile=" + cli.ClientConfig))
			}
		})
	}
}
