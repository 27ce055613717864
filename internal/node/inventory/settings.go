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

// Sources of the expectations. The operator changes nothing to meet them.
const (
	sourceBIOS   = "NetApp TR-4782, BIOS changes"
	sourceKernel = "NetApp TR-4782, operating system changes (processor.max_cstate=1 intel_idle.max_cstate=0)"
)

// unknown is the value of a setting that the kernel does not show. It never counts as expected.
const unknown = "unknown"

// settings returns the host's settings that the published setups and the filesystems' documentation ask for, by name.
func (c Collector) settings() []v1alpha1.HostSetting {
	all := []v1alpha1.HostSetting{
		setting("cStates", c.deepestIdleState(), "C1", sourceKernel),
		setting("cpuGovernor", c.governors(), "performance", sourceBIOS),
		setting("smt", c.smt(), "off", sourceBIOS),
	}
	// These states are no deeper than C1 under other names: haltpoll is a halt in a virtual machine, and "none" leaves idle CPUs to the
	// hypervisor.
	all[0].AsExpected = slices.Contains([]string{"C1", "C1_ACPI", "POLL", "haltpoll idle", "none"}, all[0].Found)
	for _, s := range c.Settings {
		found := value(c.Proc, "sys", strings.ReplaceAll(s.Name, ".", "/"))
		if s.Name == spec.TransparentHugePages {
			found = c.hugePages()
		}
		all = append(all, setting(s.Name, found, s.Expected, s.Source))
	}
	return all
}

func setting(name, found, expected, source string) v1alpha1.HostSetting {
	found = text(firstOf(found, unknown), 256)
	return v1alpha1.HostSetting{Name: name, Found: found, Expected: expected, AsExpected: found == expected, Source: source}
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
