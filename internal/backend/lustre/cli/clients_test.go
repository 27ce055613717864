package cli_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// states is the answer of a node with a client and an MDT; the history is that of a real client that was evicted.
const states = `mdc.pfs-MDT0000-mdc-ff223342a1e98000.state=
current_state: FULL
state_history:
 - [ 1795345355, FULL ]
 - [ 1795345432, DISCONN ]
 - [ 1795345432, CONNECTING ]
 - [ 1795345432, EVICTED ]
 - [ 1795345432, RECOVER ]
 - [ 1795345432, FULL ]
osc.pfs-OST0000-osc-MDT0000.state=
current_state: DISCONN
state_history:
 - [ 1795345000, EVICTED ]
osc.pfs-OST0000-osc-ff223342a1e98000.state=
current_state: IDLE
state_history:
 - [ 1795345355, FULL ]
osc.pfs-OST0001-osc-ff223342a1e98000.state=
current_state: DISCONN
state_history:
 - [ 1795345360, EVICTED ]
 - [ 1795345400, EVICTED ]
osc.pfs-OST0002-osc-ff223342a1e98000.state=
current_state: CONNECTING
state_history:
 - [ 1795345000, DISCONN ]
osc.lake-OST0000-osc-ff22aaaaa1e98000.state=
current_state: FULL
state_history:
 - [ 1795345000, FULL ]
osc.pfs-OST0000-osc-ff223342a1e98000.active=1
osc.pfs-OST0001-osc-ff223342a1e98000.active=1
osc.pfs-OST0002-osc-ff223342a1e98000.active=0
osc.pfs-OST0000-osc-MDT0000.active=0
`

func TestAClientReportsItsMissingConnectionsAndItsEvictions(t *testing.T) {
	g := NewWithT(t)
	found := cli.ParseClients(states)
	g.Expect(found).To(HaveLen(2))
	g.Expect(found[0]).To(Equal(cli.Mounted{FSName: "lake", Evicted: map[string]time.Time{}}))
	g.Expect(found[1].FSName).To(Equal("pfs"))
	g.Expect(found[1].Disconnected).To(Equal([]string{"pfs-OST0001 DISCONN"}), "OST0002 is not used any more, and a connection of an MDT is none of a client")
	g.Expect(found[1].Evicted).To(Equal(map[string]time.Time{
		"MDT0000-ff223342a1e98000@1795345432": time.Unix(1795345432, 0),
		"OST0001-ff223342a1e98000@1795345360": time.Unix(1795345360, 0), "OST0001-ff223342a1e98000@1795345400": time.Unix(1795345400, 0),
	}))

	g.Expect(cli.ParseClients("")).To(BeEmpty())
	g.Expect(cli.ParseClients("osc.pfs-OST0000-osc-MDT0000.state=\ncurrent_state: DISCONN\n")).To(BeEmpty(), "a server is no client")
	g.Expect(cli.AllClientStates()).To(HaveExactElements("lctl", "get_param", "mdc.*.state", "osc.*.state", "osc.*.active"))
}
