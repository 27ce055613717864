package turns

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	rand "math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

func unpack(g *WithT, packed []byte) string {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(reader)
	g.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// noise returns text that does not compress.
func noise(size int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	out := make([]byte, size)
	_, _ = random.Read(out) // it never fails
	return out
}

// written returns an output that was written in parts.
func written(text []byte) *Raw {
	var raw Raw
	for part := range slices.Chunk(text, 32<<10) {
		_, _ = raw.Write(part) // it accepts everything
	}
	return &raw
}

func TestRawOutputIsKeptFromItsTwoEnds(t *testing.T) {
	text := noise(3 * maxRaw)
	for _, size := range []int{0, 1, maxRaw/2 - 1, maxRaw / 2, maxRaw/2 + 1, maxRaw - 1, maxRaw, maxRaw + 1, 2*maxRaw + 77, 3 * maxRaw} {
		t.Run(fmt.Sprintf("of %d bytes", size), func(t *testing.T) {
			g := NewWithT(t)
			text := text[:size]
			for _, limit := range []int{maxRaw, maxRaw / 2, 1000, 0} {
				want := text
				if size > limit {
					want = slices.Concat(text[:limit/2], fmt.Appendf(nil, "\n[... %d bytes were left out here ...]\n", size-limit), text[size-limit/2:])
				}
				g.Expect(bytes.Equal(written(text).cut(limit), want)).To(BeTrue(), "%d bytes are kept", limit)
			}
			raw := written(slices.Concat(text, []byte("parallelfs: printed\n")))
			raw.Drop(len("parallelfs: printed\n"))
			g.Expect(raw.Len()).To(Equal(size))
			g.Expect(bytes.HasSuffix(text, raw.End(1000))).To(BeTrue())
			g.Expect(raw.End(1000)).To(HaveLen(min(size, 1000)))
			g.Expect(cap(raw.first)+cap(raw.last)).To(BeNumerically("<=", 1<<20), "of an output of any length, little is in memory")
		})
	}
}

func TestAConfigMapHoldsARepetition(t *testing.T) {
	t.Run("whole, when it is small", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		g.Expect(Record{Point: 1, Repetition: 2}.AddTo(&cm, "rep-2", written([]byte("out\n")))).To(Succeed())
		g.Expect(unpack(g, cm.BinaryData["rep-2.txt.gz"])).To(Equal("out\n"))
		var entry Record
		g.Expect(json.Unmarshal([]byte(cm.Data["rep-2.json"]), &entry)).To(Succeed())
		g.Expect(entry).To(Equal(Record{Format: RecordFormat, Point: 1, Repetition: 2}))
	})
	t.Run("with its first and last part, and a word on what is missing, when it is large", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		raw := append(append([]byte("first"), bytes.Repeat([]byte("x"), 2*maxRaw)...), "last"...)
		g.Expect(Record{Repetition: 1}.AddTo(&cm, "rep-1", written(raw))).To(Succeed())
		kept := unpack(g, cm.BinaryData["rep-1.txt.gz"])
		g.Expect(kept).To(HavePrefix("firstx"))
		g.Expect(kept).To(HaveSuffix("xlast"))
		g.Expect(kept).To(ContainSubstring("bytes were left out here"))
		g.Expect(cm.Data["rep-1.json"]).To(ContainSubstring(fmt.Sprintf("of %d bytes of raw output were kept", len(raw))))
	})
	t.Run("with less and less of the output when many share it, but with all results", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		for repetition := 1; repetition <= 20; repetition++ {
			entry := Record{Repetition: repetition, Samples: []benchmarks.Sample{{Name: "write", Unit: "kB/s", Value: 1}}}
			g.Expect(entry.AddTo(&cm, fmt.Sprintf("rep-%d", repetition), written(noise(200<<10)))).To(Succeed())
		}
		size := 0
		for key, value := range cm.Data {
			size += len(key) + len(value)
		}
		for key, value := range cm.BinaryData {
			size += len(key) + len(value)
		}
		g.Expect(size).To(BeNumerically("<", 1<<20), "the API takes no more")
		g.Expect(cm.Data).To(HaveLen(20))
		g.Expect(cm.Data["rep-20.json"]).To(ContainSubstring("raw output was kept"))
	})
}

func TestOnlyTheRunsOwnConfigMapsCount(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "sweep", UID: "mine"}}
	held := func(owner types.UID, data map[string]string) corev1.ConfigMap {
		return corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "sweep-p000", OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: new(true)}}}, Data: data,
		}
	}
	t.Run("one of an older run of that name does not", func(t *testing.T) {
		g := NewWithT(t)
		found, err := DecodeRecords([]corev1.ConfigMap{held("other", map[string]string{"rep-1.json": `{"format":1,"point":0,"repetition":1,"attempt":1}`})}, run)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeEmpty())
	})
	t.Run("one that was damaged is named, with what to do", func(t *testing.T) {
		g := NewWithT(t)
		_, err := DecodeRecords([]corev1.ConfigMap{held("mine", map[string]string{"rep-1.json": `{`})}, run)
		g.Expect(err).To(MatchError(ContainSubstring("rep-1.json of ConfigMap sweep-p000 can't be understood")))
		g.Expect(err).To(MatchError(ContainSubstring("remove that key to run the repetition again")))
	})
}
