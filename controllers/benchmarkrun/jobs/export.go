package jobs

import (
	"path"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// Exporter returns the Job that copies the complete results to the destination in the spec.
func (r Renderer) Exporter() client.Object {
	spec, directory := r.Scope.Run.Spec.Results, r.Scope.ExportDirectory()
	const files, claim, credentials = "/results", "/claim", "/credentials"
	command := []string{"/node", "export", "--files", files}
	volumes := []corev1.Volume{{Name: "results", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: results.ConfigMapOfRun(r.Scope.Run.Name)},
		}}}}
	mounts := []corev1.VolumeMount{{Name: "results", MountPath: files, ReadOnly: true}}
	if to := spec.PersistentVolumeClaim; to != nil {
		command = append(command, "--to", path.Join(claim, to.Path, directory))
		volumes = append(volumes, corev1.Volume{Name: "claim", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: to.Name}}})
		mounts = append(mounts, corev1.VolumeMount{Name: "claim", MountPath: claim})
	}
	if to := spec.ObjectStore; to != nil {
		command = append(command, "--s3-endpoint", to.Endpoint, "--s3-bucket", to.Bucket, "--s3-prefix", path.Join(to.Prefix, directory),
			"--s3-credentials", credentials)
		if to.Region != "" {
			command = append(command, "--s3-region", to.Region)
		}
		volumes = append(volumes, podspec.ObjectStoreKeys("credentials", to.SecretName))
		mounts = append(mounts, corev1.VolumeMount{Name: "credentials", MountPath: credentials, ReadOnly: true})
	}
	t := task{name: turns.ExportName(r.Scope.Run.Name), role: children.RoleExporter}
	podLabels := children.Labels(r.Scope.Run)
	podLabels[children.LabelChild], podLabels[children.LabelRole] = t.name, t.role
	security := confined(r.user())
	if r.user() == 0 {
		// Any user may own the claim's files.
		security.Capabilities.Add = []corev1.Capability{"DAC_OVERRIDE"}
	}
	job := &batchv1.Job{ObjectMeta: r.meta(t)}
	job.Spec.BackoffLimit, job.Spec.ActiveDeadlineSeconds = new(int32(1)), new(seconds(scope.ExportTimeout))
	job.Annotations = nil
	job.Spec.Template.Labels = podLabels
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: children.ContainerName, Image: r.Images.Node, ImagePullPolicy: corev1.PullPolicy(r.Images.PullPolicy), Command: command,
			VolumeMounts: mounts, SecurityContext: security, Resources: requests("10m", "32Mi"),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
		Volumes: volumes, PriorityClassName: r.Scope.Run.Spec.PriorityClassName,
	}
	r.onVolume(&job.Spec.Template.Spec)
	r.asAsked(&job.Spec.Template, t.role)
	limitMemory(&job.Spec.Template, exportMemory) // it may run on any node
	return job
}
