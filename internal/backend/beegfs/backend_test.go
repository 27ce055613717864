package beegfs

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

var update = flag.Bool("update", false, "write the golden files")

func TestBeeGFSKeepsTheContractOfBackends(t *testing.T) {
	for name, input := range map[string]func(version string) backend.Input{
		"in directories": inDirectories, "on disks": cluster, "with all that it has": everything,
	} {
		t.Run(name, func(t *testing.T) { backendtest.Contract(t, New(), input, initialized) })
	}
}

// initialized records every target as initialized.
func initialized(in *backend.Input) {
	in.FileSystemNodes = nodesOf(*in)
	for i := range in.FileSystemNodes {
		for _, m := range in.FileSystemNodes[i].Spec.Members {
			for j := range m.Targets {
				m.Targets[j].Initialized = in.FileSystem.Status.Metadata.Initialized
			}
		}
	}
}

// everything returns the cluster with all optional parts: RDMA, two networks, the configuration of the CSI driver and, in BeeGFS 8, a
// certificate and a license.
func everything(version string) backend.Input {
	in := cluster(version)
	in.FileSystem.Spec.Network = &v1alpha1.NetworkSpec{Interfaces: []v1alpha1.InterfaceName{"ib0", "eno1"}}
	in.FileSystem.Spec.BeeGFS.RDMA, in.FileSystem.Spec.BeeGFS.RDMAResource = v1alpha1.RDMARequired, "rdma/hca_shared_devices_a"
	in.FileSystem.Spec.BeeGFS.CSIDriver = true
	if cli.Is8(version) {
		in.FileSystem.Spec.BeeGFS.TLS = &v1alpha1.SecretReference{Name: "certificate"}
		in.FileSystem.Spec.BeeGFS.License = &v1alpha1.SecretReference{Name: "license"}
	}
	return in
}

// recorded returns an input with the record that the backend itself makes. Unless the input has a State, the management service has
// answered and no server has registered.
func recorded(t *testing.T, in backend.Input) backend.Input {
	t.Helper()
	if in.State == nil {
		in.State = &backend.State{Asked: time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC), Version: in.FileSystem.Spec.Version}
	}
	backendtest.Remember(t, New(), &in)
	return in
}

func objectsOf(t *testing.T, in backend.Input) []client.Object {
	t.Helper()
	objects, err := New().Members(in)
	if err != nil {
		t.Fatalf("Members: %v", err)
	}
	for _, n := range New().Nodes(in) {
		objects = append(objects, &n)
	}
	return objects
}

func TestObjectsAreThoseOfTheGoldenFile(t *testing.T) {
	for _, version := range versions {
		for name, input := range map[string]func(string) backend.Input{"objects": cluster, "objects-everything": everything, "objects-directories": inDirectories} {
			t.Run(name+" "+version, func(t *testing.T) {
				golden(t, filepath.Join("testdata", "cluster-"+version, name+".golden.yaml"), tell(t, objectsOf(t, recorded(t, input(version)))))
			})
		}
	}
}

func TestConfigurationFilesOfANodeAreTheGoldenOnes(t *testing.T) {
	for _, version := range versions {
		for _, node := range []string{"oss1", "oss2", "c1"} {
			t.Run(version+" "+node, func(t *testing.T) {
				g := NewWithT(t)
				files, err := Files(recorded(t, cluster(version)), node)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(files).NotTo(BeEmpty())
				directory := filepath.Join("testdata", "cluster-"+version, node)
				if *update {
					g.Expect(os.RemoveAll(directory)).To(Succeed())
				}
				for name, content := range files {
					golden(t, filepath.Join(directory, name), content)
				}
				g.Expect(slices.Sorted(maps.Keys(files))).To(Equal(filesBelow(t, directory)), "no file of it is missing, and no other is there")
			})
		}
	}
}

func filesBelow(t *testing.T, directory string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(directory, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func golden(t *testing.T, path, content string) {
	t.Helper()
	g := NewWithT(t)
	if *update {
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred(), "run: go test ./internal/backend/beegfs -update")
	g.Expect(content).To(Equal(string(want)), "if this change of %s is meant, run: go test ./internal/backend/beegfs -update", path)
}

// tell writes objects as YAML, with the contents of Secrets in plain text.
func tell(t *testing.T, objects []client.Object) string {
	t.Helper()
	var story strings.Builder
	for _, object := range objects {
		if object.GetDeletionTimestamp() != nil {
			continue // the object must not exist: backend.Absent
		}
		kind := "unknown"
		switch o := object.(type) {
		case *corev1.Secret:
			kind, o.StringData = "Secret", map[string]string{}
			for name, content := range o.Data {
				o.StringData[name] = string(content)
			}
			o.Data = nil
		case *corev1.ConfigMap:
			kind = "ConfigMap"
		case *appsv1.DaemonSet:
			kind = "DaemonSet"
		case *batchv1.Job:
			kind = "Job"
		case *v1alpha1.FileSystemNode:
			kind = "FileSystemNode"
		}
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		story.WriteString("---\n# " + kind + "\n" + string(raw))
	}
	return story.String()
}

// runs returns the configurations of the daemons of a filesystem, by file name.
func runs(t *testing.T, in backend.Input) map[string]spec.Run {
	t.Helper()
	out := map[string]spec.Run{}
	for _, o := range objectsOf(t, in) {
		m, ok := o.(*corev1.ConfigMap)
		if !ok || m.Name != configMapName(in.FileSystem) {
			continue
		}
		for name, content := range m.Data {
			var run spec.Run
			if strings.HasSuffix(name, ".json") && name != "probe.json" && name != "client.json" {
				if err := json.Unmarshal([]byte(content), &run); err != nil {
					t.Fatal(err)
				}
				out[name] = run
			}
		}
	}
	return out
}

func daemonSets(t *testing.T, in backend.Input) map[string]*appsv1.DaemonSet {
	t.Helper()
	out := map[string]*appsv1.DaemonSet{}
	for _, o := range objectsOf(t, in) {
		if set, ok := o.(*appsv1.DaemonSet); ok {
			out[set.Name] = set
		}
	}
	return out
}

func TestABeeGFSHasIPv6WhenAllOfItRunsAVersionThatHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		asks, runs string
		want       []corev1.IPFamily
	}{
		"7.4":                           {"7.4.6", "7.4.6", []corev1.IPFamily{corev1.IPv4Protocol}},
		"8.1":                           {"8.1.0", "8.1.0", []corev1.IPFamily{corev1.IPv4Protocol}},
		"an upgrade that has not ended": {"8.3.1", "8.1.0", []corev1.IPFamily{corev1.IPv4Protocol}},
		"8.2":                           {"8.2.0", "8.2.0", []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}},
		"8.3, which is new":             {"8.3.1", "", []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}},
	} {
		fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Version: c.asks}, Status: v1alpha1.FileSystemStatus{Version: c.runs}}
		NewWithT(t).Expect(New().Families(fs)).To(Equal(c.want), name)
	}
}

func TestAnotherCertificateRestartsTheManagementServiceAlone(t *testing.T) {
	g, in := NewWithT(t), recorded(t, everything("8.3.1"))
	before := daemonSets(t, in)
	in.FileSystem.Status.Certificate = &v1alpha1.CertificateStatus{SHA256: "another", Trusted: "A", TrustedBefore: "B"}
	for name, set := range daemonSets(t, in) {
		same := Equal(before[name].Spec.Template.Annotations)
		if set.Labels[v1alpha1.LabelComponent] == componentManagement {
			same = Not(same)
		}
		g.Expect(set.Spec.Template.Annotations).To(same, name)
	}
	g.Expect(New().CertificateSecret(in.FileSystem)).To(Equal("certificate"))
}

func TestToolsAskForWhatTheCertificateProves(t *testing.T) {
	for name, c := range map[string]struct {
		names       []string
		asks, alias string
		lacks       bool
	}{
		"it has the address":                    {names: []string{"mgmtd.site", "10.0.0.1"}, asks: "10.0.0.1:8010"},
		"it has the address in another form":    {names: []string{"::ffff:10.0.0.1"}, asks: "10.0.0.1:8010"},
		"it has the address of another machine": {names: []string{"10.0.0.9"}, asks: "10.0.0.1:8010", lacks: true},
		"it has names":                          {names: []string{"10.0.0.9", "*.site", "Mgmtd.Site", "other.site"}, asks: "mgmtd.site:8010", alias: "mgmtd.site"},
		"it has a wildcard only":                {names: []string{"*.site"}, asks: "10.0.0.1:8010", lacks: true},
		"it has no name that a pod can have":    {names: []string{"under_score"}, asks: "10.0.0.1:8010", lacks: true},
		"it has a common name only":             {asks: "10.0.0.1:8010", lacks: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), recorded(t, everything("8.3.1"))
			in.FileSystem.Status.Certificate = &v1alpha1.CertificateStatus{SHA256: "one", Names: c.names, Trusted: "A", TrustedBefore: "B"}
			port := ":" + fmt.Sprint(portsOf(in.FileSystem).grpc())
			address := strings.TrimSuffix(c.asks, ":8010") + port
			node, _ := managementNode(in)
			address = strings.Replace(address, "10.0.0.1:", node.IP+":", 1)
			g.Expect(toolOf(in).Run()).To(ContainElement("--mgmtd-addr=" + address))
			pod := daemonSets(t, in)[backend.ChildName(in.FileSystem, componentManagement)].Spec.Template
			g.Expect(pod.Annotations).To(HaveKeyWithValue(podspec.CertificateAnnotation, "one"))
			if c.alias == "" {
				g.Expect(pod.Spec.HostAliases).To(BeEmpty())
			} else {
				g.Expect(pod.Spec.HostAliases).To(ConsistOf(corev1.HostAlias{IP: node.IP, Hostnames: []string{c.alias}}))
			}
			_, lacks := New().CertifiedHost(in, in.FileSystem.Status.Certificate)
			if c.lacks {
				g.Expect(lacks).To(And(HavePrefix("names neither the IP address "+node.IP), ContainSubstring(node.Name)))
			} else {
				g.Expect(lacks).To(BeEmpty())
			}
			for _, object := range objectsOf(t, in) {
				if told, is := object.(*corev1.ConfigMap); is && told.Name == configMapName(in.FileSystem) {
					g.Expect(told.Data).To(HaveKeyWithValue(cli.TrustName, "AB"))
					g.Expect(told.Data["probe.json"]).To(ContainSubstring(`"tls://` + address + `"`))
				}
			}
		})
	}
}
