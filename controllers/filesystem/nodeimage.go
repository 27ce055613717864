package filesystem

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// tooSilent is how long a server may be away before its pod is replaced, if the pod has the node image of an earlier operator or an older
// configuration. An older node binary restarts a container with the present operator's configuration, and refuses fields that it does not
// have. A server with an older configuration may look for the filesystem at a former address. The restart loses nothing then, and may be
// the repair, so it does not wait for a healthy filesystem (ADR 0108).
const tooSilent = 3 * time.Minute

// lags reports whether a pod was made with another node image than the operator's present one.
func lags(p *backend.Pod, in backend.Input) bool {
	return p.NodeImage != "" && p.NodeImage != in.Images.Node
}

// silent returns the pods with an older node image or an older configuration whose server was away for too long, as far as this manager has
// seen. For a Ready pod, the filesystem itself has to report the server as away. A server that is to start with another certificate is away
// too while the filesystem does not answer. The tools may refuse the certificate that it has, for example because it has expired. Only the
// restart brings the other one.
func (p *pass) silent() map[types.NamespacedName]bool {
	online := map[string]bool{}
	for i := range p.observation.Servers {
		online[p.observation.Servers[i].Name] = p.observation.Servers[i].Online
	}
	now := p.Order.Now()
	key := func(pod *backend.Pod) types.UID { return types.UID(pod.Name.String()) }
	since := p.observations.see(observedGroup{client.ObjectKeyFromObject(p.fs), "silent"}, func(yield func(types.UID, how) bool) {
		for i := range p.in.Pods {
			pod := &p.in.Pods[i]
			takesPart, listed := online[pod.Server()]
			offline := p.in.State != nil && p.in.AskedSince(*pod) && listed && !takesPart
			refused := pod.Outdated && pod.Recertified && p.in.State == nil
			if (lags(pod, p.in) || pod.Outdated) && (!pod.Ready || offline || refused) && !yield(key(pod), how{}) {
				return
			}
		}
	}, now)
	out := map[types.NamespacedName]bool{}
	for i := range p.in.Pods {
		if first, away := since[key(&p.in.Pods[i])]; away && now.Sub(first) >= tooSilent {
			out[p.in.Pods[i].Name] = true
		}
	}
	return out
}

// maxImage bounds the name of an image in a sentence, in bytes.
const maxImage = 256

// describeNodeImage sets the condition NodeImageWaits: how many servers run with another node image than the operator's present one.
// Clients are left out, because the operator restarts none.
func describeNodeImage(fs *v1alpha1.FileSystem, order []string, in backend.Input) {
	servers, older, image := 0, 0, ""
	for i := range in.Pods {
		p := &in.Pods[i]
		if !slices.Contains(order, p.Component) {
			continue
		}
		servers++
		if lags(p, in) {
			older++
			image = cmp.Or(image, p.NodeImage)
		}
	}
	if older == 0 {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionNodeImageWaits)
		return
	}
	now, run := v1alpha1.Cut(in.Images.Node, maxImage), v1alpha1.CountOf(older, servers, "server", "servers", "runs", "run")
	message := fmt.Sprintf("%s with the node image of an earlier operator, such as %s; each switches to %s when it is restarted for another reason. "+
		"To restart them for this, as spec.updates says: kubectl annotate filesystem %s -n %s --overwrite %s=%s",
		run, v1alpha1.Cut(image, maxImage), now, fs.Name, fs.Namespace, v1alpha1.AnnotationTakeUpNodeImage, now)
	if fs.Annotations[v1alpha1.AnnotationTakeUpNodeImage] == in.Images.Node {
		message = fmt.Sprintf("%s with the node image of an earlier operator, such as %s; they are restarted to switch to %s, as the annotation %s asks",
			run, v1alpha1.Cut(image, maxImage), now, v1alpha1.AnnotationTakeUpNodeImage)
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionNodeImageWaits, metav1.ConditionTrue,
		v1alpha1.ReasonOperatorUpdated, message)
}
