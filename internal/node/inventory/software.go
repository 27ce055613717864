package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/modules"
	"parallelfs.dev/operator/internal/node/spec"
)

// build holds the version fields of a module.
type build struct {
	// version is the module's own version, and kernel the release that it was built for. kernel is empty if it is not given or does not
	// matter.
	version, kernel string
}

// modulesOf returns the modules that a filesystem needs, sorted by name.
func modulesOf(s spec.HostSoftware) []string {
	all := slices.Concat(s.Server.Modules, s.Client.Modules)
	slices.Sort(all)
	return slices.Compact(all)
}

// built reads the versions of the filesystems' modules. A loaded module fits the kernel, whatever it was built for.
func (c Collector) built(ctx context.Context, kernel modules.Kernel) (found map[string]build, problems []string) {
	found = map[string]build{}
	for _, s := range c.Software {
		for _, name := range modulesOf(s) {
			switch kernel.State(name) {
			case modules.Loaded:
				found[name] = build{version: kernel.Version(name)}
			case modules.Available:
				out, err := c.ask(ctx, "modinfo", "-k", kernel.Release, name)
				if err != nil {
					problems = append(problems, fmt.Sprintf("can't find out the version of the module %s: %s", name, err))
					continue
				}
				found[name] = buildOf(out)
			}
		}
	}
	return found, problems
}

// buildOf parses the output of modinfo(8). A module below weak-updates was deliberately built for another kernel with the same interface
// (weak-modules(8) of RHEL).
func buildOf(modinfo string) build {
	fields := map[string]string{}
	for line := range strings.Lines(modinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && fields[key] == "" {
			fields[key] = strings.TrimSpace(value)
		}
	}
	b := build{version: fields["version"]}
	if kernel, _, _ := strings.Cut(fields["vermagic"], " "); !strings.Contains(fields["filename"], "/weak-updates/") {
		b.kernel = kernel
	}
	return b
}

// software checks what one filesystem needs.
func (c Collector) software(
	ctx context.Context, s spec.HostSoftware, kernel modules.Kernel, built map[string]build,
) (found v1alpha1.HostSoftware, problems []string) {
	found = v1alpha1.HostSoftware{Name: s.Name}
	wanted := slices.Concat(s.Server.Programs, s.Client.Programs)
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		if host.Program(c.Host, name) == "" {
			continue
		}
		program := v1alpha1.HostProgram{Name: name}
		// In some versions, some programs don't have this option. Such a program has the version of the others, or its version is unknown.
		if out, err := c.Run(ctx, host.Program(c.Host, name), "--version"); err != nil {
			problems = append(problems, fmt.Sprintf("can't find out the version of %s: %s", name, err))
		} else if out.Code == 0 {
			program.Version = versionIn(string(out.Stdout))
		}
		found.Programs = append(found.Programs, program)
	}
	standsIn := s.StandIn != "" && host.Program(c.Host, s.StandIn) != ""
	if standsIn {
		s.Server.Modules, s.Client.Modules = nil, nil
	}
	if (standsIn || kernel.State(s.NIDsOf) == modules.Loaded) && host.Program(c.Host, s.NIDs[0]) != "" {
		out, err := c.ask(ctx, s.NIDs...)
		if err != nil {
			problems = append(problems, fmt.Sprintf("can't find out the NIDs of the node: %s", err))
		}
		found.NIDs = nidsIn(out)
		clients, more := c.clients(ctx, s)
		found.Clients, problems = clients, append(problems, more...)
	}
	found.MissingForServers = text(missing(s, s.Server, kernel, built, found.Programs), 1024)
	found.MissingForClients = text(missing(s, s.Client, kernel, built, found.Programs), 1024)
	return found, problems
}

// clients reads how the mounts of a filesystem are connected. Without a mount, the program fails and prints nothing.
func (c Collector) clients(ctx context.Context, s spec.HostSoftware) (found []v1alpha1.HostClient, problems []string) {
	const most, longest = 16, 32
	path := ""
	if len(s.Clients) > 0 {
		path = host.Program(c.Host, s.Clients[0])
	}
	if path == "" {
		return nil, nil
	}
	out, err := c.Run(ctx, append([]string{path}, s.Clients[1:]...)...)
	if err != nil {
		return nil, []string{fmt.Sprintf("can't find out how the mounts of %s are connected: %s", s.Name, err)}
	}
	for _, m := range s.ReadClients(string(out.Stdout)) {
		client := v1alpha1.HostClient{Name: text(m.Name, 64), Disconnected: cut(m.Disconnected, longest, 64)}
		client.Evictions, client.LastEvicted = c.evictions(s.Name+"/"+m.Name, m.Evicted)
		found = append(found, client)
	}
	return found[:min(len(found), most)], nil
}

// evictions counts the evictions observed so far, and returns the time of the last one.
func (c Collector) evictions(of string, now map[string]time.Time) (count int32, last *metav1.Time) {
	seen := now
	if c.Evicted != nil {
		if c.Evicted[of] == nil {
			c.Evicted[of] = map[string]time.Time{}
		}
		maps.Copy(c.Evicted[of], now)
		seen = c.Evicted[of]
	}
	for _, at := range seen {
		if last == nil || at.After(last.Time) {
			last = &metav1.Time{Time: at}
		}
	}
	return int32(min(len(seen), math.MaxInt32)), last
}

// ForServers checks what the servers of one filesystem need on this node. missing is a sentence about what the node must get, or empty.
// version is the version of its modules and programs, or empty if none reports one.
func (c Collector) ForServers(ctx context.Context, s spec.HostSoftware) (version, missing string) {
	c.Software = []spec.HostSoftware{s}
	kernel := modules.Node{Sys: c.Sys, Proc: c.Proc, Host: c.Host, Known: c.Modules}.Look()
	built, problems := c.built(ctx, kernel)
	found, more := c.software(ctx, s, kernel, built)
	if missing = found.MissingForServers; missing != "" {
		return "", missing
	}
	for _, name := range s.OneVersion {
		version = cmp.Or(version, built[name].version)
	}
	for _, p := range found.Programs {
		version = cmp.Or(version, p.Version)
	}
	if problems = append(problems, more...); version == "" && len(problems) > 0 {
		return "", strings.Join(problems, "; ")
	}
	return version, ""
}

// missing returns a sentence about what the node must get for one purpose. It is empty if nothing is missing.
func missing(
	s spec.HostSoftware, need spec.HostNeed, kernel modules.Kernel, built map[string]build, programs []v1alpha1.HostProgram,
) string {
	var lacks, absent []string
	for _, module := range need.Modules {
		if kernel.State(module) == modules.Missing {
			absent = append(absent, module)
		}
	}
	if len(absent) > 0 {
		lacks, absent = append(lacks, "its kernel "+kernel.Release+" has no "+listed("module", absent)), nil
	}
	versions := map[string][]string{}
	for _, name := range need.Programs {
		i := slices.IndexFunc(programs, func(p v1alpha1.HostProgram) bool { return p.Name == name })
		if i < 0 {
			absent = append(absent, name)
		} else if v := programs[i].Version; v != "" {
			versions[v] = append(versions[v], name)
		}
	}
	if len(absent) > 0 {
		lacks = append(lacks, "it has no "+listed("program", absent))
	}
	if len(lacks) > 0 {
		return fmt.Sprintf("the node lacks what %s needs: %s; install %s for this kernel", s.Name, strings.Join(lacks, ", and "), need.Install)
	}
	for _, module := range need.Modules {
		if of := built[module].kernel; of != "" && of != kernel.Release {
			return fmt.Sprintf("the module %s was built for kernel %s, and the node runs %s; install %s for this kernel",
				module, of, kernel.Release, need.Install)
		}
		if v := built[module].version; v != "" && slices.Contains(s.OneVersion, module) {
			versions[v] = append(versions[v], "the module "+module)
		}
	}
	if len(versions) < 2 {
		return ""
	}
	var differ []string
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		differ = append(differ, v+" ("+strings.Join(versions[v], ", ")+")")
	}
	return fmt.Sprintf("what the node has of %s is of several versions: %s; install one version of all, and load its modules by a restart of the node",
		s.Name, strings.Join(differ, " and "))
}

// listed joins one name or several: module a, modules a and b.
func listed(kind string, names []string) string {
	if len(names) == 1 {
		return kind + " " + names[0]
	}
	last := len(names) - 1
	return kind + "s " + strings.Join(names[:last], ", ") + " and " + names[last]
}

// version matches numbers with points, which may be followed by more, as in 2.15.5_3_g1a2b3c.
var version = regexp.MustCompile(`^\d+(\.\d+)+`)

// versionIn returns the version in "lctl 2.17.57" or in "mount.nfs 2.15.0 (libmount)".
func versionIn(output string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(output), "\n")
	for word := range strings.FieldsSeq(first) {
		if version.MatchString(word) {
			return text(word, 64)
		}
	}
	return ""
}

// nidsIn returns the NIDs in an output.
func nidsIn(output string) []string {
	var all []string
	for nid := range strings.FieldsSeq(output) {
		if strings.Contains(nid, "@") {
			all = append(all, text(nid, 128))
		}
	}
	return all[:min(len(all), 32)]
}

// ask runs a program of the node, which must succeed.
func (c Collector) ask(ctx context.Context, argv ...string) (string, error) {
	path := host.Program(c.Host, argv[0])
	if path == "" {
		return "", errors.New("the node has no " + argv[0])
	}
	out, err := c.Run(ctx, append([]string{path}, argv[1:]...)...)
	switch said, _, _ := strings.Cut(strings.TrimSpace(string(out.Stderr)), "\n"); {
	case err != nil:
		return "", err
	case out.Code != 0:
		return "", fmt.Errorf("%s ended with exit code %d: %s", strings.Join(argv, " "), out.Code, text(said, 256))
	}
	return string(out.Stdout), nil
}
