package beegfs

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/options"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// The files that the node binary writes before it starts a daemon.
const (
	managementConfig  = podspec.RunDirectory + "/beegfs-mgmtd.conf"
	management8Config = podspec.RunDirectory + "/beegfs-mgmtd.toml"
	metaConfig        = podspec.RunDirectory + "/beegfs-meta.conf"
	storageConfig     = podspec.RunDirectory + "/beegfs-storage.conf"
	interfacesFile    = podspec.RunDirectory + "/interfaces"
	rdmaInterfaceFile = podspec.RunDirectory + "/rdma-interfaces"
	networksFile      = podspec.RunDirectory + "/networks"
	tcpNetworksFile   = podspec.RunDirectory + "/tcp-networks"
	mountTable        = "/etc/mtab"
)

// The variables that the node binary replaces: the data directories, the node's own interface, and the values in the node's Member.
const (
	onlyTarget       = "$(TARGET)"
	allTargets       = "$(TARGETS)"
	ownInterface     = "$(NODE_INTERFACE)"
	variableNodeID   = "NODE_ID"
	variableAlias    = "NODE_ALIAS"
	variableTargetID = "TARGET_ID"
	variablePoolID   = "POOL_ID"
)

const (
	// defaultMetaWorkers and defaultStorageWorkers replace BeeGFS's own defaults. Its own default counts the CPUs of the whole machine for
	// each metadata daemon (meta, initImplicitVals of 7.4.6); beegfs-storage.conf ships a number for each target. A new metadata server has
	// defaultMetaWorkers at least, see workersOf.
	defaultMetaWorkers    = 16
	defaultStorageWorkers = 12

	// databaseName is the store of the management service of BeeGFS 8.
	databaseName = "mgmtd.sqlite"

	tlsDirectory     = "/etc/parallelfs-tls"
	licenseDirectory = "/etc/parallelfs-license"
	// licenseKey is the key of the user's Secret.
	licenseKey = "license.pem"
)

func variable(name string) string { return "$(" + name + ")" }

// choosers maps target choosers to the words of beegfs-meta.conf.
var choosers = map[v1alpha1.TargetChooser]string{
	v1alpha1.ChooserRandomized:  "randomized",
	v1alpha1.ChooserRoundRobin:  "roundrobin",
	v1alpha1.ChooserRandomRobin: "randomrobin", v1alpha1.ChooserRandomInterNode: "randominternode",
}

// daemonPorts returns the options for the port of a daemon: BeeGFS 7 has one for TCP and one for UDP, BeeGFS 8 one for both.
func daemonPorts(version, name string, port int32) map[string]string {
	if cli.Is8(version) {
		return map[string]string{name: fmt.Sprint(port)}
	}
	return map[string]string{name + "TCP": fmt.Sprint(port), name + "UDP": fmt.Sprint(port)}
}

// common returns the options with the address of the filesystem, for metadata and storage servers and clients.
func common(fs *v1alpha1.FileSystem, managementIP string) (owned, typed map[string]string) {
	owned = map[string]string{"connAuthFile": cli.AuthFile, "sysMgmtdHost": managementIP}
	maps.Copy(owned, daemonPorts(backend.Version(fs), "connMgmtdPort", portsOf(fs).management()))
	typed = map[string]string{
		"connInterfacesFile": interfacesFile,
		"connUseRDMA":        fmt.Sprint(usesRDMA(fs)),
	}
	if len(own(fs).Networks) > 0 {
		typed["connNetFilterFile"] = networksFile
	}
	if len(own(fs).TCPNetworks) > 0 {
		typed["connTcpOnlyFilterFile"] = tcpNetworksFile
	}
	return owned, typed
}

// rdmaOf returns whether servers and clients use RDMA. BeeGFS's own configuration has it on, and falls back to TCP by itself
// (beegfs-client.conf, connUseRDMA).
func rdmaOf(fs *v1alpha1.FileSystem) v1alpha1.RDMAMode {
	return cmp.Or(own(fs).RDMA, v1alpha1.RDMAAuto)
}

func usesRDMA(fs *v1alpha1.FileSystem) bool { return rdmaOf(fs) != v1alpha1.RDMADisabled }

// withoutDevices are the options of tools, whose containers can open no device of an adapter, and have no files of networks.
func withoutDevices(typed map[string]string) {
	typed["connUseRDMA"] = "false"
	for _, name := range []string{"connRDMAInterfacesFile", "connNetFilterFile", "connTcpOnlyFilterFile"} {
		delete(typed, name)
	}
}

// opensDevices returns how the node binary handles the devices of adapters before it starts a daemon.
func opensDevices(fs *v1alpha1.FileSystem) string {
	switch rdmaOf(fs) {
	case v1alpha1.RDMARequired:
		return spec.RDMARequired
	case v1alpha1.RDMADisabled:
		return ""
	default:
		return spec.RDMAAuto
	}
}

// interfaces returns the names of the interfaces whose addresses are published, the preferred first. Never all: BeeGFS would publish the
// addresses of pod networks too, and clients would hang on them.
func interfaces(fs *v1alpha1.FileSystem) []string {
	if fs.Spec.Network == nil || len(fs.Spec.Network.Interfaces) == 0 {
		return []string{ownInterface}
	}
	names := make([]string, len(fs.Spec.Network.Interfaces))
	for i, name := range fs.Spec.Network.Interfaces {
		names[i] = string(name)
	}
	return names
}

func interfacesConfig(fs *v1alpha1.FileSystem) spec.File {
	return linesOf(interfacesFile, interfaces(fs))
}

// linesOf returns a file with one name on each line.
func linesOf[T ~string](path string, names []T) spec.File {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(string(name) + "\n")
	}
	return spec.File{Path: path, Content: b.String(), Mode: 0o640}
}

// networkFiles returns the files with interfaces and networks, which the options of common name.
func networkFiles(fs *v1alpha1.FileSystem) []spec.File {
	files := []spec.File{interfacesConfig(fs)}
	if len(own(fs).Networks) > 0 {
		files = append(files, linesOf(networksFile, own(fs).Networks))
	}
	if len(own(fs).TCPNetworks) > 0 {
		files = append(files, linesOf(tcpNetworksFile, own(fs).TCPNetworks))
	}
	return files
}

// refuseNetworks refuses a network that BeeGFS could not read. Its daemons would not start.
func refuseNetworks(fs *v1alpha1.FileSystem) error {
	for field, networks := range map[string][]v1alpha1.Network{"networks": own(fs).Networks, "tcpNetworks": own(fs).TCPNetworks} {
		for _, n := range networks {
			prefix, err := netip.ParsePrefix(string(n))
			if err != nil || prefix.Masked() != prefix {
				return backend.Invalid(v1alpha1.ReasonOptionRefused,
					"spec.beegfs.%s: %q is no network, which has only zeros behind its prefix, such as 192.168.10.0/24; correct it", field, n)
			}
		}
	}
	return nil
}

// managementRun describes for the node binary how to start the management service.
func managementRun(fs *v1alpha1.FileSystem) (spec.Run, error) {
	run := newRun(fs, componentManagement, componentManagement)
	run.OnTargets.All = true
	if cli.Is8(backend.Version(fs)) {
		return management8(fs, run)
	}
	owned := map[string]string{"connAuthFile": cli.AuthFile, "storeMgmtdDirectory": onlyTarget}
	maps.Copy(owned, daemonPorts(backend.Version(fs), "connMgmtdPort", portsOf(fs).management()))
	typed := map[string]string{"connInterfacesFile": interfacesFile}
	for option, name := range map[string]string{
		"tuneMetaSpaceLowLimit": "META_SPACE_LOW", "tuneMetaSpaceEmergencyLimit": "META_SPACE_EMERGENCY",
		"tuneMetaInodesLowLimit": "META_INODES_LOW", "tuneMetaInodesEmergencyLimit": "META_INODES_EMERGENCY",
		"tuneStorageSpaceLowLimit": "STORAGE_SPACE_LOW", "tuneStorageSpaceEmergencyLimit": "STORAGE_SPACE_EMERGENCY",
		"tuneStorageInodesLowLimit": "STORAGE_INODES_LOW", "tuneStorageInodesEmergencyLimit": "STORAGE_INODES_EMERGENCY",
	} {
		typed[option] = variable(name)
	}
	rendered, err := options.Render("mgmtd", backend.VersionOf(fs, componentManagement), "spec.beegfs.config.management",
		owned, typed, own(fs).Config.Management)
	if err != nil {
		return spec.Run{}, err
	}
	run.OnTargets.Initialize = &spec.Initialize{
		DataGlobs: []string{formatFile},
		Files: []spec.InitialFile{
			{Name: "nodeID", Content: variable(variableAlias) + "\n"},
			// This file is the last, because it marks the directory as one of a management service (beegfs-setup-mgmtd, 7.4.6).
			{Name: formatFile, Content: "version=4\n"},
		},
	}
	run.Files = []spec.File{{Path: managementConfig, Content: rendered, Mode: 0o640}, interfacesConfig(fs)}
	run.Command = []string{programManagement, "cfgFile=" + managementConfig}
	return run, nil
}

// management8 completes the description for BeeGFS 8, whose store is a database that the program itself makes.
func management8(fs *v1alpha1.FileSystem, run spec.Run) (spec.Run, error) {
	owned := map[string]string{
		"db-file": onlyTarget + "/" + databaseName, "auth-file": cli.AuthFile,
		"beemsg-port": fmt.Sprint(portsOf(fs).management()), "grpc-port": fmt.Sprint(portsOf(fs).grpc()),
	}
	typed := map[string]string{
		"interfaces":  strings.Join(interfaces(fs), ","),
		"tls-disable": fmt.Sprint(fs.Spec.BeeGFS.TLS == nil),
	}
	if fs.Spec.BeeGFS.TLS != nil {
		typed["tls-cert-file"], typed["tls-key-file"] = tlsDirectory+"/tls.crt", tlsDirectory+"/tls.key"
	}
	if fs.Spec.BeeGFS.License != nil {
		typed["license-cert-file"] = licenseDirectory + "/" + licenseKey
	}
	for _, role := range []string{"meta", "storage"} {
		for _, limit := range []string{"space-low", "space-emergency", "inodes-low", "inodes-emergency"} {
			typed["cap-pool-"+role+"-limits-"+limit] = variable(strings.ToUpper(role + "_" + strings.ReplaceAll(limit, "-", "_")))
		}
	}
	rendered, err := options.Render("mgmtd", backend.VersionOf(fs, componentManagement), "spec.beegfs.config.management",
		owned, typed, own(fs).Config.Management)
	if err != nil {
		return spec.Run{}, err
	}
	run.OnTargets.Initialize = &spec.Initialize{
		DataGlobs: []string{databaseName},
		Command:   []string{programManagement, "--init", "--db-file", "$(NEW)", "--log-target", "stderr"},
		Makes:     databaseName,
	}
	run.Files = []spec.File{{Path: management8Config, Content: rendered, Mode: 0o640}}
	run.Command = []string{programManagement, "--config-file", management8Config}
	return run, nil
}

// formatFile makes a directory one of BeeGFS: without it, no daemon starts on it (storeAllowFirstRunInit).
const formatFile = "format.conf"

// metaRun describes for the node binary how to start the metadata server of a slot.
func metaRun(fs *v1alpha1.FileSystem, managementIP string, slot int32) (spec.Run, error) {
	owned, typed := common(fs, managementIP)
	owned["storeMetaDirectory"] = onlyTarget
	maps.Copy(owned, daemonPorts(backend.Version(fs), "connMetaPort", portsOf(fs).meta(slot)))
	typed["tuneNumWorkers"] = metaWorkers(fs)
	typed["tuneTargetChooser"] = choosers[cmp.Or(fs.Spec.BeeGFS.TargetChooser, v1alpha1.ChooserRandomized)]
	rendered, err := options.Render("meta", backend.VersionOf(fs, componentMeta), "spec.beegfs.config.metadata",
		owned, typed, own(fs).Config.Metadata)
	if err != nil {
		return spec.Run{}, err
	}
	run := newRun(fs, componentMeta, metaDaemon(slot))
	run.RDMA = opensDevices(fs)
	run.OnTargets.All = true
	run.OnTargets.Initialize = &spec.Initialize{
		DataGlobs: []string{formatFile},
		// As beegfs-setup-meta makes them (7.4.6, 8.3.1). A server with an id of its own does not request one from the management service.
		Files: append(alias(backend.Version(fs)),
			spec.InitialFile{Name: "nodeNumID", Content: variable(variableNodeID) + "\n", Identity: true},
			spec.InitialFile{Name: formatFile, Content: "version=4\nxattr=true\n"}),
	}
	run.Files = []spec.File{
		{Path: metaConfig, Content: rendered, Mode: 0o640},
		// On ext4, the server does not start without this file, by which it looks for other filesystems below its directory (initXAttrLimit of
		// 7.4.6 and 8.3.1). The images do not contain the file, and containerd does not create it. No other filesystem is below the directory,
		// because the directory was proven.
		{Path: mountTable, Content: "# nothing is mounted below the metadata\n", Mode: 0o644},
	}
	run.Files = slices.Insert(run.Files, 1, networkFiles(fs)...)
	run.Command = []string{programMeta, "cfgFile=" + metaConfig}
	return run, nil
}

// alias is the file with the name that BeeGFS 7 shows for a server. Without it, all servers of a node have the node's name, and none starts
// after the node was renamed. BeeGFS 8 reads no such file.
func alias(version string) []spec.InitialFile {
	if cli.Is8(version) {
		return nil
	}
	return []spec.InitialFile{{Name: "nodeID", Content: variable(variableAlias) + "\n"}}
}

// storageRun describes for the node binary how to start the storage server of a pool.
func storageRun(fs *v1alpha1.FileSystem, managementIP string, pool v1alpha1.StoragePoolSpec, slot int32) (spec.Run, error) {
	owned, typed := common(fs, managementIP)
	owned["storeStorageDirectory"] = allTargets
	maps.Copy(owned, daemonPorts(backend.Version(fs), "connStoragePort", portsOf(fs).storage(slot)))
	workers := int32(defaultStorageWorkers)
	if own := ownPool(pool); own.WorkerThreads != nil {
		workers = *own.WorkerThreads
	}
	typed["tuneNumWorkers"] = fmt.Sprint(workers)
	rendered, err := options.Render("storage", backend.VersionOf(fs, componentStorage), "spec.beegfs.config.storage",
		owned, typed, own(fs).Config.Storage)
	if err != nil {
		return spec.Run{}, err
	}
	run := newRun(fs, componentStorage, storageDaemon(pool.Name))
	run.RDMA = opensDevices(fs)
	files := append(alias(backend.Version(fs)),
		spec.InitialFile{Name: "nodeNumID", Content: variable(variableNodeID) + "\n", Identity: true},
		spec.InitialFile{Name: "targetNumID", Content: variable(variableTargetID) + "\n", Identity: true})
	if !cli.Is8(backend.Version(fs)) {
		// The pool that the target registers in. BeeGFS 8 ignores the file.
		files = append(files, spec.InitialFile{Name: "storagePoolID", Content: variable(variablePoolID) + "\n"})
	}
	run.OnTargets.Initialize = &spec.Initialize{
		DataGlobs: []string{formatFile},
		// As beegfs-setup-storage makes them (7.4.6, 8.3.1).
		Directories: []string{"chunks", "buddymir"},
		Files:       append(files, spec.InitialFile{Name: formatFile, Content: "version=3\n"}),
	}
	run.Files = append([]spec.File{{Path: storageConfig, Content: rendered, Mode: 0o640}}, networkFiles(fs)...)
	run.Command = []string{programStorage, "cfgFile=" + storageConfig}
	return run, nil
}

// newRun returns the part that all daemons have in common. The permission to initialize is never in it: each target has its own.
func newRun(fs *v1alpha1.FileSystem, component, name string) spec.Run {
	return spec.Run{
		Owner: backend.Owner(fs), Component: component, User: rootUser,
		Ledger:      backend.Ledger(fs, strings.ReplaceAll(name, "/", "-")),
		Directories: []spec.Directory{}, Daemon: name, NodeFile: podspec.NodeFile(fs),
		OnTargets: &spec.OnTargets{Directory: component, Data: dataSubdirectory},
	}
}
