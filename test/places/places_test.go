package places_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/places"
)

func TestAllPlacesAreUsedOnRequest(t *testing.T) {
	t.Setenv("KILLS", "all")
	g := NewWithT(t)
	g.Expect(places.Kills.Of(t, 9)).To(Equal([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}))
	g.Expect(places.Contracts.Of(t, 9)).To(HaveLen(6), "of another kind nobody asks for all")
}

func TestAFewPlacesAreSpreadOverAll(t *testing.T) {
	t.Setenv("KILLS", "")
	t.Setenv("PARALLELFS_SEED", "")
	g := NewWithT(t)
	chosen := places.Kills.Of(t, 600)
	g.Expect(chosen).To(HaveLen(6))
	for part, place := range chosen {
		g.Expect(place / 100).To(Equal(part))
	}
	g.Expect(places.Kills.Of(t, 600)).To(Equal(chosen), "the places of a test stay the same in a run")
	g.Expect(places.Kills.Of(t, 4)).To(Equal([]int{0, 1, 2, 3}))
	g.Expect(places.Kills.Of(t, 0)).To(BeEmpty())
}

func TestASeedChoosesTheSamePlacesAgainAndEachPlaceIsChosenByOne(t *testing.T) {
	t.Setenv("KILLS", "")
	g, seen := NewWithT(t), map[int]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"} {
		t.Setenv("PARALLELFS_SEED", seed)
		chosen := places.Kills.Of(t, 20)
		g.Expect(places.Kills.Of(t, 20)).To(Equal(chosen))
		g.Expect(slices.IsSorted(chosen)).To(BeTrue())
		for _, place := range chosen {
			seen[place] = true
		}
	}
	g.Expect(seen).To(HaveLen(20))
}
