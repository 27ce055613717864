package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// MostPromises is how many promises an Allocation has open, before there is More: the status promises each of them by name until its
// FileSystemNode has it, and is to stay small. One takes less than 200 bytes where names are no longer than 63.
const MostPromises = 256

// Numbering says what has numbers in a type of filesystem.
type Numbering struct {
	// Server and Target are the kinds of the numbers that servers and targets of a role have. A target whose number is always that of its
	// server is of the server's kind.
	Server, Target map[v1alpha1.Role]v1alpha1.NumberKind
	// Most is the highest number of each kind that there can be.
	Most map[v1alpha1.NumberKind]int32
	// Remembers is the filesystem, when it remembers servers and targets whose disks are gone, and From is what it says so from, such as "its
	// management service runs".
	Remembers, From string
}

// Holder is who has a number: a member of a node, or one of its targets.
type Holder struct {
	Kind         v1alpha1.NumberKind
	Node, Member string
	// Target is empty for the member itself.
	Target string
}

// Numbers gives numbers, each once and for ever. It is the only place that does. It starts from the highest of everything that is known:
// what the status has used up and promised, what FileSystemNodes record, what disks say, and what the filesystem itself lists. A status
// that was restored may be older than what was given, and a filesystem remembers what nobody has recorded.
//
// What it says is to be written in this order: the status with Settle, in a write that fails when the status is not as it was read; then
// the records. A number that was promised is given to the same holder by whoever reads that status.
type Numbers struct {
	by      Numbering
	highest map[v1alpha1.NumberKind]int32
	// promised are the promises of the status that are neither on record nor asked for yet, and open those that are asked for now.
	promised, open map[Holder]int32
	// wait is why no new number is given, empty when one may be; waits is true when somebody has to wait for that, and more when somebody
	// has to wait because too many promises are open.
	wait        string
	waits, more bool
}

// NewNumbers starts from all that is known.
func NewNumbers(in Input, disks OnDisks, by Numbering) *Numbers {
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
	for _, recorded := range in.Given() { // it needs no promise any more
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

// Advance remembers that a number was given. What has no numbers is left out, and so is a number that there can't be.
func (n *Numbers) Advance(kind v1alpha1.NumberKind, number int32) {
	if most, numbered := n.by.Most[kind]; numbered && number <= most {
		n.highest[kind] = max(n.highest[kind], number)
	}
}

// Highest is the highest number of a kind that was ever given.
func (n *Numbers) Highest(kind v1alpha1.NumberKind) int32 { return n.highest[kind] }

// Promised is the number that the status promises to a holder, 0 for none.
func (n *Numbers) Promised(to Holder) int32 { return n.promised[to] }

// Promise is the number of a holder that has none on record: the one that was promised to it, or one that was never given. It is 0 for a
// holder that has to wait.
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
			return 0, Invalid(v1alpha1.ReasonInvalidSpec, "all %d numbers of a %s were given, and none is given twice; make another FileSystem",
				n.by.Most[to.Kind], KindName(to.Kind))
		}
	}
	n.open[to] = number
	return number, nil
}

// next uses up a number, unless all were given.
func (n *Numbers) next(kind v1alpha1.NumberKind) (int32, bool) {
	if n.highest[kind] >= n.by.Most[kind] {
		return 0, false
	}
	n.highest[kind]++
	return n.highest[kind], true
}

// Settle is what the status has to say: the highest number of each kind, and the promises that are open. A promise that is on record is not
// among them. Nor is one to somebody who is not wanted any more: its number is given to nobody.
func (n *Numbers) Settle() *v1alpha1.GivenNumbers {
	out := &v1alpha1.GivenNumbers{}
	for _, kind := range SortedKeys(n.highest) {
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

// More is true when so many promises are open that the rest has to wait until these are on record; see MostPromises.
func (n *Numbers) More() bool { return n.more }

// HasToWait is why no new number is given; empty when one may be.
func (n *Numbers) HasToWait() string { return n.wait }

// Unread says why somebody has to wait; empty when nobody has to.
func (n *Numbers) Unread() string {
	if n.waits {
		return n.wait
	}
	return ""
}

// KindName is what has numbers of a kind, in words.
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
