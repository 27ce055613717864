//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// fullBackups has a value for every field of spec.backups.
const fullBackups = `
spec:
 clients: {nodeSelector: {client: ""}, mountPath: /mnt/scratch}
 backups:
  schedule: "*/15 0-6,22 1,15 JAN-jun mon-FRI"
  timeZone: America/Argentina/Buenos_Aires
  persistentVolumeClaim: {name: vault.of-storage, path: pfs/metadata}
  objectStore: {endpoint: "http://s3.example.org:9000", bucket: metadata.backups, prefix: a/b, region: eu-north-1, secretName: s3}
  nodes: {nodeSelector: {backups: ""}, count: 3, directory: /srv/backups}
  keep: {count: 100, maxAgeDays: 3650}
`

// backups returns a patch with a part of spec.backups.
func backups(content string) string { return "spec: {backups: {schedule: '@daily', " + content + "}}" }

// backupsIn returns a patch with which nodes store backups in a directory.
func backupsIn(directory string) string {
	return backups(`nodes: {nodeSelector: {backups: ""}, directory: ` + directory + "}")
}

// backupsRefusals returns the rows of spec.backups.
func backupsRefusals() refusals {
	const (
		inMount    = "spec.backups.nodes.directory must not equal, contain or lie in spec.clients.mountPath: a backup in the filesystem is lost with it"
		inMetadata = "spec.backups.nodes.directory must not equal, contain or lie in a directory of the metadata or of the management service, or in /var/lib/parallelfs, where daemons keep their state"
		inPool     = "spec.backups.nodes.directory must not equal, contain or lie in a storage pool's directory"
		aSchedule  = `should match '^(@(hourly|daily|weekly|monthly)|[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/-]+){4})$'`
		aZone      = `should match '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$'`
		aPath      = `should match '^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$'`
		vault      = "persistentVolumeClaim: {name: vault}"
	)
	rows := refusals{
		"backups go nowhere": {change: "spec: {backups: {schedule: '@daily'}}", field: "spec.backups",
			says: "spec.backups needs persistentVolumeClaim, objectStore or nodes, or several of them"},
		"backups have no schedule": {change: "spec: {backups: {" + vault + "}}", field: "spec.backups.schedule", says: "Required value"},
		"the claim of backups has no name": {change: backups("persistentVolumeClaim: {path: pfs}"), field: "spec.backups.persistentVolumeClaim.name",
			says: "Required value"},
		"backups are where clients mount":                  {change: clients("/mnt/scratch") + "\n---\n" + backupsIn("/mnt/scratch"), field: "spec", says: inMount},
		"backups lie in the filesystem":                    {change: clients("/mnt/scratch") + "\n---\n" + backupsIn("/mnt/scratch/backups"), field: "spec", says: inMount},
		"backups hold the filesystem":                      {change: clients("/mnt/fs/scratch") + "\n---\n" + backupsIn("/mnt/fs"), field: "spec", says: inMount},
		"backups are the metadata":                         {change: backupsIn("/data/metadata"), field: "spec", says: inMetadata},
		"backups lie in the metadata":                      {change: backupsIn("/data/metadata/backups"), field: "spec", says: inMetadata},
		"backups lie in the store of a management service": {change: beegfs + "\n---\n" + backupsIn("/data/management/backups"), field: "spec", says: inMetadata},
		"backups lie where daemons keep their state":       {change: backupsIn("/var/lib/parallelfs/backups"), field: "spec", says: inMetadata},
		"backups hold the state of daemons":                {change: backupsIn("/var/lib"), field: "spec", says: inMetadata},
		"backups are a target":                             {change: backupsIn("/data/ssd"), field: "spec", says: inPool},
		"backups lie in a target":                          {change: backupsIn("/data/ssd/backups"), field: "spec", says: inPool},
	}.join(
		nodeSelectorRefusals("spec.backups.nodes.nodeSelector", "spec: {backups: {schedule: '@daily', nodes: {nodeSelector: %s}}}"),
		pathRefusals("spec.backups.nodes.directory", "spec: {backups: {schedule: '@daily', nodes: {nodeSelector: {b: \"\"}, directory: %s}}}"),
		boundRefusals("spec.backups.nodes.count", "spec: {backups: {schedule: '@daily', nodes: {nodeSelector: {b: \"\"}, count: %s}}}", map[string]string{
			"0": "should be greater than or equal to 1", "4": "should be less than or equal to 3",
		}),
		boundRefusals("spec.backups.keep.count", "spec: {backups: {schedule: '@daily', "+vault+", keep: {count: %s}}}", map[string]string{
			"0": "should be greater than or equal to 1", "101": "should be less than or equal to 100",
		}),
		boundRefusals("spec.backups.keep.maxAgeDays", "spec: {backups: {schedule: '@daily', "+vault+", keep: {maxAgeDays: %s}}}", map[string]string{
			"0": "should be greater than or equal to 1", "3651": "should be less than or equal to 3650",
		}),
		boundRefusals("spec.backups.readAgainDays", "spec: {backups: {schedule: '@daily', "+vault+", readAgainDays: %s}}", map[string]string{
			"0": "should be greater than or equal to 1", "3651": "should be less than or equal to 3650",
		}),
		boundRefusals("spec.backups.schedule", "spec: {backups: {"+vault+", schedule: %s}}", map[string]string{
			"'@new'": "should be at least 6 chars long", "'* * * * " + strings.Repeat("1", 128) + "'": "may not be more than 128 bytes",
			"'0 3 * *'": aSchedule, "'0 3 * * * *'": aSchedule, "'@every 5m'": aSchedule, "'TZ=UTC 0 3 * * *'": aSchedule, "'0 3 * * ;'": aSchedule,
			`"0 3 * * *\n"`: aSchedule,
		}),
		boundRefusals("spec.backups.timeZone", "spec: {backups: {schedule: '@daily', "+vault+", timeZone: %s}}", map[string]string{
			"UT": "should be at least 3 chars long", strings.Repeat("Z", 65): "may not be more than 64 bytes", "../etc/passwd": aZone, "Europe/": aZone,
			"Europe/Berlin/Mitte/Invaliden": aZone,
		}),
		boundRefusals("spec.backups.persistentVolumeClaim.name", "spec: {backups: {schedule: '@daily', persistentVolumeClaim: {name: %s}}}", map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
			"Vault": "should match '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$'",
		}),
		boundRefusals("spec.backups.persistentVolumeClaim.path", "spec: {backups: {schedule: '@daily', persistentVolumeClaim: {name: vault, path: %s}}}",
			map[string]string{
				`""`: "should be at least 1 chars long", strings.Repeat("p", 256): "may not be more than 255 bytes", "/pfs": aPath, "../pfs": aPath,
				"pfs/../../etc": aPath, "pfs/": aPath, `"pfs; rm"`: aPath,
			}),
	)
	return rows.join(storeRefusals())
}

// storeRefusals returns the rows of spec.backups.objectStore.
func storeRefusals() refusals {
	const at = "spec.backups.objectStore"
	good := map[string]string{"endpoint": "'https://s3.example.org'", "bucket": "vault", "secretName": "s3"}
	// with returns the store with another value of a field, or without it.
	with := func(field, value string) string {
		var fields []string
		for _, name := range []string{"endpoint", "bucket", "secretName"} {
			if name != field {
				fields = append(fields, name+": "+good[name])
			}
		}
		if value != "" {
			fields = append(fields, field+": "+value)
		}
		return backups("objectStore: {" + strings.Join(fields, ", ") + "}")
	}
	rows := refusals{}
	for field := range good {
		rows["the object store of backups has no "+field] = refusal{change: with(field, ""), field: at + "." + field, says: "Required value"}
	}
	const (
		aURL    = `should match '^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$'`
		aBucket = `should match '^[a-z0-9][a-z0-9.-]*$'`
		aPrefix = `should match '^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$'`
	)
	for field, bounds := range map[string]map[string]string{
		"endpoint": {"'http://s3/'": aURL, "'http:/'": "should be at least 8 chars long", "'https://" + strings.Repeat("s", 248) + "'": "may not be more than 255 bytes",
			"'https://user:word@s3'": aURL, "'https://s3/vault'": aURL},
		"bucket":     {"va": "should be at least 3 chars long", strings.Repeat("b", 64): "may not be more than 63 bytes", "Vault": aBucket, "vault/pfs": aBucket},
		"prefix":     {`""`: "should be at least 1 chars long", strings.Repeat("p", 256): "may not be more than 255 bytes", "/pfs": aPrefix, "../pfs": aPrefix},
		"region":     {`""`: "should be at least 1 chars long", strings.Repeat("r", 64): "may not be more than 63 bytes"},
		"secretName": {`""`: "should be at least 1 chars long", strings.Repeat("s", 254): "may not be more than 253 bytes"},
	} {
		rows = rows.join(boundRefusals(at+"."+field, with(field, "%s"), bounds))
	}
	return rows
}

// largestBackups is a spec.backups of the maximum size.
var largestBackups = fmt.Sprintf("spec: {backups: {schedule: %q, timeZone: %s, persistentVolumeClaim: {name: %s, path: %s}, "+
	"objectStore: {endpoint: 'https://%s', bucket: %s, prefix: %s, region: %s, secretName: %s}, nodes: {nodeSelector: %s, directory: %s}}}",
	"* * * * "+strings.Repeat("1", 120), strings.Repeat("Z", 64), strings.Repeat("n", 253), strings.Repeat("p", 255),
	strings.Repeat("e", 247), strings.Repeat("b", 63), strings.Repeat("p", 255), strings.Repeat("r", 63), strings.Repeat("s", 253),
	mapOf(16, strings.Repeat("k", 60)+"%02d", strings.Repeat("v", 63)), "/srv/"+strings.Repeat("d", 123))
