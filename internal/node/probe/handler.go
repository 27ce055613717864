package probe

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves GET /state (JSON of backend.State, or 503 and a sentence), /healthz, /readyz and /metrics.
func (p *Probe) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{p})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", p.serveState)
	mux.HandleFunc("GET /healthz", p.serveHealth)
	mux.HandleFunc("GET /readyz", p.serveReady)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

func (p *Probe) serveState(w http.ResponseWriter, _ *http.Request) {
	state, why := p.fresh(p.snapshot())
	if state == nil {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	body, err := json.Marshal(state)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client has gone; nothing is to be done for it
}

// serveHealth tells a probe that is stuck from one whose filesystem is down, which is no reason to restart the probe.
func (p *Probe) serveHealth(w http.ResponseWriter, _ *http.Request) {
	longestTurn := time.Duration(len(p.prober.Commands())+1) * commandLimit
	if p.now().Sub(p.snapshot().turned) > p.freshness()+longestTurn {
		http.Error(w, "the loop that asks the filesystem is stuck", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

func (p *Probe) serveReady(w http.ResponseWriter, _ *http.Request) {
	if state, why := p.fresh(p.snapshot()); state == nil {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}
