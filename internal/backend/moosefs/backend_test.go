package moosefs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/node/spec"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	storageLabel = "parallelfs.dev/scratch-storage"
	masterLabel  = "parallelfs.dev/scratch-metadata"
	clientLabel  = "parallelfs.dev/scratch-client"
)

// everything returns a filesystem that uses everything that the backend supports, on three nodes.
func everything(version string) backend.Input {
	labels := func(names ...string) map[string]string {
		out := map[string]string{}
		for _, n := range names {
			out[n] = ""
		}
		return out
	}
	return backend.Input{Chosen: true,
		FileSystem: &v1alpha1.FileSystem{
			ObjectMeta: metav1.ObjectMeta{
				Name: "scratch", Namespace: "storage", UID: "6f1c", Generation: 1,
				CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)),
			},
			Spec: v1alpha1.FileSystemSpec{
				Type: v1alpha1.MooseFS, Version: version,
				MooseFS: &v1alpha1.MooseFSSpec{
					BasePort:    9419,
					Metaloggers: &v1alpha1.MetaloggersSpec{NodeSelector: labels(storageLabel), Config: v1alpha1.Options{"META_DOWNLOAD_FREQ": "1"}},
					Config:      v1alpha1.MooseFSConfig{Metadata: v1alpha1.Options{"ATIME_MODE": "4"}, Storage: v1alpha1.Options{"HDD_TEST_SPEED": "0.1"}},
				},
				MetadataServers: v1alpha1.MetadataSpec{
					NodeSelector: labels(masterLabel), InstancesPerNode: 1,
					Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta"}},
				},
				StoragePools: []v1alpha1.StoragePoolSpec{
					{Name: "ssd", NodeSelector: labels(storageLabel), Copies: 2, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/ssd0", "/data/ssd1"}}},
					{Name: "bulk", NodeSelector: labels(storageLabel), Copies: 1, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/hdd0"}}},
				},
				Clients: &v1alpha1.ClientsSpec{
					NodeSelector: labels(clientLabel), MountPath: "/mnt/scratch", MountOptions: []v1alpha1.MountOption{"mfsioretries=30"},
				},
			},
		},
		Nodes: []backend.Node{
			{Name: "n1", IP: "10.0.0.1", Ready: true, Labels: labels(masterLabel, storageLabel, clientLabel)},
			{Name: "n2", IP: "10.0.0.2", Ready: true, Labels: labels(storageLabel, clientLabel)},
			{Name: "n3", IP: "10.0.0.3", Ready: true, Labels: labels()},
		},
		Images: backend.Images{
			Node:       "node:1",
			Daemons:    map[string]string{"moosefs-3.0.117": "moosefs:3.0.117", "moosefs-4.57.5": "moosefs:4.57.5"},
			PullPolicy: "IfNotPresent",
		},
		Password: "correct-horse-battery-staple", ProbeKey: "tr0ub4dor-and-3",
	}
}

func TestMooseFSKeepsTheContractOfBackends(t *testing.T) {
	for name, input := range map[string]func(version string) backend.Input{"in directories": everything, "on disks": onDisks} {
		t.Run(name, func(t *testing.T) { backendtest.Contract(t, New(), input, nil) })
	}
}

func TestObjectsAreThoseOfTheGoldenFile(t *testing.T) {
	for kindOfTargets, input := range map[string]func(version string) backend.Input{"objects-": everything, "objects-disks-": onDisks} {
		for _, version := range []string{"3.0.117", "4.57.5"} {
			t.Run(kindOfTargets+version, func(t *testing.T) {
				g := NewWithT(t)
				in := input(version)
				backendtest.Remember(t, New(), &in)
				objects, err := New().Members(in)
				g.Expect(err).NotTo(HaveOccurred())
				for _, n := range New().Nodes(in) {
					objects = append(objects, &n)
				}
				story := tell(t, objects)
				path := filepath.Join("testdata", kindOfTargets+version+".golden.yaml")
				if *update {
					g.Expect(os.WriteFile(path, []byte(story), 0o600)).To(Succeed())
				}
				golden, err := os.ReadFile(path)
				g.Expect(err).NotTo(HaveOccurred(), "run: go test ./internal/backend/moosefs -update")
				g.Expect(story).To(Equal(string(golden)), "if this change is meant, run: go test ./internal/backend/moosefs -update")
			})
		}
	}
}

// tell formats objects as YAML, with the content of Secrets in clear text.
func tell(t *testing.T, objects []client.Object) string {
	t.Helper()
	var story strings.Builder
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			secret.StringData = map[string]string{}
			for name, content := range secret.Data {
				secret.StringData[name] = string(content)
			}
			secret.Data = nil
		}
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		story.WriteString("---\n# " + kind(object) + "\n" + string(raw))
	}
	return story.String()
}

func kind(object any) string {
	switch object.(type) {
	case *corev1.Secret:
		return "Secret"
	case *corev1.ConfigMap:
		return "ConfigMap"
	case *appsv1.DaemonSet:
		return "DaemonSet"
	case *batchv1.Job:
		return "Job"
	case *v1alpha1.FileSystemNode:
		return "FileSystemNode"
	default:
		return "unknown"
	}
}

func TestRecordRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(in *backend.Input)
		reason string
		says   string
	}{
		"a master without a node": {
			change: func(in *backend.Input) { delete(in.Nodes[0].Labels, masterLabel) },
			reason: v1alpha1.ReasonNoNodes, says: "no node matches spec.metadataServers.nodeSelector",
		},
		"two nodes for the one master": {
			change: func(in *backend.Input) { in.Nodes[2].Labels[masterLabel] = "" },
			reason: v1alpha1.ReasonTooManyNodes, says: "matches n1, n3, but MooseFS has exactly one active master",
		},
		"a pool without a node": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.StoragePools[1].NodeSelector = v1alpha1.NodeSelector{"tape": "yes"}
			},
			reason: v1alpha1.ReasonNoNodes, says: `storage pool "bulk"`,
		},
		"more copies than nodes": {
			change: func(in *backend.Input) { in.FileSystem.Spec.StoragePools[0].Copies = 3 },
			reason: v1alpha1.ReasonInvalidSpec, says: `storage pool "ssd" wants 3 copies on as many nodes, but has n1, n2 only`,
		},
		"one node for a pool whose copies the spec leaves to the default of two": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.StoragePools[0].Copies = 0
				in.FileSystem.Complete()
				delete(in.Nodes[1].Labels, storageLabel)
			},
			reason: v1alpha1.ReasonInvalidSpec, says: `storage pool "ssd" wants 2 copies on as many nodes, but has n1 only`,
		},
		"ports that another filesystem uses on the same node": {
			change: func(in *backend.Input) {
				meet(in, neighbor(9440, "/srv/meta"))
			},
			reason: v1alpha1.ReasonPortConflict, says: "FileSystem storage/other uses the ports 9440 to 9471 on node n1 too",
		},
		"a directory that another filesystem uses on the same node": {
			change: func(in *backend.Input) {
				meet(in, neighbor(9500, "/data/ssd0/below"))
			},
			reason: v1alpha1.ReasonDirectoryConflict, says: "keeps data in /data/ssd0/below on node n1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := everything("4.57.5")
			c.change(&in)
			_, err := New().Allocate(in)
			var invalid *backend.InvalidSpecError
			g.Expect(err).To(BeAssignableToTypeOf(invalid))
			g.Expect(err.(*backend.InvalidSpecError).Reason).To(Equal(c.reason)) //nolint:errorlint // asserted above
			g.Expect(err.Error()).To(ContainSubstring(c.says))
		})
	}
}

// neighbor returns another filesystem whose master is on n1.
func neighbor(port int32, directory string) v1alpha1.FileSystem {
	return v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "storage", UID: "77aa"},
		Spec:       v1alpha1.FileSystemSpec{Type: v1alpha1.MooseFS, MooseFS: &v1alpha1.MooseFSSpec{BasePort: port}},
		Status:     v1alpha1.FileSystemStatus{Metadata: &v1alpha1.MetadataRecord{Node: "n1", Directory: directory}},
	}
}

// meet sets the other filesystems of the cluster.
func meet(in *backend.Input, others ...v1alpha1.FileSystem) {
	in.Others, in.Claims = others, backend.SetOf(New()).Claims(others, nil)
}

func TestAPoolKeepsItsSlotWhenPoolsComeBeforeIt(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	first := in.FileSystem.Spec.StoragePools[1]
	first.Name = "archive"
	first.Targets.Directories = []v1alpha1.DirectoryPath{"/data/tape0"}
	in.FileSystem.Spec.StoragePools = append([]v1alpha1.StoragePoolSpec{first}, in.FileSystem.Spec.StoragePools...)
	record, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	slots := map[string]int32{}
	for _, p := range record.Status.StoragePools {
		slots[p.Name] = p.Slot
	}
	g.Expect(slots).To(Equal(map[string]int32{"ssd": 0, "bulk": 1, "archive": 2}))
}

func TestANewNodeOfAPoolRestartsNoOtherServer(t *testing.T) {
	g := NewWithT(t)
	hashes := func(in backend.Input) map[string]string {
		backendtest.Remember(t, New(), &in)
		objects, err := New().Members(in)
		g.Expect(err).NotTo(HaveOccurred())
		out := map[string]string{}
		for _, o := range objects {
			if set, ok := o.(*appsv1.DaemonSet); ok {
				out[set.Name] = set.Spec.Template.Annotations[backend.TemplateHashAnnotation]
			}
		}
		return out
	}
	before := hashes(everything("4.57.5"))
	grown := everything("4.57.5")
	grown.Nodes[2].Labels[storageLabel] = ""
	g.Expect(hashes(grown)).To(Equal(before))

	changed := everything("4.57.5")
	changed.FileSystem.Spec.MooseFS.Config.Storage["WORKERS_MAX"] = "100"
	g.Expect(hashes(changed)).NotTo(Equal(before), "a changed option must restart the chunkservers")
	g.Expect(hashes(changed)["scratch-master"]).To(Equal(before["scratch-master"]), "but not the master")
}

func TestADaemonFindsItsMasterAgainWithinASecondUnlessTheUserSetsAnotherTime(t *testing.T) {
	for user, told := range map[string]string{"": "1", "7": "7"} {
		t.Run("the user sets "+user, func(t *testing.T) {
			g, in := NewWithT(t), everything("4.57.5")
			fs := in.FileSystem
			fs.Spec.MooseFS.Metaloggers.Config = v1alpha1.Options{}
			if user != "" {
				fs.Spec.MooseFS.Config.Storage["MASTER_RECONNECTION_DELAY"] = v1alpha1.OptionValue(user)
				fs.Spec.MooseFS.Metaloggers.Config["MASTER_RECONNECTION_DELAY"] = v1alpha1.OptionValue(user)
			}
			backendtest.Remember(t, New(), &in)
			chunkserver, err := chunkserverRun(in, "10.0.0.1", fs.Spec.StoragePools[0], 0)
			g.Expect(err).NotTo(HaveOccurred())
			metalogger, err := metaloggerRun(in, "10.0.0.1")
			g.Expect(err).NotTo(HaveOccurred())
			for _, run := range []spec.Run{chunkserver, metalogger} {
				g.Expect(run.Files[0].Content).To(ContainSubstring("\nMASTER_RECONNECTION_DELAY = " + told + "\n"))
			}
		})
	}
}

func TestAMasterSavesItsChangesItselfUnlessTheUserRequestsASyncOfEach(t *testing.T) {
	for _, version := range New().Versions() {
		for user, told := range map[v1alpha1.OptionValue]string{"": "1", "1": "1", "2": "2"} {
			t.Run(fmt.Sprintf("%s, the user sets %q", version, user), func(t *testing.T) {
				g, in := NewWithT(t), everything(version)
				if user != "" {
					in.FileSystem.Spec.MooseFS.Config.Metadata["CHANGELOG_SAVE_MODE"] = user
				}
				backendtest.Remember(t, New(), &in)
				master, err := masterRun(in)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(master.Files[0].Content).To(ContainSubstring("\nCHANGELOG_SAVE_MODE = " + told + "\n"))
			})
		}
	}
}

func TestTheModeOfTheChangeLogRestartsTheMasterOnlyWhereAUserSetsIt(t *testing.T) {
	g, in := NewWithT(t), everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	hash := func() string {
		sets, _, secret := objectsOf(t, in)
		g.Expect(string(secret.Data["master.json"])).To(ContainSubstring("CHANGELOG_SAVE_MODE = 1"))
		return sets["scratch-master"].Spec.Template.Annotations[backend.TemplateHashAnnotation]
	}
	// The hash of the same template without the line.
	const withoutTheLine = "b685ec14"
	g.Expect(hash()).To(Equal(withoutTheLine))
	in.FileSystem.Spec.MooseFS.Config.Metadata["CHANGELOG_SAVE_MODE"] = "1"
	g.Expect(hash()).NotTo(Equal(withoutTheLine))
}

func TestOptionsAreRefusedByName(t *testing.T) {
	cases := map[string]struct {
		change func(fs *v1alpha1.FileSystem)
		says   string
	}{
		"an option that the operator owns": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.MooseFS.Config.Metadata["DATA_PATH"] = "/elsewhere" },
			says:   "spec.moosefs.config.metadata.DATA_PATH is set by the operator itself",
		},
		"an option that the daemon does not know": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.MooseFS.Config.Storage["HDD_TEST_SPED"] = "1" },
			says:   "spec.moosefs.config.storage.HDD_TEST_SPED is no option of mfschunkserver",
		},
		"an option of another daemon": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.MooseFS.Metaloggers.Config["ATIME_MODE"] = "4" },
			says:   "spec.moosefs.metaloggers.config.ATIME_MODE is no option of mfsmetalogger",
		},
		"a mode in which copies of metaloggers miss changes": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.MooseFS.Config.Metadata["CHANGELOG_SAVE_MODE"] = "0" },
			says:   "spec.moosefs.config.metadata.CHANGELOG_SAVE_MODE is \"0\"; set it to 1 or 2, or remove it: with 0, metaloggers can miss changes",
		},
		"a mode that mfsmaster takes for 0": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.MooseFS.Config.Metadata["CHANGELOG_SAVE_MODE"] = "3" },
			says:   "spec.moosefs.config.metadata.CHANGELOG_SAVE_MODE is \"3\"; set it to 1 or 2, or remove it",
		},
		"a mount option that says which filesystem is mounted": {
			change: func(fs *v1alpha1.FileSystem) {
				fs.Spec.Clients.MountOptions = []v1alpha1.MountOption{"mfssubfolder=/x"}
			},
			says: "spec.clients.mountOptions: mfssubfolder is set by the operator itself",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := everything("4.57.5")
			backendtest.Remember(t, New(), &in)
			c.change(in.FileSystem)
			_, err := New().Members(in)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestOnlyTheMastersNodeLearnsThePassword(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	objects, err := New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	withSecret := map[string]bool{}
	for _, o := range objects {
		var pod corev1.PodSpec
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			pod = o.Spec.Template.Spec
		case *batchv1.Job:
			pod = o.Spec.Template.Spec
		}
		for _, v := range pod.Volumes {
			if v.Secret != nil && v.Secret.SecretName == secretName(in.FileSystem) {
				withSecret[o.GetLabels()[v1alpha1.LabelComponent]] = true
			}
		}
	}
	g.Expect(withSecret).To(Equal(map[string]bool{componentMaster: true, componentStorageClasses: true}))
}

func TestAMooseFSHasIPv4Only(t *testing.T) {
	NewWithT(t).Expect(New().Families(&v1alpha1.FileSystem{})).To(HaveExactElements(corev1.IPv4Protocol))
}
