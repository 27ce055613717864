package v1alpha1_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// rows holds the columns of objects with long values, as kubectl get prints them: the name and each column of the usual width.
var rows = map[string]map[string]string{
	"FileSystem": {
		"Name": "scratch", "Type": "MooseFS", "Ready": "False", "Reason": "MetadataOffline", "Stalled": "TargetMissing",
		"Servers": "12/12", "Targets": "1152/1152", "Clients": "128/128", "Capacity": "1.72PiB", "Used": "941.3TiB", "Age": "128d",
	},
	"StorageTarget": {
		"Name": "scratch-ssd-4f7a2c1b", "FileSystem": "scratch", "Role": "Management", "Pool": "archive", "Node": "storage-12",
		"Ready": "False", "Reason": "AwaitingApproval", "Online": "Unknown", "Age": "128d",
	},
	"FileSystemNode": {
		"Name": "scratch-storage-12", "FileSystem": "scratch", "Node": "storage-12", "Ready": "Unknown", "Reason": "MaintenanceNotAllowed",
		"Servers": "12/12", "Targets": "96/96", "Age": "128d",
	},
	"NodeInventory": {
		"Name": "storage-12.cluster.example.org", "Disks": "102", "Usable": "96", "Capacity": "1.72PiB", "Sockets": "2", "CPUs": "256",
		"Settings": "3 differ", "Age": "128d",
	},
	"BenchmarkRun": {
		"Name": "iozone-distributed", "Target": "scratch", "Tool": "obdfilterSurvey", "Succeeded": "Unknown", "Reason": "WaitingForFileSystem",
		"Progress": "480/512", "Left": "12h30m", "Failed": "16", "Age": "128d",
	},
	"BenchmarkSuite": {
		"Name": "instances-2015", "Succeeded": "Unknown", "Reason": "WaitingForFileSystem", "Progress": "12/16", "Current": "n4: creates 480/512",
		"Age": "128d",
	},
}

// kubectl get without -o wide prints the columns with priority 0, each as wide as its widest value, with three spaces between two.
func TestKubectlGetOfEveryKindHasAtMost120Columns(t *testing.T) {
	for _, crd := range crds(t) {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			g := NewWithT(t)
			row := rows[crd.Spec.Names.Kind]
			width, columns := max(len("NAME"), len(row["Name"])), 1
			for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
				if c.Priority != 0 {
					continue
				}
				g.Expect(row).To(HaveKey(c.Name))
				width += 3 + max(len(c.Name), len(row[c.Name]))
				columns++
			}
			g.Expect(row).To(HaveLen(columns), "rows has the columns that are shown, and no others: %s", strings.Join(slices.Sorted(maps.Keys(row)), ", "))
			g.Expect(width).To(BeNumerically("<=", 120))
		})
	}
}
