package apply

// Change is how a child is not as it should be.
type Change int

// The kinds of changes.
const (
	nothing Change = iota
	// Missing means that it would be made.
	Missing
	// Changed means that it would be changed.
	Changed
	// Unwanted means that it would be deleted.
	Unwanted
)

// Difference is one child that Apply would write.
type Difference struct {
	// Kind and Name of the child, in the namespace of its owner.
	Kind, Name string
	Change     Change
	key        childKey
}

// Differences are the children that Apply would write or remove, the wanted ones first, in their order. A child that can't be compared is
// left out: Apply says why.
func (c *Comparison) Differences() []Difference {
	var out []Difference
	for _, list := range [][]child{c.wanted, c.unwanted} {
		for i := range list {
			if it := &list[i]; it.err == nil && it.change != nothing {
				out = append(out, Difference{Kind: it.key.kind.Kind, Name: it.key.name.Name, Change: it.change, key: it.key})
			}
		}
	}
	return out
}
