package backendtest

import batchv1 "k8s.io/api/batch/v1"

// Mounts returns the directories of nodes and the claims that a Job's container mounts, by mountpoint.
func Mounts(job *batchv1.Job) map[string]string {
	pod := job.Spec.Template.Spec
	out := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			how := ""
			if m.ReadOnly {
				how = ", read only"
			}
			switch {
			case v.Name != m.Name:
			case v.HostPath != nil:
				out[m.MountPath] = v.HostPath.Path + how
			case v.PersistentVolumeClaim != nil:
				out[m.MountPath] = v.PersistentVolumeClaim.ClaimName + ":" + m.SubPath + how
			}
		}
	}
	return out
}
