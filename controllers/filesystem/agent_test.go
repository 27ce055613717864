//go:build envtest

package filesystem_test

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystemnode"
	"parallelfs.dev/operator/controllers/storagetarget"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/agent"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// fakeDisk is a disk of a node: its content, and what was done to it.
type fakeDisk struct {
	// files is the number of files that are left while it is drained.
	files    int32
	node, id string
	// also is another node that reaches it. on is the node that has mounted it last, if that is not its own.
	also, on string
	// target (namespace/name) and uuid describe the filesystem on it; empty if it is blank.
	target, uuid string
	// mounted by this StorageTarget.
	mounted bool
	// formats and wipes count what can't be undone.
	formats, wipes int
	// wipeFails and busy are why it can't be wiped or unmounted, and unreadable is why it can't be taken over.
	wipeFails, busy, unreadable string
	// cluster is the identity in its marker, and top a directory with the other content at the top of its filesystem.
	cluster, top string
	// dead is true for a disk that no longer exists.
	dead bool
	// media, size, transport and numa are those of a disk that is not an SSD of 4 TiB.
	media     v1alpha1.MediaType
	size      int64
	transport string
	numa      *int32
}

// disk gives a node a blank SSD of 4 TiB, and the node an agent.
func (w *world) disk(node, name string) *fakeDisk {
	w.t.Helper()
	d := &fakeDisk{node: node, id: "disk-" + node + "-" + name}
	w.disks = append(w.disks, d)
	w.inventory(node)
	return d
}

// at returns the node that has mounted it last.
func (d *fakeDisk) at() string { return or(d.on, d.node) }

// inventory writes the findings of an agent on a node.
func (w *world) inventory(node string) {
	w.t.Helper()
	inventory := &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}}
	err := server.Client.Create(w.ctx, inventory)
	if apierrors.IsAlreadyExists(err) {
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, inventory)).To(Succeed())
	} else {
		w.Expect(err).NotTo(HaveOccurred())
		w.t.Cleanup(func() { _ = server.Client.Delete(context.Background(), inventory) })
	}
	w.agentReady(node, true)
	inventory.Status.BlockDevices = nil
	for i, d := range w.disks {
		if d.node != node && d.also != node || d.dead {
			continue
		}
		device := v1alpha1.BlockDevice{
			KernelName: fmt.Sprintf("sd%c", 'a'+i), Type: "disk", IDs: []string{d.id}, Serial: "S-" + d.id, SizeBytes: cmp.Or(d.size, 4<<40),
			MediaType: cmp.Or(d.media, v1alpha1.SSD), Transport: d.transport, NUMANode: d.numa, Target: d.target,
		}
		if d.also != "" {
			device.WWN = "0x" + d.id
		}
		if d.target != "" {
			device.Signatures = []v1alpha1.Signature{{Device: device.KernelName, Type: "xfs", UUID: d.uuid}}
			device.Unusable = []string{"it carries an xfs filesystem"}
		}
		inventory.Status.BlockDevices = append(inventory.Status.BlockDevices, device)
	}
	w.Expect(server.Client.Status().Update(w.ctx, inventory)).To(Succeed())
}

// agentSet is the DaemonSet of the agents.
var agentSet = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "agent"}

// agentsUID returns the UID of the DaemonSet of the agents, which all tests share.
func (w *world) agentsUID() types.UID {
	w.t.Helper()
	labels := map[string]string{"app": "agent"}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: agentSet.Namespace, Name: agentSet.Name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "none"}}},
		}},
	}
	if err := server.Client.Create(w.ctx, set); apierrors.IsAlreadyExists(err) {
		w.Expect(server.Client.Get(w.ctx, agentSet, set)).To(Succeed())
	} else {
		w.Expect(err).NotTo(HaveOccurred())
	}
	return set.UID
}

// agentReady makes the pod of an agent Ready, or not.
func (w *world) agentReady(node string, ready bool) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: agentSet.Namespace, Name: "agent-" + node,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, "app.kubernetes.io/component": "agent"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: agentSet.Name, UID: w.agentsUID(), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "agent", Image: "none"}}},
	}
	if err := server.Client.Create(w.ctx, pod); apierrors.IsAlreadyExists(err) {
		w.Expect(server.Client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	} else {
		w.Expect(err).NotTo(HaveOccurred())
		w.t.Cleanup(func() { _ = server.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0)) })
	}
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
}

func (w *world) agentGone(node string) {
	w.t.Helper()
	w.mute[node] = true
	w.Expect(server.Client.Delete(w.ctx, &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
}

func (w *world) hasAgent(node string) bool {
	w.t.Helper()
	err := server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &v1alpha1.NodeInventory{})
	w.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	return err == nil
}

// agents simulates the agents of all nodes that have one. They bring the disk of every StorageTarget to the state in its spec, and write
// the status as the real agent does. It reports whether anything changed.
func (w *world) agents() bool {
	w.t.Helper()
	changed, has := w.tellServers(), map[string]bool{}
	for _, node := range w.nodes {
		has[node] = len(w.disks) > 0 && !w.dead[node] && w.hasAgent(node)
	}
	for _, t := range w.targets() {
		i := slices.IndexFunc(w.disks, func(d *fakeDisk) bool { return d.node == t.Spec.Node && d.id == string(t.Spec.Device.ID) })
		if i < 0 || !has[t.Spec.Node] {
			continue
		}
		acts := w.act
		if w.actsOwn != nil {
			acts = w.actsOwn
		}
		status := acts(&t, w.disks[i])
		if w.report(&t, status) {
			w.inventory(t.Spec.Node)
			changed = true
		}
	}
	return changed
}

// fileSystemNodes returns those of this world, by node.
func (w *world) fileSystemNodes() map[string]v1alpha1.FileSystemNode {
	w.t.Helper()
	var list v1alpha1.FileSystemNodeList
	w.Expect(server.Client.List(w.ctx, &list, w.mine()...)).To(Succeed())
	out := map[string]v1alpha1.FileSystemNode{}
	for _, n := range list.Items {
		out[n.Spec.Node] = n
	}
	return out
}

// tellServers simulates the agents that write the node files, and confirm that. It reports whether anything changed.
func (w *world) tellServers() bool {
	w.t.Helper()
	changed := false
	for node, n := range w.fileSystemNodes() {
		if w.mute[node] || n.Status.Agent != nil && n.Status.Agent.ObservedGeneration == n.Generation {
			continue
		}
		w.keepRecords(&n)
		w.files[node] = agent.NodeFile(&n)
		n.Status.Agent = &v1alpha1.NodeAgentStatus{ObservedGeneration: n.Generation}
		w.Expect(server.Client.Status().Update(w.ctx, &n)).To(Succeed())
		changed = true
	}
	return changed
}

// keepRecords simulates the agent that writes the assignments to the disks of a node.
func (w *world) keepRecords(n *v1alpha1.FileSystemNode) {
	w.t.Helper()
	for i := range n.Spec.Members {
		m := &n.Spec.Members[i]
		for j := range m.Targets {
			stored, known := record.Of(n, m, &m.Targets[j])
			for _, d := range w.disks {
				if known && m.Targets[j].UUID != "" && d.uuid == m.Targets[j].UUID {
					w.Expect(record.Write(d.top, stored)).To(Succeed())
				}
			}
		}
	}
}

// configOf returns what the server in a pod reads from its node file, if it may start.
func (w *world) configOf(pod *corev1.Pod, daemon string) (spec.Member, bool) {
	w.t.Helper()
	file := w.files[pod.Spec.NodeName]
	i := slices.IndexFunc(file.Members, func(m spec.Member) bool { return m.Name == spec.MemberName(daemon) })
	if i < 0 || file.FileSystem.UID != string(w.get().UID) || file.Members[i].Waits != "" {
		return spec.Member{}, false
	}
	return file.Members[i], true
}

// planHash is the hash of the plan of every disk.
var planHash = "sha256:" + strings.Repeat("0a", 32)

// act brings a disk to the state in its StorageTarget, and returns the agent's part of the status.
func (w *world) act(t *v1alpha1.StorageTarget, d *fakeDisk) v1alpha1.StorageTargetStatus {
	status := v1alpha1.StorageTargetStatus{
		ObservedGeneration: t.Generation, KernelName: "sdx", Provisioned: t.Status.Provisioned, Record: t.Status.Record,
		FormerOwner: t.Status.FormerOwner,
	}
	say := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message})
	}
	me := t.Namespace + "/" + t.Name
	if !t.DeletionTimestamp.IsZero() {
		switch {
		case d.mounted && (d.busy != "" || w.inUse(t)):
			say(v1alpha1.ConditionReleased, metav1.ConditionFalse, v1alpha1.ReasonUnmountFailed, "in use by "+or(d.busy, "mfschunkserver"))
		default:
			d.mounted = false
			say(v1alpha1.ConditionReleased, metav1.ConditionTrue, v1alpha1.ReasonUnmounted, "unmounted")
			switch {
			case t.Spec.DestroyFor == "":
			case d.wipeFails != "":
				say(v1alpha1.ConditionDestroyed, metav1.ConditionFalse, v1alpha1.ReasonWipeFailed, d.wipeFails)
			case meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionDestroyed):
				say(v1alpha1.ConditionDestroyed, metav1.ConditionTrue, v1alpha1.ReasonWiped, "blank")
			case d.target == me:
				d.target, d.uuid, d.cluster, d.top = "", "", "", ""
				d.wipes++
				say(v1alpha1.ConditionDestroyed, metav1.ConditionTrue, v1alpha1.ReasonWiped, "blank")
			}
		}
		return status
	}
	refuse := func(reason, message string) {
		say(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
		say(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	}
	switch {
	case d.dead:
		status.KernelName = ""
		refuse(v1alpha1.ReasonTargetMissing, "no disk on this node is "+d.id)
		return status
	case status.Provisioned == nil && t.Spec.Conflict != "":
		refuse(v1alpha1.ReasonDeviceConflict, t.Spec.Conflict)
		return status
	case status.Provisioned == nil && d.target != "" && d.target != me && d.top != "":
		return w.actOnAnothers(t, d, status)
	case status.Provisioned == nil && d.target != "" && d.target != me:
		status.Plan = &v1alpha1.TargetPlan{Hash: planHash, Refusals: []string{"it carries " + d.target}}
		refuse(v1alpha1.ReasonDeviceRefused, "it carries "+d.target)
		return status
	case status.Provisioned == nil && d.target == "" && t.Spec.FormatPolicy == v1alpha1.FormatApproved && t.Spec.ApprovedPlan != planHash:
		status.Plan = &v1alpha1.TargetPlan{Hash: planHash, Steps: []string{"mkfs.xfs"}}
		refuse(v1alpha1.ReasonAwaitingApproval, "approve "+planHash)
		return status
	case status.Provisioned == nil && d.target == me && d.cluster != t.Spec.Cluster && d.cluster != t.Spec.TakeOver:
		refuse(v1alpha1.ReasonOtherCluster, "it belongs to the cluster "+d.cluster)
		return status
	case status.Provisioned == nil && d.unreadable != "":
		refuse(v1alpha1.ReasonDeviceRefused, d.unreadable)
		return status
	case status.Provisioned == nil:
		d.cluster = t.Spec.Cluster
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		status.Provisioned = &v1alpha1.TargetProvisioned{Started: &now, Finished: &now}
		if d.target == "" {
			d.formats++
			d.target, d.uuid, d.top = me, fmt.Sprintf("uuid-%s-%d", d.id, d.formats), w.t.TempDir()
			status.Provisioned.PlanHash = planHash
		}
		status.Provisioned.UUID = d.uuid
	case d.target != me || d.uuid != status.Provisioned.UUID:
		refuse(v1alpha1.ReasonTargetMissing, "another disk is in its place")
		return status
	}
	d.mounted = true
	if status.Provisioned.PlanHash == "" && status.Record == nil {
		status.Record = record.Read(d.top, t)
	}
	status.MountPath, status.CapacityBytes = spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name), 4<<40
	if len(t.Spec.FilesIn) > 0 {
		since := metav1.NewTime(time.Now().Truncate(time.Second))
		if was := t.Status.Files; was != nil && was.NoneSince != nil {
			since = *was.NoneSince
		}
		status.Files = &v1alpha1.TargetFiles{ObservedGeneration: t.Generation, NoneSince: &since, Empty: true}
		if d.files > 0 {
			status.Files = &v1alpha1.TargetFiles{ObservedGeneration: t.Generation, Left: d.files}
		}
	}
	say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonProven, "mounted")
	return status
}

// actOnAnothers decides as the real agent does on a disk that carries the target of another FileSystem.
func (w *world) actOnAnothers(t *v1alpha1.StorageTarget, d *fakeDisk, status v1alpha1.StorageTargetStatus) v1alpha1.StorageTargetStatus {
	w.t.Helper()
	look := plan.Look{Device: plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
		KernelName: status.KernelName, Type: "disk", IDs: []string{d.id}, Serial: "S-" + d.id, SizeBytes: 4 << 40,
		Signatures: []v1alpha1.Signature{{Device: status.KernelName, Type: "xfs", UUID: d.uuid}},
	}}}
	if r := record.There(d.top); r != nil {
		look.Device.Record = r
		look.Device.Marker = &plan.Marker{
			Namespace: r.FileSystem.Namespace, FileSystem: r.FileSystem.Name, FileSystemUID: r.FileSystem.UID, Cluster: d.cluster, Target: r.Target,
			UUID: d.uuid, Role: r.Member.Role, StoragePool: r.Member.StoragePool,
		}
	}
	decided := plan.Decide(t, look, time.Now(), func() string { return "a-new-uuid" })
	status.Plan, status.FormerOwner = decided.Plan, decided.FormerOwner
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
		value := metav1.ConditionFalse
		if kind == v1alpha1.ConditionStalled {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: decided.Ready.Reason, Message: v1alpha1.Cut(decided.Ready.Message, 1024),
		})
	}
	if decided.Action == plan.Adopt {
		status.Provisioned = decided.Provisioned
		d.target, d.cluster = t.Namespace+"/"+t.Name, t.Spec.Cluster
	}
	return status
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// report is an agent's last write of a StorageTarget, and the version that it made.
type report struct {
	content map[string]any
	version string
}

// report writes the agent's part of a status by server-side apply, and returns whether that changed anything.
func (w *world) report(t *v1alpha1.StorageTarget, status v1alpha1.StorageTargetStatus) bool {
	w.t.Helper()
	for i := range status.Conditions {
		if was := meta.FindStatusCondition(t.Status.Conditions, status.Conditions[i].Type); was != nil && was.Status == status.Conditions[i].Status {
			status.Conditions[i].LastTransitionTime = was.LastTransitionTime
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	w.Expect(err).NotTo(HaveOccurred())
	if last := w.reported[t.UID]; last.version == t.ResourceVersion && equality.Semantic.DeepEqual(last.content, content) {
		return false // no one has written since
	}
	written := report{content: runtime.DeepCopyJSON(content)}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": t.Name, "namespace": t.Namespace}, "status": content,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageTarget"))
	err = server.Client.Status().Apply(w.ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership, client.FieldOwner("parallelfs-agent"))
	if apierrors.IsNotFound(err) {
		return true
	}
	w.Expect(err).NotTo(HaveOccurred())
	written.version = intent.GetResourceVersion()
	w.reported[t.UID] = written
	return written.version != t.ResourceVersion
}

// inUse reports whether a running daemon uses the target.
func (w *world) inUse(t *v1alpha1.StorageTarget) bool {
	for _, pod := range w.pods() {
		if _, ok := w.took[string(pod.UID)][t.Name]; ok {
			return true
		}
		if w.hive != nil && slices.ContainsFunc(w.hive.has[string(pod.UID)], func(h held) bool { return h.name == t.Name }) {
			return true
		}
	}
	return false
}

// targets returns the StorageTargets of this world.
func (w *world) targets() []v1alpha1.StorageTarget {
	w.t.Helper()
	var list v1alpha1.StorageTargetList
	w.Expect(server.Client.List(w.ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// target returns the StorageTarget of a disk.
func (w *world) target(d *fakeDisk) *v1alpha1.StorageTarget {
	w.t.Helper()
	for _, t := range w.targets() {
		if string(t.Spec.Device.ID) == d.id && t.Spec.Node == d.node {
			return &t
		}
	}
	w.t.Fatalf("no StorageTarget has %s", d.id)
	return nil
}

// service returns what the filesystem reports about the target on a disk.
func (w *world) service(d *fakeDisk) *v1alpha1.TargetService {
	w.t.Helper()
	fs := w.get()
	target, ok := w.board.Target(client.ObjectKeyFromObject(fs), fs.UID, w.target(d).Name)
	w.Expect(ok).To(BeTrue())
	return target.Service
}

// servers returns those that the filesystem lists as online, with their addresses.
func (w *world) servers() []string {
	w.t.Helper()
	var nodes v1alpha1.FileSystemNodeList
	w.Expect(server.Client.List(w.ctx, &nodes, client.InNamespace(w.namespace))).To(Succeed())
	fs := w.get()
	var out []string
	for _, n := range nodes.Items {
		node, _ := w.board.Node(client.ObjectKeyFromObject(fs), fs.UID, n.Name)
		for _, m := range node.Members {
			if m.State == v1alpha1.StateOnline {
				out = append(out, m.Name+" on "+m.Address)
			}
		}
	}
	return out
}

// reconcileTargets makes an operator reconcile every StorageTarget.
func (w *world) reconcileTargets(c client.Client) error {
	r := &storagetarget.Reconciler{Client: c, Reader: c, Recorder: w.events, Views: w.board}
	for _, t := range w.targets() {
		if _, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&t)}); err != nil {
			return err
		}
	}
	return nil
}

// reconcileNodes makes an operator reconcile every FileSystemNode that was deleted.
func (w *world) reconcileNodes(c client.Client) error {
	r := &filesystemnode.Reconciler{Client: c, Reader: c, Recorder: w.events, Views: w.board, Clock: clock.RealClock{}}
	for _, n := range w.fileSystemNodes() {
		if n.DeletionTimestamp.IsZero() {
			continue
		}
		if _, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&n)}); err != nil {
			return err
		}
	}
	return nil
}

// starts simulates `node run` in a pod. A daemon that keeps its data on disks waits for the first proven disk, and then uses the proven
// disks until its next start. It reports whether the daemon runs.
func (w *world) starts(pod *corev1.Pod) bool {
	w.t.Helper()
	if w.hive != nil {
		return w.startsBee(pod)
	}
	if w.startsOwn != nil {
		return w.startsOwn(pod)
	}
	fs := w.get()
	daemon, pool := component(pod), pod.Labels[v1alpha1.LabelStoragePool]
	instance, directories := daemon, fs.Spec.MetadataServers.Targets.Directories
	switch daemon {
	case "master":
	case "metalogger":
		directories = []v1alpha1.DirectoryPath{"/var/lib"} // its copy is in a directory of the operator's own
	case "chunkserver":
		instance += "/" + pool
		for _, p := range fs.Spec.StoragePools {
			if p.Name == pool {
				directories = p.Targets.Directories
			}
		}
	default:
		return true
	}
	if w.took[string(pod.UID)] != nil {
		return true
	}
	member, configured := w.configOf(pod, instance)
	if !configured {
		return false
	}
	took := map[string]bool{}
	for _, t := range member.Targets {
		for _, d := range w.disks {
			if d.mounted && d.target == w.namespace+"/"+t.Name && d.uuid == t.UUID {
				took[t.Name] = t.Remove
			}
		}
	}
	if len(took) == 0 && len(directories) == 0 {
		return false
	}
	if w.took == nil {
		w.took = map[string]map[string]bool{}
	}
	w.took[string(pod.UID)] = took
	return true
}

// runs finds the pod of a running daemon on a node, and the disks that it uses.
func (w *world) runs(daemon, pool, node string) (took map[string]bool, ok bool) {
	for _, pod := range w.pods() {
		if !w.dead[node] && component(&pod) == daemon && pod.Labels[v1alpha1.LabelStoragePool] == pool && pod.Spec.NodeName == node {
			return w.took[string(pod.UID)], pod.DeletionTimestamp.IsZero() && w.starts(&pod) && w.finds(&pod)
		}
	}
	return nil, false
}

// finds reports whether a pod was started while the master had its present address.
func (w *world) finds(pod *corev1.Pod) bool {
	master := w.masters[pod.UID]
	return master == "" || master == w.get().Status.Metadata.Node
}

// diskTargets returns what a chunkserver reports about its disks.
func (w *world) diskTargets(node string, port int32, took map[string]bool) []backend.Target {
	var out []backend.Target
	for name, remove := range took {
		dead := slices.ContainsFunc(w.disks, func(d *fakeDisk) bool { return d.dead && d.target == w.namespace+"/"+name })
		out = append(out, backend.Target{
			IP: w.ip(node), Port: port, Path: path.Join(spec.TargetPath(w.namespace, "scratch", name), "chunkserver", "data") + "/",
			Online: !dead, CapacityBytes: 1 << 40, Removing: remove, Removable: remove && w.moved,
		})
	}
	slices.SortFunc(out, func(a, b backend.Target) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// onDisks makes a FileSystem keep its metadata and data on the first disk of each node, and the metadata on the second one of the first
// node.
func (w *world) onDisks(metadata *fakeDisk, data ...*fakeDisk) func(fs *v1alpha1.FileSystem) {
	return func(fs *v1alpha1.FileSystem) {
		fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Devices: references(metadata)}
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Devices: references(data...)}
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
	}
}

func references(disks ...*fakeDisk) []v1alpha1.DeviceReference {
	var out []v1alpha1.DeviceReference
	for _, d := range disks {
		out = append(out, v1alpha1.DeviceReference{Node: d.node, ID: v1alpha1.DeviceID(d.id)})
	}
	return out
}
