package directory_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/spec"
)

var scratch = spec.Owner{Namespace: "storage", Name: "scratch", UID: "new"}

const empty = "MFSM NEW"

func metadataDirectory(granted bool) spec.Directory {
	return spec.Directory{Path: "/data/meta", Data: "data", Initialise: &spec.Initialise{
		Granted: granted, DataGlobs: []string{"metadata*.mfs*", "changelog.*.mfs"}, Files: []spec.InitialFile{{Name: "metadata.mfs", Content: empty}},
	}}
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
	for name, c := range map[string]struct {
		directory spec.Directory
		facts     directory.Facts
		want      directory.Action
		reason    []string
	}{
		"an empty directory is initialised where that is granted": {
			directory: metadataDirectory(true), want: directory.Initialise,
		},
		"an empty target is initialised": {
			directory: target(), want: directory.Initialise,
		},
		"an empty directory is refused when the operator has recorded that the metadata was initialised": {
			directory: metadataDirectory(false), want: directory.Refuse, reason: []string{"/data/meta is empty", "not initialised again"},
		},
		"an empty directory in the ledger is refused: its disk is not there": {
			directory: metadataDirectory(true), facts: directory.Facts{Recorded: true},
			want: directory.Refuse, reason: []string{"its disk is not mounted or was replaced", "/ledger.json"},
		},
		"an empty target in the ledger is refused: its disk is not there": {
			directory: target(), facts: directory.Facts{Recorded: true},
			want: directory.Refuse, reason: []string{"/data/target", "its disk is not mounted or was replaced"},
		},
		"metadata without a marker is foreign, even where initialising is granted": {
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
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOtherName), Data: []string{"metadata.mfs"}},
			want: directory.Refuse, reason: []string{"belongs to the FileSystem storage/home"},
		},
		"a directory of a FileSystem of the same name in another namespace is refused": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOtherNamespace)},
			want: directory.Refuse, reason: []string{"belongs to the FileSystem lab/scratch"},
		},
		"a directory of another component is refused": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofChunkserver)},
			want: directory.Refuse, reason: []string{"belongs to the chunkserver-ssd", "not to its master"},
		},
		"a directory with its metadata is used": {
			directory: metadataDirectory(false), facts: directory.Facts{Marker: marker(spec.MarkerInitialised), Data: []string{"changelog.0.mfs", "metadata.mfs.back"}},
			want: directory.Use,
		},
		"a target is used, with or without data": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialised)}, want: directory.Use,
		},
		"a directory may hold strangers once it is marked": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialised), Strangers: []string{"notes.txt"}}, want: directory.Use,
		},
		"the data of a deleted FileSystem of the same name is adopted": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOldUID), Data: []string{"metadata.mfs"}},
			want: directory.Adopt,
		},
		"a target of a deleted FileSystem of the same name is adopted": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOldUID), Data: []string{"00"}}, want: directory.Adopt,
		},
		"lost metadata is never initialised again, though that is granted": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialised), Data: []string{"stats.mfs"}},
			want: directory.Refuse, reason: []string{"metadata in /data/meta/data is lost", "never initialised again", "metalogger"},
		},
		"lost metadata of a deleted FileSystem is not initialised either": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOldUID)},
			want: directory.Refuse, reason: []string{"is lost"},
		},
		"an initialisation that was cut off before the data is resumed": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerPreparing)}, want: directory.Resume,
		},
		"an initialisation that was cut off behind the data is resumed": {
			directory: metadataDirectory(true), want: directory.Resume,
			facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"metadata.mfs"}, Content: new(empty), Recorded: true},
		},
		"an initialisation by a FileSystem that was deleted meanwhile is resumed": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerPreparing, ofOldUID)}, want: directory.Resume,
		},
		"an initialisation of a target that was cut off is resumed": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Recorded: true}, want: directory.Resume,
		},
		"real metadata is not overwritten by an initialisation that was cut off": {
			directory: metadataDirectory(true), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"metadata.mfs"}},
			want: directory.Refuse, reason: []string{"holds data that the initialisation did not write (metadata.mfs)"},
		},
		"a file of the right name and another content is not overwritten": {
			directory: metadataDirectory(true), want: directory.Refuse,
			facts:  directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"metadata.mfs"}, Content: new("MFSM 2.0")},
			reason: []string{"did not write"},
		},
		"data beside the initial file is not overwritten": {
			directory: metadataDirectory(true), want: directory.Refuse,
			facts:  directory.Facts{Marker: marker(spec.MarkerPreparing), Data: []string{"changelog.0.mfs", "metadata.mfs"}, Content: new(empty)},
			reason: []string{"changelog.0.mfs, metadata.mfs"},
		},
		"an initialisation that was cut off is refused once the metadata is elsewhere": {
			directory: metadataDirectory(false), facts: directory.Facts{Marker: marker(spec.MarkerPreparing)},
			want: directory.Refuse, reason: []string{"has its metadata elsewhere"},
		},
		"metadata of an earlier FileSystem is refused once this one has its own": {
			directory: metadataDirectory(false), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOldUID), Data: []string{"metadata.mfs"}},
			want: directory.Refuse, reason: []string{"an earlier FileSystem storage/scratch (uid old)", "remove the uid"},
		},
		"metadata that a person has claimed is adopted, though the metadata was initialised before": {
			directory: metadataDirectory(false), want: directory.Adopt,
			facts: directory.Facts{Marker: marker(spec.MarkerInitialised, func(m *spec.Marker) { m.Owner.UID = "" }), Data: []string{"metadata.mfs.back"}},
		},
		"a target whose data directory was removed is refused": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialised), DataGone: true, Recorded: true},
			want: directory.Refuse, reason: []string{"/data/target/data is gone"},
		},
		"a target of a deleted FileSystem whose data directory was removed is refused": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialised, ofOldUID), DataGone: true},
			want: directory.Refuse, reason: []string{"/data/target/data is gone"},
		},
		"an initialisation that was cut off before its data directory is resumed": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing), DataGone: true}, want: directory.Resume,
		},
		"data on another device than its marker is refused": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerInitialised), DataElsewhere: true},
			want: directory.Refuse, reason: []string{"/data/target/data is a disk of its own", "Mount the disk on /data/target"},
		},
		"an empty directory whose data would lie on another device is refused": {
			directory: metadataDirectory(true), facts: directory.Facts{DataElsewhere: true}, want: directory.Refuse, reason: []string{"a disk of its own"},
		},
		"a marker without an owner is refused": {
			directory: target(), facts: directory.Facts{Marker: &spec.Marker{}}, want: directory.Refuse, reason: []string{"does not say whose"},
		},
		"a target of another FileSystem is refused before it is ready too": {
			directory: target(), facts: directory.Facts{Marker: marker(spec.MarkerPreparing, ofOtherName)},
			want: directory.Refuse, reason: []string{"belongs to the FileSystem storage/home"},
		},
		"a marker of an unknown state is refused": {
			directory: target(), facts: directory.Facts{Marker: marker("Sealed")}, want: directory.Refuse, reason: []string{`unknown state "Sealed"`},
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

// TestDecideNeverInitialisesWhatIsNotProvenEmpty goes through all combinations of facts, so that no order of the checks opens a way.
func TestDecideNeverInitialisesWhatIsNotProvenEmpty(t *testing.T) {
	g := NewWithT(t)
	bools := []bool{false, true}
	markers := []*spec.Marker{nil}
	for _, state := range []spec.MarkerState{spec.MarkerPreparing, spec.MarkerInitialised, "Sealed"} {
		for _, owner := range []spec.Owner{scratch, {Namespace: "storage", Name: "scratch", UID: "old"}, {Namespace: "storage", Name: "scratch"}, {Namespace: "storage", Name: "home", UID: "new"}} {
			for _, component := range []string{"master", "metalogger"} {
				markers = append(markers, &spec.Marker{Owner: owner, Component: component, State: state})
			}
		}
	}
	contents := []*string{nil, new(empty), new("MFSM 2.0")}
	counts := map[directory.Action]int{}
	for _, d := range []spec.Directory{metadataDirectory(true), metadataDirectory(false), target()} {
		for _, m := range markers {
			for _, data := range [][]string{nil, {"metadata.mfs"}, {"metadata.mfs.back"}, {"changelog.0.mfs", "metadata.mfs"}, {"00"}} {
				for _, content := range contents {
					for _, strangers := range [][]string{nil, {"photos"}} {
						for _, recorded := range bools {
							for _, gone := range bools {
								for _, elsewhere := range bools {
									f := directory.Facts{Marker: m, Data: data, Content: content, Strangers: strangers, Recorded: recorded, DataGone: gone, DataElsewhere: elsewhere}
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

// holdsTo states what must be true of the facts for each action that changes the disk.
func holdsTo(g Gomega, d spec.Directory, f directory.Facts, action directory.Action) {
	mine := f.Marker != nil && f.Marker.Owner.Name == "scratch" && f.Marker.Component == "master"
	granted := d.Initialise == nil || d.Initialise.Granted
	switch action {
	case directory.Initialise:
		g.Expect(f.Marker == nil && len(f.Data) == 0 && len(f.Strangers) == 0 && !f.Recorded && granted).To(BeTrue(), "%+v", f)
	case directory.Resume:
		onlyOurs := len(f.Data) == 0 || d.Initialise != nil && len(f.Data) == 1 && f.Data[0] == "metadata.mfs" && f.Content != nil && *f.Content == empty
		g.Expect(mine && f.Marker.State == spec.MarkerPreparing && granted && onlyOurs).To(BeTrue(), "%+v", f)
	case directory.Use:
		g.Expect(mine && f.Marker.State == spec.MarkerInitialised && f.Marker.Owner == scratch && !f.DataGone).To(BeTrue(), "%+v", f)
	case directory.Adopt:
		g.Expect(mine && f.Marker.State == spec.MarkerInitialised && (granted || f.Marker.Owner.UID == "") && !f.DataGone).To(BeTrue(), "%+v", f)
	case directory.Refuse:
	}
	if action != directory.Refuse {
		g.Expect(f.DataElsewhere).To(BeFalse(), "%+v", f)
	}
}
