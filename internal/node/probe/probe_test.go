package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// key is the probe's signing key.
const key = "correct-horse"

// filesystem is a filesystem with the answers and at the time that a test sets.
type filesystem struct {
	state  backend.State
	broken error
	parse  error
	now    time.Time
}

func (*filesystem) Commands() [][]string { return [][]string{{"ask", "servers"}, {"ask", "targets"}} }

func (f *filesystem) Parse(outputs [][]byte) (backend.State, error) {
	if f.parse != nil {
		return backend.State{}, f.parse
	}
	if len(outputs) != 2 || string(outputs[0]) != "servers" || string(outputs[1]) != "targets" {
		return backend.State{}, fmt.Errorf("the answers came as %q", outputs)
	}
	return f.state, nil
}

func (f *filesystem) probe(t *testing.T) *Probe {
	t.Helper()
	f.now = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	config := spec.Probe{
		Backend: "Fake", Address: "10.0.0.1:9421", IntervalSeconds: 5, FileSystem: spec.Owner{Namespace: "storage", Name: "scratch", UID: "7"},
		KeyFile: filepath.Join(t.TempDir(), "key"),
	}
	NewWithT(t).Expect(os.WriteFile(config.KeyFile, []byte(key), 0o600)).To(Succeed())
	p, err := New(config, f, nil, slog.New(slog.DiscardHandler))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	p.now = func() time.Time { return f.now }
	p.last.turned = f.now
	p.ask = func(_ context.Context, argv []string, _ time.Duration) ([]byte, error) {
		return []byte(argv[1]), f.broken
	}
	return p
}

// get sends a request to the probe over HTTP.
func get(t *testing.T, p *Probe, path string) (code int, body string) {
	t.Helper()
	code, body, _ = getSigned(t, p, path, "")
	return code, body
}

// getSigned sends a request that is signed with a key, or an unsigned one if the key is empty.
func getSigned(t *testing.T, p *Probe, path, signWith string) (code int, body, signature string) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewServer(p.Handler())
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	if signWith != "" {
		request.Header.Set(exchange.QuestionHeader, exchange.SignQuestion([]byte(signWith), request.URL.Query().Get(exchange.NonceParameter)))
	}
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(content), response.Header.Get(exchange.SignatureHeader)
}

// asks sends a request as the manager does, and runs one turn of the probe for it.
func asks(t *testing.T, p *Probe, key string) (exchange.Answer, error) {
	t.Helper()
	go func() {
		<-p.wanted
		p.turn(t.Context())
	}()
	return answered(t, p, "N1", key)
}

// answered waits for the answer to a request.
func answered(t *testing.T, p *Probe, nonce, key string) (exchange.Answer, error) {
	t.Helper()
	code, body, signature := getSigned(t, p, "/state?nonce="+nonce, key)
	NewWithT(t).Expect(code).To(Equal(http.StatusOK), body)
	return exchange.ReadAnswer([]byte(body), signature, []byte(key), nonce, "7")
}

func someState() backend.State {
	return backend.State{
		Version: "4.57.5",
		Servers: []backend.Server{
			{Role: v1alpha1.RoleStorage, IP: "10.0.0.2", Port: 9422, Online: true},
			{Role: v1alpha1.RoleStorage, IP: "10.0.0.3", Port: 9422},
			// A server that came back with a new identity is listed twice.
			{Role: v1alpha1.RoleStorage, IP: "10.0.0.3", Port: 9422, Online: true},
			{Role: v1alpha1.RoleMetadataBackup, IP: "10.0.0.4", Online: true},
		},
		Targets: []backend.Target{
			{IP: "10.0.0.2", Port: 9422, Path: "/data/a", Online: true, UsedBytes: 1, CapacityBytes: 10},
			{IP: "10.0.0.3", Port: 9422, Path: "/data/a", UsedBytes: 5, CapacityBytes: 50},
			{IP: "10.0.0.3", Port: 9422, Path: "/data/a", Online: true, UsedBytes: 2, CapacityBytes: 20},
		},
		Sessions: []backend.Session{{IP: "10.0.0.5", Connected: true}, {IP: "10.0.0.6"}},
		Data:     backend.DataHealth{Known: true, Missing: 1, Endangered: 2, Undergoal: 3, Stable: 4},
	}
}

func TestAnAnswerIsServed(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: someState()}
	p := f.probe(t)
	answer, err := asks(t, p, key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer).To(Equal(exchange.Answer{Nonce: "N1", FileSystemUID: "7", State: new(someState())}))
	code, _ := get(t, p, "/readyz")
	g.Expect(code).To(Equal(http.StatusOK))
	code, _ = get(t, p, "/nothing")
	g.Expect(code).To(Equal(http.StatusNotFound))
}

func TestAQuestionWithoutANonceIsRefusedWithoutAQuery(t *testing.T) {
	f := &filesystem{state: someState()}
	p := f.probe(t)
	for _, path := range []string{"/state", "/state?nonce=", "/state?nonce=a%20b", "/state?nonce=" + strings.Repeat("a", 65)} {
		g := NewWithT(t)
		code, body := get(t, p, path)
		g.Expect(code).To(Equal(http.StatusBadRequest))
		g.Expect(body).To(ContainSubstring("up to 64 letters and digits"))
	}
	NewWithT(t).Expect(p.wanted).To(BeEmpty())
}

func TestTheAnswerOfAQuestionThatBeganBeforeIsNotUsed(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: backend.State{Version: "before"}}
	p := f.probe(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	quick := p.ask
	p.ask = func(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
		once.Do(func() { close(began); <-goOn })
		return quick(ctx, argv, limit)
	}
	first := make(chan struct{})
	go func() { p.turn(t.Context()); close(first) }()
	<-began // the filesystem is being queried and is slow
	answers := make(chan exchange.Answer, 1)
	go func() {
		answer, err := answered(t, p, "N1", key)
		if err == nil {
			answers <- answer
		}
	}()
	<-p.wanted // the probe has received the request in the meantime
	close(goOn)
	<-first
	g.Expect(p.snapshot().state.Version).To(Equal("before"), "metrics show it")
	g.Expect(p.next.unsigned+p.next.signed).To(Equal(1), "who asked waits for the next one")
	f.state.Version = "after"
	p.turn(t.Context())
	var answer exchange.Answer
	g.Eventually(answers).WithTimeout(patience.Bound(time.Minute)).Should(Receive(&answer))
	g.Expect(answer.State.Version).To(Equal("after"))
}

func TestThoseWhoWaitShareTheNextQuestion(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: someState()}
	p := f.probe(t)
	asked := 0
	quick := p.ask
	p.ask = func(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
		asked++
		return quick(ctx, argv, limit)
	}
	refused := make(chan string, mostUnsigned)
	for i := range mostUnsigned {
		go func() {
			_, body := get(t, p, fmt.Sprintf("/state?nonce=U%d", i))
			refused <- body
		}()
	}
	unsigned := func() int {
		p.mutex.RLock()
		defer p.mutex.RUnlock()
		return p.next.unsigned
	}
	g.Eventually(unsigned).WithTimeout(patience.Bound(time.Minute)).Should(Equal(mostUnsigned))
	code, body := get(t, p, "/state?nonce=more")
	g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(body).To(ContainSubstring("4 unsigned questions wait for an answer already"))

	// Unsigned requests don't use the manager's places.
	answers := make(chan exchange.Answer, mostSigned)
	for i := range mostSigned {
		go func() {
			answer, err := answered(t, p, fmt.Sprintf("N%d", i), key)
			if err == nil {
				answers <- answer
			}
		}()
	}
	waiting := func() int {
		p.mutex.RLock()
		defer p.mutex.RUnlock()
		return p.next.signed
	}
	g.Eventually(waiting).WithTimeout(patience.Bound(time.Minute)).Should(Equal(mostSigned))
	code, body, _ = getSigned(t, p, "/state?nonce=more", key)
	g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(body).To(ContainSubstring("16 signed"))
	p.turn(t.Context())
	nonces := map[string]bool{}
	for range mostSigned {
		var answer exchange.Answer
		g.Eventually(answers).WithTimeout(patience.Bound(time.Minute)).Should(Receive(&answer))
		nonces[answer.Nonce] = true
	}
	g.Expect(nonces).To(HaveLen(mostSigned), "each has an answer to its own question")
	g.Expect(asked).To(Equal(len(f.Commands())), "the filesystem was asked once")
}

func TestAnAnswerIsSignedWithTheKeyThatIsThereNow(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: someState()}
	p := f.probe(t)
	_, err := asks(t, p, "another")
	g.Expect(err).To(MatchError(exchange.ErrUnsigned))
	// The Secret was deleted, the operator recreated it, and the kubelet has updated the file.
	g.Expect(os.WriteFile(p.config.KeyFile, []byte("another"), 0o600)).To(Succeed())
	_, err = asks(t, p, "another")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(p.config.KeyFile, nil, 0o600)).To(Succeed())
	for _, says := range []string{"the key that answers are signed with is empty", "read the key that answers are signed with"} {
		go func() {
			<-p.wanted
			p.turn(t.Context())
		}()
		code, body := get(t, p, "/state?nonce=N1")
		g.Expect(code).To(Equal(http.StatusInternalServerError))
		g.Expect(body).To(ContainSubstring(says))
		_ = os.Remove(p.config.KeyFile)
	}
}

func TestHealthAndReadinessOf(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(p *Probe, f *filesystem)
		ready   int
		says    string
		health  int
		up      string
	}{
		"a probe that has not asked yet": {
			happens: func(*Probe, *filesystem) {},
			ready:   503, says: "the filesystem at 10.0.0.1:9421 has not answered yet", health: 200, up: "0",
		},
		"a filesystem that never answered": {
			happens: func(p *Probe, f *filesystem) { f.broken = errors.New("mfscli failed"); p.turn(context.Background()) },
			ready:   503, says: "the filesystem at 10.0.0.1:9421 does not answer: mfscli failed", health: 200, up: "0",
		},
		"an answer that can't be understood": {
			happens: func(p *Probe, f *filesystem) { f.parse = errors.New("line 3: no port"); p.turn(context.Background()) },
			ready:   503, says: "line 3: no port", health: 200, up: "0",
		},
		"a filesystem that missed one question": {
			happens: func(p *Probe, f *filesystem) {
				p.turn(context.Background())
				f.now, f.broken = f.now.Add(5*time.Second), errors.New("mfscli failed")
				p.turn(context.Background())
			},
			ready: 200, says: "ok", health: 200, up: "1",
		},
		"a filesystem that has not answered for three intervals and a command's time": {
			happens: func(p *Probe, f *filesystem) {
				p.turn(context.Background())
				f.now, f.broken = f.now.Add(25*time.Second+1), errors.New("mfscli failed")
				p.turn(context.Background())
			},
			ready: 503, says: "does not answer: mfscli failed", health: 200, up: "0",
		},
		"a filesystem that answers again": {
			happens: func(p *Probe, f *filesystem) {
				f.broken = errors.New("mfscli failed")
				p.turn(context.Background())
				f.broken = nil
				p.turn(context.Background())
			},
			ready: 200, says: "ok", health: 200, up: "1",
		},
		"a probe that is stuck": {
			happens: func(p *Probe, f *filesystem) { p.turn(context.Background()); f.now = f.now.Add(time.Hour) },
			ready:   503, says: "", health: 503, up: "0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), &filesystem{state: someState()}
			p := f.probe(t)
			c.happens(p, f)
			ready, body := get(t, p, "/readyz")
			g.Expect(ready).To(Equal(c.ready), body)
			g.Expect(body).To(ContainSubstring(c.says))
			health, _ := get(t, p, "/healthz")
			g.Expect(health).To(Equal(c.health))
			_, metrics := get(t, p, "/metrics")
			g.Expect(metrics).To(ContainSubstring(`parallelfs_up{filesystem="scratch",namespace="storage"} ` + c.up + "\n"))
			if c.up == "0" {
				g.Expect(metrics).NotTo(ContainSubstring("parallelfs_target_online"), "what is not known is not told")
			}
		})
	}
}

// samples returns the samples on a page of metrics. L replaces the filesystem's labels, and empty labels are left out.
func samples(page string) []string {
	var out []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			line = strings.NewReplacer(`filesystem="scratch"`, "L", `,namespace="storage"`, "", `,id=""`, "", `,path=""`, "").Replace(line)
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// hasNoFault fails when Prometheus' own checks find a fault in the names, units or help texts of a page of metrics.
func hasNoFault(t *testing.T, page string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(problems).To(BeEmpty())
}

func TestMetrics(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: someState()}
	p := f.probe(t)
	p.turn(t.Context())
	code, body := get(t, p, "/metrics")
	g.Expect(code).To(Equal(http.StatusOK), body)
	g.Expect(samples(body)).To(ConsistOf(
		`parallelfs_up{L} 1`,
		`parallelfs_probe_duration_seconds{L} 0`,
		`parallelfs_probe_last_success_timestamp_seconds{L} 1.7952444e+09`,
		`parallelfs_server_online{address="10.0.0.2:9422",L,role="Storage"} 1`,
		`parallelfs_server_online{address="10.0.0.3:9422",L,role="Storage"} 1`,
		`parallelfs_server_online{address="10.0.0.4",L,role="MetadataBackup"} 1`,
		`parallelfs_target_online{address="10.0.0.2:9422",L,path="/data/a",role="Storage"} 1`,
		`parallelfs_target_online{address="10.0.0.3:9422",L,path="/data/a",role="Storage"} 1`,
		`parallelfs_target_capacity_bytes{address="10.0.0.2:9422",L,path="/data/a",role="Storage"} 10`,
		`parallelfs_target_capacity_bytes{address="10.0.0.3:9422",L,path="/data/a",role="Storage"} 20`,
		`parallelfs_target_used_bytes{address="10.0.0.2:9422",L,path="/data/a",role="Storage"} 1`,
		`parallelfs_target_used_bytes{address="10.0.0.3:9422",L,path="/data/a",role="Storage"} 2`,
		`parallelfs_chunks{L,state="missing"} 1`,
		`parallelfs_chunks{L,state="endangered"} 2`,
		`parallelfs_chunks{L,state="undergoal"} 3`,
		`parallelfs_chunks{L,state="stable"} 4`,
		`parallelfs_sessions{L} 1`,
	))
	hasNoFault(t, body)

	f.state.Data.Known = false
	p.turn(t.Context())
	_, body = get(t, p, "/metrics")
	g.Expect(body).NotTo(ContainSubstring("parallelfs_chunks"), "counts that are not known yet are not told")
}

func TestMetricsOfAFilesystemThatNumbersItsTargets(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: backend.State{
		Servers: []backend.Server{
			{Role: v1alpha1.RoleMetadata, ID: 1, IP: "10.0.0.2", Port: 8016, Online: true},
			{Role: v1alpha1.RoleStorage, ID: 1, IP: "10.0.0.2", Port: 8032},
		},
		Targets: []backend.Target{
			{Role: v1alpha1.RoleMetadata, ID: 1, IP: "10.0.0.2", Port: 8016, Online: true, Consistency: "Good", CapacityPool: "Normal", CapacityBytes: 10, Inodes: 100, UsedInodes: 7},
			{Role: v1alpha1.RoleStorage, ID: 1, IP: "10.0.0.2", Port: 8032, Consistency: "Needs-resync", CapacityPool: "Emergency"},
			{Role: v1alpha1.RoleStorage, ID: 2, IP: "10.0.0.2", Port: 8032, Online: true},
		},
		License: &backend.License{},
	}}
	p := f.probe(t)
	p.turn(t.Context())
	_, body := get(t, p, "/metrics")
	g.Expect(samples(body)).To(ConsistOf(
		`parallelfs_up{L} 1`,
		`parallelfs_probe_duration_seconds{L} 0`,
		`parallelfs_probe_last_success_timestamp_seconds{L} 1.7952444e+09`,
		`parallelfs_server_online{address="10.0.0.2:8016",L,id="1",role="Metadata"} 1`,
		`parallelfs_server_online{address="10.0.0.2:8032",L,id="1",role="Storage"} 0`,
		`parallelfs_target_online{address="10.0.0.2:8016",L,id="1",role="Metadata"} 1`,
		`parallelfs_target_online{address="10.0.0.2:8032",L,id="1",role="Storage"} 0`,
		`parallelfs_target_online{address="10.0.0.2:8032",L,id="2",role="Storage"} 1`,
		`parallelfs_target_capacity_bytes{address="10.0.0.2:8016",L,id="1",role="Metadata"} 10`,
		`parallelfs_target_used_bytes{address="10.0.0.2:8016",L,id="1",role="Metadata"} 0`,
		`parallelfs_target_inodes{address="10.0.0.2:8016",L,id="1",role="Metadata"} 100`,
		`parallelfs_target_used_inodes{address="10.0.0.2:8016",L,id="1",role="Metadata"} 7`,
		`parallelfs_target_consistent{address="10.0.0.2:8016",L,id="1",role="Metadata"} 1`,
		`parallelfs_target_consistent{address="10.0.0.2:8032",L,id="1",role="Storage"} 0`,
		`parallelfs_target_capacity_pool{address="10.0.0.2:8016",L,id="1",pool="Normal",role="Metadata"} 1`,
		`parallelfs_target_capacity_pool{address="10.0.0.2:8032",L,id="1",pool="Emergency",role="Storage"} 1`,
		`parallelfs_license_valid{L} 0`,
	), "a filesystem that lists no mounts has no number of them")
	hasNoFault(t, body)
}

func TestOutput(t *testing.T) {
	for name, c := range map[string]struct {
		argv         []string
		want, reason string
	}{
		"is the command's standard output":      {argv: []string{"sh", "-c", "echo yes; echo no >&2"}, want: "yes\n"},
		"of a failure is its first complaint":   {argv: []string{"sh", "-c", "echo why >&2; echo more >&2; exit 3"}, reason: "sh failed with exit code 3: why"},
		"of a program that is not there":        {argv: []string{"no-such-program"}, reason: "can't run no-such-program"},
		"of no command is an error, not a stop": {reason: "empty command"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := output(t.Context(), c.argv, time.Minute)
			if c.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(Equal(c.want))
		})
	}
}

// forgiving is a filesystem that tolerates a known failure of the command about targets.
type forgiving struct {
	filesystem
	answers [][]byte
}

func (*forgiving) Limit(command int) time.Duration { return time.Duration(command) * time.Second }

func (*forgiving) Tolerates(command, code int, stderr string) bool {
	return command == 1 && (code == 3 && stderr == "no targets\n" || code == -1)
}

func (f *forgiving) Parse(outputs [][]byte) (backend.State, error) {
	f.answers = outputs
	return f.state, nil
}

func TestACommandThatFailsIsForgiven(t *testing.T) {
	for name, c := range map[string]struct {
		fails  map[string]error
		answer string
	}{
		"when the backend knows that way to fail": {
			fails: map[string]error{"targets": &failure{program: "ask", code: 3, stderr: "no targets\n"}}, answer: "targets",
		},
		"when its time was over": {fails: map[string]error{"targets": &failure{program: "ask", code: -1, limit: time.Second}}, answer: "targets"},
		"but not when it fails in another way": {
			fails: map[string]error{"targets": &failure{program: "ask", code: 3, stderr: "no management service\n"}},
		},
		"but not in the place of another command": {
			fails: map[string]error{"servers": &failure{program: "ask", code: 3, stderr: "no targets\n"}},
		},
		"but not when it could not be run": {fails: map[string]error{"targets": errors.New("can't run ask")}},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), &forgiving{filesystem: filesystem{state: someState()}}
			p := f.probe(t)
			p.prober = f
			limits := map[string]time.Duration{}
			p.ask = func(_ context.Context, argv []string, limit time.Duration) ([]byte, error) {
				limits[argv[1]] = limit
				return []byte(argv[1]), c.fails[argv[1]]
			}
			answer, err := asks(t, p, key)
			g.Expect(err).NotTo(HaveOccurred())
			if c.answer == "" {
				g.Expect(answer.State).To(BeNil())
				g.Expect(answer.Problem).To(HavePrefix("the filesystem at 10.0.0.1:9421 does not answer: "))
				return
			}
			g.Expect(answer.State).NotTo(BeNil())
			g.Expect(string(f.answers[1])).To(Equal(c.answer), "what it had printed is still read")
			g.Expect(limits).To(Equal(map[string]time.Duration{"servers": commandLimit, "targets": time.Second}))
		})
	}
}

// TestMain implements the verb by which the node binary runs a program of the node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.OnNode {
		_, _ = fmt.Fprintln(os.Stdout, "on the node:", strings.Join(os.Args[2:], " "))
		os.Exit(len(os.Args) - 3)
	}
	os.Exit(m.Run())
}

func TestAProbeOfANodeAsksTheNodesOwnPrograms(t *testing.T) {
	g := NewWithT(t)
	p, err := New(spec.Probe{IntervalSeconds: 5, KeyFile: "key", Host: true}, &filesystem{}, nil, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	got, err := p.ask(t.Context(), []string{"lctl"}, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal("on the node: lctl\n"))
	got, err = p.ask(t.Context(), []string{"lctl", "dl"}, time.Minute)
	g.Expect(err).To(MatchError(HavePrefix("lctl failed with exit code 1")), "the program of the node is named")
	g.Expect(string(got)).To(Equal("on the node: lctl dl\n"), "and what it had printed is kept")
	_, err = p.ask(t.Context(), nil, time.Minute)
	g.Expect(err).To(MatchError(ContainSubstring("empty command")))
}

func TestACommandThatIsStoppedHasPrintedWhatItHad(t *testing.T) {
	g := NewWithT(t)
	got, err := output(t.Context(), []string{"sh", "-c", "echo half; exec sleep 60"}, 5*time.Second)
	g.Expect(err).To(MatchError("sh did not answer within 5s"))
	g.Expect(string(got)).To(Equal("half\n"))
	got, err = output(t.Context(), []string{"sh", "-c", "echo some; echo why >&2; exit 3"}, time.Minute)
	g.Expect(err).To(Equal(&failure{program: "sh", code: 3, stderr: "why\n"}))
	g.Expect(string(got)).To(Equal("some\n"))
}

func TestRunServesUntilItIsStopped(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: someState()}
	p := f.probe(t)
	p.now = time.Now
	p.config.Listen = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for i := range 3 {
		_, err := answered(t, p, fmt.Sprintf("N%d", i), key)
		g.Expect(err).NotTo(HaveOccurred())
	}
	cancel()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
}

func TestAStoppedProbeDoesNotWaitForOpenQuestions(t *testing.T) {
	g, f := NewWithT(t), &filesystem{state: someState()}
	p := f.probe(t)
	p.now = time.Now
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	p.config.Listen = listener.Addr().String()
	g.Expect(listener.Close()).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	began, goOn := make(chan struct{}, 1), make(chan struct{})
	p.ask = func(context.Context, []string, time.Duration) ([]byte, error) {
		select {
		case began <- struct{}{}:
		default:
		}
		<-goOn // the filesystem is slow, and its daemon is being stopped too
		return nil, errors.New("the master does not answer")
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	g.Eventually(began).WithTimeout(patience.Bound(time.Minute)).Should(Receive())
	gone := make(chan error, 1)
	go func() {
		response, err := http.Get("http://" + p.config.Listen + "/state?nonce=N1")
		if err == nil {
			err = response.Body.Close()
		}
		gone <- err
	}()
	waiting := func() int {
		p.mutex.RLock()
		defer p.mutex.RUnlock()
		return p.next.unsigned + p.next.signed
	}
	g.Eventually(waiting).WithTimeout(patience.Bound(time.Minute)).Should(Equal(1))
	cancel()
	close(goOn)
	g.Eventually(ended).WithTimeout(patience.Bound(4*time.Second)).Should(Receive(BeNil()), "before the 5 s that it gives to answers under way are over")
	g.Eventually(gone).WithTimeout(patience.Bound(time.Minute)).Should(Receive())
}

func TestAnAddressThatCannotBeServedIsAnErrorThatNamesIt(t *testing.T) {
	g, f := NewWithT(t), &filesystem{}
	p := f.probe(t)
	p.config.Listen = "127.0.0.1:-1"
	g.Expect(p.Run(t.Context())).To(MatchError(ContainSubstring("can't serve on 127.0.0.1:-1")))
	_, err := New(spec.Probe{}, f, nil, slog.New(slog.DiscardHandler))
	g.Expect(err).To(MatchError(ContainSubstring("intervalSeconds is 0")))
	_, err = New(spec.Probe{IntervalSeconds: 5}, f, nil, slog.New(slog.DiscardHandler))
	g.Expect(err).To(MatchError(ContainSubstring("keyFile is empty")))
}
