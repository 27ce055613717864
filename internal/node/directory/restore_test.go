package directory_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// fill recreates the lost data.
func fill(data string) error {
	return os.WriteFile(filepath.Join(data, "metadata.mfs"), []byte("made again"), 0o600)
}

// restored returns the directory of the master as a recovery uses it.
func (n node) restored() spec.Directory {
	return spec.Directory{Path: n.path("disk", "meta"), Data: "data"}
}

func TestAnInterruptedRestoreIsNotUsedAndCompletesLater(t *testing.T) {
	g := NewWithT(t)
	whole := newNode(t)
	g.Expect(whole.prover(nil).Restore(whole.restored(), "0123abcd", fill)).To(Succeed())
	content := func(n node) map[string]string {
		out := n.content(t)
		delete(out, filepath.Join("state", "ledger.json")) // it contains the path of the directory
		return out
	}
	want := content(whole)
	restore := func(node node, cut func(string) error) error {
		return node.prover(cut).Restore(node.restored(), "0123abcd", func(data string) error {
			g.Expect(os.WriteFile(filepath.Join(data, "half"), nil, 0o600)).To(Succeed())
			if err := cut(""); err != nil {
				return err
			}
			return errors.Join(os.Remove(filepath.Join(data, "half")), fill(data))
		})
	}
	steps := 0
	g.Expect(restore(newNode(t), func(string) error { steps++; return nil })).To(Succeed())
	g.Expect(steps).To(BeNumerically(">", 10))
	killed := errors.New("killed")
	for _, n := range places.Kills.Of(t, steps) {
		node, left := newNode(t), n
		err := restore(node, func(string) error {
			if left--; left < 0 {
				return killed
			}
			return nil
		})
		g.Expect(err).To(MatchError(killed))
		d := metadataDirectory(false)
		d.Path = node.restored().Path
		done := node.content(t)["disk/meta/.parallelfs.json"] == want["disk/meta/.parallelfs.json"]
		_, err = node.prover(nil).Prove(t.Context(), d, unset)
		g.Expect(err == nil).To(Equal(done), "a daemon starts when all is there, and not before: %v", err)
		g.Expect(node.prover(nil).Restore(node.restored(), "4567cdef", fill) == nil).To(Equal(!done), "another plan goes on with what is half done, and with nothing else")
		if done {
			g.Expect(node.prover(nil).Restore(node.restored(), "0123abcd", fill)).To(Succeed())
			g.Expect(content(node)).To(Equal(want))
		}
	}
}

func TestNothingIsRestoredOverWhatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		reason string
	}{
		"files of nobody":           {map[string]string{"photo.jpg": "x"}, "is not empty (photo.jpg)"},
		"metadata without a marker": {map[string]string{"data/metadata.mfs.back": "x"}, "is not empty (data/metadata.mfs.back)"},
		"the metadata of this one": {map[string]string{"data/metadata.mfs": "x",
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Initialized"}`}, "has the metadata of this FileSystem already"},
		"what it lost": {map[string]string{
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Initialized"}`}, "has the metadata of this FileSystem already, or had"},
		"what another plan has made": {map[string]string{"data/metadata.mfs": "x",
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Initialized","restored":"4567cdef"}`},
			"has the metadata of this FileSystem already"},
		"one that was being initialized": {map[string]string{"data/metadata.mfs": empty,
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Preparing"}`}, "nothing is restored over it"},
		"that of an earlier one": {map[string]string{
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"old"},"component":"master","state":"Preparing","restored":"0123abcd"}`}, "with the uid old"},
		"that of a chunkserver": {map[string]string{
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"chunkserver-ssd","state":"Preparing","restored":"0123abcd"}`},
			"belongs to the chunkserver-ssd"},
		"what this plan has made, and somebody has removed": {map[string]string{
			".parallelfs.json": `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Initialized","restored":"0123abcd"}`}, "is empty now"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t)
			for file, content := range c.files {
				path := filepath.Join(n.restored().Path, file)
				g.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
				g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			}
			before := n.content(t)
			err := n.prover(nil).Restore(n.restored(), "0123abcd", func(string) error {
				t.Error("it is filled")
				return nil
			})
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(n.content(t)).To(Equal(before))
		})
	}
}

func TestADirectoryIsNotUsedWhileItIsRestored(t *testing.T) {
	m := marker(spec.MarkerPreparing)
	m.Restored = "0123abcd"
	d := directory.Decide(metadataDirectory(true), scratch, "master", "/ledger.json", directory.Facts{Marker: m})
	g := NewWithT(t)
	g.Expect(d.Action).To(Equal(directory.Refuse))
	g.Expect(d.Reason).To(ContainSubstring("is being made again in /data/meta, by the plan 0123abcd"))
}
