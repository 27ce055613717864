package serve_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/internal/node/spec"
)

// owner is the FileSystem of the server.
var owner = spec.Owner{Namespace: "default", Name: "scratch", UID: "1"}

// nodeFile returns the path of a node file whose member has these targets.
func nodeFile(t *testing.T, targets ...spec.Target) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), spec.NodeFileName)
	content, err := json.Marshal(spec.NodeFile{Version: spec.NodeFileVersion, FileSystem: owner, Node: "n1", Members: []spec.Member{{
		Name: "ost-ssd", Targets: targets, Variables: map[string]string{"MODULE_OPTIONS": "options x y=1"},
	}}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// configBy returns what a server reads from it.
func configBy(t *testing.T, targets ...spec.Target) (serve.ServerConfig, string) {
	t.Helper()
	return serve.ConfigBy(spec.Serve{Owner: owner, Daemon: "ost/ssd", NodeFile: nodeFile(t, targets...)}, "n1")()
}

// ost0 returns a target as it is in a node file.
func ost0() spec.Target {
	return spec.Target{Name: "ost0", Path: "/targets/ost0", UUID: uuid, Served: &spec.ServedTarget{
		DeviceID: "wwn-0x5000", FSType: "ldiskfs", Mark: mark, Given: []byte(`{"kind":"OST","fsName":"pfs","index":0,"managementNIDs":["192.168.77.1@tcp"]}`),
	}}
}

func TestAServerReadsItsTargetsFromTheNodeFile(t *testing.T) {
	g := NewWithT(t)
	config, missing := configBy(t, ost0())
	g.Expect(missing).To(BeEmpty())
	g.Expect(config.Variables).To(HaveKeyWithValue("MODULE_OPTIONS", "options x y=1"))
	g.Expect(config.Targets).To(HaveLen(1))
	is, wanted := config.Targets[0], ost(0)
	g.Expect(is.Wanted).To(Equal(wanted.Wanted))
	g.Expect(is.Format).To(Equal(ldiskfs.Format{}))
	g.Expect(is.ID).To(BeEquivalentTo("wwn-0x5000"))
	g.Expect(is.Waits).To(BeEmpty())
}

func TestATargetThatIsNotProvenIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.Target)
		says   string
	}{
		"by its agent":                       {func(t *spec.Target) { t.UUID = "" }, "its disk is not proven yet"},
		"as nobody knows what the disk says": {func(t *spec.Target) { t.Served = nil }, "has not recorded yet"},
	} {
		t.Run(name, func(t *testing.T) {
			g, target := NewWithT(t), ost0()
			c.change(&target)
			config, missing := configBy(t, target)
			g.Expect(missing).To(BeEmpty())
			g.Expect(config.Targets[0].Waits).To(ContainSubstring(c.says))
		})
	}
}

func TestATargetThatIsNotUnderstoodIsNotAMissingOne(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.Target)
		says   string
	}{
		"another format": {func(t *spec.Target) { t.Served.FSType = "xfs" }, `has the format "xfs"`},
		"what is new":    {func(t *spec.Target) { t.Served.Given = []byte(`{"kind":"OST","color":"red"}`) }, "can't understand what target ost0 was given"},
		"a directory":    {func(t *spec.Target) { t.Directory = true }, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			target := ost0()
			c.change(&target)
			_, missing := configBy(t, target)
			NewWithT(t).Expect(missing).To(ContainSubstring(c.says))
		})
	}
	_, missing := serve.ConfigBy(spec.Serve{Owner: owner, Daemon: "ost/ssd", NodeFile: "/no-such-file"}, "n1")()
	NewWithT(t).Expect(missing).To(ContainSubstring("is not there"))
}

func TestATargetOfTwoNodesIsConfiguredForOneBootAndHasALockBesideTheFile(t *testing.T) {
	g := NewWithT(t)
	target := ost0()
	target.Served.BootID = "this start"
	path := nodeFile(t, target)
	config, missing := serve.ConfigBy(spec.Serve{Owner: owner, Daemon: "ost/ssd", NodeFile: path}, "n1")()
	g.Expect(missing).To(BeEmpty())
	g.Expect(config.Targets[0].BootID).To(Equal("this start"))
	g.Expect(config.Targets[0].Lock).To(Equal(filepath.Join(filepath.Dir(path), "ost0.lock")))
}

func TestATargetOfTwoNodesWithoutABootIsRefused(t *testing.T) {
	target := ost0()
	target.Served.Given = []byte(`{"kind":"OST","fsName":"pfs","index":0,"managementNIDs":["192.168.77.1@tcp"],` +
		`"serviceNodes":[{"nids":["192.168.77.2@tcp"]},{"nids":["192.168.77.3@tcp"]}]}`)
	_, missing := configBy(t, target)
	NewWithT(t).Expect(missing).To(ContainSubstring("its configuration names no start of this node"))
}
