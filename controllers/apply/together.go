package apply

import (
	"errors"

	"golang.org/x/sync/errgroup"
)

// atOnce limits the concurrent writes if the order does not matter. A write mostly waits for the API server's disk, so thousands of
// sequential writes take minutes. The manager's client has no limit of its own.
const atOnce = 16

// Together calls do for each of n objects whose order does not matter, several at a time. It continues after an error, and returns all
// errors joined, in the order of the objects.
func Together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error {
			errs[i] = do(i)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// oneByOne is Together for objects whose order matters.
func oneByOne(n int, do func(i int) error) error {
	errs := make([]error, n)
	for i := range n {
		errs[i] = do(i)
	}
	return errors.Join(errs...)
}
