package mounts

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	evictionsEvery = time.Minute
	// evictionsLimit is the limit of a query that the node's kernel answers by itself.
	evictionsLimit = 10 * time.Second
)

// evictions counts how often servers have evicted this client.
type evictions struct {
	argv    []string
	pattern *regexp.Regexp
	ask     func(ctx context.Context, argv []string) (format.Answer, error)
	// seen holds the count of each eviction in the last answer. It is nil before the first one: earlier evictions were counted by an earlier
	// process or not at all. Several servers may evict a client at the same moment.
	seen  map[string]int
	total int
}

// evictionsOf returns nil if nothing is to be counted.
func evictionsOf(m spec.Mount) (*evictions, error) {
	if m.Evictions == nil {
		return nil, nil //nolint:nilnil // no counter, and no error
	}
	pattern, err := regexp.Compile(m.Evictions.Pattern)
	if err != nil || len(m.Evictions.Argv) == 0 || !m.Host {
		return nil, fmt.Errorf("the spec does not say how evictions are counted (%q, %q); the operator and its node image must be of the same version",
			m.Evictions.Argv, m.Evictions.Pattern)
	}
	return &evictions{argv: m.Evictions.Argv, pattern: pattern, ask: host.Run}, nil
}

// look queries once, and returns the number of new evictions. Exit codes are ignored, because a client may have no server of some type.
func (e *evictions) look(ctx context.Context) (fresh int, err error) {
	ctx, cancel := context.WithTimeout(ctx, evictionsLimit)
	defer cancel()
	a, err := e.ask(ctx, e.argv)
	if err != nil {
		return 0, err
	}
	now := map[string]int{}
	for _, one := range e.pattern.FindAllString(a.Stdout, -1) {
		now[strings.TrimSpace(one)]++
	}
	for one, times := range now {
		if e.seen != nil {
			fresh += max(0, times-e.seen[one])
		}
	}
	e.seen, e.total = now, e.total+fresh
	return fresh, nil
}

// count repeats look until ctx ends, and logs new evictions.
func (e *evictions) count(ctx context.Context, path string, every time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	said := ""
	for {
		switch fresh, err := e.look(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			log.Warn("evictions are not counted", "path", path, "reason", err)
		case fresh > 0:
			log.Warn("servers have evicted this client: what programs had written and not synced may be lost, and what they had open fails; "+
				"look at the network, and at the load of the servers", "path", path, "evictions", fresh, "sinceTheStart", e.total)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
