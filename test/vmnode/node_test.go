//go:build vmnode

package vmnode_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// The environment that run.sh sets: the name of the node, the script that starts machines and runs commands in them, and the image of pods.
var (
	node    = os.Getenv("VMNODE_NODE")
	machine = os.Getenv("VMNODE_MACHINE")
	image   = os.Getenv("VMNODE_IMAGE")
)

// long is far more than any step takes on an emulated machine.
var long = patience.Bound(time.Hour)

const (
	// ours is the namespace of the tests.
	ours = "reef"
	// mdt, ost0 and ost1 are names of the machine's disks, which come from their EUI-64. The fourth disk is unused.
	mdt, ost0, ost1 = "nvme-eui.525400a0000000a1", "nvme-eui.525400a0000000b2", "nvme-eui.525400a0000000c3"
	// mounted is the mountpoint of the client.
	mounted = "/mnt/reef"
)

// run runs a command of this machine. kubectl is repeated while the API server is busy, except for commands in pods, which may have begun.
func run(stdin string, argv ...string) (string, error) {
	if argv[0] == "kubectl" && !slices.Contains(argv, "exec") {
		return patience.Kubectl(argv, func() (string, error) { return once(stdin, argv) })
	}
	return once(stdin, argv)
}

func once(stdin string, argv []string) (string, error) {
	command := exec.Command(argv[0], argv[1:]...)
	command.Stdin = strings.NewReader(stdin)
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s%s", strings.Join(argv, " "), err, out, complaint.String())
	}
	return string(out), nil
}

// kubectl must succeed.
func kubectl(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := run("", append([]string{"kubectl"}, argv...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// field is the value of a JSON path of an object, empty when there is none.
func field(object, path string) func() (string, error) {
	return func() (string, error) {
		return run("", "kubectl", "-n", ours, "get", object, "-o", "jsonpath="+path, "--ignore-not-found")
	}
}

// apply applies a manifest.
func apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := run(manifest, "kubectl", "-n", ours, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// onNode runs a line of shell in the machine, which must succeed.
func onNode(t *testing.T, line string) string {
	t.Helper()
	out, err := tryOnNode(line)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryOnNode(line string) (string, error) {
	return run("", machine, "ask", "sh", "-euc", line)
}

// took logs how long a step took.
func took(t *testing.T, what string, since time.Time) {
	t.Helper()
	t.Logf("%s: %d s", what, int(time.Since(since).Seconds()))
}

// show logs what a person would see.
func show(t *testing.T, what string) {
	t.Helper()
	t.Logf("$ kubectl -n %s %s\n%s", ours, what, kubectl(t, append([]string{"-n", ours}, strings.Fields(what)...)...))
}

// pod runs a small pod on the machine, with what it mounts.
func pod(name, resources, command string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: shell
    image: %s
    imagePullPolicy: Never
    command: [sh, -c, %q]
    resources: %s
    volumeMounts: [{name: files, mountPath: /files, mountPropagation: HostToContainer}]
  volumes: [{name: files, hostPath: {path: /mnt, type: DirectoryOrCreate}}]
`, name, node, image, command, resources)
}

func TestTheMachineIsANodeThatRunsPods(t *testing.T) {
	g := NewWithT(t)
	kubectl(t, "wait", "--for=condition=Ready", "node/"+node, patience.Flag(10*time.Minute))
	if _, err := run("", "kubectl", "get", "namespace", ours); err != nil {
		kubectl(t, "create", "namespace", ours)
		kubectl(t, "label", "namespace", ours, "pod-security.kubernetes.io/enforce=privileged")
	}
	begun := time.Now()
	apply(t, pod("first", "{}", "uname -r"))
	g.Eventually(field("pod/first", "{.status.phase}"), long, time.Second).Should(Equal("Succeeded"))
	took(t, "a pod, from apply to its end", begun)
	said := kubectl(t, "-n", ours, "logs", "first")
	g.Expect(said).To(Equal(onNode(t, "uname -r")), "it is the kernel of the machine, and not of this one")
	kubectl(t, "-n", ours, "delete", "pod", "first")
	show(t, "get nodes -o wide")
}

func TestTheAgentShowsTheDisksByTheirNames(t *testing.T) {
	g := NewWithT(t)
	begun := time.Now()
	kubectl(t, "label", "node", node, "--overwrite", "parallelfs.dev/agent=")
	inventory := func(path string) func() (string, error) { return field("nodeinventory/"+node, path) }
	g.Eventually(inventory(`{range .status.blockDevices[*]}{.ids[0]} {.serial} NUMA {.numaNode}{"\n"}{end}`), long, time.Second).Should(And(
		ContainSubstring(mdt+" PFSVM-A NUMA 0"), ContainSubstring(ost0+" PFSVM-B NUMA 0"), ContainSubstring(ost1+" PFSVM-C NUMA 1")))
	took(t, "the inventory, from the label of the node", begun)
	g.Expect(inventory("{.status.software[*].missingForServers}{.status.software[*].missingForClients}")()).To(BeEmpty())
	show(t, "get nodeinventories -o wide")
	t.Log(inventory(`{range .status.blockDevices[*]}{.kernelName} {.ids[0]} {.unusable}{"\n"}{end}`)())
	t.Log(inventory(`{.status.software}{"\n"}{.status.cpu}`)())
}

// reef is a Lustre on three disks of the machine, with a client there; the OSTs are disks of its pool.
func reef(osts ...string) string {
	devices := make([]string, 0, len(osts))
	for _, id := range osts {
		devices = append(devices, fmt.Sprintf("{node: %s, id: %s}", node, id))
	}
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: reef}
spec:
  type: Lustre
  version: 2.17.57
  lustre:
    fsName: reef
    projects: [{id: 1001, directory: ssd/small, space: 8Mi}]
    parameters: {mdt.*.identity_upcall: NONE}
    moduleOptions: Write
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    cpuPinning: {mode: CPUSet, cpuSets: ["0"]}
    targets: {devices: [{node: %[1]s, id: %[2]s}], format: {fsType: ldiskfs}}
  storagePools:
  - name: ssd
    cpuPinning: {mode: NUMANode, numaNodes: [1]}
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    copies: 1
    targets: {devices: [%[3]s], format: {fsType: ldiskfs}}
  clients:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    mountPath: %[4]s
  provisioning: {formatPolicy: IfBlank}
`, node, mdt, strings.Join(devices, ", "), mounted)
}

// ready waits until a filesystem is Ready.
func ready(t *testing.T, name string) {
	t.Helper()
	g := NewWithT(t)
	is := field("filesystem/"+name, `{.status.conditions[?(@.type=="Ready")].status}`)
	g.Eventually(is, long, 5*time.Second).Should(Equal("True"), func() string {
		said, _ := run("", "kubectl", "-n", ours, "get", "filesystems,storagetargets,filesystemnodes,pods", "-o", "wide")
		why, _ := field("filesystem/"+name, `{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`)()
		return said + why
	})
}

func TestALustreComesFromOneManifest(t *testing.T) {
	g := NewWithT(t)
	begun := time.Now()
	apply(t, reef(ost0, ost1))
	ready(t, "reef")
	took(t, "a Lustre of one MDT, two OSTs and a client, from apply to Ready", begun)
	g.Eventually(func() (string, error) { return tryOnNode("lctl pool_list reef.ssd") }, long, 5*time.Second).Should(
		And(ContainSubstring("reef-OST0000"), ContainSubstring("reef-OST0001")))
	took(t, "and its pool", begun)
	show(t, "get filesystems,storagetargets,filesystemnodes -o wide")
	show(t, "get pods -o wide")
	t.Log(onNode(t, "lctl dl; mount -t lustre,lustre_tgt; lfs df -h "+mounted))
}

// target is the name of the StorageTarget of a disk.
func target(t *testing.T, id string) string {
	t.Helper()
	name := kubectl(t, "-n", ours, "get", "storagetargets", "-o", fmt.Sprintf(`jsonpath={.items[?(@.spec.device.id==%q)].metadata.name}`, id))
	if name == "" {
		t.Fatalf("no StorageTarget has the disk %s", id)
	}
	return name
}

// inPod runs a pod with a command to its end, and returns its output.
func inPod(t *testing.T, name, command string) string {
	t.Helper()
	g := NewWithT(t)
	begun := time.Now()
	apply(t, pod(name, "{}", command))
	g.Eventually(field("pod/"+name, "{.status.phase}"), long, time.Second).Should(BeElementOf("Succeeded", "Failed"))
	said := kubectl(t, "-n", ours, "logs", name)
	took(t, "pod "+name, begun)
	g.Expect(field("pod/"+name, "{.status.phase}")()).To(Equal("Succeeded"), said)
	kubectl(t, "-n", ours, "delete", "pod", name)
	return said
}

// greeting is the content of the tests' file.
const greeting = "The sea is calm tonight."

func TestTheThreadsOfEachRoleRunOnTheirCPUs(t *testing.T) {
	g := NewWithT(t)
	t.Log(onNode(t, "cat /etc/modprobe.d/parallelfs-reef.reef.conf"))
	g.Expect(onNode(t, "lctl get_param -n cpu_partition_table")).To(MatchRegexp(`^0\s*: 1\s*\n1\s*: 0\s*\n$`), "the first partition is that of the OSTs")
	runOn := func(threads string) string {
		return onNode(t, "for p in $(pgrep '^"+threads+"'); do sed -n 's/^Cpus_allowed_list:\t//p' /proc/$p/status; done | sort -u")
	}
	g.Expect(runOn("mdt01_")).To(Equal("0\n"))
	g.Expect(runOn("ll_ost00_")).To(Equal("1\n"))
	pinned := field("filesystem/reef", `{range .status.conditions[?(@.type=="Pinned")]}{.status} {.reason}: {.message}{end}`)
	g.Eventually(pinned, long, 5*time.Second).Should(HavePrefix("True AsAsked"))
	t.Log(pinned())
}

func TestAPodWritesAFileThroughTheMount(t *testing.T) {
	g := NewWithT(t)
	g.Expect(inPod(t, "writes", "echo '"+greeting+"' > /files/reef/ssd/greeting && sync && cat /files/reef/ssd/greeting && stat -f -c %T /files/reef")).
		To(HavePrefix(greeting))
	g.Expect(onNode(t, "lfs getstripe -p "+mounted+"/ssd/greeting")).To(ContainSubstring("ssd"))
}

func TestALimitOfADirectoryHolds(t *testing.T) {
	g := NewWithT(t)
	small := "/files/reef/ssd/small"
	project := func() (string, error) { return tryOnNode("lfs project -d " + mounted + "/ssd/small") }
	g.Eventually(project, long, 5*time.Second).Should(MatchRegexp(`^\s*1001 P`))
	// The machine has no user of that number, and its MDT looks up none.
	g.Expect(onNode(t, "lctl get_param -n mdt.reef-MDT0000.identity_upcall")).To(Equal("NONE\n"))
	said := inPod(t, "limited", "chown 1000:1000 "+small+" && cd / && as='setpriv --reuid 1000 --regid 1000 --clear-groups' && "+
		"$as dd if=/dev/zero of="+small+"/fits bs=1M count=4 && sync && ! $as dd if=/dev/zero of="+small+"/does-not bs=1M count=32 oflag=sync 2>&1")
	g.Expect(said).To(ContainSubstring("Disk quota exceeded"))
	t.Log(said, onNode(t, "lfs quota -p 1001 -h "+mounted))
	onNode(t, "rm -f "+mounted+"/ssd/small/*")
}

// serves returns the targets that the machine's kernel serves.
func serves(t *testing.T) string {
	t.Helper()
	return onNode(t, `lctl dl | awk '$2 == "UP" && ($3 == "mdt" || $3 == "obdfilter") {print $4}' | sort`)
}

func TestAKilledServerTakesNoTargetAway(t *testing.T) {
	g := NewWithT(t)
	before := serves(t)
	onNode(t, "pgrep -f '[n]ode serve --spec' | xargs kill -9")
	g.Expect(serves(t)).To(Equal(before), "the mounts are the kernel's")
	g.Expect(onNode(t, "cat "+mounted+"/ssd/greeting")).To(Equal(greeting + "\n"))
	ready(t, "reef")
}

func TestAPodOfAServerThatIsDeletedComesBackWithItsTargets(t *testing.T) {
	g := NewWithT(t)
	before := serves(t)
	begun := time.Now()
	kubectl(t, "-n", ours, "delete", "pod", "-l", "app.kubernetes.io/component=ost")
	took(t, "the pod of the OSTs, until it is gone", begun)
	g.Eventually(func() string { return serves(t) }, long, 5*time.Second).Should(Equal(before))
	ready(t, "reef")
	took(t, "and until all is Ready again", begun)
	g.Expect(onNode(t, "cat "+mounted+"/ssd/greeting")).To(Equal(greeting + "\n"))
}

func TestTheMDTMeasuresItself(t *testing.T) {
	g := NewWithT(t)
	begun := time.Now()
	apply(t, fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: mdts}
spec:
  target: {fileSystem: {name: reef}}
  clients: {nodeSelector: {kubernetes.io/hostname: %s}}
  tool: mdsSurvey
  mdsSurvey: {threadsLow: 2, threadsHigh: 2, fileCount: 2000, dirCount: 2, tests: [create, destroy]}
  limits: {pointTimeout: 20m, retries: 2, invalidRetries: 1}
`, node))
	succeeded := field("benchmarkrun/mdts", `{.status.conditions[?(@.type=="Succeeded")].status}`)
	g.Eventually(succeeded, long, 5*time.Second).Should(BeElementOf("True", "False"))
	took(t, "mds-survey", begun)
	show(t, "get benchmarkruns -o wide")
	t.Log(field("benchmarkrun/mdts", `{.status.points}`)())
	g.Expect(succeeded()).To(Equal("True"))
	g.Expect(field("benchmarkrun/mdts", "{.status.points[0].metrics[*].name}")()).To(ContainSubstring("create thr 2"))
}

func TestADrainedOSTIsSafeToRemove(t *testing.T) {
	g := NewWithT(t)
	onNode(t, fmt.Sprintf("mkdir -p %[1]s/ssd/drained && lfs setstripe -c 1 -i 1 %[1]s/ssd/drained && echo data > %[1]s/ssd/drained/file && sync", mounted))
	g.Expect(onNode(t, "lfs find "+mounted+" --ost 1")).NotTo(BeEmpty())
	drained := target(t, ost1)
	begun := time.Now()
	kubectl(t, "-n", ours, "patch", "storagetarget", drained, "--type=merge", "-p", `{"spec":{"remove":true}}`)
	safe := func(path string) func() (string, error) {
		return field("storagetarget/"+drained, `{.status.conditions[?(@.type=="SafeToRemove")].`+path+`}`)
	}
	g.Eventually(safe("status"), 2*long, 5*time.Second).Should(Equal("True"), func() string { said, _ := safe("message")(); return said })
	took(t, "an OST, from spec.remove to SafeToRemove", begun)
	t.Log(safe("message")())
	show(t, "get storagetargets -o wide")
	g.Expect(onNode(t, "lfs find "+mounted+" --ost 1")).To(BeEmpty())
	apply(t, reef(ost0))
	g.Eventually(field("storagetarget/"+drained, "{.metadata.name}"), long, 5*time.Second).Should(BeEmpty())
	took(t, "and until it is gone", begun)
	g.Expect(serves(t)).NotTo(ContainSubstring("reef-OST0001"))
	ready(t, "reef")
	g.Expect(onNode(t, "cat "+mounted+"/ssd/drained/file")).To(Equal("data\n"))
	clientsAreTold := func() (string, error) { return tryOnNode("lctl --device MGS llog_print reef-client") }
	g.Eventually(clientsAreTold, long, 5*time.Second).Should(And(ContainSubstring("reef-OST0000"), Not(ContainSubstring("reef-OST0001"))))
	took(t, "and until the MGS has forgotten it", begun)
	t.Log(onNode(t, "lfs df -h "+mounted))
}

func TestAfterARestartOfTheMachineAllIsThere(t *testing.T) {
	g := NewWithT(t)
	before, boot := serves(t), onNode(t, "cat /proc/sys/kernel/random/boot_id")
	names := onNode(t, "ls /dev/disk/by-id")
	begun := time.Now()
	onNode(t, "sync; systemd-run --on-active=1 systemctl reboot")
	// The machine may answer with an error while it ends.
	g.Eventually(func() (string, error) { return tryOnNode("cat /proc/sys/kernel/random/boot_id") }, long, 10*time.Second).
		ShouldNot(Equal(boot))
	took(t, "the machine runs commands again", begun)
	g.Eventually(func() (string, error) { return tryOnNode("ls /dev/disk/by-id") }, long, 10*time.Second).Should(Equal(names))
	g.Eventually(func() (string, error) {
		return tryOnNode(`lctl dl | awk '$2 == "UP" && ($3 == "mdt" || $3 == "obdfilter") {print $4}' | sort`)
	}, long, 10*time.Second).Should(Equal(before))
	ready(t, "reef")
	g.Eventually(func() (string, error) { return tryOnNode("cat " + mounted + "/ssd/greeting") }, long, 10*time.Second).Should(Equal(greeting + "\n"))
	took(t, "and all is Ready again", begun)
	g.Eventually(field("filesystemnodes", `{.items[*].status.conditions[*].reason}`), long, 5*time.Second).Should(ContainSubstring("RebootedUnasked"))
	show(t, "get filesystemnodes -o wide")
	t.Log(field("filesystemnodes", `{range .items[*].status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`)())
}
