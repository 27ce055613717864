package mounts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/spec"
)

// states returns the output of lctl get_param for a client's connection (2.17.57), with more entries in its history.
func states(more string) string {
	return "mdc.pfs-MDT0000-mdc-ff223342a1e98000.state=\ncurrent_state: FULL\nstate_history:\n - [ 1795345355, FULL ]\n - [ 1795345432, DISCONN ]\n" + more
}

const evictedOnce = " - [ 1795345432, CONNECTING ]\n - [ 1795345432, EVICTED ]\n - [ 1795345432, RECOVER ]\n - [ 1795345432, FULL ]\n"

// counter counts the evictions in the client's answers, one after the other.
func counter(t *testing.T, says *string, fails *error) *evictions {
	t.Helper()
	e, err := evictionsOf(spec.Mount{Host: true, Evictions: &spec.Evictions{Argv: []string{"lctl"}, Pattern: `(?m)^ - \[ \d+, EVICTED \]$`}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	e.ask = func(context.Context, []string) (format.Answer, error) {
		return format.Answer{Code: 2, Stdout: *says}, *fails
	}
	return e
}

func TestEachEvictionCountsOnce(t *testing.T) {
	g := NewWithT(t)
	says, fails := states(evictedOnce), error(nil)
	e := counter(t, &says, &fails)
	for _, c := range []struct {
		says  string
		fresh int
		why   string
	}{
		{states(evictedOnce), 0, "it was before this process"},
		{states(evictedOnce), 0, "it is the same one"},
		{states(evictedOnce) + states(evictedOnce), 1, "another server has done so at the same moment"},
		{states(" - [ 1795345500, EVICTED ]\n"), 1, "a later one, and the history has forgotten the first"},
		{states(""), 0, "the history has forgotten all"},
	} {
		says = c.says
		g.Expect(e.look(t.Context())).To(Equal(c.fresh), c.why)
	}
	g.Expect(e.total).To(Equal(2))
	fails = errors.New("the node has no lctl")
	_, err := e.look(t.Context())
	g.Expect(err).To(MatchError("the node has no lctl"))
}

func TestEvictionsAreReported(t *testing.T) {
	g := NewWithT(t)
	says, fails := states(""), error(nil)
	e := counter(t, &says, &fails)
	ask, asked, enough := e.ask, 0, make(chan struct{})
	e.ask = func(ctx context.Context, argv []string) (format.Answer, error) {
		switch asked++; asked {
		case 3:
			says = states(evictedOnce)
		case 6:
			close(enough)
		}
		return ask(ctx, argv)
	}
	ctx, cancel := context.WithCancel(t.Context())
	log := &bytes.Buffer{}
	ended := make(chan struct{})
	go func() {
		e.count(ctx, "/mnt/scratch", time.Millisecond, slog.New(slog.NewTextHandler(log, nil)))
		close(ended)
	}()
	<-enough
	cancel()
	<-ended
	g.Expect(bytes.Count(log.Bytes(), []byte("servers have evicted this client"))).To(Equal(1), log.String())
	g.Expect(log.String()).To(ContainSubstring("sinceTheStart=1"))
}

func TestAMountThatDoesNotSayHowEvictionsAreCountedIsRefused(t *testing.T) {
	for name, m := range map[string]spec.Mount{
		"no command":      {Host: true, Evictions: &spec.Evictions{Pattern: "x"}},
		"no pattern":      {Host: true, Evictions: &spec.Evictions{Argv: []string{"lctl"}, Pattern: "("}},
		"not on the node": {Evictions: &spec.Evictions{Argv: []string{"lctl"}, Pattern: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evictionsOf(m)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("how evictions are counted")))
		})
	}
	e, err := evictionsOf(spec.Mount{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(e).To(BeNil())
}
