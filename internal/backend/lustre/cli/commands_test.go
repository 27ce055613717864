package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

var pfs = cli.Commands{FSName: "pfs"}

func TestCommandsAreThoseThatARealLustreTook(t *testing.T) {
	for want, argv := range map[string][]string{
		"lctl get_param mdc.pfs-*.state osc.pfs-*.state":                    pfs.ClientStates(),
		"lctl pool_new pfs.fast":                                            pfs.AddPool("fast"),
		"lctl pool_add pfs.fast pfs-OST0001":                                pfs.AddToPool("fast", []int32{1}),
		"lctl pool_remove pfs.fast pfs-OST0001":                             pfs.RemoveFromPool("fast", []int32{1}),
		"lctl pool_list pfs":                                                pfs.Pools(),
		"lctl pool_list pfs.fast":                                           pfs.Pool("fast"),
		"lctl set_param osp.pfs-OST0001-osc-MDT*.max_create_count=0":        pfs.StopNewObjects(1),
		"lctl conf_param pfs-OST0001.osc.active=0":                          pfs.Deactivate(1),
		`sh -c lfs find "$0" --ost "$1" -0 | lfs_migrate -y -0 /mnt/pfs 10`: cli.Migrate("/mnt/pfs", 10),
		`sh -c found=$({ lfs find "$0" --ost "$1" 2>&1 || echo failed; } | head -c 9); test "$found" != failed || exit 1; ` +
			`test -z "$found" || { echo "files have objects on OST $1: ` +
			`on a client, lfs find MOUNT --ost $1 names them" >&2; exit 1; } /mnt/pfs 10`: cli.ProveEmpty("/mnt/pfs", 10),
		"lctl --device MGS del_ost --target pfs-OST0001":                                    pfs.Forget(1),
		"lctl set_param -P osc.*.max_dirty_mb=512":                                          cli.SetParameter("osc.*.max_dirty_mb", "512"),
		"lfs setdirstripe -D -i -1 -c 2 --max-inherit -1 --max-inherit-rr 3 /mnt/pfs":       cli.SetDirectories("/mnt/pfs", cli.Directories{MDTs: 2, RoundRobinDepth: 3}),
		"lfs setstripe -c 1 -p fast /mnt/pfs/fast":                                          cli.SetLayout("/mnt/pfs/fast", "fast", []cli.Component{{OSTs: 1}}),
		"lfs setstripe -c -1 -S 4096K -p fast /mnt/pfs/fast":                                cli.SetLayout("/mnt/pfs/fast", "fast", []cli.Component{{OSTs: cli.AllOSTs, StripeSize: 4 << 20}}),
		"lfs setstripe -E 64K -L mdt -E 262144K -c 4 -S 1024K -p ssd -E -1 -c -1 -p ssd /d": cli.SetLayout("/d", "ssd", []cli.Component{{End: 64 << 10, OnMDT: true}, {End: 256 << 20, OSTs: 4, StripeSize: 1 << 20}, {OSTs: cli.AllOSTs}}),
	} {
		NewWithT(t).Expect(strings.Join(argv, " ")).To(Equal(want))
	}
}

func TestOSTsThatFollowEachOtherAreOneArgument(t *testing.T) {
	g := NewWithT(t)
	many := make([]int32, 24000)
	for i := range many {
		many[i] = int32(len(many) - i)
	}
	g.Expect(pfs.AddToPool("fast", many)).To(Equal([]string{"lctl", "pool_add", "pfs.fast", "pfs-OST[0001-5dc0/1]"}))
	g.Expect(pfs.AddToPool("fast", []int32{20, 3, 1, 2, 18})).To(Equal([]string{
		"lctl", "pool_add", "pfs.fast", "pfs-OST[0001-0003/1]", "pfs-OST0012", "pfs-OST0014",
	}))
}

func TestAnEvictionIsFoundInTheHistoryOfARealClient(t *testing.T) {
	const history = "mdc.pfs-MDT0000-mdc-ff223342a1e98000.state=\ncurrent_state: FULL\nstate_history:\n - [ 1795345432, CONNECTING ]\n" +
		" - [ 1795345432, EVICTED ]\n - [ 1795345432, RECOVER ]\n - [ 1795345432, FULL ]\n"
	NewWithT(t).Expect(regexp.MustCompile(cli.Eviction).FindAllString(history, -1)).To(Equal([]string{" - [ 1795345432, EVICTED ]"}))
}

// A user's file names could fill the memory of the shell, and could be those of any text.
func TestOnlyAnOSTWithoutFilesIsProvenEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		lfs   string
		empty bool
	}{
		"no file":                         {"exit 0", true},
		"one file":                        {"echo /mnt/pfs/a", false},
		"a file whose name is a newline":  {`printf '/mnt/pfs/\n\n'`, false},
		"a file that is named failed":     {"echo failed", false},
		"files without end":               {"yes /mnt/pfs/a", false},
		"an error":                        {"exit 5", false},
		"an error after a complaint":      {"echo 'cannot open' >&2; exit 5", false},
		"a complaint, and nothing failed": {"echo 'cannot open' >&2", false},
	} {
		t.Run(name, func(t *testing.T) {
			g, bin := NewWithT(t), t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(bin, "lfs"), []byte("#!/bin/sh\n"+c.lfs+"\n"), 0o755)).To(Succeed())
			argv := cli.ProveEmpty("/mnt/pfs", 10)
			prove := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			prove.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			g.Expect(prove.Run() == nil).To(Equal(c.empty))
		})
	}
}
