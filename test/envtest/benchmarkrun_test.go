//go:build envtest

package envtest_test

import "strings"

const (
	unknownSweep  = "a sweep varies processes, clients, storagePool, or a parameter of the run's tool, such as mdtest.items for mdtest"
	unknownDerive = "a derived value is processes, clients, storagePool, or a parameter of the run's tool, such as mdtest.items for mdtest"
	oneTool       = "set exactly one of spec.iozone, mdtest, ior, fio, postmark, vdbench, netmist, mdsSurvey, obdfilterSurvey, storagebench and custom: its name is the tool, and it may be empty ({}), but for custom"
	oneTarget     = "set exactly one of spec.target.fileSystem, persistentVolumeClaim and storageClass"
	aClaim        = "{fileSystem: null, persistentVolumeClaim: {claimName: data}}"
	aDuration     = "a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
)

var benchmarkRunRefusals = refusals{
	"there is no spec":                      {change: "spec: null", field: "spec", says: "Required value"},
	"its name has 41 characters":            {change: "metadata: {name: " + strings.Repeat("n", 41) + "}", field: "<nil>", says: "metadata.name of a BenchmarkRun has at most 40 characters, because the names of its jobs start with it"},
	"its name begins with a digit":          {change: "metadata: {name: 2017-single}", field: "<nil>", says: "metadata.name of a BenchmarkRun starts with a letter and holds no dot, because it becomes the name of hosts"},
	"its name has a dot":                    {change: "metadata: {name: run.v2}", field: "<nil>", says: "metadata.name of a BenchmarkRun starts with a letter and holds no dot, because it becomes the name of hosts"},
	"the target is left out":                {change: "spec: {target: null}", field: "spec.target", says: "Required value"},
	"the target names nothing":              {change: "spec: {target: {fileSystem: null}}", field: "spec.target", says: oneTarget},
	"two targets are named":                 {change: "spec: {target: {persistentVolumeClaim: {claimName: data}}}", field: "spec.target", says: oneTarget},
	"the class has no size":                 {change: "spec: {target: {fileSystem: null, storageClass: {name: fast}}}", field: "spec.target.storageClass.size", says: "Required value"},
	"the class has no name":                 {change: "spec: {target: {fileSystem: null, storageClass: {size: 1Gi}}}", field: "spec.target.storageClass.name", says: "Required value"},
	"the size of a claim is no amount":      {change: "spec: {target: {fileSystem: null, storageClass: {name: fast, size: many}}}", field: "spec.target.storageClass.size", says: "spec.target.storageClass.size is an amount of storage, such as 100Gi"},
	"the size of a claim is nothing":        {change: "spec: {target: {fileSystem: null, storageClass: {name: fast, size: \"0\"}}}", field: "spec.target.storageClass.size", says: "spec.target.storageClass.size is an amount of storage, such as 100Gi"},
	"a claim can only be read":              {change: "spec: {target: {fileSystem: null, storageClass: {name: fast, size: 1Gi, accessMode: ReadOnlyMany}}}", field: "spec.target.storageClass.accessMode", says: `supported values: "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"`},
	"the claim has no name":                 {change: "spec: {target: {fileSystem: null, persistentVolumeClaim: {claimName: null}}}", field: "spec.target.persistentVolumeClaim.claimName", says: "Required value"},
	"caches of a volume are dropped":        {change: "spec: {target: " + aClaim + ", caches: {drop: Clients}}", field: "spec", says: "spec.caches needs the agents of a FileSystem's nodes; for another target leave it out, and use direct I/O or files twice as large as the memory of a client"},
	"the servers of a volume are measured":  {change: "spec: {target: " + aClaim + ", tool: storagebench, iozone: null, storagebench: {}}", field: "spec", says: "mdsSurvey, obdfilterSurvey and storagebench measure the servers of a FileSystem, so they require spec.target.fileSystem"},
	"pools of a volume are swept":           {change: "spec: {target: " + aClaim + ", sweep: [{name: storagePool, values: [ssd]}]}", field: "spec", says: "only a FileSystem has storage pools, so a sweep or derive over storagePool requires spec.target.fileSystem"},
	"the claim becomes another one":         {before: "spec: {target: " + aClaim + "}", change: "spec: {target: {persistentVolumeClaim: {claimName: other}}}", field: "spec", says: immutableRun},
	"the filesystem has no name":            {change: "spec: {target: {fileSystem: {name: null}}}", field: "spec.target.fileSystem.name", says: "Required value"},
	"the filesystem's name is empty":        {change: `spec: {target: {fileSystem: {name: ""}}}`, field: "spec.target.fileSystem.name", says: "should be at least 1 chars long"},
	"the filesystem's name is 254 long":     {change: "spec: {target: {fileSystem: {name: " + strings.Repeat("n", 254) + "}}}", field: "spec.target.fileSystem.name", says: "may not be more than 253 bytes"},
	"the storage pool is empty":             {change: `spec: {target: {fileSystem: {storagePool: ""}}}`, field: "spec.target.fileSystem.storagePool", says: "should be at least 1 chars long"},
	"the storage pool is 25 long":           {change: "spec: {target: {fileSystem: {storagePool: " + strings.Repeat("n", 25) + "}}}", field: "spec.target.fileSystem.storagePool", says: "may not be more than 24 bytes"},
	"the tool is not known":                 {change: "spec: {tool: dd}", field: "spec.tool", says: `supported values: "iozone", "mdtest", "ior", "fio", "postmark", "vdbench", "netmist", "mdsSurvey", "obdfilterSurvey", "storagebench", "custom"`},
	"no tool has a member":                  {change: "spec: {tool: null, iozone: null}", field: "spec", says: oneTool},
	"two tools have members":                {change: "spec: {mdtest: {}}", field: "spec", says: oneTool},
	"the tool is not the one with a member": {change: "spec: {tool: mdtest}", field: "spec", says: "spec.tool names another tool than the member that is set; leave spec.tool out"},
	"there is no process":                   {change: "spec: {processes: 0}", field: "spec.processes", says: "should be greater than or equal to 1"},
	"there are 65537 processes":             {change: "spec: {processes: 65537}", field: "spec.processes", says: "should be less than or equal to 65536"},
	"there is no repetition":                {change: "spec: {repetitions: 0}", field: "spec.repetitions", says: "should be greater than or equal to 1"},
	"there are 101 repetitions":             {change: "spec: {repetitions: 101}", field: "spec.repetitions", says: "should be less than or equal to 100"},
	"the statistic is not known":            {change: "spec: {statistic: Mode}", field: "spec.statistic", says: `supported values: "Mean", "Median", "Min", "Max", "TrimmedMean", "Worst"`},
	"a trimmed mean of two samples":         {change: "spec: {statistic: TrimmedMean, repetitions: 2}", field: "spec", says: "TrimmedMean drops the highest and the lowest sample, so spec.repetitions must be at least 3"},

	"the mode is not known":        {change: "spec: {iozone: {mode: Cluster}}", field: "spec.iozone.mode", says: `supported values: "SingleClient", "Distributed"`},
	"a test is not known":          {change: "spec: {iozone: {tests: [Write, Append]}}", field: "spec.iozone.tests[]", says: `supported values: "Write", "Read", "Random"`},
	"there is no test":             {change: "spec: {iozone: {tests: []}}", field: "spec.iozone.tests", says: "should have at least 1 items"},
	"there are four tests":         {change: "spec: {iozone: {tests: [Write, Read, Random, Write]}}", field: "spec.iozone.tests", says: "must have at most 3 items"},
	"a test is given twice":        {change: "spec: {iozone: {tests: [Write, Write]}}", field: "spec.iozone.tests[]", says: "Duplicate value"},
	"tests read what nobody wrote": {change: "spec: {iozone: {tests: [Read, Random]}}", field: "spec.iozone", says: "spec.iozone.tests must hold Write, because the other tests use its files"},

	"a single client shall be two": {change: "spec: {clients: {count: 2}}", field: "spec", says: "spec.clients.count must be 1 (or unset) when spec.iozone.mode is SingleClient"},
	"a single client is swept":     {change: sweep("clients", `["1", "2"]`), field: "spec", says: singleClientSweeps},
	"a single client is derived":   {change: derive("clients", "processes"), field: "spec", says: singleClientSweeps},

	"a dimension is of another tool":                {change: sweep("mdtest.depth", `["2"]`), field: "spec", says: unknownSweep},
	"a dimension's value is neither true nor false": {change: sweep("iozone.recordSize", "[true]"), field: "spec.sweep[].values[]", says: "must be of type integer,string"},
	"a dimension's value is an argument":            {change: sweep("iozone.recordSize", `["64k -f /etc/passwd"]`), field: "spec.sweep[].values[]", says: `should match '^[A-Za-z0-9][A-Za-z0-9._:+-]*$'`},

	"a number of processes has a unit": {change: sweep("processes", `["4", "1k"]`), field: "spec.sweep[]",
		says: "the values of processes and clients are numbers without a unit"},
	"a number of clients has a unit": {change: sweep("clients", "[1k]"), field: "spec.sweep[]",
		says: "the values of processes and clients are numbers without a unit"},

	"derive is of another tool":   {change: derive("mdtest.depth", "1"), field: "spec", says: unknownDerive},
	"a name is swept and derived": {change: sweep("processes", `["1"]`) + "\n---\n" + derive("processes", "2"), field: "spec", says: "a name can't be swept and derived at once"},

	"a dimension has values and a range":            {change: `spec: {sweep: [{name: processes, values: ["1"], range: {from: "1", to: "2"}}]}`, field: "spec.sweep[]", says: "set exactly one of values, range and powersOfTwo"},
	"a dimension has nothing but a name":            {change: "spec: {sweep: [{name: processes}]}", field: "spec.sweep[]", says: "set exactly one of values, range and powersOfTwo"},
	"a rule to stop ends before it may begin":       {change: `spec: {repetitions: 6, until: {confidencePercent: "1", maxRepetitions: 5}}`, field: "spec", says: "spec.until.maxRepetitions must be at least spec.repetitions"},
	"a rule to stop asks for no error at all":       {change: `spec: {repetitions: 2, until: {confidencePercent: "0"}}`, field: "spec.until.confidencePercent", says: "confidencePercent is from 0.001 to 99.999"},
	"a tolerance is all of it":                      {change: "spec: {baseline: {run: other, tolerancePercent: 100}}", field: "spec.baseline.tolerancePercent", says: "tolerancePercent is from 0 to 99.999"},
	"a seed of an order that is written":            {change: "spec: {seed: 7}", field: "spec", says: "spec.seed requires spec.order Shuffled"},
	"an expectation without a bound":                {change: "spec: {expect: [{name: fast, metric: write}]}", field: "spec.expect[]", says: "set atLeast, atMost or both, or value with tolerancePercent"},
	"an expectation of two kinds":                   {change: "spec: {expect: [{name: fast, metric: write, atLeast: 1, value: 2, tolerancePercent: 5}]}", field: "spec.expect[]", says: "set atLeast, atMost or both, or value with tolerancePercent"},
	"an expectation of a value without a tolerance": {change: "spec: {expect: [{name: fast, metric: write, value: 2}]}", field: "spec.expect[]", says: "value and tolerancePercent are set together"},
	"an expectation with all of it as tolerance":    {change: "spec: {expect: [{name: fast, metric: write, value: 2, tolerancePercent: 100}]}", field: "spec.expect[].tolerancePercent", says: "tolerancePercent is from 0 to 99.999"},
	"an expectation that no value meets":            {change: `spec: {expect: [{name: fast, metric: write, atLeast: 10, atMost: "9.5"}]}`, field: "spec.expect[]", says: "atLeast must not be above atMost, because no value would be accepted"},
	"there is no expectation":                       {change: "spec: {expect: []}", field: "spec.expect", says: "should have at least 1 items"},
	"an expectation of a word":                      {change: "spec: {expect: [{name: fast, metric: write, atLeast: much}]}", field: "spec.expect[].atLeast", says: "should match"},
	"a baseline of nothing":                         {change: "spec: {baseline: {}}", field: "spec.baseline", says: "set exactly one of spec.baseline.run and spec.baseline.published"},
	"a baseline of two things":                      {change: "spec: {baseline: {run: before, published: table}}", field: "spec.baseline", says: "set exactly one of spec.baseline.run and spec.baseline.published"},
	"a variant of a run":                            {change: "spec: {baseline: {run: before, variant: a}}", field: "spec.baseline", says: "spec.baseline.variant names a variant of a published table, so it requires spec.baseline.published"},
	"results that go nowhere":                       {change: "spec: {results: {}}", field: "spec.results", says: "spec.results needs persistentVolumeClaim, objectStore, or both"},
	"a pause of two days":                           {change: "spec: {pause: 48h}", field: "spec.pause", says: "spec.pause must be at most 24h"},
	"mdtest stats what nobody has made":             {change: "spec: {tool: mdtest, iozone: null, mdtest: {phases: [Stat]}}", field: "spec.mdtest", says: "spec.mdtest.phases must hold Create, because the other phases use its items"},
	"mdtest measures neither files nor directories": {change: "spec: {tool: mdtest, iozone: null, mdtest: {filesOnly: true, directoriesOnly: true}}", field: "spec.mdtest", says: "filesOnly and directoriesOnly together leave nothing to measure"},
	"IOR reads what nobody has written":             {change: "spec: {tool: ior, iozone: null, ior: {operations: [Read]}}", field: "spec.ior", says: "spec.ior.operations must hold Write, because Read uses its files"},
	"a metric is found in two ways":                 {change: `spec: {tool: custom, iozone: null, custom: {command: [x], metrics: [{name: a, unit: b, regex: "(.)", jsonPath: "{.a}"}]}}`, field: "spec.custom.metrics[]", says: "set exactly one of regex and jsonPath"},

	"the filesystem is changed":          {before: "{}", change: "spec: {target: {fileSystem: {name: other}}}", field: "spec", says: immutableRun},
	"the storage pool is chosen":         {before: "{}", change: "spec: {target: {fileSystem: {storagePool: ssd}}}", field: "spec", says: immutableRun},
	"a parameter of the tool is changed": {before: "{}", change: "spec: {iozone: {directIO: true}}", field: "spec", says: immutableRun},
	"the clients are changed":            {before: "{}", change: "spec: {clients: {count: 1}}", field: "spec", says: immutableRun},
	"the processes are changed":          {before: "{}", change: "spec: {processes: 2}", field: "spec", says: immutableRun},
	"a sweep is added":                   {before: "{}", change: sweep("processes", `["1"]`), field: "spec", says: immutableRun},
	"a sweep is changed":                 {before: sweep("processes", `["1"]`), change: sweep("processes", `["1", "2"]`), field: "spec", says: immutableRun},
	"a sweep is removed":                 {before: sweep("processes", `["1"]`), change: "spec: {sweep: null}", field: "spec", says: immutableRun},
	"derive is added":                    {before: "{}", change: derive("processes", "1"), field: "spec", says: immutableRun},
	"derive is changed":                  {before: derive("processes", "1"), change: derive("processes", "2"), field: "spec", says: immutableRun},
	"derive is removed":                  {before: derive("processes", "1"), change: "spec: {derive: null}", field: "spec", says: immutableRun},
	"the repetitions are changed":        {before: "{}", change: "spec: {repetitions: 2}", field: "spec", says: immutableRun},
	"the statistic is changed":           {before: "{}", change: "spec: {statistic: Median}", field: "spec", says: immutableRun},
	"limits are added":                   {before: "{}", change: "spec: {limits: {timeout: 1h}}", field: "spec", says: immutableRun},
	"limits are changed":                 {before: "spec: {limits: {timeout: 1h}}", change: "spec: {limits: {timeout: 2h}}", field: "spec", says: immutableRun},
	"limits are removed":                 {before: "spec: {limits: {timeout: 1h}}", change: "spec: {limits: null}", field: "spec", says: immutableRun},
	"the image is chosen":                {before: "{}", change: "spec: {image: x}", field: "spec", says: immutableRun},
	"the sweep is zipped":                {before: "{}", change: "spec: {sweepMode: Zipped}", field: "spec", says: immutableRun},
	"the order is changed":               {before: "{}", change: "spec: {order: Shuffled}", field: "spec", says: immutableRun},
	"the order has another seed":         {before: "spec: {order: Shuffled, seed: 1}", change: "spec: {seed: 2}", field: "spec", says: immutableRun},
	"a warm-up is added":                 {before: "{}", change: "spec: {warmUp: {}}", field: "spec", says: immutableRun},
	"caches are dropped":                 {before: "{}", change: "spec: {caches: {drop: All}}", field: "spec", says: immutableRun},
	"a pause is added":                   {before: "{}", change: "spec: {pause: 1s}", field: "spec", says: immutableRun},
	"a rule to stop is added":            {before: "spec: {repetitions: 2}", change: "spec: {until: {confidencePercent: \"1\"}}", field: "spec", says: immutableRun},
	"the scaling is changed":             {before: "{}", change: "spec: {along: processes}", field: "spec", says: immutableRun},
	"the pods get limits":                {before: "{}", change: "spec: {pods: {resources: {limits: {cpu: \"1\"}}}}", field: "spec", says: immutableRun},
	"the limits of pods are changed": {
		before: "spec: {pods: {resources: {limits: {cpu: \"1\"}}}}", change: "spec: {pods: {resources: {limits: {cpu: \"2\"}}}}", field: "spec", says: immutableRun,
	},
	"the limits of pods are removed": {
		before: "spec: {pods: {resources: {limits: {cpu: \"1\"}}}}", change: "spec: {pods: null}", field: "spec", says: immutableRun,
	},
}.join(
	benchmarkBounds(), benchmarkPodsRefusals(),
	optionalSelectorRefusals("spec.clients.nodeSelector", "spec: {clients: {nodeSelector: null}}\n---\nspec: {clients: {nodeSelector: %s}}"),
	sizeRefusals("recordSize"), sizeRefusals("fileSize"),
	boundRefusals("spec.limits.pointTimeout", "spec: {limits: {pointTimeout: %s}}", map[string]string{
		`""`: "should be at least 2 chars long", strings.Repeat("1", 32) + "s": "may not be more than 32 bytes", `"30"`: aDuration, "30d": aDuration,
		"999ms": "spec.limits.pointTimeout must be from 1s to 24h", "24h1s": "spec.limits.pointTimeout must be from 1s to 24h",
	}),
	boundRefusals("spec.limits.timeout", "spec: {limits: {timeout: %s}}", map[string]string{
		`""`: "should be at least 2 chars long", strings.Repeat("1", 32) + "s": "may not be more than 32 bytes", `"30"`: aDuration, "30d": aDuration,
		"999ms": "spec.limits.timeout must be from 1s to 720h", "721h": "spec.limits.timeout must be from 1s to 720h",
	}),
	boundRefusals("spec.pause", "spec: {pause: %s}", map[string]string{"1d": aDuration, "25h": "spec.pause must be at most 24h"}),
	boundRefusals("spec.ttlSecondsAfterFinished", "spec: {ttlSecondsAfterFinished: %s}", ttlBounds),
	boundRefusals("spec.target.persistentVolumeClaim.claimName", "spec: {target: {fileSystem: null, persistentVolumeClaim: {claimName: %s}}}", emptyOrLong(253)),
	boundRefusals("spec.target.storageClass.name", "spec: {target: {fileSystem: null, storageClass: {name: %s, size: 1Gi}}}", emptyOrLong(253)),
	boundRefusals("spec.target.storageClass.size", "spec: {target: {fileSystem: null, storageClass: {name: fast, size: %s}}}", map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
	}),
	boundRefusals("spec.rawOutputTTL", "spec: {rawOutputTTL: %s}", map[string]string{
		`""`: "should be at least 2 chars long", strings.Repeat("1", 32) + "s": "may not be more than 32 bytes", `"30"`: aDuration, "30d": aDuration,
		"59s": "spec.rawOutputTTL must be from 1m to 8760h", "8761h": "spec.rawOutputTTL must be from 1m to 8760h",
	}),
)

var benchmarkRunAccepted = map[string]string{
	"it has only what is required": "{}",
	"it has everything that there is": `
metadata: {name: ` + strings.Repeat("n", 40) + `}
spec:
  target: {fileSystem: {storagePool: ssd}}
  iozone:
    {mode: Distributed, tests: [Write, Read, Random], recordSize: 1024Ki, fileSize: 20Gi, directIO: true, includeFlush: true,
     includeClose: true, useThreads: true, noRetest: true}
  clients: {count: 5000}
  processes: 65536
  sweep:
  - {name: clients, values: ["1", "2", "4"]}
  - {name: iozone.recordSize, values: ["4", 64Ki, 1Mi]}
  derive:
  - {name: processes, cel: "4 * clients"}
  - {name: iozone.fileSize, cel: "1073741824 / clients"}
  repetitions: 100
  statistic: TrimmedMean
  limits: {pointTimeout: 1.5h, timeout: 12h30m}
  ttlSecondsAfterFinished: 604800
  suspend: true
`,
	"a sweep has as many names and values as there can be": largest["BenchmarkRun"],
	"mdtest has everything that there is":                  "spec: null\n---\n" + fullRuns["run"],
	"IOR has everything that there is":                     "spec: null\n---\n" + fullRuns["ior"],
	"fio has everything that there is":                     "spec: null\n---\n" + fullRuns["fio"],
	"postmark has everything that there is":                "spec: null\n---\n" + fullRuns["postmark"],
	"vdbench has everything that there is":                 "spec: null\n---\n" + fullRuns["vdbench"],
	"netmist has everything that there is":                 "spec: null\n---\n" + fullRuns["netmist"],
	"mdsSurvey has everything that there is":               "spec: null\n---\n" + fullRuns["mdsSurvey"],
	"obdfilterSurvey has everything that there is":         "spec: null\n---\n" + fullRuns["obdfilterSurvey"],
	"storagebench has everything that there is":            "spec: null\n---\n" + fullRuns["storagebench"],
	"custom has everything that there is":                  "spec: null\n---\n" + fullRuns["custom"],
	"a StorageClass is measured":                           "spec: {target: {fileSystem: null, storageClass: {name: fast, size: 100Gi, accessMode: ReadWriteMany}}}",
	"a claim is measured":                                  "spec: {target: " + aClaim + "}",
	"only writes are measured":                             "spec: {iozone: {tests: [Write]}}",
	"a trimmed mean of three samples":                      "spec: {statistic: TrimmedMean, repetitions: 3}",
	"one client is named as its only one":                  "spec: {clients: {count: 1}}",
	"an expectation is met by one value only":              `spec: {expect: [{name: one, metric: write, atLeast: 40000, atMost: "40000.0"}]}`,
	"a duration is shorter than a minute":                  "spec: {limits: {pointTimeout: 1s, timeout: 90s}, pause: 1500ms}",
}

var benchmarkRunChanges = map[string]string{
	"the run is suspended":                   "spec: {suspend: true}",
	"the run is to be kept for a day":        "spec: {ttlSecondsAfterFinished: 86400}",
	"its raw output is to be kept for a day": "spec: {rawOutputTTL: 24h}",
	"the run is queued":                      "spec: {queueName: gpu, priorityClassName: high}",
	"its pods get labels":                    "spec: {pods: {labels: {cost-center: \"7\"}, imagePullSecrets: [{name: registry}]}}",
	"a baseline is chosen":                   "spec: {baseline: {run: before}}",
	"results shall go to a claim":            "spec: {results: {persistentVolumeClaim: {name: results}}}",
}

// largest holds the changes that make an object as large as its bounds allow.
var largest = map[string]string{
	"FileSystem": "spec: {storagePools: [" + strings.Join(fullPools(), ", ") + "]}",
	"BenchmarkRun": "spec: {iozone: {mode: Distributed}, sweep: [" +
		`{name: processes, values: ` + listOf(64, `"1%d"`) + `}, {name: clients, values: ` + listOf(64, `"1%d"`) +
		`}, {name: iozone.recordSize, values: ` + listOf(64, `1%dk`) + `}, {name: iozone.fileSize, values: ` + listOf(64, `1%dm`) + "}]}",
	"BenchmarkSuite": "spec: {variants: " + listOf(64, "{name: v%d, scale: 1}") + ", runs: " + listOf(16, "{name: r%d, spec: {}}") + "}",
	"FileSystemNode": largestFileSystemNode(),
	"StorageTarget": "spec: {fileSystem: {name: " + strings.Repeat("f", 40) + "}, node: " + strings.Repeat("n", 253) + ", device: " + fullIdentity("a") +
		", logDevice: " + fullIdentity("b") + ", format: " + fullFormat() + ", queue: {requests: 64}, conflict: " + strings.Repeat("c", 1024) + "}",
}

var allAccepted = map[string]map[string]string{
	"FileSystem": fileSystemAccepted, "BeeGFS": beegfsAccepted, "BenchmarkRun": benchmarkRunAccepted, "BenchmarkSuite": benchmarkSuiteAccepted, "StorageTarget": storageTargetAccepted,
	"FileSystemNode": fileSystemNodeAccepted, "Lustre": lustreAccepted,
}

var allChanges = map[string]map[string]string{
	"FileSystem": fileSystemChanges, "BeeGFS": beegfsChanges, "BenchmarkRun": benchmarkRunChanges, "BenchmarkSuite": benchmarkSuiteChanges, "StorageTarget": storageTargetChanges,
	"FileSystemNode": fileSystemNodeChanges, "Lustre": lustreChanges,
}

// sweep returns a patch with one dimension, and derive one with one computed name.
func sweep(name, values string) string {
	return "spec: {sweep: [{name: " + name + ", values: " + values + "}]}"
}

func derive(name, cel string) string {
	return "spec: {derive: [{name: " + name + `, cel: "` + cel + `"}]}`
}

// sizeRefusals returns the rows of an IOzoneSize.
func sizeRefusals(name string) refusals {
	field, match := "spec.iozone."+name, `should match '^[1-9][0-9]{0,11}[KMG]i$'`
	change := func(value string) string { return "spec: {iozone: {" + name + ": " + value + "}}" }
	return refusals{
		field + " is empty":                   {change: change(`""`), field: field, says: "should be at least 1 chars long"},
		field + " is 15 long":                 {change: change(`"` + strings.Repeat("1", 15) + `"`), field: field, says: "may not be more than 14 bytes"},
		field + " is 0":                       {change: change(`"0"`), field: field, says: match},
		field + " has a unit of iozone":       {change: change("64m"), field: field, says: match},
		field + " has the unit GB":            {change: change("64GB"), field: field, says: "a size of iozone is a whole number with Ki, Mi or Gi, such as 64Mi"},
		field + " has a unit in capitals":     {change: change("64K"), field: field, says: match},
		field + " has no unit":                {change: change(`"64"`), field: field, says: match},
		field + " is an argument":             {change: change(`"1Gi -f /etc"`), field: field, says: match},
		field + " is a number without quotes": {change: change("64"), field: field, says: "must be of type string"},
	}
}

// ttlBounds are the bounds of ttlSecondsAfterFinished. A duration with a unit is refused: it is in seconds, as in a Job.
var ttlBounds = map[string]string{"-1": tooLow + "0", "2147483648": tooHigh + "2147483647", "168h": "must be of type integer"}
