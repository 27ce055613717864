package moosefs

import (
	"fmt"
	"path"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// storageClassJob creates the storage classes and the pools' directories. The Job's name contains a hash of its work, so a changed pool
// gets another Job, and a finished Job stays as the record of the work.
func (b *builder) storageClassJob() client.Object {
	fs := b.in.FileSystem
	configure := storageClasses(b.in, b.domains)
	b.secrets["storageclasses.json"] = backend.Encode(configure)
	b.secrets[adminMountKey] = []byte(adminMountConfig(b.in))
	pod := b.pod(componentStorageClasses, "", secretVolume)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.Affinity = podspec.OnNodes(b.master.Name)
	c := b.daemon(componentStorageClasses, "storageclasses", "configure", secretVolume, "storageclasses.json")
	c.SecurityContext = podspec.Privileged() // mounts by FUSE, inside the container only
	b.fuseDevice(pod, &c)
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:      backend.ChildName(fs, "classes-"+backend.Hash(configure, b.images[componentStorageClasses], b.in.Images.Node)),
			Namespace: fs.Namespace,
			Labels:    pods(b.in).Labels(podspec.Workload{Component: componentStorageClasses}),
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(10)),
			Template:     *pod,
		},
	}
}

// storageClasses creates one class and one directory per pool. Every command can be repeated.
func storageClasses(in backend.Input, domains nodefacts.Domains) spec.Configure {
	fs := in.FileSystem
	const mountPoint = "/run/parallelfs-admin"
	configure := spec.Configure{Mount: &spec.Mount{
		Path: mountPoint, FSType: mountType, Source: mountSource(backend.Address(adminAddress, portsOf(fs).clients())),
		Command: []string{
			"mfsmount", mountPoint, "-f", "-H", adminAddress, "-P", fmt.Sprint(portsOf(fs).clients()), "-o", "mfscfgfile=" + adminMountFile,
		},
	}}
	for _, pool := range fs.Spec.StoragePools {
		expression := placement(in, domains, pool)
		configure.Commands = append(configure.Commands, classCommands(toolsVersion(in), mountPoint, pool.Name, expression)...)
		directory := path.Join(mountPoint, pool.Name)
		configure.Commands = append(configure.Commands,
			spec.Command{Argv: []string{"mkdir", "-p", "-m", "0755", directory}},
			spec.Command{Argv: []string{"mfssetsclass", pool.Name, directory}},
			// Files inherit the trash time that their directory had when they were created. Without this, a removed file of a benchmark fills its
			// pool for another day (the default of MooseFS's trash).
			spec.Command{Argv: []string{"mkdir", "-p", "-m", "0755", path.Join(directory, spec.BenchmarkHome)}},
			spec.Command{Argv: []string{setTrashTime(toolsVersion(in)), "0", path.Join(directory, spec.BenchmarkHome)}})
		if fs.Spec.TakesRest(pool.Name) {
			configure.Commands = append(configure.Commands, spec.Command{Argv: []string{"mfssetsclass", pool.Name, mountPoint}})
		}
	}
	return configure
}

// toolsVersion returns the version of the tools that create storage classes: that of the running master. Tools of 3.0.117 can't decode a
// class of 4.57.5 (deserialize storage class), and a master refuses newer tools.
func toolsVersion(in backend.Input) string {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Component == componentMaster && p.Version != "" && !p.Terminating {
			return p.Version
		}
	}
	return backend.VersionOf(in.FileSystem, componentMetalogger) // it changes after the master runs the new version
}

// setTrashTime returns the program that sets how long removed files are kept (mfstrashtime(1) of 3.0.117, mfstrashretention(1) of 4.57.5).
func setTrashTime(version string) string {
	if major(version) == "3" {
		return "mfssettrashtime"
	}
	return "mfssettrashretention"
}

// placement returns the expression of a pool's storage class: the number of copies, each on another chunkserver with the pool's label.
// There is one chunkserver per pool and node, so each copy is on another node, and if possible in another failure domain.
func placement(in backend.Input, domains nodefacts.Domains, pool v1alpha1.StoragePoolSpec) string {
	record, recorded := in.Pool(pool.Name)
	if !recorded {
		return ""
	}
	expression := fmt.Sprintf("%d%s", backend.Copies(pool), label(record.Slot))
	if major(toolsVersion(in)) != "3" && spreads(in, domains, pool) {
		expression += differentRacks
	}
	return expression
}

// classCommands create or change one storage class. In mode strict ("s"), a full pool returns ENOSPC; the other modes write to another
// pool's disks without an error (mfsscadmin(1), mfssclass(1)). Creating an existing class fails, so that command may fail.
func classCommands(version, mountPoint, name, expression string) []spec.Command {
	if major(version) == "3" {
		return []spec.Command{
			{Argv: []string{"mfsscadmin", mountPoint, "create", "-m", "s", "-C", expression, "-K", expression, name}, MayFail: true},
			// Without -C, modify does not change the copies at creation.
			{Argv: []string{"mfsscadmin", mountPoint, "modify", "-m", "s", "-C", expression, "-K", expression, name}},
		}
	}
	return []spec.Command{
		{Argv: []string{"mfscreatesclass", "-M", mountPoint, "-m", "s", "-K", expression, name}, MayFail: true},
		{Argv: []string{"mfsmodifysclass", "-M", mountPoint, "-m", "s", "-K", expression, name}},
	}
}
