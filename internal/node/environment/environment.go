// Package environment inserts the values of variables into texts, for values that are known only on the node.
package environment

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
)

const (
	// addressVariable is the variable for the address of the node, which the operator sets.
	addressVariable = "NODE_IP"
	// interfaceVariable is the variable for the name of the interface with that address. If the lookup does not have it, the interface is
	// searched for.
	interfaceVariable = "NODE_INTERFACE"
)

// reference matches the syntax of Kubernetes in a container's command.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// Lookup returns the value of a variable, and whether it is set; os.LookupEnv is one.
type Lookup func(name string) (value string, set bool)

// OfProcess looks up the variables of this process. NODE_IP yields one address, although Kubernetes lists one of each IP family
// (status.hostIPs): the IPv4 address if there is one, as in the operator.
func OfProcess(name string) (string, bool) {
	value, set := os.LookupEnv(name)
	if name != addressVariable || !set {
		return value, set
	}
	all := strings.Split(value, ",")
	for _, each := range all {
		if ip, err := netip.ParseAddr(each); err == nil && ip.Unmap().Is4() {
			return each, true
		}
	}
	return all[0], true
}

// ExpandAddress replaces every $(NAME) in a host and port, and encloses an IPv6 address in brackets.
func ExpandAddress(address string, lookup Lookup) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is no host and port: %w", address, err)
	}
	both, err := ExpandAll([]string{host, port}, lookup)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(both[0], both[1]), nil
}

// Expand replaces every $(NAME) in text by the value of NAME. The error names the first variable without a value. If lookup does not have
// $(NODE_INTERFACE), its value is the interface of this network namespace with the address $(NODE_IP).
func Expand(text string, lookup Lookup) (string, error) {
	var fault error
	expanded := reference.ReplaceAllStringFunc(text, func(match string) string {
		value, err := valueOf(match[2:len(match)-1], lookup)
		if err != nil && fault == nil {
			fault = err
		}
		return value
	})
	if fault != nil {
		return "", fault
	}
	return expanded, nil
}

func valueOf(name string, lookup Lookup) (string, error) {
	value, set := lookup(name)
	switch {
	case set:
		return value, nil
	case name == interfaceVariable:
		address, set := lookup(addressVariable)
		if !set {
			return "", notSet(addressVariable)
		}
		return interfaceOf(address)
	default:
		return "", notSet(name)
	}
}

func notSet(name string) error {
	return fmt.Errorf("the variable %s is not set, neither in the file of this node nor in the environment of the container; "+
		"the operator and its node image must be of the same version", name)
}

// ExpandAll expands every text.
func ExpandAll(texts []string, lookup Lookup) ([]string, error) {
	expanded := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if expanded[i], err = Expand(text, lookup); err != nil {
			return nil, err
		}
	}
	return expanded, nil
}
