package v1alpha1

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
