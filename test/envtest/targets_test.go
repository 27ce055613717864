//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// The tables in this file belong to API types of several fields, some of them in two kinds: each is written once and run at every path.
// field is the path, and inside a patch with %s for the value.

const (
	oneKindOfTarget  = "set exactly one of directories, devices and select"
	targetsMoved     = "targets can't be moved between directories, devices and select: the data would be left behind"
	formatOfADevice  = "format and queue belong to devices; a directory has neither"
	kernelName       = "a kernel name such as sda may mean another disk after the next boot; use the name of its link in /dev/disk/by-id (kubectl get nodeinventory <node> -o yaml lists them)"
	aSize            = "a size is a number of bytes above 0, such as 512Mi or 2T"
	notForTargets    = "ro, remount, bind, loop, nouuid, norecovery, noload, user, nofail, logdev, device and subvol are refused for targets: the operator mounts each whole device for writing, by its own UUID"
	aDeviceID        = `should match '^[A-Za-z0-9][A-Za-z0-9_.:+=@-]*$'`
	aGlob            = `should match '^[A-Za-z0-9*?\[\]_.:+ -]+$'`
	anMkfsOption     = `should match '^[A-Za-z0-9^_,.=:+-]+$'`
	aMountOption     = `should match '^[A-Za-z_][A-Za-z0-9_-]*(=[A-Za-z0-9_./:+-]+)?$'`
	aCPUList         = `should match '^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$'`
	metadataTargets  = "spec: {metadataServers: {targets: null}}\n---\nspec: {metadataServers: {targets: %s}}"
	poolTargets      = `spec: {storagePools: [{name: ssd, nodeSelector: {s: ""}, targets: %s}]}`
	metadataPinning  = "spec: {metadataServers: {cpuPinning: %s}}"
	poolPinning      = `spec: {storagePools: [{name: ssd, nodeSelector: {s: ""}, targets: {directories: [/data/ssd]}, cpuPinning: %s}]}`
	storageTargetLog = "spec: {logDevice: %s}"
)

// put inserts a patch's content at the %s of another, which may itself contain the %s of a third.
func put(inside, content string) string { return strings.Replace(inside, "%s", content, 1) }

// boundRefusals returns rows for values of one field: the value in YAML, and the expected message.
func boundRefusals(field, inside string, says map[string]string) refusals {
	rows := refusals{}
	for value, sentence := range says {
		short := value
		if len(short) > 40 {
			short = fmt.Sprintf("%.30s… (%d characters)", value, len(value))
		}
		rows[field+" is "+short] = refusal{change: put(inside, value), field: field, says: sentence}
	}
	return rows
}

// targetsRefusals returns the rows of a TargetsSpec.
func targetsRefusals(field, inside string) refusals {
	device := "{devices: [{node: n1, id: wwn-0x5000}]"
	return refusals{
		field + " has nothing at all":                 {change: put(inside, "{format: {fsType: xfs}}"), field: field, says: oneKindOfTarget},
		field + " has directories and devices":        {change: put(inside, device+", directories: [/data/a]}"), field: field, says: oneKindOfTarget},
		field + " has devices and a selector":         {change: put(inside, device+", select: {countPerNode: 1}}"), field: field, says: oneKindOfTarget},
		field + " formats a directory":                {change: put(inside, "{directories: [/data/a], format: {fsType: xfs}}"), field: field, says: formatOfADevice},
		field + " has the format of Lustre's targets": {change: put(inside, device+", format: {fsType: ldiskfs}}"), field: "spec", says: lustresOnly},
		field + " sets the queue of a directory":      {change: put(inside, "{directories: [/data/a], queue: {requests: 64}}"), field: field, says: formatOfADevice},
		field + " goes from devices to a selector":    {before: put(inside, device+"}"), change: put(inside, "{select: {countPerNode: 1}}"), field: field, says: targetsMoved},
		field + " goes from a selector to devices":    {before: put(inside, "{select: {countPerNode: 1}}"), change: put(inside, device+"}"), field: field, says: targetsMoved},
		field + " goes from directories to devices": {before: put(inside, "{directories: [/data/a]}"), change: put(inside, device+"}"), field: field,
			says: targetsMoved},
	}.join(
		devicesRefusals(field+".devices", put(inside, "{devices: %s}")),
		selectorRefusals(field+".select", put(inside, "{select: %s}")),
		formatRefusals(field+".format", put(inside, "{select: {countPerNode: 1}, format: %s}")),
		queueRefusals(field+".queue", put(inside, "{select: {countPerNode: 1}, queue: %s}")),
		boundRefusals(field+".queue", put(inside, "{select: {countPerNode: 1}, queue: %s}"), map[string]string{
			"{scheduler: mq-deadline, requests: 4096}": queueTooDeep, "{requests: 2049}": queueTooDeep, "{scheduler: none, requests: 10241}": queueTooDeep,
		}),
	)
}

// devicesRefusals returns the rows of a list of DeviceReference.
func devicesRefusals(field, inside string) refusals {
	item := put(inside, "[%s]")
	return refusals{
		field + " is empty":                  {change: put(inside, "[]"), field: field, says: "should have at least 1 items"},
		field + " has 513 devices":           {change: put(inside, listOf(513, "{node: n1, id: wwn-0x%04d}")), field: field, says: "must have at most 512 items"},
		field + " has a device twice":        {change: put(inside, "[{node: n1, id: wwn-0x5000}, {node: n1, id: wwn-0x5000}]"), field: field + "[]", says: "Duplicate value"},
		field + " has a device without node": {change: put(item, "{id: wwn-0x5000}"), field: field + "[].node", says: "Required value"},
		field + " has a device without id":   {change: put(item, "{node: n1}"), field: field + "[].id", says: "Required value"},
	}.join(
		boundRefusals(field+"[].node", put(item, "{node: %s, id: wwn-0x5000}"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
		}),
		deviceIDRefusals(field+"[].id", put(item, "{node: n1, id: %s}")),
		deviceIDRefusals(field+"[].logDevice", put(item, "{node: n1, id: wwn-0x5000, logDevice: %s}")),
	)
}

// deviceIDRefusals returns the rows of a DeviceID.
func deviceIDRefusals(field, inside string) refusals {
	rows := boundRefusals(field, inside, map[string]string{
		"wwn": "should be at least 4 chars long", strings.Repeat("w", 129): "may not be more than 128 bytes",
		"/dev/disk/by-id/wwn-0x5000": aDeviceID, `"wwn 0x5000"`: aDeviceID, `"-0x5000"`: aDeviceID, "../../sda": aDeviceID, `"wwn\n0x5000"`: aDeviceID,
	})
	for _, name := range []string{
		"sda", "sdb1", "sdaa", "sdab12", "vdb", "vdb3", "xvda", "hdc1", "nvme0n1", "nvme10n2p3", "dm-0", "dm-12", "md0", "md127p1", "loop7", "loop7p1",
	} {
		rows.join(refusals{field + " is the kernel name " + name: {change: put(inside, name), field: field, says: kernelName}})
	}
	return rows
}

// identityRefusals returns the rows of a DeviceIdentity.
func identityRefusals(field, inside string) refusals {
	long := strings.Repeat("n", 129)
	return refusals{
		field + " has no id":   {change: put(inside, "{sizeBytes: 1}"), field: field + ".id", says: "Required value"},
		field + " has no size": {change: put(inside, "{id: wwn-0x5000}"), field: field + ".sizeBytes", says: "Required value"},
		field + " is of nothing": {change: put(inside, "{id: wwn-0x5000, sizeBytes: 0}"), field: field + ".sizeBytes",
			says: "should be greater than or equal to 1"},
		field + " is of more than any disk has": {change: put(inside, "{id: wwn-0x5000, sizeBytes: 1125899906842625}"), field: field + ".sizeBytes",
			says: "should be less than or equal to 1125899906842624"},
	}.join(
		deviceIDRefusals(field+".id", put(inside, "{id: %s, sizeBytes: 1}")),
		boundRefusals(field+".serial", put(inside, "{id: wwn-0x5000, sizeBytes: 1, serial: %s}"), map[string]string{long: "may not be more than 128 bytes"}),
		boundRefusals(field+".wwn", put(inside, "{id: wwn-0x5000, sizeBytes: 1, wwn: %s}"), map[string]string{long: "may not be more than 128 bytes"}),
		boundRefusals(field+".model", put(inside, "{id: wwn-0x5000, sizeBytes: 1, model: %s}"), map[string]string{long: "may not be more than 128 bytes"}),
	)
}

// selectorRefusals returns the rows of a DeviceSelector.
func selectorRefusals(field, inside string) refusals {
	with := put(inside, "{countPerNode: 1, %s}")
	rows := refusals{
		field + " has a minSize above its maxSize": {change: put(with, "minSize: 1Ti, maxSize: 1000Gi"), field: field,
			says: "minSize must not be larger than maxSize"},
	}.join(
		boundRefusals(field+".countPerNode", put(inside, "{countPerNode: %s}"), map[string]string{
			"0": "should be greater than or equal to 1", "-1": "should be greater than or equal to 1", "129": "should be less than or equal to 128",
		}),
		boundRefusals(field+".mediaType", put(with, "mediaType: %s"), map[string]string{"NVMe": `supported values: "SSD", "HDD"`}),
		quantityRefusals(field+".minSize", put(with, "minSize: %s")),
		quantityRefusals(field+".maxSize", put(with, "maxSize: %s")),
		numaNodesRefusals(field+".numaNodes", put(with, "numaNodes: %s")),
		boundRefusals(field+".transports[]", put(with, "transports: [%s]"), map[string]string{"scsi": `supported values: "nvme", "sata", "sas", "ata", "spi", "virtio", "mmc", "usb", "iscsi", "fc", "fcoe", "nvme-tcp", "nvme-rdma", "nvme-fc", "nvme-loop", "nbd", "rbd", "drbd"`}),
		refusals{
			field + ".transports is empty":      {change: put(with, "transports: []"), field: field + ".transports", says: "should have at least 1 items"},
			field + ".transports has 17 items":  {change: put(with, "transports: "+listOf(17, "t%d")), field: field + ".transports", says: "must have at most 16 items"},
			field + ".transports has one twice": {change: put(with, "transports: [fc, fc]"), field: field + ".transports[]", says: "Duplicate value"},
		},
		refusals{field + ".numaNodes has one twice": {change: put(with, "numaNodes: [0, 0]"), field: field + ".numaNodes[]", says: "Duplicate value"}},
	)
	for _, list := range []string{"models", "idGlobs", "excludeIDGlobs"} {
		globs := field + "." + list
		in := put(with, list+": %s")
		rows.join(refusals{
			globs + " is empty":        {change: put(in, "[]"), field: globs, says: "should have at least 1 items"},
			globs + " has 17 patterns": {change: put(in, listOf(17, "a%d*")), field: globs, says: "must have at most 16 items"},
			globs + " has one twice":   {change: put(in, "[a, a]"), field: globs + "[]", says: "Duplicate value"},
		}, boundRefusals(globs+"[]", put(in, "[%s]"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("g", 65): "may not be more than 64 bytes",
			"a/b": aGlob, `"a\nb"`: aGlob, `"{a,b}"`: aGlob,
		}))
	}
	return rows
}

// quantityRefusals returns the rows of a size.
func quantityRefusals(field, inside string) refusals {
	return boundRefusals(field, inside, map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		`"0"`: aSize, "0Gi": aSize, "-1Gi": aSize, "large": aSize, "1GiB": aSize, "4096": "must be of type string",
	})
}

// numaNodesRefusals returns the rows of a list of NUMA nodes.
func numaNodesRefusals(field, inside string) refusals {
	return refusals{
		field + " is empty":     {change: put(inside, "[]"), field: field, says: "should have at least 1 items"},
		field + " has 65 items": {change: put(inside, listOf(65, "%d")), field: field, says: "must have at most 64 items"},
	}.join(boundRefusals(field+"[]", put(inside, "[%s]"), map[string]string{
		"-1": "should be greater than or equal to 0", "1024": "should be less than or equal to 1023",
	}))
}

const (
	aChunk      = "the chunk of a RAID is a multiple of 4Ki, to 64Mi, such as 128Ki"
	twoStripes  = "raid sets the stripe of the filesystem; remove su, sw, sunit, swidth, stride, stripe_width and, unless fsType is xfs, -b from mkfsOptions"
	notRunYet   = "Lustre's targets of zfs are refused until they were run for real; use ldiskfs"
	asMkfsWrote = "Lustre mounts a target of ldiskfs with the options that mkfs.lustre wrote on it: remove mountOptions"
	lustresOnly = "targets of a Lustre are disks with format.fsType: ldiskfs, or without fsType; ldiskfs belongs to no other type: others use ext4, xfs or btrfs"
)

// formatRefusals returns the rows of a FormatSpec.
func formatRefusals(field, inside string) refusals {
	rows := refusals{
		field + " has a log device for ext4": {change: put(inside, "{fsType: ext4, logDevices: {countPerNode: 1}}"), field: field,
			says: "only XFS has external log devices"},
		field + " is a RAID below btrfs":          {change: put(inside, "{fsType: btrfs, raid: {level: 5, data: 4, chunk: 64Ki}}"), field: field, says: "btrfs takes no geometry of a RAID below it; remove raid"},
		field + " is a RAID 6 with one data disk": {change: put(inside, "{fsType: xfs, raid: {level: 6, data: 1, chunk: 64Ki}}"), field: field + ".raid", says: "a RAID of level 0, 5 or 6 has at least two disks with data"},
		field + " has two stripes of XFS": {change: put(inside, `{fsType: xfs, mkfsOptions: ["-d", "su=4096,sw=2"], raid: {level: 6, data: 8, chunk: 64Ki}}`), field: field,
			says: twoStripes},
		field + " has two stripes of ext4": {change: put(inside, `{fsType: ext4, mkfsOptions: ["-Estripe_width=64"], raid: {level: 6, data: 8, chunk: 64Ki}}`), field: field,
			says: twoStripes},
		field + " has a RAID with another block size": {change: put(inside, `{fsType: ext4, mkfsOptions: ["-b", "1024"], raid: {level: 6, data: 8, chunk: 64Ki}}`), field: field,
			says: twoStripes},
		field + " has a RAID with another block size and no type": {change: put(inside, `{mkfsOptions: ["-b", "1024"], raid: {level: 6, data: 8, chunk: 64Ki}}`), field: field,
			says: twoStripes},
		field + " is zfs": {change: put(inside, "{fsType: zfs}"), field: field, says: notRunYet},
		field + " has mount options for Lustre's targets": {change: put(inside, "{fsType: ldiskfs, mountOptions: [noatime]}"), field: field, says: asMkfsWrote},
		field + " has 33 options of mkfs":                 {change: put(inside, "{mkfsOptions: "+listOf(33, "-o%d")+"}"), field: field + ".mkfsOptions", says: "must have at most 32 items"},
		field + " has 33 mount options":                   {change: put(inside, "{mountOptions: "+listOf(33, "o%d")+"}"), field: field + ".mountOptions", says: "must have at most 32 items"},
		field + " has a mount option twice":               {change: put(inside, "{mountOptions: [noatime, noatime]}"), field: field + ".mountOptions[]", says: "Duplicate value"},
	}.join(
		boundRefusals(field+".raid.level", put(inside, "{fsType: xfs, raid: {level: %s, data: 8, chunk: 64Ki}}"), map[string]string{
			"1": "the level of a RAID is 0, 5, 6 or 10", "-1": tooLow + "0", "11": tooHigh + "10", "null": "Required value",
		}),
		boundRefusals(field+".raid.data", put(inside, "{fsType: xfs, raid: {level: 10, data: %s, chunk: 64Ki}}"), map[string]string{"0": tooLow + "1", "65": tooHigh + "64", "null": "Required value"}),
		boundRefusals(field+".raid.chunk", put(inside, "{fsType: xfs, raid: {level: 6, data: 8, chunk: %s}}"), map[string]string{
			"6Ki": aChunk, "128Mi": aChunk, `"0"`: aChunk, "much": aChunk, `""`: "should be at least 1 chars long", "null": "Required value",
			`"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		}),
		boundRefusals(field+".fsType", put(inside, "{fsType: %s}"), map[string]string{"f2fs": `supported values: "ext4", "xfs", "btrfs", "ldiskfs", "zfs"`}),
		boundRefusals(field+".mkfsOptions[]", put(inside, "{mkfsOptions: [%s]}"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("o", 129): "may not be more than 128 bytes",
			"/dev/sda": anMkfsOption, `"-i size=512"`: anMkfsOption, `"$(reboot)"`: anMkfsOption, `";"`: anMkfsOption,
		}),
		boundRefusals(field+".mountOptions[]", put(inside, "{mountOptions: [%s]}"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("o", 129): "may not be more than 128 bytes",
			`"noatime,ro"`: aMountOption, "-o": aMountOption, `"a b"`: aMountOption,
		}),
		selectorRefusals(field+".logDevices", put(inside, "{logDevices: %s}")),
	)
	for _, option := range []string{
		"ro", "remount", "bind", "rbind", "loop", "nouuid", "norecovery", "noload", "user", "users", "owner", "group", "nofail", "_netdev",
		"logdev=/dev/sdb", "device=/dev/sdb", "subvol=a", "subvolid=5", "x-gvfs-show", "x-systemd.automount",
	} {
		says := notForTargets
		if strings.Contains(option, ".") {
			says = aMountOption // a name has no period
		}
		rows.join(refusals{field + " has the mount option " + option: {change: put(inside, "{mountOptions: ["+option+"]}"), field: field + ".mountOptions[]", says: says}})
	}
	return rows
}

const queueTooDeep = "the kernel takes at most 2048 requests in a queue with a scheduler, and at most 10240 with scheduler none"

// queueRefusals are the rows of a QueueSpec.
func queueRefusals(field, inside string) refusals {
	rows := refusals{field + " is empty": {change: put(inside, "{}"), field: field, says: "should have at least 1 properties"}}
	for name, bounds := range map[string][2]int{"readAheadKB": {0, 1048576}, "maxSectorsKB": {4, 1048576}, "requests": {1, 65536}} {
		rows.join(boundRefusals(field+"."+name, put(inside, "{"+name+": %s}"), map[string]string{
			fmt.Sprint(bounds[0] - 1): fmt.Sprintf("should be greater than or equal to %d", bounds[0]),
			fmt.Sprint(bounds[1] + 1): fmt.Sprintf("should be less than or equal to %d", bounds[1]),
		}))
	}
	return rows.join(boundRefusals(field+".scheduler", put(inside, "{scheduler: %s}"), map[string]string{
		"cfq": `supported values: "none", "mq-deadline", "kyber", "bfq"`, `""`: "supported values",
	}))
}

// pinningRefusals returns the rows of a CPUPinning.
func pinningRefusals(field, inside string) refusals {
	static := put(inside, "{mode: KubeletStatic, %s}")
	set := put(inside, "{mode: CPUSet, cpuSets: %s}")
	numa, sets := "numaNodes belongs to the mode NUMANode", "mode CPUSet requires cpuSets, and no other mode takes it"
	kubelet, memory := "mode KubeletStatic requires cpus and memory, and no other mode takes them", "memoryPolicy belongs to the modes NUMANode and CPUSet"
	return refusals{
		field + " has no mode":                       {change: put(inside, "{numaNodes: [0]}"), field: field + ".mode", says: "Required value"},
		field + " is None and names NUMA nodes":      {change: put(inside, "{mode: None, numaNodes: [0]}"), field: field, says: numa},
		field + " is by CPUs and names none":         {change: put(inside, "{mode: CPUSet}"), field: field, says: sets},
		field + " is by NUMA node and names CPUs":    {change: put(inside, "{mode: NUMANode, numaNodes: [0], cpuSets: [0-3]}"), field: field, says: sets},
		field + " is static and has no memory":       {change: put(static, "cpus: 2"), field: field, says: kubelet},
		field + " is static and has no CPUs":         {change: put(static, "memory: 4Gi"), field: field, says: kubelet},
		field + " is None and has a number of CPUs":  {change: put(inside, "{mode: None, cpus: 2}"), field: field, says: kubelet},
		field + " is None and has a memory policy":   {change: put(inside, "{mode: None, memoryPolicy: Bind}"), field: field, says: memory},
		field + " is static and has a memory policy": {change: put(static, "cpus: 2, memory: 4Gi, memoryPolicy: Bind"), field: field, says: memory},
		field + ".cpuSets is empty":                  {change: put(set, "[]"), field: field + ".cpuSets", says: "should have at least 1 items"},
		field + ".cpuSets has 17 sets":               {change: put(set, listOf(17, `"%d"`)), field: field + ".cpuSets", says: "must have at most 16 items"},
	}.join(
		boundRefusals(field+".mode", put(inside, "{mode: %s}"), map[string]string{"Socket": `supported values: "None", "NUMANode", "CPUSet", "KubeletStatic"`}),
		boundRefusals(field+".memoryPolicy", put(inside, "{mode: NUMANode, numaNodes: [0], memoryPolicy: %s}"), map[string]string{
			"Interleave": `supported values: "Bind", "Preferred"`,
		}),
		boundRefusals(field+".cpuSets[]", put(set, "[%s]"), map[string]string{
			`""`: "should be at least 1 chars long", `"` + strings.Repeat("1,", 128) + `1"`: "may not be more than 256 bytes",
			`"0-"`: aCPUList, `"0;1"`: aCPUList, `"0, 1"`: aCPUList, "all": aCPUList, `"10000"`: aCPUList,
		}),
		boundRefusals(field+".cpus", put(static, "memory: 4Gi, cpus: %s"), map[string]string{
			"0": "should be greater than or equal to 1", "1025": "should be less than or equal to 1024",
		}),
		quantityRefusals(field+".memory", put(static, "cpus: 2, memory: %s")),
		numaNodesRefusals(field+".numaNodes", put(inside, "{mode: NUMANode, numaNodes: %s}")),
	)
}
