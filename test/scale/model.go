//go:build scale

package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	nodeagent "parallelfs.dev/operator/internal/node/agent"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Only this file depends on the content of the operator's objects: the spec, the agent's status of a disk and of a node, the configuration
// of a daemon, the answer of a filesystem, and the signs of a healthy filesystem. It changes with the model.

const (
	namespace, fileSystemName, poolName = "scale", "scale", "ssd"
	version                             = "4.57.5"
	mounts                              = "/mnt"
	metadataNode                        = "meta-0000"

	labelMetadata, labelStorage, labelClient = "scale/metadata", "scale/storage", "scale/client"
	// labelRack is the label with the failure domain of a storage node, and racks their number.
	labelRack, racks = "scale/rack", 4
	labelAgent       = v1alpha1.LabelAgent
	// targetResource is counted for each target; all other writes are counted for each node.
	targetResource = "storagetargets"
	// probeOffset is the port of the probe after the first port of the filesystem.
	probeOffset = 8

	componentMaster, componentChunkserver, componentClient, componentClasses = "master", "chunkserver", "client", "storageclasses"

	// formatTakes is how long mkfs.xfs takes.
	formatTakes = time.Second
	// patience is how long a daemon waits for its other disks when it has one (internal/node/daemon).
	patience = 30 * time.Second
)

func managerArguments() []string {
	return []string{
		"--daemon-image=moosefs-" + version + "=registry.example.com/parallelfs/moosefs:" + version,
		"--benchmark-image=iozone=registry.example.com/parallelfs/iozone:3.489",
	}
}

// mountPath is where a filesystem is mounted.
func mountPath(fileSystem string) string { return path.Join(mounts, fileSystem) }

// fileSystem is the large FileSystem that a person applies.
func fileSystem(basePort int32) *v1alpha1.FileSystem {
	disks := func(each int32) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{MediaType: v1alpha1.HDD, CountPerNode: each}}
	}
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fileSystemName},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: version, MooseFS: &v1alpha1.MooseFSSpec{BasePort: basePort},
			MetadataServers: v1alpha1.MetadataSpec{NodeSelector: v1alpha1.NodeSelector{labelMetadata: ""}, Targets: disks(1)},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: poolName, NodeSelector: v1alpha1.NodeSelector{labelStorage: ""}, Copies: copies, Targets: disks(disksPerNode),
			}},
			Clients: &v1alpha1.ClientsSpec{
				NodeSelector: v1alpha1.NodeSelector{labelClient: ""}, MountPath: v1alpha1.DirectoryPath(mountPath(fileSystemName)),
			},
			Provisioning:   v1alpha1.ProvisioningSpec{FormatPolicy: v1alpha1.FormatIfBlank},
			FailureDomains: v1alpha1.FailureDomainsSpec{Label: labelRack},
			Updates:        v1alpha1.UpdatesSpec{MaxUnavailable: restartTogether},
		},
	}
}

// copies is the number of copies of each chunk: with one server less than that away, every chunk still has a copy. restartTogether is how
// many servers of one failure domain may restart together, as far as the copies permit it.
const copies, restartTogether = 3, 64

// askForRestarts requests another configuration of all storage servers, which each of them reads at a restart.
func askForRestarts(fs *v1alpha1.FileSystem) {
	fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
}

func pauseRestarts(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Paused = true }

// isStorage is true for a storage server of the large filesystem.
func isStorage(at place) bool {
	return at.fileSystem == fileSystemName && at.component == componentChunkserver
}

// smallFileSystems is the number of filesystems beside the large one when benchmarks run: each is measured by one run at a time.
const smallFileSystems = 9

func smallName(number int) string { return fmt.Sprintf("small-%d", number+1) }

// labelOf is the label of the node of a small filesystem, labelClientOf that of its client.
func labelOf(fileSystem string) string       { return "scale/" + fileSystem }
func labelClientOf(fileSystem string) string { return "scale/" + fileSystem + "-client" }

// smallDirectory is where a small filesystem keeps its data.
const smallDirectory = "/data/storage"

// smallFileSystem is one with one server, in directories of its node, and one client.
func smallFileSystem(name string, basePort int32) *v1alpha1.FileSystem {
	on := v1alpha1.NodeSelector{labelOf(name): ""}
	directory := func(name v1alpha1.DirectoryPath) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{name}}
	}
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: version, MooseFS: &v1alpha1.MooseFSSpec{BasePort: basePort},
			MetadataServers: v1alpha1.MetadataSpec{NodeSelector: on, Targets: directory("/data/metadata")},
			StoragePools:    []v1alpha1.StoragePoolSpec{{Name: poolName, NodeSelector: on, Copies: 1, Targets: directory(smallDirectory)}},
			Clients: &v1alpha1.ClientsSpec{
				NodeSelector: v1alpha1.NodeSelector{labelClientOf(name): ""}, MountPath: v1alpha1.DirectoryPath(mountPath(name)),
			},
		},
	}
}

// masterNode is the node of a filesystem's master.
func masterNode(fileSystem string) string {
	if fileSystem == fileSystemName {
		return metadataNode
	}
	return fileSystem
}

// unwell returns what is wrong in a FileSystem's status; empty when it is as the spec requests, complete, and idle.
func unwell(fs *v1alpha1.FileSystem) string {
	if fs.Status.ObservedGeneration != fs.Generation {
		return "the spec was not looked at yet"
	}
	ready := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		if ready == nil {
			return "it has no condition Ready"
		}
		return ready.Reason + ": " + ready.Message
	}
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionDegraded, v1alpha1.ConditionReconciling} {
		if c := meta.FindStatusCondition(fs.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return kind + ": " + c.Message
		}
	}
	return ""
}

// shows is true when the status reports that the disk of a target is lost: on its own object, and by its name on the FileSystem. That the
// FileSystem is not healthy proves nothing about the disk, because other changes are in progress.
func shows(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget) bool {
	return meta.IsStatusConditionFalse(target.Status.Conditions, v1alpha1.ConditionOnline) &&
		meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionDegraded) &&
		slices.ContainsFunc(fs.Status.Missing, func(m v1alpha1.MissingMember) bool {
			return m.Kind == v1alpha1.TargetMember && m.Name == target.Name && m.Node == target.Spec.Node
		})
}

// pass plays internal/node/provision for one target: it records the same statuses as the real one, in the same order, and simulates the
// rest.
func (a *agent) pass(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
	d := a.world.disks[a.machine.name][string(t.Spec.Device.ID)]
	if d == nil {
		return fmt.Errorf("node %s has no disk %s", a.machine.name, t.Spec.Device.ID)
	}
	made := t.Status.Provisioned
	if made == nil || made.Finished == nil {
		var err error
		if made, err = a.provision(ctx, t, d, record); err != nil {
			return err
		}
	}
	a.world.mutex.Lock()
	dead := d.dead
	a.world.mutex.Unlock()
	status := v1alpha1.StorageTargetStatus{
		KernelName: d.kernelName, Provisioned: made,
		CapacityBytes: t.Status.CapacityBytes, Capacity: t.Status.Capacity,
	}
	if dead {
		status.KernelName = ""
		say(t, &status, metav1.ConditionFalse, v1alpha1.ConditionStalled, v1alpha1.ReasonTargetMissing, fmt.Sprintf(
			"no disk on this node is %s. The target was made with uuid %s and is never formatted again: bring its disk back, or remove the target "+
				"(spec.remove) and name another disk", d.id, d.uuid))
		return record(ctx, t, status)
	}
	status.MountPath = spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name)
	status.CapacityBytes, status.Capacity = diskBytes, v1alpha1.Bytes(diskBytes)
	message := fmt.Sprintf("%s is mounted; uuid %s and marker agree", d.kernelName, d.uuid)
	say(t, &status, metav1.ConditionTrue, "", v1alpha1.ReasonProven, message)
	return record(ctx, t, status)
}

// provision makes a disk a target, and returns the status to record. A pass with a conflicting write continues in the next one.
func (a *agent) provision(
	ctx context.Context, t *v1alpha1.StorageTarget, d *disk, record provision.Record,
) (*v1alpha1.TargetProvisioned, error) {
	made, now := t.Status.Provisioned, metav1.Now().Rfc3339Copy()
	if made == nil {
		made = &v1alpha1.TargetProvisioned{UUID: string(uuid.NewUUID()), Label: plan.Label(t), Started: &now}
		made.PlanHash = "sha256:" + strings.Repeat(strings.ReplaceAll(made.UUID, "-", ""), 2)
		status := v1alpha1.StorageTargetStatus{KernelName: d.kernelName, Provisioned: made, Plan: &v1alpha1.TargetPlan{
			Hash: made.PlanHash, UUID: made.UUID, Steps: []string{
				"wipefs --all /dev/" + d.kernelName, "mkfs.xfs -L " + made.Label + " -m uuid=" + made.UUID + " /dev/" + d.kernelName, "mount", "mark",
			},
		}}
		say(t, &status, metav1.ConditionFalse, v1alpha1.ConditionReconciling, v1alpha1.ReasonProvisioning,
			"the plan "+made.PlanHash+" is being carried out")
		if err := record(ctx, t, status); err != nil {
			return nil, err
		}
	}
	if d.uuid == "" {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(formatTakes):
		}
		a.world.mutex.Lock()
		d.target, d.label, d.uuid = t.Namespace+"/"+t.Name, made.Label, made.UUID
		d.mountPath = spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name)
		d.data = d.mountPath + "/chunkserver/data/"
		a.world.mutex.Unlock()
	}
	made = made.DeepCopy()
	made.Finished = new(metav1.Now().Rfc3339Copy())
	return made, nil
}

// say adds the conditions of an agent to a status.
func say(t *v1alpha1.StorageTarget, status *v1alpha1.StorageTargetStatus, ready metav1.ConditionStatus, progress, reason, message string) {
	status.ObservedGeneration = t.Generation
	add := func(kind string, value metav1.ConditionStatus) {
		c := metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: t.Generation,
			LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}
		if was := meta.FindStatusCondition(t.Status.Conditions, kind); was != nil && was.Status == value {
			c.LastTransitionTime = was.LastTransitionTime
		}
		status.Conditions = append(status.Conditions, c)
	}
	add(v1alpha1.ConditionReady, ready)
	if progress != "" {
		add(progress, metav1.ConditionTrue)
	}
}

// inventory is the result of an agent's inspection of its node.
func (w *world) inventory(m *machine) v1alpha1.NodeInventoryStatus {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	numa := func(i int) *int32 { return new(int32(i % 2)) }
	out := v1alpha1.NodeInventoryStatus{
		Kernel: v1alpha1.KernelStatus{Release: "6.12.48+deb13-amd64"},
		CPU: v1alpha1.CPUStatus{
			Model: "AMD EPYC 9354P 32-Core Processor", Sockets: 2, Cores: 64, Threads: 128, KubeletCPUManagerPolicy: "none",
		},
		NetworkInterfaces: []v1alpha1.NetworkInterface{
			{Name: "eno1", Addresses: []string{m.ip + "/8"}, SpeedMbps: 25000, MTU: 9000, State: "up", NUMANode: numa(0)},
			{Name: "ib0", Addresses: []string{m.ip + "/9"}, SpeedMbps: 200000, MTU: 2044, State: "up", NUMANode: numa(1)},
		},
		RDMADevices: []v1alpha1.RDMADevice{
			{Name: "mlx5_0", State: "ACTIVE", Rate: "200 Gb/sec (4X HDR)", LinkLayer: "InfiniBand", NUMANode: numa(1)},
		},
		BlockDevices: []v1alpha1.BlockDevice{{
			KernelName: "nvme0n1", Type: "disk", IDs: []string{"nvme-eui." + m.name, "nvme-SYSTEM_" + m.name}, SizeBytes: 960 << 30,
			MediaType: v1alpha1.SSD,
			Transport: "nvme", NUMANode: numa(0), Partitions: []string{"nvme0n1p1", "nvme0n1p2"}, Mounts: []string{"/", "/boot/efi"},
			Unusable: []string{"it is mounted at / and /boot/efi", "it has partitions: nvme0n1p1, nvme0n1p2"},
		}},
	}
	for i := range 2 {
		cpus := fmt.Sprintf("%d-%d", i*64, i*64+63)
		out.CPU.NUMANodes = append(out.CPU.NUMANodes, v1alpha1.NUMANode{ID: int32(i), CPUs: cpus, MemoryBytes: 256 << 30})
	}
	for i := range 64 {
		out.CPU.Siblings = append(out.CPU.Siblings, fmt.Sprintf("%d,%d", i, i+64))
	}
	for _, module := range []string{"beegfs", "btrfs", "ext4", "fuse", "lnet", "lustre", "xfs"} {
		out.Kernel.Modules = append(out.Kernel.Modules, v1alpha1.KernelModule{Name: module, State: "Available"})
	}
	for _, setting := range []string{"cStates", "cpuGovernor", "smt", "transparentHugePages", "vm.dirty_background_ratio", "vm.dirty_ratio",
		"vm.min_free_kbytes", "vm.vfs_cache_pressure", "vm.zone_reclaim_mode"} {
		out.Settings = append(out.Settings, v1alpha1.HostSetting{
			Name: setting, Found: "10", Expected: "5", Source: "BeeGFS documentation, tuning of storage and metadata servers"})
	}
	usable := int32(0)
	for i, d := range m.disks {
		if d.dead {
			continue
		}
		serial := "ZL2" + d.id[len(d.id)-8:]
		device := v1alpha1.BlockDevice{
			KernelName: d.kernelName, Type: "disk",
			IDs: []string{d.id, "scsi-3" + strings.TrimPrefix(d.id, "wwn-0x"), "scsi-SATA_ST16000NM001G_" + serial},
			WWN: strings.TrimPrefix(d.id, "wwn-"), Serial: serial, Model: "ST16000NM001G-2KK103", SizeBytes: diskBytes, MediaType: v1alpha1.HDD,
			Transport: "sas", NUMANode: numa(i), Target: d.target,
		}
		if d.uuid != "" {
			device.Signatures = []v1alpha1.Signature{{Device: d.kernelName, Type: "xfs", Offset: "0x0", UUID: d.uuid, Label: d.label}}
			device.Mounts = []string{d.mountPath}
			device.Unusable = []string{"it is mounted at " + d.mountPath, "it holds an xfs filesystem with the label " + d.label}
		} else {
			usable++
		}
		out.BlockDevices = append(out.BlockDevices, device)
	}
	out.Summary = v1alpha1.InventorySummary{
		Disks: int32(len(out.BlockDevices)), Usable: usable, UsableCapacity: v1alpha1.Bytes(int64(usable) * diskBytes), Settings: "0/9"}
	for component, program := range map[string]string{componentMaster: "mfsmaster", componentChunkserver: "mfschunkserver"} {
		if w.daemons[place{fileSystemName, m.name, component}] == nil {
			continue
		}
		name := namespace + "/" + fileSystemName + "/" + component
		if component == componentChunkserver {
			name += "/" + poolName
		}
		out.Daemons = append(out.Daemons, v1alpha1.DaemonPlacement{
			Name: name, Program: program, CPUs: "0-127", NUMANodes: "0-1", MemoryPolicy: "default",
		})
	}
	return out
}

// isAs is true when a node is as its agent has reported.
func (w *world) isAs(m *machine, told v1alpha1.NodeInventoryStatus) bool {
	told.DroppedCaches = nil // this is not part of a node's state
	return equality.Semantic.DeepEqual(told, w.inventory(m))
}

// first has the times since when waiting daemons have one disk, by the uid of the pod.
type first struct {
	mutex sync.Mutex
	of    map[types.UID]time.Time
}

// tell plays the agent of a node that writes the configuration of its servers.
func (a *agent) tell(ctx context.Context, n *v1alpha1.FileSystemNode) error {
	file := nodeagent.NodeFile(n)
	a.world.mutex.Lock()
	a.world.files[place{fileSystem: n.Spec.FileSystem.Name, node: a.machine.name}] = &file
	a.world.mutex.Unlock()
	return nodeagent.Say(ctx, a.client, n, v1alpha1.NodeAgentStatus{ObservedGeneration: n.Generation})
}

// told is the configuration of a server in the node file; nil while it has none.
func (w *world) told(fileSystem string, m *machine, daemon string) *spec.Member {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	file := w.files[place{fileSystem: fileSystem, node: m.name}]
	if file == nil {
		return nil
	}
	i := slices.IndexFunc(file.Members, func(member spec.Member) bool { return member.Name == spec.MemberName(daemon) })
	if i < 0 || file.Members[i].Waits != "" {
		return nil
	}
	return &file.Members[i]
}

// starts plays `node run` in a pod: it returns whether its daemon runs, and notes the daemon's disks. It is called repeatedly.
func (w *world) starts(f *first, pod *corev1.Pod) bool {
	at, m := placeOf(pod), w.machine(pod.Spec.NodeName)
	runs := &daemon{pod: pod.UID, place: at, machine: m}
	component, instance := at.component, at.component
	switch component {
	case componentMaster:
	case componentChunkserver:
		instance += "/" + poolName
	default:
		w.start(runs)
		return true
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	told := w.told(at.fileSystem, m, instance)
	if told == nil {
		return false
	}
	if at.fileSystem != fileSystemName { // its data is in directories
		w.start(runs)
		return true
	}
	runs.targets = w.proven(m, told.Targets)
	since, waits := f.of[pod.UID]
	switch {
	case len(runs.targets) == 0:
		delete(f.of, pod.UID)
		return false
	case len(runs.targets) == len(told.Targets):
	case !waits:
		f.of[pod.UID] = time.Now()
		return false
	case component == componentMaster || time.Since(since) < patience:
		return false
	}
	w.start(runs)
	return true
}

// placeOf is where the daemon in a pod is.
func placeOf(pod *corev1.Pod) place {
	return place{pod.Labels[v1alpha1.LabelFileSystem], pod.Spec.NodeName, pod.Labels[v1alpha1.LabelComponent]}
}

// serves is true when the filesystem can be mounted.
func (w *world) serves(fileSystem string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.daemons[place{fileSystem, masterNode(fileSystem), componentMaster}] != nil
}

// proven returns the names of those targets that are mounted.
func (w *world) proven(m *machine, targets []spec.Target) []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var out []string
	for _, t := range targets {
		if t.UUID != "" && slices.ContainsFunc(m.disks, func(d *disk) bool { return d.mountPath == t.Path && d.uuid == t.UUID }) {
			out = append(out, t.Name)
		}
	}
	return out
}

// state is the answer of the filesystem's probe; nil while it does not run.
func (w *world) state(fs *v1alpha1.FileSystem) *backend.State {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.daemons[place{fs.Name, masterNode(fs.Name), componentMaster}] == nil {
		return nil
	}
	// It holds no data, so that none has too few copies.
	out := &backend.State{Version: version, Data: backend.DataHealth{Known: true}, Targets: make([]backend.Target, 0, w.targets())}
	if w.jobs[place{fileSystem: fs.Name, component: componentClasses}] {
		// So many copies on chunkservers with the label of the first pool, each in a rack of its own where nodes have racks.
		class := fmt.Sprintf("%dA", fs.Spec.StoragePools[0].Copies)
		if fs.Spec.FailureDomains.Label != "" {
			class += "/[RACK]"
		}
		out.StorageClasses = map[string]string{poolName: class}
	}
	port := fs.Spec.MooseFS.BasePort + 16
	for _, m := range w.machines {
		if w.daemons[place{fs.Name, m.name, componentClient}] != nil {
			out.Sessions = append(out.Sessions, backend.Session{IP: m.ip, Path: mountPath(fs.Name), Connected: true, Version: version})
		}
		runs := w.daemons[place{fs.Name, m.name, componentChunkserver}]
		if runs == nil {
			continue
		}
		server := backend.Server{Role: v1alpha1.RoleStorage, IP: m.ip, Port: port, Online: true, Version: version, Labels: []string{"A"}}
		if fs.Name != fileSystemName {
			server.CapacityBytes = diskBytes
			out.Targets = append(out.Targets, backend.Target{
				IP: m.ip, Port: port, Path: path.Join(smallDirectory, "data") + "/", Online: true, Status: "ok", CapacityBytes: diskBytes,
			})
		}
		uses := map[string]bool{}
		for _, name := range runs.targets {
			uses[namespace+"/"+name] = true
		}
		for _, d := range m.disks {
			if !uses[d.target] {
				continue
			}
			target := backend.Target{
				IP: m.ip, Port: port, Path: d.data,
				Online: !d.dead, Status: "ok", UsedBytes: w.used(d), CapacityBytes: diskBytes,
			}
			if d.dead {
				target.Status = "damaged"
			}
			server.UsedBytes, server.CapacityBytes = server.UsedBytes+target.UsedBytes, server.CapacityBytes+target.CapacityBytes
			out.Targets = append(out.Targets, target)
		}
		out.Servers = append(out.Servers, server)
	}
	return out
}
