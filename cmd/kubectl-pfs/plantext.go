package main

import (
	"cmp"
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/internal/preview"
)

func planHead(fs *v1alpha1.FileSystem, how string) string {
	return strings.TrimRight(fmt.Sprintf("%s/%s   %s %s   %s", fs.Namespace, fs.Name, fs.Spec.Type, fs.Spec.Version, how), " ") + "\n"
}

// previewText is what a FileSystem would do, for a person.
func previewText(p *preview.Preview) string {
	how := "changed"
	if p.New {
		how = "new"
	}
	var out strings.Builder
	out.WriteString(planHead(p.FileSystem, how))
	if p.Refused != nil {
		out.WriteString(wrapped("Refused, and nothing changes: ", "  ", p.Refused.Reason+": "+p.Refused.Message))
		return out.String()
	}
	bullets(&out, "A person has to change", problemsOf(p))
	bullets(&out, "Chosen by the operator, because the spec says nothing", chosen(p.FileSystem))
	if len(p.Places) > 0 {
		rows := make([][]string, len(p.Places))
		for i, place := range p.Places {
			rows[i] = []string{place.Role, listed(place.Nodes)}
		}
		const mostRole = 40
		out.WriteString("\n" + table([]column{{"ROLE", mostRole}, {"NODES", screenWidth}}, rows))
	}
	if p.Ports.Count > 0 {
		fmt.Fprintf(&out, "\nPorts on each of its nodes: %d to %d\n", p.Ports.First, p.Ports.First+p.Ports.Count-1)
	}
	bullets(&out, "Directories with data", p.Directories)
	out.WriteString(disksText(p.Disks))
	bullets(&out, "StorageTargets that are released", p.Leaves)
	bullets(&out, "Recorded permanently", p.Joins)
	var restarts []string
	for _, r := range p.Restarts {
		line := r.Daemon
		if len(r.Nodes) > 0 {
			line += " on " + listed(r.Nodes)
		}
		restarts = append(restarts, line+": "+r.Why)
	}
	bullets(&out, "Servers that restart", restarts)
	bullets(&out, "Daemons that stop", p.Stops)
	if !p.New && len(p.Disks)+len(p.Leaves)+len(p.Joins)+len(restarts)+len(p.Stops) == 0 {
		out.WriteString("\nNo disk is taken up, and no server restarts.\n")
	}
	return out.String()
}

// bullets writes a list under a title, if it has anything.
func bullets(out *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	out.WriteString("\n" + title + "\n")
	for _, line := range lines {
		out.WriteString(wrapped("  - ", "    ", line))
	}
}

func problemsOf(p *preview.Preview) []string {
	var out []string
	for _, problem := range p.Problems {
		out = append(out, problem.Reason+": "+problem.Message)
	}
	return out
}

// disksText is what would happen to each disk.
func disksText(disks []preview.Disk) string {
	if len(disks) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\nDisks that are taken up: %d\n", len(disks))
	for _, d := range disks {
		where := strings.ToLower(string(d.Role))
		if d.Pool != "" {
			where += " pool " + d.Pool
		}
		out.WriteString(wrapped("  ", "      ", fmt.Sprintf("%s: %s on node %s, now %s, %s, serial number %s, for %s",
			d.Target, d.Device.ID, d.Node,
			cmp.Or(d.KernelName, "absent"), bytesText(d.Device.SizeBytes), cmp.Or(d.Device.Serial, "none"), where)))
		out.WriteString(wrapped("    ", "      ", fateOf(d)))
		if lost := d.Decision.Plan; lost != nil && len(lost.Refusals) == 0 {
			for _, what := range lost.Destroys {
				out.WriteString(wrapped("    LOSES ", "      ", what))
			}
		}
	}
	return out.String()
}

// fateOf says what would happen to a disk.
func fateOf(d preview.Disk) string {
	switch {
	case d.Found == plan.NoDisk:
		return "the inventory of the node has no such disk; nothing is formatted before it is there"
	case d.Found == plan.OwnDisk:
		return "it carries this target: it is taken up with its data, if its mark agrees, and is not formatted"
	case d.Decision.Ready.Reason == v1alpha1.ReasonAwaitingApproval:
		return "it is FORMATTED after a person has approved its plan (kubectl pfs target approve)"
	case d.Decision.Action == plan.Record:
		return "it is FORMATTED at once, because it is blank"
	default:
		return "refused: " + d.Decision.Ready.Message
	}
}
