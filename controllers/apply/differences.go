package apply

// Change is the kind of difference of a child.
type Change int

// The kinds of changes.
const (
	nothing Change = iota
	// Missing means that the child would be created.
	Missing
	// Changed means that the child would be changed.
	Changed
	// Unwanted means that the child would be deleted.
	Unwanted
)

// Difference is one child that Apply would write.
type Difference struct {
	// Kind and Name identify the child in the namespace of its owner.
	Kind, Name string
	Change     Change
	key        childKey
}

// Differences returns the children that Apply would write or remove: the desired ones first, in their order. A child that can't be compared
// is left out, and Apply returns its error.
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
