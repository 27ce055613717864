// Package cli asks BeeGFS, and tells it what to do, by beegfs-ctl of version 7 and beegfs of version 8, and reads what these print.
package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// TLSPrefix before the address of a management service of version 8 says that it has a certificate.
const TLSPrefix = "tls://"

// question is one command and what may go wrong with it.
type question struct {
	argv []string
	// limit is how long it may take, 0 for as long as any command of a probe.
	limit time.Duration
	// forgive says whether Parse can do with what the command had printed when it failed; nil is never.
	forgive func(code int, stderr string) bool
}

// name is the command without what all questions have in common.
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

// serverLimit is for questions that go to every server: to one that has stopped without closing its connections, BeeGFS
// would wait for minutes (CONN_LONG_TIMEOUT of 7.4.6), and what the management service itself knows is worth more.
const serverLimit = 3 * time.Second

// always forgives: the answer is complete as far as it goes, or is completed from another one.
func always(int, string) bool { return true }

// prober asks the management service, by beegfs-ctl or by beegfs from version 8. Both need neither a capability nor a file to write;
// beegfs 8 insists on root.
type prober struct {
	version   string
	questions []question
	parse     func(a answers) (backend.State, error)
}

var _ backend.TolerantQuestions = prober{}

// New returns what asks a BeeGFS of a version such as "7.4.6". The address is used by version 8 only, and is "host:port" of the management
// service's gRPC, behind TLSPrefix when that has a certificate.
func New(version, address string) backend.Questions {
	if major(version) == "7" {
		return prober{version, questions7(), parse7}
	}
	return prober{version, questions8(address), parse8}
}

func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}

// Commands implements backend.Questions.
func (p prober) Commands() [][]string {
	commands := make([][]string, len(p.questions))
	for i, q := range p.questions {
		commands[i] = q.argv
	}
	return commands
}

// Limit implements backend.TolerantQuestions.
func (p prober) Limit(command int) time.Duration { return p.questions[command].limit }

// Tolerates implements backend.TolerantQuestions.
func (p prober) Tolerates(command, code int, stderr string) bool {
	forgive := p.questions[command].forgive
	return forgive != nil && forgive(code, stderr)
}

// Parse implements backend.Questions. An answer of another shape than BeeGFS 7.4 and 8 have, one that is cut off, or two that
// contradict each other, are an error: a target that is missing from a State counts as lost.
func (p prober) Parse(outputs [][]byte) (backend.State, error) {
	if len(outputs) != len(p.questions) {
		return backend.State{}, fmt.Errorf("%d answers of BeeGFS to %d commands", len(outputs), len(p.questions))
	}
	state, err := p.parse(answers{p.questions, outputs})
	if err != nil {
		return backend.State{}, err
	}
	// No tool tells the version of a server.
	state.Version = p.version
	for i := range state.Servers {
		state.Servers[i].Version = p.version
	}
	return state, nil
}

// answers are what was printed, by question.
type answers struct {
	questions []question
	outputs   [][]byte
}

// lines are those of an answer that the command gave to its end.
func (a answers) lines(question int) *reader {
	return &reader{name: a.questions[question].name(), rest: a.outputs[question]}
}

// forgiven are the lines of an answer whose command may have failed or have been stopped: a last line without its end is left out.
func (a answers) forgiven(question int) *reader {
	output := a.outputs[question]
	return &reader{name: a.questions[question].name(), rest: output[:bytes.LastIndexByte(output, '\n')+1]}
}

// reader goes through an answer line by line.
type reader struct {
	name string
	rest []byte
	// number and text are of the line that was read last.
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

// wrong is an error about the line that was read last.
func (r *reader) wrong(format string, args ...any) error {
	return fmt.Errorf("%s: line %d %s: %s", r.name, r.number, fmt.Sprintf(format, args...), quote(r.text))
}

// short is an error about an answer that ended too early.
func (r *reader) short(missing string) error {
	if r.err != nil {
		return r.err
	}
	return fmt.Errorf("%s: its answer ends after line %d, without %s", r.name, r.number, missing)
}

// quote shortens what another program said to what fits in a message.
func quote(said string) string {
	const most = 200
	if len(said) > most {
		said = said[:most] + "..."
	}
	return fmt.Sprintf("%q", said)
}
