package filesystem

import (
	"net/http"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
)

// ProbeDouble simulates the probe of a filesystem: it answers every question, and signs its answers as a real probe does.
type ProbeDouble struct {
	// UID is that of the FileSystem, and Key the signing key.
	UID, Key string
	// Ask queries the filesystem.
	Ask func() (*backend.State, error)
}

// ServeHTTP implements http.Handler.
func (p ProbeDouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := exchange.Answer{Nonce: r.URL.Query().Get(exchange.NonceParameter), FileSystemUID: p.UID}
	state, err := p.Ask()
	if err != nil {
		answer.Problem = err.Error()
	} else {
		answer.State = state
	}
	body, signature, err := answer.Sign([]byte(p.Key))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set(exchange.SignatureHeader, signature)
	_, _ = w.Write(body) // the client is gone
}
