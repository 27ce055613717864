// Package cached reduces the objects in the manager's cache to the fields that the controllers read. A cluster of a thousand storage nodes
// has ten thousand pods and nodes with many fields that the controllers do not read, and more StorageTargets whose texts repeat.
//
// Each function is a cache.TransformFunc: it changes the given object before any other code reads it. Fields that were left out may not be
// written back: the controllers only write patches of the fields that they change.
package cached

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// Any keeps an object without its managed fields, which record the writers of its fields. It shares the repeated texts of StorageTargets,
// NodeInventories and FileSystemNodes.
func Any(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil // it was deleted while there was no watch: client-go's DeletedFinalStateUnknown
	}
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *v1alpha1.StorageTarget:
		return storageTarget(o.DeepCopy()), nil
	case *v1alpha1.NodeInventory:
		return nodeInventory(o.DeepCopy()), nil
	case *v1alpha1.FileSystemNode:
		return fileSystemNode(o.DeepCopy()), nil
	default:
		return object, nil
	}
}

// Pod keeps of a pod the fields that the controllers read: its node, its state, and the images that a pod brings to its node. Of a pod that
// nothing controls, it keeps only its node and phase. Anyone may create pods with our labels and with any controller, so that no field of a
// pod is kept that is not read.
func Pod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields, pod.Finalizers, pod.OwnerReferences = nil, nil, controller(pod)
	if metav1.GetControllerOf(pod) == nil {
		// No controller of this operator created it, whatever its labels are.
		pod.Labels, pod.Annotations, pod.Spec = words(only(podLabels, pod.Labels)), nil, corev1.PodSpec{NodeName: once(pod.Spec.NodeName)}
		pod.Status = corev1.PodStatus{Phase: pod.Status.Phase}
		return pod, nil
	}
	admitted.Shorten(pod)
	spec := pod.Spec
	pod.Spec = corev1.PodSpec{NodeName: once(spec.NodeName)}
	if metav1.GetControllerOf(pod).Kind != "Job" {
		pod.Spec.InitContainers = slices.DeleteFunc(images(spec.InitContainers), func(c corev1.Container) bool {
			return podspec.NodeImage(&corev1.PodSpec{InitContainers: []corev1.Container{c}}) == ""
		})
		if pod.Labels[v1alpha1.LabelImages] != "" {
			pod.Spec.Containers = images(spec.Containers[:min(len(spec.Containers), 1)])
		}
	}
	if spec.NodeName == "" {
		pod.Spec.Affinity = toNode(spec.Affinity)
	}
	pod.Labels, pod.Annotations = words(only(podLabels, pod.Labels)), words(few(only(podAnnotations, pod.Annotations)))
	pod.Status = status(&pod.Status)
	return pod, nil
}

// podLabels are the labels of pods that the controllers read, beside those by which they list.
var podLabels = append(slices.Clone(selected), v1alpha1.LabelStoragePool, v1alpha1.LabelSlot, "app.kubernetes.io/component")

// podAnnotations are the annotations of pods that the controllers read.
var podAnnotations = []string{
	backend.TemplateHashAnnotation, backend.VersionAnnotation, backend.MetadataMirroredAnnotation, podspec.ManagementAnnotation,
	podspec.CertificateAnnotation, admitted.AnnotationChanged, corev1.MirrorPodAnnotationKey,
}

// status keeps of a pod's status how its containers are.
func status(of *corev1.PodStatus) corev1.PodStatus {
	out := corev1.PodStatus{
		Phase: once(of.Phase), InitContainerStatuses: states(of.InitContainerStatuses), ContainerStatuses: states(of.ContainerStatuses),
	}
	for _, c := range of.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			out.Conditions = append(out.Conditions, c)
		}
	}
	return out
}

func states(containers []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range min(len(containers), maxContainers) {
		c := &containers[i]
		out = append(out, corev1.ContainerStatus{
			Name: once(c.Name), State: c.State, LastTerminationState: c.LastTerminationState, Ready: c.Ready, RestartCount: c.RestartCount,
		})
	}
	return out
}

// toNode keeps of an affinity the name of the node for which the controller of DaemonSets has made a pod; nil without one.
func toNode(a *corev1.Affinity) *corev1.Affinity {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				field.Values = []string{v1alpha1.Cut(field.Values[0], validation.DNS1123SubdomainMaxLength)}
				return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}},
				}}}
			}
		}
	}
	return nil
}

const (
	// maxWords bounds the annotations of a pod in bytes. If a pod has more, each is cut to maxWord bytes. Names of images are shorter.
	maxWords, maxWord = 2 << 10, 512
	// maxContainers bounds the containers of a pod. Pods of the operator have a few, and injectors add some.
	maxContainers = 16
)

// few bounds annotations whose keys are known.
func few(of map[string]string) map[string]string {
	size := 0
	for key, value := range of {
		size += len(key) + len(value)
	}
	if size <= maxWords {
		return of
	}
	for key, value := range of {
		of[key] = v1alpha1.Cut(value, maxWord)
	}
	return of
}

// images are containers with their names and images alone.
func images(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range min(len(containers), maxContainers) {
		out = append(out, corev1.Container{Name: once(containers[i].Name), Image: once(v1alpha1.Cut(containers[i].Image, maxWord))})
	}
	return out
}

// Node keeps of a node its labels, annotations and taints, and of its status the addresses, whether it is Ready, its CPUs, kernel and boot.
func Node(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	node.ManagedFields = nil
	whole := node.Status
	node.Status = corev1.NodeStatus{
		Addresses: whole.Addresses,
		NodeInfo:  corev1.NodeSystemInfo{BootID: whole.NodeInfo.BootID, KernelVersion: once(whole.NodeInfo.KernelVersion)},
	}
	if cpus, told := whole.Capacity[corev1.ResourceCPU]; told {
		node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: cpus}
	}
	if i := slices.IndexFunc(whole.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }); i >= 0 {
		node.Status.Conditions = []corev1.NodeCondition{whole.Conditions[i]}
	}
	return node, nil
}

func storageTarget(t *v1alpha1.StorageTarget) *v1alpha1.StorageTarget {
	object(&t.TypeMeta, &t.ObjectMeta)
	spec, status := &t.Spec, &t.Status
	owner(&spec.FileSystem)
	for _, text := range []*string{
		&spec.Cluster, &spec.Node, &spec.StoragePool, &spec.Device.Model, &status.KernelName, &status.Capacity,
	} {
		*text = once(*text)
	}
	spec.Role, spec.FormatPolicy = once(spec.Role), once(spec.FormatPolicy)
	conditions(status.Conditions)
	if status.Plan != nil {
		for i, step := range status.Plan.Steps {
			status.Plan.Steps[i] = once(step)
		}
		if status.Provisioned != nil && status.Provisioned.PlanHash == status.Plan.Hash {
			status.Provisioned.PlanHash = status.Plan.Hash
		}
	}
	if record := status.Record; record != nil {
		facts(record.Facts)
		if m := record.Member; m != nil {
			m.Name, m.Role, m.StoragePool = once(m.Name), once(m.Role), once(m.StoragePool)
		}
	}
	if status.Queue != nil {
		status.Queue.Scheduler = once(status.Queue.Scheduler)
	}
	return t
}

func nodeInventory(n *v1alpha1.NodeInventory) *v1alpha1.NodeInventory {
	object(&n.TypeMeta, &n.ObjectMeta)
	status := &n.Status
	status.Kernel.Release, status.CPU.Model = once(status.Kernel.Release), once(status.CPU.Model)
	for i := range status.Kernel.Modules {
		m := &status.Kernel.Modules[i]
		m.Name, m.State, m.Message = once(m.Name), once(m.State), once(m.Message)
	}
	for i := range status.CPU.Siblings {
		status.CPU.Siblings[i] = once(status.CPU.Siblings[i])
	}
	for i := range status.Settings {
		s := &status.Settings[i]
		s.Name, s.Found, s.Expected, s.Source = once(s.Name), once(s.Found), once(s.Expected), once(s.Source)
	}
	for i := range status.BlockDevices {
		d := &status.BlockDevices[i]
		d.KernelName, d.Type, d.Model = once(d.KernelName), once(d.Type), once(d.Model)
		d.MediaType, d.Transport = once(d.MediaType), once(d.Transport)
		for j := range d.Signatures {
			s := &d.Signatures[j]
			s.Device, s.Type, s.Offset = once(s.Device), once(s.Type), once(s.Offset)
		}
		for j := range d.Unusable {
			d.Unusable[j] = once(d.Unusable[j])
		}
	}
	for i := range status.Daemons {
		d := &status.Daemons[i]
		d.Name, d.Program, d.CPUs = once(d.Name), once(d.Program), once(d.CPUs)
		d.NUMANodes, d.MemoryPolicy = once(d.NUMANodes), once(d.MemoryPolicy)
	}
	return n
}

func fileSystemNode(n *v1alpha1.FileSystemNode) *v1alpha1.FileSystemNode {
	object(&n.TypeMeta, &n.ObjectMeta)
	owner(&n.Spec.FileSystem)
	facts(n.Spec.Facts)
	for i := range n.Spec.Members {
		m := &n.Spec.Members[i]
		m.Name, m.Role, m.StoragePool = once(m.Name), once(m.Role), once(m.StoragePool)
	}
	for i := range n.Status.Members {
		m := &n.Status.Members[i]
		m.Name, m.Version, m.Message = once(m.Name), once(m.Version), once(m.Message)
	}
	conditions(n.Status.Conditions)
	return n
}

func object(kind *metav1.TypeMeta, o *metav1.ObjectMeta) {
	kind.Kind, kind.APIVersion = once(kind.Kind), once(kind.APIVersion)
	o.Namespace = once(o.Namespace)
	o.Labels = words(o.Labels)
	for i := range o.Finalizers {
		o.Finalizers[i] = once(o.Finalizers[i])
	}
	for i := range o.OwnerReferences {
		r := &o.OwnerReferences[i]
		r.APIVersion, r.Kind, r.Name, r.UID = once(r.APIVersion), once(r.Kind), once(r.Name), once(r.UID)
	}
}

func owner(o *v1alpha1.TargetOwner) { o.Name, o.UID = once(o.Name), once(o.UID) }

func facts(f *v1alpha1.FileSystemFacts) {
	if f != nil {
		f.Type, f.MetadataNode, f.MetadataTarget = once(f.Type), once(f.MetadataNode), once(f.MetadataTarget)
	}
}

func conditions(all []metav1.Condition) {
	for i := range all {
		c := &all[i]
		c.Type, c.Status, c.Reason, c.Message = once(c.Type), once(c.Status), once(c.Reason), once(c.Message)
	}
}

// words returns a shared copy of labels or annotations, for all objects with equal ones. They are never changed: objects in the cache are
// read-only, and copies have their own.
func words(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	return shared.of(of)
}

// shared holds maps of words, by the hash of their content.
var shared sharedMaps

type sharedMaps struct {
	mutex sync.Mutex
	known map[[sha256.Size]byte]map[string]string
}

// mostShared bounds the maps that are kept, those of objects that are gone among them. Each has at most maxWords bytes.
const mostShared = 1 << 14

func (s *sharedMaps) of(words map[string]string) map[string]string {
	content := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(words)) {
		for _, word := range []string{key, words[key]} {
			_, _ = fmt.Fprintf(content, "%d:%s", len(word), word)
		}
	}
	sum := [sha256.Size]byte(content.Sum(nil))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if same, ok := s.known[sum]; ok {
		return same
	}
	if s.known == nil || len(s.known) >= mostShared {
		s.known = map[[sha256.Size]byte]map[string]string{}
	}
	out := make(map[string]string, len(words))
	for key, value := range words {
		out[once(key)] = once(value)
	}
	s.known[sum] = out
	return out
}

// once returns a shared copy of a text, for all equal texts in memory.
func once[S ~string](text S) S { return unique.Make(text).Value() }
