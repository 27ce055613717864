//go:build envtest

package envtest_test

import (
	"fmt"
	"strings"
)

// aQuantity is the form of a quantity that the API server asks for (k8s.io/apimachinery/pkg/api/resource).
const aQuantity = `should match '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'`

// fullPods has a value for every field of spec.pods that a MooseFS has.
const fullPods = `
spec:
 pods:
  tolerations: [{key: storage, operator: Exists, effect: NoExecute, tolerationSeconds: 60}, {key: tier, operator: Equal, value: fast}]
  priorityClassName: storage
  labels: {cost-center: "7", example.org/team: storage}
  annotations: {example.org/scrape: "true"}
  imagePullSecrets: [{name: registry}]
  resources:
    metadata: {requests: {cpu: "4", memory: 16Gi}, limits: {memory: 32Gi}}
    metadataBackup: {requests: {cpu: 100m}}
    storage: {requests: {memory: 4Gi}, limits: {hugepages-2Mi: 1Gi}}
    client: {requests: {memory: 1Gi}}
`

// podsRefusals are the rows of spec.pods.
func podsRefusals() refusals {
	const (
		labelRule      = "label names have at most 317 characters, their values at most 63, and parallelfs.dev/ and app.kubernetes.io/ belong to the operator"
		annotationRule = "annotation names have at most 317 characters, their values at most 4096, and parallelfs.dev/ belongs to the operator"
		pinned         = "cpuPinning with mode KubeletStatic sets the requests and limits of a server; leave its role out of spec.pods.resources"
		static         = "{mode: KubeletStatic, cpus: 4, memory: 16Gi}"
	)
	change := func(content string) string { return "spec: {pods: {" + content + "}}" }
	labels := func(content string) string { return change("labels: {" + content + "}") }
	annotations := func(content string) string { return change("annotations: {" + content + "}") }
	long := strings.Repeat("k", 318) + ": v"
	rows := refusals{
		"pods have 17 labels":                             {change: change("labels: " + mapOf(17, "k%d", "v")), field: "spec.pods.labels", says: "must have at most 16 items"},
		"pods have a label's name of 318 characters":      {change: labels(long), field: "spec.pods.labels", says: labelRule},
		"pods have a label's value of 64 characters":      {change: labels("k: " + strings.Repeat("v", 64)), field: "spec.pods.labels", says: labelRule},
		"pods have a label of the operator":               {change: labels("parallelfs.dev/filesystem: other"), field: "spec.pods.labels", says: labelRule},
		"pods have a label of Kubernetes":                 {change: labels("app.kubernetes.io/name: other"), field: "spec.pods.labels", says: labelRule},
		"pods have 17 annotations":                        {change: change("annotations: " + mapOf(17, "k%d", "v")), field: "spec.pods.annotations", says: "must have at most 16 items"},
		"pods have an annotation's name of 318":           {change: annotations(long), field: "spec.pods.annotations", says: annotationRule},
		"pods have an annotation's value of 4097":         {change: annotations("k: " + strings.Repeat("v", 4097)), field: "spec.pods.annotations", says: annotationRule},
		"pods have an annotation of the operator":         {change: annotations("parallelfs.dev/template-hash: x"), field: "spec.pods.annotations", says: annotationRule},
		"pods tolerate 17 taints":                         {change: change("tolerations: " + listOf(17, "{key: k%d}")), field: "spec.pods.tolerations", says: "must have at most 16 items"},
		"pods have a priority class without a name":       {change: change(`priorityClassName: ""`), field: "spec.pods.priorityClassName", says: "should be at least 1 chars long"},
		"pods have a priority class of 254 characters":    {change: change("priorityClassName: " + strings.Repeat("n", 254)), field: "spec.pods.priorityClassName", says: "may not be more than 253 bytes"},
		"pods have 9 pull secrets":                        {change: change("imagePullSecrets: " + listOf(9, "{name: n%d}")), field: "spec.pods.imagePullSecrets", says: "must have at most 8 items"},
		"pods have a pull secret twice":                   {change: change("imagePullSecrets: [{name: n}, {name: n}]"), field: "spec.pods.imagePullSecrets[]", says: "Duplicate value"},
		"pinned metadata servers have resources as well":  {change: put(metadataPinning, static) + "\n---\n" + change("resources: {metadata: {requests: {cpu: 1}}}"), field: "spec", says: pinned},
		"pinned storage servers have resources as well":   {change: put(poolPinning, static) + "\n---\n" + change("resources: {storage: {limits: {cpu: 1}}}"), field: "spec", says: pinned},
		"a MooseFS has resources of a management service": {change: change("resources: {management: {requests: {cpu: 1}}}"), field: "spec", says: "spec.pods.resources.management belongs to type BeeGFS, and metadataBackup to type MooseFS"},
	}
	for _, role := range []string{"management", "metadata", "metadataBackup", "storage", "client"} {
		for _, list := range []string{"requests", "limits"} {
			field := "spec.pods.resources." + role + "." + list
			with := func(content string) string {
				return change("resources: {" + role + ": {" + list + ": " + content + "}}")
			}
			rows[field+" names 9 resources"] = refusal{change: with(mapOf(9, "example.org/r%d", "1")), field: field, says: "must have at most 8 items"}
			rows[field+" is no quantity"] = refusal{change: with("{memory: a lot}"), field: field + "{}", says: aQuantity}
		}
	}
	return rows
}

// largestPods is spec.pods as large as it may be.
var largestPods = fmt.Sprintf("spec: {pods: {tolerations: %s, labels: %s, annotations: %s, imagePullSecrets: %s}}",
	listOf(16, "{key: k%d, operator: Equal, value: v}"), mapOf(16, strings.Repeat("k", 60)+"%02d", strings.Repeat("v", 63)),
	mapOf(16, strings.Repeat("k", 60)+"%02d", strings.Repeat("v", 4096)), listOf(8, "{name: n%d}"))
