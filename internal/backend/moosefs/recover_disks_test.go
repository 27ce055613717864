//go:build disks

package moosefs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/objectstore/objectstoretest"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
	"parallelfs.dev/operator/test/places"
)

var scratch = spec.Owner{Namespace: "default", Name: "scratch", UID: "1b4e28ba"}

// follow starts a real metalogger of the master in a directory that the node binary has made.
func (m *master) follow() (own string) {
	m.t.Helper()
	own = m.t.TempDir()
	m.followIn(own)
	return own
}

// followIn is follow in a directory that an earlier metalogger may have used. It stops the metalogger when stop is called.
func (m *master) followIn(own string) (stop func()) {
	m.t.Helper()
	metalogger := m.followAt(own, m.port)
	m.joined(own)
	return func() {
		m.Expect(metalogger.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(metalogger.Wait()).To(Succeed())
		m.Expect(os.Remove(filepath.Join(own, "data", "changelog_ml_back.1.mfs"))).To(Succeed(), "the next one gets it anew")
	}
}

// joined waits until a metalogger has everything.
func (m *master) joined(own string) {
	m.t.Helper()
	m.Eventually(func() ([]os.DirEntry, error) { return os.ReadDir(filepath.Join(own, "data")) }).WithTimeout(patience.Bound(20*time.Second)).Should(
		ContainElement(HaveField("Name()", "changelog_ml_back.1.mfs")), "the metalogger follows")
}

// followAt starts a metalogger in a directory, which reaches the master at a port.
func (m *master) followAt(own string, port int) *exec.Cmd {
	m.t.Helper()
	data := filepath.Join(own, "data")
	m.Expect(os.MkdirAll(data, 0o750)).To(Succeed())
	m.Expect(os.WriteFile(filepath.Join(own, spec.MarkerFile), []byte(`{"version": 1, "owner": {"namespace": "default", "name": "scratch", "uid": "1b4e28ba"},
		"component": "metalogger", "state": "Initialized", "time": "2026-11-23T07:00:00Z"}`), 0o600)).To(Succeed())
	config := filepath.Join(m.t.TempDir(), "mfsmetalogger.cfg")
	m.Expect(os.WriteFile(config, fmt.Appendf(nil, "WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = %s\nMASTER_HOST = 127.0.0.1\nMASTER_PORT = %d\n"+
		"MASTER_RECONNECTION_DELAY = 1\n", data, port), 0o600)).To(Succeed())
	metalogger := exec.Command("mfsmetalogger", "-f", "-c", config, "start")
	metalogger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.Expect(metalogger.Start()).To(Succeed())
	m.t.Cleanup(func() {
		_ = syscall.Kill(-metalogger.Process.Pid, syscall.SIGKILL)
		_ = metalogger.Wait()
	})
	return metalogger
}

// followed waits until a metalogger has the last change of the master.
func (m *master) followed(own string) {
	m.t.Helper()
	m.Expect(m.follows(own)).To(BeTrue(), "the metalogger has the last change")
}

// follows reports whether a metalogger has the last change of the master, or gets it soon.
func (m *master) follows(own string) bool {
	end := time.Now().Add(patience.Bound(20 * time.Second))
	last := func(path string) string {
		content, _ := os.ReadFile(path)
		return string(content[max(0, len(content)-40):])
	}
	for range time.Tick(100 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		want := last(filepath.Join(m.data, "changelog.0.mfs"))
		if want != "" && want == last(filepath.Join(own, "data", "changelog_ml.0.mfs")) {
			return true
		}
	}
	return false
}

// lose loses the disk of a running master.
func (m *master) lose() {
	m.t.Helper()
	m.Expect(os.RemoveAll(m.data)).To(Succeed())
	m.kill()
}

// lookingAt returns the options that inspect a source.
func lookingAt(t *testing.T, source spec.RecoverySource) recovery.Options {
	t.Helper()
	told := spec.Recovery{Owner: scratch, Backend: "MooseFS", Version: version(t), Source: source, Scratch: t.TempDir()}
	return recovery.Options{
		Config: told, Method: New().RecoveryMethod(), Work: t.TempDir(), Output: io.Discard, Memory: backup.FreeMemory,
		Prover: directory.Prover{Owner: scratch, Component: "master", Ledger: filepath.Join(t.TempDir(), "ledger.json"),
			Writer: durable.Writer{Chown: os.Chown}, Now: time.Now},
	}
}

// ofMetalogger returns a metalogger's directory as a source.
func ofMetalogger(own string) spec.RecoverySource {
	return spec.RecoverySource{Directory: own, Component: "metalogger", Data: "data"}
}

// restoring returns the options that restore what was found to a new directory.
func restoring(o recovery.Options, found spec.RecoveryFound, to string) recovery.Options {
	o.Config.Restore = &spec.Restore{
		Plan: "0123abcd", Backup: found.Backup, Version: found.Version, ID: found.ID, Path: to, Data: "data", Component: "master", User: "root",
		Ledger: o.Prover.Ledger,
	}
	return o
}

// names returns those at the top of the filesystem that a new master serves from a directory.
func names(t *testing.T, directory string) []string {
	t.Helper()
	g := NewWithT(t)
	var names []string
	startMaster(t, filepath.Join(directory, "data")).mounted(func(path string) {
		entries, err := os.ReadDir(path)
		g.Expect(err).NotTo(HaveOccurred())
		for _, e := range entries {
			names = append(names, e.Name())
		}
	})
	return names
}

// tree returns everything in a directory, with its content.
func tree(t *testing.T, directory string) map[string]string {
	t.Helper()
	out := map[string]string{}
	NewWithT(t).Expect(filepath.WalkDir(directory, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			out[path] = string(content)
		}
		return err
	})).To(Succeed())
	return out
}

func TestALostMooseFSServesAgainFromItsMetalogger(t *testing.T) {
	data := fresh(t)
	m := startMaster(t, data)
	own := m.follow()
	made := makeDirectories(m, "first", 50)
	m.stop() // the stop saves the metadata, and begins another change log
	port := m.port
	m = startMasterAt(t, data, port)
	made = append(made, makeDirectories(m, "second", 50)...)
	m.followed(own)
	m.lose()

	later := time.Now().Add(time.Hour)
	m.Expect(os.Chtimes(filepath.Join(own, "data", "changelog_ml.0.mfs"), later, later)).To(Succeed())
	o := lookingAt(t, ofMetalogger(own))
	before := tree(t, own)
	answer, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	last, err := time.Parse(time.RFC3339, answer.Found[0].Time)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(last).To(BeTemporally("~", time.Now(), time.Minute), "it is the time of the last change, and not that of the file")
	m.Expect(answer.Found).To(ConsistOf(And(HaveField("Version", BeNumerically(">", 100)), HaveField("ID", MatchRegexp("^[0-9A-F]{16}$")))))
	to := filepath.Join(t.TempDir(), "metadata")
	r := restoring(o, answer.Found[0], to)
	answer, err = recovery.Run(t.Context(), r)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(answer.Restored).To(BeTrue())
	m.Expect(tree(t, own)).To(Equal(before), "the copy stays as it is")
	m.Expect(filepath.Glob(filepath.Join(to, "data", "*"))).To(ConsistOf(filepath.Join(to, "data", "metadata.mfs")))

	answer, err = recovery.Run(t.Context(), r)
	m.Expect(err).NotTo(HaveOccurred(), "to do it again does no harm")
	m.Expect(answer.Restored).To(BeTrue())
	prover := r.Prover
	action, err := prover.Prove(t.Context(), spec.Directory{Path: to, Data: "data",
		Initialize: &spec.Initialize{DataGlobs: []string{"metadata*"}, Files: []spec.InitialFile{{Name: "metadata.mfs", Content: "MFSM NEW"}}}}, nil)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(action).To(Equal(directory.Use), "a master may be started on it")
	m.Expect(names(t, to)).To(ContainElements(made...))
}

func TestAMetaloggerThatWasAwayWhileTheMasterWasStoppedIsACandidate(t *testing.T) {
	data := fresh(t)
	m := startMaster(t, data)
	own := t.TempDir()
	stop := m.followIn(own)
	made := makeDirectories(m, "first", 20)
	m.followed(own)
	stop()
	made = append(made, makeDirectories(m, "second", 20)...)
	m.stop()
	m = startMasterAt(t, data, m.port)
	made = append(made, makeDirectories(m, "third", 20)...)
	m.followIn(own)
	made = append(made, makeDirectories(m, "fourth", 20)...)
	m.followed(own)
	m.lose()

	o := lookingAt(t, ofMetalogger(own))
	answer, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	to := filepath.Join(t.TempDir(), "metadata")
	_, err = recovery.Run(t.Context(), restoring(o, answer.Found[0], to))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(names(t, to)).To(ContainElements(made...))
}

// stoppedWithAHole returns the directory of a master of 3.0.117 that was stopped while a program changed the mode of a directory. The last
// changes are in its metadata, and in no change log.
func stoppedWithAHole(t *testing.T) (data string) {
	t.Helper()
	g := NewWithT(t)
	data = t.TempDir()
	g.Expect(os.CopyFS(data, os.DirFS(filepath.Join("testdata", "hole")))).To(Succeed())
	g.Expect(os.Rename(filepath.Join(data, "metadata.mfs.back"), filepath.Join(data, "metadata.mfs"))).To(Succeed())
	log := filepath.Join(data, "changelog.0.mfs")
	content, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	before, _, found := strings.Cut(string(content), "573: ")
	g.Expect(found).To(BeTrue())
	g.Expect(os.WriteFile(log, []byte(before), 0o600)).To(Succeed())
	return data
}

func TestAMasterThatHasLostChangesOfItsLogAsItStoppedIsBackedUpAndItsDirectoryIsACandidate(t *testing.T) {
	data := stoppedWithAHole(t)
	m := startMaster(t, data)
	made := makeDirectories(m, "after", 10)
	b := m.backups()
	answer, err := backup.Run(t.Context(), b)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", true)))
	m.kill()
	m.Expect(serves(t, b)).To(ContainElements(append(made, "before")...))

	own := t.TempDir()
	m.Expect(os.Rename(data, filepath.Join(own, "data"))).To(Succeed())
	m.Expect(os.WriteFile(filepath.Join(own, spec.MarkerFile), []byte(`{"version": 1, "owner": {"namespace": "default", "name": "scratch", "uid": "1b4e28ba"},
		"component": "master", "state": "Initialized", "time": "2026-11-23T07:00:00Z"}`), 0o600)).To(Succeed())
	o := lookingAt(t, spec.RecoverySource{Directory: own, Component: "master", Data: "data"})
	found, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	to := filepath.Join(t.TempDir(), "metadata")
	_, err = recovery.Run(t.Context(), restoring(o, found.Found[0], to))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(names(t, to)).To(ContainElements(append(made, "before")...))
}

func TestALostMooseFSServesAgainFromABackupAndNamesIt(t *testing.T) {
	m := startMaster(t, fresh(t))
	made := makeDirectories(m, "saved", 50)
	b := m.backups()
	_, err := backup.Run(t.Context(), b)
	m.Expect(err).NotTo(HaveOccurred())
	makeDirectories(m, "later", 5)
	m.lose()

	o := lookingAt(t, spec.RecoverySource{Backups: filepath.Join(b.Config.Place, b.Config.Directory)})
	answer, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(answer.Found).To(ConsistOf(And(HaveField("Backup", b.Config.Name), HaveField("Version", BeNumerically(">", 50)))))
	to := filepath.Join(t.TempDir(), "metadata")
	_, err = recovery.Run(t.Context(), restoring(o, answer.Found[0], to))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(names(t, to)).To(And(ContainElements(made...), Not(ContainElement("later-000"))))
}

func TestALostMooseFSServesAgainFromABackupInAnObjectStore(t *testing.T) {
	m := startMaster(t, fresh(t))
	made := makeDirectories(m, "saved", 50)
	b := m.backups()
	b.Config.ObjectStore = &spec.ObjectStore{
		Endpoint: objectstoretest.Serve(t, nil).URL, Bucket: objectstoretest.Bucket, Prefix: "pfs", Credentials: objectstoretest.Credentials(t),
	}
	stored, err := backup.Run(t.Context(), b)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(stored.Backups).To(ConsistOf(And(HaveField("Verified", true), HaveField("Version", BeNumerically(">", 50)))))
	makeDirectories(m, "later", 5)
	m.lose()

	o := lookingAt(t, spec.RecoverySource{Backups: b.Config.Directory, ObjectStore: b.Config.ObjectStore})
	answer, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(answer.Found).To(ConsistOf(And(HaveField("Backup", b.Config.Name), HaveField("Version", stored.Backups[0].Version))))
	to := filepath.Join(t.TempDir(), "metadata")
	_, err = recovery.Run(t.Context(), restoring(o, answer.Found[0], to))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(names(t, to)).To(And(ContainElements(made...), Not(ContainElement("later-000"))))
}

func TestAKilledRestoreContinuesAndARefusedOneChangesNothing(t *testing.T) {
	m := startMaster(t, fresh(t))
	own := m.follow()
	makeDirectories(m, "some", 20)
	m.followed(own)
	m.lose()
	o := lookingAt(t, ofMetalogger(own))
	answer, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	found := answer.Found[0]

	killed := errors.New("killed")
	before := func(o recovery.Options, step func() error) recovery.Options {
		o.Before = func(string) error { return step() }
		o.Prover.Writer.Before = o.Before
		return o
	}
	steps := 0
	_, err = recovery.Run(t.Context(), before(restoring(o, found, filepath.Join(t.TempDir(), "metadata")), func() error {
		steps++
		return nil
	}))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(steps).To(BeNumerically(">", 15))
	for _, n := range places.Kills.Of(t, steps) {
		to, left := filepath.Join(t.TempDir(), "metadata"), n
		_, err := recovery.Run(t.Context(), before(restoring(o, found, to), func() error {
			if left--; left < 0 {
				return killed
			}
			return nil
		}))
		m.Expect(err).To(MatchError(killed))
		again, err := recovery.Run(t.Context(), restoring(o, found, to))
		m.Expect(err).NotTo(HaveOccurred(), "after %d steps", n)
		m.Expect(again.Restored).To(BeTrue())
		m.Expect(filepath.Glob(filepath.Join(to, "data", "*"))).To(ConsistOf(filepath.Join(to, "data", "metadata.mfs")), "after %d steps", n)
	}

	for name, c := range map[string]struct {
		change func(r *spec.Restore)
		why    string
	}{
		"newer":   {func(r *spec.Restore) { r.Version += 100 }, "changes are missing"},
		"another": {func(r *spec.Restore) { r.ID = "0000000000000001" }, "the source is another one by now"},
		"held": {func(r *spec.Restore) {
			m.Expect(os.MkdirAll(filepath.Join(r.Path, "data"), 0o755)).To(Succeed())
			m.Expect(os.WriteFile(filepath.Join(r.Path, "data", "metadata.mfs"), []byte("old"), 0o600)).To(Succeed())
		}, "is not empty (data/metadata.mfs)"},
		"strange": {func(r *spec.Restore) {
			m.Expect(os.MkdirAll(filepath.Join(r.Path, "photos"), 0o755)).To(Succeed())
		}, "is not empty (photos)"},
	} {
		to := filepath.Join(t.TempDir(), "metadata")
		r := restoring(o, found, to)
		c.change(r.Config.Restore)
		before := map[string]string{}
		if name == "held" || name == "strange" {
			before = tree(t, to)
		}
		answer, err := recovery.Run(t.Context(), r)
		m.Expect(err).To(MatchError(ContainSubstring(c.why)), name)
		m.Expect(answer.Restored).To(BeFalse())
		if name == "held" || name == "strange" {
			m.Expect(tree(t, to)).To(Equal(before), name)
		}
	}
}
