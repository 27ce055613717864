package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestSizesAreWrittenInBinaryUnits(t *testing.T) {
	for n, text := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 960 << 20: "960MiB", 12<<40 + 1<<39: "12.5TiB", 1<<63 - 1: "8EiB",
	} {
		NewWithT(t).Expect(v1alpha1.Bytes(n)).To(Equal(text))
	}
}

func TestATextIsCutAtTheEndOfALetter(t *testing.T) {
	for text, cut := range map[string]string{
		"short":         "short",
		"exactly10!":    "exactly10!",
		"eleven bytes":  "eleven …",
		"ääääää":        "äää…",
		"not\xffUTF-8!": "not?UTF-8!",
	} {
		NewWithT(t).Expect(v1alpha1.Cut(text, 10)).To(Equal(cut))
	}
}
