package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// ledger is a filesystem whose metadata is one file that begins with a version number of eight bytes, and a log with the number of the last
// change. It uses programs that every machine has.
type ledger struct {
	source string
	// ends is true for a program that copies nothing and ends, and unread for one that can't read the copy back.
	ends, unread bool
}

func (l ledger) Ask() []string { return []string{"cat", filepath.Join(l.source, "log")} }

func (l ledger) Answer(output []byte) (backend.BackupVersion, error) {
	var v backend.BackupVersion
	_, err := fmt.Sscan(string(output), &v.Version)
	return v, err
}

func (l ledger) Copy(to, work string) backend.BackupProgram {
	if l.ends {
		return backend.BackupProgram{Argv: []string{"sh", "-c", "echo nobody answers; exit 3"}}
	}
	script := filepath.Join(work, "copy.sh")
	return backend.BackupProgram{
		Files: map[string]string{script: "cp " + l.source + "/* " + to + " && mv " + to + "/log " + to + "/log.whole && exec sleep 60"},
		Argv:  []string{"sh", script},
	}
}

func (l ledger) Copied(found []backend.CopiedFile) map[string]string {
	if !slices.ContainsFunc(found, func(f backend.CopiedFile) bool { return f.Name == "log.whole" }) {
		return nil
	}
	return map[string]string{"log.whole": "log", "data": "data"}
}

// Changes implements backend.BackupMethod: the log has only the number of the last change.
func (l ledger) Changes([]backend.CopiedFile) backend.ChangeLogs { return backend.ChangeLogs{} }

func (l ledger) Check(string, string) backend.BackupProgram {
	if l.unread {
		return backend.BackupProgram{Argv: []string{"sh", "-c", "echo this is no ledger; exit 1"}}
	}
	return backend.BackupProgram{Argv: []string{"sh", "-c", "cat data > made && echo changed >> data.new"}, Makes: "made"}
}

func (l ledger) Made(head []byte) (backend.BackupVersion, error) {
	if len(head) < 8 {
		return backend.BackupVersion{}, errors.New("it is too short")
	}
	return backend.BackupVersion{Version: int64(binary.BigEndian.Uint64(head)), ID: "ledger"}, nil
}

func (l ledger) Memory(size int64) int64 { return size }

// scene is a running ledger and a place for its backups.
type scene struct {
	*WithT
	t    *testing.T
	o    Options
	now  time.Time
	l    ledger
	said bytes.Buffer
}

func newScene(t *testing.T) *scene {
	s := &scene{WithT: NewWithT(t), t: t, now: time.Date(2026, 11, 23, 3, 0, 5, 0, time.UTC), l: ledger{source: t.TempDir()}}
	record := t.TempDir()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(`{"items": [{"kind": "FileSystem"}]}`))
	s.Expect(errors.Join(err, w.Close())).To(Succeed())
	half := packed.Len() / 2
	s.write(filepath.Join(record, "record-000"), packed.Bytes()[:half])
	s.write(filepath.Join(record, "record-001"), packed.Bytes()[half:])
	s.o = Options{
		Config: spec.Backup{
			Owner: spec.Owner{Namespace: "default", Name: "scratch", UID: "1b4e28ba"}, Backend: "Ledger", Version: "1",
			Name: "20261123-030000", Place: t.TempDir(), Directory: "default.scratch-1b4e28ba", Keep: 2, Record: record, CopySeconds: 20,
		},
		Work: t.TempDir(), Output: &s.said, Now: func() time.Time { return s.now }, Memory: func() (int64, error) { return 1 << 40, nil },
	}
	s.change(41)
	return s
}

func (s *scene) write(path string, content []byte) {
	s.t.Helper()
	s.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
}

// change sets the version of the filesystem.
func (s *scene) change(version uint64) {
	s.t.Helper()
	s.write(filepath.Join(s.l.source, "data"), append(binary.BigEndian.AppendUint64(nil, version), "and all that is in it"...))
	s.write(filepath.Join(s.l.source, "log"), fmt.Appendf(nil, "%d\n", version))
}

func (s *scene) run() (*spec.BackupAnswer, error) {
	s.o.Method = s.l
	return Run(context.Background(), s.o)
}

func (s *scene) home() string { return filepath.Join(s.o.Config.Place, s.o.Config.Directory) }

// names returns all names at the place except the lock.
func (s *scene) names() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.home())
	s.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, e := range entries {
		if e.Name() != lockName {
			out = append(out, e.Name())
		}
	}
	return out
}

// flip changes one bit of a file.
func (s *scene) flip(path string) {
	s.t.Helper()
	content, err := os.ReadFile(path)
	s.Expect(err).NotTo(HaveOccurred())
	content[len(content)-1] ^= 1
	s.write(path, content)
}

func TestABackupThatWasReadBackIsVerified(t *testing.T) {
	s := newScene(t)
	answer, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer).To(Equal(&spec.BackupAnswer{Name: "20261123-030000", Backups: []spec.BackupSeen{{
		Name: "20261123-030000", Verified: true, Time: "2026-11-23T03:00:05Z", Version: 41, ID: "ledger", SizeBytes: answer.Backups[0].SizeBytes,
	}}}))
	s.Expect(s.names()).To(ConsistOf("20261123-030000"))
	backup := filepath.Join(s.home(), "20261123-030000")
	entries, err := os.ReadDir(backup)
	s.Expect(err).NotTo(HaveOccurred())
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	s.Expect(files).To(ConsistOf("data", "log", spec.BackupRecordFile, spec.BackupManifestFile), "the program that reads has changed nothing")
	s.Expect(readRecord(filepath.Join(backup, spec.BackupRecordFile))).To(Succeed(), "its pieces are put together")
	info, err := os.Stat(s.home())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o700)), "names of files are nobody else's business")

	again, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(again).To(Equal(answer), "what is there is not made again")
}

func TestABackupWithAFlippedBitIsNotVerified(t *testing.T) {
	for _, file := range []string{"data", "log", spec.BackupRecordFile} {
		t.Run(file, func(t *testing.T) {
			s := newScene(t)
			s.o.Before = func(step string) error {
				if step == "compare sums" {
					s.flip(filepath.Join(s.home(), "20261123-030000", file))
				}
				return nil
			}
			answer, err := s.run()
			s.Expect(err).To(MatchError(ContainSubstring("it was changed at its place")))
			s.Expect(answer.Message).To(ContainSubstring(file))
			s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Verified", false), HaveField("Version", BeZero()),
				HaveField("Message", ContainSubstring("it was changed at its place")))))

			s.o.Before = nil
			answer, err = s.run()
			s.Expect(err).NotTo(HaveOccurred(), "trying again makes another copy")
			s.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", true)))
		})
	}
}

func TestABackupIsRefusedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		how  func(s *scene)
		says string
	}{
		"a file is missing":            {func(s *scene) { s.Expect(os.Remove(filepath.Join(s.home(), "20261123-030000", "log"))).To(Succeed()) }, "can't be read"},
		"a file is too many":           {func(s *scene) { s.write(filepath.Join(s.home(), "20261123-030000", "more"), nil) }, "does not name"},
		"the program does not read it": {func(s *scene) { s.l.unread = true }, "exit code 1): this is no ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.o.Before = func(step string) error {
				if step == "compare sums" && !s.l.unread {
					c.how(s)
				}
				return nil
			}
			if strings.Contains(name, "program") {
				c.how(s)
			}
			answer, err := s.run()
			s.Expect(err).To(MatchError(ContainSubstring(c.says)))
			s.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", false)))
		})
	}
}

func TestACopyThatLacksWhatWasChangedBeforeIsRefused(t *testing.T) {
	s := newScene(t)
	s.write(filepath.Join(s.l.source, "log"), []byte("42\n")) // the filesystem reports 42 but copies 41
	answer, err := s.run()
	s.Expect(err).To(MatchError(ContainSubstring("the version 41 of the metadata, and the filesystem had 42")))
	s.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", false)))
}

func TestTooLittleMemoryIsNoFaultOfTheBackup(t *testing.T) {
	s := newScene(t)
	s.o.Memory = func() (int64, error) { return 1, nil }
	answer, err := s.run()
	s.Expect(err).To(MatchError(ContainSubstring("memory")))
	s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Verified", false), HaveField("Message", "it was not read back yet"))))
	before := s.names()

	s.o.Memory = func() (int64, error) { return 1 << 40, nil }
	s.change(50) // a second copy would have this version
	answer, err = s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.names()).To(Equal(before))
	s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Verified", true), HaveField("Version", int64(41)))), "it goes on with the copy that is there")
}

func TestAFilesystemThatHandsNothingOutIsNoBackup(t *testing.T) {
	s := newScene(t)
	s.l.ends = true
	answer, err := s.run()
	s.Expect(err).To(MatchError(And(ContainSubstring("exit code 3"), ContainSubstring("nobody answers"))))
	s.Expect(answer.Backups).To(BeEmpty())
}

func TestAFailedQueryIsReportedWithTheMeaningOfItsAnswer(t *testing.T) {
	s := newScene(t)
	s.Expect(os.Remove(filepath.Join(s.l.source, "log"))).To(Succeed())
	_, err := s.run()
	s.Expect(err).To(MatchError(And(ContainSubstring("cat: exit status 1"), ContainSubstring("EOF"))))
}

// errKilled ends a run before a step, as SIGKILL would.
var errKilled = errors.New("killed")

func TestABackupGoesOnAfterAKillBeforeEachStep(t *testing.T) {
	// At the start there is one old backup to remove and one to keep.
	prepared := func(t *testing.T) *scene {
		s := newScene(t)
		for _, name := range []string{"20261121-030000", "20261122-030000"} {
			s.o.Config.Name = name
			_, err := s.run()
			s.Expect(err).NotTo(HaveOccurred())
		}
		s.o.Config.Name = "20261123-030000"
		s.change(77)
		return s
	}
	var steps []string
	s := prepared(t)
	s.o.Before = func(step string) error {
		steps = append(steps, step)
		return nil
	}
	_, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(len(steps)).To(BeNumerically(">", 14), "it has steps: %v", steps)

	for _, i := range places.Kills.Of(t, len(steps)) {
		t.Run(fmt.Sprintf("%d %s", i, filepath.Base(steps[i])), func(t *testing.T) {
			t.Parallel()
			s := prepared(t)
			n := 0
			s.o.Before = func(string) error {
				if n++; n > i {
					return errKilled
				}
				return nil
			}
			answer, err := s.run()
			s.Expect(err).To(MatchError(errKilled))
			for _, name := range s.names() {
				if strings.HasPrefix(name, ".") {
					continue
				}
				m, err := readManifest(filepath.Join(s.home(), name))
				s.Expect(err).NotTo(HaveOccurred(), "what has the name of a backup is whole")
				s.Expect(compare(filepath.Join(s.home(), name), m)).To(Succeed())
			}
			s.Expect(answer.Backups).To(ContainElement(HaveField("Verified", true)), "a verified one is always there")

			s.o.Before = nil
			answer, err = s.run()
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(s.names()).To(Equal([]string{"20261122-030000", "20261123-030000"}))
			s.Expect(answer.Backups).To(HaveExactElements(
				And(HaveField("Name", "20261123-030000"), HaveField("Verified", true), HaveField("Version", int64(77))),
				And(HaveField("Name", "20261122-030000"), HaveField("Verified", true))))
		})
	}
}

func TestTwoPodsDoNotWriteToOnePlace(t *testing.T) {
	s := newScene(t)
	p := place{Options: s.o, home: s.home()}
	unlock, err := p.open()
	s.Expect(err).NotTo(HaveOccurred())
	_, err = s.run()
	s.Expect(err).To(MatchError(ContainSubstring("another pod")))
	unlock()
	_, err = s.run()
	s.Expect(err).NotTo(HaveOccurred())
}

func TestOtherFilesBesideBackupsAreLeftAlone(t *testing.T) {
	s := newScene(t)
	theirs := filepath.Join(s.home(), "20200101-000000")
	s.Expect(os.MkdirAll(theirs, 0o700)).To(Succeed())
	another := filepath.Join(s.home(), "20200102-000000")
	s.Expect(os.MkdirAll(another, 0o700)).To(Succeed())
	s.Expect(writeManifest(another, spec.BackupManifest{Format: spec.BackupFormat, Owner: spec.Owner{UID: "another"}})).To(Succeed())
	s.o.Config.Keep, s.o.Config.MaxAgeDays = 1, 1
	answer, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer.Backups).To(HaveLen(1))
	s.Expect(s.names()).To(ContainElements("20200101-000000", "20200102-000000"))
}

func TestTheNodeFileIsValidated(t *testing.T) {
	for name, change := range map[string]func(*spec.Backup){
		"a name that is no time":       func(b *spec.Backup) { b.Name = "../../etc" },
		"a directory outside":          func(b *spec.Backup) { b.Directory = "../elsewhere" },
		"no directory":                 func(b *spec.Backup) { b.Directory = "." },
		"a place that is not absolute": func(b *spec.Backup) { b.Place = "backups" },
		"nothing to keep":              func(b *spec.Backup) { b.Keep = 0 },
		"an age below zero":            func(b *spec.Backup) { b.MaxAgeDays = -1 },
		"no time for the copy":         func(b *spec.Backup) { b.CopySeconds = 0 },
		"a place without a mount":      func(b *spec.Backup) { b.Place = "/proc/nowhere" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			change(&s.o.Config)
			answer, err := s.run()
			s.Expect(err).To(HaveOccurred())
			s.Expect(answer).To(BeNil(), "nothing is said of what lies there")
		})
	}
}

func TestRetention(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	// of makes backups, newest first: v is a verified one, u an unverified one, each with its age in days.
	of := func(what string) []spec.BackupManifest {
		var out []spec.BackupManifest
		for word := range strings.FieldsSeq(what) {
			var days int
			_, err := fmt.Sscan(word[1:], &days)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			m := spec.BackupManifest{Name: word, Copied: now.AddDate(0, 0, -days).Format(time.RFC3339)}
			if word[0] == 'v' {
				m.Verified = m.Copied
			} else {
				m.Refused = "it can't be read"
			}
			out = append(out, m)
		}
		return out
	}
	for name, c := range map[string]struct {
		found      string
		keep, days int
		removed    []string
	}{
		"keeps as many as are asked for":                       {"v0 v1 v2 v3", 3, 0, []string{"v3"}},
		"counts only verified ones":                            {"u0 v1 u2 v3 v4", 2, 0, []string{"u2", "v4"}},
		"removes what is too old although it counts":           {"v0 v1 v8 v9", 7, 7, []string{"v8", "v9"}},
		"never removes the newest verified one for its age":    {"v30 v31", 7, 7, []string{"v31"}},
		"never removes it for those that are not":              {"u0 u1 v30", 1, 7, nil},
		"keeps two that nothing newer replaces":                {"u0 u1 u2 u3 v4", 1, 0, []string{"u2", "u3"}},
		"removes none where there is no verified one, but two": {"u0 u1", 1, 1, nil},
		"removes nothing from nothing":                         {"", 1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(outdated(of(c.found), c.keep, c.days, now)).To(Equal(c.removed))
		})
	}
}

func TestAnAnswerFitsIntoATerminationMessageAndNamesTheNewestVerified(t *testing.T) {
	s := newScene(t)
	s.o.Config.Keep = 50
	for i := range 6 {
		name := fmt.Sprintf("20261101-03000%d", i)
		path := filepath.Join(s.home(), name)
		s.Expect(os.MkdirAll(path, 0o700)).To(Succeed())
		m := spec.BackupManifest{Format: spec.BackupFormat, Owner: s.o.Config.Owner, Name: name, Refused: strings.Repeat("Ünlesbar. ", 300)}
		if i == 0 {
			m.Verified, m.Refused = "2026-11-01T03:00:00Z", ""
		}
		s.Expect(writeManifest(path, m)).To(Succeed())
	}
	p := place{Options: s.o, home: s.home()}
	found, err := p.list(t.Context())
	s.Expect(err).NotTo(HaveOccurred())
	answer := answer(s.o.Config.Name, found, errors.New(strings.Repeat("because ", 300)))
	s.Expect(answer.Backups).To(HaveLen(mostAnswered))
	s.Expect(answer.Backups[mostAnswered-1]).To(And(HaveField("Name", "20261101-030000"), HaveField("Verified", true)))
	line, err := json.Marshal(answer)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(len(line)).To(BeNumerically("<", 4096))
}

func TestTheNodeReportsItsFreeMemory(t *testing.T) {
	g := NewWithT(t)
	free, err := FreeMemory()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(free).To(BeNumerically(">", 1<<20))
}
