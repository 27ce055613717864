package beegfs_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// said is what the operator's probe asks a filesystem.
func (c *cluster) said() backend.State {
	c.t.Helper()
	questions := beegfs.New().Questions(c.version, c.fill("{ADDRESS}:{PORT+10}"))
	var outputs [][]byte
	for _, argv := range questions.Commands() {
		line := ctl + strings.Join(argv[1:len(argv)-1], " ") // the last says where the filesystem is
		if strings.HasPrefix(c.version, "8") {
			line = "beegfs " + strings.ReplaceAll(strings.Join(argv[1:], " "), "--auth-file=/etc/parallelfs-auth/conn.auth", "--auth-file={DIR}/auth")
		}
		output, _, _ := c.runApart(line, "")
		outputs = append(outputs, []byte(output))
	}
	state, err := questions.Parse(outputs)
	NewWithT(c.t).Expect(err).NotTo(HaveOccurred())
	return state
}

// A real service writes what it learns every 15 minutes, and at its end.
func TestTheStoreOfSevenIsReadAsTheOperatorBacksItUp(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startAll()
	_, code := c.run(ctl + "--addstoragepool --id=2 --desc=bulk --targets=201")
	g := NewWithT(t)
	g.Expect(code).To(Equal(0))
	_, code = c.run(ctl + "--addmirrorgroup --nodetype=storage --primary=101 --secondary=102 --groupid=3")
	g.Expect(code).To(Equal(0))
	said := c.said()
	g.Expect(said.Targets).NotTo(BeEmpty())
	g.Expect(said.Pools).To(ContainElement(And(HaveField("ID", int32(2)), HaveField("Targets", []int32{201}))))
	g.Expect(said.Mirrors).To(ConsistOf(HaveField("ID", int32(3))))
	if c.real {
		c.daemons["mgmtd-daemon"].end(t)
	} else {
		c.daemons["mgmtd-daemon"].kill() // with buddy groups, it takes long to end
	}
	files, err := store.Read(t.Context(), c.path("mgmtd"), []string{"*.tmp*"})
	g.Expect(err).NotTo(HaveOccurred())
	read, err := beegfs.New().ReadStore(c.version, backend.StoreContent{Files: files}, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())

	said.Pools[1].Targets = append(said.Pools[1].Targets, 101)
	read, err = beegfs.New().ReadStore(c.version, backend.StoreContent{Files: files}, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(Equal([]string{"storage pool 2 (bulk) with its targets"}))
}

// licensed8 is a cluster8 whose service has a license, with a pool and a buddy group.
func licensed8(t *testing.T) *cluster {
	t.Helper()
	c := cluster8(t)
	c.daemons["mgmtd"].end(t)
	c.write("license.pem", "-----BEGIN CERTIFICATE-----\nQkVFR0ZTLURPVUJMRS1MSUNFTlNF\n-----END CERTIFICATE-----\n")
	c.start("mgmtd-licensed", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	g := NewWithT(t)
	for _, line := range []string{"pool create ssd --num-id=2", "mirror create one --node-type=storage --primary=s:101 --secondary=s:102"} {
		g.Eventually(func() string { said, _ := c.run(cli + line); return said }).WithTimeout(long).ShouldNot(ContainSubstring("Error"), line)
	}
	return c
}

// stored is a copy of the database of a service of 8, and what it says.
func (c *cluster) stored() (map[string][]byte, backend.StoreContent) {
	c.t.Helper()
	g, database := NewWithT(c.t), beegfs.New().StoreDatabase(c.version)
	files, err := store.Copy(c.t.Context(), c.path("store"), c.t.TempDir(), database, nil)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := store.Content(c.t.Context(), files, c.t.TempDir(), database)
	g.Expect(err).NotTo(HaveOccurred())
	return files, content
}

// joins103 gives the storage server of a cluster8 one target more.
func (c *cluster) joins103() {
	c.t.Helper()
	c.prepareTarget("target-103", 103, 1)
	NewWithT(c.t).Expect(c.daemons["storage"].end(c.t)).To(Equal(0))
	c.start("storage-more", storage8("target-101", "target-102", "target-103"))
	c.online8(4)
}

// The service writes each report of each server, so its files never lie still.
func TestTheDatabaseOfEightIsCopiedAsTheOperatorBacksItUpWhileItsServiceWrites(t *testing.T) {
	g := NewWithT(t)
	c := licensed8(t)
	said := c.said()
	g.Expect(said).To(And(HaveField("Targets", HaveLen(3)), HaveField("Pools", HaveLen(2)), HaveField("Mirrors", HaveLen(1)), HaveField("RootID", int32(1))))
	g.Expect(c.path("store", "mgmtd.sqlite-wal")).To(BeAnExistingFile())
	files, content := c.stored()
	read, err := beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())
	g.Expect(read.ID).To(MatchRegexp("^[0-9a-f]{32}$"))

	// What joins after the copy is not in it, and is in the next one.
	c.joins103()
	said = c.said()
	read, err = beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(ContainElement("storage target 103 of server 1"))
	_, content = c.stored()
	read, err = beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())

	// A service starts with a copy, and knows what was in it.
	c.daemons["mgmtd-licensed"].kill()
	g.Expect(os.RemoveAll(c.path("store"))).To(Succeed())
	g.Expect(os.Mkdir(c.path("store"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(c.path("store", "mgmtd.sqlite"), files["mgmtd.sqlite"], 0o600)).To(Succeed())
	c.start("mgmtd-restored", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	g.Eventually(func() string { said, _ := c.run(cli + "pool list"); return said }).WithTimeout(long).Should(ContainSubstring("s:101,s:102"))
}

// backedUp is the place of a verified backup, as `node backup` makes it of what a probe hands out.
func (c *cluster) backedUp(owner spec.Owner, name string) string {
	c.t.Helper()
	g := NewWithT(c.t)
	var record bytes.Buffer
	w := gzip.NewWriter(&record)
	_, err := w.Write([]byte(`{"items": [{}]}`))
	g.Expect(errors.Join(err, w.Close())).To(Succeed())
	c.write("record/record-000", record.String())
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := c.said()
		files, _ := c.stored()
		packed, err := store.Pack(files, said)
		g.Expect(err).NotTo(HaveOccurred())
		secret, nonce := []byte("the secret of this test"), r.URL.Query().Get(backend.NonceParameter)
		w.Header().Set(backend.SignatureHeader, store.Signature(secret, nonce, packed))
		_, _ = w.Write(packed)
	}))
	defer probe.Close()
	told := spec.Backup{
		Owner: owner, Backend: "BeeGFS", Version: c.version, Copied: probe.Listener.Addr().String(), SecretFile: c.path("auth"), Name: name,
		Place: c.t.TempDir(), Directory: "backups", Keep: 2, Record: c.path("record"), CopySeconds: 60,
	}
	answer, err := backup.Run(c.t.Context(), backup.Options{
		Told: told, Store: beegfs.New(), Work: c.t.TempDir(), Output: io.Discard, Now: time.Now, Memory: backup.FreeMemory,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Backups).To(ConsistOf(And(HaveField("Name", name), HaveField("Verified", true))))
	return filepath.Join(told.Place, told.Directory)
}

func TestALostServiceOfEightServesAgainFromABackupAsTheSameFilesystemAndWhatJoinedLaterJoinsAnew(t *testing.T) {
	g := NewWithT(t)
	c := licensed8(t)
	const name = "20261123-030000"
	owner := spec.Owner{Namespace: "default", Name: "hive", UID: "1b4e28ba"}
	place := c.backedUp(owner, name)
	before := c.said()
	idOf := func() string {
		_, content := c.stored()
		read, err := beegfs.New().ReadStore(c.version, content, backend.State{})
		g.Expect(err).NotTo(HaveOccurred())
		return read.ID
	}
	id := idOf()
	c.joins103()
	c.daemons["mgmtd-licensed"].kill()
	g.Expect(os.RemoveAll(c.path("store"))).To(Succeed(), "its disk is lost")

	o := recovery.Options{
		Told: spec.Recovery{
			Owner: owner, Backend: "BeeGFS", Version: c.version, Scratch: t.TempDir(), Source: spec.RecoverySource{Backups: place},
			Known: backend.Known(map[v1alpha1.Role][]int32{v1alpha1.RoleMetadata: {1}, v1alpha1.RoleStorage: {1}},
				map[v1alpha1.Role][]int32{v1alpha1.RoleStorage: {101, 102, 103}}),
		},
		Store: beegfs.New(), Work: t.TempDir(), Output: io.Discard,
		Prover: directory.Prover{
			Owner: owner, Component: "management", Ledger: c.path("ledger.json"), Now: time.Now,
			Writer: durable.Writer{Chown: func(string, int, int) error { return nil }},
		},
	}
	answer, err := recovery.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Found).To(ConsistOf(And(HaveField("Backup", name), HaveField("ID", id), HaveField("Lacks", "storage target 103"))))
	to := spec.Directory{Path: c.path("management"), Data: "data"}
	o.Told.Restore = &spec.Restore{
		Plan: "0123abcd", Backup: name, ID: id, Path: to.Path, Data: to.Data, Component: "management", User: "root", Ledger: o.Prover.Ledger,
	}
	answer, err = recovery.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Restored).To(BeTrue())
	g.Expect(o.Prover.Prove(t.Context(), to, nil)).To(Equal(directory.Use), "a service may be started on it")
	g.Expect(os.Symlink(filepath.Join(to.Path, to.Data), c.path("store"))).To(Succeed())
	c.start("mgmtd-restored", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	c.online8(3)
	g.Expect(idOf()).To(Equal(id))
	after := c.said()
	g.Expect(after).To(And(
		HaveField("Pools", Equal(before.Pools)), HaveField("Mirrors", Equal(before.Mirrors)), HaveField("RootID", before.RootID)))
	g.Expect(after.Targets).NotTo(ContainElement(HaveField("ID", int32(103))))

	// What joined later tells of itself when its server starts.
	g.Expect(c.daemons["storage-more"].end(t)).To(Equal(0))
	c.start("storage-again", storage8("target-101", "target-102", "target-103"))
	c.online8(4)
	g.Expect(c.said().Targets).To(ContainElement(And(HaveField("ID", int32(103)), HaveField("ServerID", int32(1)))))
}
