package patience

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// busyLimit bounds the time for which a request to a busy API server is repeated, and busyPause is the time between two attempts.
	busyLimit, busyPause = 3 * time.Minute, 2 * time.Second
)

// IsBusy is true for messages of kubectl and Go's client if an API server did not answer a request in time.
func IsBusy(complaint string) bool {
	for _, part := range []string{
		"TLS handshake timeout", "connection refused", "connection reset by peer", "i/o timeout", "client connection lost",
		"context deadline exceeded", "etcdserver: request timed out", "etcdserver: leader changed", "the server was unable to return a response in the time allotted",
		"the server is currently unable to handle the request",
	} {
		if strings.Contains(complaint, part) {
			return true
		}
	}
	return false
}

// Kubectl repeats a kubectl command while the API server is busy. The API server may have carried out a request that it did not answer.
// Therefore a repeated delete that finds nothing and a repeated create that finds the object have succeeded.
func Kubectl(args []string, run func() (string, error)) (string, error) {
	until := time.Now().Add(Bound(busyLimit))
	for repeated := false; ; repeated = true {
		out, err := run()
		switch {
		case err == nil, repeated && isDone(args, err.Error()):
			return out, nil
		case !IsBusy(err.Error()) || time.Now().After(until):
			return out, err
		}
		<-time.After(busyPause)
	}
}

// isDone is true if a repeated command fails because it was already carried out.
func isDone(args []string, complaint string) bool {
	return slices.Contains(args, "delete") && strings.Contains(complaint, "(NotFound)") ||
		slices.Contains(args, "create") && strings.Contains(complaint, "(AlreadyExists)")
}

// Reads repeats read requests (GET) while the API server is busy.
func Reads(next http.RoundTripper) http.RoundTripper { return reads{next} }

type reads struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r reads) RoundTrip(request *http.Request) (*http.Response, error) {
	until := time.Now().Add(Bound(busyLimit))
	for {
		response, err := r.next.RoundTrip(request)
		busy := err != nil && IsBusy(err.Error()) || err == nil && response.StatusCode >= http.StatusInternalServerError
		if !busy || request.Method != http.MethodGet || request.Context().Err() != nil || time.Now().After(until) {
			return response, err
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		select {
		case <-request.Context().Done():
		case <-time.After(busyPause):
		}
	}
}
