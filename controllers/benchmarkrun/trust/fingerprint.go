// Package trust detects disturbances of a measurement: it compares fingerprints of everything that could disturb it, taken before and
// after.
package trust

import (
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

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
)

// Fingerprint is the state of everything that could disturb a measurement, each thing by its name in a sentence. The fingerprints before
// and after a turn must be equal, or the turn is invalid.
type Fingerprint map[string]string

// The words at the beginning of the names in a fingerprint.
const (
	ofFileSystem = "FileSystem"
	ofPod        = "pod"
	ofTarget     = "StorageTarget"
	ofMount      = "mount on node"
	// onNode precedes the node of a thing.
	onNode = " on node "
	// ofNode is the name for everything on one node, in a fingerprint that is reduced to nodes. The word is short because it occurs once for
	// each node.
	ofNode = "node"
)

// UIDLength is how much of a uid identifies an object here.
const UIDLength = 8

// TakeFingerprint is a pure function of the FileSystem, the pods of its daemons and clients, and its StorageTargets. Of its mounts, only
// those on the nodes of the benchmark count.
func TakeFingerprint(fs *v1alpha1.FileSystem, pods []corev1.Pod, targets []v1alpha1.StorageTarget, clients []string) Fingerprint {
	if fs == nil {
		return nil
	}
	short := func(uid string) string { return uid[:min(len(uid), UIDLength)] }
	out := Fingerprint{ofFileSystem + " " + fs.Name: short(string(fs.UID))}
	for i := range pods {
		p := &pods[i]
		if !OwnedByDaemonSet(p) || p.Labels[v1alpha1.LabelComponent] == ComponentClient && !slices.Contains(clients, p.Spec.NodeName) {
			continue
		}
		restarts := int32(0)
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			// The probe of a filesystem may come and go, because it does not affect the measurement.
			if c.Name != probeContainer {
				restarts += c.RestartCount
			}
		}
		out[fmt.Sprintf("%s %s%s%s", ofPod, DaemonOf(p), onNode, p.Spec.NodeName)] = fmt.Sprintf("%s/%d", short(string(p.UID)), restarts)
		if p.Labels[v1alpha1.LabelComponent] == ComponentClient {
			out[ofMount+" "+p.Spec.NodeName] = fmt.Sprint(Mounts(p))
		}
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
		out[fmt.Sprintf("%s %s%s%s", ofTarget, t.Name, onNode, t.Spec.Node)] =
			fmt.Sprintf("%s/%s/%s/%t", short(string(t.UID)), t.Spec.Device.ID, ready, t.DeletionTimestamp != nil)
	}
	for node, bad := range BadClients(fs) {
		if slices.Contains(clients, node) {
			out[ofMount+" "+node] = fmt.Sprint(!bad)
		}
	}
	return out
}

// OfClaim returns the fingerprint of a PersistentVolumeClaim: its identity, and the volume that it is bound to. The servers behind it are
// unknown.
func OfClaim(name string, claim *corev1.PersistentVolumeClaim) Fingerprint {
	state := "gone"
	if claim != nil {
		uid := string(claim.UID)
		state = fmt.Sprintf("%s/%s/%t", uid[:min(len(uid), UIDLength)], claim.Spec.VolumeName, claim.DeletionTimestamp != nil)
	}
	return Fingerprint{"PersistentVolumeClaim " + name: state}
}

const (
	// ComponentClient is the component of the pods that mount a filesystem, in every backend.
	ComponentClient = "client"
	// probeContainer queries a filesystem for its state.
	probeContainer = "probe"
)

// DaemonOf names a pod without the part that is new for each pod.
func DaemonOf(p *corev1.Pod) string {
	words := []string{p.Labels[v1alpha1.LabelComponent]}
	for _, label := range []string{v1alpha1.LabelStoragePool, v1alpha1.LabelSlot} {
		if value := p.Labels[label]; value != "" {
			words = append(words, value)
		}
	}
	return strings.Join(words, "-")
}

// OwnedByDaemonSet reports whether a pod is that of a server or client, and not of a Job.
func OwnedByDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// DiffersFrom describes what has changed since an earlier fingerprint, empty if nothing has. It names the first things in the order of
// their names.
func (f Fingerprint) DiffersFrom(before Fingerprint) string {
	const mostTold = 3
	switch was, short := before[digested]; {
	case short && f.digest()[digested] == was:
		return ""
	case short:
		return fmt.Sprintf("a daemon, a StorageTarget or a mount has changed; which one is unknown, because the run keeps no names of %d of them", len(f))
	case before.isByNode():
		f = f.byNode()
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
		case strings.HasPrefix(name, ofNode):
			told = append(told, "something on "+name+" has changed")
		default:
			told = append(told, name+" has changed")
		}
	}
	if len(told) > mostTold {
		told = append(told[:mostTold], fmt.Sprintf("%d more", len(told)-mostTold))
	}
	return text.SentenceList(told)
}

// maxFingerprint bounds a fingerprint in an annotation, in bytes. The job that carries it stays below 64 KiB with everything else (ADR
// 0050). Reduced to nodes, a thousand nodes fit.
const maxFingerprint = 40 << 10

// digested is the only name in a fingerprint that was too long to be stored. Its value is a hash of the fingerprint.
const digested = "digest"

// digest returns a short form of a fingerprint, which shows that something has changed but not what.
func (f Fingerprint) digest() Fingerprint {
	sum := sha256.Sum256(f.json())
	return Fingerprint{digested: hex.EncodeToString(sum[:])}
}

// byNode returns a shorter form of a fingerprint, which shows the node on which something has changed: a hash for each node, and the rest
// unchanged.
func (f Fingerprint) byNode() Fingerprint {
	const enough = 4 // bytes of a hash: two are equal by chance once in four billion changes, and there is no attacker
	out, nodes := Fingerprint{}, map[string]Fingerprint{}
	for name, value := range f {
		i := strings.LastIndex(name, onNode)
		if i < 0 {
			out[name] = value
			continue
		}
		node := name[i+len(onNode):]
		if nodes[node] == nil {
			nodes[node] = Fingerprint{}
		}
		nodes[node][name] = value
	}
	for node, things := range nodes {
		sum := sha256.Sum256(things.json())
		out[ofNode+" "+node] = hex.EncodeToString(sum[:enough])
	}
	return out
}

func (f Fingerprint) isByNode() bool {
	for name := range f {
		if strings.HasPrefix(name, ofNode) {
			return true
		}
	}
	return false
}

// Encode formats a fingerprint for an annotation of a job. A long one is reduced to nodes and, if that is still too long, to its digest, so
// that a change is detected at any size of the filesystem.
func (f Fingerprint) Encode() string {
	for _, form := range []Fingerprint{f, f.byNode()} {
		if raw := form.json(); len(raw) <= maxFingerprint {
			return string(raw)
		}
	}
	return string(f.digest().json())
}

func (f Fingerprint) json() []byte {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err) // it holds strings only
	}
	return raw
}
