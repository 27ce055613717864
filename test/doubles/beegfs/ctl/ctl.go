// Package ctl is the double of beegfs-ctl 7: the modes that the operator and its tests use, with the texts of 7.4.6.
package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// call is one run of beegfs-ctl.
type call struct {
	ctx        context.Context
	input      io.Reader
	output     io.Writer
	errors     io.Writer
	secret     uint64
	management string
	silent     bool // sysNoEnterpriseFeatureMsg
	// rest holds the arguments other than configuration: the mode's own arguments, without the mode.
	rest map[string]string
	view wire.View
}

// mode is one mode of beegfs-ctl.
type mode struct {
	name       string
	enterprise bool
	// run runs the mode; early checks of arguments come before the request to the management service.
	run func(*call) int
}

// Exit codes of the modes (common/app/AbstractApp.h, 7.4.6).
const (
	success        = 0
	invalidConfig  = program.InvalidConfig
	initialization = program.Initialization
	runtimeError   = program.Runtime
	notComplete    = 4
)

func modes() []mode {
	return []mode{
		{"--getentryinfo", false, getEntryInfo}, {"--setpattern", false, setPattern}, {"--listnodes", false, listNodes},
		{"--createdir", false, createDir}, {"--removenode", false, removeNode}, {"--serverstats", false, serverStats},
		{"--removetarget", false, removeTarget}, {"--listtargets", false, listTargets}, {"--find", false, migrate},
		{"--migrate", false, migrate}, {"--genericdebug", false, genericDebug},
		{"--mirrormd", true, mirrorMetadata}, {"--addmirrorgroup", true, addMirrorGroup},
		{"--listmirrorgroups", false, listMirrorGroups}, {"--startresync", true, startResync}, {"--resyncstats", true, resyncStats},
		{"--addstoragepool", true, addStoragePool}, {"--liststoragepools", true, listStoragePools},
		{"--modifystoragepool", true, modifyStoragePool}, {"--removestoragepool", true, removeStoragePool},
	}
}

// Run runs beegfs-ctl and returns the exit code.
func Run(ctx context.Context, arguments []string, input io.Reader, output, errs io.Writer) int {
	c := &call{ctx: ctx, input: input, output: output, errors: errs}
	fail := func(err error) int { return program.Fail(errs, err, "Control Tool", "beegfs-client.conf") }
	values, err := c.read(arguments)
	if err != nil {
		return fail(err)
	}
	if c.secret, err = option.Secret(7, values); err != nil {
		return fail(err)
	}
	c.silent = values.Bool("sysNoEnterpriseFeatureMsg", false)
	port, _, err := option.Ports(7, values, "Mgmtd", 8008)
	if err != nil {
		return fail(err)
	}
	c.management = net.JoinHostPort(values["sysMgmtdHost"], strconv.Itoa(port))
	for _, mode := range modes() {
		if _, asked := c.rest[mode.name]; !asked {
			continue
		}
		delete(c.rest, mode.name)
		if code := c.early(mode.name); code != success {
			return code
		}
		if values["sysMgmtdHost"] == "" {
			return fail(&option.Error{Text: "Management host undefined"})
		}
		if err := wire.Ask(ctx, c.management, c.secret, "view", nil, &c.view); errors.Is(err, wire.ErrDisconnected) {
			c.complain("Metadata nodes download failed")
			return runtimeError
		} else if err != nil {
			c.complain("Management node communication failed: %s", values["sysMgmtdHost"])
			return runtimeError
		}
		if mode.enterprise {
			c.enterprise()
		}
		return mode.run(c)
	}
	c.say("%s", usage)
	return invalidConfig
}

// read splits the arguments into configuration, including the file in cfgFile, and the rest.
func (c *call) read(arguments []string) (option.Values, error) {
	given := map[string]string{}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		given[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	table := option.Ctl()
	values, ignored := option.Values{}, option.CtlIgnores()
	if path := given["--cfgFile"]; path != "" {
		file, err := option.File(path)
		if err != nil {
			return nil, err
		}
		for name, value := range file {
			if _, known := table[name]; !known && !slices.Contains(ignored, name) {
				// It becomes an argument of the mode, which then refuses it.
				given["--"+name] = value
				continue
			}
			values[name] = value
		}
	}
	c.rest = map[string]string{}
	for name, value := range given {
		bare, dashed := strings.CutPrefix(name, "--")
		if _, known := table[bare]; dashed && (known || slices.Contains(ignored, bare)) {
			values[bare] = value
		} else {
			c.rest[name] = value
		}
	}
	if _, mounted := values["mount"]; mounted {
		return nil, &option.Error{Text: "Given mountpoint is invalid: " + values["mount"]}
	}
	return values, nil
}

// early makes the checks that these modes make before they contact the management service.
func (c *call) early(mode string) int {
	if mode == "--listnodes" || mode == "--removenode" || mode == "--listmirrorgroups" {
		if kind(c.rest["--nodetype"]) == "" {
			c.complain("Invalid or missing node type.")
			return invalidConfig
		}
	}
	return success
}

func kind(text string) string {
	for _, known := range []string{"management", "meta", "metadata", "storage", "client"} {
		if strings.EqualFold(text, known) || known == "management" && text == "mgmt" {
			return strings.TrimSuffix(known, "data")
		}
	}
	return ""
}

func (c *call) say(format string, arguments ...any) {
	fmt.Fprintf(c.output, format+"\n", arguments...)
}

func (c *call) complain(format string, arguments ...any) {
	fmt.Fprintf(c.errors, format+"\n", arguments...)
}

// take removes an argument of the mode and returns its value.
func (c *call) take(name string) (string, bool) {
	value, given := c.rest[name]
	delete(c.rest, name)
	return value, given
}

// leftover refuses arguments that the mode does not have: the first by name.
func (c *call) leftover() bool {
	names := slices.Sorted(maps.Keys(c.rest))
	if len(names) == 0 {
		return false
	}
	c.complain("Invalid argument: %s\nUse \"--help\" as argument to show usage information.", names[0])
	return true
}

// positional takes the first argument by name: beegfs-ctl expects a path or a number there, whatever it is.
func (c *call) positional() (string, bool) {
	names := slices.Sorted(maps.Keys(c.rest))
	if len(names) == 0 {
		return "", false
	}
	delete(c.rest, names[0])
	return names[0], true
}

// change requests a change from the management service.
func (c *call) change(op string, change wire.Change) (wire.Changed, error) {
	change.Execute = true
	var changed wire.Changed
	err := wire.Ask(c.ctx, c.management, c.secret, op, change, &changed)
	return changed, err
}

// is reports whether a server refused with this text.
func is(err error, text string) bool {
	var refused *wire.RefusedError
	return errors.As(err, &refused) && refused.Text == text
}

func numbers(list string) ([]int, bool) {
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		number, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || number < 0 {
			return nil, false
		}
		all = append(all, number)
	}
	return all, true
}

func join(all []int) string {
	texts := make([]string, len(all))
	for i, number := range all {
		texts[i] = strconv.Itoa(number)
	}
	return strings.Join(texts, ",")
}

// enterprise prints a box on standard error, unless sysNoEnterpriseFeatureMsg suppresses it.
func (c *call) enterprise() {
	if c.silent {
		return
	}
	c.complain("%s", box)
}

const box = `--------------------------------------------------------------------------------
| BeeGFS Enterprise Feature                                                    |
|                                                                              |
| This double of beegfs-ctl prints a box where the real one names the license. |
--------------------------------------------------------------------------------
`

const usage = `BeeGFS Command-Line Control Tool (double)

GENERAL USAGE:
 $ beegfs-ctl --<modename> --help
 $ beegfs-ctl --<modename> [mode_arguments] [client_arguments]
`
