package probe

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/limited"
	"parallelfs.dev/operator/internal/node/store"
)

// Handler serves /healthz, /readyz, /metrics and, if the filesystem has a store, /store. It also serves GET /state?nonce=…, which returns a
// signed exchange.Answer in CBOR to a query that starts after the request. /readyz and /metrics use the last answer.
func (p *Probe) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{p})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", p.serveState)
	if p.config.Store != nil {
		mux.HandleFunc("GET "+store.Path, p.serveStore)
	}
	mux.HandleFunc("GET /healthz", p.serveHealth)
	mux.HandleFunc("GET /readyz", p.serveReady)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

// serveState answers a request with a fresh query. If the filesystem does not answer, this is signed as well, so that no other program can
// forge it.
func (p *Probe) serveState(w http.ResponseWriter, r *http.Request) {
	answer := exchange.Answer{Nonce: r.URL.Query().Get(exchange.NonceParameter), FileSystemUID: p.config.FileSystem.UID}
	if !exchange.IsNonce(answer.Nonce) {
		http.Error(w, "ask with /state?"+exchange.NonceParameter+"=…, up to 64 letters and digits that the answer repeats", http.StatusBadRequest)
		return
	}
	key, err := p.key()
	if err != nil {
		p.refuse(w, err)
		return
	}
	signed := exchange.IsSignedQuestion(key, answer.Nonce, r.Header.Get(exchange.QuestionHeader))
	if signed {
		release := limited.Hold(r.Context())
		defer release()
	}
	state, err := p.askAnew(r.Context(), signed)
	switch {
	case errors.Is(err, errTooMany) || r.Context().Err() != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	case err != nil:
		answer.Problem = fmt.Sprintf("the filesystem at %s does not answer: %s", p.config.Address, err)
	default:
		answer.State = &state
	}
	// The kubelet may have updated the key in the meantime.
	if key, err = p.key(); err != nil {
		p.refuse(w, err)
		return
	}
	body, signature, err := answer.Sign(key)
	if err != nil {
		p.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", exchange.AnswerType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set(exchange.SignatureHeader, signature)
	_, _ = w.Write(body) // the client is gone; nothing to do
}

// refuse reports an answer that can't be signed.
func (p *Probe) refuse(w http.ResponseWriter, err error) {
	p.log.Warn("an answer can't be signed", "error", err)
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// serveHealth distinguishes a stuck probe from a probe whose filesystem is down, which is no reason for a restart.
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
