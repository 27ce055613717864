//go:build disks

package serve_test

import (
	"os/exec"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

// These are the Jobs of a drain, in order, with the condition that each waits for (docs/adr/0082).
func TestAnOSTIsEmptiedProvenAndForgottenByTheCommandsOfTheBackend(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	m.target("ost-bulk", "ost1", "7c1d5a52-4a0d-4d7e-8f0a-9b1c2d3e4f50", v1alpha1.LustreTarget{
		Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(1)), ManagementNIDs: []string{"192.168.77.1@tcp"},
	})
	mdt, ost, leaves := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd")), m.start("serve", m.serves("ost/bulk"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0 /mnt/targets/ost1", mdt, ost, leaves)
	const source, admin = "192.168.77.1@tcp:/pfs", "/mnt/admin/mnt"
	m.must("mkdir", "-p", "/mnt/admin", "/mnt/clients/pfs")
	m.must("mount", "-t", "lustre", source, "/mnt/clients/pfs")
	m.Eventually(func() string { return m.must("lctl", "dl") }).WithTimeout(long).Should(ContainSubstring("pfs-OST0001-osc-MDT0000"))
	// On an OST that the MDT lists but has not reached yet, neither a file nor the copy of a moved file can be created. File names may contain
	// newlines.
	const twoLines = "file\n/etc/hostname"
	m.must("mkdir", "-p", "/mnt/clients/pfs/file\n/etc")
	for _, f := range []struct{ ost, name string }{{"0", "other"}, {"1", "single"}, {"1", twoLines}} {
		m.Eventually(func() error {
			const write = `cd /mnt/clients/pfs; rm -f "$1"; lfs setstripe -c 1 -i "$0" "$1" && echo data >"$1"`
			return exec.Command("sh", "-c", write, f.ost, f.name).Run()
		}).WithTimeout(long).Should(Succeed())
	}

	c := cli.Commands{FSName: "pfs"}
	job := func(argv ...[]string) *pod {
		config := spec.Configure{Host: true, Mount: &spec.Mount{
			Path: admin, FSType: "lustre", Source: source, Kernel: true, Host: true, Network: &lnet, Command: []string{"mount", "-t", "lustre", source, admin},
		}}
		for _, a := range argv {
			config.Commands = append(config.Commands, spec.Command{Argv: a, TimeoutSeconds: -1})
		}
		return m.start("configure", config)
	}
	server := func() cli.Server {
		var outputs [][]byte
		for _, argv := range c.AskServer() {
			outputs = append(outputs, []byte(m.answer(argv...)))
		}
		said, err := c.ParseServer(outputs)
		m.Expect(err).NotTo(HaveOccurred())
		return said
	}
	link := cli.Link{MDT: 0, OST: 1}
	m.Expect(<-job(cli.ProveEmpty(admin, 1)).ended).NotTo(Succeed(), "it has a file")
	stop := job(c.StopNewObjects(1))
	m.Expect(<-stop.ended).To(Succeed(), stop.Said())
	m.Expect(server().Links).To(HaveKeyWithValue(link, cli.State{NoObjects: true}))
	move := job(cli.Migrate(admin, 1), cli.ProveEmpty(admin, 1), c.Deactivate(1))
	m.Expect(<-move.ended).To(Succeed(), move.Said())
	m.Eventually(server).WithTimeout(long).Should(HaveField("Links", HaveKeyWithValue(link, cli.State{NoObjects: true, Closed: true})))
	prove := job(cli.ProveEmpty(admin, 1))
	m.Expect(<-prove.ended).To(Succeed(), prove.Said())
	for _, name := range []string{"single", twoLines} {
		m.Expect(m.must("cat", "/mnt/clients/pfs/"+name)).To(Equal("data\n"))
	}

	m.Expect(leaves.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	m.Expect(<-leaves.ended).To(Succeed(), leaves.Said())
	m.Expect(server().Targets).NotTo(HaveKey(cli.Target{FSName: "pfs", Kind: cli.OST, Index: 1}))
	m.must(c.Forget(1)...)
	m.Expect(m.must("lfs", "df", "/mnt/clients/pfs")).To(And(ContainSubstring("pfs-OST0000_UUID"), Not(ContainSubstring("pfs-OST0001"))), "a client waits for nothing")
	m.must("umount", "/mnt/clients/pfs")
	for _, p := range []*pod{ost, mdt} {
		m.Expect(p.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		m.Expect(<-p.ended).To(Succeed(), p.Said())
	}
}
