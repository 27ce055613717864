package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/lustre"
)

func TestParametersThatThrowDataOrClientsAwayAreRefusedByName(t *testing.T) {
	for _, name := range []string{
		"mdt.*.evict_client", "mdt.pfs-MDT0000.evict_client", "obdfilter.*.evict_client", "mdt.*.abort_recovery", "osp.*.max_create_count",
		"osp.pfs-OST0001-osc-MDT0000.active", "osc.*.active", "obdfilter.*.no_create", "obdfilter.*.degraded", "obdfilter.*.recovery_time_hard",
		"mdt.*.md_stats", "mdt.*.job_stats", "obdfilter.*.stats", "mdd.*.lfsck_layout",
	} {
		NewWithT(t).Expect(lustre.RefusedParameters(v1alpha1.LustreParameters{name: "1"})).To(
			ConsistOf(HavePrefix("spec.lustre.parameters: "+name+" is refused, because ")), name)
	}
}

func TestOtherParametersAreSetInTheOrderOfTheirNames(t *testing.T) {
	g := NewWithT(t)
	asked := v1alpha1.LustreParameters{
		"osc.*.max_dirty_mb": "512", "mdt.*.hsm_control": "enabled", "llite.*.max_read_ahead_mb": "256", "ldlm.namespaces.*.lru_size": "100",
		"jobid_var": "SLURM_JOB_ID",
	}
	g.Expect(lustre.RefusedParameters(asked)).To(BeEmpty())
	g.Expect(lustre.ParameterCommands(asked)).To(HaveExactElements(
		[]string{"lctl", "set_param", "-P", "jobid_var=SLURM_JOB_ID"}, []string{"lctl", "set_param", "-P", "ldlm.namespaces.*.lru_size=100"}, []string{"lctl", "set_param", "-P", "llite.*.max_read_ahead_mb=256"},
		[]string{"lctl", "set_param", "-P", "mdt.*.hsm_control=enabled"},
		[]string{"lctl", "set_param", "-P", "osc.*.max_dirty_mb=512"},
	))
}

func TestAClientMountsFromAllNIDsOfTheMGS(t *testing.T) {
	g := NewWithT(t)
	mount, err := lustre.ClientMount(v1alpha1.LustreSpec{FSName: "pfs"},
		v1alpha1.ClientsSpec{MountPath: "/mnt/scratch", MountOptions: []v1alpha1.MountOption{"noatime", "flock"}}, []string{"10.1.0.5@tcp", "10.2.0.5@tcp"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mount.Command).To(Equal([]string{"mount", "-t", "lustre", "10.1.0.5@tcp,10.2.0.5@tcp:/pfs", "/mnt/scratch", "-o", "flock,noatime,nodev,nosuid"}))
	g.Expect(mount.Source).To(Equal("10.1.0.5@tcp,10.2.0.5@tcp:/pfs"))
	g.Expect(mount.FSType).To(Equal("lustre"))
	g.Expect(mount.Kernel).To(BeTrue())
}

func TestAClientThatHidesOSTsIsRefused(t *testing.T) {
	_, err := lustre.ClientMount(v1alpha1.LustreSpec{FSName: "pfs"},
		v1alpha1.ClientsSpec{MountPath: "/mnt/scratch", MountOptions: []v1alpha1.MountOption{"exclude=pfs-OST0001"}}, []string{"10.1.0.5@tcp"})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.clients.mountOptions: exclude is refused")))
}
