package jobs

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
)

func TestTheRequiredContentOfTheImage(t *testing.T) {
	for name, c := range map[string]struct {
		launch          benchmarks.Launch
		programs, users []string
	}{
		"a tool on one client brings itself": {benchmarks.OnClient, []string{"iozone"}, nil},
		"a tool that starts its own processes needs ssh": {
			benchmarks.OnLauncher, []string{"/usr/sbin/sshd", "iozone", "ssh"}, []string{"root", "sshd"}},
		"an MPI program needs mpirun as well": {
			benchmarks.OnProcesses, []string{"/usr/sbin/sshd", "iozone", "mpirun", "ssh"}, []string{"root", "sshd"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			w.Plans = []benchmarks.Plan{scopetest.PlanOf(c.launch), scopetest.PlanOf(c.launch)}
			programs, users := contract(w)
			g.Expect(programs).To(Equal(c.programs))
			g.Expect(users).To(BeEquivalentTo(c.users))
		})
	}
}
