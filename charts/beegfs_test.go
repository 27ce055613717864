//go:build chart

package charts_test

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// realDaemons returns the values that test/cluster/real-values.sh derives from BEEGFS_IMAGES.
func realDaemons(images string) (string, error) {
	command := exec.Command("../test/cluster/real-values.sh")
	command.Env = append(command.Environ(), "BEEGFS_IMAGES="+images)
	out, err := command.CombinedOutput()
	return string(out), err
}

// beeGFSArguments returns the arguments of the test cluster's manager about a version of BeeGFS.
func beeGFSArguments(t *testing.T, values, version string) []string {
	t.Helper()
	var out []string
	for _, arg := range manager(t, render(t, values, "--values", "../test/cluster/values.yaml")).Spec.Template.Spec.Containers[0].Args {
		if name, image, ok := strings.Cut(strings.TrimPrefix(arg, "--daemon-image="), "="); ok && strings.HasPrefix(name, "beegfs-") && strings.HasSuffix(name, version) {
			out = append(out, name+"="+image)
		}
	}
	return out
}

func TestTheTestClusterRunsDoublesOfBeeGFSOrTheDaemonsThatAreNamed(t *testing.T) {
	doubles := func(version string) []string {
		var out []string
		for _, role := range []string{"meta", "mgmtd", "storage", "tools"} {
			out = append(out, "beegfs-"+role+"-"+version+"=localhost/parallelfs/beegfs-doubles:"+version)
		}
		return out
	}
	g := NewWithT(t)
	nothing, err := realDaemons("")
	g.Expect(err).NotTo(HaveOccurred(), nothing)
	g.Expect(beeGFSArguments(t, nothing, "7.4.6")).To(ConsistOf(doubles("7.4.6")))

	named, err := realDaemons("mgmtd=ghcr.io/thinkparq/beegfs-mgmtd:7.4.6,meta=localhost:5000/meta,storage=localhost/storage:1,tools=example.com/tools@sha256:" +
		strings.Repeat("a", 64))
	g.Expect(err).NotTo(HaveOccurred(), named)
	g.Expect(beeGFSArguments(t, named, "7.4.6")).To(ConsistOf(
		"beegfs-mgmtd-7.4.6=ghcr.io/thinkparq/beegfs-mgmtd:7.4.6", "beegfs-meta-7.4.6=localhost:5000/meta:latest",
		"beegfs-storage-7.4.6=localhost/storage:1", "beegfs-tools-7.4.6=example.com/tools@sha256:"+strings.Repeat("a", 64)))
	g.Expect(beeGFSArguments(t, named, "8.3.1")).To(ConsistOf(doubles("8.3.1")), "only 7.4.6 is replaced")
}

func TestBEEGFSIMAGESNamesAnImageForEachRoleOnce(t *testing.T) {
	for images, says := range map[string]string{
		"mgmtd=a,meta=b":                     "no image for storage",
		"mgmtd=a,metadata=b":                 "'metadata=b' is not <name>=<image>",
		"mgmtd=a,mgmtd=b":                    "mgmtd is named twice",
		"mgmtd=,meta=b,storage=c,tools=d":    "'mgmtd=' is not <name>=<image>",
		"ghcr.io/thinkparq/beegfs-all:7.4.6": "is not <name>=<image>",
	} {
		out, err := realDaemons(images)
		g := NewWithT(t)
		g.Expect(err).To(HaveOccurred(), images)
		g.Expect(out).To(ContainSubstring(says), images)
	}
}
