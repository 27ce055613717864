//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// beegfs changes the FileSystem in goodManifests to a BeeGFS with only the required fields.
const beegfs = `
spec:
  type: BeeGFS
  version: 7.4.6
  moosefs: null
  beegfs:
    management:
      nodeSelector: {management: ""}
      targets: {directories: [/data/management]}
  storagePools:
  - {name: ssd, copies: 1, nodeSelector: {storage: ""}, targets: {directories: [/data/ssd]}}
`

// asBeeGFS changes rows so that their initial object is a BeeGFS.
func asBeeGFS(rows refusals) refusals {
	out := refusals{}
	for sentence, row := range rows {
		if row.before == "" {
			row.change = beegfs + "\n---\n" + row.change
		} else {
			row.before = beegfs + "\n---\n" + row.before
		}
		out["BeeGFS: "+sentence] = row
	}
	return out
}

const (
	ofBeeGFS            = "spec.beegfs belongs to type BeeGFS, which requires it: spec.beegfs.management says where the management service runs"
	ofAMooseFS          = "spec.moosefs belongs to type MooseFS"
	networkOfBeeGFS     = "a MooseFS does not have spec.network yet, because its clients are known by the InternalIP of their nodes; it uses the interface that has that address"
	partsOfBeeGFS       = "spec.metadataServers.beegfs and spec.storagePools[].beegfs belong to type BeeGFS"
	versionOfBeeGFS     = "BeeGFS runs in version 7.4.x or 8.x.y; set spec.version to one such as 7.4.6 or 8.3.1"
	onlyBeeGFS8         = "spec.beegfs.tls and spec.beegfs.license belong to BeeGFS 8; BeeGFS 7 knows neither"
	directoryEach       = "every metadata server keeps its metadata in one directory of its own; give as many spec.metadataServers.targets.directories as spec.metadataServers.instancesPerNode"
	diskEach            = "every metadata server keeps its metadata on one disk of its own; spec.metadataServers.targets.select.countPerNode must equal spec.metadataServers.instancesPerNode, or be absent"
	copiesOfBeeGFS      = "copies of a BeeGFS pool, which can't be changed later, are 1, or 2 by buddy mirroring, which needs two nodes and a license"
	copiesStay          = "copies of a BeeGFS pool can't be changed: its files keep the stripe pattern that they were made with"
	serversStay         = "metadata servers can't be taken away: their metadata can't be moved elsewhere"
	poolOfDrained       = "a storage pool of a BeeGFS can't be named draining: targets that are being drained go to a pool of that name"
	oneStore            = "the management service keeps its store in one place; give exactly one of spec.beegfs.management.targets.directories or devices, or a select with countPerNode 1 or none"
	storeStays          = "spec.beegfs.management.targets can't be changed: the store would be left behind"
	storeApart          = "the directory of spec.beegfs.management.targets must not equal, contain or lie in a metadata directory or a storage pool's directory"
	mountInStore        = "spec.clients.mountPath must not equal, contain or lie in the directory of the management service"
	portStays           = "spec.beegfs.basePort can't be changed, set or removed later: daemons and clients know each other by address and port; status.beegfs.basePort says which ports are used"
	mirrorStays         = "spec.beegfs.mirrorMetadata can't be turned off again: BeeGFS has no way back from mirrored metadata"
	aChunkSize          = "a chunk size of BeeGFS is a power of two from 64Ki to 2Gi, such as 512Ki or 1Mi"
	anInterface         = `should match '^[A-Za-z0-9][A-Za-z0-9_.:-]*$'`
	metaDirectoriesStay = "a metadata directory can't be changed or taken away: the metadata would be left behind; add new ones at the end of the list"
	metaDevicesStay     = "a metadata device can't be changed or taken away: the metadata would be left behind; add new ones at the end of the list"
	roomToAdopt         = "spec.beegfs.adopt has room for 128 servers and targets in all: it is for directories, which are for evaluation only; disks record their ids themselves"
	metaCountGrows      = "select.countPerNode of the metadata can only grow: metadata can't be moved to fewer disks"
	tooLow, tooHigh     = "should be greater than or equal to ", "should be less than or equal to "
	aResource           = "a resource of a device plugin is a domain, a slash and a name, such as rdma/hca_shared_devices_a"
	aNetwork            = "should match '^[0-9A-Fa-f.:]+/[0-9]{1,3}$'"
	resourceUnused      = "spec.beegfs.rdmaResource gives devices to servers that don't use RDMA; remove it, or set spec.beegfs.rdma to Auto or Required"
	managementTargets   = "spec: {beegfs: {management: {targets: null}}}\n---\nspec: {beegfs: {management: {targets: %s}}}"
)

// twoMetadataServers has two servers on each node, with a directory each.
const twoMetadataServers = "spec: {metadataServers: {instancesPerNode: 2, targets: {directories: [/data/m0, /data/m1]}}}"

// beePool returns a patch that leaves one storage pool of a BeeGFS, with additional fields.
func beePool(fields string) string {
	return `spec: {storagePools: [{name: ssd, nodeSelector: {storage: ""}, targets: {directories: [/data/ssd]}, ` + fields + `}]}`
}

// beeOwnPool returns a patch with fields of the pool that only BeeGFS has.
func beeOwnPool(fields string) string { return beePool("copies: 1, beegfs: {" + fields + "}") }

// metadataDevices returns devices for the metadata on two nodes.
func metadataDevices(ids ...string) string {
	var b []string
	for _, id := range ids {
		b = append(b, "{node: n1, id: "+id+"}", "{node: n2, id: "+id+"}")
	}
	return put(metadataTargets, "{devices: ["+strings.Join(b, ", ")+"]}")
}

// mooseFSHasNone holds the rows about fields that MooseFS does not have.
var mooseFSHasNone = refusals{
	"MooseFS has what is BeeGFS's":    {change: `spec: {beegfs: {management: {nodeSelector: {m: ""}, targets: {directories: [/data/mgmt]}}}}`, field: "spec", says: ofBeeGFS},
	"its master has what is BeeGFS's": {change: "spec: {metadataServers: {beegfs: {workerThreads: 4}}}", field: "spec", says: partsOfBeeGFS},
	"its pool has what is BeeGFS's":   {change: beePool("beegfs: {workerThreads: 4}"), field: "spec", says: partsOfBeeGFS},
	"its pool has what is Lustre's":   {change: beePool("lustre: {layout: [{osts: 4}]}"), field: "spec", says: partsOfLustre},
	"MooseFS has network interfaces":  {change: "spec: {network: {interfaces: [ib0]}}", field: "spec", says: networkOfBeeGFS},
	"a MooseFS becomes a BeeGFS":      {before: "{}", change: beegfs, field: "spec.type", says: "spec.type can't be changed; create another FileSystem"},
}

var beegfsRefusals = asBeeGFS(refusals{
	"BeeGFS has tolerations of a metalogger": {change: "spec: {pods: {tolerationsByRole: {metadataBackup: [{key: a}]}}}", field: "spec", says: "spec.pods.tolerationsByRole.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"},
	"BeeGFS has resources of a metalogger":   {change: "spec: {pods: {resources: {metadataBackup: {requests: {cpu: '1'}}}}}", field: "spec", says: "spec.pods.resources.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"},
	"its own part is left out":               {change: "spec: {beegfs: null}", field: "spec", says: ofBeeGFS},
	"the management service is left out":     {change: "spec: {beegfs: {management: null}}", field: "spec.beegfs.management", says: "Required value"},
	"it has what is MooseFS's":               {change: "spec: {moosefs: {}}", field: "spec", says: ofAMooseFS},
	"the version is an older one":            {change: "spec: {version: 7.3.4}", field: "spec", says: versionOfBeeGFS},
	"the version is a branch":                {change: `spec: {version: "8.3"}`, field: "spec", says: versionOfBeeGFS},
	"the version is a later major one":       {change: "spec: {version: 9.0.0}", field: "spec", says: versionOfBeeGFS},
	"the version has more behind it":         {change: "spec: {version: 7.4.6-rc1}", field: "spec", says: versionOfBeeGFS},
	"version 7 has a certificate":            {change: "spec: {beegfs: {tls: {name: cert}}}", field: "spec", says: onlyBeeGFS8},
	"version 7 has a license":                {change: "spec: {beegfs: {license: {name: license}}}", field: "spec", says: onlyBeeGFS8},
	"two servers share a directory":          {change: "spec: {metadataServers: {instancesPerNode: 2}}", field: "spec", says: directoryEach},
	"a server has two directories":           {change: "spec: {metadataServers: {targets: {directories: [/data/m0, /data/m1]}}}", field: "spec", says: directoryEach},
	"two servers share a selected disk":      {change: put(metadataTargets, "{select: {countPerNode: 1}}") + "\n---\nspec: {metadataServers: {instancesPerNode: 2}}", field: "spec", says: diskEach},
	"a server has two selected disks":        {change: put(metadataTargets, "{select: {countPerNode: 2}}"), field: "spec", says: diskEach},
	"copies that were left out are made two": {before: beePool("copies: null"), change: beePool("copies: 2"), field: "spec", says: copiesStay},
	"a pool keeps three copies":              {change: beePool("copies: 3"), field: "spec", says: copiesOfBeeGFS},
	"a pool is called as that of drained":    {change: `spec: {storagePools: [{name: draining, copies: 1, nodeSelector: {s: ""}, targets: {directories: [/data/ssd]}}]}`, field: "spec", says: poolOfDrained},
	"the copies of a pool are changed":       {before: "{}", change: beePool("copies: 2"), field: "spec", says: copiesStay},
	"the metadata servers are made fewer":    {before: twoMetadataServers, change: "spec: {metadataServers: {instancesPerNode: 1}}", field: "spec", says: serversStay},
	"the store is in two directories":        {change: put(managementTargets, "{directories: [/data/a, /data/b]}"), field: "spec.beegfs.management.targets", says: oneStore},
	"the store is on two devices":            {change: put(managementTargets, "{devices: [{node: n1, id: wwn-0x5000}, {node: n1, id: wwn-0x5001}]}"), field: "spec.beegfs.management.targets", says: oneStore},
	"the store is on two selected devices":   {change: put(managementTargets, "{select: {countPerNode: 2}}"), field: "spec.beegfs.management.targets", says: oneStore},
	"the store moves to another directory":   {before: "{}", change: put(managementTargets, "{directories: [/data/other]}"), field: "spec.beegfs.management.targets", says: storeStays},
	"the store moves to another device":      {before: put(managementTargets, "{devices: [{node: n1, id: wwn-0x5000}]}"), change: put(managementTargets, "{devices: [{node: n1, id: wwn-0x5001}]}"), field: "spec.beegfs.management.targets", says: storeStays},
	"the store is in the metadata's":         {change: put(managementTargets, "{directories: [/data/metadata/mgmt]}"), field: "spec", says: storeApart},
	"the store holds the metadata":           {change: put(managementTargets, "{directories: [/data/a]}") + "\n---\n" + put(metadataTargets, "{directories: [/data/a/meta]}"), field: "spec", says: storeApart},
	"the store is a pool's directory":        {change: put(managementTargets, "{directories: [/data/ssd]}"), field: "spec", says: storeApart},
	"clients mount in the store":             {change: clients("/data/management/mnt"), field: "spec", says: mountInStore},
	"clients mount over the store":           {change: put(managementTargets, "{directories: [/data/a/b]}") + "\n---\n" + clients("/data/a"), field: "spec", says: mountInStore},
	"the first port is changed":              {before: "spec: {beegfs: {basePort: 8000}}", change: "spec: {beegfs: {basePort: 9000}}", field: "spec.beegfs", says: portStays},
	"the first port is set later":            {before: "{}", change: "spec: {beegfs: {basePort: 8000}}", field: "spec.beegfs", says: portStays},
	"the first port is removed":              {before: "spec: {beegfs: {basePort: 8000}}", change: "spec: {beegfs: {basePort: null}}", field: "spec.beegfs", says: portStays},
	"mirroring is turned off again":          {before: "spec: {beegfs: {mirrorMetadata: true}}", change: "spec: {beegfs: {mirrorMetadata: false}}", field: "spec.beegfs", says: mirrorStays},
	"mirroring is left out later":            {before: "spec: {beegfs: {mirrorMetadata: true}}", change: "spec: {beegfs: {mirrorMetadata: null}}", field: "spec.beegfs", says: mirrorStays},
	"a metadata directory is changed":        {before: twoMetadataServers, change: "spec: {metadataServers: {targets: {directories: [/data/m0, /data/m2]}}}", field: "spec.metadataServers.targets", says: metaDirectoriesStay},
	"two servers swap their directories":     {before: twoMetadataServers, change: "spec: {metadataServers: {targets: {directories: [/data/m1, /data/m0]}}}", field: "spec.metadataServers.targets", says: metaDirectoriesStay},
	"a new server goes before the old ones":  {before: twoMetadataServers, change: "spec: {metadataServers: {instancesPerNode: 3, targets: {directories: [/data/m2, /data/m0, /data/m1]}}}", field: "spec.metadataServers.targets", says: metaDirectoriesStay},
	"a metadata device is changed":           {before: metadataDevices("wwn-0x5000"), change: metadataDevices("wwn-0x5001"), field: "spec.metadataServers.targets", says: metaDevicesStay},
	"two servers swap their devices":         {before: metadataDevices("wwn-0x5000", "wwn-0x5001"), change: metadataDevices("wwn-0x5001", "wwn-0x5000"), field: "spec.metadataServers.targets", says: metaDevicesStay},
	"a metadata device gets another log":     {before: put(metadataTargets, "{devices: [{node: n1, id: wwn-0x5000}]}"), change: put(metadataTargets, "{devices: [{node: n1, id: wwn-0x5000, logDevice: wwn-0x5001}]}"), field: "spec.metadataServers.targets", says: metaDevicesStay},
	"fewer metadata disks are selected":      {before: put(metadataTargets, "{select: {countPerNode: 2}}") + "\n---\nspec: {metadataServers: {instancesPerNode: 2}}", change: "spec: {metadataServers: {instancesPerNode: 1, targets: {select: {countPerNode: 1}}}}", field: "spec.metadataServers.targets", says: metaCountGrows},
	"there are no interfaces":                {change: "spec: {network: {interfaces: []}}", field: "spec.network.interfaces", says: "should have at least 1 items"},
	"there are 17 interfaces":                {change: "spec: {network: {interfaces: " + listOf(17, "ib%d") + "}}", field: "spec.network.interfaces", says: "must have at most 16 items"},
	"an interface is named twice":            {change: "spec: {network: {interfaces: [ib0, ib0]}}", field: "spec.network.interfaces[]", says: "Duplicate value"},
	"RDMA is disabled and has a resource":    {change: "spec: {beegfs: {rdma: Disabled, rdmaResource: rdma/hca_a}}", field: "spec.beegfs", says: resourceUnused},
	"the management has no targets":          {change: "spec: {beegfs: {management: {targets: null}}}", field: "spec.beegfs.management.targets", says: "Required value"},
}.join(
	boundRefusals("spec.network.interfaces[]", "spec: {network: {interfaces: [%s]}}", map[string]string{
		`""`: "should be at least 1 chars long", "enp195s0f0np0v10": "may not be more than 15 bytes",
		`"ib0 *"`: anInterface, `"! eth0"`: anInterface, `"*"`: anInterface, `"ib0\neth0"`: anInterface, `"../x"`: anInterface,
	}),
	boundRefusals("spec.beegfs.basePort", "spec: {beegfs: {basePort: %s}}", map[string]string{"1023": tooLow + "1024", "65473": tooHigh + "65472"}),
	boundRefusals("spec.beegfs.targetChooser", "spec: {beegfs: {targetChooser: %s}}", map[string]string{
		"randomized": `supported values: "Randomized", "RoundRobin", "RandomRobin", "RandomInterNode"`,
	}),
	boundRefusals("spec.beegfs.rdma", "spec: {beegfs: {rdma: %s}}", map[string]string{
		"auto": `supported values: "Auto", "Required", "Disabled"`, "off": "must be of type string", "true": "must be of type string",
	}),
	boundRefusals("spec.beegfs.rdmaResource", "spec: {beegfs: {rdmaResource: %s}}", map[string]string{
		`""`: "should be at least 3 chars long", "a/" + strings.Repeat("b", 316): "may not be more than 317 bytes",
		"hca_shared_devices_a": aResource, "rdma/hca/a": aResource, "RDMA/hca": aResource, `"rdma/hca a"`: aResource,
	}),
	boundRefusals("spec.beegfs.clientRDMAInterfaces[]", "spec: {beegfs: {clientRDMAInterfaces: [%s]}}", map[string]string{
		`"ib0 *"`: anInterface, `""`: "should be at least 1 chars long", strings.Repeat("i", 16): "may not be more than 15 bytes", "ib0, ib0": "Duplicate value",
	}),
	itemsRefusals("spec.beegfs.clientRDMAInterfaces", "spec: {beegfs: {clientRDMAInterfaces: %s}}", "ib%d"),
	itemsRefusals("spec.beegfs.networks", "spec: {beegfs: {networks: %s}}", "10.0.%d.0/24"),
	itemsRefusals("spec.beegfs.tcpNetworks", "spec: {beegfs: {tcpNetworks: %s}}", "10.0.%d.0/24"),
	boundRefusals("spec.beegfs.networks[]", "spec: {beegfs: {networks: [%s]}}", map[string]string{
		"10.0.0.0": aNetwork, `"10.0.0.0/8 *"`: aNetwork, `""`: "should be at least 4 chars long", `"` + strings.Repeat("1", 44) + `"`: "may not be more than 43 bytes",
		"10.0.0.0/8, 10.0.0.0/8": "Duplicate value",
	}),
	boundRefusals("spec.beegfs.tcpNetworks[]", "spec: {beegfs: {tcpNetworks: [%s]}}", map[string]string{
		"ib0/24": aNetwork, `""`: "should be at least 4 chars long", `"` + strings.Repeat("1", 44) + `"`: "may not be more than 43 bytes", "10.0.0.0/8, 10.0.0.0/8": "Duplicate value",
	}),
	boundRefusals("spec.metadataServers.nodeCount", "spec: {metadataServers: {nodeCount: %s}}", map[string]string{"0": tooLow + "1", "1025": tooHigh + "1024"}),
	boundRefusals("spec.metadataServers.beegfs.workerThreads", "spec: {metadataServers: {beegfs: {workerThreads: %s}}}", map[string]string{"0": tooLow + "1", "4097": tooHigh + "4096"}),
	boundRefusals("spec.storagePools[].beegfs.workerThreads", beeOwnPool("workerThreads: %s"), map[string]string{"0": tooLow + "1", "4097": tooHigh + "4096"}),
	boundRefusals("spec.storagePools[].beegfs.striping.targetsPerFile", beeOwnPool("striping: {targetsPerFile: %s}"), map[string]string{
		"0": tooLow + "1", "257": tooHigh + "256",
	}),
	boundRefusals("spec.storagePools[].beegfs.striping.chunkSize", beeOwnPool("striping: {chunkSize: %s}"), map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		`"0"`: aChunkSize, "-1Gi": aChunkSize, "large": aChunkSize, "1GiB": aChunkSize, "65536": "must be of type string",
		"32Ki": aChunkSize, "512k": aChunkSize, "1000Ki": aChunkSize, "4Gi": aChunkSize, "768Ki": aChunkSize, `"524288.5"`: aChunkSize,
	}),
	secretRefusals("spec.beegfs.tls", "spec: {version: 8.3.1, beegfs: {tls: %s}}"),
	secretRefusals("spec.beegfs.license", "spec: {version: 8.3.1, beegfs: {license: %s}}"),
	adoptRefusals("spec.beegfs.adopt", "spec: {beegfs: {adopt: %s}}"),
	roleSelectorRefusals("spec.beegfs.management.nodeSelector", "spec: {beegfs: {management: {nodeSelector: null}}}\n---\nspec: {beegfs: {management: {nodeSelector: %s}}}"),
	directoriesRefusals("spec.beegfs.management.targets.directories", managementTargets),
	targetsRefusals("spec.beegfs.management.targets", managementTargets),
	pathRefusals("spec.beegfs.management.targets.directories[]", "spec: {beegfs: {management: {targets: {directories: [%s]}}}}"),
	optionsRefusals("spec.beegfs.config.management", "spec: {beegfs: {config: {management: %s}}}"),
	optionsRefusals("spec.beegfs.config.metadata", "spec: {beegfs: {config: {metadata: %s}}}"),
	optionsRefusals("spec.beegfs.config.storage", "spec: {beegfs: {config: {storage: %s}}}"),
	optionsRefusals("spec.beegfs.config.client", "spec: {beegfs: {config: {client: %s}}}"),
))

// secretRefusals returns the rows of a SecretReference.
func secretRefusals(field, inside string) refusals {
	return refusals{field + " has no name": {change: put(inside, "{}"), field: field + ".name", says: "Required value"}}.join(
		boundRefusals(field+".name", put(inside, "{name: %s}"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
		}))
}

// adoptRefusals returns the rows of a list of GivenIDs.
func adoptRefusals(field, inside string) refusals {
	long := func(n int) string { return strings.Repeat("n", n) }
	node := put(inside, "[{node: n1, members: [%s]}]")
	member := put(node, "{name: meta-0, id: 1, targets: [%s]}")
	members, targets := field+"[].members", field+"[].members[].targets"
	return refusals{
		field + " has 33 nodes": {change: put(inside, listOf(33, "{node: n%d, members: [{name: meta-0, id: 1}]}")), field: field, says: "must have at most 32 items"},
		field + " has 129 ids": {change: put(inside, "[{node: n1, members: "+listOf(32, "{name: m%d, id: 1, targets: [{name: a, id: 1}, {name: b, id: 1}, {name: c, id: 1}]}")+
			"}, {node: n2, members: [{name: meta-0, id: 1}]}]"), field: field, says: roomToAdopt},
		field + " has a node twice":          {change: put(inside, listOf(2, "{node: n1, members: [{name: meta-0, id: %d1}]}")), field: field + "[]", says: "Duplicate value"},
		field + " has a nameless node":       {change: put(inside, "[{members: [{name: meta-0, id: 1}]}]"), field: field + "[].node", says: "Required value"},
		field + " has a node without server": {change: put(inside, "[{node: n1}]"), field: members, says: "Required value"},
		field + " has a node of no servers":  {change: put(inside, "[{node: n1, members: []}]"), field: members, says: "should have at least 1 items"},
		field + " has 33 servers of a node":  {change: put(inside, "[{node: n1, members: "+listOf(33, "{name: m%d, id: 1}")+"}]"), field: members, says: "must have at most 32 items"},
		field + " has a server twice":        {change: put(node, "{name: meta-0, id: 1}, {name: meta-0, id: 2}"), field: members + "[]", says: "Duplicate value"},
		field + " has a nameless server":     {change: put(node, "{id: 1}"), field: members + "[].name", says: "Required value"},
		field + " has a server without id":   {change: put(node, "{name: meta-0}"), field: members + "[].id", says: "Required value"},
		field + " has 17 targets":            {change: put(node, "{name: meta-0, id: 1, targets: "+listOf(17, "{name: t%d, id: 1}")+"}"), field: targets, says: "must have at most 16 items"},
		field + " has a target twice":        {change: put(member, "{name: t, id: 1}, {name: t, id: 2}"), field: targets + "[]", says: "Duplicate value"},
		field + " has a nameless target":     {change: put(member, "{id: 1}"), field: targets + "[].name", says: "Required value"},
		field + " has a target without id":   {change: put(member, "{name: t}"), field: targets + "[].id", says: "Required value"},
	}.join(
		boundRefusals(field+"[].node", put(inside, "[{node: %s, members: [{name: meta-0, id: 1}]}]"), map[string]string{
			`""`: "should be at least 1 chars long", long(254): "may not be more than 253 bytes",
		}),
		boundRefusals(members+"[].name", put(node, "{name: %s, id: 1}"), map[string]string{`""`: "should be at least 1 chars long", long(64): "may not be more than 63 bytes"}),
		boundRefusals(members+"[].id", put(node, "{name: meta-0, id: %s}"), map[string]string{"0": tooLow + "1", "65536": tooHigh + "65535"}),
		boundRefusals(targets+"[].name", put(member, "{name: %s, id: 1}"), map[string]string{`""`: "should be at least 1 chars long", long(129): "may not be more than 128 bytes"}),
		boundRefusals(targets+"[].id", put(member, "{name: t, id: %s}"), map[string]string{"0": tooLow + "1", "65536": tooHigh + "65535"}),
	)
}

var beegfsAccepted = map[string]string{
	"it has only what is required": "{}",
	"it has everything that there is": `
spec:
  version: 8.3.1
  beegfs:
    basePort: 65472
    targetChooser: RandomRobin
    mirrorMetadata: true
    tls: {name: mgmtd-tls}
    license: {name: beegfs-license}
    rdma: Required
    rdmaResource: nvidia.com/hca_shared-devices_a.1
    clientRDMAInterfaces: [ib0, ib1]
    networks: [10.1.0.0/16, "fd00::/64"]
    tcpNetworks: [10.1.9.0/24]
    csiDriver: true
    management:
      targets: {directories: null, devices: [{node: n1, id: nvme-eui.0025385b71b0c4a1}], format: {fsType: ext4}, queue: {scheduler: none}}
    config:
      management: {quota-enable: "false", sysAllowNewServers: "true"}
      metadata: {tuneTargetChooser: randomized}
      storage: {tuneFileReadSize: 128k}
      client: {tuneFileCacheType: native}
    adopt:
    - node: n1
      members:
      - {name: meta-0, id: 1, targets: [{name: /data/metadata, id: 1}]}
      - {name: storage-ssd, id: 65535, targets: [{name: /data/ssd, id: 65535}]}
  network: {interfaces: [ib0, enp195s0f0np0, eth0.100, "bond0:1"]}
  metadataServers:
    instancesPerNode: 16
    beegfs: {workerThreads: 4096}
    targets: {directories: null, select: {mediaType: SSD, countPerNode: 16}, format: {fsType: ext4, mkfsOptions: ["-i", "2048", "-I", "512"]}}
    cpuPinning: {mode: NUMANode, numaNodes: [0, 1]}
  storagePools:
  - name: ssd
    copies: 2
    nodeSelector: {storage: ""}
    targets: {select: {mediaType: SSD, countPerNode: 8}}
    cpuPinning: {mode: CPUSet, cpuSets: ["0-7"]}
    beegfs: {workerThreads: 14, striping: {chunkSize: 2Gi, targetsPerFile: 256}}
  - name: hdd
    copies: 1
    nodeSelector: {storage: ""}
    targets: {directories: [/data/hdd]}
    beegfs: {striping: {chunkSize: "65536"}}
  clients: {nodeSelector: {client: ""}, mountPath: /mnt/scratch}
`,
	"a chunk size is written in another way": beeOwnPool(`striping: {chunkSize: "1048576"}`),
	"the latest version of 7.4":              "spec: {version: 7.4.6}",
	"several servers have disks by name":     metadataDevices("wwn-0x5000", "wwn-0x5001") + "\n---\nspec: {metadataServers: {instancesPerNode: 2}}",
	"it is as large as it can be":            largestBeeGFS,
}

var beegfsChanges = map[string]string{
	"a metadata server is added to each node":      "spec: {metadataServers: {instancesPerNode: 2, targets: {directories: [/data/metadata, /data/m1]}}}",
	"a storage target is added":                    `spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ""}, targets: {directories: [/data/ssd, /data/ssd2]}}]}`,
	"a pool with mirrors is added":                 `spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ""}, targets: {directories: [/data/ssd]}}, {name: safe, copies: 2, nodeSelector: {storage: ""}, targets: {directories: [/data/safe]}}]}`,
	"the metadata is mirrored from now on":         "spec: {beegfs: {mirrorMetadata: true}}",
	"the interfaces are changed":                   "spec: {network: {interfaces: [ib0]}}",
	"the striping is changed":                      beeOwnPool("striping: {chunkSize: 1Mi, targetsPerFile: 8}"),
	"the worker threads are changed":               "spec: {metadataServers: {beegfs: {workerThreads: 40}}}",
	"the target chooser is changed":                "spec: {beegfs: {targetChooser: RoundRobin}}",
	"the metadata servers are bound to NUMA nodes": put(metadataPinning, "{mode: NUMANode, numaNodes: [0, 1]}"),
	"ids of an earlier one are adopted":            "spec: {beegfs: {adopt: [{node: n1, members: [{name: meta-0, id: 7}]}]}}",
	"an option of the clients is set":              "spec: {beegfs: {config: {client: {tuneFileCacheType: native}}}}",
	"the nodes of the management are changed":      `spec: {beegfs: {management: {nodeSelector: {management: null, other: ""}}}}`,
}

// largestBeeGFS has changes that make a BeeGFS as large as possible: 16 metadata servers, 12 pools of 16 directories of 128 characters, and
// 128 ids of 32 nodes.
var largestBeeGFS = "spec: {metadataServers: {instancesPerNode: 16, targets: {directories: " + listOf(16, "/data/meta-%02d-"+strings.Repeat("d", 114)) + "}}}\n---\n" +
	put(managementTargets, "{directories: [/data/management-"+strings.Repeat("d", 111)+"]}") + "\n---\n" +
	"spec: {storagePools: [" + strings.ReplaceAll(strings.Join(fullPools(), ", "), "nodeSelector",
	"beegfs: {workerThreads: 4096, striping: {chunkSize: 2Gi}}, copies: 1, nodeSelector") + "]}\n---\n" +
	fmt.Sprintf("spec: {beegfs: {adopt: %s}}", listOf(32, "{node: "+strings.Repeat("n", 251)+"%02d, members: [{name: "+strings.Repeat("m", 63)+", id: 65535, targets: "+
		"[{name: /a"+strings.Repeat("d", 126)+", id: 65535}, {name: /b"+strings.Repeat("d", 126)+", id: 65535}, {name: /c"+strings.Repeat("d", 126)+", id: 65535}]}]}"))

// itemsRefusals returns the rows of a list with 1 to 16 items.
func itemsRefusals(field, inside, item string) refusals {
	return refusals{
		field + " is empty":     {change: put(inside, "[]"), field: field, says: "should have at least 1 items"},
		field + " has 17 items": {change: put(inside, listOf(17, item)), field: field, says: "must have at most 16 items"},
	}
}
