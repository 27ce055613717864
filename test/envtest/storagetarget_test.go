//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

const (
	aNID          = `should match '^[0-9A-Za-z.:]+@[a-z][a-z0-9]*$'`
	isLustre      = "spec: {format: {fsType: ldiskfs}, lustre: %s}"
	anMDT         = "\n---\nspec: {role: Metadata, storagePool: null}"
	anMGT         = "\n---\nspec: {role: Management, storagePool: null}"
	ofWhichKind   = "an MGT has the role Management, an MDT Metadata, and an OST Storage"
	onDisk        = "what a target is to Lustre can't be changed: it is written on the disk"
	namedOrMGT    = "an MDT and an OST have fsName and index, and an MGT has neither"
	firstMDT      = "only the MDT with the index 0 can have the MGT on its disk"
	whereMGSIs    = "managementNIDs belong to every target that does not have the MGT on its own disk"
	anOST         = "{kind: OST, fsName: scratch, index: 10, managementNIDs: [10.0.0.1@tcp]}"
	aPair         = "spec: {format: {fsType: ldiskfs}, secondNode: n2, lustre: {kind: OST, fsName: scratch, index: 10, managementNIDs: [10.0.0.1@tcp], serviceNodes: %s}}"
	bothNodes     = "[{nids: [10.0.0.2@tcp]}, {nids: [10.0.0.3@tcp, 10.1.0.3@tcp]}]"
	secondStays   = "the second node of a StorageTarget can't be changed, added or removed: the disk names both"
	isNamedTwice  = "a target of two nodes has secondNode and lustre.serviceNodes, and any other has neither"
	staysWhatItIs = "the node, role, FileSystem and device of a StorageTarget can't be changed"
	aPlan         = `should match '^(sha256:[0-9a-f]{64})?$'`
)

var storageTargetRefusals = refusals{
	"there is no spec":                       {change: "spec: null", field: "spec", says: "Required value"},
	"the FileSystem is left out":             {change: "spec: {fileSystem: null}", field: "spec.fileSystem", says: "Required value"},
	"the FileSystem has no name":             {change: "spec: {fileSystem: {name: null}}", field: "spec.fileSystem.name", says: "Required value"},
	"the FileSystem has no uid":              {change: "spec: {fileSystem: {uid: null}}", field: "spec.fileSystem.uid", says: "Required value"},
	"the cluster is left out":                {change: "spec: {cluster: null}", field: "spec.cluster", says: "Required value"},
	"the node is left out":                   {change: "spec: {node: null}", field: "spec.node", says: "Required value"},
	"the role is left out":                   {change: "spec: {role: null}", field: "spec.role", says: "Required value"},
	"the device is left out":                 {change: "spec: {device: null}", field: "spec.device", says: "Required value"},
	"the format is left out":                 {change: "spec: {format: null}", field: "spec.format", says: "Required value"},
	"the policy is left out":                 {change: "spec: {formatPolicy: null}", field: "spec.formatPolicy", says: "Required value"},
	"writers have stopped for nothing":       {change: "spec: {writersStopped: true}", field: "spec", says: "writersStopped belongs to a removal: set it only together with remove, and set both back together"},
	"the target moves to another node":       {before: "{}", change: "spec: {node: n2}", field: "spec", says: staysWhatItIs},
	"the role is changed":                    {before: "{}", change: "spec: {role: Metadata}", field: "spec", says: staysWhatItIs},
	"the FileSystem is changed":              {before: "{}", change: "spec: {fileSystem: {name: other}}", field: "spec", says: staysWhatItIs},
	"the target of Lustre is xfs":            {change: put(isLustre, anOST) + "\n---\nspec: {format: {fsType: xfs}}", field: "spec", says: "lustre belongs to targets with format.fsType ldiskfs"},
	"a target of Lustre has a log":           {change: "spec: {format: {fsType: ldiskfs}, logDevice: {id: wwn-0x5001, sizeBytes: 1}}", field: "spec", says: "a target of Lustre has no log device"},
	"an OST has the role Metadata":           {change: put(isLustre, anOST) + anMDT, field: "spec", says: ofWhichKind},
	"an MDT has the role Storage":            {change: put(isLustre, "{kind: MDT, fsName: scratch, index: 0, withMGT: true}"), field: "spec", says: ofWhichKind},
	"an MGT has the role Storage":            {change: put(isLustre, "{kind: MGT}"), field: "spec", says: ofWhichKind},
	"the index of an OST is changed":         {before: put(isLustre, anOST), change: "spec: {lustre: {index: 11}}", field: "spec", says: onDisk},
	"the NIDs of the MGS are changed":        {before: put(isLustre, anOST), change: "spec: {lustre: {managementNIDs: [10.0.0.2@tcp]}}", field: "spec", says: onDisk},
	"what it is to Lustre is lost":           {before: put(isLustre, anOST), change: "spec: {lustre: null}", field: "spec", says: onDisk},
	"an OST has no index":                    {change: put(isLustre, "{kind: OST, fsName: scratch, managementNIDs: [10.0.0.1@tcp]}"), field: "spec.lustre", says: namedOrMGT},
	"an OST has no filesystem":               {change: put(isLustre, "{kind: OST, index: 1, managementNIDs: [10.0.0.1@tcp]}"), field: "spec.lustre", says: namedOrMGT},
	"an MGT has an index":                    {change: put(isLustre, "{kind: MGT, index: 0}") + anMGT, field: "spec.lustre", says: namedOrMGT},
	"an OST has the MGT, too":                {change: put(isLustre, "{kind: OST, fsName: scratch, index: 0, withMGT: true}"), field: "spec.lustre", says: firstMDT},
	"MDT0001 has the MGT, too":               {change: put(isLustre, "{kind: MDT, fsName: scratch, index: 1, withMGT: true}") + anMDT, field: "spec.lustre", says: firstMDT},
	"an OST has no address of an MGS":        {change: put(isLustre, "{kind: OST, fsName: scratch, index: 1}"), field: "spec.lustre", says: whereMGSIs},
	"an MGT has the address of an MGS":       {change: put(isLustre, "{kind: MGT, managementNIDs: [10.0.0.1@tcp]}") + anMGT, field: "spec.lustre", says: whereMGSIs},
	"the second node is changed":             {before: put(aPair, bothNodes), change: "spec: {secondNode: n3}", field: "spec", says: secondStays},
	"the second node is removed":             {before: "spec: {format: {fsType: ldiskfs}, secondNode: n2}", change: "spec: {secondNode: null}", field: "spec", says: secondStays},
	"a second node is added":                 {before: "spec: {format: {fsType: ldiskfs}}", change: "spec: {secondNode: n2}", field: "spec", says: secondStays},
	"the second node is the first":           {change: "spec: {format: {fsType: ldiskfs}, node: n1, secondNode: n1}", field: "spec", says: "secondNode is another node than node"},
	"a target of two nodes is xfs":           {change: "spec: {secondNode: n2}", field: "spec", says: "only a target of Lustre has a second node"},
	"the disk names no second node":          {change: put(isLustre, anOST) + "\n---\nspec: {secondNode: n2}", field: "spec", says: isNamedTwice},
	"the disk alone names two nodes":         {change: put(aPair, bothNodes) + "\n---\nspec: {secondNode: null}", field: "spec", says: isNamedTwice},
	"a third node is to serve it":            {change: put(aPair, bothNodes) + "\n---\nspec: {serveOn: n3}", field: "spec", says: "serveOn is node or secondNode"},
	"the one node is configured to serve it": {change: "spec: {node: n1, serveOn: n1}", field: "spec", says: "serveOn is node or secondNode"},
	"the device is changed":                  {before: "{}", change: "spec: {device: {id: wwn-0x5001}}", field: "spec", says: staysWhatItIs},
}.join(
	boundRefusals("spec.fileSystem.name", "spec: {fileSystem: {name: %s}}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 41): "may not be more than 40 bytes",
	}),
	boundRefusals("spec.fileSystem.uid", "spec: {fileSystem: {uid: %s}}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 65): "may not be more than 64 bytes",
	}),
	boundRefusals("spec.cluster", "spec: {cluster: %s}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 65): "may not be more than 64 bytes",
	}),
	boundRefusals("spec.filesIn", "spec: {filesIn: %s}", map[string]string{"[a, b, c, d, e, f, g, h, i]": "must have at most 8 items"}),
	boundRefusals("spec.filesIn[]", "spec: {filesIn: [%s]}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 256): "may not be more than 255 bytes",
	}),
	boundRefusals("spec.takeOver", "spec: {takeOver: %s}", map[string]string{strings.Repeat("n", 65): "may not be more than 64 bytes"}),
	formerTargetRefusals(),
	boundRefusals("spec.node", "spec: {node: %s}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
	}),
	boundRefusals("spec.secondNode", "spec: {format: {fsType: ldiskfs}, secondNode: %s}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
	}),
	boundRefusals("spec.serveOn", "spec: {format: {fsType: ldiskfs}, secondNode: n2, serveOn: %s}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
	}),
	boundRefusals("spec.lustre.serviceNodes", aPair, map[string]string{
		"[]": "should have at least 2 items", "[{nids: [10.0.0.2@tcp]}]": "should have at least 2 items",
		"[{nids: [10.0.0.2@tcp]}, {nids: [10.0.0.3@tcp]}, {nids: [10.0.0.4@tcp]}]": "must have at most 2 items",
	}),
	boundRefusals("spec.lustre.serviceNodes[].nids", put(aPair, "[{nids: [10.0.0.2@tcp]}, {nids: %s}]"), map[string]string{
		"null": "Required value", "[]": "should have at least 1 items", listOf(17, "10.0.0.%d@tcp"): "must have at most 16 items",
	}),
	boundRefusals("spec.lustre.serviceNodes[].nids[]", put(aPair, "[{nids: [10.0.0.2@tcp]}, {nids: [%s]}]"), map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("1", 61) + "@tcp": "may not be more than 64 bytes", "oss2": aNID,
	}),
	boundRefusals("spec.role", "spec: {role: %s}", map[string]string{"Client": `supported values: "Management", "Metadata", "MetadataBackup", "Storage"`}),
	boundRefusals("spec.formatFrom", "spec: {formatFrom: %s}", map[string]string{strings.Repeat("n", 257): "may not be more than 256 bytes"}),
	boundRefusals("spec.storagePool", "spec: {storagePool: %s}", map[string]string{strings.Repeat("n", 25): "may not be more than 24 bytes"}),
	boundRefusals("spec.slot", "spec: {slot: %s}", map[string]string{
		"-1": "should be greater than or equal to 0", "16": "should be less than or equal to 15",
	}),
	boundRefusals("spec.formatPolicy", "spec: {formatPolicy: %s}", map[string]string{"Always": `supported values: "Never", "IfBlank", "Approved"`}),
	boundRefusals("spec.conflict", "spec: {conflict: %s}", map[string]string{strings.Repeat("n", 1025): "may not be more than 1024 bytes"}),
	boundRefusals("spec.destroyFor", "spec: {destroyFor: %s}", map[string]string{strings.Repeat("n", 65): "may not be more than 64 bytes"}),
	boundRefusals("spec.approvedPlan", "spec: {approvedPlan: %s}", map[string]string{
		"sha256:" + strings.Repeat("a", 65): "may not be more than 71 bytes", "sha256:" + strings.Repeat("a", 63): aPlan,
		strings.Repeat("a", 64): aPlan, `"yes"`: aPlan,
	}),
	identityRefusals("spec.device", "spec: {device: null}\n---\nspec: {device: %s}"),
	identityRefusals("spec.logDevice", storageTargetLog),
	boundRefusals("spec.lustre.kind", put(isLustre, "{kind: %s, fsName: scratch, index: 10, managementNIDs: [10.0.0.1@tcp]}"), map[string]string{
		"null": "Required value", "OSS": `supported values: "MGT", "MDT", "OST"`,
	}),
	boundRefusals("spec.lustre.fsName", put(isLustre, "{kind: OST, fsName: %s, index: 10, managementNIDs: [10.0.0.1@tcp]}"), map[string]string{
		`""`: "should be at least 1 chars long", "scratches": "may not be more than 8 bytes",
		"1a": `should match '^[a-z][a-z0-9_]*$'`, "a-b": `should match '^[a-z][a-z0-9_]*$'`,
	}),
	boundRefusals("spec.lustre.index", put(isLustre, "{kind: OST, fsName: scratch, index: %s, managementNIDs: [10.0.0.1@tcp]}"), map[string]string{
		"-1": "should be greater than or equal to 0", "65504": "should be less than or equal to 65503",
	}),
	boundRefusals("spec.lustre.managementNIDs", put(isLustre, "{kind: OST, fsName: scratch, index: 10, managementNIDs: %s}"), map[string]string{
		"[]": "should have at least 1 items", listOf(17, "10.0.0.%d@tcp"): "must have at most 16 items",
	}),
	boundRefusals("spec.lustre.managementNIDs[]", put(isLustre, "{kind: OST, fsName: scratch, index: 10, managementNIDs: [%s]}"), map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("1", 61) + "@tcp": "may not be more than 64 bytes",
		"mgs": aNID, "10.0.0.1": aNID, `"10.0.0.1@tcp,10.0.0.2@tcp"`: aNID, `"mgs@tcp:$(reboot)"`: aNID,
	}),
	formatRefusals("spec.format", "spec: {format: null}\n---\nspec: {format: %s}"),
	queueRefusals("spec.queue", "spec: {queue: %s}"),
)

var storageTargetAccepted = map[string]string{
	"it has only what is required":                        "{}",
	"everything is as large as it can be":                 largest["StorageTarget"],
	"a metadata target of the sixteenth server of a node": "spec: {role: Metadata, storagePool: null, slot: 15}",
	"a target of a management service":                    "spec: {role: Management, storagePool: null}",
	"an approval was taken back by emptying it":           `spec: {approvedPlan: ""}`,
	"an OST":                                        put(isLustre, anOST),
	"a disk of Lustre that has no index yet":        "spec: {format: {fsType: ldiskfs}}",
	"an OST of two nodes":                           put(aPair, bothNodes),
	"an OST of two nodes on the second":             put(aPair, bothNodes) + "\n---\nspec: {serveOn: n2}",
	"a disk of two nodes without an index":          "spec: {format: {fsType: ldiskfs}, secondNode: n2}",
	"an MDT":                                        put(isLustre, "{kind: MDT, fsName: scratch, index: 65503, managementNIDs: [10.0.0.1@tcp, 10.0.1.1@o2ib1]}") + anMDT,
	"an MDT with the MGT":                           put(isLustre, "{kind: MDT, fsName: scratch, index: 0, withMGT: true}") + anMDT,
	"an MGT of its own":                             put(isLustre, "{kind: MGT}") + anMGT,
	"a disk that has neither serial number nor WWN": "spec: {device: {id: virtio-disk1}}",
}

var storageTargetChanges = map[string]string{
	"a plan is approved":                     "spec: {approvedPlan: 'sha256:" + strings.Repeat("0a", 32) + "'}",
	"the target is to be removed":            "spec: {remove: true}",
	"a disk of Lustre is assigned its index": put(isLustre, anOST),
	"a queue is set":                         "spec: {queue: {requests: 64}}",
	"the mount options are changed":          "spec: {format: {mountOptions: [noatime]}}",
	"the FileSystem was made again":          "spec: {fileSystem: {uid: 22-22}}",
	"the policy of formats changed":          "spec: {formatPolicy: Approved}",
	"a conflict was found":                   "spec: {conflict: 'storage/other wants it too'}",
	"what is on it is to be wiped":           "spec: {destroyFor: 11-11}",
	"a log device was chosen for it":         "spec: {logDevice: {id: nvme-eui.0025385b71b0c4a1, sizeBytes: 1}}",
}

// fullIdentity returns a DeviceIdentity with all fields of the maximum length.
func fullIdentity(letter string) string {
	long := strings.Repeat(letter, 128)
	return "{id: " + long + ", serial: " + long + ", wwn: " + long + ", model: " + long + ", sizeBytes: 1125899906842624}"
}

// formerTargetRefusals are those of the owner from whom a disk may be taken over.
func formerTargetRefusals() refusals {
	const owner = "{cluster: c2, namespace: lab, fileSystem: old, node: n9}"
	values := map[string]string{"owner": owner, "fileSystemUID": "u-9", "type": "MooseFS", "target": "old-ssd-1", "uuid": "u-1", "serverID": "1", "targetID": "1"}
	at := func(field string) string {
		var parts []string
		for name, value := range values {
			if name == field {
				value = "%s"
			}
			parts = append(parts, name+": "+value)
		}
		return "spec: {takeOverFrom: {" + strings.Join(parts, ", ") + "}}"
	}
	all := formerOwnerRefusals("spec.takeOverFrom.owner", at("owner"))
	for name, longest := range map[string]int{"fileSystemUID": 64, "target": 253, "uuid": 36} {
		all = all.join(boundRefusals("spec.takeOverFrom."+name, at(name), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", longest+1): fmt.Sprintf("may not be more than %d bytes", longest), "null": "Required value",
		}))
	}
	for _, name := range []string{"serverID", "targetID"} {
		all = all.join(boundRefusals("spec.takeOverFrom."+name, at(name), map[string]string{
			"-1": "should be greater than or equal to 0", "65536": "should be less than or equal to 65535",
		}))
	}
	return all.join(boundRefusals("spec.takeOverFrom.owner", at("owner"), map[string]string{"null": "Required value"}),
		boundRefusals("spec.takeOverFrom.type", at("type"), map[string]string{"CephFS": `supported values: "MooseFS", "BeeGFS", "Lustre"`, "null": "Required value"}))
}
