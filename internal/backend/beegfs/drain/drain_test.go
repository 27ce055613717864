package drain_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
)

func nobody() []string { return nil }

func TestOneTargetOfEachPoolStaysWhateverIsRequested(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	pools := []v1alpha1.StoragePoolSpec{{Name: "ssd"}, {Name: "hdd"}}
	for range 2000 {
		targets := make([]drain.Target, random.IntN(8))
		for i := range targets {
			pool := random.IntN(len(pools))
			disk := &v1alpha1.StorageTarget{}
			disk.Spec.Remove, disk.Spec.WritersStopped = random.IntN(2) == 0, random.IntN(4) != 0
			home := int32(pool + 1)
			targets[i] = drain.Target{ID: int32(i + 1), StoragePool: &pools[pool], Home: home, Now: home, Online: random.IntN(4) != 0, Disk: disk}
		}
		waits := drain.Waits(targets, drain.Facts{Mounted: func() []string { return []string{"client-1"} }})
		leaves, stays := map[string]int{}, map[string]int{}
		for i := range targets {
			pool := targets[i].StoragePool.Name
			if why, asked := waits[i]; asked && why == "" {
				leaves[pool]++
				NewWithT(t).Expect(targets[i].Disk.Spec.WritersStopped).To(BeTrue(), "a client has the filesystem mounted")
			} else if targets[i].Online {
				stays[pool]++
			}
		}
		for pool := range leaves {
			NewWithT(t).Expect(stays[pool]).To(BeNumerically(">", 0), "%+v", targets)
		}
	}
}

func TestNothingIsEmptyUntilTheAgentAndEveryJobSaySo(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}}
	fs.Spec.Clients = &v1alpha1.ClientsSpec{}
	for bits := range 16 {
		t.Run(strconv.FormatInt(int64(bits), 2), func(t *testing.T) {
			files, current, waited, moved := bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
			directories := drain.Directories("storage/data")
			disk := &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			disk.Spec.FilesIn = directories
			disk.Status.Files = &v1alpha1.TargetFiles{Empty: files, NoneSince: &noon, ObservedGeneration: 1}
			if current {
				disk.Status.Files.ObservedGeneration = 2
			}
			done := map[string]bool{drain.AwaitEmptyName(fs, 7): waited, drain.MigrateName(fs, 7): moved}
			target := drain.Target{ID: 7, Disk: disk, FilesIn: directories}
			since, empty := target.Empty(drain.Facts{FileSystem: fs, Mounted: nobody, Job: func(name string) *backend.Job {
				return &backend.Job{Name: name, Succeeded: done[name], Ended: noon.Add(time.Minute)}
			}})
			NewWithT(t).Expect(empty).To(Equal(files && current && waited && moved))
			if empty {
				NewWithT(t).Expect(since).To(Equal(noon.Add(time.Minute)), "the last of them")
			}
		})
	}
}
