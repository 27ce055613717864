//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

const (
	// anAmount is the format of an amount of a resource: a quantity without a sign.
	anAmount = `should match '^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$'`
	// aLabelValue is the format of a label's value.
	aLabelValue = `should match '^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'`
	// aDNSName is the format of a priority class's name.
	aDNSName = `should match '^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$'`
)

// fullPods has a value for every field of spec.pods of a MooseFS.
const fullPods = `
spec:
 pods:
  tolerations: [{key: storage, operator: Exists, effect: NoExecute, tolerationSeconds: 60}, {key: tier, operator: Equal, value: fast}]
  tolerationsByRole:
    metadata: [{key: metadata, operator: Exists}]
    metadataBackup: [{key: metadata, operator: Exists}]
    storage: [{key: storage, operator: Exists}]
    client: [{key: example.com/gpu, operator: Exists, effect: NoSchedule}]
  serviceAccountName: parallelfs
  priorityClassName: storage
  labels: {cost-center: "7", example.org/team: storage}
  annotations: {example.org/scrape: "true"}
  imagePullSecrets: [{name: registry}]
  resources:
    metadata: {requests: {cpu: "4", memory: 16Gi}, limits: {memory: 32Gi}}
    metadataBackup: {requests: {cpu: 100m}}
    storage: {requests: {memory: 4Gi, example.com/nic: "1"}, limits: {hugepages-2Mi: 1Gi, example.com/nic: "1"}}
    client: {requests: {memory: 1Gi}}
`

// podsRefusals returns the rows of spec.pods.
func podsRefusals() refusals {
	const (
		labelOwner      = "labels below parallelfs.dev/ and app.kubernetes.io/ belong to the operator"
		annotationOwner = "annotations below parallelfs.dev/ belong to the operator"
		pinned          = "cpuPinning with mode KubeletStatic sets the requests and limits of a server; leave its role out of spec.pods.resources"
		static          = "{mode: KubeletStatic, cpus: 4, memory: 16Gi}"
	)
	change := func(content string) string { return "spec: {pods: {" + content + "}}" }
	labels := func(content string) string { return change("labels: {" + content + "}") }
	annotations := func(content string) string { return change("annotations: {" + content + "}") }
	rows := refusals{
		"pods have 17 labels":                               {change: change("labels: " + mapOf(17, "k%d", "v")), field: "spec.pods.labels", says: "must have at most 16 items"},
		"pods have a label of the operator":                 {change: labels("parallelfs.dev/filesystem: other"), field: "spec.pods.labels", says: labelOwner},
		"pods have a label of Kubernetes":                   {change: labels("app.kubernetes.io/name: other"), field: "spec.pods.labels", says: labelOwner},
		"pods have 17 annotations":                          {change: change("annotations: " + mapOf(17, "k%d", "v")), field: "spec.pods.annotations", says: "must have at most 16 items"},
		"pods have an annotation of the operator":           {change: annotations("parallelfs.dev/template-hash: x"), field: "spec.pods.annotations", says: annotationOwner},
		"pods have 9 pull secrets":                          {change: change("imagePullSecrets: " + listOf(9, "{name: n%d}")), field: "spec.pods.imagePullSecrets", says: "must have at most 8 items"},
		"pods have a pull secret twice":                     {change: change("imagePullSecrets: [{name: n}, {name: n}]"), field: "spec.pods.imagePullSecrets[]", says: "Duplicate value"},
		"pods have a pull secret without a name":            {change: change("imagePullSecrets: [{}]"), field: "spec.pods.imagePullSecrets[].name", says: "Required value"},
		"pinned metadata servers have resources as well":    {change: put(metadataPinning, static) + "\n---\n" + change(`resources: {metadata: {requests: {cpu: "1"}}}`), field: "spec", says: pinned},
		"pinned storage servers have resources as well":     {change: put(poolPinning, static) + "\n---\n" + change(`resources: {storage: {limits: {cpu: "1"}}}`), field: "spec", says: pinned},
		"a MooseFS has tolerations of a management service": {change: change("tolerationsByRole: {management: [{key: a}]}"), field: "spec", says: "spec.pods.tolerationsByRole.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"},
		"a MooseFS has resources of a management service":   {change: change(`resources: {management: {requests: {cpu: "1"}}}`), field: "spec", says: "spec.pods.resources.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"},
	}.join(
		boundRefusals("spec.pods.labels{}", labels("k: %s"), map[string]string{
			strings.Repeat("v", 64): "may not be more than 63 bytes", `"x y"`: aLabelValue, "-x": aLabelValue, "x_": aLabelValue,
		}),
		boundRefusals("spec.pods.annotations{}", annotations("k: %s"), map[string]string{strings.Repeat("v", 4097): "may not be more than 4096 bytes"}),
		boundRefusals("spec.pods.priorityClassName", change("priorityClassName: %s"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes", "High": aDNSName, "a_b": aDNSName, "a.": aDNSName,
		}),
		boundRefusals("spec.pods.imagePullSecrets[].name", change("imagePullSecrets: [{name: %s}]"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes",
		}),
		boundRefusals("spec.pods.serviceAccountName", change("serviceAccountName: %s"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("n", 254): "may not be more than 253 bytes", "Storage": aDNSName, "a_b": aDNSName,
		}),
		tolerationsRefusals("spec.pods.tolerations", change("tolerations: %s")),
	)
	rows = rows.join(podNamesRefusals(change))
	for _, role := range []string{"management", "metadata", "metadataBackup", "storage", "client"} {
		rows = rows.join(tolerationsRefusals("spec.pods.tolerationsByRole."+role, change("tolerationsByRole: {"+role+": %s}")))
		rows = rows.join(resourcesRefusals(role, "spec.pods.resources."+role, func(content string) string {
			return change("resources: {" + role + ": {" + content + "}}")
		}))
	}
	return rows
}

// tolerationsRefusals returns the rows of a list of tolerations.
func tolerationsRefusals(field, inside string) refusals {
	const (
		keyOrExists   = "a toleration with operator Exists has no value; any other needs a key, whose taint has the value"
		onlyNoExecute = "tolerationSeconds needs effect NoExecute"
	)
	item := put(inside, "[{%s}]")
	tolerates := func(content string) string { return put(item, content) }
	return refusals{
		field + " has 17 items":                          {change: put(inside, listOf(17, "{key: k%d}")), field: field, says: "must have at most 16 items"},
		field + " has any key with one value":            {change: tolerates("value: fast"), field: field + "[]", says: keyOrExists},
		field + " has any key, and does not name Exists": {change: tolerates("effect: NoExecute"), field: field + "[]", says: keyOrExists},
		field + " has any value and one":                 {change: tolerates("key: tier, operator: Exists, value: fast"), field: field + "[]", says: keyOrExists},
		field + " has any taint for a minute":            {change: tolerates("operator: Exists, tolerationSeconds: 60"), field: field + "[]", says: onlyNoExecute},
		field + " has NoSchedule for a minute":           {change: tolerates("key: k, effect: NoSchedule, tolerationSeconds: 60"), field: field + "[]", says: onlyNoExecute},
	}.join(
		boundRefusals(field+"[].key", tolerates("key: %s"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("k", 318): "may not be more than 317 bytes", `"a b"`: aLabelKey, "a/b/c": aLabelKey,
			longPrefix: "the prefix of a label's key has at most 253 characters",
		}),
		boundRefusals(field+"[].operator", tolerates("key: k, operator: %s"), map[string]string{"In": `supported values: "Exists", "Equal"`}),
		boundRefusals(field+"[].value", tolerates("key: k, value: %s"), map[string]string{
			`""`: "should be at least 1 chars long", strings.Repeat("v", 64): "may not be more than 63 bytes", `"a b"`: aLabelValue,
		}),
		boundRefusals(field+"[].effect", tolerates("key: k, effect: %s"), map[string]string{"Never": `supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`}),
	)
}

// largestPods is a spec.pods of the maximum size.
var largestPods = fmt.Sprintf("spec: {pods: {tolerations: %s, tolerationsByRole: {storage: %[1]s, client: %[1]s}, labels: %[2]s, annotations: %[3]s, imagePullSecrets: %[4]s, resources: {metadata: {limits: %[5]s}, storage: {requests: %[6]s}}}}",
	listOf(16, "{key: k%d, operator: Equal, value: v}"), mapOf(16, strings.Repeat(strings.Repeat("p", 63)+".", 3)+strings.Repeat("p", 61)+"/"+strings.Repeat("k", 61)+"%02d", strings.Repeat("v", 63)),
	mapOf(16, strings.Repeat(strings.Repeat("p", 63)+".", 3)+strings.Repeat("p", 61)+"/"+strings.Repeat("k", 61)+"%02d", strings.Repeat("v", 4096)), listOf(8, "{name: n%d}"),
	mapOf(8, strings.Repeat("r", 253)+"/"+strings.Repeat("k", 62)+"%d", "100000000000000"), `{memory: "00000000000000000000000000000004", cpu: "1e3", ephemeral-storage: .5Ti}`)

// longPrefix is a name whose prefix is too long.
var longPrefix = strings.Repeat(strings.Repeat("r", 63)+".", 3) + strings.Repeat("r", 63) + "/name"

// podNamesRefusals returns the rows for names of labels and annotations of pods.
func podNamesRefusals(change func(string) string) refusals {
	const (
		labelName      = "the name of a label is up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix: a DNS name of up to 253 characters and a slash"
		annotationName = "the name of an annotation is up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix: a DNS name of up to 253 characters and a slash"
	)
	rows := refusals{}
	for _, name := range []string{`"a b"`, "-a", "a-", "a/b/c", "A.b/c", "/a", strings.Repeat("k", 64), longPrefix} {
		rows["pods have a label called "+name] = refusal{change: change("labels: {" + name + ": v}"), field: "spec.pods.labels", says: labelName}
		rows["pods have an annotation called "+name] = refusal{change: change("annotations: {" + name + ": v}"), field: "spec.pods.annotations", says: annotationName}
	}
	return rows
}

// resourcesRefusals returns the rows for the resources of a container; role and of name its owner.
func resourcesRefusals(role, of string, has func(string) string) refusals {
	const (
		aResource   = "a resource is cpu, memory, ephemeral-storage, huge pages such as hugepages-2Mi, or what a device plugin offers, such as example.com/nic"
		wholeNumber = "the amount of huge pages or devices is a whole number"
		tooMuch     = "a request must not be greater than its limit"
		sameAmount  = "a request of huge pages or devices needs a limit of the same amount"
		besidePages = "huge pages need cpu or memory beside them"
	)
	rows := refusals{}
	rows[role+" requests more than its limit"] = refusal{change: has("requests: {memory: 2Gi}, limits: {memory: 2000Mi}"), field: of, says: tooMuch}
	rows[role+" requests devices without a limit"] = refusal{change: has(`requests: {example.com/nic: "1"}`), field: of, says: sameAmount}
	rows[role+" requests fewer huge pages than its limit"] = refusal{
		change: has("requests: {cpu: 1m, hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 4Mi}"), field: of, says: sameAmount,
	}
	rows[role+" has huge pages alone"] = refusal{change: has("limits: {hugepages-2Mi: 4Mi}"), field: of, says: besidePages}
	for _, list := range []string{"requests", "limits"} {
		field := of + "." + list
		with := func(content string) string { return has(list + ": {" + content + "}") }
		rows[field+" names 9 resources"] = refusal{change: has(list + ": " + mapOf(9, "example.org/r%d", "1")), field: field, says: "must have at most 8 items"}
		rows[field+" has a part of a device"] = refusal{change: with("example.com/nic: 500m"), field: field, says: wholeNumber}
		for _, name := range []string{"gpu", "CPU", "hugepages-", "hugepages-2M", "kubernetes.io/cpu", "requests.example.com/nic", "/nic", "example.com/", "a/b/c"} {
			rows[field+" names "+name] = refusal{change: with(name + `: "1"`), field: field, says: aResource}
		}
		rows = rows.join(boundRefusals(field+"{}", with("memory: %s"), map[string]string{
			`""`: "should be at least 1 chars long", `"` + strings.Repeat("1", 33) + `"`: "may not be more than 32 bytes",
			"a lot": anAmount, "-1Gi": anAmount, "+1Gi": anAmount, "1gb": anAmount, `"1e999"`: anAmount, "1": `must be of type string: "integer"`,
		}))
	}
	return rows
}

// benchmarkPodsRefusals returns the hand-written rows for spec.pods of a BenchmarkRun.
func benchmarkPodsRefusals() refusals {
	change := func(content string) string { return "spec: {pods: {" + content + "}}" }
	return refusals{
		"pods have a label of the operator":       {change: change("labels: {parallelfs.dev/benchmarkrun: other}"), field: "spec.pods.labels", says: "labels below parallelfs.dev/ and app.kubernetes.io/ belong to the operator"},
		"pods have an annotation of the operator": {change: change("annotations: {parallelfs.dev/benchmark: x}"), field: "spec.pods.annotations", says: "annotations below parallelfs.dev/ belong to the operator"},
		"pods have a pull secret twice":           {change: change("imagePullSecrets: [{name: n}, {name: n}]"), field: "spec.pods.imagePullSecrets[]", says: "Duplicate value"},
		"pods have a pull secret without a name":  {change: change("imagePullSecrets: [{}]"), field: "spec.pods.imagePullSecrets[].name", says: "Required value"},
		"pods have 17 labels":                     {change: change("labels: " + mapOf(17, "k%d", "v")), field: "spec.pods.labels", says: "must have at most 16 items"},
		"pods have 17 annotations":                {change: change("annotations: " + mapOf(17, "k%d", "v")), field: "spec.pods.annotations", says: "must have at most 16 items"},
	}.join(boundRefusals("spec.pods.labels{}", change("labels: {k: %s}"), map[string]string{
		strings.Repeat("v", 64): "may not be more than 63 bytes", `"x y"`: aLabelValue,
	}), boundRefusals("spec.pods.annotations{}", change("annotations: {k: %s}"), map[string]string{
		strings.Repeat("v", 4097): "may not be more than 4096 bytes",
	}), podNamesRefusals(change), resourcesRefusals("a tool", "spec.pods.resources", func(content string) string {
		return change("resources: {" + content + "}")
	}))
}
