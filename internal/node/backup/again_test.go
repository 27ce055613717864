package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

// nights makes n backups, a week apart.
func (s *scene) nights(n int) (last *spec.BackupAnswer) {
	s.t.Helper()
	for range n {
		s.now = s.now.Add(7 * 24 * time.Hour)
		s.o.Config.Name = s.now.Format(spec.BackupNameLayout)
		var err error
		last, err = s.run()
		s.Expect(err).NotTo(HaveOccurred())
	}
	return last
}

func TestABackupIsReadAgainWhenItWasReadLongAgo(t *testing.T) {
	s := newScene(t)
	s.o.Config.Keep, s.o.Config.ReadAgainDays = 100, 30
	_, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	home := filepath.Join(s.o.Config.Place, s.o.Config.Directory)
	checked := func(name string) string {
		m, err := readManifest(filepath.Join(home, name))
		s.Expect(err).NotTo(HaveOccurred())
		return m.Checked
	}
	s.nights(4)
	s.Expect(checked("20261123-030000")).To(BeEmpty(), "it is four weeks old")
	s.nights(1)
	first := checked("20261123-030000")
	s.Expect(first).To(Equal(s.now.UTC().Format(time.RFC3339)))
	s.nights(1)
	s.Expect(checked("20261123-030000")).To(Equal(first), "one at a time, and it was just read")
	s.Expect(checked("20261130-030005")).NotTo(BeEmpty(), "the next one is five weeks old")
}

func TestABackupThatIsDamagedLaterIsFoundAndNamed(t *testing.T) {
	for name, found := range map[string]func(s *scene, path string){
		"a bit was lost": func(s *scene, path string) { s.flip(filepath.Join(path, "data")) },
		"a file is gone": func(s *scene, path string) { s.Expect(os.Remove(filepath.Join(path, "data"))).To(Succeed()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.o.Config.Keep, s.o.Config.ReadAgainDays = 100, 30
			_, err := s.run()
			s.Expect(err).NotTo(HaveOccurred())
			s.nights(4)
			found(s, filepath.Join(s.o.Config.Place, s.o.Config.Directory, "20261123-030000"))
			answer := s.nights(1)
			s.Expect(answer.Message).To(BeEmpty(), "the new backup is made")
			s.Expect(answer.Backups).To(HaveLen(4))
			s.Expect(answer.Backups[0].Verified).To(BeTrue())
			s.Expect(answer.Backups[3]).To(And(HaveField("Name", "20261123-030000"), HaveField("Verified", false),
				HaveField("Message", HavePrefix("it was verified at 2026-11-23T03:00:05Z and is damaged: "))), "whatever else is named")
			s.Expect(s.nights(1).Backups).NotTo(ContainElement(HaveField("Name", "20261123-030000")), "there are others")
		})
	}
}

// rack is a keeper that holds only manifests.
type rack struct {
	all  []spec.BackupManifest
	read []string
}

func (*rack) make(context.Context) error                            { return nil }
func (*rack) prune(context.Context) error                           { return nil }
func (s *rack) list(context.Context) ([]spec.BackupManifest, error) { return s.all, nil }
func (*rack) say(context.Context, spec.BackupManifest) error        { return nil }
func (s *rack) sums(_ context.Context, m spec.BackupManifest) error {
	s.read = append(s.read, m.Name)
	return nil
}

func TestOnlyAVerifiedBackupOfAFormThatIsKnownIsReadAgain(t *testing.T) {
	now := time.Date(2026, 12, 31, 3, 0, 0, 0, time.UTC)
	const old, young, ahead = "2026-11-01T03:00:00Z", "2026-12-30T03:00:00Z", "2027-01-01T03:00:00Z"
	for name, c := range map[string]struct {
		m    spec.BackupManifest
		days int
		read int
	}{
		"old":                   {spec.BackupManifest{Format: 1, Verified: old}, 30, 1},
		"it is not requested":   {spec.BackupManifest{Format: 1, Verified: old}, 0, 0},
		"new":                   {spec.BackupManifest{Format: 1, Verified: young}, 30, 0},
		"read again":            {spec.BackupManifest{Format: 1, Verified: old, Checked: young}, 30, 0},
		"read in the future":    {spec.BackupManifest{Format: 1, Verified: old, Checked: ahead}, 30, 1},
		"a clock is a bit late": {spec.BackupManifest{Format: 1, Verified: "2026-12-31T03:04:00Z"}, 30, 0},
		"refused":               {spec.BackupManifest{Format: 1, Verified: old, Refused: "damaged"}, 30, 0},
		"never read":            {spec.BackupManifest{Format: 1}, 30, 0},
		"of a newer operator's": {spec.BackupManifest{Format: 2, Verified: old}, 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &rack{all: []spec.BackupManifest{c.m}}
			g.Expect(readOld(t.Context(), s, spec.Backup{ReadAgainDays: c.days}, now)).To(Succeed())
			g.Expect(s.read).To(HaveLen(c.read), fmt.Sprint(c.m))
		})
	}
}
