package filesystem

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
)

func TestHTTPStateReader(t *testing.T) {
	const key, uid = "correct-horse", "7"
	// removable returns the answer of an attacker who wants a disk with data to be removed.
	removable := func() (*backend.State, error) {
		return &backend.State{Version: "4.57.5", Targets: []backend.Target{{Path: "/data/ssd0", Online: true, Removing: true, Removable: true}}}, nil
	}
	probe := ProbeDouble{UID: uid, Key: key, Ask: removable}
	var earlier *httptest.ResponseRecorder
	unsigned := func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		probe.ServeHTTP(recorder, r)
		_, _ = w.Write(recorder.Body.Bytes())
	}
	replay := func(w http.ResponseWriter, r *http.Request) {
		if earlier == nil {
			earlier = httptest.NewRecorder()
			probe.ServeHTTP(earlier, r)
		}
		w.Header().Set(exchange.SignatureHeader, earlier.Header().Get(exchange.SignatureHeader))
		_, _ = w.Write(earlier.Body.Bytes())
	}
	handlers := map[string]http.Handler{
		"/well":     probe,
		"/unwell":   ProbeDouble{UID: uid, Key: key, Ask: func() (*backend.State, error) { return nil, errors.New("mfscli: can't connect to the master") }},
		"/forged":   ProbeDouble{UID: uid, Key: "guessed", Ask: removable},
		"/unsigned": http.HandlerFunc(unsigned),
		"/replayed": http.HandlerFunc(replay),
		"/other":    ProbeDouble{UID: "8", Key: key, Ask: removable},
		"/refuses": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "wipe your disks", http.StatusServiceUnavailable)
		}),
		"/elsewhere": http.RedirectHandler("/well", http.StatusFound),
		"/hangs":     http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		"/floods": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range maxState>>20 + 1 {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
		}),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handlers[r.URL.Path].ServeHTTP(w, r) }))
	defer server.Close()
	patient, down := NewHTTPStateReader(time.Minute), NewHTTPStateReader(time.Minute)
	down.Client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
	ask := func(t *testing.T, reader *HTTPStateReader, url string) (*backend.State, error) {
		t.Helper()
		return reader.State(t.Context(), Question{URL: url, FileSystemUID: uid, Key: key, Secret: "scratch-probe"})
	}

	t.Run("an answer that is signed for the question is a state", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			state, err := ask(t, patient, server.URL+"/well")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(state.Version).To(Equal("4.57.5"))
			g.Expect(state.Targets[0].Removable).To(BeTrue())
		}
	})
	t.Run("an answer counts once", func(t *testing.T) {
		g := NewWithT(t)
		_, err := ask(t, patient, server.URL+"/replayed")
		g.Expect(err).NotTo(HaveOccurred())
		state, err := ask(t, patient, server.URL+"/replayed")
		g.Expect(state).To(BeNil())
		g.Expect(err).To(MatchError(And(ContainSubstring("was given to an earlier question"), ContainSubstring("ss -lntp 'sport = :"))))
	})
	for name, c := range map[string]struct {
		reader       *HTTPStateReader
		url, message string
	}{
		"a filesystem that does not answer is reported with its own message": {patient, server.URL + "/unwell", "the probe reports: mfscli: can't connect to the master"},
		"who has the port without the secret is not believed":                {patient, server.URL + "/forged", "is not signed with this filesystem's secret: either another program listens there"},
		"an answer without a signature is not believed":                      {patient, server.URL + "/unsigned", "Secret scratch-probe is new and has not reached the probe"},
		"the probe of another FileSystem is not believed":                    {patient, server.URL + "/other", `belongs to another FileSystem (uid "8")`},
		"what somebody says without a signature is not repeated":             {patient, server.URL + "/refuses", "answers with HTTP status 503; if it is the probe, its log shows why"},
		"an answer from elsewhere is not fetched":                            {patient, server.URL + "/elsewhere", "answers with HTTP status 302"},
		"an answer without an end is cut off":                                {patient, server.URL + "/floods", "is larger than 16 MiB"},
		"a probe that hangs is abandoned":                                    {NewHTTPStateReader(200 * time.Millisecond), server.URL + "/hangs", "does not answer in 200ms"},
		"a node that is down is told apart from a filesystem that is slow":   {down, "http://10.0.0.1:9427/state", "the probe at 10.0.0.1:9427 can't be reached: i/o timeout"},
		"a probe that is not there is told apart, without a changing number": {
			patient, "http://127.0.0.1:1/state", "the probe at 127.0.0.1:1 can't be reached: connection refused; check that",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state, err := ask(t, c.reader, c.url)
			g.Expect(state).To(BeNil())
			g.Expect(err).To(MatchError(And(ContainSubstring(c.message), Not(ContainSubstring(key)), Not(ContainSubstring("wipe your disks")))))
		})
	}
}
