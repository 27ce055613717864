package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/load"
)

// readLoad reads what the disks and daemons of a FileSystem did in the time before now, from the agents of its nodes.
func (c connection) readLoad(ctx context.Context, name string, now time.Time, last time.Duration) (load.Input, error) {
	fs, err := c.fileSystem(ctx, name)
	if err != nil {
		return load.Input{}, err
	}
	in := load.Input{
		Nodes: map[string]load.Node{}, Metadata: map[string]bool{},
		IsMetadata: func(daemon string) bool { return daemon == "master" || strings.HasPrefix(daemon, "meta") },
		// The master of a MooseFS answers all requests in one thread.
		OneThread: func(daemon string) bool { return fs.Spec.Type == v1alpha1.MooseFS && daemon == "master" },
	}
	var seen snapshot
	var agents []corev1.Pod
	of := ofFileSystem(c.namespace, name)
	if err := errors.Join(seen.readTargets(ctx, c, of...), seen.readNodes(ctx, c, of...),
		seen.readInventories(ctx, c, ""), pages(ctx, c, "pods of agents", func() *corev1.PodList { return &corev1.PodList{} },
			func(l *corev1.PodList) { agents = append(agents, l.Items...) },
			client.MatchingLabels{"app.kubernetes.io/managed-by": "parallelfs-operator", "app.kubernetes.io/component": "agent"})); err != nil {
		return load.Input{}, err
	}
	servers := map[string]bool{}
	for i := range seen.targets {
		servers[seen.targets[i].Spec.Node] = true
		in.Metadata[seen.targets[i].Name] = seen.targets[i].Spec.Role != v1alpha1.RoleStorage
	}
	for i := range seen.nodes {
		servers[seen.nodes[i].Spec.Node] = true
	}
	for i := range seen.inventories {
		in.Nodes[seen.inventories[i].Name] = abilityOf(&seen.inventories[i].Status)
	}
	agents = slices.DeleteFunc(agents, func(p corev1.Pod) bool { return !servers[p.Spec.NodeName] })
	answers := make([][]telemetry.Summary, len(agents))
	slots, all := make(chan struct{}, 16), sync.WaitGroup{}
	for i := range agents {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i] = c.ask(ctx, &agents[i], name, now, last)
		})
	}
	all.Wait()
	in.Summaries = slices.Concat(answers...)
	return in, nil
}

// abilityOf returns the CPUs of a node and the speed of its fastest link.
func abilityOf(inventory *v1alpha1.NodeInventoryStatus) load.Node {
	out := load.Node{CPUs: int(inventory.CPU.Threads)}
	const bitsOfMbps = 1e6 / 8
	for _, n := range inventory.NetworkInterfaces {
		if n.State == "up" {
			out.BytesPerSecond = max(out.BytesPerSecond, float64(n.SpeedMbps)*bitsOfMbps)
		}
	}
	return out
}

// ask asks the agent of one node. A failure becomes a Summary with a Problem.
func (c connection) ask(ctx context.Context, agent *corev1.Pod, fileSystem string, now time.Time, last time.Duration) []telemetry.Summary {
	node := agent.Spec.NodeName
	for _, port := range agent.Spec.Containers[0].Ports {
		if port.Name != "telemetry" {
			continue
		}
		data, err := c.live.samples(ctx, agent.Namespace, agent.Name, port.ContainerPort, map[string]string{
			"from": now.Add(-last).UTC().Format(time.RFC3339Nano), "to": now.UTC().Format(time.RFC3339Nano),
			"fileSystem": c.namespace + "/" + fileSystem,
		})
		var answer telemetry.Answer
		if err == nil {
			err = json.Unmarshal(data, &answer)
		}
		switch {
		case err != nil:
			return []telemetry.Summary{{Node: node, Problem: "its agent does not answer: " + err.Error()}}
		case len(answer.Summaries) == 0:
			clock := answer.Time.UTC().Format(time.RFC3339)
			return []telemetry.Summary{{Node: node, Problem: "it has no samples of this time; its clock is " + clock}}
		}
		return answer.Summaries
	}
	return []telemetry.Summary{{Node: node, Problem: "its agent takes no samples (agent.telemetryInterval)"}}
}

// topText shows the disks and daemons, the busiest first.
func topText(all []telemetry.Summary) string {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b telemetry.Summary) int { return -compareUse(a, b) })
	var disks, daemons [][]string
	for _, s := range sorted {
		rate := func(n float64) string { return v1alpha1.Bytes(int64(n)) + "/s" }
		switch {
		case s.Problem != "":
		case s.Target != "":
			disks = append(disks, []string{s.Target, s.Node, fmt.Sprintf("%.0f %%", 100*s.Utilization), fmt.Sprintf("%.1f", s.Queue),
				fmt.Sprintf("%.0f", s.ReadIOPS), fmt.Sprintf("%.0f", s.WriteIOPS), rate(s.ReadBytesPerSecond), rate(s.WriteBytesPerSecond)})
		default:
			daemons = append(daemons, []string{s.Daemon, s.Node, fmt.Sprintf("%.2f", s.CPUs), fmt.Sprintf("%.2f", s.MaxCPUs)})
		}
	}
	out := ""
	if len(disks) > 0 { // directories have none
		out = table([]column{
			{"DISK OF", 40}, {"NODE", 24}, {"BUSY", 6}, {"QUEUE", 6}, {"READS/S", 8}, {"WRITES/S", 8}, {"READ", 12}, {"WRITTEN", 12},
		}, disks) + "\n"
	}
	return out + table([]column{{"DAEMON", 40}, {"NODE", 24}, {"CPUS", 6}, {"AT MOST", 8}}, daemons)
}

// compareUse orders disks and daemons by their use.
func compareUse(a, b telemetry.Summary) int {
	if a.Utilization+a.CPUs < b.Utilization+b.CPUs {
		return -1
	}
	return 1
}

// whyText shows what limits a FileSystem, and the most used thing of each kind.
func whyText(name string, v load.Verdict) string {
	limit := name + ": "
	if v.Limit != "" {
		limit += "limited by " + string(v.Limit) + ". "
	}
	var rows [][]string
	for _, u := range v.Uses {
		rows = append(rows, []string{string(u.Kind), fmt.Sprintf("%.0f %%", 100*u.Share), u.Name, u.Node, u.Numbers})
	}
	var out strings.Builder
	out.WriteString(wrapped("", "  ", limit+v.Why+".") + "\n")
	out.WriteString(table([]column{{"KIND", 8}, {"USED", 6}, {"MOST USED", 30}, {"NODE", 16}, {"NUMBERS", 0}}, rows))
	for _, u := range v.Unknown {
		out.WriteString(wrapped("Unknown: ", "  ", u))
	}
	return out.String()
}

// loadCommand makes a command that reads the agents' samples of a FileSystem.
func (a *app) loadCommand(cmd *cobra.Command, show func(w io.Writer, format, name string, in load.Input) error) *cobra.Command {
	var format string
	last := time.Minute
	cmd.Args = exactly("FILESYSTEM")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := knownFormat(format); err != nil {
			return err
		}
		if last < time.Second || last > 2*time.Hour {
			return usage(errors.New("--last is a time from 1s to 2h: agents keep the samples of two hours"))
		}
		c, err := a.connect(a.cluster)
		if err != nil {
			return err
		}
		in, err := c.readLoad(cmd.Context(), args[0], a.now(), last)
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), format, c.namespace+"/"+args[0], in)
	}
	cmd.Flags().DurationVar(&last, "last", last, "the time before now whose samples count")
	outputFlag(cmd, &format)
	return cmd
}

const loadRights = `It asks the agents through the API server. It needs the right to list NodeInventories and the pods of all namespaces,
and to get pods/proxy in the namespace of the operator.`

func (a *app) topCommand() *cobra.Command {
	return a.loadCommand(&cobra.Command{
		Use:   "top FILESYSTEM",
		Short: "What the disks and daemons of a FileSystem do now",
		Long:  "top shows what each disk and daemon did in the last minute, the busiest first. " + loadRights,
		Example: `  kubectl pfs top scratch
  kubectl pfs top scratch --last 10s -o json`,
	}, func(w io.Writer, format, _ string, in load.Input) error {
		if format != "" {
			return encode(w, format, in.Summaries)
		}
		var text strings.Builder
		text.WriteString(topText(in.Summaries))
		for _, s := range in.Summaries {
			if s.Problem != "" {
				text.WriteString(wrapped("Unknown: ", "  ", s.Node+": "+s.Problem))
			}
		}
		_, err := io.WriteString(w, text.String())
		return err
	})
}

func (a *app) whyCommand() *cobra.Command {
	return a.loadCommand(&cobra.Command{
		Use:   "why FILESYSTEM",
		Short: "What limits a FileSystem now: disks, network, CPUs or metadata, with the numbers",
		Long: `why compares what the servers did in the last minute with what they can do. It names the most used thing if that is used by
80 % or more: the disks, the network, the CPUs, or the metadata (its disks and daemons; the master of a MooseFS uses one CPU). Run it while
programs work.

The network is an estimate: what the disks of a node move, as a part of its fastest link. Data from the page cache does not count. A disk
that is always busy, and has a short queue, may still take more requests at the same time: this is usual for SSDs. Lustre's servers are
threads of the kernel, so their CPUs are unknown.

` + loadRights,
		Example: `  kubectl pfs why scratch
  kubectl pfs why scratch --last 10s
  kubectl pfs why scratch -o json`,
	}, func(w io.Writer, format, name string, in load.Input) error {
		verdict := load.Judge(in)
		if format != "" {
			return encode(w, format, verdict)
		}
		_, err := io.WriteString(w, whyText(name, verdict))
		return err
	})
}
