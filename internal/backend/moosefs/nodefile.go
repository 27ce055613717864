package moosefs

import (
	"cmp"
	"crypto/md5" //nolint:gosec // mfsexports.cfg(5) takes the password as its MD5; the password is 32 random characters.
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// daemonUser owns the data; the images give it the uid and gid 9421.
	daemonUser = "mfs"

	masterConfig      = podspec.RunDirectory + "/mfsmaster.cfg"
	exportsConfig     = podspec.RunDirectory + "/mfsexports.cfg"
	metaloggerConfig  = podspec.RunDirectory + "/mfsmetalogger.cfg"
	chunkserverConfig = podspec.RunDirectory + "/mfschunkserver.cfg"
	disksConfig       = podspec.RunDirectory + "/mfshdd.cfg"
)

// options renders a configuration file of MooseFS from the operator's options and the user's. It refuses, by name, an option of the user's
// that the operator owns or that the daemon does not have.
func options(field, version, daemon string, owned, defaults map[string]string, user v1alpha1.Options) (string, error) {
	known := knownOptions(version, daemon)
	for _, name := range backend.SortedKeys(user) {
		if _, mine := owned[name]; mine {
			return "", backend.Invalid(v1alpha1.ReasonOptionRefused,
				"%s.%s is set by the operator itself and can't be changed; remove it", field, name)
		}
		if !known[name] {
			return "", backend.Invalid(v1alpha1.ReasonOptionRefused,
				"%s.%s is no option of %s %s (see its cfg(5) man page); correct its name or remove it", field, name, daemon, version)
		}
	}
	all := maps.Clone(defaults)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range user {
		all[name] = string(value)
	}
	maps.Copy(all, owned)
	var b strings.Builder
	for _, name := range backend.SortedKeys(all) {
		fmt.Fprintf(&b, "%s = %s\n", name, all[name])
	}
	return b.String(), nil
}

// By default, a master saves its changes in a separate process. A metalogger that joins gets what that process has saved, and the changes
// after that. Its copy lacks those in between, and can't be read (docs/adr/0106).
const savingModeOption, savingModeInMaster = "CHANGELOG_SAVE_MODE", "1"

// refuseSavingMode refuses a master whose copies could miss changes. mfsmaster treats every invalid value as 0.
func refuseSavingMode(field string, user v1alpha1.Options) error {
	mode, set := user[savingModeOption]
	if n, err := strconv.Atoi(string(mode)); !set || err == nil && (n == 1 || n == 2) {
		return nil
	}
	return backend.Invalid(v1alpha1.ReasonOptionRefused,
		"%s.%s is %q; set it to 1 or 2, or remove it: with 0, metaloggers can miss changes, and their copies can't be read when the metadata is lost",
		field, savingModeOption, v1alpha1.Cut(string(mode), maxShownOption))
}

// maxShownOption is the length to which the value of an option is cut in a message.
const maxShownOption = 32

// masterRun returns the configuration with which the node binary starts the master.
func masterRun(in backend.Input) (spec.Run, error) {
	fs, p := in.FileSystem, portsOf(in.FileSystem)
	data, directories, onTargets := masterPlaces(in)
	owned := map[string]string{
		"WORKING_USER":       daemonUser,
		"WORKING_GROUP":      daemonUser,
		"SYSLOG_IDENT":       "mfsmaster",
		"DATA_PATH":          data,
		"EXPORTS_FILENAME":   exportsConfig,
		"TOPOLOGY_FILENAME":  topologyFile,
		"MATOML_LISTEN_HOST": "*", "MATOML_LISTEN_PORT": fmt.Sprint(p.metaloggers()),
		"MATOCS_LISTEN_HOST": "*", "MATOCS_LISTEN_PORT": fmt.Sprint(p.chunkservers()),
		"MATOCL_LISTEN_HOST": "*", "MATOCL_LISTEN_PORT": fmt.Sprint(p.clients()),
	}
	if fs.Spec.FailureDomains.Label != "" {
		// In 4.x this option would override the storage classes (mfsmaster.cfg(5)).
		owned["CHUNKS_UNIQUE_MODE"] = fmt.Sprint(uniqueMode(in, nodefacts.NewDomains(in)))
	}
	const field = "spec.moosefs.config.metadata"
	if err := cmp.Or(refuseSavingMode(field, own(fs).Config.Metadata), refuseExports(fs)); err != nil {
		return spec.Run{}, err
	}
	rendered, err := options(field, backend.VersionOf(fs, componentMaster), "mfsmaster",
		owned, map[string]string{savingModeOption: savingModeInMaster}, own(fs).Config.Metadata)
	if err != nil {
		return spec.Run{}, err
	}
	run := spec.Run{
		Owner: backend.Owner(fs), Component: componentMaster, User: daemonUser, Ledger: backend.Ledger(fs, componentMaster),
		Directories: directories, Daemon: componentMaster, NodeFile: podspec.NodeFile(fs), OnTargets: onTargets,
		Files: []spec.File{
			{Path: masterConfig, Content: rendered, Mode: 0o640},
			{Path: exportsConfig, Content: exports(in), Mode: 0o640},
		},
		Reload: []string{topologyFile},
		// Always "start": the default action is "restart", which stops the process that holds the lock (mfsmaster(8)).
		Command: []string{"mfsmaster", "-f", "-c", masterConfig, "start"},
		// A clean stop leaves metadata.mfs; after a crash it is missing, and -a rebuilds it from the last save and the change logs.
		Recover: &spec.Recover{File: path.Join(data, "metadata.mfs"), Arguments: []string{"-a"}},
	}
	return run, nil
}

// masterPlaces returns where the master keeps its metadata: in a directory of the node, or on its only target.
func masterPlaces(in backend.Input) (data string, directories []spec.Directory, onTargets *spec.OnTargets) {
	fs, record, expected := in.FileSystem, in.FileSystem.Status.Metadata, assign.MetadataExpected(in)
	initialize := &spec.Initialize{
		Granted: record.Initialized == nil && !expected, Expected: expected,
		DataGlobs: []string{"metadata*", "changelog*"},
		// The content of metadata.mfs.empty, which Debian's moosefs-master ships for a new filesystem.
		Files: []spec.InitialFile{{Name: "metadata.mfs", Content: "MFSM NEW"}},
	}
	if assign.OnDevices(fs.Spec.MetadataServers.Targets) {
		return onlyTarget, []spec.Directory{},
			&spec.OnTargets{Directory: componentMaster, Data: dataSubdirectory, Initialize: initialize, All: true}
	}
	return dataDirectory(record.Directory), []spec.Directory{{Path: record.Directory, Data: dataSubdirectory, Initialize: initialize}}, nil
}

// onlyTarget stands for the data directory of the only target of a daemon, as in spec.File.
const onlyTarget = "$(TARGET)"

// adminAddress is the address of the operator's own administrator, on the master's node. No client may have it. For a second after a client
// reconnects whose rights were reloaded, the master gives that client's session, with all its open files, to any other client that mounts
// from its address (iptosesid.c). The programs of that client would become administrators, and the master would no longer list its mount.
const adminAddress = "127.0.0.1"

// exports lets the hosts of spec.moosefs.exports mount, and every host without that field. Only the operator may administer; the
// mfsexports.cfg of the package makes everybody an administrator. Of all lines that match a client, the master uses the one with more
// rights. The last line matches only on the master's node with the right password. A wrong password counts as none.
func exports(in backend.Input) string {
	var b strings.Builder
	for _, e := range own(in.FileSystem).Exports {
		mode := "rw"
		if e.ReadOnly {
			mode = "ro"
		}
		fmt.Fprintf(&b, "%s %s %s,alldirs,maproot=%s", e.Addresses, cmp.Or(e.Directory, "/"), mode, cmp.Or(userOf(e.RootAs), "0:0"))
		if e.AllAs != nil {
			b.WriteString(",mapall=" + userOf(e.AllAs))
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		b.WriteString("* / rw,alldirs,maproot=0:0\n")
	}
	return b.String() + adminAddress + " / rw,alldirs,admin,maproot=0:0,md5pass=" + digest(in.Password) + "\n"
}

// userOf returns a user in the form of mfsexports.cfg(5), empty for none.
func userOf(u *v1alpha1.MooseFSUser) string {
	if u == nil || u.User == nil || u.Group == nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", *u.User, *u.Group)
}

// refuseExports refuses addresses that mfsmaster could not read: it would leave out the line, and log that only (mfsmaster/exports.c).
func refuseExports(fs *v1alpha1.FileSystem) error {
	for _, e := range own(fs).Exports {
		if !areAddresses(e.Addresses) {
			return backend.Invalid(v1alpha1.ReasonOptionRefused,
				"spec.moosefs.exports: %q is neither an address of IPv4, nor a network such as 192.168.10.0/24, nor a range; correct it", e.Addresses)
		}
	}
	return nil
}

func areAddresses(text string) bool {
	if text == "*" {
		return true
	}
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Masked() == prefix
	}
	from, to, isRange := strings.Cut(text, "-")
	first, err := netip.ParseAddr(from)
	if err != nil || !isRange {
		return err == nil
	}
	last, err := netip.ParseAddr(to)
	return err == nil && first.Compare(last) <= 0
}

// digest returns a password in the form that mfsexports.cfg(5) and mfsmount(8) take.
func digest(password string) string {
	sum := md5.Sum([]byte(password)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// adminMountConfig makes mfsmount an administrator. It is a file because everybody on the node can see arguments. It does not use
// mfspassfile, because 3.0.117 then sends something else than the password.
func adminMountConfig(in backend.Input) string { return "mfsmd5pass=" + digest(in.Password) + "\n" }

// A daemon that has lost its master tries to reach it at fixed ticks, by default every 5 s (masterconn.c). After a restart of the master,
// programs would wait for a chunkserver that long, and changes would exist on one disk only.
const reconnectionOption, reconnectionSeconds = "MASTER_RECONNECTION_DELAY", "1"

func metaloggerRun(in backend.Input, masterIP string) (spec.Run, error) {
	fs, p := in.FileSystem, portsOf(in.FileSystem)
	directory := stateDirectory(fs, componentMetalogger)
	rendered, err := options("spec.moosefs.metaloggers.config", backend.VersionOf(fs, componentMetalogger), "mfsmetalogger", map[string]string{
		"WORKING_USER":  daemonUser,
		"WORKING_GROUP": daemonUser,
		"SYSLOG_IDENT":  "mfsmetalogger",
		"DATA_PATH":     dataDirectory(directory),
		"MASTER_HOST":   masterIP,
		"MASTER_PORT":   fmt.Sprint(p.metaloggers()),
		"BIND_HOST":     "$(NODE_IP)",
	}, map[string]string{reconnectionOption: reconnectionSeconds}, own(fs).Metaloggers.Config)
	if err != nil {
		return spec.Run{}, err
	}
	return spec.Run{
		Owner: backend.Owner(fs), Component: componentMetalogger, User: daemonUser, Ledger: backend.Ledger(fs, componentMetalogger),
		Directories: []spec.Directory{{Path: directory, Data: dataSubdirectory}},
		Daemon:      componentMetalogger, NodeFile: podspec.NodeFile(fs),
		Files:   []spec.File{{Path: metaloggerConfig, Content: rendered, Mode: 0o640}},
		Command: []string{"mfsmetalogger", "-f", "-c", metaloggerConfig, "start"},
	}, nil
}

func chunkserverRun(in backend.Input, masterIP string, pool v1alpha1.StoragePoolSpec, slot int32) (spec.Run, error) {
	fs, p := in.FileSystem, portsOf(in.FileSystem)
	component := componentChunkserver + "-" + pool.Name
	state := stateDirectory(fs, component)
	rendered, err := options("spec.moosefs.config.storage", backend.VersionOf(fs, componentChunkserver), "mfschunkserver", map[string]string{
		"WORKING_USER":       daemonUser,
		"WORKING_GROUP":      daemonUser,
		"SYSLOG_IDENT":       "mfschunkserver-" + pool.Name,
		"DATA_PATH":          dataDirectory(state),
		"HDD_CONF_FILENAME":  disksConfig,
		"LABELS":             label(slot),
		"BIND_HOST":          "$(NODE_IP)",
		"MASTER_HOST":        masterIP,
		"MASTER_PORT":        fmt.Sprint(p.chunkservers()),
		"CSSERV_LISTEN_HOST": "*",
		"CSSERV_LISTEN_PORT": fmt.Sprint(p.chunkserver(slot)),
		// An unusable disk must be reported as missing, and never left out silently.
		"ALLOW_STARTING_WITH_INVALID_DISKS": "0",
	}, map[string]string{
		// README.Debian of moosefs-chunkserver: with the built-in 256MiB, a disk can run full.
		"HDD_LEAVE_SPACE_DEFAULT": "5GiB",
		reconnectionOption:        reconnectionSeconds,
	}, own(fs).Config.Storage)
	if err != nil {
		return spec.Run{}, err
	}
	run := spec.Run{
		Owner: backend.Owner(fs), Component: component, User: daemonUser, Ledger: backend.Ledger(fs, component),
		Directories: []spec.Directory{{Path: state, Data: dataSubdirectory}},
		Daemon:      chunkserverDaemon(pool.Name), NodeFile: podspec.NodeFile(fs),
		Command: []string{"mfschunkserver", "-f", "-c", chunkserverConfig, "start"},
	}
	var disks strings.Builder
	for _, d := range slices.Sorted(slices.Values(pool.Targets.Directories)) {
		run.Directories = append(run.Directories, spec.Directory{Path: string(d), Data: dataSubdirectory})
		disks.WriteString(dataDirectory(string(d)) + "\n")
	}
	list := spec.File{Path: disksConfig, Content: disks.String(), Mode: 0o640}
	if assign.OnDevices(pool.Targets) {
		// A missing disk is used again once it is back; the other disks go on without it.
		run.OnTargets = &spec.OnTargets{Directory: componentChunkserver, Data: dataSubdirectory}
		list.Line, list.RemoveLine = onlyTarget+"\n", "*"+onlyTarget+"\n" // mfshdd.cfg(5): "*" marks for removal
	}
	run.Files = []spec.File{{Path: chunkserverConfig, Content: rendered, Mode: 0o640}, list}
	return run, nil
}

const (
	// mountType is the type in /proc/self/mountinfo for mfsmount, which sets no subtype.
	mountType = "fuse"
	// adminMountFile is the configuration of mfsmount in the pod that creates storage classes.
	adminMountFile = podspec.ToldDirectory + "/" + adminMountKey
	adminMountKey  = "mfsmount.cfg"
)
