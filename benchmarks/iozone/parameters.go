package iozone

import (
	"cmp"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// The names that a sweep can vary.
const (
	processes                     = benchmarks.ParameterProcesses
	clients                       = benchmarks.ParameterClients
	recordSize v1alpha1.SweepName = "iozone.recordSize"
	fileSize   v1alpha1.SweepName = "iozone.fileSize"
)

// Parameters returns processes, clients, storagePool, iozone.recordSize and iozone.fileSize. There is no parameter clients when all
// processes run on one client.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	out := benchmarks.Common(spec)
	if o.Mode != v1alpha1.IOzoneDistributed {
		out = slices.DeleteFunc(out, func(p benchmarks.Parameter) bool { return p.Name == clients })
	}
	return append(out,
		benchmarks.Parameter{Name: recordSize, Kind: benchmarks.Size, Value: string(o.RecordSize)},
		benchmarks.Parameter{Name: fileSize, Kind: benchmarks.Size, Value: string(o.FileSize)},
	)
}

// options returns spec.iozone with the defaults of the API, which the API server fills in too, and its tests in the
// order in which iozone runs them.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.IOzoneSpec {
	var o v1alpha1.IOzoneSpec
	if spec.IOzone != nil {
		o = *spec.IOzone
	}
	o.Mode = cmp.Or(o.Mode, v1alpha1.IOzoneSingleClient)
	o.RecordSize = cmp.Or(o.RecordSize, "64k")
	o.FileSize = cmp.Or(o.FileSize, "1g")
	wanted := o.Tests
	o.Tests = nil
	for _, test := range []v1alpha1.IOzoneTest{v1alpha1.IOzoneWrite, v1alpha1.IOzoneRead, v1alpha1.IOzoneRandom} {
		if len(wanted) == 0 || slices.Contains(wanted, test) {
			o.Tests = append(o.Tests, test)
		}
	}
	return o
}

// settings are the checked parameters of a point.
type settings struct {
	processes int
	// clients is 0 when all that match take part.
	clients int
	// record and file are the sizes of one read or write and of each process's file, in bytes.
	record, file int64
}

const (
	// maxProcesses is the largest number that iozone takes, in -t (its MAXSTREAMS) and as lines of the file of -+m.
	maxProcesses = 1024
	// maxRecord is the size of iozone's buffer, which it names when it refuses a larger record.
	maxRecord = 16 << 20
)

// check reads the parameters of a point and refuses those that iozone refuses, or that it would take and quietly measure something else.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	var out settings
	o := options(spec)
	count := func(name v1alpha1.SweepName, most int64) (int, error) {
		number, err := benchmarks.ParseCount(point.Parameters[name])
		if err != nil {
			return 0, benchmarks.InvalidPoint("%s: %v", name, err)
		}
		if number > most {
			return 0, benchmarks.InvalidPoint("%s: %d is more than %d, the most that can be run", name, number, most)
		}
		return int(number), nil
	}
	size := func(name v1alpha1.SweepName) (int64, error) {
		bytes, err := benchmarks.ParseSize(point.Parameters[name])
		if err != nil {
			return 0, benchmarks.InvalidPoint("%s: %v", name, err)
		}
		return bytes, nil
	}
	var err error
	if out.processes, err = count(processes, maxProcesses); err != nil {
		return out, err
	}
	if out.record, err = size(recordSize); err != nil {
		return out, err
	}
	if out.file, err = size(fileSize); err != nil {
		return out, err
	}
	record, file := point.Parameters[recordSize], point.Parameters[fileSize]
	switch {
	case out.record > maxRecord:
		return out, benchmarks.InvalidPoint("%s: %s is larger than 16m, the largest record of iozone", recordSize, record)
	case out.file < out.record:
		return out, benchmarks.InvalidPoint("%s: %s is less than %s (%s), so no process could write a record", fileSize, file, recordSize, record)
	case out.file%out.record != 0:
		return out, benchmarks.InvalidPoint("%s: %s is no multiple of %s (%s); iozone would leave out the rest", fileSize, file, recordSize, record)
	}
	if o.Mode == v1alpha1.IOzoneSingleClient {
		out.clients = 1
		return out, nil
	}
	if _, found := point.Parameters[clients]; !found {
		return out, nil
	}
	// More clients than the API takes are more than there can be processes.
	if out.clients, err = count(clients, maxProcesses); err != nil {
		return out, err
	}
	if out.processes < out.clients {
		return out, benchmarks.InvalidPoint("%s: %d is less than %s (%d), so a client would have nothing to do", processes, out.processes, clients, out.clients)
	}
	return out, nil
}
