package beegfs

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/options"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// offlineTime is how long BeeGFS may list a target as online that its server no longer serves (sysTargetOfflineTimeoutSecs is 180 s in
// 7.4.6, and node-offline-timeout also in 8.3.1).
const offlineTime = 10 * time.Minute

// noticed is how long BeeGFS may take after the offline timeout until it lists a server as offline: it checks every few seconds.
const noticed = 30 * time.Second

// restarts finds the daemons that must restart. A storage server reads its list of targets at its start, so it restarts after a disk was
// proven, or was emptied and taken out. A metadata server restarts after the metadata was mirrored, and the management service after it got
// a license.
func (o *observer) restarts() {
	if o.in.State == nil || o.fs.Status.BeeGFS == nil {
		return
	}
	anyServer := sync.OnceValue(func() bool { return o.safe() })
	for _, pod := range o.in.Pods {
		if !pod.Ready || pod.Seen.IsZero() {
			continue
		}
		var why []string
		safe := anyServer
		switch pod.Component {
		case componentStorage:
			why = slices.Concat(o.takeUp(pod), o.stillUsed(pod))
			if o.lacksOnly(pod) {
				safe = func() bool { return o.safe(v1alpha1.ReasonDataInconsistent) }
			}
			if unheard := o.unheard(pod); len(unheard) > 0 {
				why, safe = append(why, unheard...), func() bool { return true } // BeeGFS does not use them yet
			}
		case componentManagement:
			// The service reads its license when it starts, and only a license allows these features.
			if pod.Outdated && o.lacksLicense() {
				why = []string{"its configuration has changed, and it has no license yet"}
			}
		case componentMeta:
			if why = o.unheard(pod); len(why) > 0 {
				safe = func() bool { return true } // as above
			} else if o.fs.Status.BeeGFS.MetadataMirrored != nil && !pod.MetadataMirrored {
				why = []string{"the metadata was mirrored after it had started"}
				safe = func() bool {
					return o.onlyProblems(v1alpha1.ReasonDataInconsistent, v1alpha1.ReasonClientsMissing, v1alpha1.ReasonPoolsNotPlaced)
				}
			}
		}
		if len(why) > 0 {
			o.seen.Restarts = append(o.seen.Restarts, backend.Restart{Pod: pod.Name, Why: backend.List(why), Safe: safe()})
		}
	}
}

// sole lists the pods whose restart makes programs wait: those of servers with data that is not proven to be on a buddy as well.
func (o *observer) sole() {
	o.seen.Sole = map[string]string{}
	alone := o.alone()
	pools := map[string]string{}
	for _, pool := range o.fs.Spec.StoragePools {
		if backend.Copies(pool) < 2 {
			pools[pool.Name] = fmt.Sprintf("pool %s keeps one copy", pool.Name)
		}
	}
	for i := range o.in.Pods {
		p, why := &o.in.Pods[i], ""
		switch p.Component {
		case componentManagement:
			why = "there is one management service"
		case componentMeta:
			if why = alone[p.Server()]; o.in.State == nil || !o.in.State.MetadataMirrored {
				why = "the metadata is not mirrored"
			}
		case componentStorage:
			why = cmp.Or(pools[p.StoragePool], alone[p.Server()])
		}
		if why != "" {
			o.seen.Sole[p.Name.Name] = why
		}
	}
}

// alone returns, by the names of the servers, the reason why a server has data without a complete buddy. A server whose data is all proven
// to be on buddies is not in it. While BeeGFS does not answer, it is empty, and no running daemon is restarted.
func (o *observer) alone() map[string]string {
	out := map[string]string{}
	o.eachHeld(func(server, what string, role v1alpha1.Role, id int32, _ string) {
		if out[server] == "" && !o.buddies.serves(role, id) {
			out[server] = what + " has no buddy that is online and has all of its data"
		}
	})
	return out
}

// inUse is true when a client has mounted the filesystem, or is about to. Without clients, a restart disturbs no program; the restarts that
// make a new filesystem's metadata mirrored are of this kind.
func (o *observer) inUse() bool {
	return len(o.in.State.Sessions) > 0 ||
		slices.ContainsFunc(o.in.Pods, func(p backend.Pod) bool { return p.Component == componentClient })
}

// unconfirmed lists the servers for which BeeGFS may still report the state before their start: it lists a server as online until it has
// not heard from it for the offline timeout. A server is confirmed if it has answered itself, or if BeeGFS lists it after that time. The
// time is counted by the manager's clock from the moment when the manager saw the server run.
func (o *observer) unconfirmed() []string {
	if o.in.State == nil || !o.inUse() {
		return nil
	}
	contacted := map[place]bool{}
	for _, t := range o.in.State.Targets {
		if t.Contacted {
			contacted[place{cmp.Or(t.Role, v1alpha1.RoleStorage), t.ServerID}] = true
		}
	}
	seconds, _, _, _ := options.OfflineTimeouts(own(o.fs).Config)
	forgotten := time.Duration(seconds)*time.Second + noticed
	var out []string
	for _, i := range o.seen.Servers {
		component, pool, slot := componentStorage, i.StoragePool, ""
		switch i.Role {
		case v1alpha1.RoleStorage:
		case v1alpha1.RoleMetadata:
			component, slot = componentMeta, fmt.Sprint(i.Slot)
		default:
			continue // the management service has answered itself
		}
		pod, there := o.pod(daemon{component: component, pool: pool, slot: slot}, i.Node)
		if there && pod.Ready && !contacted[place{i.Role, i.ID}] && !o.in.State.Asked.After(pod.Seen.Add(forgotten)) {
			out = append(out, i.Name)
		}
	}
	return out
}

// lacksLicense is true when BeeGFS refuses a feature for lack of a license.
func (o *observer) lacksLicense() bool {
	return slices.ContainsFunc(o.seen.Problems, func(p backend.Problem) bool { return p.Reason == v1alpha1.ReasonLicenseMissing })
}

// takeUp lists the disks that are proven but not in use, because they were proven after the pod had started.
func (o *observer) takeUp(pod backend.Pod) []string {
	var why []string
	for _, t := range o.ofServer[serverPlace{pod.StoragePool, pod.Node}] {
		if o.awaitsRestart(t, pod) {
			why = append(why, fmt.Sprintf("the disk %s is proven, and the storage server has not taken it up", t.name))
		}
	}
	return why
}

// unheard lists servers and targets that are missing from a restored store, because they joined after its backup. A server registers itself
// and its targets when it starts.
func (o *observer) unheard(pod backend.Pod) []string {
	r := o.fs.Status.Metadata.Recovered
	if r == nil || pod.Started.After(r.Time.Time) {
		return nil
	}
	const joined = "%s joined after the backup from which the store of the management service was made again"
	var why []string
	if pod.Component == componentMeta {
		for _, g := range metadataServers(o.in) {
			initialized := len(g.Targets) > 0 && g.Targets[0].Initialized != nil
			if g.Node == pod.Node && fmt.Sprint(g.Slot) == pod.Slot && initialized && serverOf(o.in, g.Role, g.ID) == nil {
				why = append(why, fmt.Sprintf(joined, fmt.Sprintf("metadata server %d", g.ID)))
			}
		}
		return why
	}
	for _, t := range o.ofServer[serverPlace{pod.StoragePool, pod.Node}] {
		if t.id != 0 && t.initialized != nil && t.drained == nil && t.said == nil {
			why = append(why, fmt.Sprintf(joined, fmt.Sprintf("storage target %d", t.id)))
		}
	}
	return why
}

// awaitsRestart is true for a disk that the server will use after its next start.
func (o *observer) awaitsRestart(t target, pod backend.Pod) bool {
	if t.disk == nil || t.id == 0 || t.online() {
		return false
	}
	since, unready := assign.Proven(t.disk)
	if t.replaces != "" && t.initialized == nil {
		if t.fullResync == nil {
			return false
		}
		since = *t.fullResync // its server's configuration has it since then
	}
	return unready == "" && o.unread(pod, since)
}

// unread is true when a pod started before it could read a change, and its next start will read it. The times may come from two clocks: if
// they differ, a daemon is restarted once more, or later. The decision whether it may restart does not use them.
func (o *observer) unread(pod backend.Pod, change metav1.Time) bool {
	known := change.Add(o.readTime)
	return pod.Started.Before(known) && !o.in.State.Asked.Before(known)
}

// lacksOnly is true for a storage server whose replacement disk waits for its restart, if all data that is behind belongs to targets of
// this server that it does not serve. The good sides are then on other nodes, and no resync is interrupted. Only the restart adds the disk.
func (o *observer) lacksOnly(pod backend.Pod) bool {
	lacks, waits := map[int32]bool{}, false
	for _, t := range o.ofServer[serverPlace{pod.StoragePool, pod.Node}] {
		lacks[t.id] = t.id != 0 && !t.online()
		waits = waits || t.replaces != "" && o.awaitsRestart(t, pod)
	}
	return waits && !slices.ContainsFunc(o.in.State.Targets, func(t backend.Target) bool {
		behind := consistencyMessage(t.Consistency) != "" && o.isGiven(t)
		return behind && (t.Role == v1alpha1.RoleMetadata || !lacks[t.ID])
	})
}

// stillUsed lists the disks that were emptied and taken out, and that the server still uses, so that they can't be unmounted. After a
// restart, BeeGFS lists them as online for a while. So a server restarts only if it has served one for longer, or if it started before it
// could read the change.
func (o *observer) stillUsed(pod backend.Pod) []string {
	long := pod.Seen.Before(o.in.State.Asked.Add(-offlineTime))
	var why []string
	for _, l := range o.leftOn[storageName(pod.StoragePool, pod.Node)] {
		due := long || l.TakenOut != nil && o.unread(pod, *l.TakenOut)
		if due && l.Drained != nil && l.said != nil && l.said.Online {
			why = append(why, fmt.Sprintf("the disk %s was emptied and taken out, and the storage server still uses it", l.Name))
		}
	}
	return why
}

// safe decides whether a storage server may restart although the filesystem has problems. Missing disks do not forbid it, and neither do
// parts of the spec that BeeGFS does not have yet. Data that differs between both sides forbids it: the good side may be on this server. No
// other server may be away meanwhile.
func (o *observer) safe(besides ...string) bool {
	if !o.onlyProblems(append(besides, v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonTargetsMissing, v1alpha1.ReasonLicenseMissing,
		v1alpha1.ReasonPoolsNotPlaced)...) {
		return false
	}
	for _, i := range o.seen.Servers {
		if !i.Online && !o.leaving(i) {
			return false
		}
	}
	for _, t := range o.targets {
		if t.online() || t.drained != nil {
			continue
		}
		if t.disk == nil {
			return false
		}
		_, unready := assign.Proven(t.disk)
		comes := false
		for p := range o.in.PodsOn(componentStorage, t.pool.Name, t.node) {
			comes = comes || o.awaitsRestart(t, *p)
		}
		if unready == "" && !comes {
			return false
		}
	}
	return true
}

// onlyProblems is true when the filesystem has no problems except those with these reasons.
func (o *observer) onlyProblems(reasons ...string) bool {
	return !slices.ContainsFunc(o.seen.Problems, func(p backend.Problem) bool { return !slices.Contains(reasons, p.Reason) })
}
