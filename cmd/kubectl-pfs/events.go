package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// happened is one entry in the history of a FileSystem.
type happened struct {
	Time time.Time `json:"time"`
	// Object is the kind and the name of the entry's object.
	Object string `json:"object"`
	// Warning is true for an event of the type Warning.
	Warning bool   `json:"warning,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Recorded is true for a time from a status. Kubernetes removes events after an hour by default.
	Recorded bool `json:"recorded,omitempty"`
}

// cast has the objects whose events belong to the history of a FileSystem.
type cast map[string]bool

func (c cast) add(kind, name string) { c[kind+"/"+name] = true }

// castOf returns a FileSystem, its targets and its nodes.
func castOf(fs *v1alpha1.FileSystem, seen *snapshot) cast {
	who := cast{}
	who.add("FileSystem", fs.Name)
	for i := range seen.targets {
		who.add("StorageTarget", seen.targets[i].Name)
		who.add("Node", seen.targets[i].Spec.Node)
	}
	for i := range seen.nodes {
		who.add("FileSystemNode", seen.nodes[i].Name)
		who.add("Node", seen.nodes[i].Spec.Node)
	}
	return who
}

// has is true for an event of one of the objects, and for an event whose second object is the FileSystem.
func (c cast) has(fs *v1alpha1.FileSystem, e *corev1.Event) bool {
	about, beside := e.InvolvedObject, e.Related
	if beside != nil && beside.Kind == "FileSystem" && beside.Name == fs.Name && beside.Namespace == fs.Namespace {
		return true
	}
	return c[about.Kind+"/"+about.Name] && (about.Kind == "Node" || about.Namespace == fs.Namespace)
}

// storyOf returns, in order of time, the events of a FileSystem, its targets, nodes and runs, and the times in the statuses.
func storyOf(fs *v1alpha1.FileSystem, seen *snapshot, runs []string) []happened {
	who := castOf(fs, seen)
	for _, run := range runs {
		who.add("BenchmarkRun", run)
	}
	out := recordedOf(fs, seen)
	for i := range seen.events {
		e := &seen.events[i]
		if !who.has(fs, e) {
			continue
		}
		message := e.Message
		if n := timesOf(e); n > 1 {
			message += fmt.Sprintf(" (%d times)", n)
		}
		out = append(out, happened{
			Time: timeOf(e), Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Warning: e.Type == corev1.EventTypeWarning,
			Reason: e.Reason, Message: message,
		})
	}
	slices.SortStableFunc(out, func(a, b happened) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Object, b.Object)) })
	return out
}

// timeOf returns when an event was last seen.
func timeOf(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// timesOf returns how often an event was seen.
func timesOf(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}

// recordedOf returns the entries that statuses keep after their events are deleted.
func recordedOf(fs *v1alpha1.FileSystem, seen *snapshot) []happened {
	var out []happened
	add := func(at *metav1.Time, object, reason, message string) {
		if at != nil && !at.IsZero() {
			out = append(out, happened{Time: at.Time, Object: object, Reason: reason, Message: message, Recorded: true})
		}
	}
	self := "FileSystem/" + fs.Name
	add(&fs.CreationTimestamp, self, "Created", "")
	add(fs.DeletionTimestamp, self, "Deleted", "")
	for _, is := range fs.Status.Conditions {
		add(&is.LastTransitionTime, self, is.Reason, is.Type+" became "+string(is.Status)+"; now: "+is.Message)
	}
	if m := fs.Status.Metadata; m != nil {
		add(m.Initialized, self, "Initialized", "the metadata was initialized on node "+m.Node)
		if r := m.Recovered; r != nil {
			add(&r.Time, self, v1alpha1.ReasonMetadataRecovered, "the metadata was recovered from "+r.From)
		}
	}
	for i := range fs.Status.Maintenance {
		m := &fs.Status.Maintenance[i]
		add(&m.Since, "Node/"+m.Node, v1alpha1.ReasonInMaintenance, "the maintenance began")
		add(m.Ended, "Node/"+m.Node, v1alpha1.ReasonInMaintenance, "the maintenance ended")
	}
	for i := range fs.Status.Backups {
		b := &fs.Status.Backups[i]
		add(b.Time, self, "Backup"+string(b.Result), strings.TrimSpace("backup "+b.Name+" at "+placeOf(b)+". "+b.Message))
	}
	if check := fs.Status.Check; check != nil {
		add(&check.Started, self, "CheckStarted", "a check for damage was asked for: "+check.Request)
		add(check.Ended, self, "Check"+string(check.Result), check.Message)
	}
	for i := range seen.targets {
		t := &seen.targets[i]
		if p := t.Status.Provisioned; p != nil {
			where := "the disk " + string(t.Spec.Device.ID) + " on node " + t.Spec.Node
			add(p.Started, "StorageTarget/"+t.Name, v1alpha1.ReasonProvisioning, "the agent began to make "+where+" a target")
			add(p.Finished, "StorageTarget/"+t.Name, "Provisioned", where+" is a target")
		}
	}
	for i := range seen.nodes {
		if gone := seen.nodes[i].Spec.GivenUp; gone != nil {
			add(&gone.Time, "FileSystemNode/"+seen.nodes[i].Name, v1alpha1.ReasonNodeGivenUp, strings.TrimSpace("the filesystem goes on without the node. "+gone.Lost))
		}
	}
	return out
}

// runsOn returns the names of the BenchmarkRuns of a FileSystem.
func runsOn(ctx context.Context, r client.Reader, namespace, fileSystem string) ([]string, error) {
	var out []string
	empty := func() *v1alpha1.BenchmarkRunList { return &v1alpha1.BenchmarkRunList{} }
	err := pages(ctx, r, "BenchmarkRuns", empty, func(l *v1alpha1.BenchmarkRunList) {
		for i := range l.Items {
			if l.Items[i].Spec.Target.FileSystem.Name == fileSystem {
				out = append(out, l.Items[i].Name)
			}
		}
	}, client.InNamespace(namespace))
	return out, err
}

// storyText formats a history, one entry after the other.
func storyText(story []happened) string {
	var out strings.Builder
	for _, h := range story {
		mark := " "
		if h.Warning {
			mark = "!"
		}
		out.WriteString(wrapped(h.Time.UTC().Format("2006-01-02 15:04:05")+" "+mark+" ", "    ", h.Object+"  "+h.Reason+"  "+h.Message))
	}
	return out.String()
}

func (a *app) eventsCommand() *cobra.Command {
	var format, from string
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "events FILESYSTEM",
		Short: "The whole story of a FileSystem, in order",
		Long: `events prints the events of a FileSystem, its StorageTargets, its nodes and its BenchmarkRuns in the order of their times (UTC). An
exclamation mark is a warning. Kubernetes removes events after an hour by default, so the times that the statuses keep are among them, such
as those of conditions, backups, maintenance and disks.`,
		Example: `  kubectl pfs events scratch
  kubectl pfs events scratch --since 2h
  kubectl pfs events scratch -o json
  kubectl pfs events scratch --from dump.tar.gz`,
		Args: exactly("FILESYSTEM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			r, namespace, err := a.reader(from)
			if err != nil {
				return err
			}
			var seen snapshot
			if err := seen.readFileSystem(cmd.Context(), r, namespace, args[0]); err != nil {
				return err
			}
			runs, err := runsOn(cmd.Context(), r, namespace, args[0])
			if err != nil {
				return err
			}
			if err := seen.readEvents(cmd.Context(), r, namespace); err != nil {
				return err
			}
			if namespace != metav1.NamespaceDefault { // events of Nodes are in this namespace
				if err := seen.readEvents(cmd.Context(), r, metav1.NamespaceDefault); apierrors.IsForbidden(err) {
					cmd.PrintErrln("Events of Nodes are left out: you have no right to list events in the namespace default.")
				} else if err != nil {
					return err
				}
			}
			story := storyOf(&seen.fileSystems[0], &seen, runs)
			if since > 0 {
				story = slices.DeleteFunc(story, func(h happened) bool { return h.Time.Before(a.now().Add(-since)) })
			}
			if format != "" {
				return encode(cmd.OutOrStdout(), format, story)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), storyText(story))
			return err
		},
	}
	cmd.Flags().DurationVar(&since, "since", 0, "only what happened within this time")
	outputFlag(cmd, &format)
	fromFlag(cmd, &from)
	return cmd
}
