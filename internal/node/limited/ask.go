package limited

import (
	"errors"
	"io"
	"net/http"
	"syscall"
)

// triesToAsk bounds how often Ask sends a question.
const triesToAsk = 5

// Ask sends a request without a body to a server with a limited listener, and repeats it if its connection ends before the answer: the
// listener closes the oldest connection that waits, which may be this one.
func Ask(client *http.Client, request *http.Request) (response *http.Response, err error) {
	for range triesToAsk {
		response, err = client.Do(request)
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			break
		}
	}
	return response, err //nolint:wrapcheck // the caller names the server
}
