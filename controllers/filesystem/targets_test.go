package filesystem

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEachItemIsPutWhereItBelongs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		from := random.Perm(random.IntN(10))
		items, want := make([]int, len(from)), make([]int, len(from))
		for i := range items {
			items[i] = i
		}
		copy(want, from)
		arrange(items, from)
		NewWithT(t).Expect(items).To(Equal(want))
	}
}
