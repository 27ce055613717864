package kernel

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Net is one network of LNet.
type Net struct {
	Name       string
	Interfaces []Interface
}

// Interface is one of a network, with its NID.
type Interface struct{ NID, Name string }

// local reports whether a NID belongs to this node.
func (k *Kernel) local(nid string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Contains(k.nids(), nid)
}

func (k *Kernel) nids() []string {
	var all []string
	for _, n := range k.nets {
		for _, i := range n.Interfaces {
			all = append(all, i.NID)
		}
	}
	return all
}

// NewNet is lnetctl net add.
type NewNet struct {
	Name       string
	Interfaces []string
}

// add brings a network up: it listens at the addresses of its interfaces.
func (k *Kernel) add(ctx context.Context, n NewNet) error {
	if !regexp.MustCompile(`^(tcp|o2ib)[0-9]*$`).MatchString(n.Name) {
		return wire.Refuse(syscall.EINVAL, "cannot parse net '%s'", n.Name)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	made := Net{Name: n.Name}
	for _, known := range k.nets {
		if known.Name == n.Name {
			return wire.Refuse(syscall.EEXIST, "cannot add network: File exists")
		}
	}
	for _, name := range n.Interfaces {
		address := addressOf(name)
		if address == "" {
			return wire.Refuse(syscall.ENODEV, "cannot add network: No such device")
		}
		listener, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(ctx), "tcp", net.JoinHostPort(address, port()))
		if err != nil {
			return wire.Refuse(syscall.EADDRINUSE, "cannot add network: %v", err)
		}
		go wire.Serve(context.WithoutCancel(ctx), listener, k.answer)
		made.Interfaces = append(made.Interfaces, Interface{address + "@" + n.Name, name})
	}
	k.nets = append(k.nets, made)
	return nil
}

func addressOf(name string) string {
	card, err := net.InterfaceByName(name)
	if err != nil {
		return ""
	}
	addresses, err := card.Addrs()
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		if network, is := a.(*net.IPNet); is && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return ""
}

var networks = regexp.MustCompile(`(?:^|\s)networks="?([a-z0-9]+)\(([^)]+)\)`)

// configure brings up the networks in the options of the module lnet, or otherwise the first interface that is not the loopback.
func (k *Kernel) configure(ctx context.Context) error {
	k.mutex.Lock()
	there := len(k.nets) > 0
	k.mutex.Unlock()
	if there {
		return nil
	}
	files, err := filepath.Glob("/etc/modprobe.d/*.conf")
	if err != nil {
		return err
	}
	for _, name := range files {
		if n := optionsOf(name); n.Name != "" {
			return k.add(ctx, n)
		}
	}
	cards, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, card := range cards {
		if card.Flags&net.FlagLoopback == 0 && card.Flags&net.FlagUp != 0 && addressOf(card.Name) != "" {
			return k.add(ctx, NewNet{"tcp", []string{card.Name}})
		}
	}
	return wire.Refuse(syscall.ENETDOWN, "the node has no interface with an IPv4 address but the loopback")
}

func optionsOf(name string) NewNet {
	file, err := os.Open(name)
	if err != nil {
		return NewNet{}
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		options, is := strings.CutPrefix(strings.TrimSpace(lines.Text()), "options lnet ")
		if found := networks.FindStringSubmatch(options); is && found != nil {
			return NewNet{found[1], strings.Split(found[2], ",")}
		}
	}
	return NewNet{}
}
