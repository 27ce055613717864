package daemon

import (
	"encoding/json"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored/storedtest"
)

// A test in package agent checks the writer with the same file.
func TestTheFileOfANodeIsReadAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	var whole spec.NodeFile
	g.Expect(json.Unmarshal(storedtest.Fixture(t, "v1", "node-replacing.json"), &whole)).To(Succeed())
	storedtest.ExpectWhole(t, whole)
	config := spec.Run{Owner: whole.FileSystem, Daemon: "storage/ssd", NodeFile: filepath.Join("testdata", "v1", spec.NodeFileName), OnTargets: &spec.OnTargets{}}
	found, missing := Read(config, "oss1")
	g.Expect(missing).To(HavePrefix("its CPUs on this node are not decided yet; "), "the file says what is waited for, and nothing is wrong with it")
	const name = "scratch-ssd-0123456789abcdef"
	g.Expect(found).To(Equal(spec.Member{
		Name: "storage-ssd", Waits: "its CPUs on this node are not decided yet",
		Targets: []spec.Target{{
			Name: name, Path: "/var/lib/parallelfs/targets/storage.scratch/" + name, UUID: "11111111-2222-4333-8444-555555555555",
			Remove: true, Directory: true, Granted: true, Expected: true, Variables: map[string]string{"TARGET_ID": "12"},
		}},
		Pinning:   &spec.Pinning{CPUs: "0-7,16-23", MemoryNodes: "0", MemoryPolicy: "Bind", Why: "spec.storagePools[ssd].cpuPinning: NUMA node 0"},
		Variables: map[string]string{"NODE_ID": "7"},
	}))

	config.NodeFile = filepath.Join("testdata", "v1", "node-pair.json")
	pair, _ := Read(config, "oss1")
	g.Expect(pair.Targets).To(HaveExactElements(HaveField("Served.BootID", "9f2c1a40-0f6b-4d0e-a0a5-6f3f5b8c2d11")))

	config.NodeFile = filepath.Join("testdata", "v1", "node-replacing.json")
	replacing, _ := Read(config, "oss1")
	g.Expect(replacing.Targets[0].Files).To(Equal(map[string]string{"targetID": "1F-6553F100-2\n"}))
	replacing.Targets[0].Files = nil
	g.Expect(replacing).To(Equal(pair), "all else is as it is for a disk that replaces no other one")

	config.NodeFile = filepath.Join("testdata", "v1", "node-served.json")
	served, _ := Read(config, "oss1")
	g.Expect(pair.Elsewhere).To(Equal([]string{"scratch-ssd-fedcba9876543210"}))
	pair.Targets[0].Served.BootID, pair.Elsewhere = "", nil
	g.Expect(served).To(Equal(pair), "all else is as it is for a target of one node")
	g.Expect(served.Targets).To(HaveLen(1))
	g.Expect(served.Targets[0].Served.Given).To(MatchJSON(`{"kind": "OST", "fsName": "pfs", "index": 3, "managementNIDs": ["10.0.0.1@tcp"]}`))
	g.Expect(served.Targets[0].Served).To(HaveValue(And(HaveField("DeviceID", "wwn-0x5000c500a1b2c3d4"), HaveField("FSType", "ldiskfs"),
		HaveField("Mark", ContainSubstring(`"uuid":"11111111-2222-4333-8444-555555555555"`)))))
	served.Targets[0].Served = nil
	g.Expect(served).To(Equal(found), "all else is as it is without")
}
