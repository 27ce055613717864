//go:build envtest

package envtest_test

import "strings"

const (
	unknownSweep  = "a sweep of iozone varies processes, clients, iozone.recordSize or iozone.fileSize; no other name is known"
	unknownDerive = "a derived value of iozone is processes, clients, iozone.recordSize or iozone.fileSize; no other name is known"
	sweepValue    = "a sweep's values are whole numbers greater than 0, with k, m or g where the parameter is a size"
	aDuration     = `should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`
	aName         = `should match '^[a-z]+(\.[a-z][A-Za-z]*)?$'`
)

var benchmarkRunRefusals = refusals{
	"there is no spec":                    {change: "spec: null", field: "spec", says: "Required value"},
	"its name has 41 characters":          {change: "metadata: {name: " + strings.Repeat("n", 41) + "}", field: "<nil>", says: "metadata.name of a BenchmarkRun has at most 40 characters, because the names of its jobs start with it"},
	"its name begins with a digit":        {change: "metadata: {name: 2017-single}", field: "<nil>", says: "metadata.name of a BenchmarkRun starts with a letter and holds no dot, because it becomes the name of hosts"},
	"its name has a dot":                  {change: "metadata: {name: run.v2}", field: "<nil>", says: "metadata.name of a BenchmarkRun starts with a letter and holds no dot, because it becomes the name of hosts"},
	"the filesystem is left out":          {change: "spec: {fileSystem: null}", field: "spec.fileSystem", says: "Required value"},
	"the filesystem has no name":          {change: "spec: {fileSystem: {name: null}}", field: "spec.fileSystem.name", says: "Required value"},
	"the filesystem's name is empty":      {change: `spec: {fileSystem: {name: ""}}`, field: "spec.fileSystem.name", says: "should be at least 1 chars long"},
	"the filesystem's name is 254 long":   {change: "spec: {fileSystem: {name: " + strings.Repeat("n", 254) + "}}", field: "spec.fileSystem.name", says: "may not be more than 253 bytes"},
	"the storage pool is empty":           {change: `spec: {fileSystem: {storagePool: ""}}`, field: "spec.fileSystem.storagePool", says: "should be at least 1 chars long"},
	"the storage pool is 25 long":         {change: "spec: {fileSystem: {storagePool: " + strings.Repeat("n", 25) + "}}", field: "spec.fileSystem.storagePool", says: "may not be more than 24 bytes"},
	"the tool is left out":                {change: "spec: {tool: null}", field: "spec.tool", says: "Required value"},
	"the tool is not known":               {change: "spec: {tool: dd}", field: "spec.tool", says: `supported values: "iozone"`},
	"the member of the tool is not there": {change: "spec: {iozone: null}", field: "spec", says: "spec.iozone is required when spec.tool is iozone (it may be empty: {})"},
	"the clients are left out":            {change: "spec: {clients: null}", field: "spec.clients", says: "Required value"},
	"there is no client":                  {change: "spec: {clients: {count: 0}}", field: "spec.clients.count", says: "should be greater than or equal to 1"},
	"there are 1025 clients":              {change: "spec: {clients: {count: 1025}}", field: "spec.clients.count", says: "should be less than or equal to 1024"},
	"there is no process":                 {change: "spec: {processes: 0}", field: "spec.processes", says: "should be greater than or equal to 1"},
	"there are 65537 processes":           {change: "spec: {processes: 65537}", field: "spec.processes", says: "should be less than or equal to 65536"},
	"there is no repetition":              {change: "spec: {repetitions: 0}", field: "spec.repetitions", says: "should be greater than or equal to 1"},
	"there are 101 repetitions":           {change: "spec: {repetitions: 101}", field: "spec.repetitions", says: "should be less than or equal to 100"},
	"the statistic is not known":          {change: "spec: {statistic: Mode}", field: "spec.statistic", says: `supported values: "Mean", "Median", "Min", "Max", "TrimmedMean"`},
	"a trimmed mean of two samples":       {change: "spec: {statistic: TrimmedMean, repetitions: 2}", field: "spec", says: "TrimmedMean drops the highest and the lowest sample, so spec.repetitions must be at least 3"},

	"the mode is not known":        {change: "spec: {iozone: {mode: Cluster}}", field: "spec.iozone.mode", says: `supported values: "SingleClient", "Distributed"`},
	"a test is not known":          {change: "spec: {iozone: {tests: [Write, Append]}}", field: "spec.iozone.tests[]", says: `supported values: "Write", "Read", "Random"`},
	"there is no test":             {change: "spec: {iozone: {tests: []}}", field: "spec.iozone.tests", says: "should have at least 1 items"},
	"there are four tests":         {change: "spec: {iozone: {tests: [Write, Read, Random, Write]}}", field: "spec.iozone.tests", says: "must have at most 3 items"},
	"a test is given twice":        {change: "spec: {iozone: {tests: [Write, Write]}}", field: "spec.iozone.tests[]", says: "Duplicate value"},
	"tests read what nobody wrote": {change: "spec: {iozone: {tests: [Read, Random]}}", field: "spec.iozone", says: "spec.iozone.tests must hold Write, because the other tests use its files"},

	"a single client shall be two": {change: "spec: {clients: {count: 2}}", field: "spec", says: "spec.clients.count must be 1 (or unset) when spec.iozone.mode is SingleClient"},
	"a single client is swept":     {change: sweep("clients", `["1", "2"]`), field: "spec", says: singleClientSweeps},
	"a single client is derived":   {change: derive("clients", "processes"), field: "spec", says: singleClientSweeps},

	"a sweep has no dimension":                       {change: "spec: {sweep: []}", field: "spec.sweep", says: "should have at least 1 items"},
	"a sweep has five dimensions":                    {change: "spec: {sweep: [" + `{name: a, values: ["1"]}, {name: b, values: ["1"]}, {name: c, values: ["1"]}, {name: d, values: ["1"]}, {name: e, values: ["1"]}` + "]}", field: "spec.sweep", says: "must have at most 4 items"},
	"a sweep varies one name twice":                  {change: `spec: {sweep: [{name: processes, values: ["1"]}, {name: processes, values: ["2"]}]}`, field: "spec.sweep[]", says: "Duplicate value"},
	"a dimension has no name":                        {change: `spec: {sweep: [{values: ["1"]}]}`, field: "spec.sweep[].name", says: "Required value"},
	"a dimension's name is empty":                    {change: sweep(`""`, `["1"]`), field: "spec.sweep[].name", says: "should be at least 1 chars long"},
	"a dimension's name is 65 long":                  {change: sweep(strings.Repeat("n", 65), `["1"]`), field: "spec.sweep[].name", says: "may not be more than 64 bytes"},
	"a dimension's name has a dash":                  {change: sweep("record-size", `["1"]`), field: "spec.sweep[].name", says: aName},
	"a dimension is not known":                       {change: sweep("iozone.blockSize", `["64k"]`), field: "spec", says: unknownSweep},
	"a dimension is of another tool":                 {change: sweep("mdtest.depth", `["2"]`), field: "spec", says: unknownSweep},
	"a dimension has no values":                      {change: "spec: {sweep: [{name: processes}]}", field: "spec.sweep[].values", says: "Required value"},
	"a dimension's values are empty":                 {change: sweep("processes", "[]"), field: "spec.sweep[].values", says: "should have at least 1 items"},
	"a dimension has 65 values":                      {change: sweep("processes", listOf(65, `"1%d"`)), field: "spec.sweep[].values", says: "must have at most 64 items"},
	"a dimension has a value twice":                  {change: sweep("processes", `["2", "2"]`), field: "spec.sweep[].values[]", says: "Duplicate value"},
	"a dimension's value is a number without quotes": {change: sweep("processes", "[2]"), field: "spec.sweep[].values[]", says: "must be of type string"},
	"a dimension's value is empty":                   {change: sweep("processes", `[""]`), field: "spec.sweep[].values[]", says: "should be at least 1 chars long"},
	"a dimension's value is 33 long":                 {change: sweep("processes", `["`+strings.Repeat("1", 33)+`"]`), field: "spec.sweep[].values[]", says: "may not be more than 32 bytes"},
	"a dimension's value is 0":                       {change: sweep("processes", `["0"]`), field: "spec.sweep[].values", says: sweepValue},
	"a dimension's value is negative":                {change: sweep("processes", `["-1"]`), field: "spec.sweep[].values", says: sweepValue},
	"a dimension's value is a fraction":              {change: sweep("processes", `["1.5"]`), field: "spec.sweep[].values", says: sweepValue},
	"a dimension's value is an argument":             {change: sweep("iozone.recordSize", `["64k -f /etc/passwd"]`), field: "spec.sweep[].values", says: sweepValue},
	"a dimension's value has another unit":           {change: sweep("iozone.recordSize", `["64KiB"]`), field: "spec.sweep[].values", says: sweepValue},

	"a number of processes has a unit": {change: sweep("processes", `["4", "1k"]`), field: "spec.sweep[]",
		says: "the values of processes and clients are numbers without a unit"},
	"a number of clients has a unit": {change: sweep("clients", "[1k]"), field: "spec.sweep[]",
		says: "the values of processes and clients are numbers without a unit"},

	"derive is empty":                            {change: "spec: {derive: []}", field: "spec.derive", says: "should have at least 1 items"},
	"derive has five names":                      {change: "spec: {derive: " + `[{name: a, cel: "1"}, {name: b, cel: "1"}, {name: c, cel: "1"}, {name: d, cel: "1"}, {name: e, cel: "1"}]` + "}", field: "spec.derive", says: "must have at most 4 items"},
	"derive computes one name twice":             {change: `spec: {derive: [{name: processes, cel: "1"}, {name: processes, cel: "2"}]}`, field: "spec.derive[]", says: "Duplicate value"},
	"derive has no name":                         {change: `spec: {derive: [{cel: "1"}]}`, field: "spec.derive[].name", says: "Required value"},
	"derive has an empty name":                   {change: derive(`""`, "1"), field: "spec.derive[].name", says: "should be at least 1 chars long"},
	"derive has a name of 65 characters":         {change: derive(strings.Repeat("n", 65), "1"), field: "spec.derive[].name", says: "may not be more than 64 bytes"},
	"derive has a name with a space":             {change: derive(`"a b"`, "1"), field: "spec.derive[].name", says: aName},
	"derive has a name that is not known":        {change: derive("iozone.blockSize", "1"), field: "spec", says: unknownDerive},
	"derive has no expression":                   {change: "spec: {derive: [{name: processes}]}", field: "spec.derive[].cel", says: "Required value"},
	"derive has an empty expression":             {change: derive("processes", ""), field: "spec.derive[].cel", says: "should be at least 1 chars long"},
	"derive has an expression of 257 characters": {change: derive("processes", strings.Repeat("1", 257)), field: "spec.derive[].cel", says: "may not be more than 256 bytes"},
	"a name is swept and derived":                {change: sweep("processes", `["1"]`) + "\n---\n" + derive("processes", "2"), field: "spec", says: "a name can't be swept and derived at once"},

	"the fileSystem is changed":          {before: "{}", change: "spec: {fileSystem: {name: other}}", field: "spec", says: immutableRun},
	"the storage pool is chosen":         {before: "{}", change: "spec: {fileSystem: {storagePool: ssd}}", field: "spec", says: immutableRun},
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
}.join(
	nodeSelectorRefusals("spec.clients.nodeSelector", "spec: {clients: {nodeSelector: null}}\n---\nspec: {clients: {nodeSelector: %s}}"),
	sizeRefusals("recordSize"), sizeRefusals("fileSize"),
	durationRefusals("spec.limits.pointTimeout", "spec: {limits: {pointTimeout: %s}}"),
	durationRefusals("spec.limits.timeout", "spec: {limits: {timeout: %s}}"),
	durationRefusals("spec.ttlAfterFinished", "spec: {ttlAfterFinished: %s}"),
)

var benchmarkRunAccepted = map[string]string{
	"it has only what is required": "{}",
	"it has everything that there is": `
metadata: {name: ` + strings.Repeat("n", 40) + `}
spec:
  fileSystem: {storagePool: ssd}
  iozone:
    {mode: Distributed, tests: [Write, Read, Random], recordSize: 1024k, fileSize: 20g, directIO: true, includeFlush: true,
     includeClose: true, useThreads: true, noRetest: true}
  clients: {count: 1024}
  processes: 65536
  sweep:
  - {name: clients, values: ["1", "2", "4"]}
  - {name: iozone.recordSize, values: ["4", 64k, 1m]}
  derive:
  - {name: processes, cel: "4 * clients"}
  - {name: iozone.fileSize, cel: "1073741824 / clients"}
  repetitions: 100
  statistic: TrimmedMean
  limits: {pointTimeout: 1.5h, timeout: 12h30m}
  ttlAfterFinished: 168h
  suspend: true
`,
	"a sweep has as many names and values as there can be": largest["BenchmarkRun"],
	"only writes are measured":                             "spec: {iozone: {tests: [Write]}}",
	"a trimmed mean of three samples":                      "spec: {statistic: TrimmedMean, repetitions: 3}",
	"one client is named as its only one":                  "spec: {clients: {count: 1}}",
	"a duration is shorter than a minute":                  "spec: {limits: {pointTimeout: 1s, timeout: 90s}, ttlAfterFinished: 1500ms}",
}

var benchmarkRunChanges = map[string]string{
	"the run is suspended":            "spec: {suspend: true}",
	"the run is to be kept for a day": "spec: {ttlAfterFinished: 24h}",
}

// largest are the changes that make an object as large as its bounds allow.
var largest = map[string]string{
	"FileSystem": "spec: {storagePools: [" + strings.Join(fullPools(), ", ") + "]}",
	"BenchmarkRun": "spec: {iozone: {mode: Distributed}, sweep: [" +
		`{name: processes, values: ` + listOf(64, `"1%d"`) + `}, {name: clients, values: ` + listOf(64, `"1%d"`) +
		`}, {name: iozone.recordSize, values: ` + listOf(64, `1%dk`) + `}, {name: iozone.fileSize, values: ` + listOf(64, `1%dm`) + "}]}",
	"StorageTarget": "spec: {fileSystem: {name: " + strings.Repeat("f", 40) + "}, node: " + strings.Repeat("n", 253) + ", device: " + fullIdentity("a") +
		", logDevice: " + fullIdentity("b") + ", format: " + fullFormat() + ", queue: {requests: 64}, conflict: " + strings.Repeat("c", 1024) + "}",
}

var allAccepted = map[string]map[string]string{
	"FileSystem": fileSystemAccepted, "BeeGFS": beegfsAccepted, "BenchmarkRun": benchmarkRunAccepted, "StorageTarget": storageTargetAccepted,
}

var allChanges = map[string]map[string]string{
	"FileSystem": fileSystemChanges, "BeeGFS": beegfsChanges, "BenchmarkRun": benchmarkRunChanges, "StorageTarget": storageTargetChanges,
}

// sweep is a patch with one dimension, and derive one with one computed name.
func sweep(name, values string) string {
	return "spec: {sweep: [{name: " + name + ", values: " + values + "}]}"
}

func derive(name, cel string) string {
	return "spec: {derive: [{name: " + name + `, cel: "` + cel + `"}]}`
}

// sizeRefusals are the rows of an IOzoneSize.
func sizeRefusals(name string) refusals {
	field, match := "spec.iozone."+name, `should match '^[1-9][0-9]{0,11}[kmg]?$'`
	change := func(value string) string { return "spec: {iozone: {" + name + ": " + value + "}}" }
	return refusals{
		field + " is empty":                   {change: change(`""`), field: field, says: "should be at least 1 chars long"},
		field + " is 17 long":                 {change: change(`"` + strings.Repeat("1", 17) + `"`), field: field, says: "may not be more than 16 bytes"},
		field + " is 0":                       {change: change(`"0"`), field: field, says: match},
		field + " has a unit of Kubernetes":   {change: change("64Ki"), field: field, says: match},
		field + " has a capital unit":         {change: change("64K"), field: field, says: match},
		field + " is an argument":             {change: change(`"1g -f /etc"`), field: field, says: match},
		field + " is a number without quotes": {change: change("64"), field: field, says: "must be of type string"},
	}
}

// durationRefusals are the rows of a duration.
func durationRefusals(field, inside string) refusals {
	change := func(value string) string { return strings.ReplaceAll(inside, "%s", value) }
	return refusals{
		field + " is empty":          {change: change(`""`), field: field, says: "should be at least 2 chars long"},
		field + " is 33 long":        {change: change(strings.Repeat("1", 32) + "s"), field: field, says: "may not be more than 32 bytes"},
		field + " has no unit":       {change: change(`"30"`), field: field, says: aDuration},
		field + " is in days":        {change: change("7d"), field: field, says: aDuration},
		field + " is negative":       {change: change("-1h"), field: field, says: aDuration},
		field + " is none":           {change: change("0s"), field: field, says: field + " must be at least 1s"},
		field + " is below a second": {change: change("999ms"), field: field, says: field + " must be at least 1s"},
	}
}
