//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// goodLustre has what a Lustre requires and no more.
const goodLustre = `
apiVersion: trials.parallelfs.dev/v1alpha1
kind: LustreTrial
metadata: {name: scratch}
spec:
  lustre: {fsName: scratch}
`

// fullLustre has a value for every field of a Lustre that is no field of another kind as well.
const fullLustre = `
spec:
  lustre:
    fsName: scratch
    rdma: true
    directories: {mdtsPerDirectory: 2, roundRobinDepth: 2}
    storagePools:
    - name: ssd
      layout:
      - {end: 64Ki, onMetadata: true}
      - {end: 256Mi, osts: 4, stripeSize: 1Mi}
      - {allOSTs: true}
    parameters: {"osc.*.max_dirty_mb": "512"}
`

const (
	mgtStays      = "spec.lustre.management.targets can't be changed: the MGT would be left behind"
	oneMGT        = "the MGT is one disk; give exactly one of spec.lustre.management.targets.devices, or select.countPerNode: 1"
	mgtIsAsItWas  = "spec.lustre.management can't be added or removed: the MGT would be left behind"
	rdmaStays     = "spec.lustre.rdma can't be changed: the NIDs of the MGS are written on every disk"
	nameOnDisks   = "spec.lustre.fsName can't be changed: it is written on every disk"
	aLayoutEnds   = "every component of a layout needs an end, except the last, which goes to the end of the file"
	aLayoutRises  = "each component of a layout ends behind the one before it"
	onlyFirst     = "only the first component of a layout can lie on the MDT"
	onTheMDT      = "a component on the MDT has neither osts, allOSTs nor stripeSize"
	smallOnTheMDT = "a component on the MDT needs an end of at most 1Mi, which is what an MDT takes of a file (dom_stripesize)"
	notBoth       = "set osts or allOSTs, not both"
	anEnd         = "the end of a component is a multiple of 64Ki, such as 64Ki or 256Mi"
	aStripe       = "a stripe size of Lustre is a multiple of 64Ki below 4Gi, such as 1Mi or 4Mi"
	aParameter    = "a parameter's name is as lctl list_param prints it, such as osc.*.max_dirty_mb, with stars for devices only"
	mgt           = "spec: {lustre: {management: null}}\n---\nspec: {lustre: {management: {nodeSelector: {mgs: \"\"}, targets: %s}}}"
	mgtNodes      = "spec: {lustre: {management: {nodeSelector: %s, targets: {select: {countPerNode: 1}}}}}"
	layoutOf      = "spec: {lustre: {storagePools: [{name: ssd, layout: [%s]}]}}"
	parameters    = "spec: {lustre: {parameters: {%s}}}"
	pathOfLayout  = "spec.lustre.storagePools[].layout"
)

var lustreRefusals = refusals{
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
	"a pool is named twice":                  {change: "spec: {lustre: {storagePools: [{name: ssd}, {name: ssd}]}}", field: "spec.lustre.storagePools[]", says: "Duplicate value"},
	"a layout has an end in its last part":   {change: put(layoutOf, "{end: 64Ki}, {end: 1Mi}"), field: pathOfLayout, says: aLayoutEnds},
	"a layout has no end in its first part":  {change: put(layoutOf, "{osts: 1}, {allOSTs: true}"), field: pathOfLayout, says: aLayoutEnds},
	"a layout falls":                         {change: put(layoutOf, "{end: 1Mi}, {end: 64Ki}, {osts: 1}"), field: pathOfLayout, says: aLayoutRises},
	"a layout stands still":                  {change: put(layoutOf, "{end: 1Mi}, {end: 1024Ki}, {osts: 1}"), field: pathOfLayout, says: aLayoutRises},
	"a layout comes back to the MDT":         {change: put(layoutOf, "{end: 64Ki}, {end: 1Mi, onMetadata: true}, {osts: 1}"), field: pathOfLayout, says: onlyFirst},
	"the MDT is striped":                     {change: put(layoutOf, "{end: 64Ki, onMetadata: true, osts: 2}, {osts: 1}"), field: pathOfLayout + "[]", says: onTheMDT},
	"the MDT is striped over all OSTs":       {change: put(layoutOf, "{end: 64Ki, onMetadata: true, allOSTs: true}, {osts: 1}"), field: pathOfLayout + "[]", says: onTheMDT},
	"the MDT has a stripe size":              {change: put(layoutOf, "{end: 64Ki, onMetadata: true, stripeSize: 64Ki}, {osts: 1}"), field: pathOfLayout + "[]", says: onTheMDT},
	"the MDT holds all of a file":            {change: put(layoutOf, "{onMetadata: true}"), field: pathOfLayout + "[]", says: smallOnTheMDT},
	"the MDT holds more than it takes":       {change: put(layoutOf, "{end: 1088Ki, onMetadata: true}, {osts: 1}"), field: pathOfLayout + "[]", says: smallOnTheMDT},
	"a component is on some OSTs and on all": {change: put(layoutOf, "{osts: 1, allOSTs: true}"), field: pathOfLayout + "[]", says: notBoth},
	"there are 65 parameters":                {change: "spec: {lustre: {parameters: " + mapOf(65, "osc.a%d.b", "1") + "}}", field: "spec.lustre.parameters", says: "must have at most 64 items"},
}.join(
	nodeSelectorRefusals("spec.lustre.management.nodeSelector", mgtNodes),
	mgtRefusals(),
	directoriesRefusals("spec.lustre.management.targets.directories", mgt),
	pathRefusals("spec.lustre.management.targets.directories[]", put(mgt, "{directories: [%s]}")),
	everyBoundOf("trials/trials.parallelfs.dev_lustretrials.yaml", fullLustre, "spec"),
	boundRefusals(pathOfLayout+"[].end", put(layoutOf, "{end: %s}, {osts: 1}"), map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		"many": anEnd, "64k": anEnd, `"0"`: anEnd, "-64Ki": anEnd, "65Ki": anEnd,
	}),
	boundRefusals(pathOfLayout+"[].stripeSize", put(layoutOf, "{stripeSize: %s}"), map[string]string{
		`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
		"wide": aStripe, "1M": aStripe, `"0"`: aStripe, "-64Ki": aStripe, "4Gi": aStripe, "100Ki": aStripe,
	}),
	parameterNameRefusals("max_dirty_mb", "osc", "osc.*.max*", "osc.*.*", "Osc.*.max", "osc..max", "osc.*.max=1", "osc.*.max;reboot", "osc.* .max", "osc."+strings.Repeat("n", 65), "a.b.c.d.e.f"),
	boundRefusals("spec.lustre.parameters{}", put(parameters, `"osc.*.max_dirty_mb": %s`), map[string]string{
		`""`: "should be at least 1 chars long", strings.Repeat("v", 129): "may not be more than 128 bytes",
		`"-1"`: aValue, `"a\nb"`: aValue, `"a=b"`: aValue, `"$(reboot)"`: aValue,
	}),
)

const aValue = `should match '^[A-Za-z0-9_+][A-Za-z0-9_.,:+ -]*$'`

// mgtRefusals are the rows of the targets of the MGT, which are never directories.
func mgtRefusals() refusals {
	rows := targetsRefusals("spec.lustre.management.targets", mgt)
	delete(rows, "spec.lustre.management.targets goes from directories to devices")
	return rows
}

// parameterNameRefusals are rows of names of parameters.
func parameterNameRefusals(names ...string) refusals {
	rows := refusals{}
	for _, name := range names {
		rows["a parameter is called "+name] = refusal{change: put(parameters, fmt.Sprintf("%q: \"1\"", name)), field: "spec.lustre.parameters", says: aParameter}
	}
	return rows
}

var lustreAccepted = map[string]string{
	"it has only what is required":       "{}",
	"it has everything that there is":    fullLustre + "---\n" + put(mgt, "{devices: [{node: n1, id: wwn-0x5000}]}"),
	"the MGT is a selected disk":         put(mgt, "{select: {countPerNode: 1}}"),
	"a layout has one component":         put(layoutOf, "{osts: 4, stripeSize: 4Mi}"),
	"a layout is as long as it can be":   put(layoutOf, "{end: 64Ki, onMetadata: true}, {end: 128Ki}, {end: 1Mi}, {end: 8Mi}, {end: 64Mi}, {end: 1Gi}, {end: 64Gi}, {allOSTs: true}"),
	"no level of directories goes round": "spec: {lustre: {directories: {roundRobinDepth: 0}}}",
	"it is as large as it can be":        largestLustre,
}

var lustreChanges = map[string]string{
	"a pool gets another layout":   put(layoutOf, "{osts: 8}"),
	"directories are spread wider": "spec: {lustre: {directories: {mdtsPerDirectory: 4}}}",
	"a parameter is set":           put(parameters, `"mdt.*.hsm_control": enabled`),
}

// largestLustre has 12 pools of 8 components each, and 63 parameters, so that a test can set one more.
var largestLustre = "spec: {lustre: {storagePools: " + listOf(12, "{name: pool-%02d-abcdefg, layout: [{end: 64Ki, onMetadata: true}, {end: 128Ki}, {end: 1Mi}, "+
	"{end: 8Mi}, {end: 64Mi}, {end: 1Gi}, {end: 64Gi, osts: 2000, stripeSize: 1Gi}, {allOSTs: true}]}") +
	", parameters: " + mapOf(63, "osc.a%02d"+strings.Repeat("n", 60)+".max_dirty_mb", strings.Repeat("v", 128)) + "}}"
