package limited

import (
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"
)

const (
	// triesToAsk bounds how often Ask sends a question.
	triesToAsk = 5
	// pause is the time before a question is sent again to a server that was busy.
	pause = 200 * time.Millisecond
)

// Ask sends a request without a body to a server with a limited listener. It repeats the request if its connection ends before the answer,
// because the listener may have closed this connection in favor of others. If the server is busy (503), it repeats the request after a
// pause.
func Ask(client *http.Client, request *http.Request) (response *http.Response, err error) {
	for try := 1; ; try++ {
		response, err = client.Do(request) //nolint:gosec // the caller made the request for an address of the filesystem
		busy := err == nil && response.StatusCode == http.StatusServiceUnavailable
		ended := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
		if try == triesToAsk || !busy && !ended {
			return response, err //nolint:wrapcheck // the caller names the server
		}
		if !busy {
			continue
		}
		_ = response.Body.Close()
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err() //nolint:wrapcheck // the caller names the server
		case <-time.After(pause):
		}
	}
}
