package beegfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/options"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// mountConfig is the configuration that the kernel module reads when it mounts; it names the other files.
const mountConfig = podspec.RunDirectory + "/beegfs-client.conf"

// clientConfigOf returns beegfs-client.conf for a port and a file of interfaces; set changes further options.
func clientConfigOf(fs *v1alpha1.FileSystem, managementIP, port, interfaces string, set ...func(typed map[string]string)) (string, error) {
	owned, typed := common(fs, managementIP)
	typed["connInterfacesFile"] = interfaces
	if usesRDMA(fs) && len(own(fs).ClientRDMAInterfaces) > 0 {
		typed["connRDMAInterfacesFile"] = rdmaInterfaceFile
	}
	for _, s := range set {
		s(typed)
	}
	if cli.Is8(backend.Version(fs)) {
		owned["connClientPort"] = port
	} else {
		owned["connClientPortUDP"] = port
	}
	return options.Render("client", backend.VersionOf(fs, componentClient), "spec.beegfs.config.client", owned, typed, own(fs).Config.Client)
}

// clientMount describes for the node binary how to mount at a path. The module accepts the management service's address only as a number
// (client_module Config.c, 8.3.1), and listens on a UDP port that no other mount of the node may use.
func clientMount(fs *v1alpha1.FileSystem, managementIP, path string) (spec.Mount, error) {
	rendered, err := clientConfigOf(fs, managementIP, "$(FREE_PORT)", interfacesFile)
	if err != nil {
		return spec.Mount{}, err
	}
	with, err := mountOptions(fs)
	if err != nil {
		return spec.Mount{}, err
	}
	files := append([]spec.File{{Path: mountConfig, Content: rendered, Mode: 0o640}}, networkFiles(fs)...)
	if usesRDMA(fs) && len(own(fs).ClientRDMAInterfaces) > 0 {
		files = append(files, linesOf(rdmaInterfaceFile, own(fs).ClientRDMAInterfaces))
	}
	return spec.Mount{
		Path: path, FSType: mountType, Source: mountSource(fs), Kernel: true, FreePort: portsOf(fs).client(),
		Command: []string{"mount", "-t", mountType, mountSource(fs), path, "-o", strings.Join(with, ",")},
		Files:   files,
	}, nil
}

// refusedMountOptions change what is mounted and where, not how.
var refusedMountOptions = []string{
	"bind", "rbind", "remount", "move", "loop", "cfgFile", "user", "users", "owner", "nofail", "noauto", "_netdev",
}

// mountOptions are those of mount(8). The user's options of beegfs-client.conf belong there, because the two could contradict each other.
func mountOptions(fs *v1alpha1.FileSystem) ([]string, error) {
	users := podspec.ClientMountOptions(fs.Spec.Clients)
	for _, o := range users {
		name, _, _ := strings.Cut(o, "=")
		if slices.Contains(refusedMountOptions, name) {
			return nil, backend.Invalid(v1alpha1.ReasonOptionRefused, "spec.clients.mountOptions: %s is set by the operator itself or means nothing here; remove it", name)
		}
		if options.Known("client", backend.VersionOf(fs, componentClient), name) {
			return nil, backend.Invalid(v1alpha1.ReasonOptionRefused, "spec.clients.mountOptions: %s is an option of beegfs-client.conf; set it in spec.beegfs.config.client", name)
		}
	}
	return append([]string{"cfgFile=" + mountConfig}, users...), nil
}

// toolConfig writes the configuration of beegfs-ctl of BeeGFS 7, which reads that of a client. The tool listens on no port, and publishes
// none of its addresses; the named interfaces are its way to the servers.
func (b *builder) toolConfig() error {
	fs := b.in.FileSystem
	if cli.Is8(backend.Version(fs)) {
		return nil
	}
	file := ""
	if fs.Spec.Network != nil && len(fs.Spec.Network.Interfaces) > 0 {
		file = podspec.ToldDirectory + "/interfaces"
		b.told["interfaces"] = []byte(interfacesConfig(fs).Content)
	}
	rendered, err := clientConfigOf(fs, b.management.IP, fmt.Sprint(portsOf(fs).client()), file, withoutDevices)
	b.told["beegfs-client.conf"] = []byte(rendered)
	return err
}

// csiName is the name of the ConfigMap and of the Secret for beegfs-csi-driver.
func csiName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "beegfs-csi") }

// csiObjects returns the configuration of beegfs-csi-driver: the contents of its csi-beegfs-config.yaml and csi-beegfs-connauth.yaml
// (pkg/beegfs/config.go of the driver). The driver chooses a free port for each mount itself. With connUseRDMA and the ports, it gets the
// options that the user set for clients.
func (b *builder) csiObjects() ([]client.Object, error) {
	fs, ip := b.in.FileSystem, b.management.IP
	clientConf := daemonPorts(backend.Version(fs), "connMgmtdPort", portsOf(fs).management())
	clientConf["connUseRDMA"] = fmt.Sprint(usesRDMA(fs))
	users := map[string]string{}
	for name, value := range own(fs).Config.Client {
		users[name] = string(value)
	}
	maps.Copy(clientConf, users)
	config := csiConfig{BeegfsClientConf: clientConf, ConnNetFilter: own(fs).Networks, ConnTCPOnlyFilter: own(fs).TCPNetworks}
	if fs.Spec.Network != nil {
		for _, name := range fs.Spec.Network.Interfaces {
			config.ConnInterfaces = append(config.ConnInterfaces, string(name))
		}
	}
	if cli.Is8(backend.Version(fs)) {
		config.GrpcPort = fmt.Sprint(portsOf(fs).grpc())
	}
	rawConfig, err := yaml.Marshal(csiFile{FileSystemSpecificConfigs: []csiFileSystem{{SysMgmtdHost: ip, Config: config}}})
	if err != nil {
		return nil, err
	}
	// The secret is encoded in base64, because the driver adds a newline to a secret in plain text and so changes it.
	rawAuth, err := yaml.Marshal([]csiAuth{{SysMgmtdHost: ip, ConnAuth: []byte(b.in.Password), Encoding: "base64"}})
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Name: csiName(fs), Namespace: fs.Namespace}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"csi-beegfs-config.yaml": string(rawConfig)}},
		&corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"csi-beegfs-connauth.yaml": rawAuth}},
	}, nil
}

// csiFile is csi-beegfs-config.yaml, csiAuth an entry of csi-beegfs-connauth.yaml.
type (
	csiFile struct {
		FileSystemSpecificConfigs []csiFileSystem `json:"fileSystemSpecificConfigs"`
	}
	csiFileSystem struct {
		SysMgmtdHost string    `json:"sysMgmtdHost"`
		Config       csiConfig `json:"config"`
	}
	csiConfig struct {
		GrpcPort          string             `json:"grpcPort,omitempty"`
		ConnInterfaces    []string           `json:"connInterfaces,omitempty"`
		ConnNetFilter     []v1alpha1.Network `json:"connNetFilter,omitempty"`
		ConnTCPOnlyFilter []v1alpha1.Network `json:"connTcpOnlyFilter,omitempty"`
		BeegfsClientConf  map[string]string  `json:"beegfsClientConf"`
	}
	csiAuth struct {
		SysMgmtdHost string `json:"sysMgmtdHost"`
		// ConnAuth is encoded in base64, as encoding/json does with bytes.
		ConnAuth []byte `json:"connAuth"`
		Encoding string `json:"encoding"`
	}
)
