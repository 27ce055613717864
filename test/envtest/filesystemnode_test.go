//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

const (
	someFacts     = "spec: {facts: {metadataNode: n1, %s}}"
	someOptions   = "spec: {moduleOptions: {lines: [%s]}}"
	aMember       = "spec: {members: [{name: storage-ssd, role: Storage, %s}]}"
	aMemberTarget = "spec: {members: [{name: storage-ssd, role: Storage, targets: [{name: t, %s}]}]}"
	aBinding      = "spec: {members: [{name: storage-ssd, role: Storage, pinning: {cpus: 0-7, %s}}]}"

	serverIDStays = "the id of a server can't be changed or removed once it is given"
	targetIDStays = "the id of a target can't be changed or removed once it is given"
	notForgotten  = "initialized can't be removed once it is set: an empty target would be initialized again"
	staysItself   = "the node and FileSystem of a FileSystemNode can't be changed"

	ofModprobe = `should match '^options [a-z0-9_]+( [a-z0-9_]+=("[^"\n]*"|[^" \n]+))+$'`

	onMember, onTarget = "spec.members[]", "spec.members[].targets[]"
)

var fileSystemNodeRefusals = refusals{
	"it belongs to nobody":                    {change: "spec: {fileSystem: null}", field: "spec.fileSystem", says: "Required value"},
	"it belongs to a FileSystem with no name": {change: "spec: {fileSystem: {name: null}}", field: "spec.fileSystem.name", says: "Required value"},
	"it belongs to a FileSystem with no uid":  {change: "spec: {fileSystem: {uid: null}}", field: "spec.fileSystem.uid", says: "Required value"},
	"it is about no node":                     {change: "spec: {node: null}", field: "spec.node", says: "Required value"},
	"it moves to another node":                {before: "{}", change: "spec: {node: n2}", field: "spec", says: staysItself},
	"it goes to another FileSystem":           {before: "{}", change: "spec: {fileSystem: {name: other}}", field: "spec", says: staysItself},
	"it has 65 members":                       {change: "spec: {members: " + listOf(65, "{name: m%d, role: Storage}") + "}", field: "spec.members", says: "must have at most 64 items"},
	"it has a member twice":                   {change: "spec: {members: [{name: m, role: Storage}, {name: m, role: Metadata}]}", field: onMember, says: "Duplicate value"},
	"it was decommissioned at no time":        {change: "spec: {givenUp: {lost: nothing}}", field: "spec.givenUp.time", says: "Required value"},
	"no module has options":                   {change: put(someOptions, ""), field: "spec.moduleOptions.lines", says: "should have at least 1 items"},
	"modules have options without lines":      {change: "spec: {moduleOptions: {write: true}}", field: "spec.moduleOptions.lines", says: "Required value"},
	"modules have nine lines of options":      {change: put(someOptions, strings.Trim(listOf(9, `"options m p=%d"`), "[]")), field: "spec.moduleOptions.lines", says: "must have at most 8 items"},
	"its facts name no type":                  {change: "spec: {facts: {metadataNode: n1}}", field: "spec.facts.type", says: "Required value"},
	"its facts name no node of the metadata":  {change: "spec: {facts: {type: BeeGFS}}", field: "spec.facts.metadataNode", says: "Required value"},
	"a member has no name":                    {change: "spec: {members: [{role: Storage}]}", field: onMember + ".name", says: "Required value"},
	"a member has no role":                    {change: "spec: {members: [{name: m}]}", field: onMember + ".role", says: "Required value"},
	"a server gets another id":                {before: put(aMember, "id: 7"), change: put(aMember, "id: 8"), field: onMember, says: serverIDStays},
	"a server loses its id":                   {before: put(aMember, "id: 7"), change: put(aMember, "slot: 0"), field: onMember, says: serverIDStays},
	"a member has 129 targets":                {change: put(aMember, "targets: "+listOf(129, "{name: t%d}")), field: "spec.members[].targets", says: "must have at most 128 items"},
	"a member has a target twice":             {change: put(aMember, "targets: [{name: t, id: 1}, {name: t, id: 2}]"), field: onTarget, says: "Duplicate value"},
	"a target has no name":                    {change: put(aMember, "targets: [{id: 1}]"), field: onTarget + ".name", says: "Required value"},
	"a target gets another id":                {before: put(aMemberTarget, "id: 7"), change: put(aMemberTarget, "id: 8"), field: onTarget, says: targetIDStays},
	"a target loses its id":                   {before: put(aMemberTarget, "id: 7"), change: put(aMemberTarget, "path: /data"), field: onTarget, says: targetIDStays},
	"a target may be initialized again":       {before: put(aMemberTarget, `id: 7, initialized: "2026-01-01T00:00:00Z"`), change: put(aMemberTarget, "id: 7"), field: onTarget, says: notForgotten},
	"a member is bound to no CPUs":            {change: put(aMember, "pinning: {why: because}"), field: onMember + ".pinning.cpus", says: "Required value"},
	"a member has 33 variables":               {change: put(aMember, "variables: "+mapOf(33, "V%d", "v")), field: onMember + ".variables", says: "must have at most 32 items"},
	"a target has 5 files":                    {change: put(aMemberTarget, "files: "+mapOf(5, "f%d", "v")), field: onTarget + ".files", says: "must have at most 4 items"},
	"a target has 17 variables":               {change: put(aMemberTarget, "variables: "+mapOf(17, "V%d", "v")), field: onTarget + ".variables", says: "must have at most 16 items"},
}.join(
	boundRefusals("spec.fileSystem.name", "spec: {fileSystem: {name: %s}}", emptyOrLong(40)),
	boundRefusals("spec.fileSystem.uid", "spec: {fileSystem: {uid: %s}}", emptyOrLong(64)),
	boundRefusals("spec.node", "spec: {node: %s}", emptyOrLong(253)),
	boundRefusals("spec.givenUp.lost", `spec: {givenUp: {time: "2026-01-01T00:00:00Z", lost: %s}}`, tooLong(2048)),
	boundRefusals("spec.givenUp.address", `spec: {givenUp: {time: "2026-01-01T00:00:00Z", address: %s}}`, tooLong(64)),
	boundRefusals("spec.moduleOptions.lines[]", put(someOptions, "%s"), map[string]string{
		`""`: "should be at least 1 chars long", `"options m p=` + strings.Repeat("1", 2048) + `"`: "may not be more than 2048 bytes",
		`"install m /bin/sh"`: ofModprobe, `"options m p=1\ninstall m /bin/sh"`: ofModprobe, `"options m"`: ofModprobe, `"options m p=1 2"`: ofModprobe,
	}),
	boundRefusals("spec.facts.type", put(someFacts, "type: %s"), map[string]string{"AnyFS": `supported values: "MooseFS", "BeeGFS", "Lustre"`}),
	boundRefusals("spec.facts.metadataNode", "spec: {facts: {type: BeeGFS, metadataNode: %s}}", emptyOrLong(253)),
	boundRefusals("spec.facts.metadataTarget", put(someFacts, "type: BeeGFS, metadataTarget: %s"), tooLong(253)),
	boundRefusals("spec.facts.basePort", put(someFacts, "type: BeeGFS, basePort: %s"), map[string]string{"-1": tooLow + "0", "65536": tooHigh + "65535"}),
	boundRefusals(onMember+".name", "spec: {members: [{name: %s, role: Storage}]}", emptyOrLong(63)),
	boundRefusals(onMember+".role", "spec: {members: [{name: m, role: %s}]}", map[string]string{"Client": `supported values: "Management", "Metadata", "MetadataBackup", "Storage"`}),
	boundRefusals(onMember+".storagePool", put(aMember, "storagePool: %s"), tooLong(24)),
	boundRefusals(onMember+".slot", put(aMember, "slot: %s"), map[string]string{"-1": tooLow + "0", "16": tooHigh + "15"}),
	boundRefusals(onMember+".id", put(aMember, "id: %s"), map[string]string{"-1": tooLow + "0", "65536": tooHigh + "65535"}),
	boundRefusals(onMember+".waits", put(aMember, "waits: %s"), tooLong(512)),
	boundRefusals(onMember+".variables{}", put(aMember, "variables: {V: %s}"), tooLong(1024)),
	boundRefusals(onMember+".pinning.cpus", put(aMember, "pinning: {cpus: %s}"), emptyOrLong(512)),
	boundRefusals(onMember+".pinning.memoryNodes", put(aBinding, "memoryNodes: %s"), tooLong(256)),
	boundRefusals(onMember+".pinning.memoryPolicy", put(aBinding, "memoryPolicy: %s"), map[string]string{"Often": `supported values: "Bind", "Preferred"`}),
	boundRefusals(onMember+".pinning.why", put(aBinding, "why: %s"), tooLong(256)),
	boundRefusals(onTarget+".name", put(aMember, "targets: [{name: %s}]"), emptyOrLong(253)),
	boundRefusals(onTarget+".id", put(aMemberTarget, "id: %s"), map[string]string{"-1": tooLow + "0", "65536": tooHigh + "65535"}),
	boundRefusals(onTarget+".path", put(aMemberTarget, "path: %s"), tooLong(512)),
	boundRefusals(onTarget+".uuid", put(aMemberTarget, "uuid: %s"), tooLong(36)),
	boundRefusals(onTarget+".turn", put(aMemberTarget, "turn: %s"), tooLong(320)),
	boundRefusals(onTarget+".replaces", put(aMemberTarget, "replaces: %s"), tooLong(253)),
	boundRefusals(onTarget+".files{}", put(aMemberTarget, "files: {f: %s}"), tooLong(1024)),
	boundRefusals(onTarget+".variables{}", put(aMemberTarget, "variables: {V: %s}"), tooLong(1024)),
)

// tooLong returns a text that is one character too long.
func tooLong(most int) map[string]string {
	return map[string]string{strings.Repeat("n", most+1): fmt.Sprintf("may not be more than %d bytes", most)}
}

// emptyOrLong returns an empty text, and one that is too long.
func emptyOrLong(most int) map[string]string {
	says := tooLong(most)
	says[`""`] = "should be at least 1 chars long"
	return says
}

// largestFileSystemNode has the maximum number of members with 24 targets each: with the maximum of everything, no API server would accept
// it.
func largestFileSystemNode() string {
	target := `{name: t%d, id: 1, path: /data, uuid: c0ffee00-0000-4000-8000-000000000000, initialized: "2026-01-01T00:00:00Z"}`
	return "spec: {members: " + strings.ReplaceAll(listOf(64, "{name: m%d, role: Storage, id: 1, targets: TARGETS}"), "TARGETS", listOf(24, target)) + "}"
}

var fileSystemNodeAccepted = map[string]string{
	"it has only what is required":  "{}",
	"it has 64 servers of 24 disks": largest["FileSystemNode"],
	"it has everything that there is": `
spec:
  facts: {type: BeeGFS, metadataNode: n1, metadataTarget: scratch-management-0123456789abcdef, basePort: 65535}
  givenUp: {time: "2026-01-01T00:00:00Z", lost: 12 chunks, address: 10.0.0.1}
  moduleOptions: {write: true, lines: ['options libcfs cpu_pattern="0[0-7] 1[8-15]"', "options mdt mds_num_cpts=[1] mds_rdpg_num_cpts=[1]"]}
  members:
  - name: storage-ssd
    role: Storage
    storagePool: ssd
    slot: 15
    id: 65535
    waits: for its disk
    retired: true
    variables: {NODE_ID: "7"}
    pinning: {cpus: "0-7,16-23", memoryNodes: "0", memoryPolicy: Bind, why: because}
    targets:
    - {name: scratch-ssd-01234567, id: 65535, directory: true, path: /data, uuid: 0a-0b, remove: true, granted: true, expected: true, variables: {TARGET_ID: "7"},
       replaces: scratch-ssd-76543210, files: {targetID: 1F-1-1}, fullResync: "2026-01-01T00:00:00Z",
       initialized: "2026-01-01T00:00:00Z", drained: "2026-01-01T00:00:00Z", takenOut: "2026-01-01T00:00:00Z"}
`,
}

var fileSystemNodeChanges = map[string]string{
	"the FileSystem was made again": "spec: {fileSystem: {uid: 22-22}}",
	"a server is added":             put(aMember, "id: 7"),
}
