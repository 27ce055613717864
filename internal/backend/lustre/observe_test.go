package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

func mdt(index int32) cli.Target { return cli.Target{FSName: "pfs", Kind: cli.MDT, Index: index} }
func ost(index int32) cli.Target { return cli.Target{FSName: "pfs", Kind: cli.OST, Index: index} }

var (
	mgt    = cli.Target{Kind: cli.MGT}
	served = cli.Serving{Up: true, Healthy: true, Recovery: cli.Recovery{Status: "COMPLETE"}, CapacityBytes: 100, UsedBytes: 1}
)

func TestWhatTheNodesServeIsOneState(t *testing.T) {
	g := NewWithT(t)
	waits, sick, stops := served, served, served
	waits.Recovery = cli.Recovery{Status: "RECOVERING", Clients: 1, Expected: 3}
	sick.Healthy, stops.Up = false, false
	state, err := lustre.StateOf(map[string]cli.Server{
		"n1": {Version: "2.17.0", Targets: map[cli.Target]cli.Serving{mgt: {Up: true, Healthy: true}, mdt(0): served, ost(9): waits}},
		"n2": {Version: "2.9.1", Targets: map[cli.Target]cli.Serving{mgt: {Up: true}, mdt(1): sick, ost(10): stops, ost(0): served}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Version).To(Equal("2.9.1"), "the oldest of all")
	of := func(role v1alpha1.Role, id int32, online bool, status string) backend.Target {
		return backend.Target{Role: role, ID: id, Online: online, Status: status, Contacted: true, CapacityBytes: 100, UsedBytes: 1}
	}
	g.Expect(state.Targets).To(Equal([]backend.Target{
		of(v1alpha1.RoleMetadata, 1, true, "COMPLETE"), of(v1alpha1.RoleMetadata, 2, false, "NOT HEALTHY"),
		of(v1alpha1.RoleStorage, 1, true, "COMPLETE"), of(v1alpha1.RoleStorage, 10, false, "RECOVERING"),
		of(v1alpha1.RoleStorage, 11, false, "it is being started or stopped"),
	}))
}

func TestATargetThatTwoNodesServeIsAnAlarm(t *testing.T) {
	_, err := lustre.StateOf(map[string]cli.Server{
		"n1": {Targets: map[cli.Target]cli.Serving{ost(3): served}}, "n2": {Targets: map[cli.Target]cli.Serving{ost(3): served}},
	})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("nodes n1 and n2 both have pfs-OST0003 mounted")))
}

func TestNothingElseIsStoppedWhileATargetRecovers(t *testing.T) {
	g := NewWithT(t)
	with := func(r cli.Recovery) cli.Serving { return cli.Serving{Up: true, Healthy: true, Recovery: r} }
	servers := map[string]cli.Server{"n1": {Targets: map[cli.Target]cli.Serving{mgt: {Up: true}, mdt(0): served, ost(0): with(cli.Recovery{Status: "INACTIVE"})}}}
	g.Expect(lustre.Recovering(servers)).To(BeEmpty())
	servers["n2"] = cli.Server{Targets: map[cli.Target]cli.Serving{
		ost(1): with(cli.Recovery{Status: "RECOVERING", Clients: 1, Expected: 3}), mdt(1): with(cli.Recovery{Status: "WAITING", NotReady: "0002"}),
		ost(2): with(cli.Recovery{}),
	}}
	g.Expect(lustre.Recovering(servers)).To(HaveExactElements(
		"pfs-MDT0001 on node n2 (WAITING, for the MDTs 0002)", "pfs-OST0001 on node n2 (RECOVERING, 1 of 3 clients are back)", HavePrefix("pfs-OST0002 on node n2"),
	))
}
