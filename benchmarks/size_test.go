package benchmarks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
)

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, test := range map[string]struct {
		bytes int64
		// written is the size in the largest unit that divides it.
		written string
	}{
		"1":           {1024, "1Ki"},
		"64k":         {65536, "64Ki"},
		"1024":        {1 << 20, "1Mi"},
		"1000k":       {1024000, "1000Ki"},
		"2048k":       {2 << 20, "2Mi"},
		"1536m":       {1536 << 20, "1536Mi"},
		"1024m":       {1 << 30, "1Gi"},
		"4096g":       {4 << 40, "4096Gi"},
		"64Ki":        {65536, "64Ki"},
		"1024Mi":      {1 << 30, "1Gi"},
		"8589934591g": {8589934591 << 30, "8589934591Gi"},
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
		"1K": "is no size", "1t": "is no size", "1kk": "is no size", "1 k": "is no size", "1Ti": "is no size", "1ki": "is no size", "1mi": "is no size", "1KiB": "is no size", "1_0k": "is no size", "0x1k": "is no size",
		"1000000000000k": "is no size", "8589934592g": "is too large",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := benchmarks.ParseSize(text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
		})
	}
}

func TestBytesAreReadAndWritten(t *testing.T) {
	for text, test := range map[string]struct {
		bytes   int64
		written string
	}{
		"0":        {0, "0"},
		"1":        {1, "1"},
		"1000":     {1000, "1000"},
		"1024":     {1024, "1Ki"},
		"4k":       {4096, "4Ki"},
		"1536k":    {1536 << 10, "1536Ki"},
		"1024k":    {1 << 20, "1Mi"},
		"128g":     {128 << 30, "128Gi"},
		"4Ki":      {4096, "4Ki"},
		"1Ti":      {1 << 40, "1Ti"},
		"8388607t": {8388607 << 40, "8388607Ti"},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(benchmarks.ParseBytes(text)).To(Equal(test.bytes))
			g.Expect(benchmarks.FormatBytes(test.bytes)).To(Equal(test.written))
			g.Expect(benchmarks.ParseBytes(test.written)).To(Equal(test.bytes))
		})
	}
}

func TestBytesAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"": "is no number of bytes", "k": "is no number of bytes", "00": "is no number of bytes", "0k": "is no number of bytes", "01": "is no number of bytes",
		"-1": "is no number of bytes", "+1": "is no number of bytes", "1.5m": "is no number of bytes", "1K": "is no number of bytes", "1p": "is no number of bytes", "1ki": "is no number of bytes", "0Ki": "is no number of bytes", "Ki": "is no number of bytes",
		"1_0": "is no number of bytes", "0x10": "is no number of bytes", "1 k": "is no number of bytes", "1000000000000000": "is no number of bytes",
		"8388608t": "is too large",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := benchmarks.ParseBytes(text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
		})
	}
}

func TestValuesAreReadByTheirKinds(t *testing.T) {
	for name, test := range map[string]struct {
		parameter benchmarks.Parameter
		text      string
		want      int64
		says      string
	}{
		"a count":              {benchmarks.Parameter{Kind: benchmarks.Count}, "12", 12, ""},
		"no count":             {benchmarks.Parameter{Kind: benchmarks.Count}, "0", 0, `"0" is no whole number of at least 1`},
		"a number":             {benchmarks.Parameter{Kind: benchmarks.Number}, "0", 0, ""},
		"no number":            {benchmarks.Parameter{Kind: benchmarks.Number}, "-1", 0, `"-1" is no whole number of at least 0`},
		"a size of iozone":     {benchmarks.Parameter{Kind: benchmarks.Size}, "4Ki", 4096, ""},
		"a size without unit":  {benchmarks.Parameter{Kind: benchmarks.Size}, "4", 0, `"4" is no size`},
		"a size in m":          {benchmarks.Parameter{Kind: benchmarks.Size}, "64m", 0, `"64m" has a unit with two meanings; write 64Mi`},
		"bytes in k":           {benchmarks.Parameter{Kind: benchmarks.Bytes}, "4k", 0, `"4k" has a unit with two meanings; write 4Ki`},
		"bytes in Ti":          {benchmarks.Parameter{Kind: benchmarks.Bytes}, "1Ti", 1 << 40, ""},
		"a size in bytes":      {benchmarks.Parameter{Kind: benchmarks.Bytes}, "4", 4, ""},
		"any word":             {benchmarks.Parameter{Kind: benchmarks.Word}, "x", 0, ""},
		"no word":              {benchmarks.Parameter{Kind: benchmarks.Word, Name: "storagePool"}, "", 0, "storagePool needs a word"},
		"one of some words":    {benchmarks.Parameter{Kind: benchmarks.Word, Words: []string{"a", "b"}}, "b", 0, ""},
		"none of those words":  {benchmarks.Parameter{Kind: benchmarks.Word, Words: []string{"a", "b"}}, "c", 0, `"c" is none of a, b`},
		"a number with digits": {benchmarks.Parameter{Kind: benchmarks.Number}, "999999999999", 999999999999, ""},
		"one digit too many":   {benchmarks.Parameter{Kind: benchmarks.Number}, "1000000000000", 0, "with at most 12 digits"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := benchmarks.ParseValue(test.parameter, test.text)
			if test.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestNumbersAreWrittenByTheirKinds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(benchmarks.FormatValue(benchmarks.Parameter{Kind: benchmarks.Count}, 2048)).To(Equal("2048"))
	g.Expect(benchmarks.FormatValue(benchmarks.Parameter{Kind: benchmarks.Number}, 0)).To(Equal("0"))
	g.Expect(benchmarks.FormatValue(benchmarks.Parameter{Kind: benchmarks.Size}, 2048)).To(Equal("2Ki"))
	g.Expect(benchmarks.FormatValue(benchmarks.Parameter{Kind: benchmarks.Bytes}, 2047)).To(Equal("2047"))
}
