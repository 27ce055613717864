//go:build vmnode

package vmnode_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// second is the name of the other machine as a node, and shared the disk that both machines reach.
var second = os.Getenv("VMNODE_SECOND")

const (
	shared = "nvme-eui.525400a0000000f1"
	// spare is the last disk of the first machine.
	spare = "nvme-eui.525400a0000000d4"
	// ost is the name of the target on the shared disk, and written the file that a program writes.
	ost, written = "twin-OST0000", "/mnt/twin/both/log"
)

// withSecond runs the script of machines for the second one.
func withSecond(argv ...string) (string, error) {
	return run("", append([]string{"env", "MACHINE=2", machine}, argv...)...)
}

// twin is a Lustre whose MDT is on the first machine. Its OST is served by the second machine, and can be served by the first one.
func twin() string {
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: twin}
spec:
  type: Lustre
  version: 2.17.57
  lustre: {fsName: twin}
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    targets: {devices: [{node: %[1]s, id: %[3]s}], format: {fsType: ldiskfs}}
  storagePools:
  - name: both
    nodeSelector: {parallelfs.dev/agent: ""}
    copies: 1
    targets: {devices: [{node: %[2]s, id: %[4]s}], format: {fsType: ldiskfs}}
    lustre: {pairs: [{nodes: [%[2]s, %[1]s]}]}
  clients:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    mountPath: /mnt/twin
  provisioning: {formatPolicy: IfBlank}
`, node, second, spare, shared)
}

// haveIt returns the machines whose kernel serves the OST.
func haveIt() (string, error) {
	var have []string
	for name, ask := range map[string]func(argv ...string) (string, error){
		node:   func(argv ...string) (string, error) { return run("", append([]string{machine}, argv...)...) },
		second: withSecond,
	} {
		said, err := ask("ask", "lctl", "dl")
		if err != nil {
			return "", err
		}
		if strings.Contains(said, "obdfilter "+ost+" ") {
			have = append(have, name)
		}
	}
	return strings.Join(have, " and "), nil
}

// holder returns the holder of a target, and whether it has taken it up.
func holder(target string) func() (string, error) {
	return field("storagetarget/"+target, "{.status.holder.node} {.status.holder.number} {.status.holder.takenUp}")
}

// atWork appends numbered lines with the time to a file of the pool, each of them synced, until a stop file exists.
const atWork = `i=0; until [ -e /files/twin/stop ]; do i=$((i+1)); line="$i $(date +%s.%N)"; ` +
	`echo "$line" >> /files/twin/both/log && sync /files/twin/both/log && echo "$line" || echo "line $i failed"; done`

// lines returns the times of the lines that atWork wrote, in seconds.
func lines(t *testing.T, log string) (seconds []float64) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
		number, at, _ := strings.Cut(line, " ")
		second, err := strconv.ParseFloat(at, 64)
		if number != strconv.Itoa(i+1) || err != nil {
			t.Fatalf("line %d is %q", i+1, line)
		}
		seconds = append(seconds, second)
	}
	return seconds
}

// longest is the longest time between two lines that were written after a point in time, in seconds.
func longest(seconds []float64, from time.Time) (out float64) {
	for i := 1; i < len(seconds); i++ {
		if seconds[i] > float64(from.Unix()) {
			out = max(out, seconds[i]-seconds[i-1])
		}
	}
	return out
}

func TestAFileSystemThatIsDeletedIsUnmountedAndKeepsItsData(t *testing.T) {
	g := NewWithT(t)
	begun := time.Now()
	kubectl(t, "-n", ours, "annotate", "--overwrite", "filesystem", "reef", "filesystem.parallelfs.dev/confirm-delete=reef")
	kubectl(t, "-n", ours, "delete", "filesystem", "reef", "--ignore-not-found", patience.Flag(30*time.Minute))
	took(t, "a filesystem, until it is deleted", begun)
	g.Expect(onNode(t, "grep lustre /proc/mounts || true")).To(BeEmpty())
	for id, label := range map[string]string{mdt: "reef-MDT0000", ost0: "reef-OST0000"} {
		g.Expect(onNode(t, "blkid -p -o value -s LABEL /dev/disk/by-id/"+id)).To(Equal(label + "\n"))
	}
}

func TestTwoMachinesServeOneOST(t *testing.T) {
	g := NewWithT(t)
	begun := time.Now()
	if _, err := run("", "kubectl", "get", "node", second); err != nil {
		for _, argv := range [][]string{{"start", os.Getenv("VMNODE_FOLDER")}, {"ask", "true"}, {"join"}} {
			_, err := withSecond(argv...)
			g.Expect(err).NotTo(HaveOccurred())
		}
		took(t, "the second machine, from its start to a Ready node", begun)
	}
	kubectl(t, "label", "node", second, "--overwrite", "parallelfs.dev/agent=")
	g.Eventually(field("nodeinventory/"+second, `{.status.blockDevices[*].ids[0]}`), long, time.Second).Should(ContainSubstring(shared))

	begun = time.Now()
	apply(t, twin())
	ready(t, "twin")
	name := target(t, shared)
	g.Expect(haveIt()).To(Equal(second))
	g.Eventually(func() (string, error) { return tryOnNode("lctl pool_list twin.both") }, long, 5*time.Second).Should(ContainSubstring(ost))
	ready(t, "twin")
	took(t, "a Lustre with an OST of two nodes, from apply", begun)
	show(t, "get storagetargets,filesystemnodes -o wide")
	said, err := withSecond("ask", "sh", "-c", "dumpe2fs -h /dev/disk/by-id/"+shared+" 2>&1 | grep -i -e features -e mmp")
	g.Expect(err).NotTo(HaveOccurred())
	t.Log(said)

	onNode(t, "rm -f /mnt/twin/stop; : > "+written)
	apply(t, pod("works", "{}", atWork))
	defer run("", "kubectl", "-n", ours, "delete", "pod", "works", "--ignore-not-found") //nolint:errcheck // the machines are thrown away
	size := func() (string, error) { return tryOnNode("wc -l < " + written) }
	g.Eventually(size, long, time.Second).ShouldNot(Equal("0\n"))

	// A node that is drained hands it over to the other one.
	drained := time.Now()
	kubectl(t, "drain", second, "--ignore-daemonsets", "--delete-emptydir-data", patience.Flag(30*time.Minute))
	took(t, "kubectl drain of the second machine", drained)
	g.Expect(holder(name)()).To(MatchRegexp("^" + node + ` 1 \d`))
	g.Expect(haveIt()).To(Equal(node))
	ready(t, "twin")
	show(t, "get storagetargets -o wide")

	// It gets it back.
	back := time.Now()
	kubectl(t, "uncordon", second)
	g.Eventually(holder(name), long, time.Second).Should(MatchRegexp("^" + second + ` 2 \d`))
	g.Eventually(haveIt, long, 5*time.Second).Should(Equal(second))
	ready(t, "twin")
	took(t, "its OST is back, since it was uncordoned", back)

	// A machine that is off hands over nothing, and two confirmations of a person are needed.
	lost := time.Now()
	_, err = withSecond("off")
	g.Expect(err).NotTo(HaveOccurred())
	kubectl(t, "wait", "--for=condition=Ready=unknown", "node/"+second, patience.Flag(30*time.Minute))
	g.Eventually(func() (string, error) {
		return run("", "kubectl", "-n", ours, "get", "storagetarget", name, "-o", "yaml")
	}, long, 5*time.Second).Should(ContainSubstring("parallelfs.dev/machine-is-off"), "its status says which words these are")
	g.Expect(holder(name)()).To(HavePrefix(second+" 2 "), "nothing moves by itself")
	show(t, "get storagetargets -o wide")
	said = kubectl(t, "-n", ours, "get", "storagetarget", name, "-o", "jsonpath={.status}")
	t.Log(said)
	words := time.Now()
	kubectl(t, "taint", "node", second, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	kubectl(t, "-n", ours, "annotate", "--overwrite", "storagetarget", name, "parallelfs.dev/machine-is-off="+second+"/2")
	g.Eventually(holder(name), long, time.Second).Should(MatchRegexp("^" + node + ` 3 \d`))
	g.Eventually(func() string { return serves(t) }, long, 5*time.Second).Should(ContainSubstring(ost))
	before, err := size()
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(size, long, time.Second).ShouldNot(Equal(before), "the program goes on")
	took(t, "the first machine serves the OST of the one that is off, since a person has said so", words)
	show(t, "get storagetargets -o wide")

	onNode(t, "touch /mnt/twin/stop")
	g.Eventually(field("pod/works", "{.status.phase}"), long, time.Second).Should(Equal("Succeeded"))
	done := kubectl(t, "-n", ours, "logs", "works")
	t.Log(onNode(t, "dmesg | grep -i -e 'recovery' -e 'mmp' | tail -20"))
	g.Expect(done).NotTo(ContainSubstring("failed"))
	g.Expect(onNode(t, "cat "+written)).To(Equal(done), "every line that was synced is there, once and in its order")
	seconds := lines(t, done)
	t.Logf("%d lines; longest wait of the program: drained %.1f s, back %.1f s, off %.1f s (of which %.1f s until a person had said so)", len(seconds),
		longest(seconds[:countBefore(seconds, back)], drained), longest(seconds[:countBefore(seconds, lost)], back), longest(seconds, lost), words.Sub(lost).Seconds())
}

// countBefore is how many lines were written before a point in time.
func countBefore(seconds []float64, moment time.Time) int {
	n := 0
	for n < len(seconds) && seconds[n] < float64(moment.Unix()) {
		n++
	}
	return n
}
