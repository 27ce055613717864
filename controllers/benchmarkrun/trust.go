package benchmarkrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// fingerprint is the state of all that could disturb a measurement, each thing by its name in a sentence: one that is taken before a
// turn and one after it are the same, or the turn is invalid.
type fingerprint map[string]string

// The words that begin the names in a fingerprint.
const (
	ofFileSystem = "FileSystem"
	ofPod        = "pod"
	ofTarget     = "StorageTarget"
	ofMount      = "mount on node"
)

// uidLength is how much of a uid tells one object from another here.
const uidLength = 8

// takeFingerprint is a pure function of the FileSystem, the pods of its daemons and clients, and its StorageTargets. Only the nodes that
// the benchmark runs on count among its mounts.
func takeFingerprint(fs *v1alpha1.FileSystem, pods []corev1.Pod, targets []v1alpha1.StorageTarget, clients []string) fingerprint {
	if fs == nil {
		return nil
	}
	short := func(uid string) string { return uid[:min(len(uid), uidLength)] }
	out := fingerprint{ofFileSystem + " " + fs.Name: short(string(fs.UID))}
	for i := range pods {
		p := &pods[i]
		if !ownedByDaemonSet(p) || p.Labels[v1alpha1.LabelComponent] == componentClient && !slices.Contains(clients, p.Spec.NodeName) {
			continue
		}
		restarts := int32(0)
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			// The probe of a filesystem may come and go: it measures nothing.
			if c.Name != probeContainer {
				restarts += c.RestartCount
			}
		}
		out[fmt.Sprintf("%s %s on node %s", ofPod, daemonOf(p), p.Spec.NodeName)] = fmt.Sprintf("%s/%d", short(string(p.UID)), restarts)
	}
	for i := range targets {
		t := &targets[i]
		if t.Spec.FileSystem.Name != fs.Name {
			continue
		}
		ready := metav1.ConditionUnknown
		if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			ready = c.Status
		}
		out[fmt.Sprintf("%s %s on node %s", ofTarget, t.Name, t.Spec.Node)] =
			fmt.Sprintf("%s/%s/%s/%t", short(string(t.UID)), t.Spec.Device.ID, ready, t.DeletionTimestamp != nil)
	}
	for _, c := range fs.Status.Clients {
		if slices.Contains(clients, c.Node) {
			out[ofMount+" "+c.Node] = fmt.Sprint(c.Mounted)
		}
	}
	return out
}

const (
	// componentClient is the component of the pods that mount a filesystem, of every backend.
	componentClient = "client"
	// probeContainer asks a filesystem for its state.
	probeContainer = "probe"
)

// daemonOf names a pod without the part that is new each time.
func daemonOf(p *corev1.Pod) string {
	words := []string{p.Labels[v1alpha1.LabelComponent]}
	for _, label := range []string{v1alpha1.LabelStoragePool, v1alpha1.LabelInstance} {
		if value := p.Labels[label]; value != "" {
			words = append(words, value)
		}
	}
	return strings.Join(words, "-")
}

func ownedByDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// differsFrom says what has changed since an earlier fingerprint, empty when nothing has. The first things by name are told.
func (f fingerprint) differsFrom(before fingerprint) string {
	const mostTold = 3
	if was, short := before[digested]; short {
		if f.digest()[digested] == was {
			return ""
		}
		return fmt.Sprintf("a daemon, a StorageTarget or a mount has changed; which of them is not kept, because FileSystem and clients are %d of them", len(f))
	}
	var told []string
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if _, known := before[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		was, known := before[name]
		is, there := f[name]
		switch {
		case was == is && known == there:
		case !known:
			told = append(told, name+" is new")
		case !there:
			told = append(told, name+" is gone")
		case strings.HasPrefix(name, ofPod):
			told = append(told, name+" was restarted")
		case strings.HasPrefix(name, ofMount):
			told = append(told, name+" has changed")
		case strings.HasPrefix(name, ofFileSystem):
			told = append(told, name+" is another one of that name")
		default:
			told = append(told, name+" has changed")
		}
	}
	if len(told) > mostTold {
		told = append(told[:mostTold], fmt.Sprintf("%d more", len(told)-mostTold))
	}
	return sentenceList(told)
}

// sentenceList is "a, b and c".
func sentenceList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// maxFingerprint bounds a fingerprint in an annotation, in bytes: all annotations of an object together have 256 KiB, and a job's list of
// nodes is among them.
const maxFingerprint = 96 << 10

// digested is the only name in a fingerprint that was too long to be kept: its value is a hash of it.
const digested = "digest"

// digest is a short form of a fingerprint, by which a change is seen and not what has changed.
func (f fingerprint) digest() fingerprint {
	sum := sha256.Sum256(f.json())
	return fingerprint{digested: hex.EncodeToString(sum[:])}
}

// encode writes a fingerprint for an annotation of a job: one that is too long as its digest.
func (f fingerprint) encode() string {
	if raw := f.json(); len(raw) <= maxFingerprint {
		return string(raw)
	}
	return string(f.digest().json())
}

func (f fingerprint) json() []byte {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err) // it holds strings only
	}
	return raw
}

// gatherTrust reads past the cache: a disturbance that the cache has not seen yet would make a wrong number look right.
func (r *Reconciler) gatherTrust(ctx context.Context, w *world) error {
	if w.fileSystem == nil || w.run.Status.CompletionTime != nil {
		return nil
	}
	ours := []client.ListOption{client.InNamespace(w.run.Namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: w.fileSystem.Name}}
	if err := r.Reader.List(ctx, &w.daemons, ours...); err != nil {
		return fmt.Errorf("list the pods of FileSystem %s: %w", w.fileSystem.Name, err)
	}
	var targets v1alpha1.StorageTargetList
	if err := r.Reader.List(ctx, &targets, client.InNamespace(w.run.Namespace)); err != nil {
		return fmt.Errorf("list StorageTargets: %w", err)
	}
	w.targets = targets.Items
	return nil
}

// trust is the fingerprint of now, for a turn on these nodes.
func (w *world) trust(nodes []string) fingerprint {
	return takeFingerprint(w.fileSystem, w.daemons.Items, w.targets, nodes)
}

// disturbance says what has changed since a job was started, empty when nothing has or nobody can tell.
func (w *world) disturbance(c *child) string {
	text := c.object.GetAnnotations()[annotationTrust]
	if text == "" {
		return ""
	}
	var before fingerprint
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		return fmt.Sprintf("can't be trusted: the annotation %s of %s can't be read", annotationTrust, c.name)
	}
	if w.fileSystem == nil {
		return fmt.Sprintf("was disturbed: FileSystem %s is gone", w.run.Spec.FileSystem.Name)
	}
	if changes := w.trust(c.nodes).differsFrom(before); changes != "" {
		return "was disturbed: " + changes
	}
	return ""
}
