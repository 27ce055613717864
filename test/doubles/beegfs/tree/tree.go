// Package tree walks the directories of the doubles' filesystem from one metadata server to the next, like beegfs-ctl --unmounted and
// beegfs --mount none.
package tree

import (
	"context"
	"errors"
	"hash/fnv"
	"net"
	"path"
	"strconv"
	"strings"

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// Tree is the tree of directories on the reachable metadata servers.
type Tree struct {
	View *wire.View
	Ask  func(ctx context.Context, node *wire.NodeView, op string, argument, result any) error
}

// UnreachableError means that a metadata server does not answer.
type UnreachableError struct {
	Node wire.NodeView
	Err  error
}

// Error names the server.
func (e *UnreachableError) Error() string {
	return "no answer of " + e.Node.Alias + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Unreachable returns the server that an error is about, or nil.
func Unreachable(err error) *wire.NodeView {
	if unreachable, is := errors.AsType[*UnreachableError](err); is {
		return &unreachable.Node
	}
	return nil
}

// Exists reports whether the error means that a directory already exists.
func Exists(err error) bool {
	return err != nil && err.Error() == "Entry exists already"
}

var errMissing = errors.New("Path does not exist") //nolint:staticcheck // the servers' own text

// Ask sends a request to the first address that a server published.
func Ask(ctx context.Context, secret uint64, node *wire.NodeView, op string, argument, result any) error {
	if len(node.Interfaces) == 0 {
		return &UnreachableError{Node: *node, Err: errors.New("it published no address")}
	}
	address := net.JoinHostPort(node.Interfaces[0].Address, strconv.Itoa(node.TCP))
	err := wire.Ask(ctx, address, secret, op, argument, result)
	var refused *wire.RefusedError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return &UnreachableError{Node: *node, Err: err}
}

// owner finds a metadata server.
func (t *Tree) owner(id int) (*wire.NodeView, error) {
	node := t.View.Node("meta", id)
	if node == nil {
		return nil, errMissing
	}
	return node, nil
}

func (t *Tree) look(ctx context.Context, owner int, entry string) (*wire.Directory, error) {
	node, err := t.owner(owner)
	if err != nil {
		return nil, err
	}
	var directory wire.Directory
	if err := t.Ask(ctx, node, "look", wire.EntryRequest{EntryID: entry}, &directory); err != nil {
		return nil, err
	}
	return &directory, nil
}

// Find returns the directory at a path, which is always relative to the root.
func (t *Tree) Find(ctx context.Context, name string) (*wire.Directory, error) {
	directory, err := t.look(ctx, t.View.Root, "root")
	for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if err != nil {
			return nil, err
		}
		if part == "" {
			continue
		}
		child, there := directory.Children[part]
		if !there {
			return nil, errMissing
		}
		directory, err = t.look(ctx, child.Owner, child.EntryID)
	}
	return directory, err
}

// Make creates a directory with the pattern of its parent. Its owner is one of owners, or otherwise any metadata server. BeeGFS takes a
// random one, and the double derives it from the path, so that nothing can rely on it.
func (t *Tree) Make(ctx context.Context, name string, owners []int, flat bool) (*wire.Directory, error) {
	parent, err := t.Find(ctx, path.Dir(name))
	if err != nil {
		return nil, err
	}
	base := path.Base(name)
	if _, there := parent.Children[base]; there {
		return nil, errors.New("Entry exists already") //nolint:staticcheck // the servers' own text
	}
	if len(owners) == 0 {
		for _, target := range t.View.Targets {
			if target.Type == "meta" && target.Reachability == wire.Online {
				owners = append(owners, target.ID)
			}
		}
	}
	if len(owners) == 0 {
		owners = []int{parent.Owner}
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	node, err := t.owner(owners[int(sum.Sum32())%len(owners)])
	if err != nil {
		return nil, err
	}
	var made wire.Directory
	request := wire.EntryRequest{EntryID: parent.EntryID, Pattern: &parent.Pattern, Flat: flat || !parent.Mirrored}
	if err := t.Ask(ctx, node, "make-directory", request, &made); err != nil {
		return nil, err
	}
	holder, err := t.owner(parent.Owner)
	if err != nil {
		return nil, err
	}
	link := wire.EntryRequest{EntryID: parent.EntryID, Name: base, Child: wire.Child{EntryID: made.EntryID, Owner: made.Owner}}
	return &made, t.Ask(ctx, holder, "link", link, nil)
}
