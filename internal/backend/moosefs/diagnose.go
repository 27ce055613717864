package moosefs

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// diagnose lists the reasons why the filesystem is not Ready, worst first.
func (o *observer) diagnose() {
	say := func(reason, format string, args ...any) {
		o.seen.Problems = append(o.seen.Problems, backend.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	unproven, missing := o.missingTargets()
	metadata := o.unprovenMetadata()
	if metadata != "" {
		unproven = slices.Insert(unproven, 0, metadata)
	}
	notReady := func() {
		if len(unproven) > 0 {
			say(v1alpha1.ReasonTargetsNotReady, "waiting for %s: %s", v1alpha1.Count(len(unproven), "disk", "disks"), backend.List(unproven))
		}
	}
	switch {
	case o.in.State == nil && metadata != "":
		notReady()
		o.diagnoseMaster(say)
		return
	case o.in.State == nil:
		o.diagnoseMaster(say)
		notReady()
		return
	}
	if data := o.in.State.Data; data.Known && data.Missing > 0 {
		say(v1alpha1.ReasonChunksEndangered, "%s no copy left on the targets that are online; bring back the missing targets", v1alpha1.Count(data.Missing, "chunk has", "chunks have"))
	}
	if len(missing) > 0 {
		say(v1alpha1.ReasonTargetsMissing, "%s not online: %s", v1alpha1.CountOf(len(missing), len(o.seen.Targets), "target", "targets", "is", "are"), backend.List(missing))
	}
	notReady()
	var servers []string
	for _, i := range o.seen.Servers {
		if !i.Online && i.Role != v1alpha1.RoleStorage { // a chunkserver's targets were named above
			servers = append(servers, fmt.Sprintf("%s (%s)", i.Name, i.Message))
		}
	}
	if len(servers) > 0 {
		say(v1alpha1.ReasonServersMissing, "servers are not online: %s", backend.List(servers))
	}
	if data := o.in.State.Data; data.Known && (data.Endangered > 0 || data.Undergoal > 0) {
		var few []string
		if data.Endangered > 0 {
			few = append(few, v1alpha1.Count(data.Endangered, "chunk has", "chunks have")+" only one copy left")
		}
		if data.Undergoal > 0 {
			few = append(few, v1alpha1.Count(data.Undergoal, "chunk has", "chunks have")+" fewer copies than asked for")
		}
		say(v1alpha1.ReasonChunksEndangered, "%s; MooseFS makes new copies by itself when enough targets of their pool are online",
			strings.Join(few, ", and "))
	}
	o.diagnosePlacement(say)
	o.diagnoseClients(say)
	if !o.in.State.Data.Known {
		say(v1alpha1.ReasonDataUnknown, "MooseFS has not counted yet how many copies its data has, as after a chunkserver came or went")
	}
}

// serves returns true if every chunk has a copy online and each pool accepts new files. pending is true if only the master's count of
// copies is outstanding.
func (o *observer) serves() (serves, pending bool) {
	could := o.couldServe()
	return could && o.in.State.Data.Known && o.in.State.Data.Missing == 0, could && !o.in.State.Data.Known
}

// couldServe reports whether programs reach their data except for missing copies, and each pool accepts new files.
func (o *observer) couldServe() bool {
	switch {
	case o.in.State == nil || !o.seen.Reachable():
		return false
	case o.in.Away(componentMaster, "", "", o.masterNodeName()) != "":
		return false
	}
	for _, pool := range o.fs.Spec.StoragePools {
		// Serving does not depend on the racks of the copies.
		have, want := o.in.State.StorageClasses[pool.Name], placement(o.in, o.domains, pool)
		if strings.TrimSuffix(have, differentRacks) != strings.TrimSuffix(want, differentRacks) || o.seen.Online(pool.Name) == 0 {
			return false
		}
		// The master's count excludes the chunkservers that it missed. Chunkservers that have gone since are not part of that, and each of them
		// may have had one of the copies.
		if len(o.goneSince(pool)) >= int(backend.Copies(pool)) {
			return false
		}
	}
	return true
}

// goneSince returns the nodes whose chunkserver of a pool has gone since the master was queried.
func (o *observer) goneSince(pool v1alpha1.StoragePoolSpec) []string {
	record, _ := o.in.Pool(pool.Name)
	return slices.DeleteFunc(slices.Clone(record.Nodes), func(node string) bool {
		n, _ := o.in.Node(node)
		server, ok := o.server(v1alpha1.RoleStorage, n.IP, o.ports.chunkserver(record.Slot))
		return !ok || !server.Online || o.in.Away(componentChunkserver, pool.Name, "", node) == ""
	})
}

// diagnoseMaster reports why the state of the filesystem is unknown.
func (o *observer) diagnoseMaster(say func(reason, format string, args ...any)) {
	pod, there := o.pod(componentMaster, "", o.masterNodeName())
	switch {
	case there && !pod.Ready && pod.Message != "":
		say(v1alpha1.ReasonDaemonRefused, "the master on node %s does not run: %s", pod.Node, pod.Message)
	case o.fs.Status.Metadata == nil || o.fs.Status.Metadata.Initialized == nil:
		say(v1alpha1.ReasonStarting, "waiting for the master to answer for the first time: %s", o.in.StateError)
	case !there || !pod.Ready:
		say(v1alpha1.ReasonMetadataOffline, "the master does not answer, so the state of the filesystem is unknown: %s", o.in.StateError)
	default:
		say(v1alpha1.ReasonProbeUnreachable, "the master runs, but its probe gives no answer that the operator can believe: %s", o.in.StateError)
	}
}

func (o *observer) diagnosePlacement(say func(reason, format string, args ...any)) {
	var wrong []string
	for _, pool := range o.fs.Spec.StoragePools {
		want := placement(o.in, o.domains, pool)
		if have := o.in.State.StorageClasses[pool.Name]; have != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q and should be %q", pool.Name, have, want))
		}
	}
	if len(wrong) > 0 {
		for _, job := range o.in.Jobs {
			o.seen.Repeat = append(o.seen.Repeat, job.Name)
		}
		message := o.podMessage(componentStorageClasses, "", o.masterNodeName(), "the job that makes them has not ended")
		say(v1alpha1.ReasonPoolsNotPlaced, "storage classes are not as the pools ask: %s; %s", backend.List(wrong), message)
	}
}

func (o *observer) diagnoseClients(say func(reason, format string, args ...any)) {
	var missing []string
	for _, c := range o.seen.Clients {
		if n, _ := o.in.Node(c.Node); !c.Mounted && n.Ready {
			missing = append(missing, fmt.Sprintf("%s (%s)", c.Node, c.Message))
		}
	}
	if len(missing) > 0 {
		say(v1alpha1.ReasonClientsMissing, "the filesystem is not mounted on %s", backend.List(missing))
	}
}
