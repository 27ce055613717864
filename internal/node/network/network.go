// Package network brings up the kernel's network between the servers and clients of a filesystem (such as LNet) on a node that does not
// have it yet. It belongs to the kernel, and so to all filesystems of the node. An existing network is therefore never changed.
package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/spec"
)

// Node is the node that the network belongs to.
type Node struct {
	// Run runs a program of the node; a failed exit is an answer and not an error.
	Run func(ctx context.Context, argv []string) (format.Answer, error)
	// Interfaces returns the interfaces of the node.
	Interfaces func() ([]environment.Interface, error)
	// Lookup resolves the variables in names of interfaces.
	Lookup environment.Lookup
}

// ThisNode is the node that the program runs on.
func ThisNode(lookup environment.Lookup) Node {
	return Node{
		Interfaces: environment.Interfaces, Lookup: lookup,
		Run: func(ctx context.Context, argv []string) (format.Answer, error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return host.Run(ctx, argv)
		},
	}
}

// limit bounds the time of a program, which loads modules and configures an interface.
const limit = time.Minute

// interfacesVariable is the variable for the interfaces in KernelNetwork.Add.
const interfacesVariable = "INTERFACES"

// Up returns nil if the node has the network with the required NIDs. An error is a sentence with what to do.
func (n Node) Up(ctx context.Context, k spec.KernelNetwork) error {
	have, _, err := n.nids(ctx, k)
	if err != nil {
		return err
	}
	if len(of(k, have)) == 0 {
		if have, err = n.comeUp(ctx, k); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(slices.Clone(k.NIDs), func(nid string) bool { return slices.Contains(have, nid) })
	if len(missing) > 0 {
		return fmt.Errorf("the network %s of this node has %s, and not %s, which stands on every disk of the filesystem; the operator changes no "+
			"network that is up: correct it on the node, or give the node its address back", k.Name, strings.Join(of(k, have), ", "), strings.Join(missing, ", "))
	}
	return nil
}

// comeUp adds the network, and returns the NIDs that the node has after that.
func (n Node) comeUp(ctx context.Context, k spec.KernelNetwork) ([]string, error) {
	complaints, err := n.add(ctx, k)
	if err != nil {
		return nil, err
	}
	have, said, err := n.nids(ctx, k)
	if err == nil && len(of(k, have)) == 0 {
		err = fmt.Errorf("the network %s does not come up: %s; look into the kernel's log of the node (dmesg)", k.Name, words(append(complaints, said)))
	}
	return have, err
}

// of returns the NIDs on the network.
func of(k spec.KernelNetwork, nids []string) []string {
	return slices.DeleteFunc(slices.Clone(nids), func(nid string) bool { return !strings.HasSuffix(nid, "@"+k.Name) })
}

// nids returns the node's NIDs, and the message of the program if it lists none.
func (n Node) nids(ctx context.Context, k spec.KernelNetwork) (found []string, said string, err error) {
	a, err := n.Run(ctx, k.List)
	if err != nil {
		return nil, "", fmt.Errorf("can't ask for the NIDs of this node: %w", err)
	}
	for word := range strings.FieldsSeq(a.Stdout) {
		if strings.Contains(word, "@") {
			found = append(found, word)
		}
	}
	return found, a.Said, nil
}

// add adds the network, and returns the error output of the programs.
func (n Node) add(ctx context.Context, k spec.KernelNetwork) (said []string, err error) {
	on, err := n.on(k)
	if err != nil {
		return nil, err
	}
	add, err := environment.ExpandAll(k.Add, func(name string) (string, bool) {
		if name == interfacesVariable {
			return strings.Join(on, ","), true
		}
		return n.Lookup(name)
	})
	if err != nil {
		return nil, err
	}
	for _, argv := range append(slices.Clone(k.Start), add) {
		a, err := n.Run(ctx, argv)
		switch {
		case err != nil:
			said = append(said, err.Error())
		case a.Code != 0:
			said = append(said, fmt.Sprintf("%s ended with exit code %d: %s", strings.Join(argv, " "), a.Code, a.Said))
		}
	}
	return said, nil
}

// on returns the interfaces for the network.
func (n Node) on(k spec.KernelNetwork) ([]string, error) {
	wanted, err := environment.ExpandAll(k.Interfaces, n.Lookup)
	if err != nil {
		return nil, fmt.Errorf("the network %s: %w", k.Name, err)
	}
	all, err := n.Interfaces()
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		return !slices.ContainsFunc(all, func(i environment.Interface) bool { return i.Name == name && i.Up && hasIPv4(i) })
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("the network %s needs one of the interfaces %s, up and with an IPv4 address, and this node has none of them; "+
			"see spec.network.interfaces of the FileSystem", k.Name, strings.Join(wanted, ", "))
	}
	return found, nil
}

func hasIPv4(i environment.Interface) bool {
	for _, a := range i.Addresses {
		if a.Unmap().Is4() {
			return true
		}
	}
	return false
}

// words joins the messages that are not empty.
func words(said []string) string {
	said = slices.DeleteFunc(said, func(s string) bool { return s == "" })
	if len(said) == 0 {
		return "its programs said nothing"
	}
	return strings.Join(said, "; ")
}
