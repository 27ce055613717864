package fio

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// jobName is the name of the only job, which is part of its file names.
const jobName = "benchmark"

// Plan returns one fio for each client, whose jobs are reported as one group.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	argv := []string{
		"fio", "--name=" + jobName, "--directory=$(DIRECTORY)", "--rw=" + string(s.mode), fmt.Sprintf("--rwmixread=%d", s.readPercent),
		fmt.Sprintf("--bs=%d", s.block), fmt.Sprintf("--size=%d", s.file), "--ioengine=" + o.Engine, fmt.Sprintf("--iodepth=%d", s.depth),
		fmt.Sprintf("--numjobs=%d", s.jobs), "--group_reporting", "--output-format=json",
		"--eta=never", // only the report
	}
	if o.DirectIO {
		argv = append(argv, "--direct=1")
	}
	if o.FsyncOnClose {
		argv = append(argv, "--end_fsync=1")
	}
	if s.seconds > 0 {
		argv = append(argv, "--time_based", fmt.Sprintf("--runtime=%d", s.seconds))
	}
	if o.RampSeconds > 0 {
		argv = append(argv, fmt.Sprintf("--ramp_time=%d", o.RampSeconds))
	}
	for _, argument := range o.Args {
		argv = append(argv, string(argument))
	}
	launch := benchmarks.OnEachClient
	if s.clients == 1 {
		launch = benchmarks.OnClient
	}
	return benchmarks.Plan{
		Steps:   []benchmarks.Step{{Command: benchmarks.Command{Launch: launch, Argv: argv}}},
		Clients: int(s.clients), Processes: int(s.processes),
		Demand: benchmarks.Demand{Bytes: s.processes * s.file, Inodes: s.processes + s.clients},
	}, nil
}
