package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/internal/backend/lustre"
)

// four are the CPUs of the node on which a real Lustre was pinned.
var four = cpuset.New(0, 1, 2, 3)

func TestTheModulesAreToldOfOnePartitionForEachRole(t *testing.T) {
	for name, c := range map[string]struct {
		version    string
		mdts, osts []string
		want       string
		found      [][]int
	}{
		"as on the real one": {"2.17.57", []string{"2-3", "2,3"}, []string{"0-1"},
			"options libcfs cpu_pattern=\"0[0-1] 1[2-3]\"\noptions mdt mds_num_cpts=[1] mds_rdpg_num_cpts=[1]\noptions ofd oss_cpts=[0] oss_io_cpts=[0]\n",
			[][]int{{0, 1}, {2, 3}}},
		"the module of OSTs had another name": {"2.15.6", nil, []string{"0-1"},
			"options libcfs cpu_pattern=\"0[0-1] 1[2-3]\"\noptions ost oss_cpts=[0] oss_io_cpts=[0]\n", [][]int{{0, 1}, {2, 3}}},
		"only metadata is bound, and the rest has the rest": {"2.17.1", []string{"3"}, nil,
			"options libcfs cpu_pattern=\"0[3] 1[0-2]\"\noptions mdt mds_num_cpts=[0] mds_rdpg_num_cpts=[0]\n", [][]int{{3}, {0, 1, 2}}},
		"both share their CPUs": {"2.17.1", []string{"0-3"}, []string{"0-3"},
			"options libcfs cpu_pattern=\"0[0-3]\"\noptions mdt mds_num_cpts=[0] mds_rdpg_num_cpts=[0]\noptions ofd oss_cpts=[0] oss_io_cpts=[0]\n", [][]int{{0, 1, 2, 3}}},
		"nobody asks": {"2.17.1", nil, nil, "", [][]int{{0, 1, 2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := lustre.PartitionsOf("n1", four, c.mdts, c.osts)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.ModuleOptions(c.version)).To(Equal(c.want))
			g.Expect(p.Drift(c.found)).To(BeEmpty())
			if c.want != "" {
				g.Expect(p.Drift([][]int{{0, 2}, {1, 3}})).To(And(ContainSubstring("0[0,2] 1[1,3]"), ContainSubstring("lustre_rmmod")))
			}
		})
	}
}

func TestWhatTheModulesCantDoIsRefusedWithASentence(t *testing.T) {
	for says, lists := range map[string][2][]string{
		"asks for other CPUs for one of the MDTs of node n1 than for another (2 and 1)": {{"1", "2"}, nil},
		"asks for other CPUs for one of the OSTs of node n1":                            {nil, []string{"0-1", "2-3"}},
		"MDTs and OSTs ask for lists that share the CPUs 1":                             {{"1-2"}, {"0-1"}},
		"node n1 has no CPUs 4-5":                                                       {{"3-5"}, nil},
		`"x" is no list of CPUs`:                                                        {{"x"}, nil},
	} {
		_, err := lustre.PartitionsOf("n1", four, lists[0], lists[1])
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}
