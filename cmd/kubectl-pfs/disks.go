package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// disk is one disk of a node, as the inventory and its StorageTarget have it.
type disk struct {
	Node      string             `json:"node"`
	Device    string             `json:"device"`
	ID        string             `json:"id,omitempty"`
	SizeBytes int64              `json:"sizeBytes"`
	Media     v1alpha1.MediaType `json:"media,omitempty"`
	Transport string             `json:"transport,omitempty"`
	Model     string             `json:"model,omitempty"`
	Serial    string             `json:"serial,omitempty"`
	// Usable is true for a blank, free disk that no StorageTarget names.
	Usable bool `json:"usable"`
	// Target is the StorageTarget that has the disk, as namespace/name, and State its state.
	Target string `json:"target,omitempty"`
	State  string `json:"state,omitempty"`
	// Health is the disk's own report about itself; empty without one.
	Health v1alpha1.DiskState `json:"health,omitempty"`
	// Why is the reason why the disk can't be used, or the problem of its target.
	Why     []string `json:"why,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// disksOf joins the disks of the inventories with the targets. A target whose disk no inventory has is listed, too.
func disksOf(inventories []v1alpha1.NodeInventory, targets []v1alpha1.StorageTarget) []disk {
	byName, byID := map[string]*v1alpha1.StorageTarget{}, map[string]*v1alpha1.StorageTarget{}
	for i := range targets {
		t := &targets[i]
		byName[t.Namespace+"/"+t.Name] = t
		byID[t.Spec.Node+" "+string(t.Spec.Device.ID)] = t
	}
	var out []disk
	found := map[*v1alpha1.StorageTarget]bool{}
	for i := range inventories {
		node := &inventories[i]
		for n := range node.Status.BlockDevices {
			b := &node.Status.BlockDevices[n]
			d := disk{
				Node: node.Name, Device: b.KernelName, SizeBytes: b.SizeBytes, Media: b.MediaType, Transport: b.Transport, Model: b.Model,
				Serial: b.Serial, Why: b.Unusable, Remarks: b.Remarks, Target: b.Target,
			}
			if len(b.IDs) > 0 {
				d.ID = b.IDs[0]
			}
			t := byName[b.Target]
			for _, id := range b.IDs {
				if t == nil {
					t = byID[node.Name+" "+id]
				}
			}
			if t != nil {
				found[t] = true
				d.Target, d.State = t.Namespace+"/"+t.Name, stateOf(t)
				if trouble := troubleOf(t); trouble != nil {
					d.Why = []string{trouble.Why}
				} else {
					d.Why = nil
				}
			}
			d.Usable = d.Target == "" && len(b.Unusable) == 0
			if h := b.Health; t == nil && h != nil && h.State != v1alpha1.DiskHealthy {
				d.Why = append(slices.Clone(d.Why), fmt.Sprintf("its health is %s: %s", h.State, strings.Join(h.Reasons, "; ")))
			}
			if b.Health != nil {
				d.Health = b.Health.State
			}
			out = append(out, d)
		}
	}
	for i := range targets {
		if t := &targets[i]; !found[t] {
			out = append(out, disk{
				Node: t.Spec.Node, Device: "-", ID: string(t.Spec.Device.ID), SizeBytes: t.Spec.Device.SizeBytes, Model: t.Spec.Device.Model,
				Serial: t.Spec.Device.Serial, Target: t.Namespace + "/" + t.Name, State: stateOf(t),
				Why: []string{strings.TrimSpace("no inventory has this disk. " + messageOf(t.Status.Conditions, v1alpha1.ConditionReady))},
			})
		}
	}
	slices.SortStableFunc(out, func(a, b disk) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Device, b.Device)) })
	return out
}

// stateOf returns the state of a target in one word.
func stateOf(t *v1alpha1.StorageTarget) string {
	safe := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
	switch trouble := troubleOf(t); {
	case t.Spec.Remove && safe != nil && safe.Status == metav1.ConditionTrue:
		return v1alpha1.ConditionSafeToRemove
	case trouble != nil:
		return trouble.State
	case t.Spec.Remove:
		return v1alpha1.ReasonMovingData
	}
	return v1alpha1.ReasonServing
}

// disksTable shows disks as a table.
func disksTable(disks []disk) string {
	rows := make([][]string, 0, len(disks))
	for i := range disks {
		d := &disks[i]
		use := "-"
		switch {
		case d.Target != "":
			_, use, _ = strings.Cut(d.Target, "/")
		case d.Usable:
			use = "usable"
		}
		rows = append(rows, []string{d.Node, d.Device, bytesText(d.SizeBytes), cmp.Or(string(d.Media), "-"), cmp.Or(d.Transport, "-"), use,
			cmp.Or(d.State, "-"), cmp.Or(strings.Join(d.Why, "; "), "-")})
	}
	return table([]column{{"NODE", 16}, {"DEVICE", 10}, {"SIZE", 9}, {"MEDIA", 5}, {"TRANSPORT", 9}, {"USED BY", 28},
		{"STATE", 16}, {"WHY", 0}}, rows)
}

func (a *app) disksCommand() *cobra.Command {
	var format, from, node string
	usable := false
	cmd := &cobra.Command{
		Use:   "disks [--node NODE] [--usable]",
		Short: "The disks of all nodes: who uses them, which are usable, and why the others are not",
		Long: `disks lists the disks that the agents have found, and the StorageTargets that use them, in all namespaces. For a disk that can't be
used, WHY has the reason of the inventory. For a disk of a StorageTarget, STATE and WHY are those of the target. -o yaml has everything,
such as serial numbers and the names by which a FileSystem chooses a disk.

It needs the right to list NodeInventories, and StorageTargets of all namespaces.`,
		Example: `  kubectl pfs disks
  kubectl pfs disks --node oss3
  kubectl pfs disks --usable -o yaml
  kubectl pfs disks --from dump.tar.gz`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			r, _, err := a.reader(from)
			if err != nil {
				return err
			}
			var seen snapshot
			if err := seen.readInventories(cmd.Context(), r, node); err != nil {
				return err
			}
			if err := seen.readTargets(cmd.Context(), r); err != nil {
				return err
			}
			if node != "" {
				seen.targets = slices.DeleteFunc(seen.targets, func(t v1alpha1.StorageTarget) bool { return t.Spec.Node != node })
			}
			disks := disksOf(seen.inventories, seen.targets)
			free, capacity := 0, int64(0)
			for _, d := range disks {
				if d.Usable {
					free, capacity = free+1, capacity+d.SizeBytes
				}
			}
			all := len(disks)
			if usable {
				disks = slices.DeleteFunc(disks, func(d disk) bool { return !d.Usable })
			}
			if format != "" {
				return encode(cmd.OutOrStdout(), format, disks)
			}
			if len(disks) > 0 {
				if _, err := io.WriteString(cmd.OutOrStdout(), disksTable(disks)); err != nil {
					return err
				}
			}
			cmd.PrintErrln(fmt.Sprintf("%d disks; %d of them are usable, %s together.", all, free, bytesText(capacity)))
			return nil
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "only the disks of this node")
	cmd.Flags().BoolVar(&usable, "usable", false, "only disks that can become targets")
	outputFlag(cmd, &format)
	fromFlag(cmd, &from)
	return cmd
}
