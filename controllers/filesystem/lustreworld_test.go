//go:build envtest

package filesystem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// kernels simulates the kernels of the nodes of a world with a Lustre: the content of its disks, and the mounts (fakeDisk.mounted). Each
// node answers for itself.
type kernels struct {
	*world
	// given holds what mkfs.lustre has written to each disk.
	given map[*fakeDisk]*v1alpha1.LustreTarget
	// commands lists those that Jobs have run, in order.
	commands []string
	// silent holds the nodes whose probes do not answer.
	silent map[string]bool
	// files is how many files have an object on an OST, by its index.
	files map[int32]int
	// stopped holds the MDTs that create no objects on an OST, and closed the OSTs that all clients must not use according to the MGS, by
	// their indices.
	stopped map[[2]int32]bool
	closed  map[int32]bool
}

// lustreWorld creates nodes with Lustre's kernel part, two disks for metadata on each of the first two, and two for data on each.
func (w *world) lustreWorld() *kernels {
	w.t.Helper()
	k := &kernels{world: w, given: map[*fakeDisk]*v1alpha1.LustreTarget{}, silent: map[string]bool{}, files: map[int32]int{},
		stopped: map[[2]int32]bool{}, closed: map[int32]bool{}}
	for i, node := range w.nodes {
		if i < 2 {
			w.label(node, "mds-of")
			w.disk(node, "mdt0")
			w.disk(node, "mdt1")
		}
		w.disk(node, "ost0")
		w.disk(node, "ost1")
		w.wire(node)
	}
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Backends, operator.States = backend.SetOf(lustre.New()), k
	}
	w.actsOwn, w.startsOwn, w.started = k.act, k.starts, k.serve
	w.worksOwn = k.work
	return k
}

// wire gives the inventory of a node its network interface.
func (w *world) wire(node string) {
	w.t.Helper()
	inventory := &v1alpha1.NodeInventory{}
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, inventory)).To(Succeed())
	inventory.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eno1", Addresses: []string{w.ip(node) + "/24"}}}
	w.Expect(server.Client.Status().Update(w.ctx, inventory)).To(Succeed())
}

// lustre creates a Lustre with two MDTs on each of two nodes, and a pool of two OSTs on each of three.
func (k *kernels) lustre(change func(fs *v1alpha1.FileSystem)) {
	k.t.Helper()
	targets := func(glob v1alpha1.Glob) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{
			Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{glob}, CountPerNode: 2}, Format: &v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs},
		}
	}
	k.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Type, fs.Spec.Version, fs.Spec.MooseFS = v1alpha1.Lustre, "2.17.57", nil
		fs.Spec.Lustre = &v1alpha1.LustreSpec{FSName: "pfs", BasePort: 9700}
		fs.Spec.MetadataServers = v1alpha1.MetadataSpec{NodeSelector: v1alpha1.NodeSelector{"mds-of": k.namespace}, InstancesPerNode: 2, Targets: targets("*-mdt*")}
		fs.Spec.StoragePools[0].Copies, fs.Spec.StoragePools[0].Targets = 1, targets("*-ost*")
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
		if change != nil {
			change(fs)
		}
	})
}

// diskOf returns the disk that carries a target of this world.
func (k *kernels) diskOf(name string) *fakeDisk {
	i := slices.IndexFunc(k.disks, func(d *fakeDisk) bool { return d.target == k.namespace+"/"+name })
	if i < 0 {
		return nil
	}
	return k.disks[i]
}

// act simulates the agent for a disk that only its own server mounts.
func (k *kernels) act(t *v1alpha1.StorageTarget, d *fakeDisk) v1alpha1.StorageTargetStatus {
	me, mounted := t.Namespace+"/"+t.Name, d.mounted
	refused := func(why string, plan *v1alpha1.TargetPlan, record *v1alpha1.TargetRecord) v1alpha1.StorageTargetStatus {
		status := v1alpha1.StorageTargetStatus{ObservedGeneration: t.Generation, Plan: plan, Record: record}
		for _, c := range []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}, {Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue},
		} {
			c.Reason, c.Message = v1alpha1.ReasonDeviceRefused, why
			meta.SetStatusCondition(&status.Conditions, c)
		}
		return status
	}
	if plan.IsAway(t) {
		status := v1alpha1.StorageTargetStatus{ObservedGeneration: t.Generation, Provisioned: t.Status.Provisioned, Record: t.Status.Record}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven, Message: "the other node holds it",
		})
		return status
	}
	if t.DeletionTimestamp.IsZero() && t.Status.Provisioned == nil && !d.dead {
		stored := &v1alpha1.TargetRecord{Lustre: k.given[d]}
		switch {
		case d.target == "" && t.Spec.Lustre == nil:
			return refused("the operator has not said yet what the target is to Lustre (spec.lustre)", &v1alpha1.TargetPlan{Hash: planHash}, nil)
		case d.target == me && !equality.Semantic.DeepEqual(t.Spec.Lustre, k.given[d]):
			return refused("it is not what the target was given", nil, stored)
		case d.target == me && t.Status.Record == nil:
			return refused("it is being read", nil, stored)
		}
	}
	formats := d.formats
	status := k.world.act(t, d)
	if d.formats > formats {
		k.given[d] = t.Spec.Lustre.DeepCopy()
	}
	if t.DeletionTimestamp.IsZero() {
		d.mounted = mounted // its server mounts it
	}
	return status
}

// serverIn names the member in a pod among those of its node, and the port of its probe.
func (k *kernels) serverIn(pod *corev1.Pod) (daemon string, port int32) {
	daemon = component(pod)
	if slot := pod.Labels[v1alpha1.LabelSlot]; slot != "" {
		daemon += "/" + slot
	} else if pool := pod.Labels[v1alpha1.LabelStoragePool]; pool != "" {
		daemon += "/" + pool
	}
	return daemon, pod.Spec.Containers[1].Ports[0].ContainerPort
}

// serve simulates `node serve` in all pods: the disks in their configuration are mounted, and no others.
func (k *kernels) serve() {
	wanted, targets := map[*fakeDisk]string{}, map[string]*v1alpha1.StorageTarget{}
	for _, t := range k.targets() {
		targets[t.Name] = &t
	}
	for _, pod := range k.pods() {
		if len(pod.Spec.Containers) < 2 || k.dead[pod.Spec.NodeName] { // a client, or a Job
			continue
		}
		daemon, _ := k.serverIn(&pod)
		member, _ := k.configOf(&pod, daemon)
		for _, t := range member.Targets {
			// The agent leaves out targets that another node holds.
			if is := targets[t.Name]; is != nil && plan.IsOfPair(is) && !plan.MayServe(is, pod.Spec.NodeName) {
				continue
			}
			if d := k.diskOf(t.Name); d != nil && !d.dead && t.UUID != "" && d.uuid == t.UUID {
				wanted[d] = pod.Spec.NodeName
			}
		}
	}
	for _, d := range k.disks {
		node, isOff := wanted[d], k.dead[d.at()]
		switch {
		case k.given[d] == nil, isOff && node == "":
		case d.mounted && node != "" && node != d.at() && !isOff:
			k.t.Errorf("nodes %s and %s have both mounted %s, which destroys it", d.at(), node, d.id)
		case node == "":
			d.mounted = false
		default:
			d.mounted, d.on = true, node
		}
	}
}

// starts reports whether a server has mounted everything in its configuration.
func (k *kernels) starts(pod *corev1.Pod) bool {
	if component(pod) == "client" {
		return true
	}
	daemon, _ := k.serverIn(pod)
	member, configured := k.configOf(pod, daemon)
	return configured && len(member.Targets) > 0 && !slices.ContainsFunc(member.Targets, func(t spec.Target) bool {
		d := k.diskOf(t.Name)
		return d == nil || t.UUID == "" || d.uuid != t.UUID
	})
}

// State returns the answer of a node's probe.
func (k *kernels) State(_ context.Context, q filesystem.Question) (*backend.State, error) {
	where, err := url.Parse(q.URL)
	k.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(k.nodes, func(node string) bool { return k.ip(node) == where.Hostname() })
	k.Expect(i).To(BeNumerically(">=", 0), q.URL)
	node := k.nodes[i]
	if k.silent[node] || k.dead[node] || !slices.ContainsFunc(k.pods(), func(p corev1.Pod) bool {
		if p.Spec.NodeName != node || len(p.Spec.Containers) < 2 {
			return false
		}
		_, port := k.serverIn(&p)
		return fmt.Sprint(port) == where.Port()
	}) {
		return nil, errors.New("nobody listens")
	}
	state := &backend.State{Version: k.get().Spec.Version}
	for _, d := range k.disks {
		is := k.given[d]
		if d.at() != node || !d.mounted || is == nil {
			continue
		}
		t := backend.Target{Online: !d.dead, Contacted: true, CapacityBytes: 4 << 40}
		if is.Kind == v1alpha1.LustreMGT || is.WithMGT {
			state.Targets = append(state.Targets, backend.Target{Role: v1alpha1.RoleManagement, Online: true, Contacted: true})
		}
		switch is.Kind {
		case v1alpha1.LustreMDT:
			t.Role, t.ID = v1alpha1.RoleMetadata, *is.Index+1
			state.Links = append(state.Links, k.links(*is.Index)...)
		case v1alpha1.LustreOST:
			t.Role, t.ID = v1alpha1.RoleStorage, *is.Index+1
		case v1alpha1.LustreMGT:
			continue
		}
		state.Targets = append(state.Targets, t)
	}
	return state, nil
}

// links returns the links of an MDT that are not in their default state.
func (k *kernels) links(mdt int32) []backend.Link {
	var out []backend.Link
	for ost := range int32(16) {
		if k.stopped[[2]int32{mdt, ost}] || k.closed[ost] {
			out = append(out, backend.Link{From: mdt + 1, To: ost + 1, Closed: k.closed[ost]})
		}
	}
	return out
}

// work simulates the Jobs: each runs its commands once MDT0000 is mounted. Its end is so long ago that every part has followed. It
// continues while files have to be moved.
func (k *kernels) work() bool {
	k.t.Helper()
	changed := k.move()
	for _, job := range k.jobs() {
		root := k.diskOf(k.get().Status.Metadata.Target)
		if len(job.Status.Conditions) > 0 || root == nil || !root.mounted {
			continue
		}
		var config spec.Configure
		k.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations["parallelfs.dev/told"]), &config)).To(Succeed(), job.Name)
		on := job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		if slices.ContainsFunc(config.Commands, func(c spec.Command) bool { return !k.command(on, c.Argv) }) {
			continue
		}
		k.ended(&job, batchv1.JobComplete, time.Now().Add(-time.Hour))
		changed = true
	}
	return changed
}

var (
	stopsObjects = regexp.MustCompile(`^lctl set_param osp\.pfs-OST([0-9a-f]{4})-osc-MDT\*\.max_create_count=0$`)
	deactivates  = regexp.MustCompile(`^lctl conf_param pfs-OST([0-9a-f]{4})\.osc\.active=0$`)
	looksForAny  = regexp.MustCompile(`^sh -c found=.* ([0-9]+)$`)
)

// command runs on a node, and returns whether it has ended.
func (k *kernels) command(node string, argv []string) bool {
	k.t.Helper()
	line := strings.Join(argv, " ")
	k.commands = append(k.commands, line)
	index := func(of *regexp.Regexp, base int) (int32, bool) {
		found := of.FindStringSubmatch(line)
		if found == nil {
			return 0, false
		}
		n, err := strconv.ParseInt(found[1], base, 32)
		k.Expect(err).NotTo(HaveOccurred())
		return int32(n), true // #nosec G115 -- of 32 bits
	}
	if ost, is := index(stopsObjects, 16); is {
		for d, what := range k.given {
			if d.node == node && d.mounted && what.Kind == v1alpha1.LustreMDT {
				k.stopped[[2]int32{*what.Index, ost}] = true
			}
		}
	}
	if ost, is := index(deactivates, 16); is {
		k.closed[ost] = true
	}
	ost, is := index(looksForAny, 10)
	return !is || k.files[ost] == 0
}

// names returns the Lustre names of the disks, by the disk, without what differs between two runs.
func (k *kernels) names() map[string]string {
	out := map[string]string{}
	for d, is := range k.given {
		name := string(is.Kind)
		if is.Index != nil {
			name = fmt.Sprintf("%s-%s%04x", is.FSName, is.Kind, *is.Index)
		}
		if is.WithMGT {
			name += " with MGT"
		}
		out[strings.TrimPrefix(d.id, "disk-"+k.namespace+"-")] = name
	}
	return out
}
