//go:build envtest

package envtest_test

import "strings"

var benchmarkSuiteRefusals = refusals{
	"there is no spec":             {change: "spec: null", field: "spec", says: "Required value"},
	"its name has 33 characters":   {change: "metadata: {name: " + strings.Repeat("n", 33) + "}", field: "<nil>", says: "metadata.name of a BenchmarkSuite has at most 32 characters, because the names of what it makes start with it"},
	"its name begins with a digit": {change: "metadata: {name: 2017-single}", field: "<nil>", says: "metadata.name of a BenchmarkSuite starts with a letter and holds no dot, because the names of what it makes start with it"},
	"a timeout in days":            {change: "spec: {readyTimeout: 1d}", field: "spec.readyTimeout", says: aDuration},
	"a timeout of nothing":         {change: "spec: {readyTimeout: 0s}", field: "spec.readyTimeout", says: "spec.readyTimeout must be at least 1s"},
	"results that go nowhere":      {change: "spec: {results: {}}", field: "spec.results", says: "spec.results needs persistentVolumeClaim, objectStore, or both"},
	"the filesystem is changed":    {before: "{}", change: "spec: {fileSystem: {version: 4.57.5}}", field: "spec", says: immutableSuite},
	"a variant is added":           {before: "{}", change: "spec: {variants: [{name: one}, {name: two}]}", field: "spec", says: immutableSuite},
	"a run is changed":             {before: "{}", change: "spec: {runs: [{name: creates, spec: {tool: ior}}]}", field: "spec", says: immutableSuite},
	"what follows is changed":      {before: "{}", change: "spec: {afterVariant: Destroy}", field: "spec", says: immutableSuite},
	"what a failure does":          {before: "{}", change: "spec: {onFailure: Stop}", field: "spec", says: immutableSuite},
	"a baseline is added":          {before: "{}", change: "spec: {baseline: {published: table}}", field: "spec", says: immutableSuite},
}.join(everyBoundRefusals("benchmarksuites", fullSuite, "spec"))

var benchmarkSuiteAccepted = map[string]string{
	"it has only what is required":    "{}",
	"it has everything that there is": "spec: null\n---\n" + fullSuite,
	"it is as large as it may be":     largest["BenchmarkSuite"],
}

var benchmarkSuiteChanges = map[string]string{
	"the suite is suspended":        "spec: {suspend: true}",
	"the destruction is confirmed":  "spec: {confirmDestroy: 11-11}",
	"the suite is kept for a day":   "spec: {ttlSecondsAfterFinished: 86400}",
	"its results shall be exported": "spec: {results: {persistentVolumeClaim: {name: results}}}",
}
