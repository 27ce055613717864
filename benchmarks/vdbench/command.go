package vdbench

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// home is the directory of vdbench in the image, on the launcher and the clients. Its script searches for its parts in its own directory,
// so a link in PATH is not enough.
const home = "/opt/vdbench"

// Files in the launcher that the parameter file includes. vdbench requires all hosts first, then all trees, then all workloads.
const (
	treesFile     = "/tmp/parallelfs-vdbench-trees"
	workloadsFile = "/tmp/parallelfs-vdbench-workloads"
)

// outputDirectory is the directory in the launcher for vdbench's other reports.
const outputDirectory = "/tmp/parallelfs-vdbench-output"

// longest is a time limit that no run reaches: without one, vdbench ends a run after 30 s.
const longest = 604800

// owned lists options that args must not set.
var owned = map[string]string{
	"-f": "the operator (the parameter file)", "-t": "the operator (the workload)", "-s": "the operator (nothing is simulated)",
	"-o": "the operator (the report)", "-w": "the operator (the report)", "-h": "the operator (the report)",
	"-e": "vdbench.elapsedSeconds", "-i": "the operator (an interval of 1 s)",
}

// Plan returns vdbench with a parameter file made from spec.vdbench: one host, tree and workload for each client, and a run for each
// operation. Files are created by formatting the trees, which writes them completely; vdbench's own operation "create" leaves them empty.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	argv := []string{home + "/vdbench", "-f", "$(HOSTS_FILE)", "-o", outputDirectory}
	for _, arg := range o.Args {
		argv = append(argv, string(arg))
	}
	// Each client has the directories of its tree, their parent, and a file of vdbench's own.
	inodes := int64(s.clients) * (s.total + s.directories + 2)
	return benchmarks.Plan{
		Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnLauncher, Argv: argv, Files: parameterFiles(o, s), Programs: []string{"java", "ssh"},
		}}},
		Clients: s.clients, Processes: s.clients, Demand: benchmarks.Demand{Bytes: int64(s.clients) * s.total * s.size, Inodes: inodes},
	}, nil
}

// parameterFiles returns the parameter file and the files that it includes.
func parameterFiles(o v1alpha1.VdbenchSpec, s settings) []benchmarks.File {
	var flags []string
	if o.DirectIO {
		flags = append(flags, "o_direct")
	}
	tree := fmt.Sprintf("fsd=fsd$(INDEX),anchor=$(DIRECTORY)/client$(INDEX),depth=%d,width=%d,files=%d,size=%d%s\n",
		o.Depth, o.Width, s.files, s.size, openFlags(flags))
	if o.SyncWrites {
		flags = append(flags, "o_sync")
	}
	load := fmt.Sprintf("xfersize=%d,threads=%d", s.transfer, s.threads)
	// The creation of files takes their sizes from the workload with the name format.
	workloads := benchmarks.File{Path: workloadsFile, Text: "fwd=format," + load + "\n"}
	runs := []string{fmt.Sprintf("rd=create,fwd=read*,fwdrate=max,format=only,elapsed=%d,interval=1\n", longest)}
	once, elapsed := ",once", longest
	if o.ElapsedSeconds > 0 {
		once, elapsed = "", int(o.ElapsedSeconds)
	}
	for _, operation := range []v1alpha1.VdbenchOperation{v1alpha1.VdbenchRead, v1alpha1.VdbenchWrite} {
		name := strings.ToLower(string(operation))
		extra := ""
		if operation == v1alpha1.VdbenchWrite {
			extra = openFlags(flags)
		}
		workloads.PerHost += fmt.Sprintf("fwd=%s$(INDEX),fsd=fsd$(INDEX),host=client$(INDEX),operation=%s,fileio=sequential,fileselect=(sequential%s),%s%s\n",
			name, name, once, load, extra)
		if slices.Contains(o.Operations, operation) {
			runs = append(runs, fmt.Sprintf("rd=%s,fwd=%s*,fwdrate=max,format=no,elapsed=%d,interval=1\n", name, name, elapsed))
		}
	}
	return []benchmarks.File{
		{
			Text:    "hd=default,shell=ssh,user=root,vdbench=" + home + ",jvms=1\n",
			PerHost: "hd=client$(INDEX),system=$(HOST)\n",
			End:     "include=" + treesFile + "\ninclude=" + workloadsFile + "\n" + strings.Join(runs, ""),
		},
		{Path: treesFile, PerHost: tree},
		workloads,
	}
}

// openFlags returns the parameter with that name, or nothing without flags.
func openFlags(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return ",openflags=(" + strings.Join(flags, ",") + ")"
}
