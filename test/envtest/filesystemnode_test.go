//go:build envtest

package envtest_test

import "strings"

const nodeStaysWhatItIs = "a FileSystemNode stays what it is: its node and FileSystem can't be changed"

// fullFileSystemNode has every field of a spec once.
const fullFileSystemNode = `
spec:
  fileSystem: {name: scratch, uid: 11-11}
  node: n1
  members:
  - name: storage-ssd
    role: Storage
    storagePool: ssd
    slot: 1
    id: 7
    retired: true
    waits: the address of the management service is not known yet
    variables: {PORT: "9420"}
    pinning: {cpus: 0-7, memoryNodes: "0", memoryPolicy: Bind, why: "spec.storagePools[ssd].cpuPinning: NUMA node 0"}
    targets:
    - name: scratch-ssd-0123456789abcdef
      id: 9
      directory: false
      path: /var/lib/parallelfs/targets/storage.scratch/scratch-ssd-0123456789abcdef
      uuid: 0b5a9b5c-8f5e-4c5e-9a37-0a2d3b1c4d5e
      remove: true
      granted: true
      expected: true
      variables: {TARGET: "9"}
`

var fileSystemNodeRefusals = refusals{
	"it moves to another node":  {before: "{}", change: "spec: {node: n2}", field: "spec", says: nodeStaysWhatItIs},
	"its FileSystem is changed": {before: "{}", change: "spec: {fileSystem: {name: other}}", field: "spec", says: nodeStaysWhatItIs},
}.join(
	everyBoundRefusals("filesystemnodes", fullFileSystemNode, "spec"),
	boundRefusals("spec.members[].variables", member("variables: %s"), map[string]string{mapOf(33, "K%d", "v"): "must have at most 32 items"}),
	boundRefusals("spec.members[].variables{}", member("variables: {A: %s}"), map[string]string{
		strings.Repeat("v", 1025): "may not be more than 1024 bytes",
	}),
	boundRefusals("spec.members[].targets[].variables", member("targets: [{name: /data/ssd, variables: %s}]"), map[string]string{
		mapOf(17, "K%d", "v"): "must have at most 16 items",
	}),
	boundRefusals("spec.members[].targets[].variables{}", member("targets: [{name: /data/ssd, variables: {A: %s}}]"), map[string]string{
		strings.Repeat("v", 1025): "may not be more than 1024 bytes",
	}),
)

// member is a patch with one member that has this besides its name and role.
func member(has string) string {
	return "spec: {members: [{name: storage-ssd, role: Storage, " + has + "}]}"
}

var fileSystemNodeAccepted = map[string]string{
	"it has only what is required":        "{}",
	"it has every field":                  fullFileSystemNode,
	"everything is as large as it can be": largest["FileSystemNode"],
}

var fileSystemNodeChanges = map[string]string{
	"a server joins":               "spec: {members: [{name: meta-0, role: Metadata, id: 1}]}",
	"the FileSystem was made anew": "spec: {fileSystem: {uid: 22-22}}",
}
