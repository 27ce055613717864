// Package cli queries and configures BeeGFS with beegfs-ctl of version 7 and beegfs of version 8, and reads their output.
package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// TLSPrefix before the address of a management service of version 8 means that the service has a certificate.
const TLSPrefix = "tls://"

// question is one command, its time limit and the failures that are tolerated.
type question struct {
	argv []string
	// limit is how long it may take; 0 means the limit of all commands of a probe.
	limit time.Duration
	// forgive reports whether Parse can use the output of a failed command; nil means never.
	forgive func(code int, stderr string) bool
}

// name is the command without the options that all questions share.
func (q question) name() string {
	words := []string{q.argv[0][strings.LastIndex(q.argv[0], "/")+1:]}
	for _, word := range q.argv[1:] {
		if strings.HasPrefix(word, "--cfgFile=") || strings.HasPrefix(word, "--mount=") {
			break
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// serverLimit is for questions that query every server. If a server has stopped without closing its connections, BeeGFS would wait for
// minutes (CONN_LONG_TIMEOUT of 7.4.6); the data of the management service itself is worth more.
const serverLimit = 3 * time.Second

// always forgives: the answer is usable as far as it goes, or another answer completes it.
func always(int, string) bool { return true }

// prober queries the management service with beegfs-ctl, or with beegfs from version 8. Both tools need neither a capability nor a file to
// write; beegfs 8 insists on root.
type prober struct {
	version, address string
	questions        []question
	parse            func(a answers) (backend.State, error)
	resyncs          resyncs
}

var (
	_ backend.TolerantQuestions = &prober{}
	_ backend.LaterQuestions    = &prober{}
)

// New returns the questions for a BeeGFS of a version such as "7.4.6". Only version 8 uses the address, which is "host:port" of the
// management service's gRPC, after TLSPrefix if it has a certificate.
func New(version, address string) backend.Questions {
	if major(version) == "7" {
		return &prober{version: version, questions: questions7(), parse: parse7}
	}
	return &prober{version: version, address: address, questions: questions8(address), parse: parse8}
}

func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}

// Commands implements backend.Questions.
func (p *prober) Commands() [][]string {
	commands := make([][]string, len(p.questions))
	for i, q := range p.questions {
		commands[i] = q.argv
	}
	return commands
}

// Limit implements backend.TolerantQuestions.
func (p *prober) Limit(command int) time.Duration { return p.questions[command].limit }

// Tolerates implements backend.TolerantQuestions.
func (p *prober) Tolerates(command, code int, stderr string) bool {
	forgive := p.questions[command].forgive
	return forgive != nil && forgive(code, stderr)
}

// Parse implements backend.Questions. Parse returns an error for an answer in an unknown form, for one that is cut off, and for two that
// contradict each other: a target that is missing from a State would count as lost.
func (p *prober) Parse(outputs [][]byte) (backend.State, error) {
	if len(outputs) != len(p.questions) {
		return backend.State{}, fmt.Errorf("%d answers of BeeGFS to %d commands", len(outputs), len(p.questions))
	}
	state, err := p.parse(answers{p.questions, outputs})
	if err != nil {
		return backend.State{}, err
	}
	// No tool prints the version of a server.
	state.Version = p.version
	for i := range state.Servers {
		state.Servers[i].Version = p.version
	}
	return state, nil
}

// answers holds the output of each question.
type answers struct {
	questions []question
	outputs   [][]byte
}

// lines returns the lines of an answer whose command succeeded.
func (a answers) lines(question int) *reader {
	return &reader{name: a.questions[question].name(), rest: a.outputs[question]}
}

// forgiven returns the lines of an answer whose command may have failed or been stopped; an incomplete last line is left out.
func (a answers) forgiven(question int) *reader {
	output := a.outputs[question]
	return &reader{name: a.questions[question].name(), rest: output[:bytes.LastIndexByte(output, '\n')+1]}
}

// reader goes through an answer line by line.
type reader struct {
	name string
	rest []byte
	// number and text are those of the last line read.
	number int
	text   string
	err    error
}

// next reads a line; it returns false at the end, and at a last line that does not end.
func (r *reader) next() bool {
	if len(r.rest) == 0 || r.err != nil {
		return false
	}
	line, rest, ended := bytes.Cut(r.rest, []byte("\n"))
	r.number++
	r.text, r.rest = string(line), rest
	if !ended {
		r.err = r.wrong("is cut off")
	}
	return ended
}

// wrong returns an error about the last line read.
func (r *reader) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: line %d %s: %s", r.name, r.number, fmt.Sprintf(format, args...), quote(r.text))
}

// short returns an error about an answer that ended too early.
func (r *reader) short(missing string) error {
	if r.err != nil {
		return r.err
	}
	return fmt.Errorf("%s: its answer ends after line %d, without %s", r.name, r.number, missing)
}

// quote shortens the output of another program so that it fits in a message.
func quote(said string) string {
	const most = 200
	if len(said) > most {
		said = said[:most] + "..."
	}
	return fmt.Sprintf("%q", said)
}
