package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestCountsHaveTheWordsOfTheirNumber(t *testing.T) {
	g := NewWithT(t)
	g.Expect(v1alpha1.Count(1, "disk is", "disks are")).To(Equal("1 disk is"))
	g.Expect(v1alpha1.Count(int64(2), "disk is", "disks are")).To(Equal("2 disks are"))
	for _, c := range []struct {
		n, all int
		text   string
	}{
		{0, 3, "no target is"},
		{1, 1, "the target is"},
		{1, 3, "1 of 3 targets is"},
		{2, 3, "2 of 3 targets are"},
		{3, 3, "all 3 targets are"},
	} {
		g.Expect(v1alpha1.CountOf(c.n, c.all, "target", "targets", "is", "are")).To(Equal(c.text))
	}
}
