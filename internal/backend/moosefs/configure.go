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
	"parallelfs.dev/operator/internal/node/spec"
)

// storageClassJob makes the storage classes and the pools' directories. Its name holds a hash of what it does, so a
// changed pool makes another Job, and a finished one stays as the record that it was done.
func (b *builder) storageClassJob() client.Object {
	fs := b.in.FileSystem
	configure := storageClasses(b.in, b.domains)
	b.secrets["storageclasses.json"] = backend.Encode(configure)
	b.secrets[adminMountKey] = []byte(adminMountConfig(b.in))
	pod := b.pod(componentStorageClasses, "", secretVolume)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.Affinity = backend.OnNodes(b.master.Name)
	c := b.daemon(componentStorageClasses, "storageclasses", "configure", secretVolume, "storageclasses.json")
	c.SecurityContext = backend.Privileged() // mounts by FUSE, inside the container only
	b.fuseDevice(pod, &c)
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:      backend.ChildName(fs, "classes-"+backend.Hash(configure, b.images[componentStorageClasses], b.in.Images.Node)),
			Namespace: fs.Namespace,
			Labels:    pods(b.in).Labels(backend.Workload{Component: componentStorageClasses}),
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(10)),
			Template:     *pod,
		},
	}
}

// storageClasses makes one class and one directory per pool. Every command can be run again.
func storageClasses(in backend.Input, domains backend.Domains) spec.Configure {
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
			// Files keep the time that their directory had when they were made. Without this, a removed file of a benchmark
			// fills its pool for another day (default of MooseFS's trash).
			spec.Command{Argv: []string{"mkdir", "-p", "-m", "0755", path.Join(directory, spec.BenchmarkHome)}},
			spec.Command{Argv: []string{setTrashTime(toolsVersion(in)), "0", path.Join(directory, spec.BenchmarkHome)}})
		if fs.Spec.TakesRest(pool.Name) {
			configure.Commands = append(configure.Commands, spec.Command{Argv: []string{"mfssetsclass", pool.Name, mountPoint}})
		}
	}
	return configure
}

// toolsVersion is the version of the tools that make storage classes: that of the master that runs. Tools of 3.0.117 do not read how one of
// 4.57.5 tells a class (deserialize storage class), and a master refuses newer tools.
func toolsVersion(in backend.Input) string {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Component == componentMaster && p.Version != "" && !p.Terminating {
			return p.Version
		}
	}
	return backend.VersionOf(in.FileSystem, componentMetalogger) // it follows when the master runs the new version
}

// setTrashTime is the program that says how long removed files are kept (mfstrashtime(1) of 3.0.117, mfstrashretention(1) of 4.57.5).
func setTrashTime(version string) string {
	if major(version) == "3" {
		return "mfssettrashtime"
	}
	return "mfssettrashretention"
}

// placement is the expression of a pool's storage class: so many copies, each on another chunkserver with the pool's
// label. One chunkserver per pool and node makes that another node; where it can be, each is in another failure domain.
func placement(in backend.Input, domains backend.Domains, pool v1alpha1.StoragePoolSpec) string {
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

// classCommands make or change one storage class. Mode strict ("s"): a full pool gives ENOSPC instead of silently
// writing to another pool's disks (mfsscadmin(1), mfssclass(1)). Making one that exists fails, so that may.
func classCommands(version, mountPoint, name, expression string) []spec.Command {
	if major(version) == "3" {
		return []spec.Command{
			{Argv: []string{"mfsscadmin", mountPoint, "create", "-m", "s", "-C", expression, "-K", expression, name}, MayFail: true},
			// Without -C, modify leaves the copies at creation as create made them.
			{Argv: []string{"mfsscadmin", mountPoint, "modify", "-m", "s", "-C", expression, "-K", expression, name}},
		}
	}
	return []spec.Command{
		{Argv: []string{"mfscreatesclass", "-M", mountPoint, "-m", "s", "-K", expression, name}, MayFail: true},
		{Argv: []string{"mfsmodifysclass", "-M", mountPoint, "-m", "s", "-K", expression, name}},
	}
}
