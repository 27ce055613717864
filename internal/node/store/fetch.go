package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend/shared/exchange"
)

const (
	// Path is the URL path at which the probe serves a store.
	Path = "/store"
	// ProofHeader is the header of a request that proves knowledge of the secret.
	ProofHeader = "Parallelfs-Proof"
	// fetchLimit bounds the time of a response: the filesystem is queried first, and its files may change for a while.
	fetchLimit = 3 * time.Minute
)

// ErrNotProven means that the client does not have the secret.
var ErrNotProven = errors.New("this is handed out to who proves that he knows the filesystem's secret")

// sum is the HMAC-SHA256 (RFC 2104) of a text with the secret, in hexadecimal. A request and a response are never the same text.
func sum(secret []byte, kind, nonce string, body []byte) string {
	h := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(h, "%s %s\n", kind, nonce)
	_, _ = h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// Proven returns nil if the request with this nonce was signed with the secret.
func Proven(secret []byte, nonce, proof string) error {
	if len(secret) == 0 || !exchange.IsNonce(nonce) || !hmac.Equal([]byte(proof), []byte(sum(secret, "question", nonce, nil))) {
		return ErrNotProven
	}
	return nil
}

// Signature proves that the body answers the request with this nonce.
func Signature(secret []byte, nonce string, body []byte) string {
	return sum(secret, "answer", nonce, body)
}

// Fetch requests the packed store from the probe at an address. The result was signed with the secret, and is the response to this request.
func Fetch(ctx context.Context, client *http.Client, address string, secret []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	nonce := rand.Text()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+Path+"?"+exchange.NonceParameter+"="+nonce, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for the store: %w", err)
	}
	request.Header.Set(ProofHeader, sum(secret, "question", nonce, nil))
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for the store: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 2*mostBytes))
	if err != nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("the probe at %s hands out no store: its pod is older than this operator, and a newer one comes with its next restart", address)
	}
	if response.StatusCode != http.StatusOK {
		const most = 300
		return nil, fmt.Errorf("the probe at %s does not hand out the store (%s): %s", address, response.Status,
			strings.TrimSpace(string(body[:min(most, len(body))])))
	}
	if len(secret) == 0 || !hmac.Equal([]byte(response.Header.Get(exchange.SignatureHeader)), []byte(Signature(secret, nonce, body))) {
		return nil, fmt.Errorf("what the probe at %s hands out as the store is not signed with this filesystem's secret", address)
	}
	return body, nil
}
