//go:build envtest

package envtest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// aFirstManifest is the FileSystem that a first-time user has in mind.
const aFirstManifest = `
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: first}
spec:
  type: MooseFS
  nodes: {names: [n1, n2, n3]}
  metadataServers: {targets: {directories: [/data/metadata]}}
  storagePools:
  - {name: data, targets: {directories: [/data/chunks]}}
`

// kubectl asks the API server to refuse unknown fields, and shows its message as it is. The message has to name the field and what to write.
func TestARefusalOfAFirstManifestNamesTheFieldAndWhatToWrite(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	pool := func(fields string) string { return "spec: {storagePools: [{name: data, " + fields + "}]}" }
	const directories = "targets: {directories: [/data/chunks]}"
	run := "apiVersion: parallelfs.dev/v1alpha1\nkind: BenchmarkRun\nmetadata: {name: first}\nspec: {target: {fileSystem: {name: first}}, iozone: {}}"
	for mistake, c := range map[string]struct {
		manifest, change string
		says             []string
	}{
		"a field is misspelled":                {change: "spec: {storagePool: []}", says: []string{`unknown field "spec.storagePool"`}},
		"a field is one level too high":        {change: "spec: {mountPath: /mnt/first}", says: []string{`unknown field "spec.mountPath"`}},
		"a field is one level too low":         {change: pool("targets: {directories: [/data/chunks], copies: 2}"), says: []string{`unknown field "spec.storagePools[0].targets.copies"`}},
		"the type is in lower case":            {change: "spec: {type: moosefs}", says: []string{"spec.type", `"MooseFS"`, `"BeeGFS"`, `"Lustre"`}},
		"a list is a map":                      {change: "spec: {storagePools: {data: {}}}", says: []string{`unknown field "spec.storagePools.data"`}},
		"a map is a list":                      {change: "spec: {metadataServers: [{}]}", says: []string{"spec.metadataServers", "must be of type object"}},
		"nodes are a list of names":            {change: "spec: {nodes: [n1, n2, n3]}", says: []string{"spec.nodes", "must be of type object"}},
		"one directory is no list":             {change: pool("targets: {directories: /data/chunks}"), says: []string{"directories", "must be of type array"}},
		"there are no nodes":                   {change: "spec: {nodes: null}", says: []string{"set spec.nodes, or a nodeSelector"}},
		"nodes are both named and selected":    {change: "spec: {nodes: {selector: {matchLabels: {a: b}}}}", says: []string{"spec.nodes", "names", "selector"}},
		"the name is too long":                 {change: "metadata: {name: the-scratch-filesystem-of-the-department-of-physics}", says: []string{"40 characters"}},
		"the name of a pool is in upper case":  {change: "spec: {storagePools: [{name: Data, " + directories + "}]}", says: []string{"spec.storagePools[0].name", "has lower-case letters, digits and dashes"}},
		"the name of a pool has an underscore": {change: "spec: {storagePools: [{name: my_data, " + directories + "}]}", says: []string{"spec.storagePools[0].name", "has lower-case letters, digits and dashes"}},
		"two pools have one name":              {change: "spec: {storagePools: [{name: data, targets: {directories: [/data/a]}}, {name: data, targets: {directories: [/data/b]}}]}", says: []string{"spec.storagePools[1]", "Duplicate value"}},
		"there are no copies":                  {change: pool(directories + ", copies: 0"), says: []string{"copies", "greater than or equal to 1"}},
		"copies are negative":                  {change: pool(directories + ", copies: -1"), says: []string{"copies", "greater than or equal to 1"}},
		"copies are text":                      {change: pool(directories + ", copies: two"), says: []string{"copies", "must be of type integer"}},
		"no disk of each node":                 {change: pool("targets: {select: {countPerNode: 0}}"), says: []string{"countPerNode", "greater than or equal to 1"}},
		"a size has the unit GB":               {change: pool("targets: {select: {minSize: 500GB}}"), says: []string{"minSize", "such as 512Mi or 2T"}},
		"a size has no unit":                   {change: pool("targets: {select: {minSize: 500}}"), says: []string{"minSize", "must be of type string"}},
		"a disk has its kernel's name":         {change: pool("targets: {devices: [{node: n1, id: sdb}]}"), says: []string{"use the name of its link in /dev/disk/by-id"}},
		"a path is relative":                   {change: pool("targets: {directories: [data/chunks]}"), says: []string{"directories[0]", "should match"}},
		"a version is a number":                {change: "spec: {version: 4}", says: []string{"spec.version", "must be of type string"}},
		"sizes of iozone are iozone's":         {manifest: run, change: "spec: {iozone: {fileSize: 64m}}", says: []string{"spec.iozone.fileSize", "such as 64Mi"}},
		"a run has no tool":                    {manifest: run, change: "spec: {iozone: null}", says: []string{"iozone", "mdtest"}},
		"a duration has no unit":               {manifest: run, change: "spec: {limits: {timeout: 30}}", says: []string{"spec.limits.timeout", "must be of type string"}},
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			if c.manifest == "" {
				c.manifest = aFirstManifest
			}
			object := manifest(t, namespace, c.manifest, c.change)
			err := server.Client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			g.Expect(err).To(HaveOccurred(), "it was accepted")
			for _, words := range c.says {
				g.Expect(err.Error()).To(ContainSubstring(words))
			}
		})
	}
	NewWithT(t).Expect(server.Client.Create(t.Context(), manifest(t, namespace, aFirstManifest), client.DryRunAll)).To(Succeed())
	NewWithT(t).Expect(server.Client.Create(t.Context(), manifest(t, namespace, run), client.DryRunAll)).To(Succeed())
}
