package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/limited"
)

const (
	// mostSamples bounds the samples in an answer; its summaries cover all of them.
	mostSamples = 600
	// atOnce bounds the requests that are answered concurrently, because a storage server has other work.
	atOnce = 2
	// bindAgain is the time until a failed listen is tried again.
	bindAgain = 30 * time.Second

	readLimit, writeLimit, idleLimit = 5 * time.Second, 30 * time.Second, 2 * time.Minute
	mostHeader                       = 8 << 10
)

// Handler serves GET /telemetry and GET /metrics (Prometheus). Everything is read-only and nothing is secret: names of filesystems, targets
// and daemons of this node, and counters.
//
// /telemetry answers with a telemetry.Answer in JSON for ?from= and &to= (RFC 3339, both required). &fileSystem=NAMESPACE/NAME restricts
// the answer to one filesystem, and removes its name from the names of disks and daemons. &samples=N adds at most N samples (600 at most).
// /metrics also has the metrics of more.
func (s *Sampler) Handler(node string, more ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(more, collector{s})...)
	slots := make(chan struct{}, atOnce)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /telemetry", func(w http.ResponseWriter, request *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "the agent answers others; ask again", http.StatusServiceUnavailable)
			return
		}
		answer, err := s.answer(node, request.URL.Query(), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client is gone; nothing to do
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: atOnce, Timeout: readLimit}))
	return mux
}

func (s *Sampler) answer(node string, question url.Values, now time.Time) (telemetry.Answer, error) {
	moment := func(name string) (time.Time, error) {
		at, err := time.Parse(time.RFC3339, question.Get(name))
		if err != nil {
			return at, fmt.Errorf("%s=%q is no time such as 2026-03-01T12:00:00Z", name, question.Get(name))
		}
		return at, nil
	}
	from, err := moment("from")
	if err != nil {
		return telemetry.Answer{}, err
	}
	to, err := moment("to")
	if err != nil {
		return telemetry.Answer{}, err
	}
	if !from.Before(to) {
		return telemetry.Answer{}, errors.New("from= must be before to=")
	}
	count := 0
	if text := question.Get("samples"); text != "" {
		if count, err = strconv.Atoi(text); err != nil || count < 0 || count > mostSamples {
			return telemetry.Answer{}, fmt.Errorf("samples=%q is no number from 0 to %d", text, mostSamples)
		}
	}
	prefix := question.Get("fileSystem")
	if prefix != "" {
		prefix = strings.TrimSuffix(prefix, "/") + "/"
	}
	records := s.kept.since(from, to)
	answer := telemetry.Answer{Node: node, Time: now, Summaries: telemetry.Summarize(node, samples(records, prefix), from, to)}
	for sample := range samples(spread(records, count), prefix) {
		answer.Samples = append(answer.Samples, sample)
	}
	return answer, nil
}

// Serve serves a handler until ctx ends. A failed listen is tried again and reported.
func Serve(ctx context.Context, address string, handler http.Handler, report func(error)) {
	for ctx.Err() == nil {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", address)
		if err == nil {
			err = serveOn(ctx, listener, handler)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		report(fmt.Errorf("telemetry can't be served on %s: %w", address, err))
		select {
		case <-ctx.Done():
		case <-time.After(bindAgain):
		}
	}
}

func serveOn(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit, MaxHeaderBytes: mostHeader,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(limited.New(listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
