package wire_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
	"parallelfs.dev/operator/test/patience"
)

// counted counts the connections that it accepts.
type counted struct {
	net.Listener
	accepted atomic.Int32
}

func (c *counted) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return connection, err
}

// serve answers each question with its own argument, and refuses the operation "none".
func serve(t *testing.T, address string) *counted {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c := &counted{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go wire.Serve(t.Context(), c, func(_ context.Context, op string, body json.RawMessage, _ []*os.File) (any, error) {
		if op == "none" {
			return nil, wire.Refuse(syscall.ENODEV, "there is none")
		}
		return body, nil
	})
	return c
}

func TestANodeThatIsAskedAgainAndAgainGetsOneConnection(t *testing.T) {
	g, node := NewWithT(t), serve(t, "127.0.0.1:0")
	var peers wire.Peers
	for i := range 50 {
		var answer int
		g.Expect(peers.Ask(t.Context(), node.Addr().String(), "echo", i, &answer)).To(Succeed())
		g.Expect(answer).To(Equal(i))
		err := peers.Ask(t.Context(), node.Addr().String(), "none", nil, nil)
		g.Expect(wire.Errno(err)).To(Equal(syscall.ENODEV))
	}
	g.Expect(node.accepted.Load()).To(BeEquivalentTo(1))
}

func TestANodeThatWasAwayIsAskedOverANewConnection(t *testing.T) {
	g, node := NewWithT(t), serve(t, "127.0.0.1:0")
	address := node.Addr().String()
	var peers wire.Peers
	g.Expect(peers.Ask(t.Context(), address, "echo", 1, nil)).To(Succeed())
	g.Expect(node.Close()).To(Succeed())
	g.Eventually(func() error { return peers.Ask(t.Context(), address, "echo", 1, nil) }).
		WithTimeout(patience.Bound(time.Minute)).Should(MatchError(syscall.ECONNREFUSED))
	serve(t, address)
	g.Expect(peers.Ask(t.Context(), address, "echo", 1, nil)).To(Succeed())
}
