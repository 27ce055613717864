package directory

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
)

var frozenOwner = spec.Owner{Namespace: "storage", Name: "scratch", UID: "3f2a7c1e-5b0d-4c59-9a83-6d1f0e7b2c44"}

func frozenProver(ledger string) Prover {
	return Prover{
		Owner: frozenOwner, Ledger: ledger, Writer: durable.Writer{Chown: func(string, int, int) error { return nil }},
		Now: func() time.Time { return time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC) },
	}
}

func TestTheMarkerOfADirectoryIsReadAndWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	want := spec.Marker{
		Version: 1, Owner: frozenOwner, Component: "chunkserver-ssd", State: spec.MarkerPreparing,
		Made: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Restored: "0123abcd", Time: "2026-11-25T03:00:00Z",
	}
	storedtest.ExpectWhole(t, want)
	facts, err := look(spec.Directory{Path: filepath.Join("testdata", "v1"), Data: "data"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Marker).To(Equal(&want))

	top := t.TempDir()
	g.Expect(frozenProver("").writeMarker(spec.Directory{Path: top}, want)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(top, spec.MarkerFile))).To(BeEquivalentTo(storedtest.Fixture(t, "v1", spec.MarkerFile)))
}

func TestTheLedgerIsReadAndWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	const name, directory = "ledger-chunkserver-ssd.json", "/var/lib/parallelfs/targets/storage.scratch/scratch-ssd-093b004a85476148/chunkserver"
	want := Ledger{Version: 1, Directories: map[string]LedgerEntry{directory: {Owner: frozenOwner, Time: "2026-11-25T03:00:00Z"}}}
	storedtest.ExpectWhole(t, want)
	storedtest.ExpectWhole(t, want.Directories[directory])
	g.Expect(frozenProver(filepath.Join("testdata", "v1", name)).readLedger()).To(Equal(want))

	p := frozenProver(filepath.Join(t.TempDir(), name))
	g.Expect(p.record(spec.Directory{Path: directory}, Ledger{})).To(Succeed())
	g.Expect(os.ReadFile(p.Ledger)).To(BeEquivalentTo(storedtest.Fixture(t, "v1", name)))
}
