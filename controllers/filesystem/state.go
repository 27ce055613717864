package filesystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// HTTPStateReader asks probes over HTTP.
type HTTPStateReader struct {
	Client *http.Client
}

// NewHTTPStateReader returns a reader that gives a probe the timeout to answer, and goes through no proxy: probes listen
// on the nodes.
func NewHTTPStateReader(timeout time.Duration) *HTTPStateReader {
	return &HTTPStateReader{Client: &http.Client{Timeout: timeout, Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}}}
}

// maxState bounds an answer, in bytes: a thousand chunkservers with 32 targets each fit.
const maxState = 16 << 20

// State implements StateReader.
func (h *HTTPStateReader) State(ctx context.Context, url string) (*backend.State, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the probe at %s: %w", url, err)
	}
	response, err := h.Client.Do(request)
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, fmt.Errorf("the probe at %s does not answer in %s", url, h.Client.Timeout)
		}
		return nil, fmt.Errorf("the probe at %s can't be reached: %w", url, rootCause(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxState))
	if err != nil {
		return nil, fmt.Errorf("read the probe's answer from %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the probe says: %s", lastLine(strings.TrimSpace(string(body))))
	}
	var state backend.State
	if err := json.Unmarshal(body, &state); err != nil {
		return nil, fmt.Errorf("decode the probe's answer from %s: %w", url, err)
	}
	return &state, nil
}

// rootCause drops the outer layers, which hold the source port of the connection: it differs each time, and would make
// every look at an absent probe a change of the status.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
