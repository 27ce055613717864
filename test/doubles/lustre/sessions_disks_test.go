//go:build disks

package lustre_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// sandboxed is set in the process with its own mount, network and process namespaces. Recorded commands run there unchanged, with
// /dev/disk, /mnt and /usr/sbin/mount.lustre as on the recorded machine, and leave nothing behind.
const sandboxed = "LUSTRE_DOUBLES_SANDBOX"

// furnish creates the disks, directories and programs of the recorded machine.
func furnish() error {
	script := `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs lab "$SANDBOX"/lab
mkdir "$SANDBOX"/lab/upper "$SANDBOX"/lab/work "$SANDBOX"/lab/disks
for name in mount.lustre mount.lustre_tgt umount.fuse.lustre umount.fuse.lustre_tgt; do cp -P "$SANDBOX/$name" "$SANDBOX"/lab/upper/; done
mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$SANDBOX/lab/upper,workdir=$SANDBOX/lab/work" /usr/sbin
# A machine may have no module to give options to, and no directory for them.
mkdir "$SANDBOX"/lab/etc "$SANDBOX"/lab/etc-work
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$SANDBOX/lab/etc,workdir=$SANDBOX/lab/etc-work" /etc
mkdir -p /etc/modprobe.d
mount -t tmpfs mnt /mnt
mkdir -p /dev/disk
mount -t tmpfs disk /dev/disk
mkdir /dev/disk/by-id
mount -t tmpfs modprobe /etc/modprobe.d
echo 'options lnet networks=tcp(dummy0)' >/etc/modprobe.d/lustre.conf
ip link set lo up
for i in 0 1; do
  ip link add dummy$i type veth peer name peer$i
  ip link set peer$i up
  ip link set dummy$i up
  ip addr add 192.168.77.$((i + 1))/24 dev dummy$i
done`
	if err := os.MkdirAll(filepath.Join(doubles, "lab"), 0o755); err != nil {
		return err
	}
	command := exec.Command("bash", "-c", script)
	command.Env = append(os.Environ(), "SANDBOX="+doubles)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return os.Setenv("PATH", doubles+":"+os.Getenv("PATH"))
}

// node is one machine with targets and clients.
type node struct {
	*lab
	// home is its LUSTRE_DOUBLE_DIRECTORY.
	home string
}

func newNode(l *lab, name string) *node {
	l.Helper()
	n := &node{l, filepath.Join(l.directory, name)}
	l.Cleanup(n.crash)
	return n
}

// sh runs a person's command line.
func (n *node) sh(line string) string {
	n.Helper()
	command := exec.Command("bash", "-c", line)
	command.Env = append(os.Environ(), "LUSTRE_DOUBLE_DIRECTORY="+n.home, "HOME=/", "LC_ALL=C")
	command.Dir = "/"
	output, _ := command.CombinedOutput()
	return string(output)
}

// crash simulates a power cut: no peer is notified, and nothing is mounted afterwards.
func (n *node) crash() {
	if genuine {
		// The real kernel can't be killed within a test. A forced unmount notifies no peer either (umount -f of mount.lustre(8)).
		n.sh("for t in $(findmnt -rno TARGET -t lustre) $(findmnt -rno TARGET -t lustre_tgt); do umount -f $t; done")
		return
	}
	process, err := os.ReadFile(filepath.Join(n.home, "kernel.lock"))
	var id int
	if _, scanned := fmt.Sscan(string(process), &id); err == nil && scanned == nil && id > 1 {
		_ = syscall.Kill(id, syscall.SIGKILL)
		for range 200 {
			if syscall.Kill(id, 0) != nil {
				break
			}
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(id, &status, syscall.WNOHANG, nil)
			<-time.After(10 * time.Millisecond)
		}
	}
	_ = os.Remove(filepath.Join(n.home, "kernel.lock"))
	for path := range strings.FieldsSeq(n.sh(`findmnt -rno TARGET -t fuse.lustre,fuse.lustre_tgt`)) {
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
	}
}

// disks creates images with the names of the recorded disks.
func (l *lab) disks(sizes ...int64) {
	l.Helper()
	for i, size := range sizes {
		name := string(rune('a' + i))
		if genuine {
			l.disk("vd"+name, size)
			continue
		}
		link := fmt.Sprintf("/dev/disk/by-id/virtio-disk%d", i+1)
		_ = os.Remove(link)
		NewWithT(l).Expect(os.Symlink(l.disk("vd"+name, size), link)).To(Succeed())
	}
}

// variables lists text that differs between machines and runs: its positions are compared, but not its values.
var variables = []struct {
	what *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\bff[0-9a-f]{14}\b`), "{INSTANCE}"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "{UUID}"},
	{regexp.MustCompile(`(?m)^( *\d+ UP .*) \d+$`), "$1 {REFERENCES}"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "{MD5}"},
	{regexp.MustCompile(`copied, .*`), "copied {SPEED}"},
	{regexp.MustCompile(`\[0x[0-9a-f]+:0x[0-9a-f]+:0x0\]`), "{FID}"},
	{regexp.MustCompile(`(?m)^\t( +\d+)\t +\d+\t +0x[0-9a-f]+\t {3}0x[0-9a-f]+$`), "\t$1\t{OBJECT}"},
	{regexp.MustCompile(`(?m)^((?:files|kbytes)\w+|osd-ldiskfs\.\S+\.(?:files|kbytes)\w+)=\d+$`), "$1={NUMBER}"},
	{regexp.MustCompile(`(?m)(recovery_start|time_waited|recovery_duration|last_transno|nidtbl_version|notify_\w+|gen|imported): +[0-9.]+`), "$1: {NUMBER}"},
	{regexp.MustCompile(`\[ \d{10}, `), "[ {TIME}, "},
	{regexp.MustCompile(`root root (\d+) \w+ \d+ \d+:\d+ `), "root root $1 {TIME} "},
	{regexp.MustCompile(`(?m)^ +/mnt/pfs +[0-9.]+[kMG]?(\*?) `), "/mnt/pfs {USED}$1 "},
	// The width of a number in lfs df is compared.
	{regexp.MustCompile(`(?m)^((?:pfs-\w+_UUID|filesystem_summary:) *) [0-9.]+[KMG]? +[0-9.]+[KMG]? +[0-9.]+[KMG]? +\d+%`), "$1 {SPACE}"},
}

var spaceRow = regexp.MustCompile(`(?m)^(?:pfs-\w+_UUID|filesystem_summary:).*%  `)

// plain replaces variable text by names.
func (l *lab) plain(text string) string {
	for path, device := range l.devices {
		text = strings.ReplaceAll(text, device, path)
	}
	text = strings.ReplaceAll(text, l.directory+"/vd", "/dev/vd")
	widths := spaceRow.ReplaceAllStringFunc(text, func(row string) string { return fmt.Sprintf("%s{%d}", row, len(row)) })
	for _, v := range variables {
		widths = v.what.ReplaceAllString(widths, v.name)
	}
	return regexp.MustCompile(` +\{SPACE\}`).ReplaceAllString(widths, " {SPACE}")
}

// session runs the commands of a recorded session, and expects the recorded outputs. Lines without a fixed order are sorted.
func (n *node) session(name string, unordered ...string) {
	n.Helper()
	content, err := os.ReadFile("testdata/2.17.57/session/" + name + ".txt")
	g := NewWithT(n)
	g.Expect(err).NotTo(HaveOccurred())
	line, recorded, _ := strings.Cut(strings.TrimPrefix(string(content), "$ "), "\n")
	if name == "56-stop" {
		// The double removes its last devices after its last umount has ended.
		line = strings.Replace(line, "; lctl dl", `; for i in $(seq 600); do [ -z "$(lctl dl)" ] && break; sleep 0.1; done; lctl dl`, 1)
	}
	said, should := n.plain(n.sh(line)), n.plain(recorded)
	for _, prefix := range unordered {
		said, should = ordered(said, prefix), ordered(should, prefix)
	}
	// The result is compared separately from the others, because a real machine is slower or faster than the recorded one.
	n.Run(name, func(t *testing.T) { NewWithT(t).Expect(said).To(Equal(should), "%s: %s", name, line) })
}

// ordered sorts consecutive lines with the same beginning.
func ordered(text, prefix string) string {
	lines := strings.Split(text, "\n")
	for changed := true; changed; {
		changed = false
		for i := 0; i+1 < len(lines); i++ {
			if strings.HasPrefix(lines[i], prefix) && strings.HasPrefix(lines[i+1], prefix) && lines[i] > lines[i+1] {
				lines[i], lines[i+1], changed = lines[i+1], lines[i], true
			}
		}
	}
	return strings.Join(lines, "\n")
}

// formatted formats the four targets of the recorded machine; the fifth disk is empty.
func (n *node) formatted() {
	n.Helper()
	n.disks(2<<30, 2<<30, 2<<30, 2<<30, 512<<20)
	said := n.sh(`mkdir -p /mnt/mdt0 /mnt/mdt1 /mnt/ost0 /mnt/ost1 /mnt/pfs; d=/dev/disk/by-id/virtio-disk
mkfs.lustre --quiet --mgs --mdt --fsname=pfs --index=0 ${d}1 && mkfs.lustre --quiet --mdt --fsname=pfs --index=1 --mgsnode=192.168.77.1@tcp ${d}2 &&
mkfs.lustre --quiet --ost --fsname=pfs --index=0 --mgsnode=192.168.77.1@tcp ${d}3 && mkfs.lustre --quiet --ost --fsname=pfs --index=1 --mgsnode=192.168.77.1@tcp ${d}4 && echo formatted`)
	NewWithT(n).Expect(said).To(HaveSuffix("formatted\n"))
}

// settle waits until each server has received the others' configuration.
func (n *node) settle() {
	n.Helper()
	NewWithT(n).Eventually(func() string { return n.sh("lctl dl") }).WithTimeout(patience.Bound(time.Minute)).WithPolling(500 * time.Millisecond).
		Should(ContainSubstring("pfs-OST0001-osc-MDT0000"))
}

// TestTheDoublesAnswerAsTheRealLustreDid runs the recorded sessions in order: each one continues from the state of the one before.
func TestTheDoublesAnswerAsTheRealLustreDid(t *testing.T) {
	l := newLab(t)
	n := newNode(l, "node")
	g := NewWithT(t)
	n.formatted()
	n.session("15-mount")
	n.session("01-network")
	n.settle()
	n.session("20-client")
	n.session("21-data", "./")
	n.session("22-pools")
	n.session("23-params", "pfs-MDT")
	g.Expect(n.sh("cd /mnt/pfs; for i in 0 1; do lfs setstripe -c 1 -i $i plain/j$((i + 1)); echo x >plain/j$((i + 1)); done")).To(BeEmpty())
	n.session("41-expand-drain", "")
	n.session("42-deactivate-del_ost")
	n.session("43-after-del")

	n.crash()
	g.Expect(n.sh("for x in '1 mdt0' '3 ost0'; do set -- $x; mount -t lustre_tgt /dev/disk/by-id/virtio-disk$1 /mnt/$2 || echo $2 failed; done")).To(BeEmpty())
	n.session("51-waiting")
	g.Expect(n.sh("for x in '2 mdt1' '5 ost2'; do set -- $x; mount -t lustre_tgt /dev/disk/by-id/virtio-disk$1 /mnt/$2 || echo $2 failed; done")).To(BeEmpty())
	g.Eventually(func() int { return strings.Count(n.sh("lctl get_param '*.*.recovery_status'"), "status: COMPLETE") }).
		WithTimeout(patience.Bound(time.Minute)).Should(Equal(4))
	n.session("52-client-after-crash")

	g.Expect(n.sh("mkdir /mnt/pfs/w && lfs setstripe -i 0 -c 1 /mnt/pfs/w && dd if=/dev/zero of=/mnt/pfs/w/a bs=1M count=8 status=none")).To(BeEmpty())
	n.session("53-ost-away")
	n.session("53-ost-restart", "") // two programs print concurrently
	n.session("54-evict")
	n.session("55-quota")
	n.session("56-stop")
}

// mountOn mounts a target and returns the result.
func (n *node) mountOn(disk int, name string) string {
	n.Helper()
	return n.sh(fmt.Sprintf("mkdir -p /mnt/%[2]s; timeout 20 mount -t lustre_tgt /dev/disk/by-id/virtio-disk%[1]d /mnt/%[2]s; echo exit $?", disk, name))
}

const made = "mkfs.lustre --quiet --ost --fsname=%s --index=%d --mgsnode=%s /dev/disk/by-id/virtio-disk%d; echo exit $?"

func (n *node) make(fsName string, index int, mgs string, disk int) {
	n.Helper()
	NewWithT(n).Expect(n.sh(fmt.Sprintf(made, fsName, index, mgs, disk))).To(HaveSuffix("exit 0\n"))
}

func TestAMountIsRefusedWhen(t *testing.T) {
	l := newLab(t)
	n := newNode(l, "node")
	n.formatted()
	g := NewWithT(t)
	g.Expect(n.mountOn(1, "mdt0")).To(Equal("exit 0\n"))
	g.Expect(n.mountOn(3, "ost0")).To(Equal("exit 0\n"))
	refused := func(sentence, says string, code int, do func() string) {
		t.Run(sentence, func(t *testing.T) {
			NewWithT(t).Expect(do()).To(SatisfyAll(ContainSubstring(says), HaveSuffix(fmt.Sprintf("exit %d\n", code))))
		})
	}
	refused("the disk has no target", "has not been formatted with mkfs.lustre", 19, func() string {
		n.sh("mke2fs -q -F /dev/disk/by-id/virtio-disk5")
		return n.mountOn(5, "ost9")
	})
	// This node's kernel has such a target itself; on another node, the MGS would refuse it.
	refused("another target has its index", "The target service is already running.", 114, func() string {
		n.sh("dd if=/dev/zero of=/dev/disk/by-id/virtio-disk5 bs=1M count=10 conv=notrunc status=none")
		n.make("pfs", 0, "192.168.77.1@tcp", 5)
		return n.mountOn(5, "ost9")
	})
	again := func(fsName, mgs string) {
		n.disk("vde", 512<<20)
		n.make(fsName, 5, mgs, 5)
	}
	if !genuine { // the real MGS accepts it
		refused("its filesystem has no MDT0000 yet", "Is the filesystem name correct?", 2, func() string {
			again("other", "192.168.77.1@tcp")
			return n.mountOn(5, "ost9")
		})
	}
	refused("nobody is at the NID of the MGS", "Is the MGS running?", 5, func() string {
		again("pfs", "192.168.77.9@tcp")
		return n.mountOn(5, "ost9")
	})
	refused("it is mounted there", "according to /etc/mtab", 17, func() string { return n.mountOn(3, "ost0") })
	refused("it is mounted elsewhere", "The target service is already running.", 114, func() string { return n.mountOn(3, "elsewhere") })
	refused("an option is none of a target", "Are the mount options correct?", 22, func() string {
		return n.sh("mount -t lustre_tgt -o abort_recov /dev/disk/by-id/virtio-disk4 /mnt/ost1; echo exit $?")
	})
	client := func(source, options string) func() string {
		return func() string {
			return n.sh("timeout 20 mount -t lustre -o " + options + " " + source + " /mnt/pfs; echo exit $?")
		}
	}
	refused("the MGS knows no such filesystem", "Is 'none' the correct filesystem name?", 22, client("192.168.77.1@tcp:/none", "rw"))
	refused("a client finds no MGS", "Is the MGS running?", 5, client("192.168.77.9@tcp:/pfs", "rw"))
	refused("an option is none of a client", "Are the mount options correct?", 22, client("192.168.77.1@tcp:/pfs", "nonsense"))

	g.Expect(n.mountOn(4, "ost1")).To(Equal("exit 0\n"), "what was refused before has left nothing behind")
}

func TestAMountedTargetIsInUseForEverybodyElse(t *testing.T) {
	l := newLab(t)
	one, two := newNode(l, "one"), newNode(l, "two")
	one.formatted()
	g := NewWithT(t)
	g.Expect(one.mountOn(1, "mdt0")).To(Equal("exit 0\n"))
	g.Expect(two.sh("lnetctl net add --net tcp --if dummy1; lctl list_nids")).To(Equal("192.168.77.2@tcp\n"))
	g.Expect(two.sh("timeout 20 mount.lustre_tgt /dev/disk/by-id/virtio-disk1 /mnt/mdt1; echo exit $?")).To(HaveSuffix("exit 16\n"))
	g.Expect(one.sh("tunefs.lustre --writeconf /dev/disk/by-id/virtio-disk1; echo exit $?")).To(HaveSuffix("exit 17\n"))
}

// TestAFilesystemOfTwoNodes has an MDT on one node, an OST and a client on another one.
func TestAFilesystemOfTwoNodes(t *testing.T) {
	l := newLab(t)
	one, two := newNode(l, "one"), newNode(l, "two")
	one.formatted()
	g := NewWithT(t)
	g.Expect(one.mountOn(1, "mdt0")).To(Equal("exit 0\n"))
	g.Expect(two.sh("lnetctl net add --net tcp --if dummy1; lctl list_nids; lctl ping 192.168.77.1@tcp >/dev/null; echo exit $?")).To(Equal("192.168.77.2@tcp\nexit 0\n"))
	g.Expect(two.mountOn(3, "ost0")).To(Equal("exit 0\n"))
	g.Expect(two.sh("timeout 20 mount -t lustre 192.168.77.1@tcp:/pfs /mnt/pfs; echo exit $?")).To(Equal("exit 0\n"))
	write := func() string {
		return two.sh("timeout 20 sh -c 'echo data >/mnt/pfs/file && cat /mnt/pfs/file && lfs getstripe -i /mnt/pfs/file'")
	}
	g.Eventually(write).WithTimeout(patience.Bound(time.Minute)).Should(Equal("data\n0\n\n"))
	g.Expect(one.sh("lctl get_param 'mdt.*.exports.192.168.77.2@tcp.uuid'")).To(And(ContainSubstring("pfs-MDT0000-lwp-OST0000_UUID"), ContainSubstring("exports.192.168.77.2@tcp.uuid=\n")))

	// A restart of the MDT waits for the client on the other node, which waits for the MDT.
	g.Expect(one.sh("umount /mnt/mdt0; echo exit $?")).To(Equal("exit 0\n"))
	g.Eventually(func() string { return two.sh("timeout 1 ls /mnt/pfs; echo exit $?") }).WithTimeout(patience.Bound(20 * time.Second)).Should(Equal("exit 124\n"))
	g.Expect(one.mountOn(1, "mdt0")).To(Equal("exit 0\n"))
	g.Eventually(func() string { return one.sh("lctl get_param -n mdt.pfs-MDT0000.recovery_status") }).WithTimeout(patience.Bound(time.Minute)).
		Should(And(ContainSubstring("status: COMPLETE\n"), ContainSubstring("completed_clients: 1/1\n")))
	g.Expect(two.sh("timeout 20 cat /mnt/pfs/file")).To(Equal("data\n"))

	// A target moves with its disk, and the others find it.
	g.Expect(two.sh("umount /mnt/ost0; echo exit $?")).To(Equal("exit 0\n"))
	g.Expect(one.mountOn(3, "ost0")).To(Equal("exit 0\n"))
	g.Eventually(func() string { return two.sh("timeout 5 lfs check osts") }).WithTimeout(patience.Bound(time.Minute)).Should(MatchRegexp(`^pfs-OST0000-osc-ff\w+ active\.\n$`))
	g.Expect(two.sh("timeout 20 cat /mnt/pfs/file")).To(Equal("data\n"))
}

// TestAnOSTThatTakesNoNewObjectsGetsNone covers the first step of each drain.
func TestAnOSTThatTakesNoNewObjectsGetsNone(t *testing.T) {
	l := newLab(t)
	n := newNode(l, "node")
	n.formatted()
	g := NewWithT(t)
	for i, name := range []string{"mdt0", "mdt1", "ost0", "ost1"} {
		g.Expect(n.mountOn(i+1, name)).To(Equal("exit 0\n"))
	}
	n.settle()
	g.Expect(n.sh("mount -t lustre 192.168.77.1@tcp:/pfs /mnt/pfs; mkdir /mnt/pfs/d; for i in 1 2 3 4; do echo x >/mnt/pfs/d/$i; done; lfs find /mnt/pfs --ost 1 | wc -l")).To(Equal("2\n"))
	g.Expect(n.sh("lctl set_param osp.pfs-OST0001-osc-MDT*.max_create_count=0 >/dev/null; for i in 5 6 7 8; do echo x >/mnt/pfs/d/$i; done; lfs find /mnt/pfs --ost 1 | wc -l")).To(Equal("2\n"))
	g.Expect(n.sh("lfs migrate $(lfs find /mnt/pfs -type f --ost 1) && lfs find /mnt/pfs --ost 1; cat /mnt/pfs/d/*")).To(Equal(strings.Repeat("x\n", 8)))

	// It is deactivated everywhere before the unmount; otherwise clients would hang.
	g.Expect(n.sh("lctl conf_param pfs-OST0001.osc.active=0; lctl get_param -n osc.pfs-OST0001-*.active | sort -u")).To(Equal("1\n"))
	g.Eventually(func() string { return n.sh("lctl get_param -n osc.pfs-OST0001-*.active | sort -u") }).WithTimeout(patience.Bound(time.Minute)).Should(Equal("0\n"))
	g.Expect(n.sh("umount /mnt/ost1; lctl --device MGS del_ost --target pfs-OST0001 >/dev/null; timeout 5 lfs df -h | grep OST0001; lfs osts")).
		To(Equal("OBDS:\n0: pfs-OST0000_UUID ACTIVE\n1: pfs-OST0001_UUID INACTIVE\n"))
	g.Expect(n.sh("umount /mnt/pfs; mount -t lustre 192.168.77.1@tcp:/pfs /mnt/pfs; lfs osts")).To(Equal("OBDS:\n0: pfs-OST0000_UUID ACTIVE\n"))
}

func TestWithoutModulesTheToolsSayThatThereIsNothing(t *testing.T) {
	n := newNode(newLab(t), "node")
	g := NewWithT(t)
	g.Expect(n.sh("lctl dl; echo exit $?")).To(Equal("exit 0\n"))
	g.Expect(n.sh("lctl get_param cpu_partition_table")).To(Equal("error: get_param: param_path 'cpu_partition_table': No such file or directory\n"))
	g.Expect(n.sh("lctl list_nids; echo exit $?")).To(HaveSuffix("exit 255\n"))
}
