package lustre_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// mgs is a node whose MGS has the recorded logs, and the output of its programs, by their command lines. A program that prints nothing here
// fails.
type mgs struct {
	says map[string]string
	ran  []string
	// after, if set, is called after the disk was read.
	after func(m *mgs)
}

const (
	work   = "/run/parallelfs-store-6f1c"
	listed = "debugfs -c -R ls -p CONFIGS /dev/vdb"
)

func newMGS(t *testing.T) *mgs {
	t.Helper()
	m := &mgs{says: map[string]string{
		"lctl get_param osd-*.*.mntdev": "osd-ldiskfs.MGS.mntdev=/dev/vdb\nosd-ldiskfs.pfs-MDT0000.mntdev=/dev/vdc\n",
		"rm -rf " + work:                "", "mkdir -m 0700 " + work: "",
		"mkdir -m 0700 " + work + "/CONFIGS":         "",
		"debugfs -c -R cat CONFIGS/nodemap /dev/vdb": "nodes",
		"cat " + work + "/CONFIGS/nodemap":           "nodes",
		"lctl --device MGS llog_catlist":             logSample(t, "llog-catlist"),
	}}
	// debugfs 1.47.0 prints ls -p so.
	listing := "/13/040755/0/0/.//\n/2/040755/0/0/..//\n/14/100644/0/0/mountdata/12288/\n/15/100644/0/0/nodemap/5/\n"
	for _, name := range []string{"params", "pfs-MDT0000", "pfs-OST0000", "pfs-OST0001", "pfs-client"} {
		listing += "/16/100644/0/0/" + name + "/9408/\n"
		m.says["lctl --device MGS llog_print "+name] = logSample(t, "llog-print-"+name)
		m.says["llog_reader "+work+"/CONFIGS/"+name] = logSample(t, "llog-reader-"+name)
		m.says["cat "+work+"/CONFIGS/"+name] = "the bytes of " + name
		m.says["debugfs -c -R cat CONFIGS/"+name+" /dev/vdb"] = "the bytes of " + name
	}
	m.says[listed] = listing
	return m
}

// logSample is recorded output of 2.17.57.
func logSample(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("cli", "testdata", "2.17.57", name+".txt"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func (m *mgs) run(argv ...string) ([]byte, error) {
	line := strings.Join(argv, " ")
	m.ran = append(m.ran, line)
	said, ends := m.says[line]
	if argv[0] == "sh" && argv[2] == `printf '%s\n' "$@" | debugfs -c -f - "$0"` && argv[3] == "/dev/vdb" {
		ends, argv[0] = true, "debugfs"
	}
	if !ends {
		return nil, errors.New(argv[0] + " failed: " + line)
	}
	if m.after != nil && argv[0] == "debugfs" {
		m.after(m)
	}
	return []byte(said), nil
}

func (m *mgs) copyStore() (map[string][]byte, error) {
	return lustre.New().Questions("2.17.57", "10.0.0.1@tcp:/pfs").(backend.StoreCopier).CopyStore(m.run, work)
}

func serving() backend.State {
	return backend.State{Targets: []backend.Target{{Role: v1alpha1.RoleManagement, Online: true}}}
}

func TestTheLogsOfAnMGSAreCopiedWithWhatLustresOwnProgramsSayOfThem(t *testing.T) {
	g, m := NewWithT(t), newMGS(t)
	files, err := m.copyStore()
	g.Expect(err).NotTo(HaveOccurred())
	names := []string{"CONFIGS/nodemap"}
	for _, name := range []string{"params", "pfs-MDT0000", "pfs-OST0000", "pfs-OST0001", "pfs-client"} {
		names = append(names, "CONFIGS/"+name, "llog_print/"+name, "llog_reader/"+name)
	}
	g.Expect(backend.SortedKeys(files)).To(ConsistOf(names), "mountdata is the disk's own")
	g.Expect(files).To(HaveKeyWithValue("CONFIGS/pfs-client", []byte("the bytes of pfs-client")))
	g.Expect(lustre.New().ReadStore("2.17.57", backend.StoreContent{Files: files}, serving())).To(BeZero())
	g.Expect(m.ran[len(m.ran)-1]).To(Equal("rm -rf "+work), "nothing is left on the node")

	_, err = lustre.New().ReadStore("2.17.57", backend.StoreContent{Files: files}, backend.State{})
	g.Expect(err).To(MatchError(ContainSubstring("does not say that its MGS serves")))
}

func TestTheLogsOfAnMGTOnTheDiskOfMDT0000AreCopiedFromThere(t *testing.T) {
	g, m := NewWithT(t), newMGS(t)
	m.says["lctl get_param osd-*.*.mntdev"] = "osd-ldiskfs.pfs-MDT0000.mntdev=/dev/vdb\nosd-ldiskfs.pfs-MDT0001.mntdev=/dev/vdc\n"
	g.Expect(m.copyStore()).To(HaveKey("CONFIGS/pfs-client"))
	m.says["lctl get_param osd-*.*.mntdev"] = "osd-ldiskfs.pfs-MDT0001.mntdev=/dev/vdc\n"
	_, err := m.copyStore()
	g.Expect(err).To(MatchError(ContainSubstring("neither the MGT nor MDT0000 of pfs is mounted on this node")))
}

func TestAnMGSWithoutPermanentParametersHasNoLogOfThem(t *testing.T) {
	g, m := NewWithT(t), newMGS(t)
	delete(m.says, "lctl --device MGS llog_print params")
	_, err := m.copyStore()
	g.Expect(err).To(MatchError(ContainSubstring("the MGS does not say what it has")), "the disk has one")
	m.says[listed] = strings.Replace(m.says[listed], "/16/100644/0/0/params/9408/\n", "", 1)
	g.Expect(m.copyStore()).NotTo(HaveKey("CONFIGS/params"))
}

func TestACopyDoesNotCountWhen(t *testing.T) {
	const client, printed, read = "pfs-client", "lctl --device MGS llog_print pfs-client", "llog_reader " + work + "/CONFIGS/pfs-client"
	for why, c := range map[string]struct {
		change func(m *mgs)
		says   string
	}{
		"a log has changed meanwhile": {func(m *mgs) {
			m.after = func(m *mgs) {
				m.says[printed] += "- { index: 99, event: conf_param, device: pfs-OST0000-osc, parameter: osc.active=0 }\n"
			}
		}, "the logs of the MGS have changed while they were copied"},
		"there is another log": {func(m *mgs) {
			m.after = func(m *mgs) {
				m.says["lctl --device MGS llog_catlist"] += "config_log: pfs-OST0009\n"
				m.says["lctl --device MGS llog_print pfs-OST0009"] = ""
			}
		}, "the logs of the MGS have changed while they were copied"},
		"the disk lacks a record": {func(m *mgs) {
			m.says[printed] += "- { index: 99, event: conf_param, device: pfs-OST0000-osc, parameter: osc.active=0 }\n"
		}, "the log pfs-client is not as the MGS says that it is: the file lacks record 99 (conf_param), which is in force"},
		"the disk has a record that is not in force": {func(m *mgs) {
			lines := strings.SplitAfter(m.says[printed], "\n")
			m.says[printed] = strings.Join(lines[1:], "")
		}, "which is not in force"},
		"the disk lacks a log": {func(m *mgs) {
			m.says[listed] = strings.Replace(m.says[listed], "/16/100644/0/0/"+client+"/9408/\n", "", 1)
		}, "the disk does not have the log pfs-client yet"},
		"llog_reader calls something wrong": {func(m *mgs) {
			m.says[read] = "error: rec #12 is trimmed by EOF, offset 9000\n" + m.says[read]
		}, "the log pfs-client can't be used: llog_reader: line 1 is no record: the log is not whole, or of another form"},
		"llog_reader ends early": {func(m *mgs) {
			lines := strings.SplitAfter(m.says[read], "\n")
			m.says[read] = strings.Join(lines[:len(lines)-2], "")
		}, "the log pfs-client can't be used: llog_reader: its answer ends"},
		"llog_reader is not there":    {func(m *mgs) { delete(m.says, read) }, "llog_reader failed"},
		"the MGS does not answer":     {func(m *mgs) { delete(m.says, printed) }, "lctl failed"},
		"the disk can't be read":      {func(m *mgs) { delete(m.says, listed) }, "debugfs failed"},
		"the node maps have changed":  {func(m *mgs) { m.says["cat "+work+"/CONFIGS/nodemap"] = "other nodes" }, "CONFIGS/nodemap has changed while it was copied"},
		"no client would find a file": {func(m *mgs) { m.says["lctl --device MGS llog_catlist"] = "config_log: pfs-OST0000\n" }, "it has no log by which clients find MDT0000"},
	} {
		t.Run(why, func(t *testing.T) {
			g, m := NewWithT(t), newMGS(t)
			c.change(m)
			_, err := m.copyStore()
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestABackupIsReadAgainAtItsPlace(t *testing.T) {
	g, m := NewWithT(t), newMGS(t)
	good, err := m.copyStore()
	g.Expect(err).NotTo(HaveOccurred())
	for name, says := range map[string]string{
		"CONFIGS/pfs-client": "the disk does not have the log pfs-client yet", "llog_reader/pfs-client": "the log pfs-client can't be used",
		"llog_print/pfs-client": "it has no log by which clients find MDT0000",
	} {
		files := maps.Clone(good)
		delete(files, name)
		_, err := lustre.New().ReadStore("2.17.57", backend.StoreContent{Files: files}, serving())
		g.Expect(err).To(MatchError(ContainSubstring(says)), name)
	}
}

func TestTheJobOfABackupAsksTheProbeOfTheMGSAndHasNoRightButToItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		place    backend.BackupPlace
		combined bool
		address  string
		user     int64
	}{
		"in a claim":                       {backend.BackupPlace{Claim: "vault"}, false, "10.0.0.3:9700", 65534},
		"in a store":                       {backend.BackupPlace{ObjectStore: "https://s3.example.org/vault"}, false, "10.0.0.3:9700", 65534},
		"on a node":                        {backend.BackupPlace{Node: "n0", Directory: "/srv/backups"}, false, "10.0.0.3:9700", 0},
		"of an MGT on the disk of MDT0000": {backend.BackupPlace{Claim: "vault"}, true, "10.0.0.3:9701", 65534},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := running(t)
			fs := in.FileSystem
			if c.combined {
				fs.Spec.Lustre.Management = nil
			}
			fs.Spec.Backups = &v1alpha1.BackupsSpec{Keep: v1alpha1.BackupsKeep{Count: 5}, ObjectStore: &v1alpha1.ObjectStore{
				Endpoint: "https://s3.example.org", Bucket: "vault", SecretName: "s3",
			}}
			job, told, err := lustre.New().BackupJob(in, backend.BackupRequest{Job: "scratch-backup-1a2b3c4d", Backup: "20261123-030000", Place: c.place, Pieces: 1})
			g.Expect(err).NotTo(HaveOccurred())
			pod := job.Spec.Template.Spec
			g.Expect(pod.HostPID).To(BeFalse())
			container := pod.Containers[0]
			g.Expect(container.SecurityContext.RunAsUser).To(HaveValue(Equal(c.user)))
			g.Expect(container.SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
			g.Expect(pod.SecurityContext.FSGroup).To(HaveValue(Equal(int64(65534))), "who is not root can read the secret")
			g.Expect(container.VolumeMounts).To(ContainElement(And(HaveField("MountPath", "/etc/parallelfs-store"), HaveField("ReadOnly", true))))
			g.Expect(told).To(And(HaveField("Backend", "Lustre"), HaveField("Version", "2.17.57"), HaveField("Copied", c.address),
				HaveField("SecretFile", "/etc/parallelfs-store/secret"), HaveField("Keep", 5)))
		})
	}
}

func TestOnlyTheProbeBesideTheMGSHandsOutItsLogs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fs *v1alpha1.FileSystem)
		with   string
	}{
		"an MGT of its own":     {func(*v1alpha1.FileSystem) {}, "scratch-mgs"},
		"one on MDT0000's disk": {func(fs *v1alpha1.FileSystem) { fs.Spec.Lustre.Management = nil }, "scratch-mdt-0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := everything("2.17.57")
			backendtest.Remember(t, lustre.New(), &in)
			c.change(in.FileSystem)
			objects, err := lustre.New().Members(in)
			g.Expect(err).NotTo(HaveOccurred())
			var with []string
			for _, o := range objects {
				set, is := o.(*appsv1.DaemonSet)
				if !is {
					continue
				}
				for i, container := range set.Spec.Template.Spec.Containers {
					for _, mount := range container.VolumeMounts {
						if mount.MountPath == "/etc/parallelfs-store" {
							with = append(with, set.Name)
							g.Expect(i).To(Equal(1), "and not the server")
							g.Expect(mount.ReadOnly).To(BeTrue())
						}
					}
				}
			}
			g.Expect(with).To(HaveExactElements(c.with))
		})
	}
}
