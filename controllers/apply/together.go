package apply

import (
	"errors"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many objects are written at a time where their order does not matter. One write waits for the API server's disk most of its
// time, so that thousands of them, one after the other, take minutes. The manager's client sets no limit of its own.
const atOnce = 16

// Together does something for each of n objects whose order does not matter, for several at a time. It goes on after an error, and returns
// all of them joined, in the order of the objects.
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
	_ = group.Wait() // the errors lie beside
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
