package agent

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
)

// options returns a FileSystemNode with module options, the agent that writes them, and the file's path.
func options(t *testing.T) (*NodeFiles, *v1alpha1.FileSystemNode, string) {
	t.Helper()
	r := &NodeFiles{NodeName: "oss1", Root: t.TempDir(), Modprobe: t.TempDir(), Writer: durable.Writer{Chown: func(string, int, int) error { return nil }}}
	n := &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch-oss1"},
		Spec: v1alpha1.FileSystemNodeSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch"}, Node: "oss1",
			ModuleOptions: &v1alpha1.ModuleOptions{Write: true, Lines: []string{`options cpt pattern="0[0-1] 1[2-3]"`, "options ofd oss_cpts=[0] oss_io_cpts=[0]"}},
		},
	}
	return r, n, filepath.Join(r.Modprobe, "parallelfs-storage.scratch.conf")
}

func (r *NodeFiles) has(t *testing.T, name, content string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(r.Modprobe, name), []byte(content), 0o600)).To(Succeed())
}

func TestModuleOptionsAreWrittenIfTheyAreAllowed(t *testing.T) {
	g := NewWithT(t)
	r, n, path := options(t)
	n.Spec.ModuleOptions.Write = false
	g.Expect(r.keepModuleOptions(t.Context(), n)).To(Succeed())
	g.Expect(path).NotTo(BeAnExistingFile(), "nobody has allowed it")
	n.Spec.ModuleOptions.Write = true
	r.has(t, "same.conf", "options cpt pattern=\"0[0-1] 1[2-3]\" other=1\noptions ofd oss_cpts=[0]\n# options ofd oss_cpts=[9]\ninstall ofd /bin/true\n")
	g.Expect(r.keepModuleOptions(t.Context(), n)).To(Succeed())
	const want = "# Written by ParallelFS Operator for FileSystem scratch in namespace storage, which it follows: change that, and not this file.\n" +
		"options cpt pattern=\"0[0-1] 1[2-3]\"\noptions ofd oss_cpts=[0] oss_io_cpts=[0]\n"
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo(want))
	g.Expect(os.WriteFile(path, []byte(want+"options ofd oss_cpts=[1]\n"), 0o600)).To(Succeed())
	g.Expect(r.keepModuleOptions(t.Context(), n)).To(Succeed())
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo(want), "somebody has changed it")
	n.Spec.ModuleOptions = nil
	g.Expect(r.keepModuleOptions(t.Context(), n)).To(Succeed())
	g.Expect(path).NotTo(BeAnExistingFile(), "nobody asks any more")
}

func TestOptionsThatContradictOtherFilesAreNotWritten(t *testing.T) {
	for content, says := range map[string]string{
		"options lnet networks=tcp(eth0)\noptions   ofd x=1 oss_io_cpts=[1]\n": `/etc/modprobe.d/cpt.conf has "[1]" for the module's option "ofd oss_io_cpts", and "[0]" is asked for`,
		`options cpt pattern="N"`: `has "N" for the module's option "cpt pattern"`,
	} {
		g := NewWithT(t)
		r, n, path := options(t)
		r.has(t, "cpt.conf", content)
		g.Expect(r.keepModuleOptions(t.Context(), n)).To(MatchError(ContainSubstring(says)))
		g.Expect(path).NotTo(BeAnExistingFile())
		g.Expect(os.Remove(filepath.Join(r.Modprobe, "cpt.conf"))).To(Succeed())
		g.Expect(r.keepModuleOptions(t.Context(), n)).To(Succeed())
		g.Expect(path).To(BeAnExistingFile())
	}
}

func TestAFileOfAnotherProgramIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	r, n, path := options(t)
	r.has(t, filepath.Base(path), "options x y=1\n")
	r.has(t, "parallelfs-storage.gone.conf", "options x y=1\n")
	g.Expect(r.keepModuleOptions(t.Context(), n)).To(MatchError(ContainSubstring("somebody else has written /etc/modprobe.d/parallelfs-storage.scratch.conf")))
	n.Spec.ModuleOptions = nil
	g.Expect(r.keepModuleOptions(t.Context(), n)).To(Succeed())
	g.Expect(r.sweepModuleOptions(t.Context(), v1alpha1.FileSystemNodeList{})).To(Succeed())
	g.Expect(path).To(BeAnExistingFile())
	g.Expect(filepath.Join(r.Modprobe, "parallelfs-storage.gone.conf")).To(BeAnExistingFile())
}

func TestOptionsOfAFileSystemThatIsGoneAreRemoved(t *testing.T) {
	g := NewWithT(t)
	r, n, path := options(t)
	gone := n.DeepCopy()
	gone.Spec.FileSystem.Name = "home"
	for _, each := range []*v1alpha1.FileSystemNode{n, gone} {
		g.Expect(r.keepModuleOptions(t.Context(), each)).To(Succeed())
	}
	other := n.DeepCopy() // of another node
	other.Spec.Node, other.Spec.FileSystem.Name = "oss2", "home"
	g.Expect(r.sweepModuleOptions(t.Context(), v1alpha1.FileSystemNodeList{Items: []v1alpha1.FileSystemNode{*n, *other}})).To(Succeed())
	g.Expect(path).To(BeAnExistingFile())
	g.Expect(filepath.Join(r.Modprobe, "parallelfs-storage.home.conf")).NotTo(BeAnExistingFile())
}
