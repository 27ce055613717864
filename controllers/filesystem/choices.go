package filesystem

import (
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// choices caches choices of disks that are already carried out, with a hash of their input: while the hash is the same, there is nothing to
// do. To choose and compare takes a second for 24,000 disks, and most passes find no change.
type choices struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]choice
	// targets holds the hashes of StorageTargets, by uid.
	targets map[types.UID]hashedTarget
}

// mostHashed bounds the number of hashes, including those of targets that are gone: about 10 MB.
const mostHashed = 1 << 17

// choice is the result of a choice of disks, with the hash of its input.
type choice struct {
	from     uint64
	problems []backend.Problem
}

// find returns the problems of a cached choice, if its input was the same.
func (c *choices) find(fs types.NamespacedName, from uint64) ([]backend.Problem, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last, ok := c.of[fs]
	return last.problems, ok && last.from == from
}

func (c *choices) keep(fs types.NamespacedName, from uint64, problems []backend.Problem) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[types.NamespacedName]choice{}
	}
	c.of[fs] = choice{from: from, problems: problems}
}

func (c *choices) forget(fs types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.of, fs)
}

// seed is random per process. Compare hashes made with it within the process only.
var seed = maphash.MakeSeed()

// dependsOn returns a hash of everything that a choice of disks depends on: the spec, the nodes, the inventories, and the volumes that
// Kubernetes has attached. It has the fields of each StorageTarget that chooseDisks and plan.Select read, without a target's used space,
// which changes all the time.
func (c *choices) dependsOn(
	fs *v1alpha1.FileSystem, d disks, nodes plan.TargetNodes, filesIn map[string][]string, attachments map[string][]plan.Attachment,
) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(words ...string) {
		for _, word := range words {
			_, _ = h.WriteString(word) // it never fails
			_ = h.WriteByte(0)         // it never fails either
		}
	}
	number := func(n int64) { write(strconv.FormatInt(n, 10)) }
	write(string(fs.UID))
	number(fs.Generation)
	write("management")
	write(nodes.Management...)
	write("metadata")
	write(nodes.Metadata...)
	write("lost", nodes.LostMetadata)
	write("replaced")
	write(nodes.Replaced...)
	for _, pool := range slices.Sorted(maps.Keys(nodes.Pools)) {
		write("pool", pool)
		write(nodes.Pools[pool]...)
	}
	for _, node := range slices.Sorted(maps.Keys(d.versions)) {
		write("inventory", node, d.versions[node])
	}
	for _, name := range slices.Sorted(maps.Keys(filesIn)) {
		write("files", name)
		write(filesIn[name]...)
	}
	for _, node := range slices.Sorted(maps.Keys(attachments)) {
		write("attached", node)
		for _, a := range attachments[node] {
			write("volume", a.Volume, a.Driver)
			write(a.Names...)
		}
	}
	for _, list := range slices.Concat([][]v1alpha1.StorageTarget{d.own}, d.others) {
		write("targets")
		for i := range list {
			maphash.WriteComparable(&h, c.hashOfTarget(&list[i]))
		}
	}
	return h.Sum64()
}

// hashedTarget is the hash of one version of a StorageTarget.
type hashedTarget struct {
	version string
	hash    uint64
}

// hashOfTarget returns a hash of the fields of a StorageTarget that chooseDisks and plan.Select read. It is cached while the object does
// not change.
func (c *choices) hashOfTarget(t *v1alpha1.StorageTarget) uint64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known, ok := c.targets[t.UID]; ok && known.version == t.ResourceVersion && t.ResourceVersion != "" {
		return known.hash
	}
	if c.targets == nil || len(c.targets) >= mostHashed {
		c.targets = map[types.UID]hashedTarget{}
	}
	hash := hashTarget(t)
	c.targets[t.UID] = hashedTarget{t.ResourceVersion, hash}
	return hash
}

func hashTarget(t *v1alpha1.StorageTarget) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(words ...string) {
		for _, word := range words {
			_, _ = h.WriteString(word) // it never fails
			_ = h.WriteByte(0)         // it never fails either
		}
	}
	write(t.Namespace, t.Name, string(t.UID))
	maphash.WriteComparable(&h, t.Generation)
	maphash.WriteComparable(&h, [2]uint64{hashOf(t.Labels), hashOf(t.Annotations)})
	maphash.WriteComparable(&h, t.DeletionTimestamp.IsZero())
	write(t.Finalizers...)
	for _, owner := range t.OwnerReferences {
		write("owner", string(owner.UID))
	}
	if p := t.Status.Provisioned; p != nil {
		write("provisioned", strconv.FormatBool(p.Finished != nil))
	}
	safe := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
	if safe != nil && safe.Status == metav1.ConditionTrue {
		write("safe", strconv.FormatInt(safe.ObservedGeneration, 10))
	}
	return h.Sum64()
}

// hashOf returns a hash of a map that does not depend on its order.
func hashOf(m map[string]string) uint64 {
	var sum uint64
	for key, value := range m {
		sum += maphash.Comparable(seed, [2]string{key, value})
	}
	return sum
}
