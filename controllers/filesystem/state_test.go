package filesystem

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestHTTPStateReader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/well":
			_, _ = w.Write([]byte(`{"version":"4.57.5","targets":[{"path":"/data/ssd0","online":true}]}`))
		case "/unwell":
			http.Error(w, "mfscli: can't connect to the master", http.StatusServiceUnavailable)
		case "/broken":
			_, _ = w.Write([]byte(`{"version":`))
		case "/hangs":
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	patient := NewHTTPStateReader(time.Minute)

	t.Run("a probe's answer is a state", func(t *testing.T) {
		g := NewWithT(t)
		state, err := patient.State(t.Context(), server.URL+"/well")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.Version).To(Equal("4.57.5"))
		g.Expect(state.Targets[0].Online).To(BeTrue())
	})
	for name, c := range map[string]struct {
		reader    *HTTPStateReader
		url, says string
	}{
		"a probe that knows nothing says why in its own words":               {patient, server.URL + "/unwell", "the probe says: mfscli: can't connect to the master"},
		"an answer that is cut off is no state":                              {patient, server.URL + "/broken", "decode the probe's answer"},
		"a probe that hangs is given up":                                     {NewHTTPStateReader(200 * time.Millisecond), server.URL + "/hangs", "does not answer in 200ms"},
		"a probe that is not there is told apart, without a changing number": {patient, "http://127.0.0.1:1/state", "the probe at http://127.0.0.1:1/state can't be reached: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state, err := c.reader.State(t.Context(), c.url)
			g.Expect(state).To(BeNil())
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}
