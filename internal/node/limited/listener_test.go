package limited_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/limited"
)

// serve serves a handler on a limited listener of this machine and returns its address.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: handler, ConnContext: limited.Context, ConnState: limited.State, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(limited.New(inner)) }()
	t.Cleanup(func() { _ = server.Close() })
	return inner.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// isClosed waits for the end of a connection or for an answer to what was sent.
func isClosed(connection net.Conn) bool {
	_, err := connection.Read(make([]byte, 1))
	return err != nil
}

func TestAThousandIdleConnectionsKeepNoQuestionOut(t *testing.T) {
	g := NewWithT(t)
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	var idle []net.Conn
	for range 1000 {
		idle = append(idle, dial(t, address))
	}
	for range 20 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		g.Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		g.Expect(string(body), err).To(Equal("ok"))
	}
	for _, connection := range idle[:1000-limited.PerAddress] {
		g.Expect(isClosed(connection)).To(BeTrue())
	}
}

func TestABusyServerIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct{ busy, tries, code int }{
		"one that is busy for a moment": {busy: 3, tries: 4, code: http.StatusOK},
		"one that stays busy":           {busy: 100, tries: 5, code: http.StatusServiceUnavailable},
		"one that is not busy":          {tries: 1, code: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, tries := NewWithT(t), 0
			address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tries++; tries <= c.busy {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
			g.Expect(err).NotTo(HaveOccurred())
			response, err := limited.Ask(http.DefaultClient, request)
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			g.Expect(response.StatusCode).To(Equal(c.code))
			g.Expect(tries).To(Equal(c.tries))
		})
	}
}

// The hold lasts until the answer was sent. This is after the end of the handler, which releases the connection.
func TestAHeldConnectionStaysOpenUnderMoreConnections(t *testing.T) {
	g := NewWithT(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited.Hold(r.Context())()
		close(asked)
		<-answer
		_, _ = io.WriteString(w, "the answer")
	}))
	got := make(chan string)
	go func() {
		request, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "http://"+address, http.NoBody)
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			got <- err.Error()
			return
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		got <- string(body)
	}()
	<-asked
	first := dial(t, address)
	for range 3 * limited.PerAddress {
		dial(t, address)
	}
	g.Expect(isClosed(first)).To(BeTrue())
	close(answer)
	g.Expect(<-got).To(Equal("the answer"))
}

func TestManyConnectionsOfSomeAddressesCloseNotTheOnlyOneOfAnother(t *testing.T) {
	g := NewWithT(t)
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	only := dial(t, address)
	for i := range 3 * limited.Total {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%40))}
		connection, err := (&net.Dialer{LocalAddr: from}).DialContext(t.Context(), "tcp", address)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = connection.Close() })
	}
	_, err := io.WriteString(dial(t, address), "GET / HTTP/1.1\r\nHost: node\r\n\r\n")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.WriteString(only, "GET / HTTP/1.1\r\nHost: node\r\n\r\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(isClosed(only)).To(BeFalse(), "it was opened first, and its address has no other")
}
