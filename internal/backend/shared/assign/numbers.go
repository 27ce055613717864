package assign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// MostPromises is how many promises an Allocation may have open before it sets More. The status lists each promise by name until its
// FileSystemNode has it, and should stay small. One promise takes less than 200 bytes if names have at most 63 characters.
const MostPromises = 256

// Numbering describes what has numbers in a type of filesystem.
type Numbering struct {
	// Server and Target hold the kinds of numbers for the servers and targets of a role. A target whose number is always that of its server
	// has the server's kind.
	Server, Target map[v1alpha1.Role]v1alpha1.NumberKind
	// Most is the highest possible number of each kind.
	Most map[v1alpha1.NumberKind]int32
	// Remembers names the filesystem if it keeps servers and targets whose disks are gone. From is the condition under which it lists them,
	// such as "its management service runs".
	Remembers, From string
}

// Holder is the owner of a number: a member of a node, or one of its targets.
type Holder struct {
	Kind         v1alpha1.NumberKind
	Node, Member string
	// Target is empty for the member itself.
	Target string
}

// Numbers assigns numbers, each once and permanently. Nothing else assigns them. It starts from the highest number in any source: the
// status (used and promised), the FileSystemNodes, the disks, and the filesystem's own list. All are needed, because a restored status may
// be older than the assignments, and a filesystem may keep numbers that no record has.
//
// The result is written in this order: first the status with Settle, in a write that fails if the status has changed since it was read;
// then the records. Every reader of that status gives a promised number to the same holder.
type Numbers struct {
	by      Numbering
	highest map[v1alpha1.NumberKind]int32
	// promised holds the promises of the status that are neither recorded nor requested yet, and open those that are requested now.
	promised, open map[Holder]int32
	// wait is why no new number is assigned, empty if one may be. waits is true if a holder has to wait for that reason. more is true if a
	// holder has to wait because too many promises are open.
	wait        string
	waits, more bool
}

// NewNumbers starts from all known numbers.
func NewNumbers(in backend.Input, disks OnDisks, by Numbering) *Numbers {
	n := &Numbers{by: by, highest: map[v1alpha1.NumberKind]int32{}, promised: map[Holder]int32{}, open: map[Holder]int32{}, wait: disks.Why()}
	if n.wait == "" && by.Remembers != "" && disks.Facts != nil && in.State == nil {
		n.wait = fmt.Sprintf("nothing new gets a number before %s has said which ones it remembers, because disks that are not there may have them; "+
			"that takes until %s", by.Remembers, by.From)
	}
	if given := in.FileSystem.Status.Given; given != nil {
		for _, h := range given.Highest {
			n.Advance(h.Kind, h.Number)
		}
		for _, node := range given.Promised {
			for _, p := range node.Numbers {
				n.Advance(p.Kind, p.Number)
				n.promised[Holder{Kind: p.Kind, Node: node.Node, Member: p.Member, Target: p.Target}] = p.Number
			}
		}
	}
	for _, p := range in.FileSystem.Status.StoragePools {
		n.Advance(v1alpha1.NumberOfStoragePool, p.Slot+1)
	}
	for _, slot := range disks.slots {
		n.Advance(v1alpha1.NumberOfStoragePool, slot+1)
	}
	for _, given := range slices.Concat(in.Given(), disks.Given) {
		n.Advance(by.Server[given.Role], given.ID)
		for _, t := range given.Targets {
			n.Advance(by.Target[given.Role], t.ID)
		}
	}
	for _, recorded := range in.Given() { // a recorded number needs no promise
		if recorded.ID != 0 {
			delete(n.promised, Holder{Kind: by.Server[recorded.Role], Node: recorded.Node, Member: recorded.Name})
		}
		for _, t := range recorded.Targets {
			delete(n.promised, Holder{Kind: by.Target[recorded.Role], Node: recorded.Node, Member: recorded.Name, Target: t.Name})
		}
	}
	if in.State != nil {
		for _, s := range in.State.Servers {
			n.Advance(by.Server[s.Role], s.ID)
		}
		for _, t := range in.State.Targets {
			role := cmp.Or(t.Role, v1alpha1.RoleStorage)
			n.Advance(by.Server[role], t.ServerID)
			n.Advance(by.Target[role], t.ID)
		}
	}
	return n
}

// Advance records that a number was assigned. It ignores kinds without numbers, and numbers above the limit.
func (n *Numbers) Advance(kind v1alpha1.NumberKind, number int32) {
	if most, numbered := n.by.Most[kind]; numbered && number <= most {
		n.highest[kind] = max(n.highest[kind], number)
	}
}

// Highest returns the highest number of a kind that was ever assigned.
func (n *Numbers) Highest(kind v1alpha1.NumberKind) int32 { return n.highest[kind] }

// Promised returns the number that the status promises to a holder, 0 for none.
func (n *Numbers) Promised(to Holder) int32 { return n.promised[to] }

// Promise returns the number for a holder without a recorded one: the number that was promised to it, or a new one. It is 0 if the holder
// has to wait.
func (n *Numbers) Promise(to Holder) (int32, error) {
	number, promised := n.promised[to]
	switch {
	case promised:
		delete(n.promised, to)
	case n.wait != "":
		n.waits = true
		return 0, nil
	case len(n.open)+len(n.promised) >= MostPromises:
		n.more = true
		return 0, nil
	default:
		var ok bool
		if number, ok = n.next(to.Kind); !ok {
			return 0, backend.Invalid(v1alpha1.ReasonInvalidSpec, "all %d numbers of a %s were given, and none is given twice; make another FileSystem",
				n.by.Most[to.Kind], KindName(to.Kind))
		}
	}
	n.open[to] = number
	return number, nil
}

// next uses up a number. It returns false if all are used.
func (n *Numbers) next(kind v1alpha1.NumberKind) (int32, bool) {
	if n.highest[kind] >= n.by.Most[kind] {
		return 0, false
	}
	n.highest[kind]++
	return n.highest[kind], true
}

// Settle returns the new content of the status: the highest number of each kind, and the open promises. It leaves out promises that are
// recorded, and promises to holders that are no longer desired; the numbers of the latter are never assigned.
func (n *Numbers) Settle() *v1alpha1.GivenNumbers {
	out := &v1alpha1.GivenNumbers{}
	for _, kind := range backend.SortedKeys(n.highest) {
		if n.highest[kind] > 0 {
			out.Highest = append(out.Highest, v1alpha1.HighestNumber{Kind: kind, Number: n.highest[kind]})
		}
	}
	holders := make([]Holder, 0, len(n.open))
	for h := range n.open {
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Member, b.Member), strings.Compare(a.Target, b.Target),
			cmp.Compare(a.Kind, b.Kind))
	})
	for _, h := range holders {
		if last := len(out.Promised) - 1; last < 0 || out.Promised[last].Node != h.Node {
			out.Promised = append(out.Promised, v1alpha1.PromisedNumbers{Node: h.Node})
		}
		of := &out.Promised[len(out.Promised)-1]
		of.Numbers = append(of.Numbers, v1alpha1.PromisedNumber{Kind: h.Kind, Member: h.Member, Target: h.Target, Number: n.open[h]})
	}
	if len(out.Highest) == 0 && len(out.Promised) == 0 {
		return nil
	}
	return out
}

// More reports whether so many promises are open that the rest has to wait until these are recorded; see MostPromises.
func (n *Numbers) More() bool { return n.more }

// HasToWait returns why no new number is assigned; empty if one may be.
func (n *Numbers) HasToWait() string { return n.wait }

// Unread returns why a holder has to wait; empty if none has to.
func (n *Numbers) Unread() string {
	if n.waits {
		return n.wait
	}
	return ""
}

// KindName returns what has numbers of a kind, in words.
func KindName(kind v1alpha1.NumberKind) string {
	switch kind {
	case v1alpha1.NumberOfMetadataServer:
		return "metadata server"
	case v1alpha1.NumberOfStorageServer:
		return "storage server"
	case v1alpha1.NumberOfMetadataTarget:
		return "metadata target"
	case v1alpha1.NumberOfStorageTarget:
		return "storage target"
	case v1alpha1.NumberOfStoragePool:
		return "storage pool"
	default:
		return string(kind)
	}
}
