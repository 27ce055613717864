//go:build disks

package serve_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// recovers runs `node recover`, and returns its answer and its output.
func (m *machine) recovers(config spec.Recovery) (answer spec.RecoveryAnswer, said string) {
	m.Helper()
	config.Owner, config.Backend, config.Version, config.Scratch = m.file.FileSystem, "Lustre", "2.17.57", m.TempDir()
	config.Known = exchange.Known(nil, map[v1alpha1.Role][]int32{
		v1alpha1.RoleManagement: {1}, v1alpha1.RoleMetadata: {1}, v1alpha1.RoleStorage: {1, 2},
	})
	p := m.start("recover", config)
	if err := <-p.ended; err != nil {
		m.Log(err) // the answer contains the reason
	}
	for line := range strings.Lines(p.Said()) {
		if json.Unmarshal([]byte(line), &answer) == nil {
			return answer, p.Said()
		}
	}
	m.Fatal(p.Said())
	return answer, ""
}

// backsUp makes a backup of the store that the MGS's probe serves, as `node backup` leaves it, and returns the place and its name.
func (m *machine) backsUp() (place, name string) {
	m.Helper()
	const secret = "correct-horse"
	for _, name := range []string{"key", "secret"} {
		m.Expect(os.WriteFile(filepath.Join(m.directory, name), []byte(secret), 0o600)).To(Succeed())
	}
	probe := m.start("probe", spec.Probe{
		Backend: "Lustre", Version: "2.17.57", Address: "192.168.77.1@tcp:/pfs", Listen: "$(NODE_IP):9732", KeyFile: filepath.Join(m.directory, "key"),
		FileSystem: m.file.FileSystem, IntervalSeconds: 1, Host: true, Store: &spec.Store{SecretFile: filepath.Join(m.directory, "secret")},
	})
	var packed []byte
	m.Eventually(func() (err error) {
		packed, err = store.Fetch(m.Context(), http.DefaultClient, "192.168.77.1:9732", []byte(secret))
		return err
	}).WithTimeout(long).Should(Succeed(), probe.Said)
	m.Expect(probe.command.Process.Kill()).To(Succeed())
	files, said, err := store.Unpack(bytes.NewReader(packed))
	m.Expect(err).NotTo(HaveOccurred())
	delete(files, "CONFIGS/double") // the double's own file
	packed, err = store.Pack(files, said)
	m.Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(packed)
	place, name = m.TempDir(), "20261123-030000"
	manifest, err := json.Marshal(spec.BackupManifest{
		Format: 1, Owner: m.file.FileSystem, Name: name, SoftwareVersion: "2.17.57", Copied: "2026-11-23T03:00:05Z", Verified: "2026-11-23T03:01:00Z",
		Files: []spec.BackupFile{{Name: "store.tar", Size: int64(len(packed)), SHA256: hex.EncodeToString(sum[:])}},
	})
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(os.Mkdir(filepath.Join(place, name), 0o700)).To(Succeed())
	m.Expect(os.WriteFile(filepath.Join(place, name, "store.tar"), packed, 0o600)).To(Succeed())
	m.Expect(os.WriteFile(filepath.Join(place, name, spec.BackupManifestFile), manifest, 0o600)).To(Succeed())
	return place, name
}

// losesTheDisk removes the disk of the first member, with everything on it.
func (m *machine) losesTheDisk() {
	m.Helper()
	link := "/dev/disk/by-id/" + m.file.Members[0].Targets[0].Served.DeviceID
	device := strings.TrimSpace(m.must("readlink", "-f", link))
	m.must("blkdiscard", "--zeroout", device)
	if !genuine {
		m.Expect(os.Rename(link, link+"-taken-out")).To(Succeed())
		m.Cleanup(func() { m.Expect(os.Rename(link+"-taken-out", link)).To(Succeed()) })
	}
}

func TestALostMGTServesAgainOnAnotherDiskWithTheLogsOfABackupWhileAllOthersAreMounted(t *testing.T) {
	m := newMachine(t)
	nids := []string{"192.168.77.1@tcp"}
	m.target("mgs", "mgt", mgtUUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})
	m.target("mdt-0", "mdt0", mdt0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: nids})
	m.target("ost-ssd", "ost0", ost0UUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: nids})
	mgs, mdt, ost := m.start("serve", m.serves("mgs")), m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/mgt /mnt/targets/ost0", mgs, mdt, ost)
	m.must("lctl", "set_param", "-P", "osc.*.max_pages_per_rpc=256")
	m.must("lctl", "conf_param", "pfs-OST0000.osc.max_dirty_mb=16")
	place, name := m.backsUp()
	logs := strings.Fields(strings.ReplaceAll(m.must("lctl", "--device", "MGS", "llog_catlist"), "config_log:", ""))
	logs = append(logs, "params")
	printed := map[string]string{}
	for _, log := range logs {
		printed[log] = m.must("lctl", "--device", "MGS", "llog_print", log)
	}

	m.Expect(mgs.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-mgs.ended).To(Succeed(), mgs.Said())
	m.losesTheDisk()
	mgs = m.start("serve", m.serves("mgs"))
	m.Eventually(mgs.Said).WithTimeout(long).Should(ContainSubstring("target mgt is not mounted"))

	// Another disk of the node is formatted as an MGT, but is in no server's configuration yet. Programs of the node write the configuration
	// logs to it.
	lost := m.file.Members[0]
	another := m.target("mgs", "mgt2", anotherUUID, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})
	config := m.file.Members[3]
	m.file.Members = m.file.Members[:3]
	m.Expect(m.file.Members[0]).To(Equal(lost))
	m.tell()
	source := spec.RecoverySource{Backups: place}
	found, said := m.recovers(spec.Recovery{Source: source})
	m.Expect(found.Found).To(ConsistOf(And(HaveField("Backup", name), HaveField("Lacks", "pfs-OST0001"), HaveField("Has", And(
		MatchRegexp(`^[0-9]+ logs with [0-9]+ records \(params 1, `), ContainSubstring("pfs-client "), Not(ContainSubstring("taken out")))))), said)
	restore := spec.Restore{
		Plan: "5d0c91e2", Backup: name, Has: found.Found[0].Has, Component: "mgs", User: "root", Ledger: filepath.Join(m.directory, "ledger-mgs.json"),
		Path: "/mnt/targets/mgt2", Target: &config.Targets[0],
	}
	used := restore
	used.Target = &m.file.Members[2].Targets[0]
	answer, said := m.recovers(spec.Recovery{Source: source, Restore: &used})
	m.Expect(answer.Restored).To(BeFalse())
	m.Expect(answer.Message).To(And(ContainSubstring("the disk of ost0 can't be used"), ContainSubstring("is in use")), said)
	answer, said = m.recovers(spec.Recovery{Source: source, Restore: &restore})
	m.Expect(answer.Restored).To(BeTrue(), said)
	m.Expect(m.answer("sh", "-c", "ls -d /run/parallelfs-recovery-*")).To(BeEmpty(), "nothing is left on the node")
	device := strings.TrimSpace(m.must("readlink", "-f", "/dev/disk/by-id/"+string(another.Spec.Device.ID)))
	m.Expect(m.must("e2fsck", "-f", "-n", device)).NotTo(BeEmpty(), "its file system is whole")
	m.Expect(m.must(ldiskfs.Format{}.ReadBack(device)...)).To(ContainSubstring(anotherUUID), "it says what it is, as before")
	other := restore
	other.Plan = "0badc0de"
	answer, _ = m.recovers(spec.Recovery{Source: source, Restore: &other})
	m.Expect(answer).To(And(HaveField("Restored", false), HaveField("Message", ContainSubstring("has a store already"))), "another plan finds logs there")

	// It is now the MGT. All other targets stayed mounted.
	m.Expect(mounted()).To(Equal("/mnt/targets/mdt0 /mnt/targets/ost0"))
	m.file.Members[0] = config
	m.tell()
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/mgt2 /mnt/targets/ost0", mgs)
	for log, before := range printed {
		m.Expect(m.must("lctl", "--device", "MGS", "llog_print", log)).To(Equal(before), log)
	}
	answer, said = m.recovers(spec.Recovery{Source: source, Compare: &spec.Compare{Backup: name}})
	m.Expect(answer.Compared).To(BeTrue(), said)
	m.must("lctl", "pool_new", "pfs.fast")
	m.Expect(m.must("lctl", "--device", "MGS", "llog_print", "pfs-client")).To(ContainSubstring("pool: fast"))
	answer, said = m.recovers(spec.Recovery{Source: source, Compare: &spec.Compare{Backup: name}})
	m.Expect(answer.Compared).To(BeTrue(), "%s: what came later is no difference", said)

	// A restarted server finds it, and so does a client.
	m.Expect(ost.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-ost.ended).To(Succeed(), ost.Said())
	ost = m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/mgt2 /mnt/targets/ost0", ost)
	m.must("mkdir", "-p", "/mnt/clients/pfs")
	m.must("mount", "-t", "lustre", "192.168.77.1@tcp:/pfs", "/mnt/clients/pfs")
	m.Expect(m.must("lfs", "df", "/mnt/clients/pfs")).To(ContainSubstring("pfs-OST0000_UUID"))
	m.must("umount", "/mnt/clients/pfs")
	for _, p := range []*pod{ost, mdt, mgs} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
}
