package beegfs_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
	"parallelfs.dev/operator/test/doubles/beegfs/disk"
)

// said returns the state that the operator's probe reads from a filesystem.
func (c *cluster) said() backend.State {
	c.t.Helper()
	questions := beegfs.New().Questions(c.version, c.fill("{ADDRESS}:{PORT+10}"))
	ask := func(argv []string, _ time.Duration) ([]byte, error) {
		line := ctl + strings.Join(argv[1:len(argv)-1], " ") // the last argument is the location of the filesystem
		if strings.HasPrefix(c.version, "8") {
			line = "beegfs " + strings.ReplaceAll(strings.Join(argv[1:], " "), "--auth-file=/etc/parallelfs-auth/conn.auth", "--auth-file={DIR}/auth")
		}
		output, _, _ := c.runApart(line, "")
		return []byte(output), nil
	}
	var outputs [][]byte
	for _, argv := range questions.Commands() {
		output, _ := ask(argv, 0)
		outputs = append(outputs, output)
	}
	state, err := questions.Parse(outputs)
	NewWithT(c.t).Expect(err).NotTo(HaveOccurred())
	questions.(backend.LaterQuestions).Later(&state, ask)
	return state
}

// A real service writes its changes every 15 minutes and at its end.
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
		c.daemons["mgmtd-daemon"].kill() // with buddy groups, a clean stop takes long
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

// licensed8 is a cluster8 with a licensed service, a pool and a buddy group.
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

// stored returns a copy of the database of a service of 8, and its content.
func (c *cluster) stored() (map[string][]byte, backend.StoreContent) {
	c.t.Helper()
	g, database := NewWithT(c.t), beegfs.New().StoreDatabase(c.version)
	files, err := store.Copy(c.t.Context(), c.path("store"), c.t.TempDir(), database, nil)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := store.Content(c.t.Context(), files, c.t.TempDir(), database)
	g.Expect(err).NotTo(HaveOccurred())
	return files, content
}

// joins103 adds one more target to the storage server of a cluster8.
func (c *cluster) joins103() {
	c.t.Helper()
	c.prepareTarget("target-103", 103, 1)
	NewWithT(c.t).Expect(c.daemons["storage"].end(c.t)).To(Equal(0))
	c.start("storage-more", storage8("target-101", "target-102", "target-103"))
	c.online8(4)
}

// The service stores each report of each server, so its files change constantly.
func TestTheDatabaseOfEightIsCopiedAsTheOperatorBacksItUpWhileItsServiceWrites(t *testing.T) {
	g := NewWithT(t)
	c := licensed8(t)
	said := c.said()
	g.Expect(said).To(And(HaveField("Targets", HaveLen(3)), HaveField("Pools", HaveLen(2)), HaveField("Mirrors", HaveLen(1)), HaveField("RootID", int32(1))))
	for _, target := range said.Targets {
		g.Expect(target).To(Or(HaveField("UsedInodes", BeNumerically(">", 0)), HaveField("Inodes", BeZero())), "a filesystem without inodes has none in use")
		space, err := disk.Space(c.path("target-101"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(target.Inodes).To(BeEquivalentTo(space.Inodes), "all targets of this test lie on one filesystem")
	}
	g.Expect(c.path("store", "mgmtd.sqlite-wal")).To(BeAnExistingFile())
	files, content := c.stored()
	read, err := beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())
	g.Expect(read.ID).To(MatchRegexp("^[0-9a-f]{32}$"))

	// A target that joins after the copy is missing in it, and is in the next one.
	c.joins103()
	said = c.said()
	read, err = beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(ContainElement("storage target 103 of server 1"))
	_, content = c.stored()
	read, err = beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())

	// A service that starts with a copy has its content.
	c.daemons["mgmtd-licensed"].kill()
	g.Expect(os.RemoveAll(c.path("store"))).To(Succeed())
	g.Expect(os.Mkdir(c.path("store"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(c.path("store", "mgmtd.sqlite"), files["mgmtd.sqlite"], 0o600)).To(Succeed())
	c.start("mgmtd-restored", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	g.Eventually(func() string { said, _ := c.run(cli + "pool list"); return said }).WithTimeout(long).Should(ContainSubstring("s:101,s:102"))
}

// place returns the place of a filesystem's backups, with the operator's record.
func (c *cluster) place(owner spec.Owner) spec.Backup {
	c.t.Helper()
	var record bytes.Buffer
	w := gzip.NewWriter(&record)
	_, err := w.Write([]byte(`{"items": [{}]}`))
	NewWithT(c.t).Expect(errors.Join(err, w.Close())).To(Succeed())
	c.write("record/record-000", record.String())
	return spec.Backup{
		Owner: owner, Backend: "BeeGFS", Version: c.version, SecretFile: c.path("auth"),
		Place: c.t.TempDir(), Directory: "backups", Keep: 2, Record: c.path("record"), CopySeconds: 60,
	}
}

// files returns the files of the store: those of 7 as they are, for 8 a copy of the database.
func (c *cluster) files() map[string][]byte {
	c.t.Helper()
	if strings.HasPrefix(c.version, "8") {
		files, _ := c.stored()
		return files
	}
	files, err := store.Read(c.t.Context(), c.path("mgmtd"), []string{"*.tmp-*"})
	NewWithT(c.t).Expect(err).NotTo(HaveOccurred())
	return files
}

// backUp makes a verified backup in the same way as `node backup` from a probe's store, and returns the directory of backups.
func (c *cluster) backUp(told spec.Backup, name string) string {
	c.t.Helper()
	g := NewWithT(c.t)
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := c.said()
		packed, err := store.Pack(c.files(), said)
		g.Expect(err).NotTo(HaveOccurred())
		secret, nonce := []byte("the secret of this test"), r.URL.Query().Get(exchange.NonceParameter)
		w.Header().Set(exchange.SignatureHeader, store.Signature(secret, nonce, packed))
		_, _ = w.Write(packed)
	}))
	defer probe.Close()
	told.Copied, told.Name = probe.Listener.Addr().String(), name
	answer, err := backup.Run(c.t.Context(), backup.Options{
		Config: told, Store: beegfs.New(), Work: c.t.TempDir(), Output: io.Discard, Now: time.Now, Memory: backup.FreeMemory,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Backups).To(ConsistOf(And(HaveField("Name", name), HaveField("Verified", true))))
	return filepath.Join(told.Place, told.Directory)
}

const backupName = "20261123-030000"

// recovers puts the store of the management service from the only backup of a place back into the directory management/data, in the same
// way as `node recover`: it inspects the backup, and then restores by the plan. lacks names what was known and is missing in the candidate.
func (c *cluster) recovers(owner spec.Owner, place, id, lacks string, targets ...int32) {
	c.t.Helper()
	g := NewWithT(c.t)
	o := recovery.Options{
		Config: spec.Recovery{
			Owner: owner, Backend: "BeeGFS", Version: c.version, Scratch: c.t.TempDir(), Source: spec.RecoverySource{Backups: place},
			Known: exchange.Known(map[v1alpha1.Role][]int32{v1alpha1.RoleMetadata: {1}, v1alpha1.RoleStorage: {1}},
				map[v1alpha1.Role][]int32{v1alpha1.RoleStorage: targets}),
		},
		Store: beegfs.New(), Work: c.t.TempDir(), Output: io.Discard,
		Prover: directory.Prover{
			Owner: owner, Component: "management", Ledger: c.path("ledger.json"), Now: time.Now,
			Writer: durable.Writer{Chown: func(string, int, int) error { return nil }},
		},
	}
	answer, err := recovery.Run(c.t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Found).To(ConsistOf(And(HaveField("Backup", backupName), HaveField("ID", id), HaveField("Lacks", lacks))))
	to := spec.Directory{Path: c.path("management"), Data: "data"}
	o.Config.Restore = &spec.Restore{
		Plan: "0123abcd", Backup: backupName, ID: id, Path: to.Path, Data: to.Data, Component: "management", User: "root", Ledger: o.Prover.Ledger,
	}
	answer, err = recovery.Run(c.t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Restored).To(BeTrue())
	g.Expect(o.Prover.Prove(c.t.Context(), to, nil)).To(Equal(directory.Use), "a service may be started on it")
}

func TestALostServiceOfEightServesAgainFromABackupAndLaterTargetsJoinAgain(t *testing.T) {
	g := NewWithT(t)
	c := licensed8(t)
	owner := spec.Owner{Namespace: "default", Name: "hive", UID: "1b4e28ba"}
	place := c.backUp(c.place(owner), backupName)
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

	c.recovers(owner, place, id, "storage target 103", 101, 102, 103)
	g.Expect(os.Symlink(c.path("management", "data"), c.path("store"))).To(Succeed())
	c.start("mgmtd-restored", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	c.online8(3)
	g.Expect(idOf()).To(Equal(id))
	after := c.said()
	g.Expect(after).To(And(
		HaveField("Pools", Equal(before.Pools)), HaveField("Mirrors", Equal(before.Mirrors)), HaveField("RootID", before.RootID)))
	g.Expect(after.Targets).NotTo(ContainElement(HaveField("ID", int32(103))))

	// A target that joined later registers when its server starts.
	g.Expect(c.daemons["storage-more"].end(t)).To(Equal(0))
	c.start("storage-again", storage8("target-101", "target-102", "target-103"))
	c.online8(4)
	g.Expect(c.said().Targets).To(ContainElement(And(HaveField("ID", int32(103)), HaveField("ServerID", int32(1)))))
}

// A real service writes its changes every 15 minutes and at its end, so here it ends before the backup.
func TestALostServiceOfSevenServesAgainFromABackupAndWhatJoinedLaterJoinsWithItsNumber(t *testing.T) {
	t.Parallel() // with a buddy group, the service needs half a minute to end
	g := NewWithT(t)
	c := newCluster(t, "7.4.6")
	c.startAll()
	for _, mode := range []string{"--addstoragepool --id=2 --desc=bulk --targets=201", "--addmirrorgroup --nodetype=storage --primary=101 --secondary=102 --groupid=3"} {
		said, code := c.run(ctl + mode)
		g.Expect(code).To(Equal(0), said)
	}
	g.Expect(c.daemons["mgmtd-daemon"].end(t)).To(Equal(0))
	const service = "beegfs-mgmtd " + options + " " + limits + " storeMgmtdDirectory={DIR}/"
	c.start("mgmtd-again", service+"mgmtd")
	c.online()
	owner := spec.Owner{Namespace: "default", Name: "hive", UID: "1b4e28ba"}
	place := c.backUp(c.place(owner), backupName)
	before := c.said()

	// Another target joins, and the disk of the service is lost.
	c.prepareTarget("target-202", 202, 2)
	g.Expect(c.daemons["storage-2-daemon"].end(t)).To(Equal(0))
	two := strings.Replace(c.storageTwo(), "{DIR}/target-201", "{DIR}/target-201,{DIR}/target-202", 1)
	c.start("storage-2-more", two)
	c.eventually("--listtargets --state --nodetype=storage", "202")
	c.daemons["mgmtd-again"].kill()
	g.Expect(os.RemoveAll(c.path("mgmtd"))).To(Succeed())
	g.Expect(os.Mkdir(c.path("mgmtd"), 0o700)).To(Succeed())
	said, code := c.run(service + "mgmtd")
	g.Expect(code).NotTo(BeZero(), "no service starts on an empty directory")
	g.Expect(said).To(ContainSubstring("initialization has been disabled"))

	c.recovers(owner, place, "", "storage target 202", 101, 102, 201, 202)
	c.start("mgmtd-restored", service+"management/data")
	c.online()
	after := c.said()
	g.Expect(after.Pools).To(Equal(before.Pools))
	g.Expect(after.Mirrors).To(Equal(before.Mirrors))
	g.Expect(after.RootID).To(Equal(before.RootID))
	g.Expect(after.Targets).NotTo(ContainElement(HaveField("ID", int32(202))))

	// A target that joined later registers when its server starts.
	g.Expect(c.daemons["storage-2-more"].end(t)).To(Equal(0))
	c.start("storage-2-again", two)
	c.eventually("--listtargets --state --nodetype=storage", "202")
	g.Expect(c.said().Targets).To(ContainElement(And(HaveField("ID", int32(202)), HaveField("ServerID", int32(2)), HaveField("PoolID", int32(1)))))
}

// An upgrade restarts one server after the other on the data of the older one: the management service first, then metadata servers, then
// storage servers. With BEEGFS_REAL_OLDER, the older ones are the real programs in that folder.
func TestServersOfTheNextReleaseTakeUpWhatTheOlderOnesHaveLeft(t *testing.T) {
	t.Parallel() // with a buddy group, the service needs half a minute to end
	g := NewWithT(t)
	c := newCluster(t, "7.4.5")
	if c.real && older == "" {
		t.Skip("BEEGFS_REAL_OLDER names no folder with older programs")
	}
	c.startAll()
	for _, mode := range []string{
		"--addstoragepool --id=2 --desc=bulk --targets=201", "--addmirrorgroup --nodetype=storage --primary=101 --secondary=102 --groupid=3",
		"--createdir --unmounted --nodes=2 /a", "--setpattern --unmounted --storagepoolid=2 --pattern=raid0 --chunksize=64k --numtargets=8 /a",
	} {
		said, code := c.run(ctl + mode)
		g.Expect(code).To(Equal(0), said)
	}
	before, stripes := whole(c.said()), c.stripes("/a")
	c.version = "7.4.6"
	for _, server := range []struct{ name, line string }{
		{"mgmtd-daemon", "beegfs-mgmtd " + options + " storeMgmtdDirectory={DIR}/mgmtd " + limits},
		{"meta-1-daemon", c.metaLine(1)}, {"meta-2-daemon", c.metaLine(2)},
		{"storage-1-daemon", c.storageOne()}, {"storage-2-daemon", c.storageTwo()},
	} {
		g.Expect(c.daemons[server.name].end(t)).To(Equal(0), server.name)
		again := c.start(server.name+"-again", server.line)
		g.Eventually(again.says).WithTimeout(long).Should(MatchRegexp(`Version: 7\.4\.6\b`), server.name)
		g.Eventually(func() string { return whole(c.said()) }).WithTimeout(long).Should(Equal(before), server.name)
	}
	g.Expect(c.stripes("/a")).To(Equal(stripes))
}

// stripes returns the striping of a directory in the tool's output.
func (c *cluster) stripes(directory string) string {
	c.t.Helper()
	said, code := c.run(ctl + "--getentryinfo --unmounted " + directory)
	NewWithT(c.t).Expect(code).To(Equal(0), said)
	NewWithT(c.t).Expect(strings.Fields(said)).To(ContainElement("64K"), said)
	return said
}

// whole returns the reported state of a filesystem without its free space. After its start, a real service of 7 has targets in the capacity
// pool "emergency" or "low" until all have reported.
func whole(s backend.State) string {
	for i := range s.Targets {
		s.Targets[i].UsedBytes, s.Targets[i].CapacityBytes, s.Targets[i].CapacityPool = 0, 0, ""
	}
	lines := []string{fmt.Sprintf("root %d, mirrored %v", s.RootID, s.MetadataMirrored)}
	for i := range s.Servers {
		s.Servers[i].Version = "" // it is the requested version
		s.Servers[i].UsedBytes, s.Servers[i].CapacityBytes = 0, 0
		lines = append(lines, fmt.Sprintf("%+v", s.Servers[i]))
	}
	for i := range s.Targets {
		lines = append(lines, fmt.Sprintf("%+v", s.Targets[i]))
	}
	for _, p := range s.Pools {
		lines = append(lines, fmt.Sprintf("%+v", p))
	}
	for _, m := range s.Mirrors {
		lines = append(lines, fmt.Sprintf("%+v", m))
	}
	return strings.Join(lines, "\n")
}
