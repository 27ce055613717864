//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// goodFileSystem is a MooseFS with only the required fields.
const goodFileSystem = `
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: scratch}
spec:
  type: MooseFS
  version: 4.57.5
  moosefs: {}
  metadataServers:
    nodeSelector: {metadata: ""}
    targets: {directories: [/data/metadata]}
  storagePools:
  - {name: ssd, nodeSelector: {storage: ""}, targets: {directories: [/data/ssd]}}
`

// goodManifests holds manifests with only the required fields; every row of the tables changes one of them.
var goodManifests = map[string]string{
	"FileSystem": goodFileSystem,
	"BeeGFS":     goodFileSystem + "---" + beegfs,
	"Lustre":     goodFileSystem + "---" + lustre,
	"StorageTarget": `
apiVersion: parallelfs.dev/v1alpha1
kind: StorageTarget
metadata: {name: scratch-ssd-01234567}
spec:
  fileSystem: {name: scratch, uid: 11-11}
  cluster: c1-c1
  node: n1
  role: Storage
  storagePool: ssd
  device: {id: wwn-0x5000, sizeBytes: 1099511627776}
  format: {}
  formatPolicy: IfBlank
`,
	"FileSystemNode": `
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystemNode
metadata: {name: scratch-n1-0123456789abcdef}
spec:
  fileSystem: {name: scratch, uid: 11-11}
  node: n1
`,
	"BenchmarkRun": `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: run}
spec:
  target: {fileSystem: {name: scratch}}
  tool: iozone
  iozone: {}
  clients: {nodeSelector: {client: ""}}
`,
	"BenchmarkSuite": `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkSuite
metadata: {name: suite}
spec:
  fileSystem: {type: MooseFS}
  variants: [{name: one}]
  runs: [{name: creates, spec: {tool: mdtest}}]
`,
}

var allRefusals = map[string]refusals{
	"FileSystem":     fileSystemRefusals,
	"BenchmarkRun":   benchmarkRunRefusals,
	"BenchmarkSuite": benchmarkSuiteRefusals,
	"StorageTarget":  storageTargetRefusals,
	"FileSystemNode": fileSystemNodeRefusals,
}

// nodeSelectorRefusals returns the rows of a required NodeSelector; inside is a patch with %s for its content.
func nodeSelectorRefusals(field, inside string) refusals {
	out := optionalSelectorRefusals(field, inside)
	out[field+" is left out"] = refusal{change: fmt.Sprintf(inside, "null"), field: field, says: "Required value"}
	return out
}

// roleSelectorRefusals are those of a role, which may be left out where spec.nodes says which nodes all roles have.
func roleSelectorRefusals(field, inside string) refusals {
	out := optionalSelectorRefusals(field, inside)
	out[field+" is left out"] = refusal{change: fmt.Sprintf(inside, "null"), field: "spec", says: nodesOfRoles}
	return out
}

// optionalSelectorRefusals are those of one that may be left out.
func optionalSelectorRefusals(field, inside string) refusals {
	change := func(content string) string { return fmt.Sprintf(inside, content) }
	long := fmt.Sprintf("{%q: \"\"}", strings.Repeat("k", 318))
	return refusals{
		field + " is empty, and would match all": {change: change("{}"), field: field, says: "should have at least 1 properties"},
		field + " has 17 labels":                 {change: change(mapOf(17, "k%d", "v")), field: field, says: "must have at most 16 items"},
		field + " has a label's name of 318 characters": {change: change(long),
			field: field, says: "label names have at most 317 characters, their values at most 63"},
		field + " has a label's value of 64 characters": {change: change("{k: " + strings.Repeat("v", 64) + "}"),
			field: field, says: "label names have at most 317 characters, their values at most 63"},
	}
}

// optionsRefusals returns the rows of Options.
func optionsRefusals(field, inside string) refusals {
	change := func(content string) string { return fmt.Sprintf(inside, content) }
	name, line := "an option's name is a letter, then up to 63 letters, digits, underscores and dashes", "an option's value is one line"
	return refusals{
		field + " has 129 options":                         {change: change(mapOf(129, "O%d", "1")), field: field, says: "must have at most 128 items"},
		field + " has a name that begins with a dash":      {change: change(`{-A: "1"}`), field: field, says: name},
		field + " has a name with a space":                 {change: change(`{"A B": "1"}`), field: field, says: name},
		field + " has a name with an equals sign":          {change: change(`{"A=B": "1"}`), field: field, says: name},
		field + " has a name with a line break":            {change: change(`{"A\nB": "1"}`), field: field, says: name},
		field + " has a name of 65 characters":             {change: change("{" + strings.Repeat("A", 65) + `: "1"}`), field: field, says: name},
		field + " has a value of 1025 characters":          {change: change("{A: " + strings.Repeat("v", 1025) + "}"), field: field + "{}", says: "may not be more than 1024 bytes"},
		field + " has a value with a line break":           {change: change(`{A: "1\nB = 2"}`), field: field + "{}", says: line},
		field + " has a value with a carriage return":      {change: change(`{A: "1\rB = 2"}`), field: field + "{}", says: line},
		field + " has a number without quotes for a value": {change: change(`{A: 1}`), field: field + "{}", says: "must be of type string"},
	}
}

// pathRefusals returns the rows of a DirectoryPath.
func pathRefusals(field, inside string) refusals {
	rows := refusals{
		field + " is a path of 129 characters": {change: fmt.Sprintf(inside, "/data/"+strings.Repeat("d", 123)), field: field, says: "may not be more than 128 bytes"},
		field + " is a path of 3 characters":   {change: fmt.Sprintf(inside, "/ab"), field: field, says: "should be at least 4 chars long"},
	}
	for what, path := range map[string]string{
		"relative": "data/ssd", "at the top of the node's own filesystem": "/data", "with nothing behind its slash": "/data/", "with an empty element": "/data//ssd",
		"with a slash at its end": "/data/ssd/", "with an element ..": "/data/../etc", "with an element .": "/data/./ssd",
		"with a space": `"/data/my ssd"`, "with a dollar sign": "/data/$HOME", "with a line break": `"/data/ssd\n/etc"`, "with a comma": `"/data/a,b"`,
	} {
		rows[field+" is a path "+what] = refusal{change: fmt.Sprintf(inside, path), field: field, says: `should match '^(/[A-Za-z0-9_][A-Za-z0-9_.-]*){2,}$'`}
	}
	for _, path := range []string{"/etc/ssd", "/usr/share/ssd", "/tmp/ssd", "/run/ssd", "/lib64/ssd", "/parallelfs/ssd"} {
		rows[field+" is the system's "+path] = refusal{change: fmt.Sprintf(inside, path), field: field, says: "a directory must not lie in a directory of the system " +
			"(/bin, /boot, /dev, /etc, /lib, /proc, /run, /sbin, /sys, /tmp, /usr) or in /parallelfs, which the operator's pods use"}
	}
	return rows
}

// directoriesRefusals returns the rows of the directories in a TargetsSpec.
func directoriesRefusals(field, inside string) refusals {
	change := func(list string) string { return fmt.Sprintf(inside, "{directories: "+list+"}") }
	targets := strings.TrimSuffix(field, ".directories")
	return refusals{
		targets + " is left out":           {change: fmt.Sprintf(inside, "null"), field: targets, says: "Required value"},
		field + " is empty":                {change: change("[]"), field: field, says: "should have at least 1 items"},
		field + " names a directory twice": {change: change("[/data/a, /data/a]"), field: field + "[]", says: "Duplicate value"},
		field + " has 17 directories":      {change: change(listOf(17, "/data/d%d")), field: field, says: "must have at most 16 items"},
		field + " has one directory inside another": {change: change("[/data/a, /data/a/b]"),
			field: targets, says: "one target's directory must not lie inside another's"},
	}
}

// pool returns a patch that leaves one storage pool, with a changed field.
func pool(change string) string {
	fields := map[string]string{"name": "ssd", "nodeSelector": `{storage: ""}`, "targets": "{directories: [/data/ssd]}"}
	name, value, _ := strings.Cut(change, ": ")
	fields[name] = value
	var b []string
	for _, name := range []string{"name", "nodeSelector", "targets", "copies"} {
		if value := fields[name]; value != "" && value != "null" {
			b = append(b, name+": "+value)
		}
	}
	return "spec: {storagePools: [{" + strings.Join(b, ", ") + "}]}"
}

// pools returns a patch that leaves pools a, b, … with these directories.
func pools(directories ...string) string {
	var b []string
	for i, list := range directories {
		b = append(b, fmt.Sprintf(`{name: %c, nodeSelector: {storage: ""}, targets: {directories: [%s]}}`, 'a'+i, list))
	}
	return "spec: {storagePools: [" + strings.Join(b, ", ") + "]}"
}

// clients returns a patch with clients that mount at path.
func clients(path string) string {
	return fmt.Sprintf(`spec: {clients: {nodeSelector: {client: ""}, mountPath: %s}}`, path)
}

func mapOf(n int, key, value string) string {
	var b []string
	for i := range n {
		b = append(b, fmt.Sprintf("%s: %q", fmt.Sprintf(key, i), value))
	}
	return "{" + strings.Join(b, ", ") + "}"
}

func listOf(n int, item string) string {
	var b []string
	for i := range n {
		b = append(b, fmt.Sprintf(item, i))
	}
	return "[" + strings.Join(b, ", ") + "]"
}

const (
	mountInMetadata    = "spec.clients.mountPath must not equal, contain or lie in the metadata directory or /var/lib/parallelfs, where daemons keep their state"
	mountInPool        = "spec.clients.mountPath must not equal, contain or lie in a storage pool's directory"
	poolInMetadata     = "a storage pool's directory must not equal, contain or lie in a metadata directory"
	nodesOfRoles       = "set spec.nodes, or a nodeSelector for the metadata, each storage pool, and the management service, the metaloggers and the clients where there are some"
	oneMetadataTarget  = "a MooseFS master keeps its metadata in one place; give exactly one of spec.metadataServers.targets.directories or devices, or a select with countPerNode 1 or none"
	directoryStays     = "a target's directory can't be removed: it holds data, and only devices can be drained"
	singleClientSweeps = "clients can't be swept or derived when spec.iozone.mode is SingleClient"
	immutableRun       = "only spec.suspend, ttlSecondsAfterFinished, rawOutputTTL, queueName, priorityClassName, pods (without its resources), baseline, expect and results of a BenchmarkRun can be changed, because its results depend on all other fields; create another run"
	immutableSuite     = "only spec.suspend, ttlSecondsAfterFinished, confirmDestroy and results of a BenchmarkSuite can be changed, because its results depend on all other fields; create another suite"
)
