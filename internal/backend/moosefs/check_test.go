package moosefs

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestTheJobOfACheckAsksTheMasterAndHasNoRights(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1", Directory: "/data/meta"}
	job, err := New().CheckJob(in, "scratch-check-1a2b")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(job.Name).To(Equal("scratch-check-1a2b"))
	g.Expect(job.Labels).To(BeEmpty(), "it is no child of the filesystem")
	g.Expect(job.Spec.Template.Labels).To(BeEmpty())
	g.Expect(*job.Spec.BackoffLimit).To(BeZero(), "a person asks again")
	g.Expect(job.Spec.ActiveDeadlineSeconds).NotTo(BeNil(), "one that can't start ends")
	pod := job.Spec.Template.Spec
	g.Expect(pod.Affinity).To(Equal(podspec.OnNodes("n1")))
	g.Expect(pod.Containers).To(HaveLen(1))
	c := pod.Containers[0]
	g.Expect(c.Command[:2]).To(HaveExactElements("/parallelfs/node", "check"))
	g.Expect(c.SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
	g.Expect(c.SecurityContext.RunAsUser).To(HaveValue(Equal(int64(9421))))
	for _, v := range pod.Volumes {
		g.Expect(v.HostPath).To(BeNil(), v.Name)
		g.Expect(v.Secret).To(BeNil(), v.Name)
		g.Expect(v.Name).NotTo(BeEmpty())
	}
	for _, m := range c.VolumeMounts {
		g.Expect(m.Name).NotTo(BeEmpty())
	}
	var told spec.Check
	g.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.ToldAnnotation]), &told)).To(Succeed())
	g.Expect(told).To(Equal(spec.Check{Backend: "MooseFS", Version: "4.57.5", Commands: [][]string{{
		"mfscli", "-n", "-j", "-H", "10.0.0.1", "-P", "9421", "-SIL", "-SIG", "-SIC", "-SCS", "-SHD"}}}))

	in.Images.Daemons = nil
	_, err = New().CheckJob(in, "x")
	g.Expect(err).To(MatchError(ContainSubstring("no image for MooseFS 4.57.5")))
}
