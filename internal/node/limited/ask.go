package limited

import (
	"errors"
	"io"
	"net/http"
	"syscall"
)

// triesToAsk bounds how often Ask sends a question.
const triesToAsk = 5

// Ask sends a request without a body to a server with a limited listener. It repeats the request if its connection ends before the answer,
// because the listener may have closed this connection in favor of others.
func Ask(client *http.Client, request *http.Request) (response *http.Response, err error) {
	for range triesToAsk {
		response, err = client.Do(request) //nolint:gosec // the caller made the request for an address of the filesystem
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			break
		}
	}
	return response, err //nolint:wrapcheck // the caller names the server
}
