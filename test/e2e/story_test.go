//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"parallelfs.dev/operator/api/v1alpha1"
)

// story is an Ordered container of specs with one or several filesystems of its own. Stories run in parallel on one cluster, so each has a
// namespace, node labels, directories, mountpoints, disks and ports that no other story uses.
type story struct {
	name      string
	namespace string
	// dataRoot holds the directories that are targets; mountPath is where clients mount.
	dataRoot, mountPath string
	// port is the first of the ports of its filesystem; those of MooseFS take 32, those of BeeGFS 64.
	port int
}

func newStory(name string, port int) *story {
	return &story{
		name: name, namespace: "e2e-" + name, dataRoot: "/var/lib/parallelfs-e2e/" + name, mountPath: "/mnt/e2e/" + name + "/fs", port: port,
	}
}

// text inserts the story into a manifest: its name for $STORY, its first port for $PORT.
func (s *story) text(manifest string) string {
	return strings.NewReplacer("$STORY", s.name, "$PORT", fmt.Sprint(s.port)).Replace(manifest)
}

// apply applies a manifest of the story.
func (s *story) apply(manifest string) {
	GinkgoHelper()
	apply(s.text(manifest))
}

// begin creates the namespace of the story.
func (s *story) begin() {
	GinkgoHelper()
	s.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: e2e-$STORY, labels: {pod-security.kubernetes.io/enforce: privileged}}}`)
}

// label sets roles of the story on a node, such as storage, or removes one, such as client-.
func (s *story) label(node string, roles ...string) {
	GinkgoHelper()
	args := []string{"label", "--overwrite", "node", node}
	for _, role := range roles {
		role = "e2e.parallelfs.dev/" + s.name + "-" + role
		if !strings.HasSuffix(role, "-") {
			role += "="
		}
		args = append(args, role)
	}
	kubectl(args...)
}

// kubectl runs kubectl in the namespace of the story.
func (s *story) kubectl(args ...string) string {
	GinkgoHelper()
	return kubectl(slices.Concat([]string{"-n", s.namespace}, args)...)
}

// deleteFileSystem deletes a FileSystem of the story, or all of them ("--all"), even while nodes have mounted it: an annotation confirms
// the deletion.
func (s *story) deleteFileSystem(which string, args ...string) {
	GinkgoHelper()
	deleteFileSystems(s.namespace, which, args...)
}

// deleteFileSystems is the same in any namespace.
func deleteFileSystems(namespace, which string, args ...string) {
	GinkgoHelper()
	names := []string{which}
	if which == "--all" {
		names = strings.Fields(kubectl("-n", namespace, "get", "filesystems", "-o", "jsonpath={.items[*].metadata.name}"))
	}
	for _, name := range names {
		kubectl("-n", namespace, "annotate", "--overwrite", "filesystem", name, v1alpha1.AnnotationConfirmDelete+"="+name)
	}
	if len(names) > 0 {
		kubectl(slices.Concat([]string{"-n", namespace, "delete", "filesystem"}, names, args)...)
	}
}

// processes returns a shell command that prints the processes with that name, on one line, that run on a node in pods of the story. Other
// stories have daemons with the same name there.
func (s *story) processes(node, name string) string {
	GinkgoHelper()
	uids := strings.Fields(s.kubectl("get", "pods", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[*].metadata.uid}"))
	for _, uid := range uids {
		uids = append(uids, strings.ReplaceAll(uid, "-", "_")) // in the spelling of systemd
	}
	return fmt.Sprintf(`for p in $(pgrep -f '^([^ ]*/)?%s( |$)'); do if grep -qE '%s' /proc/$p/cgroup; then printf '%%s ' $p; fi; done`, name, strings.Join(uids, "|"))
}

// results prints the table of a run.
func (s *story) results(name string) {
	GinkgoHelper()
	report("results of "+name, s.kubectl("get", "benchmarkrun", name, "-o", "go-template-file="+filepath.Join(root, "test", "demo", "results.gotemplate")))
}
