package custom_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/jsonpath"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/custom"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

func expression(text string) v1alpha1.CustomMetric {
	return v1alpha1.CustomMetric{Name: "m", Unit: "ms", Regex: text, Combine: v1alpha1.CustomSum}
}

func TestAnExpressionWithTooManyStatesIsRefusedWhenTheRunIsPlanned(t *testing.T) {
	for _, text := range []string{
		"(1)[^b]{1000}b", "(1)" + strings.Repeat("[1-3]{1000}", 21), "(1)(?:(?:a{10}){10}){10}", "(1)(?:x{3,}){300,}", "(1)" + strings.Repeat("[^b]{999}c", 20),
	} {
		t.Run(text[:min(len(text), 20)], func(t *testing.T) {
			g := NewWithT(t)
			spec := run(1, metrics(expression(text)))
			_, err := custom.Tool{}.Plan(spec, tooltest.Point(t, custom.Tool{}, spec))
			g.Expect(err).To(MatchError(ContainSubstring("its regex has more than 512 states")))
		})
	}
	g := NewWithT(t)
	spec := run(1, metrics(expression(`^ *write: IOPS=[0-9]{1,15}k?, BW=([0-9]{1,15}(?:\.[0-9]{1,6})?)MiB/s \([^)]*\)$`)))
	_, err := custom.Tool{}.Plan(spec, tooltest.Point(t, custom.Tool{}, spec))
	g.Expect(err).NotTo(HaveOccurred())
}

// The total allocation is an upper bound of the heap's growth.
func TestReadingAHostileOutputTakesLittle(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	fill := func(element string) string { return strings.Repeat(element, 16*mebibyte/len(element)) }
	sum := func(jsonPath string) v1alpha1.CustomMetric {
		return v1alpha1.CustomMetric{Name: "m", Unit: "ms", JSONPath: jsonPath, Combine: v1alpha1.CustomSum}
	}
	for name, c := range map[string]struct {
		metric v1alpha1.CustomMetric
		output string
		says   string
	}{
		"a path that doubles":              {sum("{" + strings.Repeat("[0,0]", 25) + "}"), strings.Repeat("[", 30) + "1" + strings.Repeat("]", 30), "finds more than 65536 values"},
		"a path that descends again":       {sum("{" + strings.Repeat("..a", 40) + "}"), nested(60), "finds more than 65536 values"},
		"a path with names twice":          {sum("{" + strings.Repeat("['a','a']", 20) + "}"), nested(60), "finds more than 65536 values"},
		"a path into a deep document":      {sum("{..a}"), nested(240), "nested deeper than 64 levels"},
		"a filter in a filter":             {sum("{[?(@..a)]..a}"), "[" + strings.Repeat(nested(60)+",", 1500) + "1]", "finds more than 65536 values"},
		"objects without end":              {sum("{.a}"), "[" + fill("{},"), "a jsonPath reads at most 1 MiB"},
		"small objects":                    {sum("{.a}"), "[" + strings.Repeat("{},", mebibyte/4) + "1]", "more than 131072 values"},
		"nested lists":                     {sum("{.a}"), strings.Repeat("[", mebibyte), "nested deeper than 64 levels"},
		"lines that each have the metric":  {expression("m ([0-9])"), fill("m 1\n"), "found more than 131072 times"},
		"an expression that looks far":     {expression("(1)[^b]{400}b"), fill("1"), "too long for the regular expressions"},
		"an expression of many characters": {expression("([1-3]{400})"), fill(strings.Repeat("1", 399) + "\n"), "too long for the regular expressions"},
		"output without the metric":        {expression("write ([0-9])"), fill("read 1\n"), "it was not found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := run(1, metrics(c.metric))
			point := tooltest.Point(t, custom.Tool{}, spec)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := custom.Tool{}.Parse(spec, point, 0, []byte(c.output))
			runtime.ReadMemStats(&after)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect((after.TotalAlloc - before.TotalAlloc) / mebibyte).To(BeNumerically("<=", 64))
		})
	}
	for _, text := range []string{"read ([0-9])", "(?:(?:(?:a|aa)*|b)*|(c))+$"} {
		t.Run("many metrics on empty lines: "+text, func(t *testing.T) {
			g := NewWithT(t)
			all := slices.Repeat([]v1alpha1.CustomMetric{expression(text)}, 32)
			for i := range all {
				all[i].Name = fmt.Sprintf("m%d", i)
			}
			spec := run(1, metrics(all...))
			_, err := custom.Tool{}.Parse(spec, tooltest.Point(t, custom.Tool{}, spec), 0, []byte(fill("\n")))
			g.Expect(err).To(MatchError(ContainSubstring("too long for the regular expressions")))
		})
	}
	t.Run("a document in each of many processes", func(t *testing.T) {
		g := NewWithT(t)
		spec := run(1, metrics(sum("{..a}")))
		spec.Custom.Launch, spec.Processes = v1alpha1.CustomPerProcess, 64
		var output strings.Builder
		for rank := range 64 {
			fmt.Fprintf(&output, "[rank %d] [%s{\"a\":1}]\n[rank %d ended with exit code 0]\n", rank, strings.Repeat("{},", 60000), rank)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := custom.Tool{}.Parse(spec, tooltest.Point(t, custom.Tool{}, spec), 0, []byte(output.String()))
		runtime.ReadMemStats(&after)
		g.Expect(err).To(MatchError(ContainSubstring("have the program print less")))
		g.Expect((after.TotalAlloc - before.TotalAlloc) / mebibyte).To(BeNumerically("<=", 64))
	})
}

func TestAPathFindsWhatThatOfKubectlFinds(t *testing.T) {
	const text = `{"jobs":[{"name":"a","read":{"iops":1.5,"bw":[1,2,3]},"ok":true},{"name":"b","read":{"iops":2.5,"bw":[4,5,6]},"ok":false}],"total":7,"none":null,"text":"8"}`
	var document any
	NewWithT(t).Expect(json.Unmarshal([]byte(text), &document)).To(Succeed())
	for _, path := range []string{
		"{.total}", "{.text}", "{.jobs[0].read.iops}", "{.jobs[*].read.iops}", "{.jobs[-1].read.iops}", "{.jobs[0:1].read.bw[1]}", "{.jobs[*].read.bw[0:3:2]}",
		"{.jobs[*].read.bw[-1:]}", "{..iops}", "{..bw[0]}", "{['total','text']}", "{.jobs[0,1].read.iops}", `{.jobs[?(@.name=="b")].read.iops}`,
		"{.jobs[?(@.read.iops>2.0)].read.iops}", "{.jobs[?(@.missing)].read.iops}", "{.jobs[0].read.bw[*]}", "{.total}{.text}", "{$.total}", "{.missing}", "{.jobs[7]}",
		"{.total[0]}", "{.none}", "{.jobs[*].name}", "{.jobs[1:1]}", "{.jobs[0].read.*}", "{.text[*]}",
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			library := jsonpath.New("m")
			g.Expect(library.Parse(path)).To(Succeed())
			var want []float64
			found, problem := library.FindResults(document)
			for _, results := range found {
				for _, result := range results {
					number, is := reflect.TypeAssert[float64](result)
					if result.Interface() == "8" {
						number, is = 8, true
					}
					if !is {
						problem = fmt.Errorf("%v is no number", result)
					}
					want = append(want, number)
				}
			}
			sum := 0.0
			for _, value := range want {
				sum += value
			}
			spec := run(1, metrics(v1alpha1.CustomMetric{Name: "m", Unit: "ms", JSONPath: path, Combine: v1alpha1.CustomSum}))
			report, err := custom.Tool{}.Parse(spec, tooltest.Point(t, custom.Tool{}, spec), 0, []byte(text))
			if problem != nil || len(want) == 0 {
				g.Expect(err).To(HaveOccurred())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(report.Samples[0].Value).To(BeNumerically("~", sum, 1e-9), "%v", slices.Sorted(slices.Values(want)))
		})
	}
}
