package iozone

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// Command returns iozone in its throughput mode, with exactly the options that spec.iozone asks for.
func (Tool) Command(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Command, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Command{}, err
	}
	o := options(spec)
	// -t: throughput of that many processes; -r and -s: sizes of a record and of each process's file, in kilobytes.
	argv := []string{
		"iozone", "-t", fmt.Sprint(s.processes),
		"-r", fmt.Sprintf("%dk", s.record/benchmarks.Kilo), "-s", fmt.Sprintf("%dk", s.file/benchmarks.Kilo),
	}
	for _, test := range o.Tests {
		// -i: a test to run; 0 write and rewrite, 1 read and re-read, 2 random read and random write.
		argv = append(argv, "-i", map[v1alpha1.IOzoneTest]string{
			v1alpha1.IOzoneWrite: "0", v1alpha1.IOzoneRead: "1", v1alpha1.IOzoneRandom: "2",
		}[test])
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"-I", o.DirectIO},     // O_DIRECT
		{"-e", o.IncludeFlush}, // fsync counts
		{"-c", o.IncludeClose}, // close counts
		{"-T", o.UseThreads},   // POSIX threads
		{"-+n", o.NoRetest},    // no rewrite, no re-read
	} {
		if option.set {
			argv = append(argv, option.name)
		}
	}
	out := benchmarks.Command{Argv: argv, Clients: s.clients, Processes: s.processes}
	if o.Mode == v1alpha1.IOzoneDistributed {
		out.Distributed = true
		// -+m: a file with one line per process, of its client, its directory there and the path of iozone there;
		// -+h: the address at which those processes find this one. They are started with rsh unless RSH says otherwise;
		// some versions read the name in small letters.
		out.Argv = append(out.Argv, "-+m", "$(HOSTS_FILE)", "-+h", "$(LAUNCHER_IP)")
		out.Env = []string{"RSH=ssh", "rsh=ssh"}
		out.HostLine = "$(HOST) $(DIRECTORY) /usr/bin/iozone"
	}
	return out, nil
}
