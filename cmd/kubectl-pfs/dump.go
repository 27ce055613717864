package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The bounds of a bundle.
const (
	// mostDumped bounds the size of a bundle before compression.
	mostDumped = 384 << 20
	// mostLog and mostLogLines bound the end of the log of a container.
	mostLog      = 512 << 10
	mostLogLines = 2000
	// mostLogs bounds the number of containers whose log is read; those of unhealthy pods come first.
	mostLogs = 300
)

// live returns data of a cluster other than its objects.
type live interface {
	// logs returns the end of the log of a container, or of the one before its last restart.
	logs(ctx context.Context, namespace, pod, container string, previous bool) (io.ReadCloser, error)
	// samples asks an agent what the disks and daemons of its node did (GET /telemetry).
	samples(ctx context.Context, namespace, pod string, port int32, query map[string]string) ([]byte, error)
	// version returns the version of Kubernetes.
	version(ctx context.Context) (string, error)
}

// childLabels lists the labels with the FileSystem to which a pod or Job belongs.
var childLabels = []string{
	v1alpha1.LabelFileSystem, v1alpha1.LabelBackup, v1alpha1.LabelGuard, v1alpha1.LabelImages, v1alpha1.LabelRecovery,
	v1alpha1.LabelCheck, v1alpha1.LabelCopies,
}

func (a *app) dumpCommand() *cobra.Command {
	var file string
	timeout := 5 * time.Minute
	cmd := &cobra.Command{
		Use:   "dump FILESYSTEM [-f dump.tar.gz]",
		Short: "A support bundle: objects, events and logs of a FileSystem, without secrets",
		Long: `dump writes a support bundle: the FileSystem with its StorageTargets, FileSystemNodes, BenchmarkRuns, DaemonSets, Jobs and
pods, the inventories of its nodes, events, and the end of the logs of its containers.

No Secret and no ConfigMap is in it. Left out are managedFields, annotations of other projects, and values of environment variables. The
values of all Secrets of the namespace are searched for in the rest, logs too, and replaced. That needs the right to list Secrets. Without
it, the bundle has no logs. Names of nodes, disks and files, and addresses are in the bundle: look at it before you give it to somebody.

The file is at most ` + fmt.Sprint(mostDumped>>20) + ` MiB before compression. Whatever did not fit, or took too
long, is listed in its manifest.json. status, health, disks and events read it with --from.`,
		Example: `  kubectl pfs dump scratch
  kubectl pfs dump scratch -f ticket-1234.tar.gz --timeout 2m
  kubectl pfs status scratch --from ticket-1234.tar.gz`,
		Args: exactly("FILESYSTEM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usage(errors.New("--timeout must be more than 0"))
			}
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			taken := a.now().UTC()
			name := cmp.Or(file, fmt.Sprintf("%s-%s-%s.tar.gz", c.namespace, args[0], taken.Format("20060102-150405")))
			return c.writeDump(cmd, args[0], name, taken, timeout)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the file to write, which must not exist (default: the namespace, the FileSystem and the time)")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long it may take; what is read by then is written")
	return cmd
}

// writeDump collects a bundle and writes it to a new file.
func (c connection) writeDump(cmd *cobra.Command, fileSystem, name string, taken time.Time, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	d := &dump{connection: c, fileSystem: fileSystem, progress: cmd.ErrOrStderr(), room: mostDumped}
	if err := d.collect(ctx); err != nil {
		return err
	}
	d.manifest(ctx, taken)
	const ownerOnly = 0o600
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return err
	}
	if err := errors.Join(d.write(out, taken), out.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the support bundle: %w", err), os.Remove(name))
	}
	for _, missing := range d.missing {
		cmd.PrintErrln("Left out: " + printable(missing))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), name)
	return err
}

// bundled is a file of a bundle.
type bundled struct {
	name string
	data []byte
}

// dump is a bundle that is being collected.
type dump struct {
	connection
	fileSystem string
	progress   io.Writer
	mask       mask
	// room is the number of bytes that are left.
	room    int
	entries []bundled
	missing []string
}

// add adds a file, if there is room for it.
func (d *dump) add(name string, data []byte) {
	if len(data) > d.room {
		d.missing = append(d.missing, name+": the bundle would be too large")
		return
	}
	d.room -= len(data)
	d.entries = append(d.entries, bundled{name, data})
}

func (d *dump) say(format string, values ...any) {
	_, _ = fmt.Fprintf(d.progress, format+"\n", values...) // progress only
}

// collect reads everything. It returns an error only without the FileSystem.
func (d *dump) collect(ctx context.Context) error {
	var seen snapshot
	if err := seen.readFileSystem(ctx, d, d.namespace, d.fileSystem); err != nil {
		return err
	}
	masked := d.readSecrets(ctx, &seen)
	d.say("Read the FileSystem, %d StorageTargets and %d FileSystemNodes.", len(seen.targets), len(seen.nodes))
	kinds := map[string][]client.Object{
		"FileSystem": refs(seen.fileSystems), "StorageTarget": refs(seen.targets), "FileSystemNode": refs(seen.nodes),
	}
	d.readOthers(ctx, &seen, kinds)
	pods, who := d.readChildren(ctx, &seen, kinds)
	d.note("events", seen.readEvents(ctx, d, d.namespace))
	if d.namespace != metav1.NamespaceDefault {
		d.note("events of Nodes", seen.readEvents(ctx, d, metav1.NamespaceDefault))
	}
	kinds["Event"] = eventsOf(&seen, who)
	for _, kind := range sorted(kinds) {
		if err := d.addObjects(kind, kinds[kind]); err != nil {
			return err
		}
	}
	if masked {
		d.readLogs(ctx, pods)
	} else {
		d.missing = append(d.missing, "all logs: without the right to list Secrets, nothing proves that no secret is in them")
	}
	return nil
}

// refs returns pointers to the objects of a list.
func refs[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	out := make([]client.Object, len(items))
	for i := range items {
		out[i] = P(&items[i])
	}
	return out
}

func sorted(kinds map[string][]client.Object) []string {
	var out []string
	for kind := range kinds {
		out = append(out, kind)
	}
	slices.Sort(out)
	return out
}

// note records that something could not be read.
func (d *dump) note(what string, err error) {
	if err != nil {
		d.missing = append(d.missing, what+": "+err.Error())
	}
}

// readSecrets makes the mask of all Secrets of the namespace; false if they can't be read.
func (d *dump) readSecrets(ctx context.Context, seen *snapshot) bool {
	var secrets []corev1.Secret
	err := pages(ctx, d, "Secrets", func() *corev1.SecretList { return &corev1.SecretList{} },
		func(l *corev1.SecretList) { secrets = append(secrets, l.Items...) }, client.InNamespace(d.namespace))
	names := []string{d.namespace, d.fileSystem, string(seen.fileSystems[0].UID)}
	for i := range seen.targets {
		names = append(names, seen.targets[i].Name)
	}
	for i := range seen.nodes {
		names = append(names, seen.nodes[i].Name, seen.nodes[i].Spec.Node)
	}
	d.mask = maskOf(secrets, names...)
	d.note("Secrets, to search for their values", err)
	return err == nil
}

// readOthers reads the inventories of the nodes and the runs of the FileSystem.
func (d *dump) readOthers(ctx context.Context, seen *snapshot, kinds map[string][]client.Object) {
	on := map[string]bool{}
	for i := range seen.nodes {
		on[seen.nodes[i].Spec.Node] = true
	}
	for i := range seen.targets {
		on[seen.targets[i].Spec.Node] = true
	}
	d.note("NodeInventories", seen.readInventories(ctx, d, ""))
	seen.inventories = slices.DeleteFunc(seen.inventories, func(n v1alpha1.NodeInventory) bool { return !on[n.Name] })
	kinds["NodeInventory"] = refs(seen.inventories)
	var runs []v1alpha1.BenchmarkRun
	d.note("BenchmarkRuns", pages(ctx, d, "BenchmarkRuns", func() *v1alpha1.BenchmarkRunList { return &v1alpha1.BenchmarkRunList{} },
		func(l *v1alpha1.BenchmarkRunList) { runs = append(runs, l.Items...) }, client.InNamespace(d.namespace)))
	runs = slices.DeleteFunc(runs, func(r v1alpha1.BenchmarkRun) bool { return r.Spec.Target.FileSystem.Name != d.fileSystem })
	kinds["BenchmarkRun"] = refs(runs)
	d.say("Read %d NodeInventories and %d BenchmarkRuns.", len(seen.inventories), len(runs))
}

// readChildren reads the DaemonSets, Jobs and pods of the FileSystem. It returns the pods, and the objects whose events belong to the
// bundle.
func (d *dump) readChildren(ctx context.Context, seen *snapshot, kinds map[string][]client.Object) ([]corev1.Pod, cast) {
	var sets []appsv1.DaemonSet
	var jobs []batchv1.Job
	var pods []corev1.Pod
	for _, label := range childLabels {
		options := []client.ListOption{client.InNamespace(d.namespace), client.MatchingLabels{label: d.fileSystem}}
		d.note("DaemonSets", pages(ctx, d, "DaemonSets", func() *appsv1.DaemonSetList { return &appsv1.DaemonSetList{} },
			func(l *appsv1.DaemonSetList) { sets = append(sets, l.Items...) }, options...))
		d.note("Jobs", pages(ctx, d, "Jobs", func() *batchv1.JobList { return &batchv1.JobList{} },
			func(l *batchv1.JobList) { jobs = append(jobs, l.Items...) }, options...))
		d.note("pods", pages(ctx, d, "pods", func() *corev1.PodList { return &corev1.PodList{} },
			func(l *corev1.PodList) { pods = append(pods, l.Items...) }, options...))
	}
	kinds["DaemonSet"], kinds["Job"], kinds["Pod"] = refs(sets), refs(jobs), refs(pods)
	d.say("Read %d DaemonSets, %d Jobs and %d pods.", len(sets), len(jobs), len(pods))
	who := castOf(&seen.fileSystems[0], seen)
	for kind, objects := range kinds {
		for _, object := range objects {
			who.add(kind, object.GetName())
		}
	}
	return pods, who
}

// eventsOf returns the events of the objects of a bundle.
func eventsOf(seen *snapshot, who cast) []client.Object {
	var out []client.Object
	for i := range seen.events {
		if who.has(&seen.fileSystems[0], &seen.events[i]) {
			out = append(out, &seen.events[i])
		}
	}
	return out
}

// addObjects adds the objects of a kind as one file.
func (d *dump) addObjects(kind string, objects []client.Object) error {
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, d.Scheme())
		if err != nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("encode the %s %s: %w", kind, object.GetName(), err)
		}
		items = append(items, d.mask.object(fields))
	}
	data, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", " ")
	if err != nil {
		return fmt.Errorf("encode the objects of the kind %s: %w", kind, err)
	}
	d.add(bundleObjects+"/"+kind+".json", data)
	return nil
}

// readLogs reads the ends of the logs of containers, those of unhealthy pods first.
func (d *dump) readLogs(ctx context.Context, pods []corev1.Pod) {
	ready := func(p corev1.Pod) int {
		for _, is := range p.Status.Conditions {
			if is.Type == corev1.PodReady && is.Status == corev1.ConditionTrue {
				return 1
			}
		}
		return 0
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return cmp.Or(cmp.Compare(ready(a), ready(b)), cmp.Compare(a.Name, b.Name)) })
	read, left := 0, 0
	for i := range pods {
		p := &pods[i]
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if read >= mostLogs || ctx.Err() != nil || d.room < mostLog {
				left++
				continue
			}
			read++
			d.readLog(ctx, p, c.Name, false)
			if c.RestartCount > 0 {
				d.readLog(ctx, p, c.Name, true)
			}
		}
	}
	if left > 0 {
		d.missing = append(d.missing, fmt.Sprintf("logs of %d containers: the bounds of the number, the size or the time were reached", left))
	}
	d.say("Read the logs of %d containers.", read)
}

func (d *dump) readLog(ctx context.Context, p *corev1.Pod, container string, previous bool) {
	name := "logs/" + p.Name + "/" + container + ".log"
	if previous {
		name = "logs/" + p.Name + "/" + container + ".previous.log"
	}
	stream, err := d.live.logs(ctx, p.Namespace, p.Name, container, previous)
	if err != nil {
		if !apierrors.IsBadRequest(err) { // a container that has not started has no log
			d.missing = append(d.missing, name+": "+err.Error())
		}
		return
	}
	data, err := io.ReadAll(io.LimitReader(stream, mostLog))
	err = errors.Join(err, stream.Close())
	d.note(name, err)
	// The bound may cut the last line within a secret, which would not be recognized.
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	d.add(name, []byte(d.mask.text(string(data))))
}

// manifest adds the description of the bundle.
func (d *dump) manifest(ctx context.Context, taken time.Time) {
	m := manifest{Format: bundleFormat, Namespace: d.namespace, FileSystem: d.fileSystem, Taken: taken.Format(time.RFC3339)}
	version, err := d.live.version(ctx)
	d.note("the version of Kubernetes", err)
	m.Kubernetes = version
	for i := range d.missing {
		d.missing[i] = d.mask.text(d.missing[i])
	}
	m.LeftOut = d.missing
	data, err := json.MarshalIndent(m, "", " ")
	if err == nil {
		d.entries = append([]bundled{{bundleManifest, data}}, d.entries...)
	}
}

// write writes the collected files as one archive.
func (d *dump) write(w io.Writer, taken time.Time) error {
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	const everyone = 0o644
	for _, e := range d.entries {
		header := &tar.Header{Name: "dump/" + e.name, Mode: everyone, Size: int64(len(e.data)), ModTime: taken, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}
