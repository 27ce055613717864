//go:build envtest

package filesystem_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// numbersGiven returns the names and numbers that are recorded: "meta-0.n1 1: /data/meta0=1".
func (w *world) numbersGiven() []string {
	w.t.Helper()
	var out []string
	for _, a := range w.given() {
		line := fmt.Sprintf("%s %d:", strings.ReplaceAll(a.Server(), w.namespace+"-", ""), a.ID)
		for _, t := range a.Targets {
			line += fmt.Sprintf(" %s=%d", t.Name, t.ID)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// given returns what the FileSystemNodes record.
func (w *world) given() []backend.Given {
	w.t.Helper()
	return backend.GivenOn(slices.Collect(maps.Values(w.fileSystemNodes())))
}

// poolNodes returns the recorded nodes of a pool, by name.
func (w *world) poolNodes(pool string) []string {
	w.t.Helper()
	var out []string
	for _, a := range w.given() {
		if a.StoragePool == pool {
			out = append(out, a.Node)
		}
	}
	slices.Sort(out)
	return out
}

func TestABeeGFSIsReadyWhenItsManagementServiceListsEverythingWithAnID(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.alive = false
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonStarting)))

	w.alive = true
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)))
	fs := w.get()
	w.Expect(*fs.Status.Summary).To(Equal(v1alpha1.FileSystemSummary{Servers: "7/7", Targets: "2/2", Clients: "3/3", Capacity: "2TiB", Used: "0B"}))
	w.Expect(fs.Status.Management.Address).To(Equal("10.9.0.1:8008"))
	w.Expect(fs.Status.BeeGFS.BasePort).To(Equal(int32(8000)))
	w.Expect(w.numbersGiven()).To(Equal([]string{
		"meta-0.n1 1: /data/meta0=1", "meta-0.n2 3: /data/meta0=3", "meta-1.n1 2: /data/meta1=2", "meta-1.n2 4: /data/meta1=4",
		"storage-ssd.n1 1: /data/ssd0=1", "storage-ssd.n2 2: /data/ssd0=2",
	}))
	w.Expect(w.servers()).To(ConsistOf(
		"management on 10.9.0.1:8008", "meta-0 on 10.9.0.1:8016", "meta-1 on 10.9.0.1:8017", "meta-0 on 10.9.0.2:8016",
		"meta-1 on 10.9.0.2:8017", "storage-ssd on 10.9.0.1:8032", "storage-ssd on 10.9.0.2:8032"))
	w.Expect(w.hive.refused).To(BeEmpty())
	w.Expect(w.hive.pools).To(Equal(map[int32]string{1: "ssd"}))
	w.Expect(w.hive.commands).To(ContainElement(HavePrefix("--setpattern")))
	w.Expect(w.condition(v1alpha1.ConditionLicensed)).To(BeZero(), "BeeGFS 7 asks for no license")
	w.Expect(w.condition(v1alpha1.ConditionBackedUp).Reason).To(Equal(v1alpha1.ReasonBackupsNotConfigured))
}

func TestANoOpReconcileOfABeeGFSWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	c := server.Killable(t, -1)
	for range 5 {
		w.Expect(w.reconcile(c)).To(Succeed())
	}
	w.Expect(c.Writes()).To(BeEmpty())
}

// grants returns the targets that may be prepared, by the name of the daemon and the target.
func (w *world) grants() []string {
	var out []string
	for _, node := range w.nodes[:2] {
		for _, member := range w.fileSystemNodes()[node].Spec.Members {
			for _, t := range member.Targets {
				if t.Granted {
					out = append(out, strings.TrimPrefix(node, w.namespace+"-")+" "+member.Name+" "+t.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestEachTargetOfABeeGFSMayBePreparedUntilItWasListedOnce(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.alive = false
	w.settle()
	w.Expect(w.grants()).To(Equal([]string{"n1 management /data/mgmtd"}), "nobody has said yet that nothing is remembered of the others")

	w.alive = true
	w.settle()
	w.Expect(w.grants()).To(BeEmpty(), "all were listed, and that is recorded")
	for _, a := range w.given() {
		for _, target := range a.Targets {
			w.Expect(target.Initialized).NotTo(BeNil(), a.Server())
		}
	}

	// A disk is not mounted at its place, so the directory is empty.
	delete(w.hive.numbers, w.nodes[1]+":/data/ssd0")
	w.restartPods("storage", w.nodes[1])
	w.settle()
	w.Expect(w.hive.refused).NotTo(BeEmpty())
	w.Expect(w.hive.prepared[w.nodes[1]+":/data/ssd0"]).To(Equal(1), "an empty directory is lost data now, and is not prepared again")
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonTargetsMissing),
		HaveField("Message", ContainSubstring(w.nodes[1]+":/data/ssd0"))))
	w.Expect(w.grants()).To(BeEmpty())
}

// restartPods ends the pods of a component on a node; runPods creates others.
func (w *world) restartPods(daemon, node string) {
	w.t.Helper()
	for _, p := range w.pods() {
		if component(&p) == daemon && p.Spec.NodeName == node {
			w.Expect(server.Client.Delete(w.ctx, &p, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
}

func TestAnOperatorOfABeeGFSThatIsKilledAfterAnyWriteAssignsEachIDOnce(t *testing.T) {
	t.Parallel()
	undisturbed := anotherWorld(t)
	undisturbed.beeGFS(nil)
	undisturbed.settle()
	children, numbers := undisturbed.children(), undisturbed.numbersGiven()
	undisturbed.forget()

	for _, each := range inEach {
		t.Run(fmt.Sprintf("after each %d", each), func(t *testing.T) {
			w := newWorld(t)
			w.beeGFS(nil)
			killed := w.settleByDying(each, func() {
				if sets := w.sets(); len(sets) > 0 {
					w.Expect(w.numbersGiven()).To(Equal(numbers), "what is told to the daemons of %d DaemonSets was recorded before", len(sets))
				}
			})
			w.Expect(killed).To(BeNumerically(">", 5))
			w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
			w.Expect(w.numbersGiven()).To(Equal(numbers))
			w.Expect(w.children()).To(Equal(children))
			w.Expect(w.hive.refused).To(BeEmpty())
			for place, times := range w.hive.prepared {
				w.Expect(times).To(Equal(1), place)
			}
			w.forget()
		})
	}
}

func TestABeeGFSGrowsByANodeAndByAMetadataServerAndKeepsItsNumbers(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	before := w.numbersGiven()
	commands := len(w.hive.commands)

	w.label(w.nodes[2], "bee-of")
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.numbersGiven()).To(ConsistOf(slices.Concat(before, []string{
		"meta-0.n3 5: /data/meta0=5", "meta-1.n3 6: /data/meta1=6", "storage-ssd.n3 3: /data/ssd0=3",
	})))
	w.Expect(w.hive.commands[commands:]).To(BeEmpty(), "a target of the first pool is in BeeGFS's default pool already")

	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MetadataServers.InstancesPerNode = 3
		fs.Spec.MetadataServers.Targets.Directories = append(fs.Spec.MetadataServers.Targets.Directories, "/data/meta2")
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.numbersGiven()).To(ContainElements(
		"meta-0.n1 1: /data/meta0=1", "meta-2.n1 7: /data/meta2=7", "meta-2.n2 8: /data/meta2=8", "meta-2.n3 9: /data/meta2=9"))
	w.Expect(w.get().Status.Summary.Servers).To(Equal("13/13"))
	w.Expect(w.hive.refused).To(BeEmpty())
	for place, times := range w.hive.prepared {
		w.Expect(times).To(Equal(1), place)
	}
}

func TestAPoolThatIsAddedIsMadeByOneJobAndTakesItsTargets(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	commands := len(w.hive.commands)
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools = append(fs.Spec.StoragePools, v1alpha1.StoragePoolSpec{
			Name: "bulk", NodeSelector: fs.Spec.StoragePools[0].NodeSelector, Copies: 1,
			Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/hdd0"}},
		})
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.hive.pools).To(Equal(map[int32]string{1: "ssd", 2: "bulk"}))
	for _, target := range w.hive.targets {
		w.Expect(target.PoolID).To(Equal(map[bool]int32{true: 1, false: 2}[target.ID <= 2]), "target %d", target.ID)
	}
	w.Expect(w.hive.commands[commands:]).To(And(ContainElement("--addstoragepool --id=2 --desc=bulk"), ContainElement(And(
		HavePrefix("--setpattern --storagepoolid=2"), HaveSuffix(" /bulk --unmounted")))))
	w.Expect(w.get().Status.StoragePools).To(HaveExactElements(HaveField("Targets", "2/2"), HaveField("Targets", "2/2")))
}

func TestAChangedOptionOfTheMetadataServersRestartsOneOfThemAtATimeWhateverTheirDaemonSets(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	uids := func() map[string]string {
		out := map[string]string{}
		for _, p := range w.pods() {
			out[p.Name] = string(p.UID)
		}
		return out
	}
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MetadataServers.BeeGFS = &v1alpha1.BeeGFSMetadata{WorkerThreads: new(int32(40))}
	})
	var order []string
	for range 14 {
		before := uids()
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.agents()
		w.runPods()
		var restarted []string
		for name, uid := range uids() {
			if uid != before[name] {
				restarted = append(restarted, strings.ReplaceAll(name, w.namespace+"-", ""))
			}
		}
		w.Expect(len(restarted)).To(BeNumerically("<=", 1), "never more than one is missing: %v", restarted)
		order = append(order, restarted...)
	}
	w.Expect(order).To(ConsistOf("scratch-meta-0.n1", "scratch-meta-0.n2", "scratch-meta-1.n1", "scratch-meta-1.n2"), "each of them once, and no other daemon")
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}

func TestDeletionStopsABeeGFSWithItsManagementServiceLast(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	var order []string
	for range 30 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		components := map[string]bool{}
		for _, p := range w.pods() {
			if p.DeletionTimestamp.IsZero() {
				components[component(&p)] = true
			}
		}
		now := strings.Join(slices.Sorted(maps.Keys(components)), " ")
		if len(order) == 0 || order[len(order)-1] != now {
			order = append(order, now)
		}
		w.runPods()
		if err := server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}); apierrors.IsNotFound(err) {
			break
		}
	}
	w.Expect(order).To(HaveExactElements(HavePrefix("client"), "management meta storage", "management meta", "management", ""))
	w.Expect(w.hive.numbers).NotTo(BeEmpty(), "data is kept")
}

func TestABeeGFS8WithoutALicenseForItsPoolsReportsTheConsequences(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Version = "8.3.1"
		second := *fs.Spec.StoragePools[0].DeepCopy()
		second.Name, second.Targets.Directories = "bulk", []v1alpha1.DirectoryPath{"/data/hdd0"}
		fs.Spec.StoragePools = append(fs.Spec.StoragePools, second)
	})
	w.hive.license = &backend.License{}
	w.hive.stuck = "scratch" // the tool of BeeGFS 8 is not simulated here
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionLicensed)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonLicenseMissing),
		HaveField("Message", And(ContainSubstring("SSD and HDD"), ContainSubstring("spec.beegfs.license")))))
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonLicenseMissing)))
	w.Expect(w.condition(v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))

	w.hive.license = &backend.License{Valid: true, Features: []string{"io.beegfs.storagepool"}}
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionLicensed)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonLicenseValid)))
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonPoolsNotPlaced), "and now there is work")
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(BeZero())
}

func TestTheDatabaseOfABeeGFS8IsBackedUpAtItsPlace(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Version = "8.3.1"
		fs.Spec.Backups = &v1alpha1.BackupsSpec{Schedule: "@daily", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"}}
	})
	w.hive.license, w.hive.stuck = &backend.License{}, "pool-" // the hive supports only the commands of 7
	w.settle()
	var jobs batchv1.JobList
	w.Expect(server.Client.List(w.ctx, &jobs, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelBackup: "scratch"})).To(Succeed())
	w.Expect(jobs.Items).To(HaveLen(1))
	w.Expect(w.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonBackupPending)))
	settings := spec.Backup{}
	var config corev1.ConfigMap
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: jobs.Items[0].Name + "-0"}, &config)).To(Succeed())
	w.Expect(json.Unmarshal([]byte(config.Data[metadatajobs.BackupToldKey]), &settings)).To(Succeed())
	w.Expect(settings).To(And(HaveField("Backend", "BeeGFS"), HaveField("Version", "8.3.1"), HaveField("Copied", HaveSuffix(":8009"))))

	(&vaults{world: w}).ends(&jobs.Items[0], batchv1.JobComplete, answers(settings.Name, 0))
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonVerified)))
	w.Expect(w.get().Status.Backups).To(ConsistOf(And(HaveField("PersistentVolumeClaim", "vault"), HaveField("Result", v1alpha1.BackupVerified), HaveField("ID", "6B046567398B0398"))))
}

// talker has the methods that the listener's test needs.
type talker interface {
	backend.Backend
	backend.Prober
	backend.SecretKeeper
	backend.Claimer
}

// listener is a backend that records the last state of the Jobs that it got.
type listener struct {
	talker
	jobs []backend.Job
}

func (l *listener) Observe(in backend.Input) backend.Observation {
	l.jobs = in.Jobs
	return l.talker.Observe(in)
}

func TestABackendGetsTheStateOfEachJobAndItsOwnMessageOfAFailure(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.hive.stuck = "pool-0"
	w.settle()
	heard := &listener{talker: all.Backends(backend.DefaultTellTime)[v1alpha1.BeeGFS].(talker)}
	tell := func() backend.Job {
		operator := w.operator(server.Client)
		operator.Backends = backend.SetOf(heard)
		_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
		w.Expect(err).NotTo(HaveOccurred())
		i := slices.IndexFunc(heard.jobs, func(j backend.Job) bool { return strings.HasPrefix(j.Name, "scratch-pool-0") })
		w.Expect(i).To(BeNumerically(">=", 0), "%v", heard.jobs)
		return heard.jobs[i]
	}
	w.Expect(tell()).To(And(HaveField("Component", "configure"), HaveField("Succeeded", false), HaveField("Failed", false), HaveField("Message", "")))

	i := slices.IndexFunc(w.jobs(), func(j batchv1.Job) bool { return strings.HasPrefix(j.Name, "scratch-pool-0") })
	job := w.jobs()[i]
	failed := func(name string, at time.Time, code int32, message string) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: w.namespace, Labels: job.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Spec: corev1.PodSpec{NodeName: w.nodes[0], Containers: []corev1.Container{{Name: "configure", Image: "tools"}}},
		}
		w.Expect(server.Client.Create(w.ctx, pod)).To(Succeed())
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "configure", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Message: "it began\n" + message + "\n", FinishedAt: metav1.NewTime(at),
		}}}}
		w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
	}
	now := time.Now().Truncate(time.Second)
	failed("a-second-try", now.Add(-time.Minute), 1, "beegfs-ctl: no metadata server answers")
	failed("z-first-try", now.Add(-time.Hour), 1, "beegfs-ctl: no route to host")
	failed("other-try", now, 0, "done")
	w.ended(&job, batchv1.JobFailed, now)
	w.Expect(tell()).To(And(HaveField("Failed", true), HaveField("Succeeded", false), HaveField("Ended", BeTemporally("==", now)),
		HaveField("Message", "beegfs-ctl: no metadata server answers")), "the last that failed, and its last line")
	w.Expect(w.ready().Message).To(ContainSubstring("beegfs-ctl: no metadata server answers"), "a person is told")
}

func TestAJobOfABeeGFSThatFailedIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.hive.stuck = "pool-0"
	w.settle()
	i := slices.IndexFunc(w.jobs(), func(j batchv1.Job) bool { return strings.HasPrefix(j.Name, "scratch-pool-0") })
	job := w.jobs()[i]
	w.ended(&job, batchv1.JobFailed, time.Now().Add(-time.Hour))
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonPoolsNotPlaced))

	w.hive.stuck = ""
	w.settle()
	again := w.jobs()[slices.IndexFunc(w.jobs(), func(j batchv1.Job) bool { return j.Name == job.Name })]
	w.Expect(again.UID).NotTo(Equal(job.UID))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.jobs()).To(HaveLen(1), "the pool's stays as the record; the one that named the pool has gone, because there is nothing left to do")
}

func TestABeeGFSThatIsMadeAgainOverItsDataTakesUpItsNumbers(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	w.change(func(fs *v1alpha1.FileSystem) { // the numbers of new targets do not follow the order of names
		fs.Spec.MetadataServers.InstancesPerNode = 3
		fs.Spec.MetadataServers.Targets.Directories = append(fs.Spec.MetadataServers.Targets.Directories, "/data/meta2")
	})
	w.settle()
	old, data := w.get().Status, maps.Clone(w.hive.numbers)
	var adopt []v1alpha1.GivenIDs
	for _, n := range w.fileSystemNodes() {
		of := v1alpha1.GivenIDs{Node: n.Spec.Node}
		for _, m := range n.Spec.Members {
			if m.ID == 0 {
				continue
			}
			ids := v1alpha1.GivenServerID{Name: m.Name, ID: m.ID}
			for _, t := range m.Targets {
				ids.Targets = append(ids.Targets, v1alpha1.GivenTargetID{Name: t.Name, ID: t.ID})
			}
			of.Members = append(of.Members, ids)
		}
		adopt = append(adopt, of)
	}
	spec := *w.get().Spec.DeepCopy()
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	for range 20 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.runPods()
	}
	w.Expect(apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))).To(BeTrue())

	w.collectGarbage()

	spec.BeeGFS.BasePort, spec.BeeGFS.Adopt = &old.BeeGFS.BasePort, adopt
	w.fileSystem(func(fs *v1alpha1.FileSystem) { fs.Spec = spec })
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.hive.refused).To(BeEmpty())
	w.Expect(w.hive.numbers).To(Equal(data))
	for place, times := range w.hive.prepared {
		w.Expect(times).To(Equal(1), place)
	}
	w.Expect(w.get().Status.Given.Highest).To(Equal(old.Given.Highest))
}

// collectGarbage simulates Kubernetes' garbage collector after a FileSystem is gone.
func (w *world) collectGarbage() {
	w.t.Helper()
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &v1alpha1.FileSystemNode{}, &batchv1.Job{}} {
		w.Expect(server.Client.DeleteAllOf(w.ctx, kind, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: "scratch"})).To(Succeed())
	}
	w.Expect(w.reconcileNodes(server.Client)).To(Succeed())
	w.Expect(w.fileSystemNodes()).To(BeEmpty(), "they go with their FileSystem")
}

func TestAUserBringsASharedSecretOfHisOwnAndItStaysHis(t *testing.T) {
	w := newWorld(t)
	his := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-beegfs", Namespace: w.namespace}, Data: map[string][]byte{"conn.auth": []byte("our cluster's secret\n")},
	}
	w.Expect(server.Client.Create(w.ctx, his)).To(Succeed())
	w.beeGFS(nil)
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	now := &corev1.Secret{}
	w.Expect(server.Client.Get(w.ctx, client.ObjectKeyFromObject(his), now)).To(Succeed())
	w.Expect(now.ResourceVersion).To(Equal(his.ResourceVersion), "nobody has written to it, so that it does not go with the FileSystem either")
}

func TestASecretOfThatNameWithoutASharedSecretInItIsNotTakenOver(t *testing.T) {
	w := newWorld(t)
	his := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "scratch-beegfs", Namespace: w.namespace}, Data: map[string][]byte{"password": []byte("of something else")}}
	w.Expect(server.Client.Create(w.ctx, his)).To(Succeed())
	w.beeGFS(nil)
	w.Expect(w.reconcile(server.Client)).To(MatchError(ContainSubstring("scratch-beegfs exists and does not belong to scratch")))
}

func TestAServerWithoutAnAssignedIDIsNamedAndNeverRemoved(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	commands := len(w.hive.commands)
	w.hive.servers = append(w.hive.servers, backend.Server{Role: v1alpha1.RoleStorage, ID: 99, IP: "10.9.0.77", Port: 8032})
	w.hive.targets = append(w.hive.targets, backend.Target{Role: v1alpha1.RoleStorage, ID: 990, ServerID: 99, PoolID: 1})
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonUnknownMembers),
		HaveField("Message", And(ContainSubstring("storage server 99 at 10.9.0.77:8032"), ContainSubstring("storage target 990")))),
		"a person has to find out whose it is")
	w.Expect(w.hive.commands[commands:]).To(BeEmpty())
}
