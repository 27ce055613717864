package moosefs

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

func TestMooseFSIsUpgradedAlongTheTable(t *testing.T) {
	for name, c := range map[string]struct{ from, to, refused string }{
		"a release of 3.0 to a later one":  {"3.0.117", "3.0.118", ""},
		"3.0 to 4.57":                      {"3.0.117", "4.57.5", ""},
		"a release of 4.57 to a later one": {"4.57.5", "4.57.10", ""},
		"4.57 to 4.58":                     {"4.57.5", "4.58.3", ""},
		"4.57 to 4.59":                     {"4.57.5", "4.59.2", ""},
		"4.58 to 4.59":                     {"4.58.3", "4.59.2", ""},
		"3.0 to 4.59 in one step":          {"3.0.117", "4.59.2", "set spec.version to a 4.57.x first"},
		"3.0 to 4.58 in one step":          {"3.0.117", "4.58.3", "set spec.version to a 4.57.x first"},
		"a step back in a line":            {"4.57.10", "4.57.5", "MooseFS has no way back from 4.57.10 to 4.57.5"},
		"a step back between lines":        {"4.57.5", "3.0.117", "set spec.version to 4.57.5 or a newer one"},
		"from the last line to an unknown": {"4.59.2", "4.60.0", "set spec.version to a newer 4.59.x"},
		"to an unknown line":               {"4.57.5", "5.0.0", "set spec.version to a 4.58.x or a 4.59.x first"},
		"from an unknown line":             {"4.56.1", "4.56.2", "no upgrade is known"},
	} {
		t.Run(name, func(t *testing.T) {
			g, why := NewWithT(t), New().UpgradePath(c.from, c.to)
			if c.refused == "" {
				g.Expect(why).To(BeEmpty())
			} else {
				g.Expect(why).To(ContainSubstring(c.refused))
			}
		})
	}
}

func TestNoDaemonMayBeNewerThanTheMaster(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t)
	g.Expect(New().UpgradeSkew(in, "4.57.5")).To(BeEmpty())
	in.State.Sessions = append(in.State.Sessions, backend.Session{IP: "10.0.7.7", Connected: true, Version: "4.59.2"})
	g.Expect(New().UpgradeSkew(in, "4.58.3")).To(And(ContainSubstring("the client at 10.0.7.7 runs 4.59.2"), ContainSubstring("set spec.version to the newest of them")))
	g.Expect(New().UpgradeSkew(in, "4.59.2")).To(BeEmpty(), "then it is no newer")
	in.State.Sessions[len(in.State.Sessions)-1].Connected = false
	g.Expect(New().UpgradeSkew(in, "4.58.3")).To(BeEmpty(), "it is only remembered")
	in.State.Servers[0].Version = "4.59.2"
	g.Expect(New().UpgradeSkew(in, "4.58.3")).To(ContainSubstring("the server at 10.0.0.1 runs 4.59.2"))
	in.State = nil
	g.Expect(New().UpgradeSkew(in, "4.58.3")).To(BeEmpty())
}

func TestComponentsGetTheNewVersionInTheirOrder(t *testing.T) {
	const from, to = "moosefs:3.0.117", "moosefs:4.57.5"
	order := New().Order()
	for turns := range len(order) + 2 {
		g := NewWithT(t)
		in := everything("3.0.117")
		in.FileSystem.Spec.Version = "4.57.5"
		in.FileSystem.Status.Version = "3.0.117"
		backendtest.Remember(t, New(), &in)
		switch {
		case turns > len(order):
			in.FileSystem.Status.Version = "4.57.5"
		case turns > 0:
			in.FileSystem.Status.Upgrade = &v1alpha1.UpgradeStatus{Version: "4.57.5", Components: order[:turns]}
		}
		objects, err := New().Members(in)
		g.Expect(err).NotTo(HaveOccurred())
		want := map[string]string{}
		for i, component := range append(order, componentClient) {
			want[component] = from
			if i < turns && i < len(order) || turns > len(order) {
				want[component] = to
			}
		}
		want[componentStorageClasses] = want[componentMetalogger] // at that time, the master runs it
		have := map[string]string{}
		for _, o := range objects {
			switch o := o.(type) {
			case *appsv1.DaemonSet:
				component := o.Labels[v1alpha1.LabelComponent]
				for _, c := range o.Spec.Template.Spec.Containers {
					g.Expect(c.Image).To(Equal(want[component]), component)
				}
				have[component] = o.Spec.Template.Spec.Containers[0].Image
				g.Expect("moosefs:" + o.Spec.Template.Annotations[backend.VersionAnnotation]).To(Equal(want[component]))
			case *batchv1.Job:
				have[componentStorageClasses] = o.Spec.Template.Spec.Containers[0].Image
			}
		}
		g.Expect(have).To(Equal(want), "%d of %v", turns, order)
	}
}

func TestStorageClassesAreMadeWithTheToolsOfTheMasterThatRuns(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	in.FileSystem.Status.Version = "3.0.117"
	in.FileSystem.Status.Upgrade = &v1alpha1.UpgradeStatus{Version: "4.57.5", Components: []string{componentMaster}}
	g.Expect(toolsVersion(in)).To(Equal("3.0.117"), "nobody knows yet that the master has started")
	in.Pods = []backend.Pod{{Component: componentMaster, Version: "3.0.117"}}
	g.Expect(toolsVersion(in)).To(Equal("3.0.117"))
	in.Pods = []backend.Pod{{Component: componentMaster, Version: "3.0.117", Terminating: true}, {Component: componentMaster, Version: "4.57.5"}}
	g.Expect(toolsVersion(in)).To(Equal("4.57.5"), "older tools don't understand it")
	in.Pods = nil
	in.FileSystem.Status.Upgrade.Components = New().Order()[:2]
	g.Expect(toolsVersion(in)).To(Equal("4.57.5"))
}

func TestAComponentAcceptsTheOptionsOfItsOwnVersion(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	in.FileSystem.Status.Version = "3.0.117"
	in.FileSystem.Status.Upgrade = &v1alpha1.UpgradeStatus{Version: "4.57.5", Components: []string{componentMaster}}
	own := v1alpha1.MooseFSSpec{BasePort: 9419}
	own.Config.Metadata = v1alpha1.Options{"INSTANCE_NAME": "scratch"} // of 4.x
	in.FileSystem.Spec.MooseFS = &own
	backendtest.Remember(t, New(), &in)
	_, err := New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	own.Config.Storage = v1alpha1.Options{"CAN_USE_MMAP": "1"} // of 4.x, too
	_, err = New().Members(in)
	g.Expect(err).To(MatchError(ContainSubstring("spec.moosefs.config.storage.CAN_USE_MMAP is no option of mfschunkserver 3.0.117")))
}

func TestTheAdministratorComesFromAnAddressThatNoClientHas(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	admin := storageClasses(in, nodefacts.NewDomains(in)).Mount.Command
	g.Expect(admin).To(ContainElements("-H", "127.0.0.1"), "so it comes from there, too")
	for _, n := range in.Nodes {
		g.Expect(exports(in)).NotTo(ContainSubstring(n.IP), "a client on node %s is no administrator", n.Name)
	}
	g.Expect(exports(in)).To(ContainSubstring("\n127.0.0.1 / rw,alldirs,admin,"))
}
