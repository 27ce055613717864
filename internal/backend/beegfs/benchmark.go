package beegfs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

// The output of beegfs-ctl 7 (ModeStorageBench.cpp) and beegfs 8 (ctl/internal/cmd/benchmark) for busy servers and for errors: both tools
// then end with exit code 0. beegfs 8 prints a row with the number of servers that are uninitialized, initialized, in error, running,
// stopping, stopped, finishing, finished and unknown.
const (
	busy7   = `^(Running|Stopping): +\d`
	failed7 = `^(Some errors occurred:|Error: )`
	unrun7  = `^(Some errors occurred:|Error: |Didn't run: |Stopped: )`
	busy8   = `^ *\d+ +\d+ +\d+ +([1-9]\d* +\d+ +\d+ +\d+|\d+ +[1-9]\d* +\d+ +\d+|\d+ +\d+ +\d+ +[1-9]\d*) +\d+ +\d+ *$`
	failed8 = `^ *(\d+ +\d+ +[1-9]\d*( +\d+){6}|(\d+ +){8}[1-9]\d*) *$`
	unrun8  = `^ *([1-9]\d*( +\d+){8}|\d+ +[1-9]\d*( +\d+){7}|\d+ +\d+ +[1-9]\d*( +\d+){6}|(\d+ +){5}[1-9]\d*( +\d+){3}|(\d+ +){8}[1-9]\d*) *$`
)

const (
	// componentBenchmark names the volume and the pod's purpose; the caller's labels replace it.
	componentBenchmark = "benchmark"
	// benchmarkMargin is the time that a job may take for its cleanup, in addition to its calls, before Kubernetes ends it.
	benchmarkMargin = 3 * time.Minute
	// benchmarkGrace is in seconds, and longer than the cleanup of `node manage` takes when its pod is stopped.
	benchmarkGrace = 75
)

// BenchmarkJob runs the benchmark of the storage servers on the targets of a pool, or on all. For each of the verbs write and read, it
// starts the benchmark, waits for it, and prints the results. The files of the benchmark are always removed before the first and after the
// last verb.
func (Backend) BenchmarkJob(in backend.Input, request backend.BenchmarkRequest) (*batchv1.Job, error) {
	node, ok := managementNode(in)
	if !ok {
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
			"the node of the management service is not in the cluster, or has no address that the filesystem can use; bring it back")
	}
	targets, err := benchmarkTargets(in, request)
	if err != nil {
		return nil, err
	}
	t := toolOf(in)
	busy, failed, unrun := busy7, failed7, unrun7
	if cli.Is8(backend.Version(in.FileSystem)) {
		busy, failed, unrun = busy8, failed8, unrun8
	}
	// The job waits for a benchmark that another program has started, because its files must not be removed.
	calls := []spec.ManageCall{
		{Argv: t.Bench("status", targets, nil), While: busy},
		{Argv: t.Bench("clean", targets, nil), Fails: failed},
	}
	for _, c := range request.Calls {
		calls = append(calls,
			spec.ManageCall{Argv: t.Bench(c.Verb, targets, c.Arguments), Fails: failed},
			spec.ManageCall{Name: c.Verb, Argv: t.Bench("status", targets, nil), While: busy, Fails: unrun})
	}
	calls = append(calls,
		spec.ManageCall{Argv: t.Bench("stop", targets, nil), Always: true, MayFail: true},
		spec.ManageCall{Argv: t.Bench("status", targets, nil), While: busy, Always: true, MayFail: true},
		spec.ManageCall{Name: "clean", Argv: t.Bench("clean", targets, nil), Fails: failed, Always: true})
	b := builder{view: &view{in: in}, management: node, told: map[string][]byte{}}
	object, err := b.job(jobSpec{
		name: request.Name, component: componentBenchmark, verb: "manage", nodes: []string{in.FileSystem.Status.Metadata.Node},
		told:     spec.Manage{Calls: calls, TimeoutSeconds: int64(request.Timeout.Seconds())},
		deadline: request.Timeout + benchmarkMargin,
	})
	if err != nil {
		return nil, err
	}
	job := object.(*batchv1.Job)
	job.Labels, job.Spec.Template.Labels = nil, nil
	pod := &job.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(benchmarkGrace))
	pod.Containers[0].Name = backend.BenchmarkContainer
	return job, nil
}

// benchmarkTargets are the numbers of the storage targets of a pool, or of all, in order. All must be online: otherwise the benchmark would
// measure fewer targets than requested. All must also have room for the bytes that are written to each.
func benchmarkTargets(in backend.Input, request backend.BenchmarkRequest) ([]int32, error) {
	need, err := bytesPerTarget(request.Calls)
	if err != nil {
		return nil, err
	}
	var out []int32
	var away, full []string
	for _, a := range in.Given() {
		if a.Role != v1alpha1.RoleStorage || a.Retired || request.StoragePool != "" && a.StoragePool != request.StoragePool {
			continue
		}
		for _, t := range a.Targets {
			name := t.Name + " on node " + a.Node
			switch says := request.Services[backend.TargetKey{Node: a.Node, Name: t.Name}]; {
			case t.TakenOut != nil || says.Removal != "":
			case says.State != v1alpha1.StateOnline:
				away = append(away, name)
			case says.CapacityBytes > 0 && says.CapacityBytes-says.UsedBytes < need:
				full = append(full, fmt.Sprintf("%s (%d bytes)", name, says.CapacityBytes-says.UsedBytes))
			default:
				out = append(out, t.ID)
			}
		}
	}
	where := ""
	if request.StoragePool != "" {
		where = " in pool " + request.StoragePool
	}
	switch {
	case len(away) > 0:
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "the targets %s are not online; bring them back, then measure",
			backend.List(away))
	case len(full) > 0:
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"each target is to be written %d bytes, and less is free on %s; lower storagebench.fileSize or storagebench.threads",
			need, backend.List(full))
	case len(out) == 0:
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "there are no storage targets to measure%s", where)
	}
	slices.Sort(out)
	return out, nil
}

// bytesPerTarget returns the largest number of bytes that a call writes to each target. It refuses a call without its arguments.
func bytesPerTarget(calls []backend.BenchmarkCall) (int64, error) {
	var most int64
	for _, c := range calls {
		if c.Verb != "write" && c.Verb != "read" {
			return 0, backend.Invalid(v1alpha1.ReasonInvalidSpec, "BeeGFS has no call %q for a benchmark; it has write and read", c.Verb)
		}
		_, err1 := strconv.ParseUint(c.Arguments[cli.BenchBlock], 10, 63)
		size, err2 := strconv.ParseUint(c.Arguments[cli.BenchSize], 10, 50)
		threads, err3 := strconv.ParseUint(c.Arguments[cli.BenchThreads], 10, 12)
		if err := errors.Join(err1, err2, err3); err != nil {
			return 0, backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"call %s needs blockSize, fileSize and threads as whole numbers: %s", c.Verb, err)
		}
		most = max(most, int64(size*threads)) //nolint:gosec // 62 bits
	}
	return most, nil
}
