package iozone

import (
	"cmp"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary.
const (
	processes                     = benchmarks.ParameterProcesses
	clients                       = benchmarks.ParameterClients
	recordSize v1alpha1.SweepName = "iozone.recordSize"
	fileSize   v1alpha1.SweepName = "iozone.fileSize"
)

// Parameters returns processes, clients, storagePool, iozone.recordSize and iozone.fileSize. Without distributed mode all processes run on
// one client, and there is no parameter clients.
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

// options returns spec.iozone with the defaults of the API, which the API server also fills in. Its tests are in iozone's order.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.IOzoneSpec {
	var o v1alpha1.IOzoneSpec
	if spec.IOzone != nil {
		o = *spec.IOzone
	}
	o.Mode = cmp.Or(o.Mode, v1alpha1.IOzoneSingleClient)
	o.RecordSize = cmp.Or(o.RecordSize, "64Ki")
	o.FileSize = cmp.Or(o.FileSize, "1Gi")
	wanted := o.Tests
	o.Tests = nil
	for _, test := range []v1alpha1.IOzoneTest{v1alpha1.IOzoneWrite, v1alpha1.IOzoneRead, v1alpha1.IOzoneRandom} {
		if len(wanted) == 0 || slices.Contains(wanted, test) {
			o.Tests = append(o.Tests, test)
		}
	}
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	processes int
	// clients is 0 if all matching clients are used.
	clients int
	// record is the size of one read or write, and file the size of each process's file, in bytes.
	record, file int64
}

const (
	// maxProcesses is iozone's upper bound for -t (its MAXSTREAMS) and for the lines in the file of -+m.
	maxProcesses = 1024
	// maxRecord is the size of iozone's buffer, which is in its message about a larger record.
	maxRecord = 16 << 20
)

// check parses the parameters of a point, and refuses values that iozone refuses or would silently replace.
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
		return out, benchmarks.InvalidPoint("%s: %s is larger than 16Mi, the largest record of iozone", recordSize, record)
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
	// More clients than the API's bound exceed the possible number of processes.
	if out.clients, err = count(clients, maxProcesses); err != nil {
		return out, err
	}
	if out.processes < out.clients {
		return out, benchmarks.InvalidPoint("%s: %d is less than %s (%d), so a client would have nothing to do", processes, out.processes, clients, out.clients)
	}
	return out, nil
}
