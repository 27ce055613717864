package experiments

import (
	"errors"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The sizes of the disks that a reduced experiment takes: any of at least ReducedDisk, and for the external log of an XFS one of
// at most ReducedLog.
var (
	ReducedDisk = resource.MustParse("200Mi")
	ReducedLog  = resource.MustParse("150Mi")
)

// reducedMkfs are the arguments of mkfs that ask for more than a small disk has, and what takes their place: a journal of 400 MiB,
// a log of 520,000 blocks.
var reducedMkfs = map[v1alpha1.MkfsOption]v1alpha1.MkfsOption{
	"size=400":             "size=8",
	"su=128k,size=520000b": "su=128k,size=16384b",
}

// reducedVariants is the number of variants of a reduced suite.
const reducedVariants = 2

// reducedDisks is the number of disks that a storage server of a reduced experiment has at most.
const reducedDisks = 2

// Reduce makes a whole experiment fit on a small cluster: its filesystem, its runs, and of a suite the first two variants. It takes
// the disks whose names match one of the globs, any if there is none.
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

// reduceFileSystem makes a filesystem fit on small disks and one network: the sizes and numbers of disks shrink, the names of disks and
// interfaces go; there is one socket. All else stays, and so do the configurations of the daemons.
func reduceFileSystem(spec *v1alpha1.FileSystemSpec, disks []v1alpha1.Glob) {
	spec.Network = nil
	if spec.BeeGFS != nil {
		spec.BeeGFS.RDMA = v1alpha1.RDMADisabled
	}
	if pinning := spec.Metadata.CPUPinning; pinning != nil {
		for i := range pinning.NUMANodes {
			pinning.NUMANodes[i] = 0
		}
	}
	targets := []*v1alpha1.TargetsSpec{&spec.Metadata.Targets}
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

// reducePatch makes what a variant says of its disks as small as the rest.
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
	reduce((*patch)["metadata"], math.MaxInt)
	pools, _ := (*patch)["storagePools"].([]any)
	for _, pool := range pools {
		reduce(pool, reducedDisks)
	}
}

// OnLustre has an experiment of a Lustre expect another version: that of the modules on the nodes.
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

// The largest numbers of a reduced run.
const (
	reducedProcesses   = 4
	reducedClients     = 2
	reducedRepetitions = 3
	reducedValues      = 2
	reducedBranch      = 8
	reducedDepth       = 2
)

// reducedNumbers take the places of the numbers in a run's expressions, so that they divide by the reduced numbers of processes as the
// published ones do by theirs.
var reducedNumbers = strings.NewReplacer("840960", "1168", "480000", "40", "512", "8", "16 *", "2 *", "4 *", "2 *")

// reduceRun makes a run that took hours one of seconds: few processes, items and small files, the first values of each sweep. Its
// arithmetic stays, and so does what is measured.
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
		o.BlockSize, o.TransferSize = "4m", "1m"
	}
	if o := spec.IOzone; o != nil {
		// Processes on several clients do not begin together: one that has ended before another began is in no throughput.
		if o.FileSize = "4m"; o.Mode == v1alpha1.IOzoneDistributed {
			o.FileSize = "16m"
		}
		for i := range spec.Sweep {
			if p := spec.Sweep[i].PowersOfTwo; p != nil {
				p.To = "2"
			}
		}
	}
	if o := spec.Vdbench; o != nil {
		o.Files, o.FileSize, o.TransferSize, o.ThreadsPerClient = 16, "64k", "64k", 2
	}
}
