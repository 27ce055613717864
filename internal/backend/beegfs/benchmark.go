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

// How beegfs-ctl 7 (ModeStorageBench.cpp) and beegfs 8 (ctl/internal/cmd/benchmark) say that the servers are busy, and that something went
// wrong: both end with exit code 0 then. beegfs 8 prints a row with the number of servers that are uninitialized, initialized, in error,
// running, stopping, stopped, finishing, finished and unknown.
const (
	busy7   = `^(Running|Stopping): +\d`
	failed7 = `^(Some errors occurred:|Error: )`
	unrun7  = `^(Some errors occurred:|Error: |Didn't run: |Stopped: )`
	busy8   = `^ *\d+ +\d+ +\d+ +([1-9]\d* +\d+ +\d+ +\d+|\d+ +[1-9]\d* +\d+ +\d+|\d+ +\d+ +\d+ +[1-9]\d*) +\d+ +\d+ *$`
	failed8 = `^ *(\d+ +\d+ +[1-9]\d*( +\d+){6}|(\d+ +){8}[1-9]\d*) *$`
	unrun8  = `^ *([1-9]\d*( +\d+){8}|\d+ +[1-9]\d*( +\d+){7}|\d+ +\d+ +[1-9]\d*( +\d+){6}|(\d+ +){5}[1-9]\d*( +\d+){3}|(\d+ +){8}[1-9]\d*) *$`
)

const (
	// componentBenchmark names the volume and the pod's purpose; the caller's labels take the place of its own.
	componentBenchmark = "benchmark"
	// benchmarkMargin is what a job may take beyond its calls, to tidy up, before Kubernetes ends it.
	benchmarkMargin = 3 * time.Minute
	// benchmarkGrace is more than `node manage` takes to tidy up when its pod is stopped, in seconds.
	benchmarkGrace = 75
)

// BenchmarkJob runs the benchmark of the storage servers on the targets of a pool, or on all, by the verbs write and read: each is started,
// waited for, and its results are printed. What the benchmark has written is removed before the first and after the last, in any case.
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
	// One that somebody else has started is waited for: its files must not be removed.
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

// benchmarkTargets are the numbers of the storage targets of a pool, or of all, in order. All must be online: the benchmark of the others
// would say less than was asked for. And all must have room for what is written to each.
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

// bytesPerTarget is the most that a call writes to each target. It refuses a call without its arguments.
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
