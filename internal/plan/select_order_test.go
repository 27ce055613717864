package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// shuffle puts every list of an input into another order.
func shuffle(r *rand.Rand, in plan.SelectInput) plan.SelectInput {
	mix := func(targets []v1alpha1.StorageTarget) []v1alpha1.StorageTarget {
		mixed := slices.Clone(targets)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		return mixed
	}
	in.Existing, in.Others = mix(in.Existing), mix(in.Others)
	inventories := map[string]v1alpha1.NodeInventoryStatus{}
	for node, inventory := range in.Inventories {
		b := slices.Clone(inventory.BlockDevices)
		r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		inventory.BlockDevices = b
		inventories[node] = inventory
	}
	in.Inventories = inventories
	nodes := map[string][]string{}
	for pool, names := range in.Pools {
		n := slices.Clone(names)
		r.Shuffle(len(n), func(i, j int) { n[i], n[j] = n[j], n[i] })
		nodes[pool] = n
	}
	in.Pools = nodes
	return in
}

func TestTheOrderOfTheInputMeansNothing(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		g := NewWithT(t)
		spec := selecting(int32(1+r.IntN(4)), func(s *v1alpha1.DeviceSelector) { s.MinSize = resource.MustParse("1Ti") })
		if r.IntN(2) == 0 {
			spec.Format = &v1alpha1.FormatSpec{LogDevices: &v1alpha1.DeviceSelector{MaxSize: resource.MustParse("4Gi"), CountPerNode: 3}}
		}
		in := anInput(aFileSystem("scratch", spec), 8, "oss1", "oss2", "oss3")
		for node := range in.Inventories {
			for i := range 8 {
				change(in, node, i, func(b *v1alpha1.BlockDevice) {
					switch r.IntN(6) {
					case 0:
						b.SizeBytes = 1 << 30
					case 1:
						b.Unusable = []string{"in use"}
					case 2:
						b.Serial = fmt.Sprint("shared-", r.IntN(3))
					}
				})
			}
		}
		other := anInput(aFileSystem("home", selecting(1)), 0, "oss1", "oss2", "oss3")
		other.Inventories = in.Inventories
		in.Others = plan.Select(other).Targets
		first := plan.Select(in)
		g.Expect(plan.Select(shuffle(r, in))).To(Equal(first), "seed %d", seed)

		// What exists stays, whatever happens to the disks, and a second look changes nothing.
		in.Existing = first.Targets
		second := plan.Select(shuffle(r, in))
		g.Expect(second.Targets).To(Equal(first.Targets), "seed %d", seed)
		for node := range in.Inventories {
			if r.IntN(2) == 0 {
				delete(in.Inventories, node)
			}
		}
		third := plan.Select(shuffle(r, in))
		for _, target := range first.Targets {
			g.Expect(third.Targets).To(ContainElement(HaveField("Spec.Device", target.Spec.Device)), "seed %d", seed)
		}
	}
}

func BenchmarkSelect1000NodesOf24Disks(b *testing.B) {
	var nodes []string
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf("oss%04d", i))
	}
	in := anInput(aFileSystem("scratch", selecting(20)), 24, nodes...)
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			if s := plan.Select(in); len(s.Targets) != 20000 || len(s.Problems) != 0 {
				b.Fatal(len(s.Targets), s.Problems)
			}
		}
	})
	in.Existing = plan.Select(in).Targets
	b.Run("settled", func(b *testing.B) {
		for b.Loop() {
			if s := plan.Select(in); len(s.Targets) != 20000 {
				b.Fatal(len(s.Targets))
			}
		}
	})
}
