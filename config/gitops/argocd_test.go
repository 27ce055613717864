// Package gitops_test runs the health checks for Argo CD as Argo CD does: with gopher-lua, and the object in the global obj.
package gitops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

// checks are the scripts by kind.
func checks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("argocd-cm.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var config corev1.ConfigMap
	NewWithT(t).Expect(yaml.UnmarshalStrict(text, &config)).To(Succeed())
	out := map[string]string{}
	for key, script := range config.Data {
		const prefix = "resource.customizations.health.parallelfs.dev_"
		NewWithT(t).Expect(key).To(HavePrefix(prefix))
		out[key[len(prefix):]] = script
	}
	return out
}

// toLua is a value of JSON in Lua.
func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, v := range value {
			table.RawSetString(key, toLua(state, v))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, v := range value {
			table.Append(toLua(state, v))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	default:
		return lua.LNil
	}
}

// health is what Argo CD shows of an object: the status and the message.
func health(t *testing.T, script string, object any) (status, message string) {
	t.Helper()
	g := NewWithT(t)
	raw, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	var generic any
	g.Expect(json.Unmarshal(raw, &generic)).To(Succeed())
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", toLua(state, generic))
	g.Expect(state.DoString(script)).To(Succeed())
	result, is := state.Get(-1).(*lua.LTable)
	g.Expect(is).To(BeTrue(), "it returns no table")
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: kind + " shows why"}
}

func TestArgoCDShowsWhatTheConditionsOfAFileSystemSay(t *testing.T) {
	script := checks(t)["FileSystem"]
	for name, c := range map[string]struct {
		conditions      []metav1.Condition
		observed        int64
		status, message string
	}{
		"one that nobody has looked at":   {nil, 0, "Progressing", "the operator has not looked at it yet"},
		"one whose spec has changed":      {[]metav1.Condition{condition("Ready", "True", "Healthy")}, 1, "Progressing", "the operator has not looked at the last change yet"},
		"one that is Ready":               {[]metav1.Condition{condition("Ready", "True", "Healthy")}, 2, "Healthy", "Ready shows why"},
		"one that lacks a disk":           {[]metav1.Condition{condition("Ready", "True", "DegradedService"), condition("Degraded", "True", "TargetsNotReady")}, 2, "Healthy", "Degraded shows why"},
		"one that is not Ready":           {[]metav1.Condition{condition("Ready", "False", "MetadataOffline")}, 2, "Degraded", "Ready shows why"},
		"one that waits for a person":     {[]metav1.Condition{condition("Ready", "True", "Healthy"), condition("Stalled", "True", "InvalidSpec")}, 2, "Degraded", "Stalled shows why"},
		"one on which the operator works": {[]metav1.Condition{condition("Ready", "False", "Starting"), condition("Reconciling", "True", "Starting")}, 2, "Progressing", "Reconciling shows why"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.FileSystemStatus{Conditions: c.conditions, ObservedGeneration: c.observed}}
			status, message := health(t, script, fs)
			NewWithT(t).Expect([]string{status, message}).To(Equal([]string{c.status, c.message}))
		})
	}
}

func TestArgoCDShowsHowABenchmarkRunEnded(t *testing.T) {
	script := checks(t)["BenchmarkRun"]
	for want, c := range map[string]metav1.Condition{
		"Healthy":     condition("Succeeded", "True", v1alpha1.ReasonAllPointsSucceeded),
		"Degraded":    condition("Succeeded", "False", v1alpha1.ReasonPointsFailed),
		"Suspended":   condition("Succeeded", "Unknown", v1alpha1.ReasonSuspended),
		"Progressing": condition("Succeeded", "Unknown", v1alpha1.ReasonQueued),
	} {
		status, _ := health(t, script, &v1alpha1.BenchmarkRun{Status: v1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{c}}})
		NewWithT(t).Expect(status).To(Equal(want))
	}
}

func TestArgoCDHasTheSameCheckForEveryKindWithConditions(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../crd/bases/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var definition apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.Unmarshal(text, &definition)).To(Succeed())
		if _, has := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]; has {
			kinds = append(kinds, definition.Spec.Names.Kind)
		}
	}
	all := checks(t)
	g.Expect(all).To(HaveLen(len(kinds)))
	for _, kind := range kinds {
		g.Expect(all).To(HaveKeyWithValue(kind, all["FileSystem"]))
	}
}
