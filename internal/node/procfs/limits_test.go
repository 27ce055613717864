package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAFileThatIsTooLongIsAnErrorAndIsNotReadWhole(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "environ")
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(path, mostBytes)).To(Succeed())
	content, err := Read(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(HaveLen(mostBytes))

	g.Expect(os.Truncate(path, 1<<40)).To(Succeed())
	content, err = Read(path)
	g.Expect(err).To(MatchError(path + " has more than 16777216 bytes"))
	g.Expect(content).To(BeNil())
	_, err = Read(path + "x")
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

func TestADirectoryWithTooManyEntriesIsAnError(t *testing.T) {
	g := NewWithT(t)
	path := t.TempDir()
	entries, err := list(path, 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(BeEmpty())
	for _, i := range []int{2, 1, 3} {
		g.Expect(os.WriteFile(filepath.Join(path, fmt.Sprint(i)), nil, 0o600)).To(Succeed())
	}
	entries, err = list(path, 3)
	g.Expect(err).NotTo(HaveOccurred())
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	g.Expect(names).To(Equal([]string{"1", "2", "3"}))
	_, err = list(path, 2)
	g.Expect(err).To(MatchError(path + " has more than 2 entries"))
}
