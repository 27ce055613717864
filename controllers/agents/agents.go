// Package agents queries the agents on the nodes of a FileSystem's servers. By HTTP it reads the load of disks and daemons, and by an
// annotation of the NodeInventory it requests that the kernel's caches are dropped.
package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/limited"
)

// +kubebuilder:rbac:groups=parallelfs.dev,resources=nodeinventories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

const (
	// atOnce is how many agents are queried at once.
	atOnce = 32
	// mostAsked is how many agents are queried, and mostKept how many Summaries of their answers are kept. With more servers, a record would
	// grow with the filesystem, and the queries would take longer than the interval between them.
	mostAsked, mostKept = 256, 32
	// mostAnswer bounds an answer, in bytes: the summaries of a thousand targets and daemons need less than half of it.
	mostAnswer = 1 << 20
	// mostSkew is how far the clock of a node may be from the manager's: with more, the figures would belong to another time than the point.
	mostSkew = 3 * time.Second
)

// Reader reads telemetry from agents.
type Reader struct {
	// Nodes reads the nodes, for their addresses; a cache is enough.
	Nodes client.Reader
	// Port of the agents; with 0, no agent is queried.
	Port int
	// HTTP is the client, with its time limit for one agent.
	HTTP *http.Client
	// Now is the manager's clock.
	Now func() time.Time
}

// NewReader returns a reader that gives each agent the time limit to answer, and goes through no proxy: agents listen on the nodes.
func NewReader(nodes client.Reader, port int, limit time.Duration) *Reader {
	return &Reader{Nodes: nodes, Port: port, Now: time.Now, HTTP: &http.Client{Timeout: limit, Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: limit}).DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}}}
}

// Telemetry returns the load of a FileSystem's disks and daemons between two times on these nodes, sorted by node, disks, then daemons. For
// an agent that does not answer, there is one Summary with a Problem; so it never fails as a whole. With more than 256 nodes, it queries
// 256, evenly spread, and adds a note. The result has at most 32 Summaries (telemetry.Bound). Without a Port it is empty.
func (r *Reader) Telemetry(ctx context.Context, fs client.ObjectKey, nodes []string, from, to time.Time) []telemetry.Summary {
	if r.Port == 0 {
		return nil
	}
	nodes, left := spread(nodes, mostAsked)
	answers := make([][]telemetry.Summary, len(nodes))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			found, err := r.ask(ctx, node, fs.String(), from, to)
			if err != nil {
				found = []telemetry.Summary{{Node: node, Problem: err.Error()}}
			}
			answers[i] = found
		})
	}
	all.Wait()
	out := slices.Concat(answers...)
	if left > 0 {
		out = slices.Insert(out, 0, telemetry.Summary{
			Node: fmt.Sprintf("%d more nodes", left), Problem: fmt.Sprintf("at most %d are asked", mostAsked),
		})
	}
	return telemetry.Bound(out, mostKept)
}

// spread selects at most so many of the nodes, at even distances, and returns how many are left.
func spread(nodes []string, most int) (chosen []string, left int) {
	if len(nodes) <= most {
		return nodes, 0
	}
	for i := range most {
		chosen = append(chosen, nodes[i*len(nodes)/most])
	}
	return chosen, len(nodes) - most
}

// ask queries the agent of one node. An error is a sentence without the parts that differ between queries.
func (r *Reader) ask(ctx context.Context, node, fileSystem string, from, to time.Time) ([]telemetry.Summary, error) {
	address, err := r.address(ctx, node)
	if err != nil {
		return nil, err
	}
	question := url.URL{
		Scheme: "http", Host: net.JoinHostPort(address, strconv.Itoa(r.Port)), Path: "/telemetry",
		RawQuery: url.Values{
			"from": {from.UTC().Format(time.RFC3339Nano)}, "to": {to.UTC().Format(time.RFC3339Nano)}, "fileSystem": {fileSystem},
		}.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	asked := r.Now()
	response, err := limited.Ask(r.HTTP, request)
	if err != nil {
		return nil, r.silent(question.Host, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return nil, r.silent(question.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its agent reports: %s", v1alpha1.Cut(strings.TrimSpace(string(body)), 256))
	}
	var answer telemetry.Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("what answers at %s is not an agent of this version: %w", question.Host, err)
	}
	switch early, late := asked.Sub(answer.Time), answer.Time.Sub(r.Now()); {
	case answer.Node != node:
		return nil, fmt.Errorf("at %s the agent of another node answers: %s", question.Host, answer.Node)
	case early > mostSkew:
		return nil, fmt.Errorf("its clock is %s behind that of the operator; set the clocks of all nodes by one source (NTP)", early.Round(time.Second))
	case late > mostSkew:
		return nil, fmt.Errorf("its clock is %s before that of the operator; set the clocks of all nodes by one source (NTP)", late.Round(time.Second))
	case len(answer.Summaries) == 0:
		return nil, errors.New("its agent has no samples of that time: it was started later, or sees none of this filesystem's disks and daemons")
	}
	return answer.Summaries, nil
}

// silent returns why an agent did not answer. It drops the outer layers of an error: they hold the time span and the port of the
// connection.
func (r *Reader) silent(host string, err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("its agent does not answer at %s in %s; a NetworkPolicy or firewall may be in between", host, r.HTTP.Timeout)
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return fmt.Errorf("no agent answers at %s: %w; an agent runs on each node with the label %s", host, err, v1alpha1.LabelAgent)
}

// address is the InternalIP of a node: agents have the network of their nodes.
func (r *Reader) address(ctx context.Context, name string) (string, error) {
	node := &corev1.Node{}
	if err := r.Nodes.Get(ctx, client.ObjectKey{Name: name}, node); apierrors.IsNotFound(err) {
		return "", errors.New("it is not in the cluster")
	} else if err != nil {
		return "", fmt.Errorf("read the node: %w", err)
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address, nil
		}
	}
	return "", errors.New("it has no InternalIP")
}
