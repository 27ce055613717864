// Package places chooses the places at which a test kills or damages what it tests. Such a test shows one rule at each of many places. It
// takes a few of them in each run, and all of them when somebody asks for all.
package places

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Kind is what tests do at their places. It is the name of the variable of the environment that asks for all places.
type Kind string

const (
	// Kills are places at which a program ends at once. KILLS=all takes all of them, and `make kills` runs the tests with it.
	Kills Kind = "KILLS"
	// Contracts are places of a table or a file that a rule holds for. CONTRACTS=all takes all of them, and so does `make contracts`.
	Contracts Kind = "CONTRACTS"
	// Disks are disks with random content. DISKS=all takes all of them, and so does `make kills`.
	Disks Kind = "DISKS"
)

// few is how many places a test takes when nobody asks for all.
const few = 6

// seedVariable is the variable of the environment that chooses the same places again.
const seedVariable = "PARALLELFS_SEED"

// clock is the seed of this run when nobody names one.
var clock = sync.OnceValue(func() uint64 { return uint64(time.Now().UnixMicro()) % 1_000_000_000 })

// Of returns the places that the test takes, of those from 0 to n-1, in their order, and writes them into its log. They are spread: one
// lies in each part of n. The seed is of the clock or in PARALLELFS_SEED, and each test gets other places from it.
func (k Kind) Of(t testing.TB, n int) []int {
	t.Helper()
	return k.Some(t, n, few)
}

// Some is Of with another number of places, few at the most.
func (k Kind) Some(t testing.TB, n, few int) []int {
	t.Helper()
	if os.Getenv(string(k)) == "all" {
		return spread(n, n, nil)
	}
	seed := clock()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%s: it is a whole number", seedVariable, text)
		}
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	chosen := spread(n, few, rand.New(rand.NewPCG(seed, name.Sum64())))
	if len(chosen) < n {
		t.Logf("places %v of %d: %s=%d takes the same ones, %s=all takes all", chosen, n, seedVariable, seed, k)
	}
	return chosen
}

// spread takes one place of each of so many parts of n, or each place when there are no more than parts.
func spread(n, parts int, chance *rand.Rand) []int {
	parts = min(n, parts)
	var out []int
	for part := range parts {
		first, next := part*n/parts, (part+1)*n/parts
		place := first
		if next-first > 1 {
			place += chance.IntN(next - first)
		}
		out = append(out, place)
	}
	return out
}
