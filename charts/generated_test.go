//go:build chart

package charts_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func read[T any](t *testing.T, path string) *T {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	object := new(T)
	g.Expect(yaml.Unmarshal(text, object)).To(Succeed())
	return object
}

func TestTheManagerMayDoWhatItsMarkersSayAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	marked := read[rbacv1.ClusterRole](t, "../config/rbac/role.yaml")
	g.Expect(marked.Rules).NotTo(BeEmpty())
	g.Expect(find[rbacv1.ClusterRole](t, render(t, ""), "ClusterRole", release+"-manager").Rules).To(Equal(marked.Rules))
}

func TestWithoutFileSystemsTheManagerMayDoWhatRunsOnVolumesNeedAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	small := render(t, "fileSystems: {enabled: false}")
	rules := find[rbacv1.ClusterRole](t, small, "ClusterRole", release+"-manager").Rules
	g.Expect(rules).To(Equal(read[rbacv1.ClusterRole](t, "../config/rbac/volumes/role.yaml").Rules))
	var all []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			all = append(all, resource+": "+strings.Join(rule.Verbs, " "))
		}
	}
	t.Log("the rights of the manager:\n" + strings.Join(all, "\n"))
	g.Expect(all).To(ConsistOf(
		"benchmarkruns: delete get list patch update watch", "benchmarkruns/finalizers: update", "benchmarkruns/status: get patch update",
		"jobs: create delete get list patch watch", "mpijobs: create delete get list patch", "configmaps: create get list patch watch",
		"leases: create get update", "pods: get list watch", "pods/log: get", "events: list", "events: create patch",
		"persistentvolumeclaims: create delete get", "persistentvolumes: get", "storageclasses: get", "priorityclasses: get",
	))
	g.Expect(manager(t, small).Spec.Template.Spec.Containers[0].Args).To(ContainElement("--file-systems=false"))
	g.Expect(manager(t, render(t, "")).Spec.Template.Spec.Containers[0].Args).NotTo(ContainElement("--file-systems=false"))
}

func TestNoRoleOfTheChartHasWildcardsOrAllowsEscalation(t *testing.T) {
	all := render(t, "")
	for _, object := range all {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		for _, rule := range find[rbacv1.ClusterRole](t, all, object.GetKind(), object.GetName()).Rules {
			g := NewWithT(t)
			words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
			g.Expect(words).NotTo(ContainElement(BeElementOf("*", "escalate", "bind", "impersonate", "pods/exec")), object.GetName())
		}
	}
}

func TestTheDefinitionsAreThoseOfTheGoTypes(t *testing.T) {
	all := render(t, "")
	for _, name := range []string{"benchmarkruns", "benchmarksuites", "filesystemnodes", "filesystems", "nodeinventories", "storagetargets"} {
		t.Run(name, func(t *testing.T) {
			made := read[apiextensionsv1.CustomResourceDefinition](t, "../config/crd/bases/parallelfs.dev_"+name+".yaml")
			installed := find[apiextensionsv1.CustomResourceDefinition](t, all, "CustomResourceDefinition", name+".parallelfs.dev")
			NewWithT(t).Expect(installed.Spec).To(Equal(made.Spec))
		})
	}
}

func TestEveryDefinitionMadeIsInTheChart(t *testing.T) {
	g := NewWithT(t)
	made, err := os.ReadDir("../config/crd/bases")
	g.Expect(err).NotTo(HaveOccurred())
	installed, err := os.ReadDir(chart + "/templates/crds")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(installed).To(HaveLen(len(made)), "run charts/generate.sh")
}

func TestTheDefinitionOfMPIJobKeepsWhatPodTemplatesSay(t *testing.T) {
	g := NewWithT(t)
	crd := find[apiextensionsv1.CustomResourceDefinition](t, render(t, ""), "CustomResourceDefinition", "mpijobs.kubeflow.org")
	g.Expect(crd.Spec.Versions).To(HaveLen(1))
	version := crd.Spec.Versions[0]
	g.Expect(version.Name).To(Equal("v2beta1"))
	g.Expect([]bool{version.Served, version.Storage, version.Subresources.Status != nil}).To(HaveEach(true))
	// A schema that does not name a pod template's labels would have the API server drop them.
	template := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["mpiReplicaSpecs"].AdditionalProperties.Schema.Properties["template"]
	g.Expect(template.Properties["metadata"].Properties).To(And(HaveKey("labels"), HaveKey("annotations")))
}

// wholes lists the maps that are one value in README.md, because Kubernetes or the user defines their content.
var wholes = []string{"resources", "daemons", "benchmarks", "nodeSelector", "updateStrategy"}

// leaves lists the paths of values in the form of README.md: an image is one value, and so is everything that is not a map.
func leaves(prefix string, values map[string]any) []string {
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := strings.TrimPrefix(prefix+"."+key, ".")
		child, isMap := values[key].(map[string]any)
		whole := child["repository"] != nil || slices.Contains(wholes, key) || len(child) == 0
		if isMap && !whole {
			paths = append(paths, leaves(path, child)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

func TestTheREADMEHasEveryValueAndNoOther(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(chart + "/README.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, table, found := strings.Cut(string(text), "| value | default | what it does |\n|---|---|---|\n")
	g.Expect(found).To(BeTrue())
	var documented []string
	for row := range strings.Lines(table) {
		documented = append(documented, strings.Split(row, "`")[1])
	}
	g.Expect(documented).To(ConsistOf(leaves("", *read[map[string]any](t, chart+"/values.yaml"))))
}

func TestTheNotesSayNothingOfTheToolsOfBeeGFSWhenThereAreSome(t *testing.T) {
	for _, key := range []string{"beegfs-tools", "beegfs-tools-7.4.6"} {
		g := NewWithT(t)
		out, err := helm(t, "images: {daemons: {"+key+": {repository: a/b}}}", "install", release, chart, registry, "--dry-run=client")
		g.Expect(err).NotTo(HaveOccurred(), out)
		g.Expect(out).NotTo(ContainSubstring("No image of BeeGFS"))
	}
}

// A person who copies the commands of the notes gets to the next one, because every command ends.
func TestTheCommandsOfTheNotesEndAndComeInTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		values   string
		commands []string
	}{
		"filesystems": {"", []string{
			"rollout status deployment/", "label namespace parallelfs-system --overwrite pod-security.kubernetes.io/enforce=privileged", "label node NODE parallelfs.dev/agent=",
			"rollout status daemonset/", "get nodeinventories", "scratch-metadata=", "scratch-metalogger=", "scratch-storage=", "scratch-client=",
			"apply -f config/samples/filesystem.yaml", "wait filesystem scratch --for=condition=Ready", "apply -f config/samples/iozone-single.yaml",
			"wait benchmarkrun iozone-sweep --for=condition=Succeeded", "get filesystem,benchmarkrun",
		}},
		"volumes": {"fileSystems: {enabled: false}", []string{
			"rollout status deployment/", "apply -f config/samples/fio-volume.yaml", "wait benchmarkrun volume --for=condition=Succeeded", "get benchmarkrun volume",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := helm(t, c.values, "install", release, chart, registry, "--dry-run=client")
			g.Expect(err).NotTo(HaveOccurred(), out)
			_, notes, _ := strings.Cut(out, "NOTES:")
			var commands []string
			for line := range strings.Lines(notes) {
				if strings.HasPrefix(line, "     kubectl ") {
					commands = append(commands, line)
				}
			}
			var wanted []any
			for _, command := range c.commands {
				wanted = append(wanted, ContainSubstring(command))
			}
			g.Expect(commands).To(HaveExactElements(wanted...))
			g.Expect(notes).NotTo(MatchRegexp(`kubectl .* (-w|--watch)\b`))
		})
	}
}

func TestTheNotesSayWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ values, says string }{
		"how to go on":                          {"", "kubectl apply -f config/samples/filesystem.yaml"},
		"how to measure without filesystems":    {"fileSystems: {enabled: false}", "kubectl apply -f config/samples/fio-volume.yaml"},
		"how images got there":                  {"", "from registry.example.com"},
		"what the role edit means":              {"rbac: {aggregate: {edit: true}}", "rbac.aggregate.edit is on"},
		"which nodes run agents":                {"", "kubectl label node NODE parallelfs.dev/agent="},
		"the name of the agents to look at":     {"fullnameOverride: pfs", "daemonset/pfs-agent"},
		"that there are no agents":              {"agent: {enabled: false}", "No agents run"},
		"that there is no MPI operator":         {"mpiOperator: {enabled: false}", "The MPI operator was not installed"},
		"that BeeGFS has no image of its tools": {"", "No image of BeeGFS's command line is named (images.daemons.beegfs-tools)"},
		"that there are no monitors":            {"monitoring: {enabled: true}", "does not serve\nmonitoring.coreos.com/v1"},
		"that there are no definitions":         {"crds: {enabled: false}", "kubectl apply --server-side -f config/crd/bases/"},
		"what uninstalling deletes":             {"crds: {keep: false}", "CAUTION"},
		"the name of the Deployment to look at": {"fullnameOverride: pfs", "deployment/pfs-manager"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := helm(t, c.values, "install", release, chart, registry, "--dry-run=client")
			g.Expect(err).NotTo(HaveOccurred(), out)
			_, notes, found := strings.Cut(out, "NOTES:")
			g.Expect(found).To(BeTrue(), fmt.Sprintf("%.500s", out))
			g.Expect(notes).To(ContainSubstring(c.says))
		})
	}
}
