//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// lustre changes the FileSystem in goodManifests to a Lustre with only the required fields.
const lustre = `
spec:
  type: Lustre
  version: 2.15.6
  moosefs: null
  lustre: {fsName: scratch}
  metadataServers: {targets: {directories: null, select: {countPerNode: 1}, format: {fsType: ldiskfs}}}
  storagePools:
  - {name: ssd, copies: 1, nodeSelector: {storage: ""}, targets: {select: {countPerNode: 2}, format: {fsType: ldiskfs}}}
`

// fullLustre is a complete FileSystem with a value for every Lustre-only field except the targets of an MGT.
const fullLustre = `
spec:
  type: Lustre
  version: 2.17.57
  metadataServers:
    nodeSelector: {metadata: ""}
    targets: {select: {countPerNode: 1}, format: {fsType: ldiskfs}}
    cpuPinning: {mode: NUMANode, numaNodes: [0], memoryPolicy: Preferred}
  storagePools:
  - name: ssd
    copies: 1
    nodeSelector: {storage: ""}
    targets: {devices: [{node: n1, id: wwn-0x5001}, {node: n2, id: wwn-0x5002}], format: {fsType: ldiskfs}}
    cpuPinning: {mode: CPUSet, cpuSets: ["8-15"]}
    lustre:
      layout:
      - {end: 64Ki, place: MDT}
      - {end: 256Mi, osts: 4, stripeSize: 1Mi}
      - {place: AllOSTs}
      pairs: [{nodes: [n1, n2]}]
  lustre:
    fsName: scratch
    basePort: 9700
    rdma: true
    moduleOptions: Write
    directories: {mdtsPerDirectory: 2, roundRobinDepth: 2}
    parameters: {"osc.*.max_dirty_mb": "512"}
    projects: [{id: 1001, directory: ssd/climate, space: 10Ti, files: 5000000}]
  backups: {schedule: "@daily", persistentVolumeClaim: {name: vault}}
`

// asLustre changes rows so that their initial object is a Lustre.
func asLustre(rows refusals) refusals {
	out := refusals{}
	for sentence, row := range rows {
		if row.before == "" {
			row.change = lustre + "\n---\n" + row.change
		} else {
			row.before = lustre + "\n---\n" + row.before
		}
		out["Lustre: "+sentence] = row
	}
	return out
}

const (
	mgtStays      = "spec.lustre.management.targets can't be changed: the MGT would be left behind"
	oneMGT        = "the MGT is one disk; give exactly one of spec.lustre.management.targets.devices, or a select with countPerNode 1 or none"
	mgtIsAsItWas  = "spec.lustre.management can't be added or removed: the MGT would be left behind"
	rdmaStays     = "spec.lustre.rdma can't be changed: the NIDs of the MGS are written on every disk"
	nameOnDisks   = "spec.lustre.fsName can't be changed: it is written on every disk"
	aLayoutEnds   = "every component of a layout needs an end, except the last, which goes to the end of the file"
	aLayoutRises  = "each component of a layout ends behind the one before it"
	onlyFirst     = "only the first component of a layout can lie on the MDT"
	onTheMDT      = "a component with place MDT has neither osts nor stripeSize"
	smallOnTheMDT = "a component with place MDT needs an end of at most 1Mi, which is what an MDT takes of a file (dom_stripesize)"
	notBoth       = "a component with place AllOSTs has no osts"
	anEnd         = "the end of a component is a multiple of 64Ki, such as 64Ki or 256Mi"
	aStripe       = "a stripe size of Lustre is a multiple of 64Ki below 4Gi, such as 1Mi or 4Mi"
	aParameter    = "a parameter's name is as lctl list_param prints it, such as osc.*.max_dirty_mb or jobid_var, with stars for devices only"
	ofLustre      = "spec.lustre belongs to type Lustre, which requires it: spec.lustre.fsName is written on every disk"
	versionOf     = "Lustre runs in version 2.15.x to 2.17.x; set spec.version to the one of the modules on the nodes, such as 2.15.6"
	nodesGrow     = "spec.metadataServers.nodeCount of a Lustre can only grow: an MDT can't be taken away"
	oneCopy       = "a storage pool of a Lustre has 1 in copies, because Lustre stores nothing twice"
	shortPools    = "the name of a storage pool of a Lustre has at most 15 characters, and is not none, ignore or inherit, which mean something else to Lustre"
	partsOfLustre = "spec.storagePools[].lustre belongs to type Lustre"
	notByKubelet  = "cpuPinning of a Lustre has the mode NUMANode, CPUSet or None: its threads belong to the kernel of the node, and the kubelet gives CPUs to pods only"
	noBind        = "cpuPinning of a Lustre has no memoryPolicy Bind: its threads belong to the kernel of the node, which takes memory from other NUMA nodes when theirs has none"
	oneEntry      = "cpuPinning of a Lustre has one entry in numaNodes or cpuSets: the same threads of the kernel serve all MDTs of a node, and the same ones all of its OSTs"
	basePortStays = "spec.lustre.basePort can't be changed: what answers for the nodes listens there"
	ldiskfsMGT    = "the MGT is a disk with format.fsType: ldiskfs, or without fsType"
	mkfsMounts    = "Lustre mounts its targets with the options that mkfs.lustre wrote on them, and they have no log devices: remove mountOptions and logDevices from format"
	mgtOf         = "spec: {lustre: {management: null}}\n---\nspec: {lustre: {management: {nodeSelector: {mgs: \"\"}, targets: %s}}}"
	mgt           = mgtOf + "\n---\nspec: {lustre: {management: {targets: {format: {fsType: ldiskfs}}}}}"
	mgtNodes      = "spec: {lustre: {management: {nodeSelector: %s, targets: {select: {countPerNode: 1}, format: {fsType: ldiskfs}}}}}"
	layoutOf      = "spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ''}, targets: {select: {countPerNode: 2}, format: {fsType: ldiskfs}}, lustre: {layout: [%s]}}]}"
	parameters    = "spec: {lustre: {parameters: {%s}}}"
	projects      = "spec: {lustre: {projects: [%s]}}"
	ofOneID       = "two projects have one id: their files would count together"
	aSpace        = "the space of a project is a multiple of 1Mi, such as 512Gi or 10Ti"
	aDirectory    = `should match '^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$'`
	pathOfLayout  = "spec.storagePools[].lustre.layout"
	pairsOf       = "spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ''}, targets: {devices: [{node: n1, id: wwn-0x5001}], format: {fsType: ldiskfs}}, lustre: {pairs: [%s]}}]}"
	pathOfPairs   = "spec.storagePools[].lustre.pairs"
	pairsAreNamed = "a storage pool with pairs names its disks in targets.devices: each of them is chosen by a person, on the node that serves it"
	oneOfPair     = "a node is in one pair of a pool only"
)

// lustrePool returns a patch that leaves one storage pool of a Lustre, with these fields.
func lustrePool(fields string) string {
	return `spec: {storagePools: [{nodeSelector: {storage: ""}, targets: {select: {countPerNode: 2}, format: {fsType: ldiskfs}}, ` + fields + `}]}`
}

var lustreRefusals = asLustre(refusals{
	"its own part is left out":               {change: "spec: {lustre: null}", field: "spec", says: ofLustre},
	"its name is left out":                   {change: "spec: {lustre: {fsName: null}}", field: "spec.lustre.fsName", says: "Required value"},
	"it has what is BeeGFS's":                {change: `spec: {beegfs: {management: {nodeSelector: {m: ""}, targets: {directories: [/data/mgmt]}}}}`, field: "spec", says: ofBeeGFS},
	"it has what is MooseFS's":               {change: "spec: {moosefs: {}}", field: "spec", says: ofAMooseFS},
	"it has resources of a metalogger":       {change: "spec: {pods: {resources: {metadataBackup: {requests: {cpu: '1'}}}}}", field: "spec", says: "spec.pods.resources.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"},
	"the version is an older one":            {change: "spec: {version: 2.14.0}", field: "spec", says: versionOf},
	"the version is a later one":             {change: "spec: {version: 2.18.0}", field: "spec", says: versionOf},
	"the version is a branch":                {change: `spec: {version: "2.15"}`, field: "spec", says: versionOf},
	"metadata nodes are made fewer":          {before: "spec: {metadataServers: {nodeCount: 2}}", change: "spec: {metadataServers: {nodeCount: 1}}", field: "spec", says: nodesGrow},
	"MDTs of a node are made fewer":          {before: "spec: {metadataServers: {instancesPerNode: 2, targets: {select: {countPerNode: 2}}}}", change: "spec: {metadataServers: {instancesPerNode: 1}}", field: "spec", says: serversStay},
	"two MDTs share a disk":                  {change: "spec: {metadataServers: {instancesPerNode: 2}}", field: "spec", says: diskEach},
	"an MDT has two disks":                   {change: "spec: {metadataServers: {targets: {select: {countPerNode: 2}}}}", field: "spec", says: diskEach},
	"the version is left out":                {change: "spec: {version: null}", field: "spec", says: versionOf},
	"a pool keeps two copies":                {change: lustrePool("name: ssd, copies: 2"), field: "spec", says: oneCopy},
	"the name of a pool has 16 characters":   {change: lustrePool("name: pool-of-16-chars, copies: 1"), field: "spec", says: shortPools},
	"a pool is called none":                  {change: lustrePool("name: none, copies: 1"), field: "spec", says: shortPools},
	"a pool has what is BeeGFS's":            {change: lustrePool("name: ssd, copies: 1, beegfs: {workerThreads: 4}"), field: "spec", says: partsOfBeeGFS},
	"an MDT is a directory":                  {change: put(metadataTargets, "{directories: [/data/mdt]}"), field: "spec", says: lustresOnly},
	"an OST is a directory":                  {change: `spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {s: ""}, targets: {directories: [/data/ost]}}]}`, field: "spec", says: lustresOnly},
	"an MDT is xfs":                          {change: "spec: {metadataServers: {targets: {format: {fsType: xfs}}}}", field: "spec", says: lustresOnly},
	"an OST is xfs":                          {change: `spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {s: ""}, targets: {select: {countPerNode: 1}, format: {fsType: xfs}}}]}`, field: "spec", says: lustresOnly},
	"an MDT is mounted with an option":       {change: "spec: {metadataServers: {targets: {format: {fsType: null, mountOptions: [noatime]}}}}", field: "spec", says: mkfsMounts},
	"an OST is mounted with an option":       {change: `spec: {storagePools: [{name: ssd, targets: {select: {}, format: {mountOptions: [noatime]}}}]}`, field: "spec", says: mkfsMounts},
	"an OST has a log":                       {change: `spec: {storagePools: [{name: ssd, targets: {select: {}, format: {logDevices: {}}}}]}`, field: "spec", says: mkfsMounts},
	"the MGT is mounted with an option":      {change: put(mgtOf, "{select: {}, format: {mountOptions: [noatime]}}"), field: "spec.lustre.management.targets", says: mkfsMounts},
	"the kubelet gives CPUs to MDTs":         {change: put(metadataPinning, "{mode: KubeletStatic, cpus: 2, memory: 1Gi}"), field: "spec", says: notByKubelet},
	"the kubelet gives CPUs to OSTs":         {change: lustrePool("name: ssd, copies: 1, cpuPinning: {mode: KubeletStatic, cpus: 2, memory: 1Gi}"), field: "spec", says: notByKubelet},
	"the memory of MDTs is bound":            {change: put(metadataPinning, "{mode: NUMANode, numaNodes: [0], memoryPolicy: Bind}"), field: "spec", says: noBind},
	"the memory of OSTs is bound":            {change: lustrePool(`name: ssd, copies: 1, cpuPinning: {mode: CPUSet, cpuSets: ["0-7"], memoryPolicy: Bind}`), field: "spec", says: noBind},
	"MDTs of a node are on two NUMA nodes":   {change: put(metadataPinning, "{mode: NUMANode, numaNodes: [0, 1]}"), field: "spec", says: oneEntry},
	"MDTs of a node have CPUs of their own":  {change: put(metadataPinning, `{mode: CPUSet, cpuSets: ["0", "1"]}`), field: "spec", says: oneEntry},
	"OSTs of a node are on two NUMA nodes":   {change: lustrePool("name: ssd, copies: 1, cpuPinning: {mode: NUMANode, numaNodes: [0, 1]}"), field: "spec", says: oneEntry},
	"OSTs of a node have two lists of CPUs":  {change: lustrePool(`name: ssd, copies: 1, cpuPinning: {mode: CPUSet, cpuSets: ["0", "1"]}`), field: "spec", says: oneEntry},
	"the first port is changed":              {before: "{}", change: "spec: {lustre: {basePort: 9800}}", field: "spec.lustre", says: basePortStays},
	"the MGT is xfs":                         {change: put(mgtOf, "{select: {countPerNode: 1}, format: {fsType: xfs}}"), field: "spec.lustre.management.targets", says: ldiskfsMGT},
	"the name of the filesystem changes":     {before: "{}", change: "spec: {lustre: {fsName: other}}", field: "spec.lustre.fsName", says: nameOnDisks},
	"the name begins with a digit":           {change: "spec: {lustre: {fsName: 1a}}", field: "spec.lustre.fsName", says: `should match '^[a-z][a-z0-9_]*$'`},
	"the name has a dash, as labels have":    {change: "spec: {lustre: {fsName: a-b}}", field: "spec.lustre.fsName", says: `should match '^[a-z][a-z0-9_]*$'`},
	"RDMA is turned on later":                {before: "{}", change: "spec: {lustre: {rdma: true}}", field: "spec.lustre", says: rdmaStays},
	"an MGT is added later":                  {before: "{}", change: put(mgt, "{select: {countPerNode: 1}}"), field: "spec.lustre", says: mgtIsAsItWas},
	"the MGT is taken away":                  {before: put(mgt, "{select: {countPerNode: 1}}"), change: "spec: {lustre: {management: null}}", field: "spec.lustre", says: mgtIsAsItWas},
	"the MGT moves to another disk":          {before: put(mgt, "{devices: [{node: n1, id: wwn-0x5000}]}"), change: put(mgt, "{devices: [{node: n1, id: wwn-0x5001}]}"), field: "spec.lustre.management.targets", says: mgtStays},
	"the MGT is a directory":                 {change: put(mgt, "{directories: [/data/mgt]}"), field: "spec.lustre.management.targets", says: oneMGT},
	"the MGT is two disks":                   {change: put(mgt, "{devices: [{node: n1, id: wwn-0x5000}, {node: n1, id: wwn-0x5001}]}"), field: "spec.lustre.management.targets", says: oneMGT},
	"the MGT is two selected disks":          {change: put(mgt, "{select: {countPerNode: 2}}"), field: "spec.lustre.management.targets", says: oneMGT},
	"a layout has an end in its last part":   {change: put(layoutOf, "{end: 64Ki}, {end: 1Mi}"), field: pathOfLayout, says: aLayoutEnds},
	"a layout has no end in its first part":  {change: put(layoutOf, "{osts: 1}, {place: AllOSTs}"), field: pathOfLayout, says: aLayoutEnds},
	"a layout falls":                         {change: put(layoutOf, "{end: 1Mi}, {end: 64Ki}, {osts: 1}"), field: pathOfLayout, says: aLayoutRises},
	"a layout does not change":               {change: put(layoutOf, "{end: 1Mi}, {end: 1024Ki}, {osts: 1}"), field: pathOfLayout, says: aLayoutRises},
	"a layout comes back to the MDT":         {change: put(layoutOf, "{end: 64Ki}, {end: 1Mi, place: MDT}, {osts: 1}"), field: pathOfLayout, says: onlyFirst},
	"the MDT is striped":                     {change: put(layoutOf, "{end: 64Ki, place: MDT, osts: 2}, {osts: 1}"), field: pathOfLayout + "[]", says: onTheMDT},
	"the MDT has a stripe size":              {change: put(layoutOf, "{end: 64Ki, place: MDT, stripeSize: 64Ki}, {osts: 1}"), field: pathOfLayout + "[]", says: onTheMDT},
	"the MDT holds all of a file":            {change: put(layoutOf, "{place: MDT}"), field: pathOfLayout + "[]", says: smallOnTheMDT},
	"the MDT holds more than it takes":       {change: put(layoutOf, "{end: 1088Ki, place: MDT}, {osts: 1}"), field: pathOfLayout + "[]", says: smallOnTheMDT},
	"a component is on some OSTs and on all": {change: put(layoutOf, "{osts: 1, place: AllOSTs}"), field: pathOfLayout + "[]", says: notBoth},
	"two projects have one number":           {change: put(projects, "{id: 7, directory: a}, {id: 7, directory: b}"), field: "spec.lustre.projects", says: ofOneID},
	"a pair is one node":                     {change: put(pairsOf, "{nodes: [n1, n1]}"), field: pathOfPairs + "[].nodes", says: "a pair is two different nodes"},
	"a node comes first in two pairs":        {change: put(pairsOf, "{nodes: [n1, n2]}, {nodes: [n1, n3]}"), field: pathOfPairs, says: oneOfPair},
	"a node comes last in two pairs":         {change: put(pairsOf, "{nodes: [n1, n2]}, {nodes: [n3, n2]}"), field: pathOfPairs, says: oneOfPair},
	"a node comes first and last":            {change: put(pairsOf, "{nodes: [n1, n2]}, {nodes: [n2, n3]}"), field: pathOfPairs, says: oneOfPair},
	"a pair is named twice":                  {change: put(pairsOf, "{nodes: [n1, n2]}, {nodes: [n2, n1]}"), field: pathOfPairs, says: oneOfPair},
	"a pool with pairs chooses its disks":    {change: lustrePool("name: ssd, copies: 1, lustre: {pairs: [{nodes: [n1, n2]}]}"), field: "spec", says: pairsAreNamed},
	"there are 65 parameters":                {change: "spec: {lustre: {parameters: " + mapOf(65, "osc.a%d.b", "1") + "}}", field: "spec.lustre.parameters", says: "must have at most 64 items"},
}.join(
	roleSelectorRefusals("spec.lustre.management.nodeSelector", mgtNodes),
	mgtRefusals(),
	boundRefusals("spec.lustre.moduleOptions", "spec: {lustre: {moduleOptions: %s}}", map[string]string{"Load": `supported values: "Compare", "Write"`}),
	boundRefusals("spec.lustre.basePort", "spec: {lustre: {basePort: %s}}", map[string]string{"1023": tooLow + "1024", "65473": tooHigh + "65472"}),
	directoriesRefusals("spec.lustre.management.targets.directories", mgtOf),
	pathRefusals("spec.lustre.management.targets.directories[]", put(mgt, "{directories: [%s]}")),
	everyBoundRefusals("filesystems", fullLustre, "spec.lustre", "spec.storagePools[].lustre"),
	boundRefusals(pathOfLayout+"[].end", put(layoutOf, "{end: %s}, {osts: 1}"), map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		"many": anEnd, "64k": anEnd, `"0"`: anEnd, "-64Ki": anEnd, "65Ki": anEnd,
	}),
	boundRefusals(pathOfLayout+"[].stripeSize", put(layoutOf, "{stripeSize: %s}"), map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		"wide": aStripe, "1M": aStripe, `"0"`: aStripe, "-64Ki": aStripe, "4Gi": aStripe, "100Ki": aStripe,
	}),
	boundRefusals("spec.lustre.projects[].directory", put(projects, "{id: 7, directory: %s}"), map[string]string{
		"/ssd": aDirectory, "ssd/": aDirectory, "ssd//a": aDirectory, "..": aDirectory, "ssd/../a": aDirectory, ".hidden": aDirectory, `"-r"`: aDirectory, `"a b"`: aDirectory,
	}),
	boundRefusals("spec.lustre.projects[].space", put(projects, "{id: 7, directory: a, space: %s}"), map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		"much": aSpace, `"0"`: aSpace, "-1Gi": aSpace, "512Ki": aSpace, "1G": aSpace,
	}),
	parameterNameRefusals("jobid_vat", "force_lbug", "osc", "osc.*.max*", "osc.*.*", "Osc.*.max", "osc..max", "osc.*.max=1", "osc.*.max;reboot", "osc.* .max", "osc."+strings.Repeat("n", 65), "a.b.c.d.e.f"),
	boundRefusals("spec.lustre.parameters{}", put(parameters, `"osc.*.max_dirty_mb": %s`), map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("v", 129): "may not be more than 128 bytes",
		`"a\nb"`: aValue, `" a"`: aValue, `"a "`: aValue, `"$(reboot)"`: aValue,
	}),
))

const aValue = `should match '^[A-Za-z0-9_.,:+%=*{}&@/-]+( [A-Za-z0-9_.,:+%=*{}&@/-]+)*$'`

// mgtRefusals returns the rows of the MGT's targets, which are never directories. The initial object has the required format.
func mgtRefusals() refusals {
	const field = "spec.lustre.management.targets"
	rows, made := targetsRefusals(field, mgtOf), targetsRefusals(field, mgt)
	for sentence, row := range made {
		if row.before != "" {
			rows[sentence] = row
		}
	}
	delete(rows, field+" goes from directories to devices")
	delete(rows, field+" has the format of Lustre's targets")
	return rows
}

// parameterNameRefusals returns rows for parameter names.
func parameterNameRefusals(names ...string) refusals {
	rows := refusals{}
	for _, name := range names {
		rows["a parameter is called "+name] = refusal{change: put(parameters, fmt.Sprintf("%q: \"1\"", name)), field: "spec.lustre.parameters", says: aParameter}
	}
	return rows
}

var lustreAccepted = map[string]string{
	"it has only what is required":    "{}",
	"it has everything that there is": fullLustre + "---\n" + put(mgt, "{devices: [{node: n1, id: wwn-0x5000}]}"),
	"it has network interfaces":       "spec: {network: {interfaces: [ib0, ib1]}}",
	"metadata nodes are counted":      "spec: {metadataServers: {nodeCount: 2}}",
	"pods have resources":             "spec: {pods: {resources: {management: {requests: {cpu: '1'}}, metadata: {requests: {cpu: '1'}}}}}",
	"what follows from the type is absent": `spec: {metadataServers: {targets: {select: {countPerNode: null}}}, ` +
		`storagePools: [{name: ssd, nodeSelector: {storage: ""}, targets: {select: {excludeIDGlobs: ["*-part*"]}, format: {fsType: ldiskfs}}}]}` +
		"\n---\n" + put(mgt, "{select: {mediaType: SSD}}"),
	"the MGT is a selected disk": put(mgt, "{select: {countPerNode: 1}}"),
	"jobs are those of Slurm": put(parameters, `jobid_var: SLURM_JOB_ID, jobid_name: "%j.%e", timeout: "100", at_max: "600", "lov.*.qos_threshold_rr": "-1", `+
		`"ost.OSS.ost_io.nrs_tbf_rule": "start slow jobid={dd.* cp.*}&opcode={ost_write} rate=100"`),
	"a project has no limit":             put(projects, "{id: 7, directory: a}"),
	"a layout has one component":         put(layoutOf, "{osts: 4, stripeSize: 4Mi}"),
	"a layout is as long as it can be":   put(layoutOf, "{end: 64Ki, place: MDT}, {end: 128Ki}, {end: 1Mi}, {end: 8Mi}, {end: 64Mi}, {end: 1Gi}, {end: 64Gi}, {place: AllOSTs}"),
	"a pool has two pairs":               put(pairsOf, "{nodes: [n1, n2]}, {nodes: [n3, n4]}"),
	"no level of directories goes round": "spec: {lustre: {directories: {roundRobinDepth: 0}}}",
	"no format is given":                 put(metadataTargets, "{select: {countPerNode: 1}, format: null}") + "\n---\nspec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ''}, targets: {select: {countPerNode: 2}}}]}",
	"the type of the format is left open": "spec: {metadataServers: {targets: {format: {fsType: null, mkfsOptions: [-Enodiscard]}}}, " +
		"storagePools: [{name: ssd, nodeSelector: {storage: ''}, targets: {select: {}, format: {raid: {level: 6, data: 8, chunk: 128Ki}}}}]}" +
		"\n---\n" + put(mgtOf, "{select: {}, format: {mkfsOptions: [-Enodiscard]}}"),
	"it is as large as it can be": largestLustre,
}

var lustreChanges = map[string]string{
	"a pool gets another layout":  put(layoutOf, "{osts: 8}"),
	"MDTs are added to each node": "spec: {metadataServers: {instancesPerNode: 2, targets: {select: {countPerNode: 2}}}}",
	"disks are added to a pool":   `spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ""}, targets: {select: {countPerNode: 4}, format: {fsType: ldiskfs}}}]}`,
	"a pool is added": `spec: {storagePools: [{name: ssd, copies: 1, nodeSelector: {storage: ""}, targets: {select: {countPerNode: 2}, format: {fsType: ldiskfs}}}, ` +
		`{name: hdd, copies: 1, nodeSelector: {storage: ""}, targets: {select: {countPerNode: 2}, format: {fsType: ldiskfs}}}]}`,
	"a project gets more":          put(projects, "{id: 1001, directory: ssd/climate, space: 20Ti}"),
	"directories are spread wider": "spec: {lustre: {directories: {mdtsPerDirectory: 4}}}",
	"a parameter is set":           put(parameters, `"mdt.*.hsm_control": enabled`),
}

// largestLustre has 12 pools of 8 components each, and 63 parameters, so that a test can set one more.
var largestLustre = "spec: {storagePools: " + listOf(12, `{name: pool-%02d-abcdefg, copies: 1, nodeSelector: {storage: ""}, targets: {select: {countPerNode: 128}, format: {fsType: ldiskfs}}, `+
	"lustre: {layout: [{end: 64Ki, place: MDT}, {end: 128Ki}, {end: 1Mi}, "+
	"{end: 8Mi}, {end: 64Mi}, {end: 1Gi}, {end: 64Gi, osts: 2000, stripeSize: 1Gi}, {place: AllOSTs}]}}") +
	", lustre: {parameters: " + mapOf(63, "osc.a%02d"+strings.Repeat("n", 60)+".max_dirty_mb", strings.Repeat("v", 128)) + "}}"
