package benchmarkrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// provenance is what was found before the first point, and again after a suspension. It stands in a ConfigMap of the run.
type provenance struct {
	results.Provenance
	// CheckedBy is the uid of the Job that looked at image and space, empty when none has.
	CheckedBy string    `json:"checkedBy,omitempty"`
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// Checked is what it found; CheckFailed says why it found nothing.
	Checked     spec.Checked `json:"checked,omitzero"`
	CheckFailed string       `json:"checkFailed,omitempty"`
}

const (
	provenanceKey = "provenance.json"
	// maxProvenanceNodes is that of status.provenance.clients.
	maxProvenanceNodes = 64
	maxPinning         = 512
	maxNodeText        = 128
)

func provenanceName(run string) string { return run + "-provenance" }

func decodeProvenance(cm *corev1.ConfigMap) (provenance, error) {
	var out provenance
	if err := json.Unmarshal([]byte(cm.Data[provenanceKey]), &out); err != nil {
		return out, fmt.Errorf("read %s of ConfigMap %s: %w; delete that ConfigMap to have it made again", provenanceKey, cm.Name, err)
	}
	return out, nil
}

// provenanceOf is what the results will have been measured on, as things stand.
func (r *Reconciler) provenanceOf(w *world) provenance {
	fs := w.fileSystem
	var out provenance
	out.Operator = r.Version
	out.FileSystemSpec = fs.Spec.DeepCopy()
	out.Instances, out.Targets = fs.Status.Instances, fs.Status.Targets
	version := fs.Spec.Version
	if fs.Status.Management != nil && fs.Status.Management.Version != "" {
		version = fs.Status.Management.Version
	}
	out.FileSystem = v1alpha1.Cut(fmt.Sprintf("%s %s, %s, generation %d", fs.Spec.Type, version, fs.UID, fs.Generation), maxCurrent)
	out.ConfigHash = configHash(w.daemons.Items)
	out.Image = w.image
	if c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPinned); c != nil {
		out.Pinning = c.Reason
		if c.Status != metav1.ConditionTrue {
			out.Pinning = v1alpha1.Cut(c.Reason+": "+c.Message, maxPinning)
		}
	}
	taking := w.takingPart()
	for _, c := range taking[:min(len(taking), maxProvenanceNodes)] {
		node := v1alpha1.NodeProvenance{Node: c.Name, CPUs: int32(c.CPUs)} //nolint:gosec // CPUs of one node
		if n := w.nodes[c.Name]; n != nil {
			node.Kernel = v1alpha1.Cut(n.Status.NodeInfo.KernelVersion, maxNodeText)
		}
		if i := w.inventories[c.Name]; i != nil {
			node.CPUModel = v1alpha1.Cut(i.Status.CPU.Model, maxNodeText)
			if i.Status.Kernel.Release != "" {
				node.Kernel = i.Status.Kernel.Release
			}
		}
		out.Clients = append(out.Clients, node)
	}
	return out
}

// takingPart are the clients that a point has processes on, in their order.
func (w *world) takingPart() []placement.Node {
	used := map[string]bool{}
	for point := range w.plans {
		for step := range w.plans[point].Steps {
			placed, err := w.place(point, step)
			if err != nil {
				continue // the point is refused, and says why itself
			}
			for _, p := range placed {
				used[p.Node] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(w.clients), func(n placement.Node) bool { return !used[n.Name] })
}

// configHash is one of all configuration that the daemons were started with: each pod carries a hash of its own.
func configHash(pods []corev1.Pod) string {
	var all []string
	for i := range pods {
		p := &pods[i]
		if hash := p.Annotations[backend.TemplateHashAnnotation]; hash != "" && ownedByDaemonSet(p) {
			all = append(all, fmt.Sprintf("%s@%s=%s", daemonOf(p), p.Spec.NodeName, hash))
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:])
}

// storeProvenance writes the ConfigMap, in the place of what an earlier look has found.
func (r *Reconciler) storeProvenance(ctx context.Context, w *world, found provenance) error {
	text, err := json.Marshal(found)
	if err == nil && len(text) > maxStored {
		found.Instances, found.Targets = nil, nil
		text, err = json.Marshal(found)
	}
	if err != nil {
		return fmt.Errorf("encode the provenance: %w", err)
	}
	if err := r.writeConfigMap(ctx, w, provenanceName(w.run.Name), func(cm *corev1.ConfigMap) {
		cm.Data = map[string]string{provenanceKey: string(text)}
	}); err != nil {
		return err
	}
	w.provenance = found
	return nil
}

// writeConfigMap makes or changes a ConfigMap of the run.
func (r *Reconciler) writeConfigMap(ctx context.Context, w *world, name string, change func(*corev1.ConfigMap)) error {
	cm := &corev1.ConfigMap{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: w.run.Namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.run.Namespace, Name: name, Labels: labels(w.run)}}
		if err := controllerutil.SetControllerReference(w.run, cm, r.Client.Scheme()); err != nil {
			return fmt.Errorf("set the owner of ConfigMap %s: %w", name, err)
		}
		change(cm)
		if err := r.Client.Create(ctx, cm); err != nil {
			return fmt.Errorf("create ConfigMap %s: %w", name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if !metav1.IsControlledBy(cm, w.run) {
		return foreign("ConfigMap", name, w.run)
	}
	before := cm.DeepCopy()
	change(cm)
	if err := r.Client.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", name, err)
	}
	return nil
}
