package experiments

import (
	"errors"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Sizes of the disks for a reduced experiment: any disk of at least ReducedDisk, and for the external log of an XFS one of at most
// ReducedLog.
var (
	ReducedDisk = resource.MustParse("200Mi")
	ReducedLog  = resource.MustParse("150Mi")
)

// reducedMkfs maps arguments of mkfs that need more than a small disk has to their replacements: a journal of 400 MiB, a log of 520,000
// blocks.
var reducedMkfs = map[v1alpha1.MkfsOption]v1alpha1.MkfsOption{
	"size=400":             "size=8",
	"su=128k,size=520000b": "su=128k,size=16384b",
}

// reducedVariants is the number of variants of a reduced suite.
const reducedVariants = 2

// reducedDisks is the maximum number of disks of a storage server in a reduced experiment.
const reducedDisks = 2

// Reduce makes a whole experiment fit on a small cluster: its filesystem, its runs, and the first two variants of a suite. It selects the
// disks whose names match one of the globs, or any disk without globs.
func Reduce(e *Experiment, disks ...v1alpha1.Glob) error {
	if e.FileSystem != nil {
		reduceFileSystem(&e.FileSystem.Spec, disks)
	}
	for i := range e.Runs {
		reduceRun(&e.Runs[i].Spec)
	}
	if e.Suite == nil {
		return nil
	}
	spec := &e.Suite.Spec
	spec.Variants = spec.Variants[:min(len(spec.Variants), reducedVariants)]
	errs := []error{changed(&spec.FileSystem, func(fs *v1alpha1.FileSystemSpec) { reduceFileSystem(fs, disks) })}
	for i := range spec.Variants {
		if patch := spec.Variants[i].FileSystem; patch != nil {
			errs = append(errs, changed(patch, func(patch *map[string]any) { reducePatch(patch, disks) }))
		}
		if patch := spec.Variants[i].Run; patch != nil {
			errs = append(errs, changed(patch, func(run *map[string]any) { (*run)["processes"] = (i + 1) * 2 }))
		}
	}
	for i := range spec.Runs {
		errs = append(errs, changed(&spec.Runs[i].Spec, reduceRun))
	}
	return errors.Join(errs...)
}

// reduceFileSystem makes a filesystem fit on small disks and one network. It reduces the sizes and numbers of disks, removes the names of
// disks and interfaces, and assumes one socket. Everything else stays, including the configurations of the daemons.
func reduceFileSystem(spec *v1alpha1.FileSystemSpec, disks []v1alpha1.Glob) {
	spec.Network = nil
	if spec.BeeGFS != nil {
		spec.BeeGFS.RDMA = v1alpha1.RDMADisabled
	}
	if pinning := spec.MetadataServers.CPUPinning; pinning != nil {
		for i := range pinning.NUMANodes {
			pinning.NUMANodes[i] = 0
		}
	}
	targets := []*v1alpha1.TargetsSpec{&spec.MetadataServers.Targets}
	if m := spec.Management(); m != nil {
		targets = append(targets, m.Targets)
	}
	for i := range spec.StoragePools {
		pool := &spec.StoragePools[i].Targets
		if pool.Select != nil {
			pool.Select.CountPerNode = min(pool.Select.CountPerNode, reducedDisks)
		}
		targets = append(targets, pool)
	}
	for _, t := range targets {
		reduceTargets(t, disks)
	}
}

func reduceTargets(t *v1alpha1.TargetsSpec, disks []v1alpha1.Glob) {
	if t.Select != nil {
		t.Select.MinSize, t.Select.IDGlobs = ReducedDisk, disks
	}
	if t.Format == nil {
		return
	}
	for i, option := range t.Format.MkfsOptions {
		if reduced, ok := reducedMkfs[option]; ok {
			t.Format.MkfsOptions[i] = reduced
		}
	}
	if logs := t.Format.LogDevices; logs != nil {
		logs.MaxSize, logs.IDGlobs = ReducedLog, disks
		logs.CountPerNode = min(logs.CountPerNode, reducedDisks)
	}
}

// reducePatch reduces a variant's disks in the same way.
func reducePatch(patch *map[string]any, disks []v1alpha1.Glob) {
	reduce := func(of any, most int) {
		holder, _ := of.(map[string]any)
		targets, _ := holder["targets"].(map[string]any)
		selection, is := targets["select"].(map[string]any)
		if !is {
			return
		}
		selection["minSize"], selection["idGlobs"] = ReducedDisk.String(), disks
		if count, is := selection["countPerNode"].(float64); is {
			selection["countPerNode"] = min(int(count), most)
		}
	}
	reduce((*patch)["metadataServers"], math.MaxInt)
	pools, _ := (*patch)["storagePools"].([]any)
	for _, pool := range pools {
		reduce(pool, reducedDisks)
	}
}

// OnLustre sets the version of a Lustre experiment to that of the modules on the nodes.
func OnLustre(e *Experiment, lustre string) error {
	expect := func(fs *v1alpha1.FileSystemSpec) {
		if fs.Type == v1alpha1.Lustre {
			fs.Version = lustre
		}
	}
	if e.FileSystem != nil {
		expect(&e.FileSystem.Spec)
	}
	if e.Suite == nil {
		return nil
	}
	return changed(&e.Suite.Spec.FileSystem, expect)
}

// Upper bounds of a reduced run.
const (
	reducedProcesses   = 4
	reducedClients     = 2
	reducedRepetitions = 3
	reducedValues      = 2
	reducedBranch      = 8
	reducedDepth       = 2
)

// reducedNumbers replaces the numbers in a run's expressions, so that they are divisible by the reduced numbers of processes as the
// published ones are by theirs.
var reducedNumbers = strings.NewReplacer("840960", "1168", "480000", "40", "512", "8", "16 *", "2 *", "4 *", "2 *")

// reduceRun reduces a run from hours to seconds: few processes, few items, small files, and the first values of each sweep. The arithmetic
// and the measured operations stay.
func reduceRun(spec *v1alpha1.BenchmarkRunSpec) {
	spec.Clients.Count = min(spec.Clients.Count, reducedClients)
	// A small cluster has fewer CPUs than processes.
	spec.Clients.Oversubscribe = true
	spec.Processes = min(spec.Processes, reducedProcesses)
	spec.Repetitions = min(spec.Repetitions, reducedRepetitions)
	for i := range spec.Sweep {
		s := &spec.Sweep[i]
		switch {
		case s.Name == "postmark.files":
			s.Values = []v1alpha1.SweepValue{"20", "40"}
		case s.Name == "processes":
			s.Values, s.Range, s.PowersOfTwo = nil, nil, &v1alpha1.SweepPowers{From: "1", To: "2"}
		case len(s.Values) > reducedValues:
			s.Values = s.Values[:reducedValues]
		}
	}
	for i := range spec.Derive {
		spec.Derive[i].CEL = reducedNumbers.Replace(spec.Derive[i].CEL)
	}
	if m := spec.Mdtest; m != nil {
		m.Items, m.Iterations, m.Branch, m.Depth = min(m.Items, 6), min(m.Iterations, 2), min(m.Branch, reducedBranch), min(m.Depth, reducedDepth)
	}
	if p := spec.Postmark; p != nil {
		p.Transactions, p.SizeLow, p.SizeHigh, p.ReadSize, p.WriteSize = 40, "1024", "8192", "1024", "1024"
	}
	if n := spec.Netmist; n != nil {
		n.RunSeconds, n.WarmUpSeconds = 5, 5
	}
	if s := spec.MDSSurvey; s != nil {
		s.ThreadsLow, s.ThreadsHigh, s.FileCount, s.DirCount = 4, 8, 400, 4
	}
	if o := spec.IOR; o != nil {
		o.BlockSize, o.TransferSize = "4Mi", "1Mi"
	}
	if o := spec.IOzone; o != nil {
		// Processes on several clients don't start at the same time. A process that has ended before another has started is not counted in the
		// throughput.
		if o.FileSize = "4Mi"; o.Mode == v1alpha1.IOzoneDistributed {
			o.FileSize = "16Mi"
		}
		for i := range spec.Sweep {
			if p := spec.Sweep[i].PowersOfTwo; p != nil {
				p.To = "2"
			}
		}
	}
	if o := spec.Vdbench; o != nil {
		o.Files, o.FileSize, o.TransferSize, o.ThreadsPerClient = 16, "64Ki", "64Ki", 2
	}
}
