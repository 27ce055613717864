package beegfs

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// onCores is a new filesystem without a number of worker threads, on nodes of 32 cores with two CPUs each.
func onCores(t *testing.T) backend.Input {
	t.Helper()
	in := cluster("7.4.6")
	in.FileSystem.Spec.MetadataServers.BeeGFS = nil
	for node, found := range in.Inventories {
		found.CPU = v1alpha1.CPUStatus{Sockets: 2, Cores: 32, Threads: 64, Siblings: []string{"0,32", "1,33", "2,34", "3,35", "4,36", "5,37", "6,38", "7,39"}}
		in.Inventories[node] = found
	}
	var chosen v1alpha1.ChosenStatus
	NewWithT(t).Expect(New().Choose(in, &in.FileSystem.Spec, &chosen)).To(Succeed())
	in.FileSystem.Status.Chosen = &chosen
	return in
}

// workersOn returns the number of worker threads of a metadata server in its file on oss1.
func workersOn(t *testing.T, in backend.Input, member string) string {
	t.Helper()
	files, err := Files(in, "oss1")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return settings(t, spec.Run{Files: []spec.File{{Path: "/beegfs-meta.conf", Content: files[member+"/beegfs-meta.conf"]}}}, "beegfs-meta.conf")["tuneNumWorkers"]
}

func TestANewMetadataServerHasFourWorkersForEachOfItsCores(t *testing.T) {
	static := &v1alpha1.CPUPinning{Mode: v1alpha1.PinningKubeletStatic, CPUs: new(int32(24))}
	for name, c := range map[string]struct {
		pinning *v1alpha1.CPUPinning
		cpus    string
		want    string
	}{
		"16 CPUs of 8 cores":                {pinning: &v1alpha1.CPUPinning{Mode: v1alpha1.PinningCPUSet}, cpus: "0-7,32-39", want: "32"},
		"16 CPUs of 16 cores":               {pinning: &v1alpha1.CPUPinning{Mode: v1alpha1.PinningNUMANode}, cpus: "0-15", want: "64"},
		"two CPUs, and never fewer than 16": {pinning: &v1alpha1.CPUPinning{Mode: v1alpha1.PinningCPUSet}, cpus: "0-1", want: "16"},
		"24 CPUs that the kubelet gives":    {pinning: static, want: "48"},
		"a fourth of the cores of its node": {want: "32"},
		"CPUs that are not yet known":       {pinning: &v1alpha1.CPUPinning{Mode: v1alpha1.PinningCPUSet}, cpus: "?", want: "16"},
	} {
		t.Run(name, func(t *testing.T) {
			in := onCores(t)
			in.FileSystem.Spec.MetadataServers.CPUPinning = c.pinning
			in.Pinnings["oss1"][metaDaemon(0)] = spec.Pinning{CPUs: c.cpus}
			NewWithT(t).Expect(workersOn(t, recorded(t, in), "meta-0")).To(Equal(c.want))
		})
	}
}

func TestWorkersOfARecordedMetadataServerStayWithoutAnInventory(t *testing.T) {
	g := NewWithT(t)
	in := onCores(t)
	in.FileSystem.Spec.MetadataServers.CPUPinning = nil
	in = recorded(t, in)
	in.FileSystemNodes = New().Nodes(in)
	in.Inventories = nil
	g.Expect(told(t, in)["meta-0"].Variables).To(HaveKeyWithValue(variableWorkers, v1alpha1.VariableValue("32")))
}

func TestWorkersOfAFilesystemThatExistedBeforeStay(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, onCores(t))
	in.FileSystem.Status.Chosen = nil
	in.FileSystem.Status.Metadata.Initialized = new(metav1.Now())
	var chosen v1alpha1.ChosenStatus
	g.Expect(New().Choose(in, &in.FileSystem.Spec, &chosen)).To(Succeed())
	in.FileSystem.Status.Chosen = &chosen
	g.Expect(workersOn(t, in, "meta-0")).To(Equal("16"))
	g.Expect(told(t, in)["meta-0"].Variables).NotTo(HaveKey(variableWorkers))
}

func TestAChosenNumberOfWorkersForEachCoreStaysAndEndsWithANumberInTheSpec(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, onCores(t))
	var kept, asked v1alpha1.ChosenStatus
	g.Expect(New().Choose(in, &in.FileSystem.Spec, &kept)).To(Succeed())
	g.Expect(kept.MetadataWorkersPerCore).To(Equal(int32(4)))
	in.FileSystem.Spec.MetadataServers.BeeGFS = &v1alpha1.BeeGFSMetadata{WorkerThreads: new(int32(40))}
	g.Expect(New().Choose(in, &in.FileSystem.Spec, &asked)).To(Succeed())
	g.Expect(asked.MetadataWorkersPerCore).To(BeZero())
	g.Expect(workersOn(t, in, "meta-0")).To(Equal("40"))
}
