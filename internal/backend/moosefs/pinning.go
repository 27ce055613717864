package moosefs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// bound is true when the node binary binds the daemons of a role to CPUs that are known by number.
func bound(pinning *v1alpha1.CPUPinning) bool {
	return pinning != nil && (pinning.Mode == v1alpha1.PinningNUMANode || pinning.Mode == v1alpha1.PinningCPUSet)
}

// exclusive is true when the kubelet gives the daemons of a role CPUs of their own.
func exclusive(pinning *v1alpha1.CPUPinning) bool {
	return pinning != nil && pinning.Mode == v1alpha1.PinningKubeletStatic && pinning.CPUs != nil
}

// pin makes a pod ask for its CPUs, and returns all that goes into the hash of its template: what was told, and a pinning
// that the node binary carries out when the daemon starts.
func pin(pod *corev1.PodTemplateSpec, field string, pinning *v1alpha1.CPUPinning, told ...any) ([]any, error) {
	switch {
	case bound(pinning):
		return append(told, pinning), nil
	case exclusive(pinning):
		return told, guarantee(pod, field, pinning)
	default:
		return told, nil
	}
}

// guarantee gives a pod the QoS class Guaranteed, which every container has to ask for, and its first one, the daemon, whole
// CPUs: the kubelet's static CPU manager makes those exclusive (Kubernetes: policies for assigning CPUs to containers).
func guarantee(pod *corev1.PodTemplateSpec, field string, pinning *v1alpha1.CPUPinning) error {
	memory, err := resource.ParseQuantity(string(pinning.Memory))
	if err != nil {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec, "%s.cpuPinning.memory %q is no size: %v; write it like 16Gi", field, pinning.Memory, err)
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Resources = exactly(resource.MustParse("100m"), resource.MustParse("64Mi"))
	}
	for i := range pod.Spec.Containers {
		// The probe runs mfscli, a Python program, every few seconds.
		pod.Spec.Containers[i].Resources = exactly(resource.MustParse("500m"), resource.MustParse("256Mi"))
	}
	pod.Spec.Containers[0].Resources = exactly(*resource.NewQuantity(int64(*pinning.CPUs), resource.DecimalSI), memory)
	return nil
}

// exactly requests as much as it limits to.
func exactly(cpu, memory resource.Quantity) corev1.ResourceRequirements {
	list := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: cpu.DeepCopy(), corev1.ResourceMemory: memory.DeepCopy()}
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}
