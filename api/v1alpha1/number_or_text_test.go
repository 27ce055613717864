package v1alpha1_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAValueOfASweepIsWrittenWithAndWithoutQuotes(t *testing.T) {
	for written, want := range map[string]string{
		`4`: "4", `"4"`: "4", `"64k"`: "64k", `"007"`: "007", `0`: "0", `18446744073709551616`: "18446744073709551616",
	} {
		g := NewWithT(t)
		var value v1alpha1.SweepValue
		g.Expect(json.Unmarshal([]byte(written), &value)).To(Succeed(), written)
		g.Expect(string(value)).To(Equal(want), written)
		g.Expect(json.Marshal(value)).To(MatchJSON(`"`+want+`"`), "documents of results have it in quotes")
	}
}

func TestTheMemberOfARunNamesItsTool(t *testing.T) {
	for written, want := range map[string]v1alpha1.BenchmarkTool{
		`{"iozone": {}}`: v1alpha1.ToolIOzone, `{"mdtest": {}}`: v1alpha1.ToolMdtest, `{"ior": {}}`: v1alpha1.ToolIOR,
		`{"fio": {}}`: v1alpha1.ToolFio, `{"postmark": {}}`: v1alpha1.ToolPostmark, `{"vdbench": {}}`: v1alpha1.ToolVdbench,
		`{"netmist": {}}`: v1alpha1.ToolNetmist, `{"mdsSurvey": {}}`: v1alpha1.ToolMDSSurvey,
		`{"obdfilterSurvey": {}}`: v1alpha1.ToolOBDFilterSurvey, `{"storagebench": {}}`: v1alpha1.ToolStoragebench,
		`{"custom": {}}`: v1alpha1.ToolCustom, `{"tool": "fio", "fio": {}}`: v1alpha1.ToolFio, `{"tool": "fio"}`: v1alpha1.ToolFio, `{}`: "",
	} {
		var spec v1alpha1.BenchmarkRunSpec
		g := NewWithT(t)
		g.Expect(json.Unmarshal([]byte(written), &spec)).To(Succeed())
		g.Expect(spec.ToolName()).To(Equal(want), written)
	}
}
