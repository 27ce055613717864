package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
)

func TestOnlyChangesThatTheMetadataLacksRemainOfAChangeLog(t *testing.T) {
	long := "old " + strings.Repeat("x", 3*mostLine) + "\n"
	for name, c := range map[string]struct{ log, left string }{
		"all is old":                   {"old 1\nold 2\n", ""},
		"nothing is old":               {"new 3\nnew 4\n", "new 3\nnew 4\n"},
		"some is old":                  {"old 1\nold 2\nnew 3\nnew 4\n", "new 3\nnew 4\n"},
		"lines are long":               {long + long + "new 3\n", "new 3\n"},
		"the last line is cut off":     {"old 1\nnew 3\nne", "new 3\n"},
		"only the last line is cut":    {"new 3\nne", "new 3\n"},
		"a long last line is cut off":  {"old 1\nnew 3\n" + strings.TrimSuffix(long, "\n"), "new 3\n"},
		"no line has an end":           {"ne", ""},
		"old ones follow on a new one": {"old 1\nnew 3\nold 2\n", "new 3\nold 2\n"},
		"it is empty":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			source, directory := filepath.Join(t.TempDir(), "log"), t.TempDir()
			g.Expect(os.WriteFile(source, []byte(c.log), 0o600)).To(Succeed())
			g.Expect(os.Symlink(source, filepath.Join(directory, "linked"))).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(directory, "own"), []byte(c.log), 0o600)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(directory, "metadata"), []byte("old\nnew\n"), 0o600)).To(Succeed())
			g.Expect(os.Mkdir(filepath.Join(directory, "directory"), 0o700)).To(Succeed())
			g.Expect(Shorten(directory, func(found []backend.CopiedFile) backend.ChangeLogs {
				g.Expect(found).To(ConsistOf(HaveField("Name", "linked"), HaveField("Name", "own"), And(HaveField("Name", "metadata"),
					HaveField("Size", int64(8)), HaveField("Head", []byte("old\nnew\n")), HaveField("End", []byte("old\nnew\n")))))
				return backend.ChangeLogs{Names: []string{"linked", "own"}, Needed: func(line []byte) bool { return !bytes.HasPrefix(line, []byte("old ")) }}
			})).To(Succeed())

			left := map[string]string{"metadata": "old\nnew\n"}
			if c.left != "" {
				left["linked"], left["own"] = c.left, c.left
			}
			found := map[string]string{}
			entries, err := os.ReadDir(directory)
			g.Expect(err).NotTo(HaveOccurred())
			for _, e := range entries {
				if e.IsDir() {
					continue
				}
				content, err := os.ReadFile(filepath.Join(directory, e.Name()))
				g.Expect(err).NotTo(HaveOccurred())
				found[e.Name()] = string(content)
			}
			g.Expect(found).To(Equal(left))
			g.Expect(os.ReadFile(source)).To(BeEquivalentTo(c.log), "what a link leads to stays as it is")
		})
	}
}
