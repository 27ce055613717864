package directory_test

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/spec"
)

var scratch = spec.Owner{Namespace: "storage", Name: "scratch", UID: "new"}

const empty = "MFSM NEW"

func metadataDirectory(granted bool) spec.Directory {
	return spec.Directory{Path: "/data/meta", Data: "data", Initialize: &spec.Initialize{
		Granted: granted, DataGlobs: []string{"metadata*.mfs*", "changelog.*.mfs"}, Files: []spec.InitialFile{{Name: "metadata.mfs", Content: empty}},
	}}
}

// expecting returns a directory whose data the filesystem expects.
func expecting(d spec.Directory) spec.Directory {
	d.Initialize.Expected = true
	return d
}

// says returns the content of metadata.mfs.
func says(content string) map[string]string { return map[string]string{"metadata.mfs": content} }

// numbered returns the directory of a daemon with an identity and with a database that a command makes.
func numbered(granted bool) spec.Directory {
	return spec.Directory{Path: "/data/numbered", Data: "data", Initialize: &spec.Initialize{
		Granted: granted, DataGlobs: []string{"format.conf"}, Directories: []string{"chunks", "mirror"},
		Files: []spec.InitialFile{
			{Name: "format.conf", Content: "version=3\n"},
			{Name: "nodeNumID", Content: "2\n", Identity: true},
			{Name: "targetNumID", Content: "101\n", Identity: true},
		},
		Command: []string{"/sbin/make", "$(NEW)"}, Makes: "db",
	}}
}

// identified returns the contents of an initialized directory with these ids.
func identified(node, target string) map[string]string {
	return map[string]string{"format.conf": "version=3\n", "nodeNumID": node, "targetNumID": target}
}

func target() spec.Directory { return spec.Directory{Path: "/data/target", Data: "data"} }

func marker(state spec.MarkerState, change ...func(*spec.Marker)) *spec.Marker {
	m := &spec.Marker{Owner: scratch, Component: "master", State: state, Time: "2026-11-21T07:00:00Z"}
	for _, c := range change {
		c(m)
	}
	return m
}

func TestDecide(t *testing.T) {
	ofOldUID := func(m *spec.Marker) { m.Owner.UID = "old" }
	ofOtherName := func(m *spec.Marker) { m.Owner.Name = "home" }
	ofOtherNamespace := func(m *spec.Marker) { m.Owner.Namespace = "lab" }
	ofChunkserver := func(m *spec.Marker) { m.Component = "chunkserver-ssd" }
	madeAs := func(sum string) func(*spec.Marker) { return func(m *spec.Marker) { m.Made = sum } }
	for name, c := range map[string]struct {
		directory spec.Directory
		facts     directory.Facts
		want      directory.Action
		reason    []string
	}{
		"an empty directory is initialized where that is granted": {
			directory: metadataDirectory(true), want: directory.Initialize,
		},
		"an empty target is initialized": {
			directory: target(), want: directory.Initialize,
		},
		"an empty directory is refused when the operator has recorded that the metadata was initialized": {
			directory: metadataDirectory(false), want: directory.Refuse, reason: []string{"/data/meta is empty", "not initialized again"},
		},
		"an empty directory in the ledger is refused: its disk is not there": {
			directory: metadataDirectory(true), facts: directory.Facts{Recorded: true},
			want: directory.Refuse, reason: []string{"its disk is not mounted or was replaced", "/ledger.json"},
		},
		"an empty target in the ledger is refused: its disk is not there": {
			directory: target(), facts: directory.Facts{Recorded: true},
			want: directory.Refuse, reason: []string{"/data/target", "its disk is not mounted or was replaced"},
		},
		"metadata without a marker is foreign, even where initializing is granted": {
			directory: metadataDirectory(true), facts: directory.Facts{Data: []string{"metadata.mfs.back"}},
			want: directory.Refuse, reason: []string{"data/metadata.mfs.back", "move its content away", `"namespace":"storage"`, `"component":"master"`},
		},
		"a file of unknown meaning in the data is foreign": {
			directory: target(), facts: directory.Facts{Data: []string{"00"}}, want: directory.Refuse, reason: []string{"data/00"},
		},
		"a file beside the data is foreign": {
			directory: metadataDirectory(true), facts: directory.Facts{Strangers: []string{"a", "b", "c", "d", "e"}},
			want: directory.Refuse, reason: []string{"a, b, c and 2 more"},
		},
		"foreign data is called foreign even when the ledger knows the directory": {
			directory: target(), facts: directory.Facts{Strangers: []string{"home"}, Recorded: true},
			want: directory.Refuse, reason: []string{"not empty (home)"},
		},
		"a directory of another FileSystem is refused by its name": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOtherName), Data: []string{"metadata.mfs"}},
			want: directory.Refuse, reason: []string{"belongs to the FileSystem storage/home"},
		},
		"a directory of a FileSystem of the same name in another namespace is refused": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOtherNamespace)},
			want: directory.Refuse, reason: []string{"belongs to the FileSystem lab/scratch"},
		},
		"a directory of another component is refused": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofChunkserver)},
			want: directory.Refuse, reason: []string{"belongs to the chunkserver-ssd", "not to its master"},
		},
		"a directory with its metadata is used": {
			directory: metadataDirectory(false), facts: directory.Facts{Marker: marker(spec.MarkerInitialized), Data: []string{"changelog.0.mfs", "metadata.mfs.back"}},
			want: directory.Use,
		},
		"a target is used, with or without data": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialized)}, want: directory.Use,
		},
		"a directory may hold strangers once it is marked": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialized), Strangers: []string{"notes.txt"}}, want: directory.Use,
		},
		"the data of a deleted FileSystem of the same name is adopted": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), Data: []string{"metadata.mfs"}},
			want: directory.Adopt,
		},
		"a target of a deleted FileSystem of the same name is adopted": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), Data: []string{"00"}}, want: directory.Adopt,
		},
		"lost metadata is never initialized again, though that is granted": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialized), Data: []string{"stats.mfs"}},
			want: directory.Refuse, reason: []string{"the data in /data/meta/data is lost", "never initialized again", "from a backup"},
		},
		"lost metadata of a deleted FileSystem is not initialized either": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID)},
			want: directory.Refuse, reason: []string{"is lost"},
		},
		"an initialization that was cut off before the data is resumed": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerPreparing)}, want: directory.Resume,
		},
		"an initialization that was cut off behind the data is resumed": {
			directory: metadataDirectory(true), want: directory.Resume,
			facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"metadata.mfs"}, Contents: says(empty), Recorded: true},
		},
		"an initialization by a FileSystem that was deleted meanwhile is resumed": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerPreparing, ofOldUID)}, want: directory.Resume,
		},
		"an initialization of a target that was cut off is resumed": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Recorded: true}, want: directory.Resume,
		},
		"real metadata is not overwritten by an initialization that was cut off": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"metadata.mfs"}},
			want: directory.Refuse, reason: []string{"holds data that the initialization did not write (metadata.mfs)"},
		},
		"a file of the right name and another content is not overwritten": {
			directory: metadataDirectory(true), want: directory.Refuse,
			facts:  directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"metadata.mfs"}, Contents: says("MFSM 2.0")},
			reason: []string{"did not write"},
		},
		"data beside the initial file is not overwritten": {
			directory: metadataDirectory(true), want: directory.Refuse,
			facts:  directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"changelog.0.mfs", "metadata.mfs"}, Contents: says(empty)},
			reason: []string{"did not write (changelog.0.mfs)"},
		},
		"an initialization that was cut off is refused once the metadata is elsewhere": {
			directory: metadataDirectory(false), facts: directory.Facts{Marker: marker(spec.MarkerPreparing)},
			want: directory.Refuse, reason: []string{"its data is elsewhere"},
		},
		"what an earlier FileSystem has left is taken over where the filesystem remembers it": {
			directory: expecting(metadataDirectory(false)), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), Data: []string{"metadata.mfs"}},
			want: directory.Adopt,
		},
		"trap 5: an empty directory where the filesystem remembers data is never initialized": {
			directory: expecting(metadataDirectory(false)), facts: directory.Facts{DataGone: true},
			want: directory.Refuse, reason: []string{"what belongs there was initialized before"},
		},
		"metadata of an earlier FileSystem is refused once this one has its own": {
			directory: metadataDirectory(false), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), Data: []string{"metadata.mfs"}},
			want: directory.Refuse, reason: []string{"an earlier FileSystem storage/scratch (uid old)", "remove the uid"},
		},
		"metadata that a person has claimed is adopted, though the metadata was initialized before": {
			directory: metadataDirectory(false), want: directory.Adopt,
			facts: directory.Facts{Marker: marker(spec.MarkerInitialized, func(m *spec.Marker) { m.Owner.UID = "" }), Data: []string{"metadata.mfs.back"}},
		},
		"a target whose data directory was removed is refused": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialized), DataGone: true, Recorded: true},
			want: directory.Refuse, reason: []string{"/data/target/data is gone"},
		},
		"a target of a deleted FileSystem whose data directory was removed is refused": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), DataGone: true},
			want: directory.Refuse, reason: []string{"/data/target/data is gone"},
		},
		"an initialization that was cut off before its data directory is resumed": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), DataGone: true}, want: directory.Resume,
		},
		"data on another device than its marker is refused": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialized), DataElsewhere: true},
			want: directory.Refuse, reason: []string{"/data/target/data is a disk of its own", "Mount the disk on /data/target"},
		},
		"an empty directory whose data would lie on another device is refused": {
			directory: metadataDirectory(true), facts: directory.Facts{DataElsewhere: true}, want: directory.Refuse, reason: []string{"a disk of its own"},
		},
		"a marker without an owner is refused": {
			directory: target(), facts: directory.Facts{Marker: &spec.Marker{}}, want: directory.Refuse, reason: []string{"names no owner"},
		},
		"a target of another FileSystem is refused before it is ready too": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing, ofOtherName)},
			want: directory.Refuse, reason: []string{"belongs to the FileSystem storage/home"},
		},
		"a marker of an unknown state is refused": {
			directory: target(), facts: directory.Facts{Marker: marker("Sealed")}, want: directory.Refuse, reason: []string{`unknown state "Sealed"`},
		},
		"an initialization that was cut off behind some of its parts is resumed": {
			directory: numbered(true), want: directory.Resume,
			facts: directory.Facts{
				Marker: marker(spec.MarkerPreparing), Data: []string{"chunks", "format.conf", "nodeNumID"},
				Contents: map[string]string{"format.conf": "version=3\n", "nodeNumID": "2\n"}, EmptyDirectories: []string{"chunks"},
			},
		},
		"an initialization that was cut off behind its command is resumed": {
			directory: numbered(true), want: directory.Resume,
			facts: directory.Facts{
				Marker: marker(spec.MarkerPreparing, madeAs("5f")), Data: []string{"chunks", "db", "format.conf", "mirror", "nodeNumID", "targetNumID"},
				Contents: identified("2\n", "101\n"), EmptyDirectories: []string{"chunks", "mirror"}, Made: "5f",
			},
		},
		"a database that the initialization is not known to have made is not overwritten": {
			directory: numbered(true), want: directory.Refuse, reason: []string{"did not write (db)"},
			facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"db"}},
		},
		"a database that is not the one that the initialization has made is not overwritten": {
			directory: numbered(true), want: directory.Refuse, reason: []string{"did not write (db)"},
			facts: directory.Facts{Marker: marker(spec.MarkerPreparing, madeAs("5f")), Data: []string{"db"}, Made: "60"},
		},
		"a directory of the initialization that is not empty is not taken for it": {
			directory: numbered(true), want: directory.Refuse, reason: []string{"did not write (chunks)"},
			facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"chunks"}},
		},
		"an identity that the initialization did not write is not overwritten": {
			directory: numbered(true), want: directory.Refuse, reason: []string{"did not write (nodeNumID)"},
			facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"nodeNumID"}, Contents: map[string]string{"nodeNumID": "3\n"}},
		},
		"an initialization that was cut off is not resumed beside what is foreign": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Strangers: []string{"photos"}},
			want: directory.Refuse, reason: []string{"did not write (photos)", "move it away"},
		},
		"a directory with its identity is used, whatever the white space": {
			directory: numbered(false), want: directory.Use,
			facts: directory.Facts{Marker: marker(spec.MarkerInitialized), Data: []string{"format.conf", "nodeNumID", "targetNumID"}, Contents: identified("2", " 101\n\n")},
		},
		"trap 4: a directory with another's numeric id is refused": {
			directory: numbered(true), want: directory.Refuse,
			facts:  directory.Facts{Marker: marker(spec.MarkerInitialized), Data: []string{"format.conf"}, Contents: identified("3\n", "7\n")},
			reason: []string{"/data/numbered/data is another one's", "holds nodeNumID 3, targetNumID 7", "to be nodeNumID 2, targetNumID 101", "adopt"},
		},
		"trap 4: a directory with another's numeric id is refused, though it is that of a FileSystem of the same name": {
			directory: numbered(true), want: directory.Refuse, reason: []string{"holds nodeNumID 2, targetNumID 7"},
			facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), Data: []string{"format.conf"}, Contents: identified("2\n", "7\n")},
		},
		"trap 4: a directory with another's numeric id is refused, though a person has claimed it": {
			directory: numbered(false), want: directory.Refuse, reason: []string{"holds nodeNumID 3, targetNumID 101"},
			facts: directory.Facts{
				Marker: marker(spec.MarkerInitialized, func(m *spec.Marker) { m.Owner.UID = "" }), Data: []string{"format.conf"}, Contents: identified("3\n", "101\n"),
			},
		},
		"a directory with its identity is adopted from a FileSystem of the same name": {
			directory: numbered(true), want: directory.Adopt,
			facts: directory.Facts{Marker: marker(spec.MarkerInitialized, ofOldUID), Data: []string{"format.conf"}, Contents: identified("2\n", "101\n")},
		},
		"a directory without its identity is refused": {
			directory: numbered(true), want: directory.Refuse,
			facts:  directory.Facts{Marker: marker(spec.MarkerInitialized), Data: []string{"format.conf", "nodeNumID"}, Contents: map[string]string{"nodeNumID": "2\n"}},
			reason: []string{"has no identity: targetNumID can't be read", "is to say nodeNumID 2, targetNumID 101"},
		},
		"an identity that is long and strange is quoted, and cut": {
			directory: numbered(true), want: directory.Refuse, reason: []string{`holds nodeNumID "\x00\x00`, "...", "targetNumID 101, and"},
			facts: directory.Facts{
				Marker: marker(spec.MarkerInitialized), Data: []string{"format.conf"}, Contents: identified(strings.Repeat("\x00", 1000), "101\n"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := directory.Decide(c.directory, scratch, "master", "/ledger.json", c.facts)
			g.Expect(got.Action).To(Equal(c.want), got.Reason)
			if c.want != directory.Refuse {
				g.Expect(got.Reason).To(BeEmpty())
			}
			for _, part := range c.reason {
				g.Expect(got.Reason).To(ContainSubstring(part))
			}
		})
	}
}

// TestDecideNeverInitializesWhatIsNotProvenEmpty covers all combinations of facts, so that the order of the checks leaves no gap.
func TestDecideNeverInitializesWhatIsNotProvenEmpty(t *testing.T) {
	g := NewWithT(t)
	bools := []bool{false, true}
	markers := []*spec.Marker{nil}
	for _, state := range []spec.MarkerState{spec.MarkerPreparing, spec.MarkerInitialized, "Sealed"} {
		for _, owner := range []spec.Owner{scratch, {Namespace: "storage", Name: "scratch", UID: "old"}, {Namespace: "storage", Name: "scratch"}, {Namespace: "storage", Name: "home", UID: "new"}} {
			for _, component := range []string{"master", "metalogger"} {
				markers = append(markers, &spec.Marker{Owner: owner, Component: component, State: state})
			}
		}
	}
	contents := []map[string]string{nil, says(empty), says("MFSM 2.0")}
	counts := map[directory.Action]int{}
	for _, d := range []spec.Directory{metadataDirectory(true), metadataDirectory(false), target()} {
		for _, m := range markers {
			for _, data := range [][]string{nil, {"metadata.mfs"}, {"metadata.mfs.back"}, {"changelog.0.mfs", "metadata.mfs"}, {"00"}} {
				for _, content := range contents {
					for _, strangers := range [][]string{nil, {"photos"}} {
						for _, recorded := range bools {
							for _, gone := range bools {
								for _, elsewhere := range bools {
									f := directory.Facts{Marker: m, Data: data, Contents: content, Strangers: strangers, Recorded: recorded, DataGone: gone, DataElsewhere: elsewhere}
									got := directory.Decide(d, scratch, "master", "/ledger.json", f)
									counts[got.Action]++
									g.Expect(got.Reason == "").To(Equal(got.Action != directory.Refuse), "a refusal, and nothing else, has a reason: %+v", f)
									holdsTo(g, d, f, got.Action)
								}
							}
						}
					}
				}
			}
		}
	}
	g.Expect(counts).To(HaveLen(5), "every action was met: %v", counts)
}

// holdsTo asserts the facts that each action which changes the disk requires.
func holdsTo(g Gomega, d spec.Directory, f directory.Facts, action directory.Action) {
	mine := f.Marker != nil && f.Marker.Owner.Name == "scratch" && f.Marker.Component == "master"
	granted := d.Initialize == nil || d.Initialize.Granted
	switch action {
	case directory.Initialize:
		g.Expect(f.Marker == nil && len(f.Data) == 0 && len(f.Strangers) == 0 && !f.Recorded && granted).To(BeTrue(), "%+v", f)
	case directory.Resume:
		g.Expect(mine && f.Marker.State == spec.MarkerPreparing && granted && len(f.Strangers) == 0).To(BeTrue(), "%+v", f)
		for _, name := range f.Data {
			g.Expect(ours(d, f, name)).To(BeTrue(), "%s: %+v", name, f)
		}
	case directory.Use:
		g.Expect(mine && f.Marker.State == spec.MarkerInitialized && f.Marker.Owner == scratch && !f.DataGone && identifies(d, f)).To(BeTrue(), "%+v", f)
	case directory.Adopt:
		g.Expect(mine && f.Marker.State == spec.MarkerInitialized && (granted || f.Marker.Owner.UID == "") && !f.DataGone && identifies(d, f)).To(BeTrue(), "%+v", f)
	case directory.Refuse:
	}
	if action != directory.Refuse {
		g.Expect(f.DataElsewhere).To(BeFalse(), "%+v", f)
	}
}

// ours is true if the initialization is known to have written the named entry. It is written independently of Decide.
func ours(d spec.Directory, f directory.Facts, name string) bool {
	if d.Initialize == nil {
		return false
	}
	wanted := map[string]string{}
	for _, file := range d.Initialize.Files {
		wanted[file.Name] = file.Content
	}
	content, readable := f.Contents[name]
	want, isFile := wanted[name]
	isDirectory := slices.Contains(d.Initialize.Directories, name) && slices.Contains(f.EmptyDirectories, name)
	isMade := name == d.Initialize.Makes && f.Made != "" && f.Made == f.Marker.Made
	return isFile && readable && content == want || isDirectory || isMade
}

// identifies is true if every identity file has the expected content.
func identifies(d spec.Directory, f directory.Facts) bool {
	if d.Initialize == nil {
		return true
	}
	for _, file := range d.Initialize.Files {
		if content, there := f.Contents[file.Name]; file.Identity && (!there || strings.TrimSpace(content) != strings.TrimSpace(file.Content)) {
			return false
		}
	}
	return true
}

// FuzzDecide derives the facts from bytes. Whatever is found, a directory is never initialized if it contains something unknown or another
// identity, or without permission.
func FuzzDecide(f *testing.F) {
	for seed := range seeds(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		g := NewWithT(t)
		d, facts := factsOf(seed)
		got := directory.Decide(d, scratch, "master", "/ledger.json", facts)
		g.Expect(got.Reason == "").To(Equal(got.Action != directory.Refuse))
		holdsTo(g, d, facts, got.Action)
	})
}

// TestRandomFactsMeetEveryAction runs FuzzDecide with many facts that are the same in every run and are not all refused for one reason.
func TestRandomFactsMeetEveryAction(t *testing.T) {
	g := NewWithT(t)
	counts := map[directory.Action]int{}
	for seed := range seeds(50_000) {
		d, facts := factsOf(seed)
		action := directory.Decide(d, scratch, "master", "/ledger.json", facts).Action
		holdsTo(g, d, facts, action)
		counts[action]++
	}
	g.Expect(counts).To(HaveLen(5), "every action was met: %v", counts)
}

// seeds returns n random texts, the same in every run.
func seeds(n int) iter.Seq[[]byte] {
	random := rand.NewChaCha8([32]byte{7, 4, 6})
	return func(yield func([]byte) bool) {
		for range n {
			seed := make([]byte, 40)
			if _, err := random.Read(seed); err != nil || !yield(seed) {
				return
			}
		}
	}
}

// factsOf derives a directory and its facts from bytes, so that right and wrong facts are equally likely.
func factsOf(seed []byte) (spec.Directory, directory.Facts) {
	choose := func(n int) int {
		if len(seed) == 0 {
			return 0
		}
		choice := int(seed[0]) % n
		seed = seed[1:]
		return choice
	}
	one := func(values ...string) string { return values[choose(len(values))] }
	d := []spec.Directory{numbered(true), numbered(true), numbered(false), metadataDirectory(true), target()}[choose(5)]
	facts := directory.Facts{Recorded: choose(4) == 0, DataGone: choose(6) == 0, DataElsewhere: choose(8) == 0, Contents: map[string]string{}}
	if choose(4) > 0 {
		facts.Marker = &spec.Marker{
			Owner:     spec.Owner{Namespace: "storage", Name: one("scratch", "scratch", "scratch", "home", ""), UID: one("new", "new", "old", "")},
			Component: one("master", "master", "master", "metalogger"),
			State:     spec.MarkerState(one("Preparing", "Preparing", "Initialized", "Sealed")), Made: one("", "5f", "60"),
		}
	}
	if choose(6) == 0 {
		facts.Strangers = []string{"photos"}
	}
	facts.Made = one("", "5f")
	if facts.DataGone || choose(4) == 0 {
		return d, facts
	}
	var names []string
	if d.Initialize != nil {
		for _, file := range d.Initialize.Files {
			switch choose(6) {
			case 0:
			case 1:
				names = append(names, file.Name)
				facts.Contents[file.Name] = one("", "3", "MFSM 2.0", file.Content+"x")
			case 2:
				names = append(names, file.Name) // a file that can't be read
			default:
				names = append(names, file.Name)
				facts.Contents[file.Name] = file.Content
			}
		}
		for _, name := range d.Initialize.Directories {
			switch choose(4) {
			case 0:
			case 1:
				names = append(names, name)
			default:
				names = append(names, name)
				facts.EmptyDirectories = append(facts.EmptyDirectories, name)
			}
		}
		if d.Initialize.Makes != "" && choose(2) == 0 {
			names = append(names, d.Initialize.Makes)
		}
	}
	if choose(8) == 0 {
		names = append(names, one("00", "metadata.mfs.back", "lost+found", "inodes"))
	}
	facts.Data = names
	return d, facts
}
