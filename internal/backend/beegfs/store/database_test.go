package store

import (
	"testing"

	. "github.com/onsi/gomega"
)

// answers are those of a filesystem with two metadata servers, one of storage with two targets in two pools, and buddy groups.
func answers() map[string][][]string {
	return map[string][][]string{
		askVersion: {{"5"}},
		askID:      {{"8F0C9E1A-4c5d-4e6f-8a9b-0c1d2e3f4a5b"}},
		askServers: {{"1", "1"}, {"1", "2"}, {"2", "1"}, {"3", "7"}, {"4", "1"}},
		askTargets: {{"1", "1", "1", "0"}, {"1", "2", "2", "0"}, {"2", "101", "1", "1"}, {"2", "102", "0", "2"}},
		askPools:   {{"1"}, {"2"}, {"3"}},
		askMirrors: {{"1", "1", "1", "2"}, {"2", "4", "101", "102"}},
		askRoot:    {{"2", "0"}},
	}
}

func TestADatabaseIsReadAsTheServiceReadsIt(t *testing.T) {
	g := NewWithT(t)
	content, err := ReadDatabase(answers())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(Equal(Content{
		ID: "8f0c9e1a4c5d4e6f8a9b0c1d2e3f4a5b", Metadata: []int32{1, 2}, Storage: []int32{1}, Root: 2, Targets: map[int32]int32{101: 1, 102: 0},
		Pools: map[int32][]int32{1: {101}, 2: {102}, 3: nil}, StorageMirrors: map[int32]Pair{4: {101, 102}}, MetadataMirrors: map[int32]Pair{1: {1, 2}},
	}))
	mirrored := answers()
	mirrored[askRoot] = [][]string{{"0", "1"}}
	content, err = ReadDatabase(mirrored)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(And(HaveField("Root", int32(1)), HaveField("RootMirrored", true)))
	young := answers()
	young[askRoot], young[askServers], young[askTargets], young[askMirrors] = nil, [][]string{{"4", "1"}}, nil, nil
	content, err = ReadDatabase(young)
	g.Expect(err).NotTo(HaveOccurred(), "nobody has joined yet")
	g.Expect(content.Root).To(BeZero())
}

func TestADatabaseIsRefusedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		what string
		rows [][]string
		says string
	}{
		"nobody has made its tables":         {askVersion, [][]string{{"0"}}, "its schema has no version"},
		"it does not say which one it is":    {askID, nil, "it has no UUID of the filesystem"},
		"what it says it is is no UUID":      {askID, [][]string{{"1000"}}, "it has no UUID of the filesystem"},
		"it lacks the service itself":        {askServers, [][]string{{"1", "1"}}, "it lacks the management service itself"},
		"it lacks the default pool":          {askPools, nil, "it lacks the default storage pool"},
		"a number is none":                   {askTargets, [][]string{{"2", "x", "1", "1"}}, `targets: "x" is no number`},
		"a number is too large":              {askServers, [][]string{{"4", "1"}, {"2", "4294967295"}}, `servers: "4294967295" is no number`},
		"an answer has another form":         {askMirrors, [][]string{{"1"}}, "buddy groups: 1 columns, and not 4"},
		"the owner of the root is no number": {askRoot, [][]string{{"", ""}}, `owner of the root directory: "" is no number`},
	} {
		t.Run(name, func(t *testing.T) {
			rows := answers()
			rows[c.what] = c.rows
			_, err := ReadDatabase(rows)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}
