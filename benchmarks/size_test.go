package benchmarks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
)

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, test := range map[string]struct {
		bytes int64
		// written is the size with the largest unit that divides it.
		written string
	}{
		"1":           {1024, "1k"},
		"64k":         {65536, "64k"},
		"1024":        {1 << 20, "1m"},
		"1000k":       {1024000, "1000k"},
		"2048k":       {2 << 20, "2m"},
		"1536m":       {1536 << 20, "1536m"},
		"1024m":       {1 << 30, "1g"},
		"4096g":       {4 << 40, "4096g"},
		"8589934591g": {8589934591 << 30, "8589934591g"},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(benchmarks.ParseSize(text)).To(Equal(test.bytes))
			g.Expect(benchmarks.FormatSize(test.bytes)).To(Equal(test.written))
		})
	}
}

func TestSizesAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"": "is no size", "k": "is no size", "0k": "is no size", "-1k": "is no size", "+1k": "is no size", "01k": "is no size", "1.5m": "is no size",
		"1K": "is no size", "1t": "is no size", "1kk": "is no size", "1 k": "is no size", "1_0k": "is no size", "0x1k": "is no size",
		"1000000000000k": "is no size", "8589934592g": "is too large",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := benchmarks.ParseSize(text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
		})
	}
}
