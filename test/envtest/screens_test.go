//go:build envtest

package envtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// situations are statuses of each kind, with the longest values that real ones have. The first of each kind has none: it was just made.
var situations = map[string][]string{
	"FileSystem": {"",
		said("Ready", "False", "Starting") + "  mountPath: /mnt/scratch\n",
		said("Ready", "True", "Healthy") + "  version: 4.57.5\n  management: {address: \"10.0.0.1:9419\"}\n" + fullSummary,
		said("Ready", "True", "Degraded") + fullSummary,
		said("Ready", "False", "MetadataOffline") + fullSummary,
		said("Ready", "False", "InvalidSpec", "Stalled") + fullSummary,
	},
	"StorageTarget": {"",
		said("Ready", "False", "AwaitingApproval") + "  kernelName: sdc\n  plan: {hash: \"sha256:" + strings.Repeat("0a", 32) + "\"}\n",
		said("Ready", "False", "Formatting"),
		said("Ready", "True", "Provisioned", "Online") + "  capacity: 18.2TiB\n  provisioned: {uuid: 6f1c2a34-0000-4000-8000-000000000001}\n",
		said("Ready", "True", "Draining", "Online"),
		said("Ready", "False", "DeviceRefused"),
	},
	"FileSystemNode": {"",
		said("Ready", "Unknown", "AgentAway"), said("Ready", "True", "Healthy") + "  summary: {servers: 12/12, targets: 96/96}\n",
		said("Ready", "False", "ServersAway") + "  summary: {servers: 0/12, targets: 0/96}\n",
		said("Ready", "Unknown", "MaintenanceNotAllowed") + "  summary: {servers: 12/12, targets: 96/96}\n",
		said("Ready", "False", "GivenUp"),
	},
	"NodeInventory": {"",
		"status:\n  summary: {disks: 0, usable: 0}\n",
		"status:\n  summary: {disks: 102, usable: 96, usableCapacity: 1.72PiB}\n",
		"status:\n  summary: {disks: 102, usable: 96, usableCapacity: 1.72PiB, settings: 3 differ}\n  cpu: {model: a long name of a processor, sockets: 2, threads: 256}\n",
		"status:\n  summary: {disks: 1, usable: 0}\n  kernel: {release: 6.8.0-45-generic}\n",
		"status:\n  summary: {disks: 1, usable: 1, usableCapacity: 931.5GiB}\n",
	},
	"BenchmarkRun": {"",
		said("Succeeded", "Unknown", "WaitingForFileSystem") + "  target: scratch\n  tool: obdfilterSurvey\n",
		said("Succeeded", "Unknown", "Measuring") + "  target: scratch\n  tool: iozone\n  progress: 480/512\n  timeLeft: 12h30m\n  current: Write, 64 processes\n",
		said("Succeeded", "True", "Completed", "Accepted") + "  target: scratch\n  tool: mdtest\n  progress: 512/512\n  failedPoints: 0\n",
		said("Succeeded", "False", "PointsFailed") + "  target: scratch\n  tool: ior\n  progress: 512/512\n  failedPoints: 16\n",
		said("Succeeded", "Unknown", "Suspended") + "  target: scratch\n  tool: fio\n  progress: 1/512\n",
	},
	"BenchmarkSuite": {"",
		said("Succeeded", "Unknown", "WaitingForFileSystem"),
		said("Succeeded", "Unknown", "Running") + "  progress: 12/16\n  current: \"n4: creates 480/512\"\n",
		said("Succeeded", "True", "Completed") + "  progress: 16/16\n", said("Succeeded", "False", "RunsFailed") + "  progress: 16/16\n",
		said("Succeeded", "Unknown", "Suspended") + "  progress: 3/16\n",
	},
}

const fullSummary = "  summary: {servers: 12/12, targets: 1152/1152, clients: 128/128, capacity: 1.72PiB, used: 941.3TiB}\n"

// said is a status with a condition, and with others that are true for the same reason.
func said(condition, status, reason string, others ...string) string {
	const row = "  - {type: %s, status: %q, reason: %s, message: a sentence for a person, lastTransitionTime: \"2026-11-28T12:00:00Z\"}\n"
	out := "status:\n  conditions:\n" + fmt.Sprintf(row, condition, status, reason)
	for _, other := range others {
		out += fmt.Sprintf(row, other, "True", reason)
	}
	return out
}

// The API server makes the table that kubectl get prints: each column is as wide as its widest cell, with three spaces between two.
func TestEachKindFitsOnAScreenInEachSituation(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	for _, crd := range customResources(t) {
		kind := crd.Spec.Names.Kind
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(situations[kind]).To(HaveLen(6))
			for i, status := range situations[kind] {
				text, is := goodManifests[kind]
				if !is {
					text = "apiVersion: parallelfs.dev/v1alpha1\nkind: " + kind + "\n"
				}
				object := manifest(t, namespace, text, fmt.Sprintf("metadata: {name: scratch-%d, labels: {screens: here}}", i), status)
				if crd.Spec.Scope == "Cluster" {
					object.SetNamespace("")
					t.Cleanup(func() {
						g.Expect(server.Client.Delete(context.WithoutCancel(t.Context()), object)).To(Succeed())
					})
				}
				createWithStatus(t, object)
			}
			table, described := tableOf(t, crd.Spec.Names.Plural, placeOf(crd.Spec.Scope == "Cluster", namespace))
			g.Expect(table.Rows).To(HaveLen(6))
			width := -3
			for column, header := range table.ColumnDefinitions {
				widest, shown := len(header.Name), false
				for _, row := range table.Rows {
					cell := row.Cells[column]
					shown = shown || cell != nil && cell != ""
					if cell != nil {
						widest = max(widest, len(fmt.Sprint(cell)))
						g.Expect(fmt.Sprint(cell)).NotTo(Or(ContainSubstring("1970"), Equal("<unknown>"), Equal("<invalid>")), header.Name)
					}
				}
				g.Expect(shown).To(BeTrue(), "column %s is empty in each situation: is its path right?", header.Name)
				if header.Priority == 0 {
					width += widest + 3
				}
			}
			g.Expect(width).To(BeNumerically("<=", 120))
			g.Expect(described).NotTo(ContainSubstring("1970-"), "kubectl describe prints each time of an object")
		})
	}
}

// placeOf is where the objects of a kind are: in a namespace, or in the cluster.
func placeOf(cluster bool, namespace string) string {
	if cluster {
		return ""
	}
	return "namespaces/" + namespace + "/"
}

// tableOf asks for the table of all objects of a kind, and for the objects themselves.
func tableOf(t *testing.T, plural, where string) (table metav1.Table, objects string) {
	t.Helper()
	g := NewWithT(t)
	https, err := rest.HTTPClientFor(server.Config)
	g.Expect(err).NotTo(HaveOccurred())
	get := func(accept string) []byte {
		url := strings.TrimSuffix(server.Config.Host, "/") + "/apis/parallelfs.dev/v1alpha1/" + where + plural + "?labelSelector=screens" // other tests have objects in the cluster, too
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		g.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Accept", accept)
		answer, err := https.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.StatusCode).To(Equal(http.StatusOK), string(text))
		return text
	}
	g.Expect(json.Unmarshal(get("application/json;as=Table;v=v1;g=meta.k8s.io"), &table)).To(Succeed())
	return table, string(get("application/json"))
}
