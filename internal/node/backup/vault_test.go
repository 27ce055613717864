package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/objectstore/objectstoretest"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// vaultHome is the path of the backups in the bucket.
const vaultHome = "pfs/default.scratch-1b4e28ba/"

// inStore keeps the backups of a scene in an object store.
func (s *scene) inStore(before http.HandlerFunc) objectstoretest.Store {
	s.t.Helper()
	store := objectstoretest.Serve(s.t, before)
	s.o.Config.ObjectStore = &spec.ObjectStore{
		Endpoint: store.URL, Bucket: objectstoretest.Bucket, Prefix: "pfs", Region: "eu-north-1", Credentials: objectstoretest.Credentials(s.t),
	}
	return store
}

// vault opens the vault of the scene.
func (s *scene) vault() *Vault {
	s.t.Helper()
	in, err := OpenVault(*s.o.Config.ObjectStore, s.o.Config.Directory, s.o.Config.Owner)
	s.Expect(err).NotTo(HaveOccurred())
	return in
}

// files returns the names in the directories of a backup's attempts, without the directories.
func files(t *testing.T, store objectstoretest.Store, name string) []string {
	t.Helper()
	var out []string
	for _, key := range store.Keys(t) {
		if strings.HasPrefix(key, vaultHome+name+"/") {
			out = append(out, path.Base(key))
		}
	}
	return out
}

// attemptsOf returns the directories of the attempts at a backup.
func attemptsOf(t *testing.T, store objectstoretest.Store, name string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, key := range store.Keys(t) {
		if strings.HasPrefix(key, vaultHome+name+"/") {
			out[path.Dir(key)] = true
		}
	}
	return out
}

// put puts an object.
func (s *scene) put(store objectstoretest.Store, key, content string) {
	s.t.Helper()
	now := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
	_, err := store.PutObject(context.Background(), objectstoretest.Bucket, key, now, strings.NewReader(content), int64(len(content)))
	s.Expect(err).NotTo(HaveOccurred())
}

func TestABackupInAnObjectStoreIsReadBackFromTheStore(t *testing.T) {
	s := newScene(t)
	var got []string
	store := s.inStore(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/bench/pfs/") {
			got = append(got, path.Base(r.URL.Path))
		}
	})
	answer, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer).To(Equal(&spec.BackupAnswer{Name: "20261123-030000", Backups: []spec.BackupSeen{{
		Name: "20261123-030000", Verified: true, Time: "2026-11-23T03:00:05Z", Version: 41, ID: "ledger", SizeBytes: answer.Backups[0].SizeBytes,
	}}}))
	s.Expect(files(t, store, "20261123-030000")).To(ConsistOf("data", "log", spec.BackupRecordFile, spec.BackupManifestFile))
	s.Expect(attemptsOf(t, store, "20261123-030000")).To(HaveLen(1))
	s.Expect(got).To(ContainElements("data", "log", spec.BackupRecordFile), "what was put was got again")
	s.Expect(s.names()).To(BeEmpty(), "nothing stays in the pod")

	keys := store.Keys(t)
	again, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(again).To(Equal(answer))
	s.Expect(store.Keys(t)).To(Equal(keys), "what is there is not made again")
	s.Expect(s.said.String()).NotTo(ContainSubstring(objectstoretest.SecretKey))
}

func TestABackupThatAnObjectStoreHasChangedIsNotVerifiedAndAnotherOneIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene, store objectstoretest.Store, key string)
		says   string
	}{
		"a flipped bit": {func(s *scene, store objectstoretest.Store, key string) {
			content := []byte(store.Object(s.t, key))
			content[len(content)-1] ^= 1
			s.put(store, key, string(content))
		}, "it was changed at its place"},
		"a byte more": {func(s *scene, store objectstoretest.Store, key string) {
			s.put(store, key, store.Object(s.t, key)+"x")
		}, "it was changed at its place"},
		"an object that is gone": {func(s *scene, store objectstoretest.Store, key string) {
			_, err := store.DeleteObject(context.Background(), objectstoretest.Bucket, key)
			s.Expect(err).NotTo(HaveOccurred())
		}, "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			store := s.inStore(nil)
			s.o.Before = func(step string) error {
				for _, key := range store.Keys(t) {
					if step == "get data" && path.Base(key) == "data" {
						c.change(s, store, key)
					}
				}
				return nil
			}
			answer, err := s.run()
			s.Expect(err).To(MatchError(ContainSubstring(c.says)))
			s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Verified", false), HaveField("Message", ContainSubstring(c.says)))))

			s.o.Before = nil
			answer, err = s.run()
			s.Expect(err).NotTo(HaveOccurred(), "trying again makes another copy")
			s.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", true)))

			s.o.Config.Name = "20261124-030000"
			_, err = s.run()
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(attemptsOf(t, store, "20261123-030000")).To(HaveLen(1), "what was refused goes when there is something better")
		})
	}
}

func TestABackupThatHasLostAnObjectIsNoLongerVerified(t *testing.T) {
	s := newScene(t)
	store := s.inStore(nil)
	_, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	for _, key := range store.Keys(t) {
		if path.Base(key) == "log" {
			_, err := store.DeleteObject(t.Context(), objectstoretest.Bucket, key)
			s.Expect(err).NotTo(HaveOccurred())
		}
	}
	s.Expect(s.vault().List(t.Context())).To(ConsistOf(HaveField("Refused", ContainSubstring("the store has no log"))))

	s.o.Config.Name = "20261124-030000"
	answer, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Name", "20261124-030000"), HaveField("Verified", true))))
	s.Expect(files(t, store, "20261123-030000")).To(BeEmpty(), "as one that is not verified, it goes")
}

func TestABackupInAnObjectStoreGoesOnAfterAKillBeforeEachStep(t *testing.T) {
	// At the start there is one old backup to remove and one to keep.
	there := map[string]string{}
	first := newScene(t)
	for _, name := range []string{"20261121-030000", "20261122-030000"} {
		first.o.Config.Name = name
		store := first.inStore(nil)
		_, err := first.run()
		first.Expect(err).NotTo(HaveOccurred())
		for _, key := range store.Keys(t) {
			there[key] = store.Object(t, key)
		}
	}
	prepared := func(t *testing.T) (*scene, objectstoretest.Store) {
		s := newScene(t)
		store := s.inStore(nil)
		for key, content := range there {
			s.put(store, key, content)
		}
		s.change(77)
		return s, store
	}
	var steps []string
	s, _ := prepared(t)
	s.o.Before = func(step string) error {
		steps = append(steps, step)
		return nil
	}
	_, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(len(steps)).To(BeNumerically(">", 22), "it has steps: %v", steps)

	for _, i := range places.Kills.Of(t, len(steps)) {
		t.Run(fmt.Sprintf("%d %s", i, filepath.Base(steps[i])), func(t *testing.T) {
			t.Parallel()
			s, store := prepared(t)
			n := 0
			s.o.Before = func(string) error {
				if n++; n > i {
					return errKilled
				}
				return nil
			}
			answer, err := s.run()
			s.Expect(err).To(MatchError(errKilled))
			s.Expect(answer.Backups).To(ContainElement(HaveField("Verified", true)), "a verified one is always there")
			s.Expect(answer.Backups).NotTo(ContainElement(HaveField("Message", ContainSubstring("the store has no"))), "what has a manifest is whole")

			s.o.Before = nil
			answer, err = s.run()
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(answer.Backups).To(HaveExactElements(
				And(HaveField("Name", "20261123-030000"), HaveField("Verified", true), HaveField("Version", int64(77))),
				And(HaveField("Name", "20261122-030000"), HaveField("Verified", true))))
			s.Expect(files(t, store, "20261121-030000")).To(BeEmpty(), "what is not kept leaves nothing")

			s.o.Config.Name = "20261124-030000" // of another backup, after this one
			s.Expect(vaultPlace{place{s.o, s.home()}, s.vault()}.prune(t.Context())).To(Succeed())
			s.Expect(files(t, store, "20261123-030000")).To(ConsistOf("data", "log", spec.BackupRecordFile, spec.BackupManifestFile),
				"what was cut off has left nothing for ever")
		})
	}
}

func TestOtherObjectsBesideBackupsAreLeftAlone(t *testing.T) {
	s := newScene(t)
	store := s.inStore(nil)
	theirs := []string{
		"holidays.jpg", "pfs/default.another-1b4e28ba/20200101-000000/0a1b2c3d/data", vaultHome + "20200101-000000/notes.txt",
		vaultHome + "20200101-000000/mine/data", vaultHome + "readme/0a1b2c3d/data",
		vaultHome + "20261123-030000/0a1b2c3d/data", // another pod is making the same backup
	}
	for _, key := range theirs {
		s.put(store, key, "theirs")
	}
	another := vaultHome + "20200102-000000/0a1b2c3d/"
	s.put(store, another+"data", "theirs")
	s.put(store, another+spec.BackupManifestFile, `{"format": 1, "owner": {"namespace": "default", "name": "scratch", "uid": "1b4e28ba-another"}, "verified": "2020-01-02T00:00:00Z"}`)
	newer := vaultHome + "20200103-000000/0a1b2c3d/"
	s.put(store, newer+"data", "of a newer operator")
	s.put(store, newer+spec.BackupManifestFile, `{"format": 2}`)
	s.o.Config.Keep, s.o.Config.MaxAgeDays = 1, 1
	answer, err := s.run()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer.Backups).To(HaveExactElements(HaveField("Verified", true), HaveField("Message", ContainSubstring("older than the file"))))
	s.Expect(store.Keys(t)).To(ContainElements([]string{another + "data", newer + "data"}))
	for _, key := range theirs {
		s.Expect(store.Keys(t)).To(ContainElement(key))
	}
}

func TestARefusalOfAnObjectStoreIsReportedWithoutTheSecret(t *testing.T) {
	s := newScene(t)
	s.inStore(nil)
	s.o.Config.ObjectStore.Bucket = "nowhere"
	answer, err := s.run()
	s.Expect(answer).To(BeNil(), "nothing is known of what lies there")
	s.Expect(err).To(MatchError(And(ContainSubstring("make the bucket, or name another"), Not(ContainSubstring(objectstoretest.SecretKey)))))
}

func TestAStoreWithoutTheRightToDeleteKeepsTheNewBackup(t *testing.T) {
	s := newScene(t)
	store := s.inStore(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	s.o.Config.Keep = 1
	for _, name := range []string{"20261122-030000", "20261123-030000"} {
		s.o.Config.Name = name
		answer, err := s.run()
		s.Expect(answer.Backups).To(ContainElement(And(HaveField("Name", name), HaveField("Verified", true))))
		s.Expect(err == nil).To(Equal(name == "20261122-030000"))
		s.Expect(errors.Is(err, errKilled)).To(BeFalse())
	}
	s.Expect(files(t, store, "20261122-030000")).To(HaveLen(4))
}
