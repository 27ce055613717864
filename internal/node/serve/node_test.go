package serve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/internal/plan"
)

const (
	uuid = "4a9ee1e2-bd33-4b75-be9a-1a68b6ea9309"
	mark = `{"target":"ost0"}`
	// readBack is the output of a real tunefs.lustre for OST0000, with the mark.
	readBack = `checking for existing Lustre data: found

   Read previous values:
Device:     /dev/disk/by-id/virtio-disk3
Target:     pfs-OST0000
Index:      0
Lustre FS:  pfs
Mount type: ldiskfs
Flags:      0x2
              (OST )
Persistent mount opts: errors=remount-ro
Parameters: mgsnode=192.168.77.1@tcp
Comment: ` + mark + `

exiting because there is no change.
`
)

// theNode returns a node with the right disk, which records the commands that it runs.
func theNode(ran *[][]string) (serve.Host, *plan.Facts) {
	f := &plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
		KernelName: "vdc", Signatures: []v1alpha1.Signature{{Device: "vdc", Type: "ext4", UUID: uuid, Label: "pfs-OST0000"}},
	}}
	return serve.Host{
		Look: func(context.Context, v1alpha1.DeviceID) (plan.Facts, error) { return *f, nil },
		Run: func(_ context.Context, argv []string) (format.Answer, error) {
			*ran = append(*ran, argv)
			return format.Answer{Stdout: readBack}, nil
		},
		RunMounting: func(_ context.Context, argv []string, _ ...*os.File) (format.Answer, error) {
			*ran = append(*ran, argv)
			return format.Answer{}, nil
		},
		Dev: "/dev",
	}, f
}

func TestADiskThatMatchesItsAssignmentIsMountedByTheNodesOwnProgram(t *testing.T) {
	g := NewWithT(t)
	var ran [][]string
	h, _ := theNode(&ran)
	device, err := h.Prove(t.Context(), ost(0))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(device).To(Equal("/dev/vdc"))
	g.Expect(h.Mount(t.Context(), ost(0), device)).To(Succeed())
	g.Expect(h.Unmount(t.Context(), ost(0))).To(Succeed())
	g.Expect(ran).To(Equal([][]string{
		{"tunefs.lustre", "--dryrun", "/dev/vdc"}, {"mount", "-t", "lustre_tgt", "/dev/vdc", "/targets/ost0"}, {"umount", "/targets/ost0"},
	}))
}

func TestADiskIsNotProvenWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *serve.Host, f *plan.Facts, wanted *serve.Target)
		says   string
	}{
		"it is not there":        {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { *f = plan.Facts{} }, "is not there"},
		"it is mounted":          {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.Mounts = []string{"/mnt"} }, "vdc is in use (/mnt"},
		"a program has it open":  {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.Busy = "mke2fs" }, "vdc is in use (mke2fs"},
		"it is two disks":        {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.TwoDisks = "these are two disks" }, "two disks"},
		"not all is known of it": {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.Incomplete = "blkid hung" }, "blkid hung"},
		"it is blank":            {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.Signatures = nil }, "something else"},
		"it has another UUID":    {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.Signatures[0].UUID = "x" }, "has the UUID x"},
		"its label says that the next mount writes the configuration": {func(_ *serve.Host, f *plan.Facts, _ *serve.Target) { f.Signatures[0].Label = "pfs=OST0000" }, "its label is pfs=OST0000"},
		"it has another mark":          {func(_ *serve.Host, _ *plan.Facts, w *serve.Target) { w.Wanted.Mark = "other" }, "its mark is"},
		"it is another target":         {func(_ *serve.Host, _ *plan.Facts, w *serve.Target) { *w = ost(1) }, `its index is "0", and it was given "1"`},
		"nobody knows what it must be": {func(_ *serve.Host, _ *plan.Facts, w *serve.Target) { w.Wanted.Given = nil }, "has not said yet"},
		"the node lacks the program": {func(h *serve.Host, _ *plan.Facts, _ *serve.Target) {
			h.Run = func(context.Context, []string) (format.Answer, error) {
				return format.Answer{}, errors.New("no tunefs.lustre")
			}
		}, "no tunefs.lustre"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var ran [][]string
			h, f := theNode(&ran)
			wanted := ost(0)
			c.change(&h, f, &wanted)
			_, err := h.Prove(t.Context(), wanted)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestTheNodesOwnTableOfMountsCounts(t *testing.T) {
	g := NewWithT(t)
	table := filepath.Join(t.TempDir(), "mountinfo")
	layers := strings.Repeat("lowerdir+=/layer,", 1<<13) // a line of 136 KiB, as a container runtime can make
	g.Expect(os.WriteFile(table, []byte(`22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
23 22 0:40 / /merged rw - overlay overlay rw,`+layers+`upperdir=/a
97 22 0:51 / /targets/ost0 rw,relatime shared:42 - lustre_tgt /dev/vdc rw,svname=pfs-OST0000,mgsnode=192.168.77.1@tcp,osd=osd-ldiskfs
`), 0o600)).To(Succeed())
	h := serve.Host{Table: table}
	g.Expect(h.Mounts("/targets/ost0")).To(Equal([]serve.Mount{{
		Type: "lustre_tgt", Source: "/dev/vdc", Options: "rw,svname=pfs-OST0000,mgsnode=192.168.77.1@tcp,osd=osd-ldiskfs",
	}}))
	g.Expect(h.Mounts("/targets/ost1")).To(BeEmpty())
}

func TestAFailedMountReportsTheReason(t *testing.T) {
	g := NewWithT(t)
	h := serve.Host{RunMounting: func(context.Context, []string, ...*os.File) (format.Answer, error) {
		return format.Answer{Code: 17, Said: "mount.lustre: mount /dev/vdc at /targets/ost0 failed: File exists"}, nil
	}}
	g.Expect(h.Mount(t.Context(), ost(0), "/dev/vdc")).To(MatchError(And(ContainSubstring("exit code 17"), ContainSubstring("File exists"))))
}

func TestANodeIsAskedForATypeOfMountThatItSupports(t *testing.T) {
	for name, c := range map[string]struct {
		helpers []string
		kind    string
	}{
		"the present one": {[]string{"mount.lustre", "mount.lustre_tgt"}, "lustre_tgt"},
		"an older one":    {[]string{"mount.lustre"}, "lustre"},
		"none":            {nil, "lustre_tgt"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var ran [][]string
			h, _ := theNode(&ran)
			h.Root = t.TempDir()
			g.Expect(os.MkdirAll(filepath.Join(h.Root, "sbin"), 0o755)).To(Succeed())
			for _, helper := range c.helpers {
				g.Expect(os.WriteFile(filepath.Join(h.Root, "sbin", helper), nil, 0o600)).To(Succeed())
			}
			g.Expect(h.Mount(t.Context(), ost(0), "/dev/vdc")).To(Succeed())
			g.Expect(ran).To(HaveExactElements(HaveExactElements("mount", "-t", c.kind, "/dev/vdc", "/targets/ost0")))
		})
	}
}
