package probe

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/limited"
	"parallelfs.dev/operator/internal/node/store"
)

// serveStore serves the files of the metadata that the daemon in the same pod keeps. It adds the filesystem's own answer to a query that
// ran before the files were read.
func (p *Probe) serveStore(w http.ResponseWriter, r *http.Request) {
	nonce := r.URL.Query().Get(exchange.NonceParameter)
	secret, err := os.ReadFile(p.config.Store.SecretFile)
	if err != nil {
		p.refuse(w, fmt.Errorf("read the filesystem's secret: %w", err))
		return
	}
	if err := store.Proven(secret, nonce, r.Header.Get(store.ProofHeader)); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	release := limited.Hold(r.Context())
	defer release()
	if !p.handsOut.TryLock() {
		http.Error(w, "the store is handed out to somebody else", http.StatusServiceUnavailable)
		return
	}
	defer p.handsOut.Unlock()
	body, err := p.packed(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(storeLimit)) // the default is meant for small answers
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set(exchange.SignatureHeader, store.Signature(secret, nonce, body))
	_, _ = w.Write(body) // #nosec G705 -- it is an archive and no page; when the client has gone, nothing is to be done for it
}

// storeLimit is the time in which a client must have received a store.
const storeLimit = 5 * time.Minute

func (p *Probe) packed(r *http.Request) ([]byte, error) {
	said, err := p.askAnew(r.Context(), true)
	if err != nil {
		return nil, fmt.Errorf("the filesystem at %s does not answer: %w", p.config.Address, err)
	}
	files, err := p.files(r.Context())
	if err != nil {
		return nil, err
	}
	return store.Pack(files, said) //nolint:wrapcheck // the error describes the request
}

// files returns the files of the store: from the directory of the daemon in the same pod, or copied by the node's own programs.
func (p *Probe) files(ctx context.Context) (map[string][]byte, error) {
	if copier, is := p.prober.(backend.StoreCopier); is {
		run := func(argv ...string) ([]byte, error) { return p.ask(ctx, argv, commandLimit) }
		return copier.CopyStore(run, copiesOn+p.config.FileSystem.UID) //nolint:wrapcheck // the error describes the request
	}
	directory, err := store.Directory(*p.config.Store, p.config.FileSystem)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error describes the request
	}
	return store.Copy(ctx, directory, p.work, p.database, p.config.Store.Skip) //nolint:wrapcheck // the error describes the request
}

// copiesOn is the path prefix of the directory in memory to which the programs of a node copy a store.
const copiesOn = "/run/parallelfs-store-"
