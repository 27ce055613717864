package telemetry

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// longest bounds one sentence, in bytes (PointStatus.telemetry).
const longest = 256

// Short returns at most n sentences for a status: the busiest target, the busiest daemon, the total throughput of all targets, and the
// reasons for missing figures of nodes. Several summaries of one disk or daemon, for example from several repetitions, count as one.
func Short(summaries []Summary, n int) []string {
	all := merged(summaries)
	targets := filter(all, func(s Summary) bool { return s.Target != "" && s.Problem == "" })
	daemons := filter(all, func(s Summary) bool { return s.Daemon != "" && s.Problem == "" })
	var out []string
	say := func(format string, args ...any) {
		out = append(out, v1alpha1.Cut(fmt.Sprintf(format, args...), longest))
	}
	named := func(s Summary) bool { return s.Count == 0 }
	if b := busiest(filter(targets, named), func(s Summary) float64 { return s.Utilization }); b != nil {
		say("busiest target %s on %s %.0f %% (at most %.0f %%), queue %.1f", b.Target, b.Node, 100*b.Utilization, 100*b.MaxUtilization, b.Queue)
	}
	if b := busiest(filter(daemons, named), func(s Summary) float64 { return s.CPUs }); b != nil {
		say("busiest daemon %s on %s %.1f CPUs (at most %.1f)", b.Daemon, b.Node, b.CPUs, b.MaxCPUs)
	}
	var t Summary
	for _, s := range targets {
		t = t.plus(s)
	}
	if n := float64(t.Count); t.Count > 1 {
		say("%d targets together: %s/s and %.0f IOPS read, %s/s and %.0f IOPS written, %.0f %% on average", t.Count,
			v1alpha1.Bytes(int64(n*t.ReadBytesPerSecond)), n*t.ReadIOPS,
			v1alpha1.Bytes(int64(n*t.WriteBytesPerSecond)), n*t.WriteIOPS, 100*t.Utilization)
	}
	var silent []string
	for _, s := range all {
		if s.Problem != "" {
			silent = append(silent, s.Node+" ("+s.Problem+")")
		}
	}
	if len(silent) > 0 {
		say("nothing is known of %s", strings.Join(silent, ", "))
	}
	return out[:min(len(out), max(n, 0))]
}

func filter(all []Summary, keep func(Summary) bool) []Summary {
	var out []Summary
	for _, s := range all {
		if keep(s) {
			out = append(out, s)
		}
	}
	return out
}
