//go:build scale

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is the kernel's unit of utime and stime for every program: USER_HZ, which is 100 on all of Go's platforms (proc_pid_stat(5)).
const ticks = 100

// processStat reads the name, the parent, and the CPU time of a process (proc_pid_stat(5)).
func processStat(pid int) (name string, parent int, cpu time.Duration, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, 0, fmt.Errorf("process %d is not there: %w", pid, err)
	}
	// "pid (name) state parent …"; a name may have spaces and parentheses.
	from, to := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	fields := strings.Fields(string(content[to+1:]))
	const parentField, userField, systemField = 1, 11, 12
	if from < 0 || len(fields) <= systemField {
		return "", 0, 0, fmt.Errorf("/proc/%d/stat can't be understood: %q", pid, content)
	}
	if parent, err = strconv.Atoi(fields[parentField]); err != nil {
		return "", 0, 0, fmt.Errorf("/proc/%d/stat can't be understood: %w", pid, err)
	}
	for _, field := range []int{userField, systemField} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return "", 0, 0, fmt.Errorf("/proc/%d/stat can't be understood: %w", pid, err)
		}
		cpu += time.Duration(n) * time.Second / ticks
	}
	return string(content[from+1 : to]), parent, cpu, nil
}

// child is the newest process of that name that this one has started.
func child(name string) (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	newest := 0
	for _, directory := range all {
		pid, _ := strconv.Atoi(filepath.Base(directory))
		found, parent, _, err := processStat(pid)
		if err == nil && found == name && parent == os.Getpid() {
			newest = max(newest, pid)
		}
	}
	if newest == 0 {
		return 0, fmt.Errorf("%s does not run", name)
	}
	return newest, nil
}

// memoryMiB is the memory that a process has now, and the most that it has had (VmRSS and VmHWM of proc_pid_status(5)).
func memoryMiB(pid int) (resident, peak float64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("process %d is not there: %w", pid, err)
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(content), "\n"+name+":")
		kib := 0.0
		_, _ = fmt.Sscanf(rest, "%f kB", &kib) // 0 means that there is none
		return kib / 1024
	}
	if resident, peak = field("VmRSS"), field("VmHWM"); resident == 0 || peak == 0 {
		return 0, 0, fmt.Errorf("/proc/%d/status has no VmRSS or no VmHWM", pid)
	}
	return resident, peak, nil
}
