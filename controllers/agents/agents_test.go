package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/controllers/agents"
	"parallelfs.dev/operator/internal/node/limited"
)

var (
	from = time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	to   = from.Add(time.Minute)
	now  = to.Add(time.Second)
)

func cluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(corev1.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.NodeInventory{}).Build()
}

func node(name, address string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
	}}
}

// scratch is the FileSystem that is asked for.
var scratch = client.ObjectKey{Namespace: "storage", Name: "scratch"}

// agent serves what an agent would, and keeps what it was asked.
func agent(t *testing.T, asked *url.URL, serve http.HandlerFunc) (address string, port int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked != nil {
			*asked = *r.URL
		}
		serve(w, r)
	}))
	t.Cleanup(server.Close)
	address, text, err := net.SplitHostPort(server.Listener.Addr().String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	port, err = strconv.Atoi(text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return address, port
}

func says(answer telemetry.Answer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(answer) }
}

func reader(c client.Reader, port int) *agents.Reader {
	r := agents.NewReader(c, port, time.Minute)
	r.Now = func() time.Time { return now }
	return r
}

func TestTheAgentOfEachNodeIsAskedForTheFilesystemAndTheTime(t *testing.T) {
	g := NewWithT(t)
	figures := []telemetry.Summary{{Node: "oss1", Target: "scratch-ssd-1", Seconds: 60, Utilization: 0.37}}
	var asked url.URL
	address, port := agent(t, &asked, says(telemetry.Answer{Node: "oss1", Time: now, Summaries: figures}))
	found := reader(cluster(t, node("oss1", address)), port).Telemetry(t.Context(), scratch, []string{"oss1"}, from, to)
	g.Expect(found).To(Equal(figures))
	g.Expect(asked.Path).To(Equal("/telemetry"))
	g.Expect(asked.Query()).To(Equal(url.Values{
		"from": {"2026-03-01T12:00:00.5Z"}, "to": {"2026-03-01T12:01:00.5Z"}, "fileSystem": {"storage/scratch"},
	}))
}

func TestWhyThereAreNoFigures(t *testing.T) {
	figures := []telemetry.Summary{{Node: "oss1", Target: "scratch-ssd-1"}}
	cases := map[string]struct {
		serve http.HandlerFunc
		says  string
	}{
		"the agent refuses": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "ask again", http.StatusServiceUnavailable)
			}, says: "its agent reports: ask again",
		},
		"something else answers": {
			serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, says: "not an agent of this version",
		},
		"another node answers": {
			serve: says(telemetry.Answer{Node: "oss2", Time: now, Summaries: figures}), says: "the agent of another node answers: oss2",
		},
		"its clock is behind": {
			serve: says(telemetry.Answer{Node: "oss1", Time: now.Add(-10 * time.Second), Summaries: figures}), says: "its clock is 10s behind",
		},
		"its clock is before": {
			serve: says(telemetry.Answer{Node: "oss1", Time: now.Add(time.Hour), Summaries: figures}), says: "its clock is 1h0m0s before",
		},
		"it has no samples": {
			serve: says(telemetry.Answer{Node: "oss1", Time: now}), says: "no samples of that time",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			address, port := agent(t, nil, c.serve)
			found := reader(cluster(t, node("oss1", address)), port).Telemetry(t.Context(), scratch, []string{"oss1"}, from, to)
			NewWithT(t).Expect(found).To(HaveExactElements(And(HaveField("Node", "oss1"), HaveField("Problem", ContainSubstring(c.says)))))
		})
	}
}

func TestASilentNodeDoesNotHideTheOthers(t *testing.T) {
	g := NewWithT(t)
	figures := []telemetry.Summary{{Node: "oss2", Target: "scratch-ssd-2"}}
	address, port := agent(t, nil, says(telemetry.Answer{Node: "oss2", Time: now, Summaries: figures}))
	c := cluster(t, node("oss1", "127.0.0.77"), node("oss2", address), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "oss4"}})
	found := reader(c, port).Telemetry(t.Context(), scratch, []string{"oss1", "oss2", "oss3", "oss4"}, from, to)
	g.Expect(found).To(HaveExactElements(
		And(HaveField("Node", "oss1"), HaveField("Problem", ContainSubstring("connection refused; an agent runs on each node with the label parallelfs.dev/agent"))),
		HaveField("Target", "scratch-ssd-2"),
		And(HaveField("Node", "oss3"), HaveField("Problem", "it is not in the cluster")),
		And(HaveField("Node", "oss4"), HaveField("Problem", "it has no InternalIP"))))
}

func TestAHangingAgentIsAbandoned(t *testing.T) {
	address, port := agent(t, nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	r := agents.NewReader(cluster(t, node("oss1", address)), port, 50*time.Millisecond)
	found := r.Telemetry(t.Context(), scratch, []string{"oss1"}, from, to)
	NewWithT(t).Expect(found).To(HaveExactElements(HaveField("Problem", ContainSubstring("does not answer"))))
}

func TestAnAgentIsNotQueriedWithoutAPort(t *testing.T) {
	NewWithT(t).Expect(reader(cluster(t), 0).Telemetry(t.Context(), scratch, []string{"oss1"}, from, to)).To(BeEmpty())
}

func inventory(name string, done *v1alpha1.DroppedCaches) *v1alpha1.NodeInventory {
	return &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.NodeInventoryStatus{DroppedCaches: done}}
}

func TestEveryAgentIsAskedToDropCachesOnce(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, inventory("oss1", nil), inventory("oss2", nil))
	g.Expect(agents.AskToDropCaches(t.Context(), c, []string{"oss1", "oss2"}, "run/1")).To(Succeed())
	versions := map[string]string{}
	for _, name := range []string{"oss1", "oss2"} {
		live := &v1alpha1.NodeInventory{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, live)).To(Succeed())
		g.Expect(live.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationDropCaches, "run/1"))
		versions[name] = live.ResourceVersion
	}
	g.Expect(agents.AskToDropCaches(t.Context(), c, []string{"oss1", "oss2"}, "run/1")).To(Succeed())
	for name, version := range versions {
		live := &v1alpha1.NodeInventory{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, live)).To(Succeed())
		g.Expect(live.ResourceVersion).To(Equal(version), "asking again writes nothing")
	}
}

func TestCachesAreNotDroppedIfANodeHasNoAgent(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, inventory("oss1", nil))
	g.Expect(agents.AskToDropCaches(t.Context(), c, []string{"oss1", "client1"}, "run/1")).To(MatchError(ContainSubstring("kubectl label node client1 parallelfs.dev/agent=")))
	live := &v1alpha1.NodeInventory{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "oss1"}, live)).To(Succeed())
	g.Expect(live.Annotations).To(BeEmpty())
}

func TestWhichNodesHaveDroppedCaches(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t,
		inventory("done", &v1alpha1.DroppedCaches{Request: "run/2"}), inventory("behind", &v1alpha1.DroppedCaches{Request: "run/1", Error: "of another time"}),
		inventory("never", nil), inventory("failed", &v1alpha1.DroppedCaches{Request: "run/2", Error: "read-only file system"}))
	waiting, err := agents.DroppedCaches(t.Context(), c, []string{"done", "behind", "never"}, "run/2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(waiting).To(Equal([]string{"behind", "never"}))
	_, err = agents.DroppedCaches(t.Context(), c, []string{"done", "failed"}, "run/2")
	g.Expect(err).To(MatchError("node failed could not drop its caches: read-only file system"))
}

func TestSomeOfAThousandServersAreQueriedAndLittleIsKept(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	var nodes []string
	var objects []client.Object
	address, port := agent(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "broken", http.StatusInternalServerError)
	})
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf("oss%04d", i))
		objects = append(objects, node(nodes[i], address))
	}
	found := reader(cluster(t, objects...), port).Telemetry(t.Context(), scratch, nodes, from, to)
	g.Expect(asked.Load()).To(BeEquivalentTo(256))
	g.Expect(len(found)).To(BeNumerically("<=", 32))
	g.Expect(found[0]).To(Equal(telemetry.Summary{Node: "744 more nodes", Problem: "at most 256 are asked"}))
	g.Expect(found[len(found)-1].Node).To(Equal("250 more nodes"))
}

func TestAThousandConnectionsThatAreOpenedAgainKeepNoQuestionFromAnAgent(t *testing.T) {
	g := NewWithT(t)
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	serves := says(telemetry.Answer{Node: "n1", Time: now, Summaries: []telemetry.Summary{{Node: "n1", Target: "ssd-1"}}})
	server := &http.Server{Handler: serves, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(limited.New(inner)) }()
	t.Cleanup(func() { _ = server.Close() })
	address, text, err := net.SplitHostPort(inner.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(text)
	g.Expect(err).NotTo(HaveOccurred())
	flood(t, inner.Addr().String(), 1000)
	r := reader(cluster(t, node("n1", address)), port)
	for range 20 {
		g.Expect(r.Telemetry(t.Context(), scratch, []string{"n1"}, from, to)).To(HaveExactElements(HaveField("Target", "ssd-1")))
	}
}

// flood opens so many connections from forty other addresses, and opens one in ten again, whenever it is closed, while the test lasts.
func flood(t *testing.T, address string, connections int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all, opened sync.WaitGroup
	opened.Add(connections)
	for i := range connections {
		all.Go(func() {
			for first := true; first || i%10 == 0 && ctx.Err() == nil; first = false {
				from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%40))}
				connection, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", address)
				if first {
					opened.Done()
				}
				if err != nil {
					return
				}
				end := context.AfterFunc(ctx, func() { _ = connection.Close() })
				_, _ = connection.Read(make([]byte, 1)) // until the listener closes it
				end()
				_ = connection.Close()
			}
		})
	}
	t.Cleanup(func() { stop(); all.Wait() })
	opened.Wait()
}
