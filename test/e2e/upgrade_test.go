//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// fileSystemIsUpgraded upgrades a MooseFS with two copies from the oldest version to the newest one, while programs on two clients use it.
func (s *story) fileSystemIsUpgraded() {
	It("has a filesystem of the older version, with data", func() {
		s.isReady(oldest, twoCopies)
		s.inClient(workers[1], "sh", "-c", "echo '"+greeting+"' > "+s.mountPath+"/ssd/greeting && sync")
		Expect(s.fileSystem().Status.Version).To(Equal(oldest))
	})

	It("refuses a version without an upgrade path, and continues", func() {
		before := s.serving([]string{"master", "metalogger", "chunkserver", "client"})
		s.asksFor("4.59.2", "")
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionStalled) }).Should(And(HavePrefix(v1alpha1.ReasonUpgradeRefused),
			ContainSubstring("set spec.version to a 4.57.x first")))
		Expect(s.serving([]string{"master", "metalogger", "chunkserver", "client"})).To(ConsistOf(before))
		Eventually(s.ready).Should(BeTrue(), s.whyNotReady)
	})

	var asked time.Time
	It("waits for a backup, or for a person's approval", func() {
		before := s.serving([]string{"master", "metalogger", "chunkserver"})
		s.asksFor(newest, "")
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionUpgrading) }).Should(HavePrefix(v1alpha1.ReasonBackupMissing))
		Consistently(func() []string { return s.serving([]string{"master", "metalogger", "chunkserver"}) }, 10*time.Second).Should(ConsistOf(before))
		asked = s.fileSystem().Status.UpgradeAsked.Since.Time
	})

	It("is upgraded while programs use it, from the master to the chunkservers, when a backup was made and read back", func() {
		mounts := s.serving([]string{"client"})
		stop := s.watchVersions("scratch", "master", oldest)
		out := s.use("ssd", func() {
			s.backsUpOn(workers[2])
			Eventually(func() string {
				status := s.fileSystem().Status
				if status.Upgrade != nil || !s.ready() {
					return s.saysOf(v1alpha1.ConditionUpgrading)
				}
				return status.Version
			}, 2*long).Should(Equal(newest), s.whyNotReady)
		})
		said, wrong := stop()
		report("an upgrade from "+oldest+" to "+newest+" under load", out.String()+"\n"+strings.Join(said, "\n"))
		Expect(wrong).To(BeEmpty())
		wasFelt(upgradeRow, out, true)
		Eventually(s.missesChunks).Should(BeFalse(), "every chunkserver has registered again")

		Expect(said[0]).To(HavePrefix(v1alpha1.ReasonBackupMissing))
		Expect(s.fileSystem().Spec.Updates.UpgradeWithoutBackup).To(BeEmpty(), "nobody has given a word")
		Expect(s.fileSystem().Status.Backups).To(ContainElement(And(HaveField("Node", workers[2]), HaveField("Result", v1alpha1.BackupVerified),
			HaveField("Name", asked.UTC().Format(spec.BackupNameLayout)))), "made for this upgrade")
		Expect(s.fileSystem().Status.Versions).To(HaveExactElements(HaveField("Version", newest)), "every server says so itself")
		Expect(s.serving([]string{"client"})).To(ConsistOf(mounts), "no mount was touched")
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionUpgrading) }).
			Should(And(HavePrefix(v1alpha1.ReasonClientsOlder), ContainSubstring("of the clients 3 run "+oldest)))
		Expect(strings.Join(said, "\n")).To(ContainSubstring(v1alpha1.ReasonImagesMissing), "it looked for its image on each node first")
		Eventually(func() string {
			return s.kubectl("get", "daemonsets", "-l", v1alpha1.LabelImages+"=scratch", "-o", "name")
		}).Should(BeEmpty())
	})

	It("remounts with the new version when a person allows it", func() {
		s.kubectl("delete", "pod", s.serving([]string{"client"})[0])
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionUpgrading) }, long).Should(ContainSubstring("1 run " + newest))
		s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"updates":{"clients":"Now"}}}`)
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionUpgrading) }, long).Should(BeEmpty())
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		for _, node := range workers {
			Expect(s.inClient(node, "cat", s.mountPath+"/ssd/greeting")).To(Equal(greeting))
		}
	})

	It("does not go back", more, func() {
		s.asksFor(oldest, oldest)
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionStalled) }).Should(ContainSubstring("MooseFS has no way back from " + newest + " to " + oldest))
		Expect(s.fileSystem().Status.Version).To(Equal(newest))
		s.asksFor(newest, "")
		Eventually(s.ready).Should(BeTrue(), s.whyNotReady)
	})
}

// fileSystemGoesTo upgrades a MooseFS from the newest tested version to a later one (UPGRADE_TO), while programs use it.
func (s *story) fileSystemGoesTo(later string) {
	It("is upgraded while programs use it, and no chunk is lost", func() {
		s.isReady(newest, twoCopies)
		out := s.use("ssd", func() {
			s.asksFor(later, later)
			Eventually(func() string {
				status := s.fileSystem().Status
				if status.Upgrade != nil || !s.ready() {
					return s.saysOf(v1alpha1.ConditionUpgrading)
				}
				return status.Version
			}, 2*long).Should(Equal(later), s.whyNotReady)
		})
		report("an upgrade from "+newest+" to "+later+" under load", out.String())
		nothingWasLost(out, true)
		Eventually(s.missesChunks).Should(BeFalse(), "every chunkserver has registered again")
		Expect(s.fileSystem().Status.Versions).To(HaveExactElements(HaveField("Version", later)), "every server says so itself")
	})
}

// asksFor sets the version that a person wants, and the version that needs no backup first, if any.
func (s *story) asksFor(version, withoutBackup string) {
	GinkgoHelper()
	without := "null"
	if withoutBackup != "" {
		without = fmt.Sprintf("%q", withoutBackup)
	}
	s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"version":%q,"updates":{"upgradeWithoutBackup":%s}}}`, version, without))
}

// saysOf returns the reason and the message of a condition, empty while there is none.
func (s *story) saysOf(kind string) string {
	GinkgoHelper()
	return conditionText(s.fileSystem(), kind)
}

func conditionText(fs *v1alpha1.FileSystem, kind string) string {
	c := meta.FindStatusCondition(fs.Status.Conditions, kind)
	if c == nil || c.Status == metav1.ConditionFalse && kind != v1alpha1.ConditionUpgrading {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// watchVersions checks each second the version with which every daemon of a filesystem was made, until it is stopped. It then returns the
// messages of the condition Upgrading, and an error if a daemon was newer than the first component, such as the master, or went back.
func (s *story) watchVersions(name, first, from string) (stop func() (said []string, wrong string)) {
	done, ended := make(chan struct{}), make(chan struct{})
	var said []string
	wrong, newest := "", from
	look := func() {
		var pods corev1.PodList
		fs := &v1alpha1.FileSystem{}
		if api.List(context.Background(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: name}) != nil ||
			api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: name}, fs) != nil {
			return
		}
		if text := conditionText(fs, v1alpha1.ConditionUpgrading); text != "" && (len(said) == 0 || said[len(said)-1] != text) {
			said = append(said, text)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if version := p.Annotations[backend.VersionAnnotation]; p.Labels[v1alpha1.LabelComponent] == first && p.DeletionTimestamp == nil && version != "" {
				if backend.CompareVersions(version, newest) < 0 {
					wrong = fmt.Sprintf("the %s went from %s to %s", first, newest, version)
				}
				newest = version
			}
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if version := p.Annotations[backend.VersionAnnotation]; backend.CompareVersions(version, newest) > 0 {
				wrong = fmt.Sprintf("%s is a %s while the %s is a %s", p.Name, version, first, newest)
			}
		}
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
				look()
			}
		}
	}()
	return func() ([]string, string) {
		close(done)
		<-ended
		return said, wrong
	}
}
