package custom_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/custom"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// mebibyte is the unit of the sizes below, and most the largest document that jsonPath reads.
const (
	mebibyte = 1 << 20
	most     = 1 * mebibyte
)

// document returns a JSON document of at most size bytes with a number "m" and as many copies of one element as fit.
func document(element string, size int) []byte {
	out := bytes.NewBufferString(`{"m":1,"all":[`)
	for out.Len()+2*len(element)+3 < size {
		out.WriteString(element + ",")
	}
	out.WriteString(element + "]}")
	return out.Bytes()
}

// The total allocation during a read is an upper bound of the heap's growth, whenever the garbage is collected. The manager has 256 MiB.
func TestReadingAJSONDocumentTakesLittleMemoryWhateverIsInIt(t *testing.T) {
	one, every := run(1, metrics(path("m", "ms", "{.m}"))), run(1, metrics(path("m", "ms", "{.m}")))
	for i := range 31 {
		every.Custom.Metrics = append(every.Custom.Metrics, path("m"+string(rune('a'+i)), "ms", "{.m}"))
	}
	for name, element := range map[string]string{
		"numbers": "1.5e-300", "texts": `"12345678"`, "empty objects": "{                }", "objects of one member": `{"1234567890":1234567890}`,
		"lists": "[                ]", "nested lists": "[[[[[[1                                                  ]]]]]]",
	} {
		for _, size := range []int{most, 16 * mebibyte} {
			t.Run(fmt.Sprintf("%d MiB of %s", size/mebibyte, name), func(t *testing.T) {
				g := NewWithT(t)
				text := document(element, size)
				for _, spec := range []struct {
					of    string
					parse func() error
				}{
					{"1 metric", func() error {
						_, err := custom.Tool{}.Parse(one, tooltest.Point(t, custom.Tool{}, one), 0, text)
						return err
					}},
					{"32 metrics", func() error {
						_, err := custom.Tool{}.Parse(every, tooltest.Point(t, custom.Tool{}, every), 0, text)
						return err
					}},
				} {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					err := spec.parse()
					runtime.ReadMemStats(&after)
					took := (after.TotalAlloc - before.TotalAlloc) / mebibyte
					t.Logf("%s, %d MiB of %s: %d MiB", spec.of, size/mebibyte, name, took)
					if size <= most {
						g.Expect(err).NotTo(HaveOccurred())
						g.Expect(took).To(BeNumerically("<=", 64))
					} else {
						g.Expect(err).To(MatchError(ContainSubstring("a jsonPath reads at most 1 MiB, and the output has 16 MiB: have the program print less, or find the number by a regex")))
						g.Expect(took).To(BeZero())
					}
				}
			})
		}
	}
}
