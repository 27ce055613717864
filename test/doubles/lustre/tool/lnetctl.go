package tool

import (
	"context"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
)

// Lnetctl is lnetctl: --version, lnet configure, net show and net add.
func Lnetctl(ctx context.Context, c Call) int {
	words := append(append([]string{}, c.Arguments...), "", "")
	switch {
	case words[0] == "--version":
		c.say("lnetctl %s\n", kernel.Version)
		return 0
	case words[0] == "lnet" && words[1] == "configure":
		if err := load(ctx); err != nil {
			return c.wrong("lnet", "configure", err)
		}
		// Without --all, LNet has only the loopback network.
		if len(c.Arguments) > 2 && c.Arguments[2] == "--all" {
			if err := ask(ctx, "configure", kernel.Nothing{}, nil); err != nil {
				return c.wrong("lnet", "configure", err)
			}
		}
		return 0
	case words[0] == "net" && words[1] == "show" && len(c.Arguments) == 2:
		return c.netShow(ctx)
	case words[0] == "net" && words[1] == "add":
		return c.netAdd(ctx, c.Arguments[2:])
	}
	c.complain("lnetctl: the double does not play %s\n", strings.Join(c.Arguments, " "))
	return int(syscall.EINVAL)
}

// wrong prints an error in the format of lnetctl.
func (c *Call) wrong(what, how string, err error) int {
	c.complain("%s:\n    - %s:\n          errno: -%d\n          descr: \"%s\"\n", how, what, code(err), err)
	return code(err)
}

func (c *Call) netShow(ctx context.Context) int {
	var nets []kernel.Net
	if err := ask(ctx, "nets", kernel.Nothing{}, &nets); err != nil {
		return c.wrong("net", "show", syscall.ENETDOWN)
	}
	c.say("net:\n-     net type: lo\n      local NI(s):\n      -     nid: 0@lo\n            status: up\n")
	for _, n := range nets {
		c.say("-     net type: %s\n      local NI(s):\n", n.Name)
		for _, i := range n.Interfaces {
			c.say("      -     nid: %s\n            status: up\n            interfaces:\n                  0: %s\n", i.NID, i.Name)
		}
	}
	return 0
}

func (c *Call) netAdd(ctx context.Context, rest []string) int {
	var n kernel.NewNet
	for i := 0; i+1 < len(rest); i += 2 {
		switch rest[i] {
		case "--net":
			n.Name = rest[i+1]
		case "--if":
			n.Interfaces = strings.Split(rest[i+1], ",")
		default:
			c.complain("lnetctl: the double does not play %s of net add\n", rest[i])
			return int(syscall.EINVAL)
		}
	}
	if n.Name == "" || len(n.Interfaces) == 0 || len(rest)%2 != 0 {
		c.complain("add:\n    - net:\n          errno: -22\n          descr: \"mandatory parameter is not specified\"\n")
		return int(syscall.EINVAL)
	}
	if err := load(ctx); err != nil {
		return c.wrong("net", "add", err)
	}
	if err := ask(ctx, "add-net", n, nil); err != nil {
		return c.wrong("net", "add", err)
	}
	return 0
}
