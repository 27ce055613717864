//go:build envtest

package filesystem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

const oldVersion, newVersion = "3.0.117", "4.57.5"

// olderMooseFS returns a world with a healthy MooseFS of the older version, with metaloggers. From now on, the test fails if a daemon is
// newer than the master, or the master becomes older.
func olderMooseFS(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Version = oldVersion
		fs.Spec.MooseFS.Metaloggers = &v1alpha1.MetaloggersSpec{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}}
	})
	w.settle()
	w.finishJobs()
	w.settle()
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	master := oldVersion
	w.started = func() {
		w.t.Helper()
		if now := w.software("master", w.nodes[0]); now != "" {
			w.Expect(backend.CompareVersions(now, master)).To(BeNumerically(">=", 0), "the master went back to %s", now)
			master = now
		}
		for _, daemon := range []string{"metalogger", "chunkserver", "client"} {
			for _, node := range w.nodes {
				w.Expect(backend.CompareVersions(w.software(daemon, node), master)).To(BeNumerically("<=", 0), "%s on %s is newer than the master", daemon, node)
			}
		}
	}
	return w
}

// goesTo asks for a version, without a backup.
func goesTo(version string) func(fs *v1alpha1.FileSystem) {
	return func(fs *v1alpha1.FileSystem) {
		fs.Spec.Version, fs.Spec.Updates.UpgradeWithoutBackup = version, version
	}
}

// run counts the daemons of a component by their version.
func (w *world) run(daemon string) map[string]int {
	out := map[string]int{}
	for _, pod := range w.pods() {
		if component(&pod) == daemon {
			out[softwareOf(&pod)]++
		}
	}
	return out
}

// upgrading returns the condition about the progress of an upgrade.
func (w *world) upgrading() metav1.Condition { return w.condition(v1alpha1.ConditionUpgrading) }

// isAsBefore proves that a filesystem continues with the older version.
func (w *world) isAsBefore(pods map[string]string) {
	w.t.Helper()
	w.Expect(w.uids()).To(Equal(pods))
	w.Expect(w.get().Status.Version).To(Equal(oldVersion))
	w.Expect(w.get().Status.Upgrade).To(BeNil())
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)))
	for _, set := range w.sets() {
		w.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("moosefs:"+oldVersion), set.Name)
	}
}

func TestAnUpgradeGoesFromTheMasterToTheChunkserversAndLeavesMountsAlone(t *testing.T) {
	w := olderMooseFS(t)
	w.Expect(w.get().Status.Version).To(Equal(oldVersion))
	w.Expect(w.upgrading()).To(BeZero())
	w.messages()
	w.change(goesTo(newVersion))
	w.worksOwn = func() (changed bool) {
		if w.get().Status.Version == newVersion {
			w.Expect(w.upgrading().Reason).To(Equal(v1alpha1.ReasonClientsOlder), "the status that ends the upgrade names the older clients")
		}
		return false
	}
	w.settle()
	w.finishJobs()
	w.settle()
	w.worksOwn = nil
	w.Expect(w.get().Status).To(And(HaveField("Version", newVersion), HaveField("Upgrade", BeNil())))
	for daemon, count := range map[string]int{"master": 1, "metalogger": 3, "chunkserver": 3} {
		w.Expect(w.run(daemon)).To(Equal(map[string]int{newVersion: count}), daemon)
	}
	w.Expect(w.get().Status.Versions).To(Equal([]v1alpha1.VersionCount{{Version: newVersion, Servers: 7}}))
	w.Expect(w.run("client")).To(Equal(map[string]int{oldVersion: 3}), "programs have open files")
	w.Expect(w.upgrading()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonClientsOlder), HaveField("Message", And(
		ContainSubstring("of the clients 3 run 3.0.117"), ContainSubstring(w.nodes[0]), ContainSubstring("kubectl delete pod scratch-client."+w.nodes[2])))))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(BeZero())

	var order []string
	for _, event := range w.messages() {
		if what, is := strings.CutPrefix(event, "Normal Restarting Restarting "); is {
			order = append(order, strings.Fields(what)[0])
		}
	}
	w.Expect(order).To(Equal([]string{"master", "metalogger", "metalogger", "metalogger", "chunkserver", "chunkserver", "chunkserver"}))

	for _, p := range w.pods() {
		if component(&p) == "client" {
			w.Expect(server.Client.Delete(w.ctx, &p)).To(Succeed())
		}
	}
	w.settle()
	w.Expect(w.run("client")).To(Equal(map[string]int{newVersion: 3}), "a mount that is made now has the new version")
	w.Expect(w.upgrading()).To(BeZero())
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty())
}

func TestABeeGFSIsUpgradedFromItsManagementServiceToItsStorageServers(t *testing.T) {
	const from, to = "7.4.6", "7.4.7"
	w := newWorld(t)
	w.beeGFS(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = from })
	w.settle()
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	count := map[string]int{"management": 1, "meta": 4, "storage": 2}
	w.started = func() {
		w.t.Helper()
		for before, after := range map[string]string{"management": "meta", "meta": "storage"} {
			if w.run(after)[to] > 0 {
				w.Expect(w.run(before)).To(Equal(map[string]int{to: count[before]}), "%s has begun before all of %s run it", after, before)
			}
		}
	}
	w.messages()

	w.hive.targets[0].Consistency = "Needs-resync"
	before := w.uids()
	w.change(goesTo(to))
	w.settle()
	w.Expect(w.upgrading()).To(And(HaveField("Reason", v1alpha1.ReasonUpgradeWaits), HaveField("Message", ContainSubstring("when the filesystem is healthy"))))
	w.Expect(w.uids()).To(Equal(before), "BeeGFS wants every target good first")
	w.hive.targets[0].Consistency = "Good"
	w.settle()

	w.Expect(w.get().Status).To(And(HaveField("Version", to), HaveField("Upgrade", BeNil())))
	for daemon, servers := range count {
		w.Expect(w.run(daemon)).To(Equal(map[string]int{to: servers}), daemon)
	}
	w.Expect(w.get().Status.Versions).To(Equal([]v1alpha1.VersionCount{{Version: to, Servers: 7}}))
	w.Expect(w.run("client")).To(Equal(map[string]int{from: 3}), "programs have open files")
	w.Expect(w.upgrading().Reason).To(Equal(v1alpha1.ReasonClientsOlder))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	var order []string
	for _, event := range w.messages() {
		if what, is := strings.CutPrefix(event, "Normal Restarting Restarting "); is {
			order = append(order, strings.Fields(what)[0])
		}
	}
	w.Expect(order).To(Equal([]string{"management", "meta", "meta", "meta", "meta", "storage", "storage"}))
	w.Expect(w.hive.refused).To(BeEmpty())
}

func TestABeeGFSIsUpgradedWhenTheStoreOfItsManagementServiceWasBackedUp(t *testing.T) {
	v := &vaults{world: newWorld(t), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	v.alter = func(operator *filesystem.Reconciler) { operator.Clock = v.clock }
	v.beeGFS(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Backups = &v1alpha1.BackupsSpec{
			Schedule: "0 3 * * *", PersistentVolumeClaim: &v1alpha1.BackupsClaim{Name: "vault"},
			Nodes: &v1alpha1.BackupsNodes{NodeSelector: v1alpha1.NodeSelector{"storage-of": v.namespace}},
		}
	})
	v.settle()
	jobs := v.backupJobs()
	v.Expect(jobs).To(And(HaveLen(2), HaveKey("vault"), HaveKey(v.nodes[1])), "at each place, and never on the node of the management service")
	for _, m := range v.backupMaps() {
		config := spec.Backup{}
		v.Expect(json.Unmarshal([]byte(m.Data[metadatajobs.BackupToldKey]), &config)).To(Succeed())
		v.Expect(config).To(And(HaveField("Backend", "BeeGFS"), HaveField("Copied", "10.9.0.1:8009"), HaveField("SecretFile", Not(BeEmpty()))))
	}
	made := func(name string) {
		for _, job := range v.backupJobs() {
			v.ends(job, batchv1.JobComplete, answers(name, 0))
		}
		v.settle()
	}
	made("20261123-030000")
	v.Expect(v.condition(v1alpha1.ConditionBackedUp)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonVerified)))

	v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = "7.4.7" })
	v.settle()
	v.Expect(v.upgrading().Reason).To(Equal(v1alpha1.ReasonBackupMissing), "it is older than the wish for the upgrade")
	v.Expect(v.get().Status.Version).To(Equal("7.4.6"))
	made("20261123-120000")
	v.Expect(v.get().Status).To(And(HaveField("Version", "7.4.7"), HaveField("Upgrade", BeNil())))
}

func TestABeeGFSKeepsItsVersionWhereItsUpgradeGuideStopsTheWholeFilesystem(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = "7.4.6" })
	w.settle()
	before := w.uids()
	for version, why := range map[string]string{"8.3.1": "its upgrade guide stops the whole filesystem", "7.4.5": "BeeGFS documents no way back from 7.4.6 to 7.4.5"} {
		w.change(goesTo(version))
		w.settle()
		w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(
			HaveField("Reason", v1alpha1.ReasonUpgradeRefused), HaveField("Message", ContainSubstring(why))), version)
		w.Expect(w.uids()).To(Equal(before), version)
		w.Expect(w.get().Status.Version).To(Equal("7.4.6"))
	}
}

func TestAnUpgradeEndsAlsoWhenTheOperatorIsKilledAfterEachWrite(t *testing.T) {
	for _, writes := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("after each %d", writes), func(t *testing.T) {
			w := olderMooseFS(t)
			w.change(goesTo(newVersion))
			killed := 0
			for ; killed < 200; killed++ {
				if err := w.settleWith(server.Killable(t, writes)); err == nil {
					break
				}
				w.agents()
				w.runPods()
			}
			w.Expect(killed).To(And(BeNumerically(">", 3), BeNumerically("<", 200)))
			w.Expect(w.get().Status).To(And(HaveField("Version", newVersion), HaveField("Upgrade", BeNil())))
			w.Expect(w.run("chunkserver")).To(Equal(map[string]int{newVersion: 3}))
		})
	}
}

func TestAPathThatIsNotInTheTableChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, why string
	}{
		"two steps in one":            {oldVersion, "4.59.2", "spec.version 4.59.2 is refused, and the filesystem goes on with 3.0.117: no upgrade leads from MooseFS 3.0.117 to 4.59.2 in one step; set spec.version to a 4.57.x first"},
		"an image that no node has":   {oldVersion, "4.57.9", "the operator has no image for MooseFS 4.57.9; start it with --daemon-image=moosefs-4.57.9=<image> (chart value images.daemons)"},
		"an option that is not there": {oldVersion, newVersion, "spec.moosefs.config.storage.HDD_TEST_FREQ is no option of mfschunkserver 4.57.5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := olderMooseFS(t)
			if strings.Contains(c.why, "HDD_TEST_FREQ") {
				w.change(func(fs *v1alpha1.FileSystem) {
					fs.Spec.MooseFS.Config.Storage = v1alpha1.Options{"HDD_TEST_FREQ": "10"}
				})
				w.settle()
			}
			before := w.uids()
			w.change(goesTo(c.to))
			w.settle()
			for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionUpgrading} {
				w.Expect(w.condition(kind).Reason).To(Equal(v1alpha1.ReasonUpgradeRefused), kind)
				w.Expect(w.condition(kind).Message).To(ContainSubstring(c.why), kind)
			}
			w.Expect(w.upgrading().Status).To(Equal(metav1.ConditionFalse))
			w.isAsBefore(before)

			w.change(goesTo(oldVersion))
			w.settle()
			w.Expect(w.condition(v1alpha1.ConditionStalled)).To(BeZero())
			w.Expect(w.upgrading()).To(BeZero())
			w.isAsBefore(before)
		})
	}
}

func TestAFilesystemDoesNotGoBack(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	before := w.uids()
	w.change(goesTo(oldVersion))
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled).Message).To(ContainSubstring("MooseFS has no way back from 4.57.5 to 3.0.117"))
	w.Expect(w.uids()).To(Equal(before))
	w.Expect(w.get().Status.Version).To(Equal(newVersion))

	w.release("node:2")
	w.older()
	w.settle()
	w.Expect(w.uids()).To(Equal(before), "a release of the operator restarts nothing, also while a version is refused")
}

func TestAVersionIsChangedFreelyUntilADaemonWasMade(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = "4.58.9" }) // there is no image of it
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled).Message).To(ContainSubstring("no image for MooseFS 4.58.9"))
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = oldVersion })
	w.alive = true
	w.settle()
	w.Expect(w.get().Status.Version).To(Equal(oldVersion))
	w.Expect(w.run("chunkserver")).To(Equal(map[string]int{oldVersion: 3}))
}

func TestAnUpgradeBeginsOnlyWithABackupOrAPersonsApprovalForThisVersion(t *testing.T) {
	w := olderMooseFS(t)
	before := w.uids()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Version, fs.Spec.Updates.UpgradeWithoutBackup = newVersion, "4.57.4"
	})
	w.settle()
	w.Expect(w.upgrading()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonBackupMissing),
		HaveField("Message", And(ContainSubstring("no backups are configured"), ContainSubstring(`set spec.updates.upgradeWithoutBackup to "4.57.5"`)))))
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Reason).To(Equal(v1alpha1.ReasonUpgrading))
	w.isAsBefore(before)
}

func TestAnUpgradeBeginsWithABackupThatWasMadeSinceItWasAskedFor(t *testing.T) {
	v := newVaults(t)
	v.alive = true
	v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = oldVersion })
	makeBackups := func(name string) {
		jobs := v.backupJobs()
		v.Expect(jobs).To(HaveLen(2))
		for _, job := range jobs {
			v.ends(job, batchv1.JobComplete, answers(name, 1135))
		}
	}
	v.settle()
	v.finishJobs()
	v.settle()
	makeBackups("20261123-030000")
	v.settle()
	v.Expect(v.condition(v1alpha1.ConditionBackedUp).Status).To(Equal(metav1.ConditionTrue))
	v.Expect(v.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), v.ready().Message)

	before := v.uids()
	v.clock.SetTime(time.Date(2026, 11, 23, 15, 4, 5, 6, time.UTC))
	v.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Version = newVersion })
	v.settle()
	v.Expect(v.upgrading()).To(And(HaveField("Reason", v1alpha1.ReasonBackupMissing),
		HaveField("Message", ContainSubstring("there is none of 2026-11-23 15:04:05 UTC or later yet at claim vault, node "+v.nodes[1]))))
	v.isAsBefore(before)
	v.clock.SetTime(time.Date(2026, 11, 23, 16, 0, 0, 0, time.UTC))
	v.settle()
	v.Expect(v.get().Status.UpgradeAsked.Since.UTC()).To(Equal(time.Date(2026, 11, 23, 15, 4, 5, 0, time.UTC)), "it is asked for since then")
	makeBackups("20261123-150405")
	v.settle()
	v.Expect(v.get().Status).To(And(HaveField("Version", newVersion), HaveField("UpgradeAsked", BeNil())))
}

func TestAnUpgradeBeginsOnlyWhileTheFilesystemIsHealthy(t *testing.T) {
	w := olderMooseFS(t)
	before := w.uids()
	w.lost = []string{w.nodes[1] + ":/data/ssd0"}
	w.change(goesTo(newVersion))
	w.settle()
	w.Expect(w.upgrading()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonUpgradeWaits),
		HaveField("Message", HavePrefix("the upgrade from 3.0.117 to 4.57.5 begins when the filesystem is healthy; now 1 of 3 targets is not online: "))))
	w.Expect(w.uids()).To(Equal(before))
	w.Expect(w.get().Status.Upgrade).To(BeNil())
	w.lost = nil
	w.settle()
	w.Expect(w.get().Status.Version).To(Equal(newVersion))
}

func TestAnUpgradeBeginsInAWindowBecauseProgramsWaitForTheMaster(t *testing.T) {
	w := olderMooseFS(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	w.alter = func(operator *filesystem.Reconciler) { operator.Clock = clock }
	before := w.uids()
	w.change(func(fs *v1alpha1.FileSystem) {
		goesTo(newVersion)(fs)
		fs.Spec.Updates.Windows = []v1alpha1.UpdateWindow{{Schedule: "0 2 * * 6", Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "UTC"}}
	})
	w.settle()
	w.Expect(w.upgrading().Message).To(ContainSubstring("begins when the next window of spec.updates.windows opens at 2026-11-28 02:00 UTC"))
	w.isAsBefore(before)
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Windows[0].TimeZone = "Europe/Nowhere" })
	w.settle()
	w.Expect(w.upgrading().Message).To(Equal("the upgrade from 3.0.117 to 4.57.5 begins when spec.updates.windows can be understood"))
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Windows[0].TimeZone = "UTC" })
	clock.SetTime(time.Date(2026, 11, 28, 2, 1, 0, 0, time.UTC))
	w.settle()
	w.Expect(w.get().Status.Version).To(Equal(newVersion))
}

func TestAnUpgradeWaitsForABenchmark(t *testing.T) {
	w := olderMooseFS(t)
	run := w.measures()
	before := w.uids()
	w.change(goesTo(newVersion))
	w.settle()
	w.holds("the upgrade from 3.0.117 to 4.57.5 is to begin")
	w.Expect(w.upgrading().Message).To(ContainSubstring("waits for the end of"))
	w.Expect(w.uids()).To(Equal(before))
	w.ends(run)
	w.settle()
	w.Expect(w.get().Status.Version).To(Equal(newVersion))
}

// inTheMiddle returns a world whose upgrade is paused when the master runs the new version and no chunkserver does.
func inTheMiddle(t *testing.T) *world {
	t.Helper()
	w := olderMooseFS(t)
	w.change(goesTo(newVersion))
	for range 40 {
		w.Expect(errors.Join(w.reconcile(server.Client), w.reconcileNodes(server.Client))).To(Succeed())
		w.agents()
		w.runPods()
		if w.software("master", w.nodes[0]) == newVersion {
			break
		}
	}
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Paused = true })
	w.settle()
	w.Expect(w.run("master")).To(Equal(map[string]int{newVersion: 1}))
	w.Expect(w.run("chunkserver")).To(Equal(map[string]int{oldVersion: 3}))
	w.Expect(w.get().Status).To(And(HaveField("Version", oldVersion), HaveField("Upgrade.Version", newVersion)))
	w.Expect(w.upgrading()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonUpgrading), HaveField("Message", And(
		HavePrefix("the upgrade from 3.0.117 to 4.57.5 is under way: master 1/1; still 3.0.117: metalogger, then chunkserver; "),
		ContainSubstring("spec.updates.paused is false again")))))
	return w
}

func TestAnUpgradeThatIsPausedInTheMiddleGoesOnLater(t *testing.T) {
	w := inTheMiddle(t)
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Paused = false })
	w.settle()
	w.Expect(w.get().Status).To(And(HaveField("Version", newVersion), HaveField("Upgrade", BeNil())))
	w.Expect(w.run("chunkserver")).To(Equal(map[string]int{newVersion: 3}))
}

func TestDaemonsThatRestartInTheMiddleOfAnUpgradeGetTheVersionOfTheirTurn(t *testing.T) {
	w := inTheMiddle(t)
	for _, p := range w.pods() {
		if slices.Contains([]string{"master", "chunkserver", "metalogger", "client"}, component(&p)) {
			w.Expect(server.Client.Delete(w.ctx, &p, client.GracePeriodSeconds(0))).To(Succeed()) // all nodes are rebooted
		}
	}
	w.settle()
	w.Expect(w.run("master")).To(Equal(map[string]int{newVersion: 1}), "it does not go back")
	for _, daemon := range []string{"chunkserver", "client"} {
		w.Expect(w.run(daemon)).To(Equal(map[string]int{oldVersion: 3}), daemon)
	}
}

func TestAVersionThatIsChangedBackInTheMiddleStopsTheUpgradeWhereItIs(t *testing.T) {
	w := inTheMiddle(t)
	w.change(func(fs *v1alpha1.FileSystem) { goesTo(oldVersion)(fs); fs.Spec.Updates.Paused = false })
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Reason", v1alpha1.ReasonUpgradeRefused), HaveField("Message", And(
		ContainSubstring("these have begun to run 4.57.5: master"), ContainSubstring("Set spec.version to 4.57.5 to go on")))))
	w.Expect(w.run("master")).To(Equal(map[string]int{newVersion: 1}))
	w.Expect(w.run("chunkserver")).To(Equal(map[string]int{oldVersion: 3}))
	w.change(goesTo(newVersion))
	w.settle()
	w.Expect(w.run("chunkserver")).To(Equal(map[string]int{newVersion: 3}))
}

func TestAnOperatorThatReadsLateTakesNoDaemonBack(t *testing.T) {
	w := olderMooseFS(t)
	w.change(goesTo(newVersion))
	late := w.get() // the state before the upgrade began
	w.settle()
	before := w.uids()
	w.alter = func(operator *filesystem.Reconciler) {
		direct := server.Killable(t, -1)
		operator.Client = apiserver.Tenant(interceptor.NewClient(direct, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if fs, is := o.(*v1alpha1.FileSystem); is {
					late.DeepCopyInto(fs)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
		}), *w.namespaces...)
		operator.Reader = direct
	}
	_ = w.reconcile(server.Client) // its write of the status fails as well
	w.alter = nil
	for _, set := range w.sets() {
		w.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal("moosefs:"+newVersion), set.Name)
	}
	w.settle()
	w.Expect(w.uids()).To(Equal(before))
}
