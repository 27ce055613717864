//go:build scale

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// request is one writing request in the API server's audit log.
type request struct {
	user, verb, group, resource, subresource, object string
	// at is when it arrived, code its result, and message why it was refused.
	at      time.Time
	code    int
	message string
}

// auditLog reads the API server's audit log. An event is in it before its request is answered (audit-log-mode=blocking).
type auditLog struct {
	path   string
	offset int64
	all    []request
}

// event has the fields of an audit.k8s.io/v1 Event that are read.
type event struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct {
		Code    int
		Message string
	}
	RequestReceivedTimestamp time.Time
}

// read reads the new lines.
func (l *auditLog) read() error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // an incomplete line is read again
		} else if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		l.offset += int64(len(line))
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("the audit log has a line that is no event: %w", err)
		}
		l.all = append(l.all, request{
			user: e.User.Username, verb: e.Verb, group: e.ObjectRef.APIGroup, resource: e.ObjectRef.Resource, subresource: e.ObjectRef.Subresource,
			object: e.ObjectRef.Namespace + "/" + e.ObjectRef.Name, at: e.RequestReceivedTimestamp,
			code: e.ResponseStatus.Code, message: e.ResponseStatus.Message,
		})
	}
}

// between returns the requests from one time on, and before another.
func (l *auditLog) between(from, to time.Time) []request {
	var out []request
	for _, r := range l.all {
		if !r.at.Before(from) && r.at.Before(to) {
			out = append(out, r)
		}
	}
	return out
}

// accepted is true for a write that the API server has accepted.
func (r request) accepted() bool {
	return r.code >= http.StatusOK && r.code < http.StatusMultipleChoices
}

// byOperator is true for writes of the operator, except its leases and the events about their holders: Kubernetes and people write with
// other users.
func (r request) byOperator() bool {
	ofLease := r.resource == "leases" || r.resource == "events" && strings.HasPrefix(r.object, operatorNamespace+"/")
	return (r.user == userManager || r.user == userAgents) && !ofLease
}

// mostRefusals is how often the same write may be refused before it counts as refused for good.
const mostRefusals = 5

// refusal returns the API server's message that keeps the operator from continuing; empty while it can. Conflicts, and missing objects, are
// normal for every controller.
func refusal(all []request) string {
	count := map[string]int{}
	for _, r := range all {
		if !r.byOperator() || r.accepted() {
			continue
		}
		by := "the API server"
		switch {
		case strings.Contains(r.message, "etcdserver"):
			by = "etcd"
		case r.code != http.StatusUnprocessableEntity && r.code != http.StatusRequestEntityTooLarge && r.code != http.StatusBadRequest:
			continue
		}
		key := r.resource + "/" + r.subresource + " " + r.object
		if count[key]++; count[key] == mostRefusals {
			return fmt.Sprintf("refused by %s: %s", by, r.message)
		}
	}
	return ""
}

// writes are the accepted writes of the operator by resource, with its subresource: for the document.
func writes(all []request) map[string]int {
	out := map[string]int{}
	for _, r := range all {
		if !r.accepted() || !r.byOperator() {
			continue
		}
		name := r.resource
		if r.subresource != "" {
			name += "/" + r.subresource
		}
		out[r.user+" "+r.verb+" "+name]++
	}
	return out
}

// count counts the operator's accepted writes that meet a condition.
func count(all []request, holds func(request) bool) int {
	n := 0
	for _, r := range all {
		if r.accepted() && r.byOperator() && holds(r) {
			n++
		}
	}
	return n
}

// all is the condition of every write.
func all(request) bool { return true }
