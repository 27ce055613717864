// Package places selects the places at which a test kills or damages its subject. Such a test checks one rule at each of many places. It
// uses a few of them in each run, and all of them on request.
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

// Kind is what tests do at their places. It is also the name of the environment variable that requests all places.
type Kind string

const (
	// Kills are places at which a program ends abruptly. KILLS=all takes all of them, and `make kills` runs the tests with it.
	Kills Kind = "KILLS"
	// Contracts are places in a table or a file to which a rule applies. CONTRACTS=all takes all of them, and so does `make contracts`.
	Contracts Kind = "CONTRACTS"
	// Disks are disks with random content. DISKS=all takes all of them, and so does `make kills`.
	Disks Kind = "DISKS"
)

// few is the default number of places for a test.
const few = 6

// seedVariable is the environment variable with a seed that selects the same places again.
const seedVariable = "PARALLELFS_SEED"

// clock returns the seed of this run if none is given.
var clock = sync.OnceValue(func() uint64 { return uint64(time.Now().UnixMicro()) % 1_000_000_000 })

// Of returns the places for the test, from 0 to n-1 in ascending order, and logs them. They are spread: each part of n has one. The seed is
// from PARALLELFS_SEED or the clock, and each test derives different places from it.
func (k Kind) Of(t testing.TB, n int) []int {
	t.Helper()
	return k.Some(t, n, few)
}

// Some is Of with at most few places.
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

// spread selects one place from each part of n, or every place if there are no more than parts.
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
