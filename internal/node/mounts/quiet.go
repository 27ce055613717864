package mounts

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// betweenLooks is the pause between two checks while a command runs.
	betweenLooks = 10 * time.Second
	// lookLimit bounds the time of a check.
	lookLimit = 30 * time.Second
	// blindLooks is the number of consecutive failed checks after which a command is ended, because the clients' activity is unknown.
	blindLooks = 3
	// peace is the time that a command may take to end by itself. A command that copies a file ends after that file, however large.
	peace = 24 * time.Hour
	// mostClients limits how many clients a message names.
	mostClients = 8
)

// quiet checks whether other clients have files open on some servers.
type quiet struct {
	config                    spec.Quiet
	client, session, answered *regexp.Regexp
	// others holds the names of the clients that existed before this process mounted, by id.
	others map[string]string
	// pause is betweenLooks, unless a test shortens it.
	pause time.Duration
}

// newQuiet reads the current clients.
func newQuiet(ctx context.Context, config spec.Quiet) (*quiet, error) {
	q := &quiet{config: config, others: map[string]string{}, pause: betweenLooks}
	for _, e := range []struct {
		text   string
		groups []string
		into   **regexp.Regexp
	}{
		{config.Client, []string{"id", "name"}, &q.client}, {config.Session, []string{"id", "files"}, &q.session},
		{config.Answered, nil, &q.answered},
	} {
		compiled, err := regexp.Compile(e.text)
		if err != nil {
			return nil, fmt.Errorf("the spec of this Job has an expression that can't be read: %w", err)
		}
		for _, group := range e.groups {
			if compiled.SubexpIndex(group) < 0 {
				return nil, fmt.Errorf("the spec of this Job has the expression %q without the group %s", e.text, group)
			}
		}
		*e.into = compiled
	}
	listed, err := printed(ctx, config.Clients)
	if err != nil {
		return nil, fmt.Errorf("nothing is done, because the clients are unknown: %w", err)
	}
	for _, m := range q.client.FindAllStringSubmatch(listed, -1) {
		q.others[m[q.client.SubexpIndex("id")]] = m[q.client.SubexpIndex("name")]
	}
	return q, nil
}

// openError names the clients that have files open. Every failure to find out is another error.
type openError struct{ text string }

// Error is the sentence.
func (e openError) Error() string { return e.text }

// session is a client's session on a server, with its open files.
type session struct{ id, files string }

// look fails if other clients have files open. While a command uses this process's mount, one new client is expected to be this mount.
func (q *quiet) look(ctx context.Context, used bool) error {
	servers := append([]spec.QuietServer{{Server: q.config.Server, Open: q.config.Open}}, q.config.Also...)
	sessions, came := make([][]session, len(servers)), map[string]bool{}
	for i, server := range servers {
		var err error
		if sessions[i], err = q.ask(ctx, server); err != nil {
			return err
		}
		for _, s := range sessions[i] {
			if _, known := q.others[s.id]; !known {
				came[s.id] = true
			}
		}
	}
	mine := used && len(came) == 1
	for i, server := range servers {
		if err := q.says(server.Server, sessions[i], mine); err != nil {
			return err
		}
	}
	return nil
}

// ask lists the clients with open files on a server.
func (q *quiet) ask(ctx context.Context, server spec.QuietServer) ([]session, error) {
	text, err := printed(ctx, server.Open)
	if err == nil && !q.answered.MatchString(text) {
		err = fmt.Errorf("%s printed no answer", server.Open[0])
	}
	if err != nil {
		return nil, fmt.Errorf("it is unknown which clients have files open on %s: %w", server.Server, err)
	}
	var out []session
	for _, m := range q.session.FindAllStringSubmatch(text, -1) {
		out = append(out, session{id: m[q.session.SubexpIndex("id")], files: m[q.session.SubexpIndex("files")]})
	}
	return out, nil
}

// says names the clients with open files on a server. If mine is true, a single new client is taken for this process's own mount.
func (q *quiet) says(server string, sessions []session, mine bool) error {
	var open []string
	for _, s := range sessions {
		if name, known := q.others[s.id]; known {
			open = append(open, fmt.Sprintf("%s (%s)", name, s.files))
		} else if !mine {
			open = append(open, fmt.Sprintf("client %s (%s)", s.id, s.files))
		}
	}
	if len(open) == 0 {
		return nil
	}
	slices.Sort(open)
	if more := len(open) - mostClients; more > 0 {
		open = append(open[:mostClients], fmt.Sprintf("%d more", more))
	}
	return openError{fmt.Sprintf("clients have files open on %s, and what they write to files that are moved would be lost: %s; "+
		"close these files or unmount the filesystem there: it is tried again by itself", server, strings.Join(open, ", "))}
}

// watch sends the reason why a command has to end. For a nil quiet it never sends.
func (q *quiet) watch(ctx context.Context) <-chan error {
	if q == nil {
		return nil
	}
	out := make(chan error, 1)
	go func() {
		for blind := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(q.pause):
			}
			err := q.look(ctx, true)
			if _, open := errors.AsType[openError](err); err == nil {
				blind = 0
				continue
			} else if blind++; ctx.Err() != nil || !open && blind < blindLooks {
				continue
			}
			out <- err
			return
		}
	}()
	return out
}

// endInPeace asks a command to end, and waits until it has ended or the pod is stopped.
func endInPeace(ctx context.Context, child *process.Child) {
	ended := make(chan struct{})
	go func() {
		child.Stop(peace)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		child.Stop(programGrace)
	}
}

// printed runs a command and returns its output.
func printed(ctx context.Context, argv []string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("the spec of this Job has no command for that")
	}
	var said process.Output
	tail := &process.Tail{}
	child, err := process.Start(argv, process.Options{Stdout: &said, Stderr: tail})
	if err != nil {
		return "", err //nolint:wrapcheck // it names the program
	}
	defer child.Kill()
	select {
	case <-child.Done():
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(lookLimit):
		return "", fmt.Errorf("%s did not end within %s: %s", argv[0], lookLimit, tail.Lines(lastLines))
	}
	if err := said.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", argv[0], err)
	}
	if code := child.Code(); code != 0 {
		return "", fmt.Errorf("%s failed with exit code %d: %s", argv[0], code, tail.Lines(lastLines))
	}
	return said.String(), nil
}
