package filesystem

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/limited"
)

// Question is a question to a filesystem's probe.
type Question struct {
	// URL is the address of the probe, without a nonce.
	URL string
	// FileSystemUID is the uid of the FileSystem.
	FileSystemUID string
	// Key is the signing key of the probe; Secret names its source, for sentences.
	Key, Secret string
}

// HTTPStateReader queries probes over HTTP. It accepts only answers to its own question that are signed with the filesystem's secret.
type HTTPStateReader struct {
	Client *http.Client
}

const (
	// maxState bounds an answer, in bytes: a thousand chunkservers with 32 targets each fit.
	maxState = 16 << 20
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 16 << 10
	// dialLimit is how long a connection may take. A short limit detects a node that is down early; the answer of the filesystem takes longer.
	dialLimit = 3 * time.Second
)

// NewHTTPStateReader returns a reader whose timeout covers the query and the answer of a probe. It uses no proxy and follows no redirect,
// because probes listen on the nodes. Each question has a connection of its own, because an open connection to a node that died would take
// the whole timeout.
func NewHTTPStateReader(timeout time.Duration) *HTTPStateReader {
	return &HTTPStateReader{Client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: min(timeout, dialLimit)}).DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders,
		},
	}}
}

// State implements StateReader.
func (h *HTTPStateReader) State(ctx context.Context, q Question) (*backend.State, error) {
	where, err := url.Parse(q.URL)
	if err != nil {
		return nil, fmt.Errorf("ask the probe: %w", err)
	}
	nonce := rand.Text()
	where.RawQuery = url.Values{exchange.NonceParameter: {nonce}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask the probe at %s: %w", where.Host, err)
	}
	request.Header.Set(exchange.QuestionHeader, exchange.SignQuestion([]byte(q.Key), nonce))
	response, err := limited.Ask(h.Client, request)
	if err != nil {
		timeout, isNet := errors.AsType[net.Error](err)
		dial, isOp := errors.AsType[*net.OpError](err)
		if connected := !isOp || dial.Op != "dial"; connected && isNet && timeout.Timeout() {
			return nil, fmt.Errorf("the probe at %s does not answer in %s", where.Host, h.Client.Timeout)
		}
		return nil, fmt.Errorf("the probe at %s can't be reached: %w; check that the operator's pods can reach that address", where.Host, rootCause(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("what listens on %s answers with HTTP status %d; if it is the probe, its log shows why", where.Host, response.StatusCode)
	}
	// An answer for thousands of targets has megabytes, which a growing buffer would copy again and again.
	var body bytes.Buffer
	body.Grow(int(max(0, min(response.ContentLength, maxState))) + bytes.MinRead)
	_, err = body.ReadFrom(io.LimitReader(response.Body, maxState+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the probe's answer from %s: %w", where.Host, rootCause(err))
	case body.Len() > maxState:
		return nil, fmt.Errorf("the answer from %s is larger than %d MiB, so it is not a probe's; %s", where.Host, maxState>>20, lookAt(where))
	}
	answer, err := exchange.ReadAnswer(body.Bytes(), response.Header.Get(exchange.SignatureHeader), []byte(q.Key), nonce, q.FileSystemUID)
	switch {
	case errors.Is(err, exchange.ErrUnsigned):
		return nil, fmt.Errorf("the answer from %s is not signed with this filesystem's secret: either another program listens there, such as the probe of an "+
			"earlier FileSystem, or Secret %s is new and has not reached the probe yet, which takes up to a minute; %s", where.Host, q.Secret, lookAt(where))
	case errors.Is(err, exchange.ErrReplayed):
		return nil, fmt.Errorf("the answer from %s was given to an earlier question: a program between the operator and the probe repeats old answers; %s",
			where.Host, lookAt(where))
	case errors.Is(err, exchange.ErrOtherFileSystem):
		// The members and the initialization in this answer are those of another filesystem.
		return nil, fmt.Errorf("the probe at %s belongs to another FileSystem (uid %q), which was deleted or orphaned and whose daemons still run; "+
			"stop them, and wait until their pods are gone", where.Host, v1alpha1.Cut(answer.FileSystemUID, maxSaid))
	case err != nil:
		return nil, fmt.Errorf("the answer from %s: %w", where.Host, err)
	case answer.State == nil:
		return nil, fmt.Errorf("the probe reports: %s", lastLine(answer.Problem))
	}
	return answer.State, nil
}

// lookAt describes how a person finds out which program answers.
func lookAt(where *url.URL) string {
	return fmt.Sprintf("find out which program it is, on the node: ss -lntp 'sport = :%s'", where.Port())
}

// rootCause drops the outer layers, which contain the source port of the connection. The port differs each time, so every pass over an
// absent probe would change the status.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
