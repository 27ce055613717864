//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

const aLabelKey = `should match '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'`

const ofMooseFS = "MooseFS runs in version 3.0.117 to 3.0.x, or 4.57.x to 4.59.x; set spec.version to one such as 4.57.5"

const mooseFSPortsStay = "spec.moosefs.basePort can't be changed, set or removed later: chunkservers are known to the master by address and port; status.chosen.basePort says which ports are used where it is absent"

const oneKindOfNodes = "set exactly one of names and selector in spec.nodes"

const windows = "spec.updates.windows[]"

const maintenanceLimit = "spec.updates.maintenance.limit"

// maintenance returns a patch with this limit of a maintenance.
func maintenance(limit string) string {
	return "spec: {updates: {maintenance: {limit: " + limit + "}}}"
}

// window returns a patch with one window.
func window(fields string) string { return "spec: {updates: {windows: [{" + fields + "}]}}" }

var fileSystemRefusals = refusals{
	"there is no spec":                   {change: "spec: null", field: "spec", says: "Required value"},
	"its name has 41 characters":         {change: "metadata: {name: " + strings.Repeat("n", 41) + "}", field: "<nil>", says: "metadata.name of a FileSystem has at most 40 characters, because the names of its daemons start with it"},
	"the type is not known":              {change: "spec: {type: GPFS}", field: "spec.type", says: `supported values: "MooseFS", "BeeGFS", "Lustre"`},
	"the type is left out":               {change: "spec: {type: null}", field: "spec.type", says: "Required value"},
	"the version is empty":               {change: `spec: {version: ""}`, field: "spec.version", says: "should be at least 1 chars long"},
	"the version is 33 long":             {change: "spec: {version: v" + strings.Repeat("1", 32) + "}", field: "spec.version", says: "may not be more than 32 bytes"},
	"the version is too old":             {change: "spec: {version: 3.0.116}", field: "spec", says: ofMooseFS},
	"the version was never run":          {change: "spec: {version: 4.56.6}", field: "spec", says: ofMooseFS},
	"the version is one to come":         {change: "spec: {version: 4.60.0}", field: "spec", says: ofMooseFS},
	"the first port is privileged":       {change: "spec: {moosefs: {basePort: 1023}}", field: "spec.moosefs.basePort", says: "should be greater than or equal to 1024"},
	"the last port would be above 65535": {change: "spec: {moosefs: {basePort: 65505}}", field: "spec.moosefs.basePort", says: "should be less than or equal to 65504"},

	"the failure domains name no label":                    {change: "spec: {failureDomains: {}}", field: "spec.failureDomains.label", says: "Required value"},
	"the label of the failure domains is empty":            {change: `spec: {failureDomains: {label: ""}}`, field: "spec.failureDomains.label", says: "should be at least 1 chars long"},
	"the label of the failure domains is 318 long":         {change: "spec: {failureDomains: {label: " + strings.Repeat("r", 318) + "}}", field: "spec.failureDomains.label", says: "may not be more than 317 bytes"},
	"the label of the failure domains is no label":         {change: "spec: {failureDomains: {label: rack=1}}", field: "spec.failureDomains.label", says: aLabelKey},
	"the label of the failure domains has two slashes":     {change: "spec: {failureDomains: {label: a/b/c}}", field: "spec.failureDomains.label", says: aLabelKey},
	"the label of the failure domains has a name of 64":    {change: "spec: {failureDomains: {label: a/" + strings.Repeat("r", 64) + "}}", field: "spec.failureDomains.label", says: aLabelKey},
	"the label of the failure domains has a prefix of 255": {change: "spec: {failureDomains: {label: " + strings.Repeat(strings.Repeat("r", 63)+".", 3) + strings.Repeat("r", 63) + "/rack}}", field: "spec.failureDomains.label", says: "the prefix of a label's key has at most 253 characters"},
	"no server may be restarted":                           {change: "spec: {updates: {maxUnavailable: 0}}", field: "spec.updates.maxUnavailable", says: "should be greater than or equal to 1"},
	"65 servers may be restarted together":                 {change: "spec: {updates: {maxUnavailable: 65}}", field: "spec.updates.maxUnavailable", says: "should be less than or equal to 64"},

	"clients follow by another rule":           {change: "spec: {updates: {clients: Never}}", field: "spec.updates.clients", says: `supported values: "Manual", "Now"`},
	"an upgrade without a backup is empty":     {change: `spec: {updates: {upgradeWithoutBackup: ""}}`, field: "spec.updates.upgradeWithoutBackup", says: "should be at least 1 chars long"},
	"an upgrade without a backup is 33 long":   {change: "spec: {updates: {upgradeWithoutBackup: v" + strings.Repeat("1", 32) + "}}", field: "spec.updates.upgradeWithoutBackup", says: "may not be more than 32 bytes"},
	"the limit of a maintenance is empty":      {change: maintenance(`""`), field: maintenanceLimit, says: "should be at least 2 chars long"},
	"the limit of a maintenance is 33 long":    {change: maintenance(strings.Repeat("0", 31) + "4h"), field: maintenanceLimit, says: "may not be more than 32 bytes"},
	"the limit of a maintenance is in days":    {change: maintenance("1d"), field: maintenanceLimit, says: aDuration},
	"a maintenance may last for four minutes":  {change: maintenance("4m"), field: maintenanceLimit, says: "spec.updates.maintenance.limit must be from 5m to 168h"},
	"a maintenance may last for over a week":   {change: maintenance("169h"), field: maintenanceLimit, says: "spec.updates.maintenance.limit must be from 5m to 168h"},
	"the list of windows is empty":             {change: "spec: {updates: {windows: []}}", field: "spec.updates.windows", says: "should have at least 1 items"},
	"there are 17 windows":                     {change: "spec: {updates: {windows: " + listOf(17, `{schedule: "0 %d * * 6", duration: 4h}`) + "}}", field: "spec.updates.windows", says: "must have at most 16 items"},
	"a window has no schedule":                 {change: window(`duration: 4h`), field: windows + ".schedule", says: "Required value"},
	"the schedule of a window has four fields": {change: window(`schedule: "0 2 * *", duration: 4h`), field: windows + ".schedule", says: "should be at least 9 chars long"},
	"the schedule of a window is 129 long":     {change: window(`schedule: "` + strings.Repeat("0", 121) + ` 2 * * 6", duration: 4h`), field: windows + ".schedule", says: "may not be more than 128 bytes"},
	"the schedule of a window names a zone":    {change: window(`schedule: "TZ=UTC 0 2 * * 6", duration: 4h`), field: windows + ".schedule", says: "should match '^[0-9A-Za-z*,/?-]+( +[0-9A-Za-z*,/?-]+){4}$'"},
	"a window has no duration":                 {change: window(`schedule: "0 2 * * 6"`), field: windows + ".duration", says: "Required value"},
	"a window's duration is empty":             {change: window(`schedule: "0 2 * * 6", duration: ""`), field: windows + ".duration", says: "should be at least 2 chars long"},
	"a window's duration is 33 long":           {change: window(`schedule: "0 2 * * 6", duration: ` + strings.Repeat("0", 31) + `4h`), field: windows + ".duration", says: "may not be more than 32 bytes"},
	"a window's duration is in days":           {change: window(`schedule: "0 2 * * 6", duration: 1d`), field: windows + ".duration", says: aDuration},
	"a window is open for four minutes":        {change: window(`schedule: "0 2 * * 6", duration: 4m`), field: windows + ".duration", says: "spec.updates.windows.duration must be from 5m to 168h"},
	"a window is open for more than a week":    {change: window(`schedule: "0 2 * * 6", duration: 169h`), field: windows + ".duration", says: "spec.updates.windows.duration must be from 5m to 168h"},
	"a window's time zone is empty":            {change: window(`schedule: "0 2 * * 6", duration: 4h, timeZone: ""`), field: windows + ".timeZone", says: "should be at least 1 chars long"},
	"a window's time zone is 65 long":          {change: window(`schedule: "0 2 * * 6", duration: 4h, timeZone: ` + strings.Repeat("z", 65)), field: windows + ".timeZone", says: "may not be more than 64 bytes"},
	"a window's time zone is a path":           {change: window(`schedule: "0 2 * * 6", duration: 4h, timeZone: "../etc/localtime"`), field: windows + ".timeZone", says: "should match '^[A-Za-z0-9_+/-]+$'"},

	"the metadata is left out":         {change: "spec: {metadataServers: null}", field: "spec.metadataServers", says: "Required value"},
	"there is no metadata server":      {change: "spec: {metadataServers: {instancesPerNode: 0}}", field: "spec.metadataServers.instancesPerNode", says: "should be greater than or equal to 1"},
	"there are 17 metadata servers":    {change: "spec: {metadataServers: {instancesPerNode: 17}}", field: "spec.metadataServers.instancesPerNode", says: "should be less than or equal to 16"},
	"MooseFS has two metadata servers": {change: "spec: {metadataServers: {instancesPerNode: 2}}", field: "spec", says: "MooseFS Community Edition has exactly one active master, so spec.metadataServers.instancesPerNode must be 1; several metadata servers per node need another type"},
	"MooseFS counts metadata nodes":    {change: "spec: {metadataServers: {nodeCount: 1}}", field: "spec", says: "spec.metadataServers.nodeCount belongs to types BeeGFS and Lustre; a MooseFS has exactly one master"},
	"MooseFS has two metadata targets": {change: "spec: {metadataServers: {targets: {directories: [/data/m1, /data/m2]}}}", field: "spec", says: oneMetadataTarget},
	"MooseFS has two metadata devices": {change: put(metadataTargets, "{devices: [{node: n1, id: wwn-0x5000}, {node: n1, id: wwn-0x5001}]}"), field: "spec", says: oneMetadataTarget},
	"MooseFS selects two devices":      {change: put(metadataTargets, "{select: {countPerNode: 2}}"), field: "spec", says: oneMetadataTarget},

	"the storage pools are left out":          {change: "spec: {storagePools: null}", field: "spec.storagePools", says: "Required value"},
	"there is no storage pool":                {change: "spec: {storagePools: []}", field: "spec.storagePools", says: "should have at least 1 items"},
	"there are 13 storage pools":              {change: "spec: {storagePools: " + listOf(13, `{name: p%[1]d, nodeSelector: {s: ""}, targets: {directories: [/data/p%[1]d]}}`) + "}", field: "spec.storagePools", says: "must have at most 12 items"},
	"two storage pools have one name":         {change: "spec: {storagePools: " + listOf(2, `{name: ssd, nodeSelector: {s: ""}, targets: {directories: [/data/p%d]}}`) + "}", field: "spec.storagePools[]", says: "Duplicate value"},
	"a storage pool has no name":              {change: pool("name: null"), field: "spec.storagePools[].name", says: "Required value"},
	"a storage pool's name is empty":          {change: pool(`name: ""`), field: "spec.storagePools[].name", says: "should be at least 1 chars long"},
	"a storage pool's name is 25 long":        {change: pool("name: " + strings.Repeat("a", 25)), field: "spec.storagePools[].name", says: "may not be more than 24 bytes"},
	"a storage pool's name has a slash":       {change: pool("name: a/b"), field: "spec.storagePools[].name", says: "should match '^[a-z]([a-z0-9-]*[a-z0-9])?$'"},
	"a storage pool's name is in upper case":  {change: pool("name: SSD"), field: "spec.storagePools[].name", says: "the name of a storage pool has lower-case letters, digits and dashes, begins with a letter, and does not end with a dash"},
	"a storage pool's name begins with a dot": {change: pool("name: .trash"), field: "spec.storagePools[].name", says: "should match '^[a-z]([a-z0-9-]*[a-z0-9])?$'"},
	"a storage pool keeps no copy":            {change: pool("copies: 0"), field: "spec.storagePools[].copies", says: "should be greater than or equal to 1"},
	"a storage pool keeps ten copies":         {change: pool("copies: 10"), field: "spec.storagePools[].copies", says: "should be less than or equal to 9"},

	"a pool uses the metadata directory":                 {change: pools("/data/metadata"), field: "spec", says: poolInMetadata},
	"a pool is inside the metadata directory":            {change: pools("/data/metadata/ssd"), field: "spec", says: poolInMetadata},
	"the metadata lie inside a pool's directory":         {change: "spec: {metadataServers: {targets: {directories: [/data/ssd/meta]}}}", field: "spec", says: poolInMetadata},
	"it names 513 devices, one of them for the metadata": {change: put(metadataTargets, "{devices: [{node: n1, id: wwn-0x5000}]}") + "\n---\n" + poolOfDevices(512), field: "spec", says: "a FileSystem names at most 512 devices in its metadata and its pools together; use targets.select for more"},
	"two pools use one directory":                        {change: pools("/data/a", "/data/b, /data/a"), field: "spec", says: "two storage pools must not use the same directory"},
	"a pool is inside another pool's directory":          {change: pools("/data/a", "/data/b, /data/a/b"), field: "spec", says: "a storage pool's directory must not lie inside another pool's"},

	"the nodes are named and selected":                       {change: "spec: {nodes: {names: [n1], selector: {matchLabels: {a: b}}}}", field: "spec.nodes", says: oneKindOfNodes},
	"the nodes are neither named nor selected":               {change: "spec: {nodes: {}}", field: "spec.nodes", says: oneKindOfNodes},
	"the selector of nodes would match all":                  {change: "spec: {nodes: {selector: {}}}", field: "spec.nodes.selector", says: "spec.nodes.selector selects nodes by matchLabels or matchExpressions"},
	"an expression about nodes has no key":                   {change: "spec: {nodes: {selector: {matchExpressions: [{operator: Exists}]}}}", field: "spec.nodes.selector.matchExpressions[].key", says: "Required value"},
	"an expression about nodes has no operator":              {change: "spec: {nodes: {selector: {matchExpressions: [{key: a}]}}}", field: "spec.nodes.selector.matchExpressions[].operator", says: "Required value"},
	"the list of nodes is empty":                             {change: "spec: {nodes: {names: []}}", field: "spec.nodes.names", says: "should have at least 1 items"},
	"there are 257 nodes":                                    {change: "spec: {nodes: {names: " + listOf(257, "n%d") + "}}", field: "spec.nodes.names", says: "must have at most 256 items"},
	"a node is named twice":                                  {change: "spec: {nodes: {names: [n1, n1]}}", field: "spec.nodes.names[]", says: "Duplicate value"},
	"a node has no name":                                     {change: `spec: {nodes: {names: [""]}}`, field: "spec.nodes.names[]", says: "should be at least 1 chars long"},
	"the name of a node has 254 characters":                  {change: "spec: {nodes: {names: [" + strings.Repeat("n", 254) + "]}}", field: "spec.nodes.names[]", says: "may not be more than 253 bytes"},
	"the clients' path is the metadata directory":            {change: clients("/data/metadata"), field: "spec", says: mountInMetadata},
	"the clients' path is in the metadata directory":         {change: clients("/data/metadata/mnt"), field: "spec", says: mountInMetadata},
	"the clients' path holds the metadata directory":         {change: clients("/data/fs") + "\n---\nspec: {metadataServers: {targets: {directories: [/data/fs/metadata]}}}", field: "spec", says: mountInMetadata},
	"the clients' path is where daemons keep their state":    {change: clients("/var/lib/parallelfs"), field: "spec", says: mountInMetadata},
	"the clients' path lies where daemons keep their state":  {change: clients("/var/lib/parallelfs/mnt"), field: "spec", says: mountInMetadata},
	"the clients' path holds where daemons keep their state": {change: clients("/var/lib"), field: "spec", says: mountInMetadata},
	"the clients' path is a pool's directory":                {change: clients("/data/ssd"), field: "spec", says: mountInPool},
	"the clients' path is in a pool's directory":             {change: clients("/data/ssd/mnt"), field: "spec", says: mountInPool},
	"there are 33 mount options":                             {change: mountOptions(listOf(33, "o%d")), field: "spec.clients.mountOptions", says: "must have at most 32 items"},
	"a mount option is given twice":                          {change: mountOptions("[mfsrlock, mfsrlock]"), field: "spec.clients.mountOptions[]", says: "Duplicate value"},
	"a mount option is empty":                                {change: mountOptions(`[""]`), field: "spec.clients.mountOptions[]", says: "should be at least 1 chars long"},
	"a mount option is 129 long":                             {change: mountOptions("[" + strings.Repeat("o", 129) + "]"), field: "spec.clients.mountOptions[]", says: "may not be more than 128 bytes"},
	"a mount option smuggles in another":                     {change: mountOptions(`["mfsrlock,mfspassword=x"]`), field: "spec.clients.mountOptions[]", says: "should match '^[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_./:+-]+)?$'"},
	"a mount option begins with a dash":                      {change: mountOptions("[--help]"), field: "spec.clients.mountOptions[]", says: "should match '^[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_./:+-]+)?$'"},

	"the first port is set later":                           {before: "{}", change: "spec: {moosefs: {basePort: 9500}}", field: "spec", says: mooseFSPortsStay},
	"the first port is changed":                             {before: "spec: {moosefs: {basePort: 9500}}", change: "spec: {moosefs: {basePort: 9600}}", field: "spec", says: mooseFSPortsStay},
	"the first port is taken out":                           {before: "spec: {moosefs: {basePort: 9500}}", change: "spec: {moosefs: {basePort: null}}", field: "spec", says: mooseFSPortsStay},
	"files outside of pools go to a pool that there is not": {change: "spec: {defaultStoragePool: other}", field: "spec", says: "spec.defaultStoragePool names a pool that spec.storagePools does not have"},
	"the name of the default pool has 25 characters":        {change: "spec: {defaultStoragePool: " + strings.Repeat("p", 25) + "}", field: "spec.defaultStoragePool", says: "may not be more than 24 bytes"},
	"the metadata directory is changed":                     {before: "{}", change: "spec: {metadataServers: {targets: {directories: [/data/other]}}}", field: "spec.metadataServers.targets", says: metaDirectoriesStay},
	"the clients' path is changed":                          {before: clients("/mnt/a"), change: clients("/mnt/b"), field: "spec.clients.mountPath", says: "spec.clients.mountPath can't be changed: programs that use the old path would lose their files"},
	"a storage pool is removed":                             {before: pools("/data/a", "/data/b"), change: pools("/data/a"), field: "<nil>", says: "a storage pool can't be removed once it has a slot in status.storagePools: its targets hold data, and draining a pool is not built yet"},
	"a storage pool is removed that has a slot": {
		before: pools("/data/a", "/data/b") + "\n---\nstatus: {observedGeneration: 1, storagePools: [{name: a, slot: 0}, {name: b, slot: 1}]}",
		change: pools("/data/a"), field: "<nil>", says: "a storage pool can't be removed once it has a slot",
	},
	"the clients' path is changed by removing the clients": {
		before: "spec: {clients: null}\n---\nstatus: {mountPath: /mnt/a}", change: clients("/mnt/b"), field: "<nil>",
		says: "spec.clients.mountPath can't be changed, also not by removing spec.clients: programs that use the old path, which status.mountPath records, would lose their files",
	},
	"a storage pool is renamed":         {before: "{}", change: pool("name: fast"), field: "<nil>", says: "a storage pool can't be removed"},
	"a target is removed":               {before: pools("/data/a, /data/b"), change: pools("/data/b"), field: "spec.storagePools[].targets", says: directoryStays},
	"a target is moved to another pool": {before: pools("/data/a, /data/b", "/data/c"), change: pools("/data/a", "/data/c, /data/b"), field: "spec.storagePools[].targets", says: directoryStays},
}.join(
	roleSelectorRefusals("spec.metadataServers.nodeSelector", "spec: {metadataServers: {nodeSelector: null}}\n---\nspec: {metadataServers: {nodeSelector: %s}}"),
	roleSelectorRefusals("spec.moosefs.metaloggers.nodeSelector", "spec: {moosefs: {metaloggers: {nodeSelector: %s}}}"),
	roleSelectorRefusals("spec.clients.nodeSelector", "spec: {clients: {mountPath: /mnt/scratch, nodeSelector: %s}}"),
	roleSelectorRefusals("spec.storagePools[].nodeSelector", "spec: {storagePools: [{name: ssd, targets: {directories: [/data/ssd]}, nodeSelector: %s}]}"),
	directoriesRefusals("spec.metadataServers.targets.directories", metadataTargets),
	directoriesRefusals("spec.storagePools[].targets.directories", poolTargets),
	targetsRefusals("spec.metadataServers.targets", metadataTargets),
	targetsRefusals("spec.storagePools[].targets", poolTargets),
	pinningRefusals("spec.metadataServers.cpuPinning", metadataPinning),
	pinningRefusals("spec.storagePools[].cpuPinning", poolPinning),
	boundRefusals("spec.provisioning.takeOver", "spec: {provisioning: {takeOver: %s}}", map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("n", 65): "may not be more than 64 bytes", `"a cluster"`: `should match '^[0-9A-Za-z-]+$'`,
	}),
	boundRefusals("spec.provisioning.takeOverFrom", "spec: {provisioning: {takeOverFrom: %s}}", map[string]string{listOf(65, formerOwner): "must have at most 64 items"}),
	formerOwnerRefusals("spec.provisioning.takeOverFrom[]", "spec: {provisioning: {takeOverFrom: [%s]}}"),
	boundRefusals("spec.provisioning.formatPolicy", "spec: {provisioning: {formatPolicy: %s}}", map[string]string{"Always": `supported values: "Never", "IfBlank", "Approved"`}),
	boundRefusals("spec.deletionPolicy", "spec: {deletionPolicy: %s}", map[string]string{"Delete": `supported values: "Retain", "Destroy"`}),
	boundRefusals("spec.confirmDestroy", "spec: {confirmDestroy: %s}", map[string]string{strings.Repeat("u", 65): "may not be more than 64 bytes"}),
	pathRefusals("spec.metadataServers.targets.directories[]", "spec: {metadataServers: {targets: {directories: [%s]}}}"),
	pathRefusals("spec.storagePools[].targets.directories[]", `spec: {storagePools: [{name: ssd, nodeSelector: {s: ""}, targets: {directories: [%s]}}]}`),
	pathRefusals("spec.clients.mountPath", `spec: {clients: {nodeSelector: {client: ""}, mountPath: %s}}`),
	optionsRefusals("spec.moosefs.config.metadata", "spec: {moosefs: {config: {metadata: %s}}}"),
	optionsRefusals("spec.moosefs.config.storage", "spec: {moosefs: {config: {storage: %s}}}"),
	optionsRefusals("spec.moosefs.metaloggers.config", `spec: {moosefs: {metaloggers: {nodeSelector: {m: ""}, config: %s}}}`),
	boundRefusals("spec.moosefs.exports", "spec: {moosefs: {exports: %s}}", map[string]string{
		"[]": "should have at least 1 items", listOf(65, "{addresses: 10.0.0.%d}"): "must have at most 64 items",
	}),
	boundRefusals("spec.moosefs.exports[].addresses", "spec: {moosefs: {exports: [{addresses: %s}]}}", map[string]string{
		"host": hostsThatMount, `"* / rw"`: hostsThatMount, `"10.0.0.1\n*"`: hostsThatMount, "null": "Required value",
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 32) + `"`: "may not be more than 31 bytes",
	}),
	boundRefusals("spec.moosefs.exports[].directory", "spec: {moosefs: {exports: [{addresses: '*', directory: %s}]}}", map[string]string{
		"projects": directoryThatMounts, `"/a b"`: directoryThatMounts, "/../a": directoryThatMounts,
		"/" + strings.Repeat("d", 128): "may not be more than 128 bytes",
	}),
	idsRefusals("rootAs"), idsRefusals("allAs"),
	podsRefusals(), backupsRefusals(), mooseFSHasNone, beegfsRefusals, lustreRefusals,
)

// The patterns of spec.moosefs.exports.
const (
	hostsThatMount      = `should match '^([*]|[0-9]{1,3}([.][0-9]{1,3}){3}([/][0-9]{1,2}|-[0-9]{1,3}([.][0-9]{1,3}){3})?)$'`
	directoryThatMounts = `should match '^(/|(/[A-Za-z0-9_][A-Za-z0-9._-]*)+)$'`
)

// idsRefusals returns the rows of the ids that hosts get, by the name of the member.
func idsRefusals(member string) refusals {
	out := refusals{}
	for name, other := range map[string]string{"user": "group", "group": "user"} {
		out = out.join(boundRefusals("spec.moosefs.exports[]."+member+"."+name,
			"spec: {moosefs: {exports: [{addresses: '*', "+member+": {"+name+": %s, "+other+": 0}}]}}", map[string]string{
				"-1": tooLow + "0", "4294967295": tooHigh + "4294967294", "null": "Required value",
			}))
	}
	return out
}

// short has no field that follows from another one.
const short = `
spec:
  version: null
  nodes: {names: [n1, n2, n3]}
  metadataServers: {nodeSelector: null}
  storagePools: [{name: data, targets: {directories: [/data/scratch]}}]
  clients: {nodeSelector: null, mountPath: null}
`

var fileSystemAccepted = map[string]string{
	"it has only what is required": "{}",
	"it says as little as it can":  short,
	"its nodes have a label":       short + "\n---\nspec: {nodes: {names: null, selector: {matchLabels: {lab: a}, matchExpressions: [{key: gpu, operator: DoesNotExist}]}}}",
	"it has everything that there is": `
metadata: {name: ` + strings.Repeat("n", 40) + `}
spec:
  version: 3.0.117
  moosefs:
    basePort: 65504
    metaloggers: {nodeSelector: {m: ""}, config: {BACK_LOGS: "50"}}
    config:
      metadata: {ACCEPTABLE_PERCENTAGE_DIFFERENCE: "5.0"}
      storage: {HDD_LEAVE_SPACE_DEFAULT: 4GiB, NICE_LEVEL: "", a-name-with-dashes: "1"}
    exports:
    - {addresses: "*"}
    - {addresses: 10.0.0.1-10.0.0.9, directory: /projects/a-b.c, readOnly: true, rootAs: {user: 4294967294, group: 0}, allAs: {user: 0, group: 4294967294}}
  metadataServers: {instancesPerNode: 1}
  updates:
    maintenance: {limit: 168h}
    maxUnavailable: 64
    paused: true
    clients: Now
    windows: ` + listOf(15, `{schedule: "0 %d 1,15 JAN-DEC MON-FRI", duration: 168h, timeZone: America/Argentina/Buenos_Aires}`) + `
  storagePools:
  - {name: ssd, copies: 1, nodeSelector: {storage: "", tier: fast}, targets: {directories: [/data/ssd1, /data/ssd2]}}
  - {name: hdd-archive-tier-no-1234, copies: 9, nodeSelector: {storage: ""}, targets: {directories: [/data/hdd]}}
  clients: {nodeSelector: {client: ""}, mountPath: /mnt/scratch, mountOptions: [mfsrlock, mfscachemode=AUTO, mfswritecachesize=512]}
`,
	"it has disks and binds its daemons to CPUs": `
spec:
  metadataServers:
    targets:
      directories: null
      devices: [{node: mds1, id: nvme-eui.0025385b71b0c4a1}]
      format: {fsType: ext4, mkfsOptions: ["-i", "2048", "-I", "512", "-E", "stride=32,stripe_width=256"], mountOptions: [noatime, data=ordered]}
    cpuPinning: {mode: NUMANode, numaNodes: [1, 0, 1], memoryPolicy: Bind}
  storagePools:
  - name: ssd
    nodeSelector: {storage: ""}
    targets:
      devices:
      - {node: oss1, id: wwn-0x5000c500a1b2c3d4, logDevice: nvme-Samsung_SSD_990_PRO_S6Z1-part2}
      - {node: oss2, id: wwn-0x5000c500a1b2c3d4}
      - {node: oss2, id: "scsi-SATA_disk:1=a+b@c"}
      queue: {scheduler: none, readAheadKB: 0, maxSectorsKB: 4, requests: 10240}
    cpuPinning: {mode: CPUSet, cpuSets: ["0-7,16-23", "8"]}
  - name: hdd
    nodeSelector: {storage: ""}
    targets:
      select: {mediaType: HDD, minSize: 200Gi, maxSize: 8T, models: ["SAMSUNG*"], idGlobs: ["ata-[A-Z]?*"], numaNodes: [0, 1023], transports: [sas, nvme-tcp], countPerNode: 128}
      format: {logDevices: {mediaType: SSD, minSize: "1073741824", maxSize: 1Gi, countPerNode: 128}}
    cpuPinning: {mode: KubeletStatic, cpus: 4, memory: 16Gi}
  - {name: tape, nodeSelector: {storage: ""}, targets: {directories: [/data/tape]}, cpuPinning: {mode: None}}
  provisioning: {formatPolicy: Approved}
  deletionPolicy: Destroy
  confirmDestroy: 00000000-0000-0000-0000-000000000000
`,
	"it has a patch release of 4.57":                       "spec: {version: 4.57.7}",
	"it has a later release of 4":                          "spec: {version: 4.59.2}",
	"its pods have what they can have":                     fullPods,
	"its pods have as much as they may have":               largestPods,
	"its backups have what they can have":                  fullBackups,
	"its backups have as much as they may have":            largestBackups,
	"it has as many pools and directories as there can be": largest["FileSystem"],
	"it has as many devices as there can be":               largestOfDevices,
	"a pool names 512 devices":                             poolOfDevices(512),
	"directories begin alike but don't lie in one another": pools("/data/metadata2", "/data/metadata3, /data/metadata33"),
	"clients mount beside the targets":                     clients("/data/mnt"),
	"a path has dots, dashes and underscores in a name":    pools("/data/a.b_c-d"),
}

// formerOwner is an owner of disks in another cluster.
const formerOwner = "{cluster: c%d, namespace: lab, fileSystem: old, node: n9}"

// formerOwnerRefusals are those of an owner, at a field.
func formerOwnerRefusals(field, at string) refusals {
	all := refusals{}
	for name, longest := range map[string]int{"cluster": 64, "namespace": 63, "fileSystem": 40, "node": 253} {
		names := map[string]string{"cluster": "c2", "namespace": "lab", "fileSystem": "old", "node": "n9"}
		names[name] = "%s"
		owner := fmt.Sprintf("{cluster: %s, namespace: %s, fileSystem: %s, node: %s}", names["cluster"], names["namespace"], names["fileSystem"], names["node"])
		all = all.join(boundRefusals(field+"."+name, strings.Replace(at, "%s", owner, 1), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", longest+1): fmt.Sprintf("may not be more than %d bytes", longest), "null": "Required value",
		}))
	}
	return all
}

var fileSystemChanges = map[string]string{
	"a storage pool is added":                      `spec: {storagePools: [{name: ssd, nodeSelector: {storage: ""}, targets: {directories: [/data/ssd]}}, {name: hdd, nodeSelector: {storage: ""}, targets: {directories: [/data/hdd]}}]}`,
	"a target is added":                            pool("targets: {directories: [/data/ssd, /data/ssd2]}"),
	"the number of copies is changed":              pool("copies: 3"),
	"cpuPinning is added":                          put(poolPinning, "{mode: NUMANode, numaNodes: [0]}"),
	"deleting shall destroy":                       "spec: {deletionPolicy: Destroy}",
	"a format needs no approval from now on":       "spec: {provisioning: {formatPolicy: IfBlank}}",
	"another cluster's targets are taken over":     "spec: {provisioning: {takeOver: 9f6f5d0c-1111-4222-8333-444455556666}}",
	"another FileSystem's disks are taken over":    "spec: {provisioning: {takeOverFrom: [{cluster: c2, namespace: lab, fileSystem: old, node: n9}]}}",
	"the nodes of a pool are changed":              pool(`nodeSelector: {other: ""}`),
	"clients are added":                            clients("/mnt/scratch"),
	"its pods get another priority":                "spec: {pods: {priorityClassName: storage}}",
	"metaloggers are added":                        `spec: {moosefs: {metaloggers: {nodeSelector: {m: ""}}}}`,
	"hosts are named that may mount":               "spec: {moosefs: {exports: [{addresses: 10.0.0.0/8, readOnly: true, rootAs: {user: 99, group: 99}, allAs: {user: 1, group: 1}}]}}",
	"an option of a daemon is set":                 `spec: {moosefs: {config: {storage: {HDD_LEAVE_SPACE_DEFAULT: 4GiB}}}}`,
	"the nodes of the metadata are selected again": `spec: {metadataServers: {nodeSelector: {other: ""}}}`,
}

// poolOfDevices returns a pool with this number of devices.
func poolOfDevices(n int) string {
	return `spec: {storagePools: [{name: ssd, nodeSelector: {storage: ""}, targets: {devices: ` + listOf(n, "{node: n1, id: wwn-0x%04d}") + `}}]}`
}

// fullPools returns 12 pools with 16 directories of 128 characters.
func fullPools() []string {
	var b []string
	for p := range 12 {
		directories := listOf(16, fmt.Sprintf("/data/p%02d-%%02d-", p)+strings.Repeat("d", 115))
		b = append(b, fmt.Sprintf(`{name: p%d, nodeSelector: {storage: ""}, targets: {directories: %s}}`, p, directories))
	}
	return b
}

// largestOfDevices has changes that make a FileSystem with devices as large as possible: 12 pools of 42, and one for the metadata.
var largestOfDevices = put(metadataTargets, "{devices: [{node: n1, id: wwn-0x5000}], format: "+fullFormat()+"}") + "\n---\n" +
	"spec: {storagePools: " + listOf(12, `{name: p%d, nodeSelector: {storage: ""}, targets: {devices: `+fullDevices()+", format: "+fullFormat()+
	`, queue: {requests: 64}}, cpuPinning: {mode: CPUSet, cpuSets: `+listOf(16, `"%d"`)+"}}") + "}"

// fullDevices returns 42 devices with names of the maximum length.
func fullDevices() string {
	return listOf(42, "{node: "+strings.Repeat("n", 253)+", id: wwn-%04[1]d-"+strings.Repeat("w", 119)+", logDevice: log-%04[1]d-"+strings.Repeat("l", 119)+"}")
}

// fullFormat returns a format with the maximum number and length of options.
func fullFormat() string {
	return "{mkfsOptions: " + listOf(32, "-o%03d"+strings.Repeat("o", 123)) + ", mountOptions: " + listOf(32, "o%03d"+strings.Repeat("o", 124)) +
		", raid: {level: 10, data: 64, chunk: 64Mi}, logDevices: " + fullSelector() + "}"
}

// fullSelector returns a selector with the maximum number and length of patterns.
func fullSelector() string {
	return "{mediaType: SSD, minSize: '" + strings.Repeat("1", 17) + "', maxSize: '" + strings.Repeat("2", 17) + "', models: " +
		listOf(16, "'m%02d"+strings.Repeat("*", 61)+"'") + ", idGlobs: " + listOf(16, "'m%02d"+strings.Repeat("?", 61)+"'") + ", excludeIDGlobs: " + listOf(16, "'m%02d"+strings.Repeat("?", 61)+"'") + ", numaNodes: " + listOf(64, "%d") +
		", transports: [nvme, sata, sas, ata, spi, virtio, mmc, usb, iscsi, fc, fcoe, nvme-tcp, nvme-rdma, nvme-fc, nvme-loop, nbd], countPerNode: 128}"
}

func mountOptions(list string) string {
	return `spec: {clients: {nodeSelector: {client: ""}, mountPath: /mnt/scratch, mountOptions: ` + list + "}}"
}
