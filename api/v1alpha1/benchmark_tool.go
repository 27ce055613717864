package v1alpha1

// BenchmarkTool names a benchmark.
// +kubebuilder:validation:Enum=iozone;mdtest;ior;fio;postmark;vdbench;netmist;mdsSurvey;obdfilterSurvey;storagebench;custom
type BenchmarkTool string

// The benchmarks.
const (
	// ToolIOzone is the IOzone filesystem benchmark (iozone.org).
	ToolIOzone BenchmarkTool = "iozone"
	// ToolMdtest measures metadata with MPI (github.com/hpc/ior).
	ToolMdtest BenchmarkTool = "mdtest"
	// ToolIOR measures bandwidth with MPI (github.com/hpc/ior).
	ToolIOR BenchmarkTool = "ior"
	// ToolFio is the flexible I/O tester (github.com/axboe/fio).
	ToolFio BenchmarkTool = "fio"
	// ToolPostmark works on small files as a mail server does (NetApp TR-3022).
	ToolPostmark BenchmarkTool = "postmark"
	// ToolVdbench is Oracle's Vdbench, in its filesystem mode.
	ToolVdbench BenchmarkTool = "vdbench"
	// ToolNetmist is the load generator of SPEC SFS 2014.
	ToolNetmist BenchmarkTool = "netmist"
	// ToolMDSSurvey measures a Lustre metadata server without clients (lustre-iokit).
	ToolMDSSurvey BenchmarkTool = "mdsSurvey"
	// ToolOBDFilterSurvey measures Lustre's object storage targets without clients (lustre-iokit).
	ToolOBDFilterSurvey BenchmarkTool = "obdfilterSurvey"
	// ToolStoragebench is the benchmark of BeeGFS's own storage servers, without clients.
	ToolStoragebench BenchmarkTool = "storagebench"
	// ToolCustom is any program of any image.
	ToolCustom BenchmarkTool = "custom"
)

// ToolName is the requested benchmark: spec.tool, or else the member with the name of a tool that is set. It is empty for a spec with
// neither, which the API server refuses.
func (s *BenchmarkRunSpec) ToolName() BenchmarkTool {
	if s.Tool != "" {
		return s.Tool
	}
	for _, member := range []struct {
		tool BenchmarkTool
		set  bool
	}{
		{ToolIOzone, s.IOzone != nil}, {ToolMdtest, s.Mdtest != nil}, {ToolIOR, s.IOR != nil}, {ToolFio, s.Fio != nil},
		{ToolPostmark, s.Postmark != nil}, {ToolVdbench, s.Vdbench != nil}, {ToolNetmist, s.Netmist != nil},
		{ToolMDSSurvey, s.MDSSurvey != nil}, {ToolOBDFilterSurvey, s.OBDFilterSurvey != nil},
		{ToolStoragebench, s.Storagebench != nil}, {ToolCustom, s.Custom != nil},
	} {
		if member.set {
			return member.tool
		}
	}
	return ""
}
