package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// answers returns the answers of a node, in the order of the questions, as 2.17.57 prints them.
func answers(recovery string) [][]byte {
	return [][]byte{
		[]byte(`  0 UP osd-ldiskfs pfs-MDT0000-osd pfs-MDT0000-osd_UUID 10
  1 UP mgs MGS MGS 8
  2 UP mdt pfs-MDT0000 pfs-MDT0000_UUID 12
  3 UP obdfilter pfs-OST0001 pfs-OST0001_UUID 8
  4 ST obdfilter pfs-OST0002 pfs-OST0002_UUID 8
  5 UP obdfilter other-OST0000 other-OST0000_UUID 8
`),
		[]byte("version=2.17.57\nhealth_check=healthy\n"),
		[]byte("mdt.pfs-MDT0000.recovery_status=\nstatus: INACTIVE\nobdfilter.pfs-OST0001.recovery_status=\n" + recovery),
		[]byte("osd-ldiskfs.pfs-OST0001.kbytestotal=100\nosd-ldiskfs.pfs-OST0001.kbytesfree=90\n"),
		[]byte("lod.pfs-MDT0000-mdtlov.pools.ssd=\npfs-OST0002_UUID\npfs-OST0001_UUID\nlod.pfs-MDT0000-mdtlov.pools.empty=\n"),
		[]byte("osp.pfs-OST0001-osc-MDT0000.max_create_count=0\nosp.pfs-OST0001-osc-MDT0000.active=1\nosp.pfs-OST0002-osc-MDT0000.active=0\n"),
		[]byte("0\t: 0 1\n1\t: 2 3\n"),
		[]byte("/sys/module/mdt/parameters/mds_num_cpts:[1]\n"),
	}
}

func TestANodeReportsWhatItServesOfItsFilesystem(t *testing.T) {
	g := NewWithT(t)
	q := lustre.New().Questions("2.17.57", "10.0.0.1@tcp,10.1.0.1@tcp:/pfs")
	g.Expect(q.Commands()).To(ContainElement(ContainElement("mdt.pfs-*.recovery_status")))
	state, err := q.Parse(answers("status: COMPLETE\ncompleted_clients: 2/2\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Version).To(Equal("2.17.57"))
	g.Expect(state.Modules).To(HaveValue(Equal(backend.LoadedModules{
		Partitions: [][]int{{0, 1}, {2, 3}}, Parameters: map[string]string{"mdt.mds_num_cpts": "[1]"},
	})))
	g.Expect(state.Links).To(Equal([]backend.Link{{From: 1, To: 2}, {From: 1, To: 3, Closed: true}}))
	g.Expect(state.Pools).To(Equal([]backend.Pool{{Name: "empty"}, {Name: "ssd", Targets: []int32{2, 3}}}))
	g.Expect(state.Targets).To(Equal([]backend.Target{
		{Role: v1alpha1.RoleManagement, Online: true, Contacted: true},
		{Role: v1alpha1.RoleMetadata, ID: 1, Online: true, Contacted: true},
		{Role: v1alpha1.RoleStorage, ID: 2, Online: true, Contacted: true, CapacityBytes: 100 << 10, UsedBytes: 10 << 10},
		{Role: v1alpha1.RoleStorage, ID: 3, Contacted: true, Status: "it is being started or stopped"},
	}))
}

func TestATargetInRecoveryShowsItsProgress(t *testing.T) {
	for recovery, says := range map[string]string{
		"status: RECOVERING\ncompleted_clients: 1/3\n": "RECOVERING, 1 of 3 clients are back",
		"status: WAITING\nnon-ready MDTs:  0001\n":     "WAITING, for the MDTs 0001",
		"status: WAITING_FOR_CLIENTS\n":                "WAITING_FOR_CLIENTS",
	} {
		g := NewWithT(t)
		state, err := lustre.New().Questions("2.17.57", ":/pfs").Parse(answers(recovery))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.Targets[2]).To(And(HaveField("Online", false), HaveField("Status", says)))
	}
}

func TestAnUnhealthyKernelServesNothing(t *testing.T) {
	g := NewWithT(t)
	said := answers("status: COMPLETE\n")
	said[1] = []byte("version=2.17.57\nhealth_check=NOT HEALTHY\n")
	state, err := lustre.New().Questions("2.17.57", ":/pfs").Parse(said)
	g.Expect(err).NotTo(HaveOccurred())
	for _, target := range state.Targets {
		g.Expect(target.Online).To(BeFalse())
	}
}

func TestANodeWithoutATargetOfAKindAnswersAllTheSame(t *testing.T) {
	g := NewWithT(t)
	q, tolerant := lustre.New().Questions("2.17.57", ":/pfs").(backend.TolerantQuestions)
	g.Expect(tolerant).To(BeTrue())
	for i, argv := range q.Commands() {
		g.Expect(q.Tolerates(i, 2, "error: get_param: param_path 'obdfilter/pfs-*/recovery_status': No such file or directory")).To(Equal(i >= 2), argv)
		g.Expect(q.Tolerates(i, -1, "")).To(BeFalse(), "it was stopped")
	}
}
