package patience_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

var (
	errHandshake = errors.New("kubectl get: exit status 1: Unable to connect to the server: net/http: TLS handshake timeout")
	errNotFound  = errors.New(`kubectl delete: exit status 1: Error from server (NotFound): filesystems "scratch" not found`)
	errWaited    = errors.New("timed out waiting for the condition on pods/a")
	errExists    = errors.New(`kubectl create: exit status 1: Error from server (AlreadyExists): namespaces "reef" already exists`)
)

func TestAKubectlIsRepeatedWhileTheAPIServerIsBusy(t *testing.T) {
	for name, c := range map[string]struct {
		command  string
		answers  []error
		attempts int
		fails    string
	}{
		"one that succeeds runs once":              {"get pods", []error{nil}, 1, ""},
		"one whose server is busy runs again":      {"get pods", []error{errHandshake, errors.New("etcdserver: request timed out"), nil}, 3, ""},
		"one that is refused runs once":            {"apply -f -", []error{errors.New("spec.pools is required")}, 1, "spec.pools is required"},
		"a delete that was carried out":            {"delete filesystem scratch", []error{errHandshake, errNotFound}, 2, ""},
		"a delete of what was never there":         {"delete filesystem scratch", []error{errNotFound}, 1, "NotFound"},
		"a create that was carried out":            {"create namespace reef", []error{errHandshake, errExists}, 2, ""},
		"a create of what was there":               {"create namespace reef", []error{errExists}, 1, "AlreadyExists"},
		"a get of what is not there":               {"get filesystem scratch", []error{errHandshake, errNotFound}, 2, "NotFound"},
		"a server that stays busy is abandoned":    {"get pods", []error{errHandshake}, -1, "TLS handshake timeout"},
		"a wait whose condition is not met is one": {"wait pod", []error{errWaited}, 1, errWaited.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, attempts := NewWithT(t), 0
				_, err := patience.Kubectl(strings.Fields(c.command), func() (string, error) {
					attempts++
					return "", c.answers[min(attempts, len(c.answers))-1]
				})
				if c.fails == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
				}
				if c.attempts > 0 {
					g.Expect(attempts).To(Equal(c.attempts))
				}
			})
		})
	}
}

// answers holds the responses of an API server, one for each request.
type answers []int

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := (*a)[0]
	*a = (*a)[1:]
	if code == 0 {
		return nil, errHandshake
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("etcdserver: request timed out"))}, nil
}

func TestOnlyReadsAreRepeatedWhileTheAPIServerIsBusy(t *testing.T) {
	for method, c := range map[string]struct {
		answers answers
		left    int
	}{
		http.MethodGet:   {answers{0, 500, 504, 200}, 0},
		http.MethodPatch: {answers{500, 200}, 1},
		http.MethodHead:  {answers{404, 200}, 1},
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				request, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1/api", http.NoBody)
				g.Expect(err).NotTo(HaveOccurred())
				response, err := patience.Reads(&c.answers).RoundTrip(request)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(response.Body.Close()).To(Succeed())
				g.Expect(c.answers).To(HaveLen(c.left))
			})
		})
	}
}
