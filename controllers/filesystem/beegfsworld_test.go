//go:build envtest

package filesystem_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// hive is a BeeGFS that runs as the children of its FileSystem configure it: the content of its directories, and the state of its
// management service.
type hive struct {
	// numbers holds what was prepared in each directory, by node and path; prepared counts how often.
	numbers map[string]string
	// owners holds the uids of the FileSystems whose daemons have used each directory last.
	owners   map[string]string
	prepared map[string]int
	// refused lists the daemons that found a directory that is not theirs, or that they may not prepare.
	refused []string
	// has holds the targets of each pod, by its uid.
	has map[string][]held
	// announced holds the pods whose daemons have registered themselves and their targets with the management service, which they do when they
	// start.
	announced map[string]bool
	// servers and targets hold those that have registered, pools those that were created.
	servers []backend.Server
	targets []backend.Target
	pools   map[int32]string
	mirrors []backend.Mirror
	// commands lists those that Jobs have run, in order, without the program.
	commands []string
	// presents holds the certificate with which each management service was started, by the uid of its pod. refusals holds the errors of tools
	// that rejected one.
	presents map[string][]byte
	refusals []string
	// Jobs whose names contain stuck do not end.
	stuck string
	// license is that of a BeeGFS 8.
	license *backend.License
}

// held is a target that a daemon serves.
type held struct {
	name           string
	target, server int32
}

// beeGFS creates a BeeGFS with two metadata servers on each of the first two nodes, and one pool on these.
func (w *world) beeGFS(change func(fs *v1alpha1.FileSystem)) {
	w.t.Helper()
	w.hive = &hive{
		numbers: map[string]string{}, owners: map[string]string{}, prepared: map[string]int{}, has: map[string][]held{},
		announced: map[string]bool{}, pools: map[int32]string{1: "Default"}, presents: map[string][]byte{},
	}
	w.alive = true
	for _, node := range w.nodes[:2] {
		w.label(node, "bee-of")
	}
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		ours := v1alpha1.NodeSelector{"bee-of": w.namespace}
		fs.Spec = v1alpha1.FileSystemSpec{
			Type: v1alpha1.BeeGFS, Version: "7.4.6",
			BeeGFS: &v1alpha1.BeeGFSSpec{Management: v1alpha1.BeeGFSManagement{
				NodeSelector: v1alpha1.NodeSelector{"master-of": w.namespace}, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/mgmtd"}},
			}},
			MetadataServers: v1alpha1.MetadataSpec{
				NodeSelector: ours, InstancesPerNode: 2, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta0", "/data/meta1"}},
			},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: "ssd", NodeSelector: ours, Copies: 1, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/ssd0"}},
			}},
			Clients: &v1alpha1.ClientsSpec{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}, MountPath: "/mnt/scratch"},
		}
		if change != nil {
			change(fs)
		}
	})
}

// label sets a label on a node whose value is that of this world.
func (w *world) label(node, name string) {
	w.t.Helper()
	var n corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &n)).To(Succeed())
	n.Labels[name] = w.namespace
	w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
}

// startsBee simulates `node run` of a BeeGFS daemon: it waits for its node file, prepares what it may, and refuses what is not its own. It
// reports whether the daemon runs.
func (w *world) startsBee(pod *corev1.Pod) bool {
	w.t.Helper()
	h := w.hive
	instance := component(pod)
	switch instance {
	case "management":
	case "meta":
		instance += "/" + pod.Labels[v1alpha1.LabelSlot]
	case "storage":
		instance += "/" + pod.Labels[v1alpha1.LabelStoragePool]
	default:
		return true
	}
	if h.has[string(pod.UID)] != nil {
		return true
	}
	daemon, configured := w.configOf(pod, instance)
	if !configured {
		return false
	}
	var has []held
	for _, t := range daemon.Targets {
		if !t.Directory && !slices.ContainsFunc(w.disks, func(d *fakeDisk) bool {
			return d.mounted && d.target == w.namespace+"/"+t.Name && d.uuid == t.UUID
		}) {
			continue
		}
		server, target := number(daemon.Variables["NODE_ID"]), number(t.Variables["TARGET_ID"])
		place, reason := pod.Spec.NodeName+":"+t.Path, fmt.Sprintf("%s %d/%d", component(pod), server, target)
		switch lies := h.numbers[place]; {
		case lies == reason && h.owners[place] != string(w.get().UID) && !t.Granted && !t.Expected:
			h.refused = append(h.refused, fmt.Sprintf("%s at %s holds the data of an earlier FileSystem", instance, place))
			continue
		case lies == reason:
		case lies != "" || !t.Granted:
			h.refused = append(h.refused, fmt.Sprintf("%s at %s holds %q and not %q", instance, place, lies, reason))
			continue
		default:
			h.numbers[place] = reason
			h.prepared[place]++
		}
		h.owners[place] = string(w.get().UID)
		has = append(has, held{name: t.Name, target: target, server: server})
	}
	if len(has) == 0 {
		return false
	}
	h.has[string(pod.UID)] = has
	if instance == "management" {
		h.presents[string(pod.UID)] = w.certificateInUse()
	}
	return true
}

func number(text string) int32 {
	n, _ := strconv.Atoi(text)
	return int32(n) // #nosec G109 G115 -- numbers of BeeGFS have 16 bits
}

// managementRuns reports whether the management service has its store.
func (w *world) managementRuns() bool {
	return slices.ContainsFunc(w.pods(), func(p corev1.Pod) bool {
		return component(&p) == "management" && p.DeletionTimestamp.IsZero() && !w.dead[p.Spec.NodeName] && w.hive.has[string(p.UID)] != nil
	})
}

// beeState returns the answer of the management service.
func (w *world) beeState() (*backend.State, error) {
	h, fs := w.hive, w.get()
	if !w.alive || !w.managementRuns() {
		return nil, errors.New("nobody listens")
	}
	if err := w.verifyManagement(); err != nil {
		h.refusals = append(h.refusals, err.Error())
		return nil, err
	}
	w.register()
	state := &backend.State{
		Version: w.software("management", fs.Status.Metadata.Node), Data: backend.DataHealth{Known: true}, License: h.license,
		Servers: slices.Clone(h.servers), Targets: slices.Clone(h.targets), Mirrors: slices.Clone(h.mirrors), RootID: 1,
	}
	slices.SortFunc(state.Servers, func(a, b backend.Server) int {
		return cmp.Or(strings.Compare(string(a.Role), string(b.Role)), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(state.Targets, func(a, b backend.Target) int {
		return cmp.Or(strings.Compare(string(a.Role), string(b.Role)), cmp.Compare(a.ID, b.ID))
	})
	for id, name := range h.pools {
		pool := backend.Pool{ID: id, Name: name}
		for _, t := range state.Targets {
			if t.PoolID == id {
				pool.Targets = append(pool.Targets, t.ID)
			}
		}
		state.Pools = append(state.Pools, pool)
	}
	slices.SortFunc(state.Pools, func(a, b backend.Pool) int { return cmp.Compare(a.ID, b.ID) })
	return state, nil
}

// register makes every running daemon register with the management service; the others are offline.
func (w *world) register() {
	h, base := w.hive, w.get().Status.BeeGFS.BasePort
	for i := range h.servers {
		h.servers[i].Online = false
	}
	for i := range h.targets {
		h.targets[i].Online = false
	}
	for _, pod := range w.pods() {
		has := h.has[string(pod.UID)]
		if len(has) == 0 || !pod.DeletionTimestamp.IsZero() || w.dead[pod.Spec.NodeName] || !w.finds(&pod) {
			continue
		}
		s := backend.Server{ID: has[0].server, IP: w.ip(pod.Spec.NodeName), Online: true}
		switch component(&pod) {
		case "management":
			s.Role, s.ID, s.Port = v1alpha1.RoleManagement, 1, base+8
		case "meta":
			s.Role, s.Port = v1alpha1.RoleMetadata, base+16+number(pod.Labels[v1alpha1.LabelSlot])
		case "storage":
			s.Role = v1alpha1.RoleStorage
			for _, p := range w.get().Status.StoragePools {
				if p.Name == pod.Labels[v1alpha1.LabelStoragePool] {
					s.Port = base + 32 + p.Slot
				}
			}
		}
		begins := !h.announced[string(pod.UID)]
		h.announced[string(pod.UID)] = true
		if i := slices.IndexFunc(h.servers, func(x backend.Server) bool { return x.Role == s.Role && x.ID == s.ID }); i >= 0 {
			h.servers[i] = s
		} else if begins {
			h.servers = append(h.servers, s)
		}
		for _, t := range has {
			if s.Role != v1alpha1.RoleStorage {
				continue
			}
			if i := slices.IndexFunc(h.targets, func(x backend.Target) bool { return x.ID == t.target }); i >= 0 {
				h.targets[i].Online, h.targets[i].ServerID = true, t.server
				continue
			}
			if !begins {
				continue
			}
			h.targets = append(h.targets, backend.Target{
				Role: v1alpha1.RoleStorage, ID: t.target, ServerID: t.server, PoolID: 1, Online: true, Consistency: "Good", CapacityBytes: 1 << 40,
			})
		}
	}
}

// workJobs simulates the Jobs of a BeeGFS: each runs its commands once. It reports whether anything changed.
func (w *world) workJobs() bool {
	w.t.Helper()
	changed := false
	for _, job := range w.jobs() {
		if len(job.Status.Conditions) > 0 || !w.managementRuns() || w.hive.stuck != "" && strings.Contains(job.Name, w.hive.stuck) {
			continue
		}
		var config spec.Configure
		w.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations["parallelfs.dev/told"]), &config)).To(Succeed(), job.Name)
		w.register()
		for _, c := range config.Commands {
			w.hive.run(w, c.Argv)
		}
		w.ended(&job, batchv1.JobComplete, time.Now())
		changed = true
	}
	return changed
}

// ended writes how a Job ended.
func (w *world) ended(job *batchv1.Job, how batchv1.JobConditionType, when time.Time) {
	w.t.Helper()
	at := metav1.NewTime(when)
	before := batchv1.JobSuccessCriteriaMet
	job.Status.StartTime = &at
	if how == batchv1.JobComplete {
		job.Status.CompletionTime, job.Status.Succeeded = &at, 1
	} else {
		before, job.Status.Failed = batchv1.JobFailureTarget, 1
	}
	for _, c := range []batchv1.JobConditionType{before, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	w.Expect(server.Client.Status().Update(w.ctx, job)).To(Succeed())
}

// run simulates beegfs-ctl.
func (h *hive) run(w *world, argv []string) {
	if argv[0] == "/opt/beegfs/sbin/beegfs" {
		w.Expect(argv).To(ContainElement("entry"), "of BeeGFS 8, only directories are made here")
		return
	}
	w.Expect(argv[0]).To(Equal("/opt/beegfs/sbin/beegfs-ctl"))
	h.commands = append(h.commands, strings.Join(argv[2:], " "))
	option := func(name string) string {
		for _, a := range argv {
			if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
				return value
			}
		}
		return ""
	}
	move := func(ids string, to int32) {
		for text := range strings.SplitSeq(ids, ",") {
			i := slices.IndexFunc(h.targets, func(t backend.Target) bool { return t.ID == number(text) })
			w.Expect(i).To(BeNumerically(">=", 0), "target %s is not registered", text)
			h.targets[i].PoolID = to
		}
	}
	last := argv[len(argv)-1]
	switch argv[2] {
	case "--addstoragepool":
		h.pools[number(option("id"))] = option("desc")
	case "--modifystoragepool":
		switch {
		case option("desc") != "":
			h.pools[number(option("id"))] = option("desc")
		case option("addtargets") != "":
			move(option("addtargets"), number(option("id")))
		case option("rmtargets") != "":
			move(option("rmtargets"), 1)
		}
	case "--removetarget":
		h.targets = slices.DeleteFunc(h.targets, func(t backend.Target) bool { return t.ID == number(last) })
	case "--removenode":
		h.servers = slices.DeleteFunc(h.servers, func(s backend.Server) bool { return s.Role == v1alpha1.RoleStorage && s.ID == number(last) })
	case "--createdir", "--setpattern", "--migrate":
	default:
		w.t.Errorf("beegfs-ctl knows no %v", argv)
	}
}
