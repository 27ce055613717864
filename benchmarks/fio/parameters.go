package fio

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Names that a sweep can vary.
const (
	processes                         = benchmarks.ParameterProcesses
	clients                           = benchmarks.ParameterClients
	mode           v1alpha1.SweepName = "fio.mode"
	readPercent    v1alpha1.SweepName = "fio.readPercent"
	blockSize      v1alpha1.SweepName = "fio.blockSize"
	fileSize       v1alpha1.SweepName = "fio.fileSize"
	queueDepth     v1alpha1.SweepName = "fio.queueDepth"
	runtimeSeconds v1alpha1.SweepName = "fio.runtimeSeconds"
)

// modes lists the values of fio.mode.
var modes = []string{
	string(v1alpha1.FioRead), string(v1alpha1.FioWrite), string(v1alpha1.FioRandomRead), string(v1alpha1.FioRandomWrite),
	string(v1alpha1.FioReadWrite), string(v1alpha1.FioRandomReadWrite),
}

const (
	// maxProcesses is the upper bound of the API.
	maxProcesses = 65536
	maxDepth     = 65536
	maxSeconds   = 86400
	// maxBlock is the maximum block size, which fio stores in an int.
	maxBlock = 1<<31 - 1
)

// Parameters returns processes, clients, storagePool and the parameters in spec.fio. fio.queueDepth is left out for an engine that has only
// one read or write in flight.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	out := append(benchmarks.Common(spec),
		benchmarks.Parameter{Name: mode, Kind: benchmarks.Word, Value: string(o.Mode), Words: slices.Clone(modes)},
		benchmarks.Parameter{Name: readPercent, Kind: benchmarks.Count, Value: fmt.Sprint(o.ReadPercent)},
		benchmarks.Parameter{Name: blockSize, Kind: benchmarks.Bytes, Value: string(o.BlockSize)},
		benchmarks.Parameter{Name: fileSize, Kind: benchmarks.Bytes, Value: string(o.FileSize)},
		benchmarks.Parameter{Name: runtimeSeconds, Kind: benchmarks.Number, Value: fmt.Sprint(o.RuntimeSeconds)},
	)
	if asynchronous(o.Engine) {
		out = append(out, benchmarks.Parameter{Name: queueDepth, Kind: benchmarks.Count, Value: fmt.Sprint(o.QueueDepth)})
	}
	return out
}

// asynchronous is true for an engine that can have several reads and writes in flight.
func asynchronous(engine string) bool { return engine == "libaio" || engine == "io_uring" }

// options returns spec.fio with the defaults of the API, which the API server also fills in.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.FioSpec {
	var o v1alpha1.FioSpec
	if spec.Fio != nil {
		o = *spec.Fio
	}
	o.Mode = cmp.Or(o.Mode, v1alpha1.FioRead)
	o.ReadPercent = cmp.Or(o.ReadPercent, 50)
	o.BlockSize = cmp.Or(o.BlockSize, "4Ki")
	o.FileSize = cmp.Or(o.FileSize, "1Gi")
	o.Engine = cmp.Or(o.Engine, "psync")
	o.QueueDepth = cmp.Or(o.QueueDepth, 1)
	return o
}

// settings holds the checked parameters of a point.
type settings struct {
	clients, processes          int64
	mode                        v1alpha1.FioMode
	readPercent, depth, seconds int64
	block, file, jobs           int64
}

// reads and writes report what the mode measures.
func (s settings) reads() bool { return !strings.HasSuffix(string(s.mode), "write") || s.mixed() }
func (s settings) writes() bool {
	return strings.HasSuffix(string(s.mode), "write") || s.mixed()
}
func (s settings) mixed() bool {
	return s.mode == v1alpha1.FioReadWrite || s.mode == v1alpha1.FioRandomReadWrite
}

// check parses the parameters of a point, and refuses values that fio refuses or would silently replace.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	o := options(spec)
	v := benchmarks.ValuesOf(point)
	s := settings{
		clients: 1, processes: v.Number(processes, 1, maxProcesses),
		mode: v1alpha1.FioMode(v.Word(mode, modes...)), readPercent: v.Number(readPercent, 1, 99), depth: 1,
		seconds: v.Number(runtimeSeconds, 0, maxSeconds),
		block:   v.Bytes(blockSize, 1, maxBlock), file: v.Bytes(fileSize, 1, math.MaxInt64/maxProcesses),
	}
	if asynchronous(o.Engine) {
		s.depth = v.Number(queueDepth, 1, maxDepth)
	}
	switch {
	case v.Has(clients):
		s.clients = v.Number(clients, 1, maxProcesses)
	case s.processes > 1:
		v.Refuse("%s: fio is started once on each client, so their number has to be known: set spec.clients.count, or sweep clients", clients)
	}
	if err := v.Err(); err != nil {
		return s, err
	}
	asked := point.Parameters
	switch {
	case !asynchronous(o.Engine) && o.QueueDepth > 1:
		v.Refuse("%s: %d is more than the engine %s does, which has one under way at a time; take libaio or io_uring", queueDepth, o.QueueDepth, o.Engine)
	case s.file < s.block:
		v.Refuse("%s: %s is less than %s (%s), so no job could do a block", fileSize, asked[fileSize], blockSize, asked[blockSize])
	case s.file%s.block != 0:
		v.Refuse("%s: %s is no multiple of %s (%s); fio would leave out the rest", fileSize, asked[fileSize], blockSize, asked[blockSize])
	case o.RampSeconds > 0 && s.seconds == 0:
		v.Refuse("%s: fio.rampSeconds leaves out the start of a measurement by time, so it needs this too", runtimeSeconds)
	case s.processes < s.clients:
		v.Refuse("%s: %d is less than %s (%d), so a client would have nothing to do", processes, s.processes, clients, s.clients)
	case s.processes%s.clients != 0:
		v.Refuse("%s: %d can't be spread over %d %s: each runs one fio with as many jobs as the others; make it a multiple", processes, s.processes, s.clients, clients)
	}
	s.jobs = s.processes / s.clients
	checkArguments(v, o.Args)
	return s, v.Err()
}

// owned lists the options that other fields or this package set. It also lists options that change the output, the amount of work or its
// processes, because the result could not be checked.
var owned = map[string]string{
	"rw": "fio.mode", "readwrite": "fio.mode", "rwmixread": "fio.readPercent", "rwmixwrite": "fio.readPercent", "bs": "fio.blockSize",
	"blocksize": "fio.blockSize", "bsrange": "fio.blockSize", "blocksize_range": "fio.blockSize", "bssplit": "fio.blockSize",
	"size": "fio.fileSize", "io_size": "fio.fileSize", "io_limit": "fio.fileSize", "filesize": "fio.fileSize",
	"ioengine": "fio.engine", "iodepth": "fio.queueDepth",
	"direct": "fio.directIO", "buffered": "fio.directIO", "end_fsync": "fio.fsyncOnClose", "time_based": "fio.runtimeSeconds",
	"runtime": "fio.runtimeSeconds", "timeout": "fio.runtimeSeconds", "ramp_time": "fio.rampSeconds", "numjobs": "spec.processes",
	"name": "", "description": "", "directory": "", "filename": "", "filename_format": "", "opendir": "", "unlink": "",
	"group_reporting": "", "new_group": "", "output": "", "output-format": "", "minimal": "", "append-terse": "", "terse-version": "",
	"eta": "", "eta-newline": "", "eta-interval": "", "status-interval": "", "debug": "", "parse-only": "", "section": "", "client": "",
	"server": "", "remote-config": "", "daemonize": "", "stonewall": "", "wait_for": "", "wait_for_previous": "", "loops": "",
	"number_ios": "", "exec_prerun": "", "exec_postrun": "", "percentile_list": "", "clat_percentiles": "", "lat_percentiles": "",
	"disable_clat": "", "disable_lat": "", "gtod_reduce": "", "unified_rw_reporting": "", "kb_base": "", "unit_base": "", "trigger": "",
	"trigger-file": "", "trigger-timeout": "", "trigger-remote": "", "showcmd": "", "help": "", "version": "", "cmdhelp": "", "enghelp": "",
	"crctest": "", "cpuclock-test": "", "max-jobs": "", "readonly": "", "warnings-fatal": "", "include": "", "continue_on_error": "",
	"verify_only": "", "read_iolog": "", "create_only": "", "fill_device": "", "fill_fs": "", "zonemode": "", "steadystate": "",
	"steadystate_duration": "",
}

// checkArguments refuses arguments that set owned options. fio accepts an unambiguous prefix of an option (getopt_long_only(3)), so
// prefixes are refused as well.
func checkArguments(v *benchmarks.Values, args []v1alpha1.BenchmarkArgument) {
	for _, argument := range args {
		name, dashed := strings.CutPrefix(string(argument), "--")
		name, _, _ = strings.Cut(name, "=")
		if !dashed || name == "" {
			v.Refuse("fio.args: %q is no option: write each with its value in one, as --thinktime=1000; anything else names a job file", argument)
			return
		}
		for _, option := range slices.Sorted(maps.Keys(owned)) {
			field := owned[option]
			switch same := strings.ReplaceAll(name, "-", "_"); {
			case !strings.HasPrefix(strings.ReplaceAll(option, "-", "_"), same):
			case field != "":
				v.Refuse("fio.args: %q sets what %s sets; leave it out", argument, field)
			default:
				v.Refuse("fio.args: %q is set by the operator, or would change what it reads; leave it out", argument)
			}
		}
	}
}
