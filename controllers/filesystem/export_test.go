package filesystem

import (
	"net/http"

	"parallelfs.dev/operator/internal/backend"
)

// ProbeDouble plays the probe of a filesystem: it answers every question, and signs what it says as a real one does.
type ProbeDouble struct {
	// UID of the FileSystem, and Key that answers are signed with.
	UID, Key string
	// Ask asks the filesystem.
	Ask func() (*backend.State, error)
}

// ServeHTTP implements http.Handler.
func (p ProbeDouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := backend.Answer{Nonce: r.URL.Query().Get(backend.NonceParameter), FileSystemUID: p.UID}
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
	w.Header().Set(backend.SignatureHeader, signature)
	_, _ = w.Write(body) // who asked has gone
}
