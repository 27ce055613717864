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
		Granted: granted, DataGlobs: []string{"metadata*.mfs*", "changelog.*.mfs"}, File: "metadata.mfs", Content: empty,
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
