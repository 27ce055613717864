package lustre_test

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// lostMGT is a filesystem whose MGS on n3 does not serve, with backups in a claim and on nodes, and with a person who asks for a plan.
func lostMGT(t *testing.T) backend.Input {
	t.Helper()
	in := running(t)
	fs := in.FileSystem
	fs.Status.Metadata.Initialized = new(metav1.NewTime(noon))
	fs.Spec.Backups = &v1alpha1.BackupsSpec{
		PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault", Path: "pfs"},
		Nodes:                 &v1alpha1.BackupsNodes{NodeSelector: v1alpha1.NodeSelector{"client": ""}, Count: 1, Directory: "/srv/backups"},
	}
	fs.Annotations = map[string]string{v1alpha1.AnnotationRecoverMetadata: v1alpha1.RecoverPlan}
	said := saying()
	said["n3"].Targets = nil
	ask(t, &in, said)
	return in
}

// another adds a disk for the MGT on its node, which is formatted as a target.
func another(in *backend.Input) {
	t := disk("mgt2-n3", "n3", v1alpha1.RoleManagement, "", 0)
	t.Spec.Lustre = &v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT}
	t.Spec.Format.FSType = v1alpha1.Ldiskfs
	prove(&t)
	in.Targets = append(in.Targets, t)
}

func underWay(in *backend.Input) {
	in.FileSystem.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionRecovering, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRecoveryLooking, LastTransitionTime: metav1.NewTime(noon),
	}}
}

func TestAnMGTThatServesOrCanComeNowhereIsNotRecovered(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, in *backend.Input)
		says   string
	}{
		"it is lost": {func(*testing.T, *backend.Input) {}, ""},
		"it serves": {func(t *testing.T, in *backend.Input) { t.Helper(); ask(t, in, saying()) },
			"the MGS on node n3 serves. Where its disk is dead all the same, unmount it there first (umount /var/lib/parallelfs/targets/storage.scratch/mgt-n3)"},
		"its node does not answer": {func(t *testing.T, in *backend.Input) { t.Helper(); away(t, in, "n3") },
			"node n3 does not say whether its MGS serves: nobody listens"},
		"no node answers": {func(_ *testing.T, in *backend.Input) { in.State, in.StateError = nil, "nobody answers" },
			"no node reports what it serves, so it is unknown whether the MGS serves: nobody answers"},
		"another node has the label": {func(_ *testing.T, in *backend.Input) {
			in.Nodes[3].Labels, in.Nodes[0].Labels = nil, map[string]string{"mgs": ""}
		}, "the MGT can come to no other node than n3, whose NIDs are on every disk, and spec.lustre.management.nodeSelector (mgs=) matches n0; give that label to node n3 alone"},
		"no node has the label": {func(_ *testing.T, in *backend.Input) { in.Nodes[3].Labels = nil }, "matches no node"},
		"it is on the disk of MDT0000": {func(_ *testing.T, in *backend.Input) { in.FileSystem.Spec.Lustre.Management = nil },
			"Lustre stores MDT0000 nowhere else. Where that disk is there, and only its logs are damaged, docs/backups.md says how a person puts them back"},
	} {
		t.Run(name, func(t *testing.T) {
			in := lostMGT(t)
			c.change(t, &in)
			if c.says == "" {
				NewWithT(t).Expect(lustre.New().StoreStays(in)).To(BeEmpty())
			} else {
				NewWithT(t).Expect(lustre.New().StoreStays(in)).To(ContainSubstring(c.says))
			}
		})
	}
}

func TestAnotherDiskOfTheNodeReplacesThatOfALostMGT(t *testing.T) {
	g := NewWithT(t)
	in := lostMGT(t)
	another(&in)
	in.Targets[len(in.Targets)-1].Spec.Lustre = nil
	allocation, err := lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(allocation.TargetNodes.LostMetadata).To(BeEmpty(), "a word alone takes no disk")
	underWay(&in)
	allocation, err = lustre.New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(allocation.TargetNodes.LostMetadata).To(Equal("mgt-n3"))
	g.Expect(allocation.Status.Lustre.ManagementTarget).To(Equal("mgt-n3"), "until the logs are on another one")
	g.Expect(lustre.New().Unassigned(in)).To(BeTrue())
	g.Expect(told(t, in)["mgt2-n3"]).To(HaveValue(Equal(v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT})))
	for _, n := range lustre.New().Nodes(in) {
		for _, m := range n.Spec.Members {
			for _, target := range m.Targets {
				g.Expect(target.Name).NotTo(Equal("mgt2-n3"), "and no server mounts it")
			}
		}
	}

	delete(in.FileSystem.Annotations, v1alpha1.AnnotationRecoverMetadata)
	g.Expect(told(t, in)["mgt2-n3"]).To(BeNil(), "nobody has asked for it")
}

func TestTheMGTIsOnItsRecordedDiskAndItsMGSIsComparedOnceItServes(t *testing.T) {
	g, b := NewWithT(t), lustre.New()
	in := lostMGT(t)
	another(&in)
	fs := in.FileSystem
	g.Expect(b.StoreRecord(fs)).To(HaveValue(And(HaveField("Node", "n3"), HaveField("Target", "mgt-n3"), HaveField("Initialized", Not(BeNil())), HaveField("Recovered", BeNil()))))
	g.Expect(b.Comparison(in)).To(BeNil())
	record := *b.StoreRecord(fs)
	record.Target = "mgt2-n3"
	record.Recovered = &v1alpha1.MetadataRecovered{PlanHash: "5d0c91e2", From: "backup-in-vault-20261123-030000", Time: metav1.NewTime(noon)}
	before := fs.Status.Lustre.DeepCopy()
	b.RecordStore(fs, record)
	g.Expect(fs.Status.Lustre).To(HaveValue(Equal(v1alpha1.LustreStatus{
		ManagementNode: "n3", ManagementTarget: "mgt2-n3", ManagementNIDs: before.ManagementNIDs, Recovered: &v1alpha1.ManagementRecovered{
			PlanHash: "5d0c91e2", From: "backup-in-vault-20261123-030000", Time: metav1.NewTime(noon), PreviousTarget: "mgt-n3",
		},
	})))
	g.Expect(b.StoreRecord(fs).Recovered.PlanHash).To(Equal("5d0c91e2"))
	var mounts []string
	for _, n := range b.Nodes(in) {
		for _, m := range n.Spec.Members {
			if m.Role == v1alpha1.RoleManagement {
				for _, target := range m.Targets {
					mounts = append(mounts, n.Spec.Node+":"+target.Name)
				}
			}
		}
	}
	g.Expect(mounts).To(HaveExactElements("n3:mgt2-n3"))
	g.Expect(b.Comparison(in)).To(BeNil(), "it does not serve yet")
	g.Expect(b.ComparisonSays(fs)).To(Equal("its MGS is asked for each record when it serves"))
	in.Jobs = nil
	pools := jobOf(t, in).Name

	ask(t, &in, saying())
	request, impossible := b.Comparison(in)
	g.Expect(impossible).To(BeEmpty())
	g.Expect(request).To(HaveValue(And(HaveField("Source.Claim", "vault"), HaveField("Compare", HaveValue(Equal(backend.CompareRequest{Backup: "20261123-030000", Node: "n3"}))))))
	b.RecordComparison(fs, strings.Repeat("x", 600), metav1.NewTime(noon))
	g.Expect(fs.Status.Lustre.Recovered.Differs).To(HaveLen(512))
	g.Expect(b.ComparisonSays(fs)).To(ContainSubstring("does not say what the backup says: xxx"))
	b.RecordComparison(fs, "", metav1.NewTime(noon))
	g.Expect(b.ComparisonSays(fs)).To(Equal("its MGS says of each record of its logs what the backup says"))
	g.Expect(b.Comparison(in)).To(BeNil(), "it was compared")
	g.Expect(jobOf(t, in).Name).NotTo(Equal(pools), "pools and parameters of the spec are set again, and not before it was compared")

	fs.Status.Lustre.Recovered.Compared, fs.Spec.Backups = nil, nil
	request, impossible = b.Comparison(in)
	g.Expect(request).To(BeNil())
	g.Expect(impossible).To(ContainSubstring("the place of backup-in-vault-20261123-030000 is none of this FileSystem any more"))
}

func TestBackupsOfALustreAreLookedForAtTheirPlacesAndOnTheNodeOfTheMGS(t *testing.T) {
	g := NewWithT(t)
	in := lostMGT(t)
	sources := lustre.New().RecoverySources(in)
	g.Expect(sources).To(HaveExactElements(
		And(HaveField("Name", "backup-in-vault"), HaveField("Claim", "vault")),
		And(HaveField("Name", "backup-at-n0"), HaveField("Node", "n0"), HaveField("Directory", "/srv/backups/storage.scratch-6f1c")),
		And(HaveField("Name", "backup-at-n3"), HaveField("Node", "n3"), HaveField("Directory", "/srv/backups/storage.scratch-6f1c")),
	))
	in.FileSystem.Spec.Backups = nil
	g.Expect(lustre.New().RecoverySources(in)).To(BeEmpty())
	place := lustre.New().MetadataPlace(in.FileSystem)
	g.Expect(place.Otherwise).To(ContainSubstring("tunefs.lustre --writeconf"))
	g.Expect(place.Stays).To(BeTrue())
}

func TestOnlyThePodThatRunsProgramsOfTheNodeIsPrivileged(t *testing.T) {
	for name, c := range map[string]struct {
		request    backend.RecoveryRequest
		privileged bool
		node       string
	}{
		"to look":    {backend.RecoveryRequest{}, false, ""},
		"to restore": {backend.RecoveryRequest{Restore: &backend.RestoreRequest{Plan: "5d0c91e2", Backup: "20261123-030000", Has: "4 logs", Node: "n3", Target: "mgt2-n3"}}, true, "n3"},
		"to compare": {backend.RecoveryRequest{Compare: &backend.CompareRequest{Backup: "20261123-030000", Node: "n3"}}, true, "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := lostMGT(t)
			another(&in)
			c.request.Job, c.request.Source = "scratch-recover-1a2b3c4d", lustre.New().RecoverySources(in)[0]
			job, told, err := lustre.New().RecoveryJob(in, c.request)
			g.Expect(err).NotTo(HaveOccurred())
			pod := job.Spec.Template.Spec
			g.Expect(pod.HostPID).To(Equal(c.privileged))
			g.Expect(pod.Containers).To(HaveLen(1))
			if c.privileged {
				g.Expect(pod.Containers[0].SecurityContext.Privileged).To(HaveValue(BeTrue()))
				g.Expect(pod.Affinity).To(Equal(podspec.OnNodes(c.node)))
			} else {
				g.Expect(pod.Containers[0].SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
				g.Expect(pod.Affinity).To(BeNil())
			}
			g.Expect(pod.Containers[0].Image).To(Equal("node:1"), "its programs are the node's own")
			g.Expect(told).To(And(HaveField("Backend", "Lustre"), HaveField("Version", "2.17.57"), HaveField("Source.Backups", "/source/storage.scratch-6f1c"),
				HaveField("Known", HaveValue(Equal(spec.Known{Servers: map[string]string{}, Targets: map[string]string{"Management": "1", "Metadata": "1-4", "Storage": "1-4"}})))))
			switch {
			case c.request.Restore != nil:
				g.Expect(told.Restore.Target).To(HaveValue(And(HaveField("UUID", "uuid-mgt2-n3"), HaveField("Served", HaveValue(And(
					HaveField("DeviceID", "wwn-mgt2-n3"), HaveField("FSType", "ldiskfs"), HaveField("Mark", ContainSubstring(`"target":"mgt2-n3"`)),
					HaveField("Given", MatchJSON(`{"kind":"MGT"}`))))))))
				g.Expect(told.Restore.Has).To(Equal("4 logs"))
				g.Expect(told.Restore.Ledger).To(Equal("/var/lib/parallelfs/storage.scratch/ledger-mgs.json"))
			case c.request.Compare != nil:
				g.Expect(told.Compare).To(HaveValue(Equal(spec.Compare{Backup: "20261123-030000"})))
			}
		})
	}
	in := lostMGT(t)
	_, _, err := lustre.New().RecoveryJob(in, backend.RecoveryRequest{Source: lustre.New().RecoverySources(in)[0], Restore: &backend.RestoreRequest{Target: "mgt2-n3"}})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the disk mgt2-n3 for the MGT is none that was made a target")))
}

func TestABackupListsItsContentAndTheRecordsThatItLacks(t *testing.T) {
	g := NewWithT(t)
	files, err := newMGS(t).copyStore()
	g.Expect(err).NotTo(HaveOccurred())
	read := func(osts ...int32) backend.StoreRead {
		known, err := exchange.Said(exchange.Known(nil, map[v1alpha1.Role][]int32{v1alpha1.RoleManagement: {1}, v1alpha1.RoleMetadata: {1}, v1alpha1.RoleStorage: osts}))
		g.Expect(err).NotTo(HaveOccurred())
		found, err := lustre.New().ReadStore("2.17.57", backend.StoreContent{Files: files}, known)
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	same := read(1, 2)
	g.Expect(same.Lacks).To(BeEmpty())
	g.Expect(same.Has).To(MatchRegexp(`^5 logs with [0-9]+ records \(params 1, pfs-MDT0000 [0-9]+, pfs-OST0000 [0-9]+ and 2 more\)$`))
	g.Expect(read(1, 2, 3).Lacks).To(HaveExactElements("pfs-OST0002"))
	g.Expect(read(1).Has).To(ContainSubstring("of which some are of pfs-OST0001, taken out since"))
}

// unmounted is the disk of an MGT that is not mounted, and the files of its node, as their programs read them.
type unmounted struct {
	*mgs
	disk, node map[string][]byte
	mended     int
	// breaks, if set, is called before each program, and returns its failure.
	breaks func(line string) error
}

func newDisk(t *testing.T) (*unmounted, map[string][]byte) {
	t.Helper()
	m := newMGS(t)
	files, err := m.copyStore()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &unmounted{mgs: m, disk: map[string][]byte{"mountdata": []byte("mine")}, node: map[string][]byte{}}, files
}

func (u *unmounted) place(at string, content []byte) error {
	u.node[at] = content
	return nil
}

func (u *unmounted) run(argv ...string) ([]byte, error) {
	line := strings.Join(argv, " ")
	if u.breaks != nil {
		if err := u.breaks(line); err != nil {
			return nil, err
		}
	}
	last := argv[len(argv)-1]
	out := ""
	switch {
	case argv[0] == "mkdir":
	case argv[0] == "rm":
		maps.DeleteFunc(u.node, func(at string, _ []byte) bool { return strings.HasPrefix(at, last+"/") })
	case argv[0] == "sh" && strings.HasPrefix(argv[2], "e2fsck "):
		u.mended++
	case line == "debugfs -c -R ls -p CONFIGS "+last:
		out = "/13/040755/0/0/.//\n/2/040755/0/0/..//\n"
		for _, name := range backend.SortedKeys(u.disk) {
			out += fmt.Sprintf("/14/100600/0/0/%s/%d/\n", name, len(u.disk[name]))
		}
	case strings.HasPrefix(line, "debugfs -w -f "):
		for request := range strings.Lines(string(u.node[argv[3]])) {
			switch words := strings.Fields(request); words[0] {
			case "rm":
				delete(u.disk, words[1])
			case "write":
				if _, there := u.disk[words[2]]; !there { // debugfs does not overwrite files
					u.disk[words[2]] = u.node[words[1]]
				}
			}
		}
	case argv[0] == "sh" && strings.Contains(argv[2], "debugfs -c"):
		for _, request := range argv[4:] {
			words := strings.Fields(request) // dump <inode> path: each file has the same inode here
			u.node[words[2]] = u.disk[path.Base(words[2])]
		}
	case argv[0] == "cat":
		out = string(u.node[last])
	case argv[0] == "llog_reader":
		out = u.says["llog_reader "+work+"/CONFIGS/"+path.Base(last)]
	default:
		return nil, errors.New("nobody knows " + line)
	}
	return []byte(out), nil
}

func TestTheLogsOfABackupAreWrittenOnADiskAndReadBackByLustresOwnProgram(t *testing.T) {
	g := NewWithT(t)
	u, files := newDisk(t)
	put := func() error { return lustre.New().PutBackStore(u.run, u.place, "/dev/vdd", "/run/work", files) }
	g.Expect(lustre.New().StoreStrangers(u.run, "/dev/vdd")).To(BeEmpty())
	g.Expect(put()).To(Succeed())
	wanted := map[string][]byte{"mountdata": []byte("mine")}
	for _, name := range []string{"nodemap", "params", "pfs-MDT0000", "pfs-OST0000", "pfs-OST0001", "pfs-client"} {
		wanted[name] = files["CONFIGS/"+name]
	}
	g.Expect(u.disk).To(Equal(wanted), "what the disk says of itself stays")
	g.Expect(u.node).To(BeEmpty(), "nothing is left on the node")
	g.Expect(u.mended).To(Equal(2))
	g.Expect(lustre.New().StoreStrangers(u.run, "/dev/vdd")).To(HaveExactElements("nodemap", "params", "pfs-MDT0000", "pfs-OST0000", "pfs-OST0001", "pfs-client"))

	// Files of an interrupted attempt are written again.
	u.disk["pfs-client"], u.disk["pfs-OST0007"] = []byte("half"), []byte("another")
	g.Expect(put()).To(Succeed())
	g.Expect(u.disk).To(Equal(wanted))
}

func TestLogsAreNotOnADiskWhen(t *testing.T) {
	for why, c := range map[string]struct {
		change func(u *unmounted, files map[string][]byte)
		says   string
	}{
		"e2fsck can't put it right": {func(u *unmounted, _ map[string][]byte) {
			u.breaks = func(line string) error {
				if strings.Contains(line, "e2fsck") {
					return errors.New("e2fsck ended with exit code 4")
				}
				return nil
			}
		}, "exit code 4"},
		"debugfs has written nothing": {func(u *unmounted, _ map[string][]byte) {
			u.breaks = func(line string) error {
				if strings.HasPrefix(line, "debugfs -w") {
					clear(u.node)
				}
				return nil
			}
		}, "the disk has 0 of the 6 logs"},
		"the disk reads otherwise": {func(u *unmounted, _ map[string][]byte) {
			u.breaks = func(line string) error {
				if strings.Contains(line, "debugfs -c -f") {
					u.disk["pfs-client"] = []byte("other")
				}
				return nil
			}
		}, "CONFIGS/pfs-client does not read from the disk as it was written"},
		"llog_reader calls one wrong": {func(u *unmounted, _ map[string][]byte) {
			u.says["llog_reader "+work+"/CONFIGS/pfs-client"] = "error: rec #12 is trimmed by EOF, offset 9000\n"
		}, "the log pfs-client can't be used"},
		"a file is the disk's own":      {func(_ *unmounted, files map[string][]byte) { files["CONFIGS/mountdata"] = nil }, `a file "CONFIGS/mountdata", which is no log`},
		"a name would be two":           {func(_ *unmounted, files map[string][]byte) { files["CONFIGS/a b"] = nil }, "which is no log"},
		"a name leads elsewhere":        {func(_ *unmounted, files map[string][]byte) { files["CONFIGS/../O"] = nil }, "which is no log"},
		"the disk is that of no target": {func(u *unmounted, _ map[string][]byte) { delete(u.disk, "mountdata") }, "without the file mountdata"},
	} {
		t.Run(why, func(t *testing.T) {
			u, files := newDisk(t)
			c.change(u, files)
			err := lustre.New().PutBackStore(u.run, u.place, "/dev/vdd", "/run/work", files)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestAnMGSIsComparedRecordByRecordAndMayHaveMore(t *testing.T) {
	g, m := NewWithT(t), newMGS(t)
	files, err := m.copyStore()
	g.Expect(err).NotTo(HaveOccurred())
	compare := func() error { return lustre.New().CompareStore(m.run, files) }
	const printed = "lctl --device MGS llog_print pfs-client"
	said := m.says[printed]
	g.Expect(compare()).To(Succeed())
	m.says[printed] = said + "- { index: 99, event: new_pool, device: pfs-clilov, fsname: pfs, pool: fast }\n"
	g.Expect(compare()).To(Succeed(), "what came later is no difference")
	m.says[printed] = strings.Replace(said, "mdt: pfs-MDT0000_UUID", "mdt: pfs-MDT0001_UUID", 1)
	g.Expect(compare()).To(MatchError(And(ContainSubstring("record 16 of the log pfs-client is"), ContainSubstring("pfs-MDT0001_UUID"))))
	m.says[printed] = strings.Join(strings.SplitAfter(said, "\n")[1:], "")
	g.Expect(compare()).To(MatchError(ContainSubstring(`the MGS says ""`)))
	delete(m.says, printed)
	g.Expect(compare()).NotTo(Succeed(), "the MGS does not have the log")
	g.Expect(lustre.New().CompareStore(m.run, nil)).To(MatchError(ContainSubstring("no log that could be compared")))
}
