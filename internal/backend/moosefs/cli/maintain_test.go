package cli

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
)

func TestTheMaintenanceModeOfAChunkserverIsKnownAndOneThatEndsByItselfIsNone(t *testing.T) {
	for version, c := range map[string]struct {
		situation, off, on, temporary string
		// The addresses of the chunkserver whose mode is on, and of the one whose mode ends by itself.
		first, second string
	}{
		"3.0.117": {"healthy", "maintenance_off", "maintenance_on", "maintenance_tmp_on", "19435\t1\tA\t3.0.117\t0\t", "19435\t3\tA\t3.0.117\t0\t"},
		"4.57.5": {"healthy", `"maintenance_mode": "off"`, `"maintenance_mode": "on"`, `"maintenance_mode": "on (temp)"`,
			`"connected": true, "strver": "4.57.5", "version": "4.57.5", "pro": false, "flags": 0, "maintenance_mode_timeout": "not applicable", `, ""},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			outputs := said(t, version, c.situation)
			outputs[0] = bytes.Replace(outputs[0], []byte(c.first+c.off), []byte(c.first+c.on), 1)
			outputs[0] = bytes.Replace(outputs[0], []byte(c.second+c.off), []byte(c.second+c.temporary), 1)
			g.Expect(bytes.Contains(outputs[0], []byte(c.temporary))).To(BeTrue())
			state, err := New(version, network[version]+"11:19421").Parse(outputs)
			g.Expect(err).NotTo(HaveOccurred())
			var maintained []backend.Server
			for _, s := range state.Servers {
				if s.Maintained {
					maintained = append(maintained, s)
				}
			}
			g.Expect(maintained).To(HaveExactElements(And(HaveField("IP", network[version]+"11"), HaveField("Port", int32(19435)))))
		})
	}
}

func TestADisconnectedChunkserverOf3IsKnownToBeMaintained(t *testing.T) {
	g := NewWithT(t)
	outputs := said(t, "3.0.117", "bare")
	outputs[0] = bytes.Replace(outputs[0], []byte("19435\t1\tmaintenance_off"), []byte("19435\t1\tmaintenance_on"), 1)
	state, err := New("3.0.117", "10.97.3.11:19421").Parse(outputs)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server(state, "10.97.3.11", 19435)).To(And(HaveField("Maintained", true), HaveField("Online", false)))
	g.Expect(server(state, "10.97.3.12", 19435).Maintained).To(BeFalse())
}

func TestTheStorageClassesOfFilesAreKnown(t *testing.T) {
	each(t, "healthy", func(g Gomega, state backend.State, _ string) {
		g.Expect(state.ClassesInUse).To(HaveExactElements("bulk", "ssd"))
		g.Expect(len(state.StorageClasses)).To(BeNumerically(">", 2), "of classes without files it does not matter where their copies may lie")
	})
}

func TestAMaintenanceModeIsSwitchedWithoutAShellAndWithoutTheDNS(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Maintain("10.0.0.1:9421", "10.0.0.2", 9435, true)).To(Equal([]string{"mfscli", "-n", "-H", "10.0.0.1", "-P", "9421", "-CM1/10.0.0.2/9435"}))
	g.Expect(Maintain("10.0.0.1:9421", "10.0.0.2", 9435, false)).To(Equal([]string{"mfscli", "-n", "-H", "10.0.0.1", "-P", "9421", "-CM0/10.0.0.2/9435"}))
}

func TestAChunkserverIsForgottenWithoutAShellAndWithoutTheDNS(t *testing.T) {
	NewWithT(t).Expect(Forget("10.0.0.1:9421", "10.0.0.2", 9435)).To(Equal([]string{"mfscli", "-n", "-H", "10.0.0.1", "-P", "9421",
		"-CRC/10.0.0.2/9435"}))
}
