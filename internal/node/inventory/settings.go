package inventory

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// unknown is the value of a setting that the kernel does not show. It never counts as expected.
const unknown = "unknown"

// settings returns the host's settings that the published setups and the filesystems' documentation ask for, in their order. If several ask
// for the same one, the first expectation is shown.
func (c Collector) settings() []v1alpha1.HostSetting {
	var all []v1alpha1.HostSetting
	for _, s := range c.Settings {
		if !slices.ContainsFunc(all, func(h v1alpha1.HostSetting) bool { return h.Name == s.Name }) {
			all = append(all, expecting(text(firstOf(c.found(s.Name), unknown), 256), s))
		}
	}
	return all
}

// found returns the value in force, empty if the kernel does not show it.
func (c Collector) found(name string) string {
	switch name {
	case spec.TransparentHugePages:
		return c.hugePages()
	case spec.CStates:
		return c.deepestIdleState()
	case spec.CPUGovernor:
		return c.governors()
	case spec.SMT:
		return c.smt()
	default:
		return value(c.Proc, "sys", strings.ReplaceAll(name, ".", "/"))
	}
}

// expecting compares a value with an expectation.
func expecting(found string, s spec.HostSetting) v1alpha1.HostSetting {
	as := found == s.Expected
	if s.Name == spec.CStates {
		// These states are no deeper than C1 under other names: haltpoll is a halt in a virtual machine, and "none" leaves idle CPUs to the
		// hypervisor.
		as = slices.Contains([]string{"C1", "C1_ACPI", "POLL", "haltpoll idle", "none"}, found)
	}
	return v1alpha1.HostSetting{Name: s.Name, Found: found, Expected: s.Expected, AsExpected: as, Source: s.Source}
}

// Applying leaves in an inventory the settings that the servers of the node ask for. The argument serves is true for a type of filesystem
// and a role that a server of the node has.
func Applying(status *v1alpha1.NodeInventoryStatus, asked []spec.HostSetting, serves func(fileSystem, role string) bool) {
	var out []v1alpha1.HostSetting
	for _, found := range status.Settings {
		i := slices.IndexFunc(asked, func(s spec.HostSetting) bool {
			return s.Name == found.Name && slices.ContainsFunc(s.Roles, func(role string) bool { return serves(s.FileSystem, role) })
		})
		if i >= 0 {
			out = append(out, expecting(found.Found, asked[i]))
		}
	}
	status.Settings = out
	status.Summary.Settings = countSettings(out)
}

// deepestIdleState returns the deepest state that any CPU may enter (kernel Documentation/admin-guide/pm/cpuidle.rst).
func (c Collector) deepestIdleState() string {
	directory := filepath.Join(c.Sys, "devices/system/cpu")
	deepest, name := -1, ""
	for _, cpu := range c.online() {
		states := filepath.Join(directory, "cpu"+strconv.Itoa(cpu), "cpuidle")
		for _, state := range names(states) {
			n, err := strconv.Atoi(strings.TrimPrefix(state, "state"))
			if err != nil || n <= deepest || value(states, state, "disable") == "1" {
				continue
			}
			deepest, name = n, value(states, state, "name")
		}
	}
	if name == "" && value(directory, "cpuidle/current_driver") == "none" {
		return "none"
	}
	return name
}

// governors returns the governors of all CPUs (kernel Documentation/admin-guide/pm/cpufreq.rst), joined by commas if they differ.
func (c Collector) governors() string {
	var all []string
	for _, cpu := range c.online() {
		if governor := value(c.Sys, "devices/system/cpu/cpu"+strconv.Itoa(cpu), "cpufreq/scaling_governor"); governor != "" {
			all = append(all, governor)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

func (c Collector) online() []int {
	set, err := cpuset.Parse(value(c.Sys, "devices/system/cpu/online"))
	if err != nil {
		return nil
	}
	return set.List()
}

// smt returns "on" if cores currently have more than one thread (kernel Documentation/ABI/testing/sysfs-devices-system-cpu).
func (c Collector) smt() string {
	return map[string]string{"0": "off", "1": "on"}[value(c.Sys, "devices/system/cpu/smt/active")]
}

var chosen = regexp.MustCompile(`\[(\w+)\]`)

// hugePages returns the value in brackets of "always [madvise] never" (kernel Documentation/admin-guide/mm/transhuge.rst).
func (c Collector) hugePages() string {
	if match := chosen.FindStringSubmatch(value(c.Sys, "kernel/mm/transparent_hugepage/enabled")); match != nil {
		return match[1]
	}
	return ""
}
