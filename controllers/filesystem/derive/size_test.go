package derive

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

// longest holds the lengths of strings whose bounds in the schema are looser. A node's name is a hostname. The names of a claim, a target
// and a pool are labels. A directory of backups consists of the user's path, a name of the operator's, and the name of the backup.
var longest = map[string]int{
	"node": 63, "previousNode": 63, "persistentVolumeClaim": 63, "target": 74, "name": 85, "from": 85, "directory": 385,
	"type": 20, "reason": 26, "message": 4096,
}

// filler generates the largest value of a schema. All values differ, because items of lists have keys.
type filler struct{ count int }

func (f *filler) fill(g Gomega, path string, s *apiextensionsv1.JSONSchemaProps) any {
	f.count++
	name := path[strings.LastIndex(path, ".")+1:]
	switch s.Type {
	case "object":
		out := map[string]any{}
		for property := range s.Properties {
			child := s.Properties[property]
			out[property] = f.fill(g, path+"."+property, &child)
		}
		if out["node"] != nil && out["persistentVolumeClaim"] != nil {
			delete(out, "persistentVolumeClaim") // it is in one place
		}
		return out
	case "array":
		if name == "promised" {
			return []any{}
		}
		g.Expect(s.MaxItems).NotTo(BeNil(), "%s has no bound", path)
		var out []any
		for range *s.MaxItems {
			out = append(out, f.fill(g, path+"[]", s.Items.Schema))
		}
		return out
	case "string":
		switch {
		case len(s.Enum) > 0:
			var value string
			g.Expect(json.Unmarshal(s.Enum[0].Raw, &value)).To(Succeed())
			return value
		case s.Format == "date-time":
			return "2026-11-25T04:20:00Z"
		}
		g.Expect(s.MaxLength).NotTo(BeNil(), "%s has no bound", path)
		most := int(*s.MaxLength)
		if known, ok := longest[name]; ok {
			most = min(most, known)
		}
		number := fmt.Sprint(f.count)
		return (number + strings.Repeat("x", max(0, most-len(number))))[:most]
	case "integer":
		return 1 << 30
	case "boolean":
		return true
	}
	g.Expect(s.Type).To(Equal("one that is known"), path)
	return nil
}

// fullStatus returns a status with as much of everything as the operator writes, each as long as possible. It leaves out promised numbers,
// which backendtest.Bounded generates.
func fullStatus(t *testing.T) *v1alpha1.FileSystemStatus {
	t.Helper()
	g := NewWithT(t)
	raw, err := os.ReadFile("../../../config/crd/bases/parallelfs.dev_filesystems.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(raw, &crd)).To(Succeed())
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	raw, err = json.Marshal((&filler{}).fill(g, "status", &schema))
	g.Expect(err).NotTo(HaveOccurred())
	var status v1alpha1.FileSystemStatus
	g.Expect(json.Unmarshal(raw, &status)).To(Succeed())
	for i := range status.Recovery.Candidates {
		// It is in one place; a bucket has the longest name.
		status.Recovery.Candidates[i].Node, status.Recovery.Candidates[i].PersistentVolumeClaim = "", ""
	}
	return &status
}

func TestAStatusIsAtMost64KiBBesideItsCertificateHoweverMuchIsWrong(t *testing.T) {
	g := NewWithT(t)
	status := fullStatus(t)
	before := status.DeepCopy()
	g.Expect(sizeOf(status)).To(BeNumerically(">", largestStatus), "or this shows nothing")
	Fit(status)
	g.Expect(sizeOf(status)).To(BeNumerically("<=", 64<<10))
	whole, err := json.Marshal(status)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(whole)).To(BeNumerically("<=", 77<<10))
	g.Expect(status.Certificate).To(Equal(before.Certificate), "the tools need it as it is")

	g.Expect(status.Maintenance).To(Equal(before.Maintenance), "it is on record")
	g.Expect(status.Recovery.Candidates).To(HaveLen(len(before.Recovery.Candidates)))
	g.Expect(status.Metadata).To(Equal(before.Metadata))
	g.Expect(status.Conditions).To(HaveLen(len(before.Conditions)))
	for i := range status.Conditions {
		g.Expect(len(status.Conditions[i].Message)).To(BeNumerically(">=", 61), "each still says something")
	}
	again := status.DeepCopy()
	Fit(again)
	g.Expect(again).To(Equal(status), "a pass that finds nothing new writes nothing")
}

func TestAStatusThatFitsIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	status := fullStatus(t)
	status.Maintenance, status.Recovery, status.Missing, status.Backups, status.Check = nil, nil, nil, nil, nil
	status.Conditions = status.Conditions[:8]
	before := status.DeepCopy()
	Fit(status)
	g.Expect(status).To(Equal(before), "eight messages of 4096 bytes stay whole")
}
