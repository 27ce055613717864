package lustre_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

func lines(commands ...[]string) []string {
	out := []string{}
	for _, argv := range commands {
		out = append(out, strings.Join(argv, " "))
	}
	return out
}

func TestPoolsAreMadeByTheDifferenceOnly(t *testing.T) {
	wanted := map[string][]int32{"ssd": {0, 1, 2, 7}, "hdd": {3}}
	for name, c := range map[string]struct {
		listed map[string][]int32
		want   []string
	}{
		"nothing is there": {nil, []string{
			"lctl pool_new pfs.hdd", "lctl pool_add pfs.hdd pfs-OST0003", "lctl pool_new pfs.ssd", "lctl pool_add pfs.ssd pfs-OST[0000-0002/1] pfs-OST0007",
		}},
		"all is there, and a pool of somebody else":      {map[string][]int32{"ssd": {7, 2, 1, 0}, "hdd": {3}, "other": {3}}, []string{}},
		"an OST is in a pool that it does not belong to": {map[string][]int32{"ssd": {0, 1, 2, 3, 7}, "hdd": {3}}, []string{"lctl pool_remove pfs.ssd pfs-OST0003"}},
		"it was interrupted": {map[string][]int32{"hdd": {}, "ssd": {0}}, []string{
			"lctl pool_add pfs.hdd pfs-OST0003", "lctl pool_add pfs.ssd pfs-OST[0001-0002/1] pfs-OST0007",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(lines(lustre.PoolCommands("pfs", wanted, c.listed)...)).To(Equal(c.want))
		})
	}
}

func TestFilesOfAPoolAreLaidOutAsAskedFor(t *testing.T) {
	size := resource.MustParse
	for want, asked := range map[string][]v1alpha1.LustreComponent{
		"lfs setstripe -c 1 -p ssd /mnt/scratch/ssd":          nil,
		"lfs setstripe -c 4 -S 1024K -p ssd /mnt/scratch/ssd": {{OSTs: 4, StripeSize: size("1Mi")}},
		"lfs setstripe -c -1 -p ssd /mnt/scratch/ssd":         {{Place: v1alpha1.OnAllOSTs}},
		"lfs setstripe -E 64K -L mdt -E 1048576K -c 1 -p ssd -E -1 -c -1 -S 4096K -p ssd /mnt/scratch/ssd": {
			{End: size("64Ki"), Place: v1alpha1.OnMDT}, {End: size("1Gi")}, {Place: v1alpha1.OnAllOSTs, StripeSize: size("4Mi")},
		},
	} {
		NewWithT(t).Expect(lines(lustre.LayoutCommand("/mnt/scratch/ssd", "ssd", asked))).To(ConsistOf(want))
	}
}

func TestNewDirectoriesGoToOneMDTAfterTheOther(t *testing.T) {
	g := NewWithT(t)
	g.Expect(lustre.DirectoriesWanted(v1alpha1.LustreDirectories{})).To(Equal(cli.Directories{MDTs: 1, RoundRobinDepth: 3}))
	g.Expect(lustre.DirectoriesWanted(v1alpha1.LustreDirectories{MDTsPerDirectory: 4, RoundRobinDepth: new(int32(0))})).To(
		Equal(cli.Directories{MDTs: 4, RoundRobinDepth: 0}))
}

func TestProjectsAreDirectoriesWithLimits(t *testing.T) {
	g := NewWithT(t)
	g.Expect(lustre.ProjectCommands("pfs", "/mnt/scratch", nil)).To(BeEmpty(), "nothing is enforced that nobody asks for")
	g.Expect(lines(lustre.ProjectCommands("pfs", "/mnt/scratch", []v1alpha1.LustreProject{
		{ID: 42, Directory: "ssd/climate", Space: resource.MustParse("10Ti"), Files: 5_000_000},
		{ID: 7, Directory: "open"},
	})...)).To(Equal([]string{
		"lctl conf_param pfs.quota.mdt=ugp",
		"lctl conf_param pfs.quota.ost=ugp",
		"mkdir -p -m 0755 /mnt/scratch/ssd/climate",
		"lfs project -p 42 -s /mnt/scratch/ssd/climate",
		"lfs setquota -p 42 -b 0 -B 10737418240K -i 0 -I 5000000 /mnt/scratch",
		"mkdir -p -m 0755 /mnt/scratch/open",
		"lfs project -p 7 -s /mnt/scratch/open",
		"lfs setquota -p 7 -b 0 -B 0K -i 0 -I 0 /mnt/scratch",
	}))
}
