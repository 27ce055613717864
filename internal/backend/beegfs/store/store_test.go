package store

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
)

// files are those of a filesystem with one metadata server and one storage target, byte by byte.
func files() map[string][]byte {
	node := []byte("\x00\x00\x00\x00" + "\x02\x00\x00\x00" + "\x00" + "\x01\x00\x00\x00" + // version, root, mirrored, count
		"\x02\x00\x00\x00m2\x00" + "\x01\x00\x00\x00" + "\x0a\x00\x00\x01eth0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x00\x00" + "\x45\x1f\x45\x1f" + "\x01")
	lists := "\x08\x00\x00\x00\x00\x00\x00\x00" // its size, and no element
	pools := []byte("\x01\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00" + "\x07\x00\x00\x00Default\x00" + "\x0a\x00\x00\x00\x01\x00\x00\x00\x65\x00" + lists +
		lists + lists + "\x01\x00\x00\x00\x65\x00\x01\x00\x00\x00" + lists)
	state := []byte("\x01\x00\x00\x00" + "\x65\x00" + "\x00\x00" + "\x01\x02\x03\x04\x05\x06\x07\x08" + "\x01\x02\x03\x04\x05\x06\x07\x08")
	return map[string][]byte{
		"format.conf": []byte("# This file was auto-generated.\nversion=5\n"), "meta.nodes": node, "storage.nodes": node, "targets": []byte("65=2\n"),
		"targetNumIDs": []byte("1-69B80EDC-1=65\n"), "storagePools": pools, "targetStates": state, "nodeStates": {},
		"storagebuddygroups": []byte("1=65,66\n"), "metabuddygroups": {}, "clients.nodes": make([]byte, 8),
	}
}

func TestAStoreIsReadAsTheServiceReadsIt(t *testing.T) {
	g := NewWithT(t)
	content, err := Read(files())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(Equal(Content{
		Metadata: []int32{2}, Storage: []int32{2}, Root: 2, Targets: map[int32]int32{0x65: 2}, Pools: map[int32][]int32{1: {0x65}},
		StorageMirrors: map[int32]Pair{1: {0x65, 0x66}}, MetadataMirrors: map[int32]Pair{},
	}))
}

func TestAStoreIsRefusedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		change func(content []byte) []byte
		says   string
	}{
		"a file is missing":               {"storagePools", nil, "storagePools is missing"},
		"its form is that of 6":           {"format.conf", func([]byte) []byte { return []byte("version=4\n") }, `it says version "4", and 7.4 writes 5`},
		"the servers are of another form": {"meta.nodes", func(b []byte) []byte { b[0] = 1; return b }, "its version is 1"},
		"a text ends nowhere":             {"meta.nodes", func(b []byte) []byte { b[19] = 'x'; return b }, "a text in it has no end"},
		"a list has another size":         {"storagePools", func(b []byte) []byte { b[22] = 12; return b }, "a list in it says that it has 12 bytes and has 10"},
		"a count is absurd":               {"targetStates", func(b []byte) []byte { b[3] = 0xff; return b }, "it ends in the middle"},
		"there is more":                   {"storage.nodes", func(b []byte) []byte { return append(b, 0) }, "it has 1 bytes too many"},
		"a line ends in the middle":       {"targets", func(b []byte) []byte { return b[:len(b)-1] }, "targets can't be read: it ends in the middle"},
		"a line says nothing":             {"targets", func([]byte) []byte { return []byte("65\n") }, "line 1 has no ="},
		"a number is none":                {"targets", func([]byte) []byte { return []byte("65=xyz\n") }, `"xyz" is no number`},
		"a group has no second":           {"storagebuddygroups", func([]byte) []byte { return []byte("1=65\n") }, `"65" is no pair`},
	} {
		t.Run(name, func(t *testing.T) {
			all := files()
			if c.change == nil {
				delete(all, c.file)
			} else {
				all[c.file] = c.change(all[c.file])
			}
			_, err := Read(all)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestABinaryFileThatIsCutOffAnywhereIsRefused(t *testing.T) {
	for _, name := range []string{"meta.nodes", "storage.nodes", "clients.nodes", "storagePools", "targetStates"} {
		whole := files()[name]
		for n := range whole {
			if n == 0 && name == "targetStates" {
				continue // a person makes an empty file if the states were lost
			}
			all := maps.Clone(files())
			all[name] = whole[:n]
			_, err := Read(all)
			NewWithT(t).Expect(err).To(HaveOccurred(), "%d bytes of %s", n, name)
		}
	}
}
