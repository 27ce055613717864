package beegfs

import (
	"encoding/base64"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

// settings are the options of a configuration file.
func settings(t *testing.T, run spec.Run, file string) map[string]string {
	t.Helper()
	for _, f := range run.Files {
		if !strings.HasSuffix(f.Path, "/"+file) {
			continue
		}
		out := map[string]string{}
		for line := range strings.Lines(f.Content) {
			if name, value, ok := strings.Cut(line, "="); ok {
				out[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
		}
		return out
	}
	t.Fatalf("%s is not written", file)
	return nil
}

// told returns the configuration of the servers of oss1, by member; servers that wait are not in it.
func told(t *testing.T, in backend.Input) map[string]v1alpha1.NodeMember {
	t.Helper()
	of := backendtest.Configured(New(), in, "oss1")
	maps.DeleteFunc(of, func(_ string, m v1alpha1.NodeMember) bool { return m.Waits != "" })
	return of
}

func TestTrapsOfBeeGFS(t *testing.T) {
	g := NewWithT(t)
	for _, version := range versions {
		t.Run("trap 1: no daemon of "+version+" ever makes a new target of an empty directory by itself", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster(version))
			for name, run := range runs(t, in) {
				g.Expect(run.OnTargets.Initialize.Granted).To(BeFalse(), "%s: the permission is that of each target", name)
				if name == "management.json" && cli.Is8(version) {
					g.Expect(run.Command).NotTo(ContainElement("--init"))
					continue
				}
				file := map[string]string{"management": "beegfs-mgmtd.conf", "meta": "beegfs-meta.conf", "storage": "beegfs-storage.conf"}[run.Component]
				g.Expect(settings(t, run, file)).To(HaveKeyWithValue("storeAllowFirstRunInit", "false"), name)
			}
			for _, target := range told(t, in)["storage-ssd"].Targets {
				g.Expect(target.Granted).To(BeTrue(), target.Name)
			}
			in.State = answer(in)
			in = recorded(t, in)
			for instance, daemon := range told(t, in) {
				for _, target := range daemon.Targets {
					g.Expect(target.Granted).To(BeFalse(), "%s %s", instance, target.Name)
				}
			}
		})
		t.Run("trap 2: "+version+" does not start by the image's own script, which keeps its marker in the target", func(t *testing.T) {
			g := NewWithT(t)
			for name, set := range daemonSets(t, recorded(t, cluster(version))) {
				for _, c := range set.Spec.Template.Spec.Containers {
					g.Expect(c.Command).To(HaveExactElements(Equal("/parallelfs/node"), Not(BeEmpty()), Equal("--spec"), Not(BeEmpty())), name)
					for _, e := range c.Env {
						g.Expect(e.Name).NotTo(HavePrefix("beegfs_setup"), name)
					}
				}
			}
		})
		t.Run("trap 3: a lost store of the management service of "+version+" is never made anew", func(t *testing.T) {
			in := recorded(t, cluster(version))
			when := new(metav1.NewTime(time.Date(2026, 11, 1, 13, 0, 0, 0, time.UTC)))
			t.Run("once it was seen", func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(told(t, in)[componentManagement].Targets[0].Granted).To(BeTrue())
				seen := recorded(t, in)
				seen.FileSystem = in.FileSystem.DeepCopy()
				seen.FileSystem.Status.Metadata.Initialized = when
				g.Expect(told(t, seen)[componentManagement].Targets[0].Granted).To(BeFalse())
			})
			t.Run("and once any target was seen in use", func(t *testing.T) {
				g := NewWithT(t)
				used := in
				used.FileSystemNodes = nodesOf(in)
				recordOf(used, "meta-1.oss2").Targets[0].Initialized = when
				g.Expect(told(t, used)[componentManagement].Targets[0].Granted).To(BeFalse())
			})
		})
		t.Run("trap 4: every directory of "+version+" says which server and target it is, and is refused when it is another", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster(version))
			identity := map[string][]string{}
			for _, run := range runs(t, in) {
				for _, f := range run.OnTargets.Initialize.Files {
					if f.Identity {
						identity[run.Component] = append(identity[run.Component], f.Name)
					}
				}
			}
			g.Expect(identity["meta"]).To(ContainElement("nodeNumID"))
			g.Expect(identity["storage"]).To(ContainElements("nodeNumID", "targetNumID"))
			files, err := Files(in, "oss2")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(files["meta-3/scratch-oss2-ssd-m3/nodeNumID"]).To(Equal("8\n"))
			g.Expect(files["storage-bulk/scratch-oss2-hdd-0/targetNumID"]).To(Equal("6\n"))
		})
		t.Run("trap 8: the number of workers of "+version+" is never left to BeeGFS, which counts the CPUs of the machine", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster(version))
			all := runs(t, in)
			g.Expect(settings(t, all["meta-0.json"], "beegfs-meta.conf")).To(HaveKeyWithValue("tuneNumWorkers", "40"))
			g.Expect(settings(t, all["storage-ssd.json"], "beegfs-storage.conf")).To(HaveKeyWithValue("tuneNumWorkers", "14"))
			in.FileSystem.Spec.MetadataServers.BeeGFS, in.FileSystem.Spec.StoragePools[0].BeeGFS = nil, nil
			all = runs(t, in)
			g.Expect(settings(t, all["meta-0.json"], "beegfs-meta.conf")).To(HaveKeyWithValue("tuneNumWorkers", "16"))
			g.Expect(settings(t, all["storage-ssd.json"], "beegfs-storage.conf")).To(HaveKeyWithValue("tuneNumWorkers", "12"))
			in.FileSystem.Spec.BeeGFS.Config.Metadata = v1alpha1.Options{"tuneNumWorkers": "0"}
			_, err := New().Members(in)
			g.Expect(err).To(MatchError(ContainSubstring("spec.beegfs.config.metadata.tuneNumWorkers")))
		})
		t.Run("trap 9: "+version+" never binds itself to a NUMA node; the node binary does, and its CPUs are not widened", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster(version))
			for _, name := range []string{"meta-0.json", "meta-1.json"} {
				g.Expect(settings(t, runs(t, in)[name], "beegfs-meta.conf")).To(HaveKeyWithValue("tuneBindToNumaZone", ""))
			}
			local := told(t, in)
			for instance, cpus := range map[string]string{"meta-0": "0-15", "meta-1": "16-31", "meta-2": "0-15", "meta-3": "16-31"} {
				g.Expect(local[instance].Pinning.CPUs).To(Equal(cpus), instance)
			}
			in.FileSystem.Spec.BeeGFS.Config.Metadata = v1alpha1.Options{"tuneBindToNumaZone": "0"}
			_, err := New().Members(in)
			g.Expect(err).To(MatchError(ContainSubstring("tuneBindToNumaZone is set by the operator itself")))
		})
		t.Run("trap 10: the disks of "+version+" are proven by the node binary, and not by storeFsUUID", func(t *testing.T) {
			g := NewWithT(t)
			all := runs(t, recorded(t, cluster(version)))
			g.Expect(settings(t, all["meta-0.json"], "beegfs-meta.conf")).To(HaveKeyWithValue("storeFsUUID", ""))
			g.Expect(settings(t, all["storage-ssd.json"], "beegfs-storage.conf")).To(HaveKeyWithValue("storeFsUUID", ""))
			g.Expect(told(t, recorded(t, cluster(version)))["meta-0"].Targets[0].UUID).To(Equal("uuid-of-scratch-oss1-ssd-m0"))
		})
		t.Run("trap 11: no daemon and no client of "+version+" tells anybody the address of a pod network", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster(version))
			for _, node := range []string{"oss1", "c1"} {
				files, err := Files(in, node)
				g.Expect(err).NotTo(HaveOccurred())
				for name, content := range files {
					switch {
					case strings.HasSuffix(name, "/interfaces"):
						g.Expect(content).To(Equal("eno1\n"), name)
					case strings.HasSuffix(name, ".toml"):
						g.Expect(content).To(ContainSubstring(`interfaces = ["eno1"]`), name)
					case strings.HasSuffix(name, ".conf") && !strings.HasSuffix(name, "format.conf"):
						g.Expect(content).To(ContainSubstring("connInterfacesFile = /run/parallelfs/interfaces\n"), name)
						g.Expect(content).To(ContainSubstring("connInterfacesList =\n"), name)
					}
				}
			}
		})
		t.Run("trap 13: all of "+version+" read the same bytes as the secret, and a changed one makes every pod outdated", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, everything(version))
			for _, o := range objectsOf(t, in) {
				secret, ok := o.(*corev1.Secret)
				switch {
				case ok && secret.Name == "scratch-beegfs":
					g.Expect(secret.Data).To(Equal(map[string][]byte{"conn.auth": []byte(in.Password)}), "without a newline behind it")
				case ok && secret.Name == "scratch-probe": // no daemon reads it
				case ok:
					var auth []struct{ SysMgmtdHost, ConnAuth, Encoding string }
					g.Expect(yaml.Unmarshal(secret.Data["csi-beegfs-connauth.yaml"], &auth)).To(Succeed())
					decoded, err := base64.StdEncoding.DecodeString(auth[0].ConnAuth)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(string(decoded)).To(Equal(in.Password), "the driver adds a newline to what is not encoded")
					g.Expect(auth[0].Encoding).To(Equal("base64"))
				}
			}
			before := daemonSets(t, in)
			in.Password = "another"
			for name, set := range daemonSets(t, in) {
				g.Expect(set.Spec.Template.Annotations).NotTo(Equal(before[name].Spec.Template.Annotations), name)
			}
		})
		t.Run("trap 14: the time after which a server of "+version+" is offline is the same for all", func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster(version))
			in.FileSystem.Spec.BeeGFS.Config.Metadata = v1alpha1.Options{"sysTargetOfflineTimeoutSecs": "900"}
			_, err := New().Members(in)
			g.Expect(err).To(MatchError(ContainSubstring("must be the same for all servers")))
		})
		t.Run("trap 15: the daemons of "+version+" have the time that they need to stop", func(t *testing.T) {
			g := NewWithT(t)
			grace := map[string]int64{}
			for name, set := range daemonSets(t, recorded(t, cluster(version))) {
				grace[name] = *set.Spec.Template.Spec.TerminationGracePeriodSeconds
			}
			g.Expect(grace).To(Equal(map[string]int64{
				"scratch-management": 300, "scratch-meta-0": 120, "scratch-meta-1": 120, "scratch-meta-2": 120, "scratch-meta-3": 120,
				"scratch-storage-ssd": 120, "scratch-storage-bulk": 120, "scratch-client": 60,
			}))
		})
	}
	g.Expect(New().Order()).To(Equal([]string{"management", "meta", "storage"}))
}

func TestTheManagementServiceStartsWhenAllTargetsAreChosen(t *testing.T) {
	g := NewWithT(t)
	in := cluster("7.4.6")
	last := in.Targets[len(in.Targets)-1]
	in.Targets = in.Targets[:len(in.Targets)-1]
	in = recorded(t, in)
	local := told(t, in)
	g.Expect(local).NotTo(HaveKey("management"), "its limits follow from the sizes of all targets")
	g.Expect(local).To(HaveKey("meta-0"), "the others need not wait for that")
	in.Targets = append(in.Targets, last)
	in = recorded(t, in)
	g.Expect(told(t, in)).To(HaveKey("management"))

	in.State = answer(in)
	in = recorded(t, in)
	in.Nodes = append(in.Nodes, backend.Node{Name: "oss3", IP: "10.0.0.3", Ready: true, Labels: labels(storageLabel)})
	in.FileSystem.Spec.StoragePools[0].Targets.Devices = append(in.FileSystem.Spec.StoragePools[0].Targets.Devices, devices("oss3", "new")...)
	in = recorded(t, in)
	g.Expect(told(t, in)).To(HaveKey("management"), "a new node whose disks are not chosen yet does not stop it")
}

func TestLimitsOfCapacityPoolsFollowTheSmallestTarget(t *testing.T) {
	cases := map[string]struct {
		role    v1alpha1.Role
		version string
		disks   []v1alpha1.StorageTarget
		want    limits
	}{
		"BeeGFS's own for directories, whose size nobody knows": {
			role: v1alpha1.RoleStorage, version: "7.4.6", want: limits{tib, 20 * gib, 10 << 20, 1 << 20},
		},
		"BeeGFS's own for large disks": {
			role: v1alpha1.RoleStorage, version: "8.3.1", disks: []v1alpha1.StorageTarget{sized(v1alpha1.XFS, 20e12)},
			want: limits{512 * gib, 10 * gib, 10e6, 1e6},
		},
		"a tenth and a fiftieth of the smallest disk": {
			role: v1alpha1.RoleStorage, version: "7.4.6", disks: []v1alpha1.StorageTarget{sized(v1alpha1.XFS, 8e12), sized(v1alpha1.XFS, 100e9)},
			want: limits{10e9, 2e9, 4882812, 976562},
		},
		"inodes by the bytes for each of an ext4": {
			role: v1alpha1.RoleMetadata, version: "7.4.6", disks: []v1alpha1.StorageTarget{sized(v1alpha1.Ext4, 2<<30, "-i", "2048", "-I", "512")},
			want: limits{(2 << 30) / 10, (2 << 30) / 50, 1048576 / 10, 1048576 / 50},
		},
		"inodes by mke2fs's own ratio": {
			role: v1alpha1.RoleMetadata, version: "8.3.1", disks: []v1alpha1.StorageTarget{sized(v1alpha1.Ext4, 2<<30)},
			want: limits{(2 << 30) / 10, (2 << 30) / 50, 131072 / 10, 131072 / 50},
		},
		"inodes by their number": {
			role: v1alpha1.RoleMetadata, version: "7.4.6", disks: []v1alpha1.StorageTarget{sized(v1alpha1.Ext4, 1e12, "-N1000000")},
			want: limits{10 * gib, 3 * gib, 100000, 20000},
		},
		"inodes by the share of an XFS that they may have": {
			role: v1alpha1.RoleMetadata, version: "7.4.6", disks: []v1alpha1.StorageTarget{sized(v1alpha1.XFS, 1e9, "-i", "size=1024,maxpct=50")},
			want: limits{1e8, 2e7, 48828, 9765},
		},
		"none for the inodes of Btrfs, which says that it has none": {
			role: v1alpha1.RoleStorage, version: "7.4.6", disks: []v1alpha1.StorageTarget{sized(v1alpha1.Btrfs, 1e13)}, want: limits{1e12, 20 * gib, 0, 0},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range c.disks {
				c.disks[i].Spec.Role = c.role
			}
			NewWithT(t).Expect(limitsFor(c.role, c.version, c.disks)).To(Equal(c.want))
		})
	}
	t.Run("and a user may set others", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		in.FileSystem.Spec.BeeGFS.Config.Management = v1alpha1.Options{"tuneStorageSpaceLowLimit": "100G"}
		files, err := Files(in, "oss1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files["management/beegfs-mgmtd.conf"]).To(ContainSubstring("tuneStorageSpaceLowLimit = 100G\n"))
	})
}

func sized(fsType v1alpha1.FSType, bytes int64, options ...v1alpha1.MkfsOption) v1alpha1.StorageTarget {
	return v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{
		Device: v1alpha1.DeviceIdentity{SizeBytes: bytes}, Format: v1alpha1.FormatSpec{FSType: fsType, MkfsOptions: options},
	}}
}

func TestClientsMountByTheKernelAtAFreePort(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("8.3.1"))
	mount, err := clientMount(in.FileSystem, "10.0.0.1", "/mnt/scratch")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mount.Kernel).To(BeTrue())
	g.Expect(mount.FSType).To(Equal("beegfs"))
	g.Expect(mount.FreePort).To(BeEquivalentTo(8004))
	g.Expect(mount.Command).To(Equal([]string{
		"mount", "-t", "beegfs", "beegfs_nodev:storage/scratch", "/mnt/scratch", "-o", "cfgFile=/run/parallelfs/beegfs-client.conf,noatime,nodev,nosuid"}))
	g.Expect(mount.Files[0].Content).To(ContainSubstring("connClientPort = $(FREE_PORT)\n"))
	g.Expect(mount.Files[0].Content).To(ContainSubstring("sysMgmtdHost = 10.0.0.1\n"), "the module takes no name")
	g.Expect(New().Mount(in.FileSystem)).To(Equal(backend.Mount{Path: "/mnt/scratch", FSType: "beegfs", Source: "beegfs_nodev:storage/scratch"}))

	for option, says := range map[string]string{
		"cfgFile=/etc/mine":     "cfgFile is set by the operator itself",
		"tuneFileCacheType=x":   "tuneFileCacheType is an option of beegfs-client.conf; set it in spec.beegfs.config.client",
		"sysMgmtdHost=10.9.9.9": "sysMgmtdHost is an option of beegfs-client.conf",
		"remount":               "remount is set by the operator itself or means nothing here",
	} {
		in.FileSystem.Spec.Clients.MountOptions = []v1alpha1.MountOption{v1alpha1.MountOption(option)}
		_, err := clientMount(in.FileSystem, "10.0.0.1", "/mnt/scratch")
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestTheCSIDriverGetsItsConfiguration(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, everything("8.3.1"))
	for _, o := range objectsOf(t, in) {
		if m, ok := o.(*corev1.ConfigMap); ok && m.Name == "scratch-beegfs-csi" {
			g.Expect(m.Data["csi-beegfs-config.yaml"]).To(MatchYAML(`
fileSystemSpecificConfigs:
- sysMgmtdHost: 10.0.0.1
  config:
    grpcPort: "8010"
    connInterfaces: [ib0, eno1]
    beegfsClientConf: {connMgmtdPort: "8008", connUseRDMA: "true", tuneFileCacheType: native}
`))
			return
		}
	}
	t.Fatal("there is no ConfigMap for the driver")
}

func TestTheSecretOfTheCSIDriverIsTakenAwayWhenTheDriverIsSwitchedOff(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, everything("8.3.1"))
	secrets := func() (out []client.Object) {
		for _, o := range objectsOf(t, in) {
			if _, isMap := o.(*corev1.ConfigMap); o.GetName() == "scratch-beegfs-csi" && !isMap {
				out = append(out, o)
			}
		}
		return out
	}
	g.Expect(secrets()).To(HaveExactElements(BeAssignableToTypeOf(&corev1.Secret{})))
	in.FileSystem.Spec.BeeGFS.CSIDriver = false
	g.Expect(secrets()).To(HaveExactElements(Equal(backend.Absent("storage", "scratch-beegfs-csi"))))
}

func TestImagesAreFoundByVersionOrByRole(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	in.Images.Daemons["beegfs-meta-7.4.6"] = "mine:1"
	sets := daemonSets(t, in)
	g.Expect(sets["scratch-meta-0"].Spec.Template.Spec.Containers[0].Image).To(Equal("mine:1"))
	g.Expect(sets["scratch-storage-ssd"].Spec.Template.Spec.Containers[0].Image).To(Equal("ghcr.io/thinkparq/beegfs-storage:7.4.6"))
	g.Expect(sets["scratch-management"].Spec.Template.Spec.Containers[1].Image).To(Equal("tools:7.4.6"))
	delete(in.Images.Daemons, "beegfs-tools-7.4.6")
	_, err := New().Members(in)
	g.Expect(err).To(MatchError(ContainSubstring("the operator has no image beegfs-tools for BeeGFS 7.4.6")))
}

func TestDaemonsHaveFewRights(t *testing.T) {
	for _, version := range versions {
		g := NewWithT(t)
		for name, set := range daemonSets(t, recorded(t, everything(version))) {
			for _, c := range set.Spec.Template.Spec.Containers {
				if c.Name == componentClient {
					continue
				}
				add := c.SecurityContext.Capabilities.Add
				g.Expect(add).NotTo(ContainElement(BeElementOf(corev1.Capability("SYS_RESOURCE"), corev1.Capability("SYS_ADMIN"))), name)
				switch {
				case c.Name == "probe":
					g.Expect(add).To(BeEmpty())
				case strings.HasPrefix(name, "scratch-management"):
					g.Expect(add).NotTo(ContainElement(corev1.Capability("IPC_LOCK")))
				default:
					g.Expect(add).To(ContainElement(corev1.Capability("IPC_LOCK")), "%s registers memory with the adapter", name)
				}
			}
		}
	}
}

func TestDaemonsAreKnownToThePlanBySlotAndPool(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	allocation, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	nodes := allocation.TargetNodes
	g.Expect(nodes.Management).To(Equal([]string{"oss1"}))
	g.Expect(nodes.Metadata).To(Equal([]string{"oss1", "oss2"}))
	g.Expect(nodes.Pools).To(Equal(map[string][]string{"ssd": {"oss1", "oss2"}, "bulk": {"oss1", "oss2"}}))
	index := map[string]int{}
	for _, d := range New().PinDaemons(in.FileSystem, in.FileSystemNodes) {
		index[d.Name] = d.Index
		g.Expect(d.Nodes).To(Equal([]string{"oss1", "oss2"}), d.Name)
	}
	g.Expect(index).To(Equal(map[string]int{"meta/0": 0, "meta/1": 1, "meta/2": 2, "meta/3": 3, "storage/ssd": 0, "storage/bulk": 0}))
	g.Expect(New().ProbeURL(in)).To(Equal("http://10.0.0.1:8009/state"))
	name, key := New().SecretName(in.FileSystem)
	g.Expect(name + "/" + key).To(Equal("scratch-beegfs/conn.auth"))
}

func TestADaemonWaitsForItsCPUsAndItsDisk(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	delete(in.Pinnings["oss1"], "meta/2")
	in.Targets = deleteTarget(in.Targets, "scratch-oss1-hdd-0")
	local := told(t, in)
	g.Expect(local).NotTo(HaveKey("meta-2"))
	g.Expect(local).NotTo(HaveKey("storage-bulk"))
	g.Expect(local).To(HaveKey("meta-1"))
	g.Expect(local["storage-ssd"].Targets[1].Variables).To(Equal(map[string]v1alpha1.VariableValue{
		"NODE_ID": "1", "NODE_ALIAS": "storage-ssd.oss1", "TARGET_ID": "2", "POOL_ID": "1"}))
}

func TestAMetadataServerFindsATableOfMounts(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	var names []string
	for _, f := range runs(t, in)["meta-0.json"].Files {
		names = append(names, f.Path)
	}
	g.Expect(names).To(ContainElement("/etc/mtab"), "on ext4 it does not start without one, and containerd makes none")
	for name, set := range daemonSets(t, in) {
		for _, c := range set.Spec.Template.Spec.Containers {
			if strings.HasPrefix(name, "scratch-meta-") {
				g.Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(BeNil(), "%s: the file has to be written", name)
			} else if c.Name != componentClient {
				g.Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()), name)
			}
		}
	}
}
