package filesystem

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

func TestItemsAreInOrderHoweverTheyLay(t *testing.T) {
	g, random := NewWithT(t), rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		items := make([]int, random.IntN(10)) //nolint:mnd // all orders of a few are tried
		for i := range items {
			items[i] = random.IntN(8) //nolint:mnd // some are equal
		}
		want := slices.Sorted(slices.Values(items))
		inOrder(items, func(a, b *int) int { return cmp.Compare(*a, *b) })
		g.Expect(items).To(HaveLen(len(want)))
		g.Expect(slices.Equal(items, want)).To(BeTrue(), "%v", items)
	}
}
