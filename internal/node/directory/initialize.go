package directory

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// newVariable is the variable for the path of the file that the command of an initialization writes.
	newVariable = "NEW"
	// lastLines is the number of lines of a failed command's output that its error quotes.
	lastLines = 5
)

// understand refuses an invalid spec before anything is inspected.
func understand(d spec.Directory, ledger string) error {
	absolute := func(name string) bool { return filepath.IsAbs(name) && filepath.Clean(name) == name && name != "/" }
	switch {
	case !absolute(d.Path):
		return fmt.Errorf("the directory %q is not an absolute path without . and .. below /", d.Path)
	case !absolute(ledger), strings.HasPrefix(ledger, d.Path+"/"):
		return fmt.Errorf("the ledger %q must be an absolute path outside of the directory %s, or it is lost together with it", ledger, d.Path)
	case !plain(d.Data), d.Data == spec.MarkerFile, d.Data == "lost+found":
		return fmt.Errorf("%q can't be the name of the data's directory in %s", d.Data, d.Path)
	case d.Initialize == nil:
		return nil
	}
	i := d.Initialize
	if (len(i.Command) == 0) != (i.Makes == "") {
		return fmt.Errorf("a command that initializes %s and the file that it makes, %q, belong together; the operator and its node image "+
			"must be of the same version", d.Path, i.Makes)
	}
	names := writes(*i)
	for n, name := range names {
		if !plain(name) || slices.Contains(names[:n], name) {
			return fmt.Errorf("%q can't be the name of a part of what initializes %s", name, d.Path)
		}
	}
	if !hasData(d, names) {
		return fmt.Errorf("none of the patterns %q of data matches any of %q, which initialize %s", i.DataGlobs, names, d.Path)
	}
	return nil
}

func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && !durable.IsTemporary(name)
}

// writes returns the names of everything that an initialization makes.
func writes(i spec.Initialize) []string {
	names := slices.Clone(i.Directories)
	for _, file := range i.Files {
		names = append(names, file.Name)
	}
	if i.Makes != "" {
		names = append(names, i.Makes)
	}
	return names
}

// expand replaces the variables in the initial files by their values. The variables in the command are only checked, because the path of
// its output is not known yet.
func expand(d spec.Directory, lookup environment.Lookup) (spec.Directory, error) {
	if d.Initialize == nil {
		return d, nil
	}
	i := *d.Initialize
	i.Files = slices.Clone(i.Files)
	for n, file := range i.Files {
		content, err := environment.Expand(file.Content, lookup)
		if err != nil {
			return d, fmt.Errorf("the file %s, with which %s is initialized: %w", file.Name, d.Path, err)
		}
		if file.Identity && strings.TrimSpace(content) == "" {
			return d, fmt.Errorf("the file %s is to say who %s is, and would be empty; the operator and its node image must be of the same version",
				file.Name, d.Path)
		}
		i.Files[n].Content = content
	}
	if _, err := environment.ExpandAll(i.Command, withNew(lookup, "")); err != nil {
		return d, fmt.Errorf("the command that initializes %s: %w", d.Path, err)
	}
	d.Initialize = &i
	return d, nil
}

func withNew(lookup environment.Lookup, path string) environment.Lookup {
	return func(name string) (string, bool) {
		if name == newVariable {
			return path, true
		}
		return lookup(name)
	}
}

// Identity returns the contents of an initialization's identity files, such as "nodeNumID 2, targetNumID 101". It is empty if there are
// none.
func Identity(i *spec.Initialize, lookup environment.Lookup) (string, error) {
	if i == nil {
		return "", nil
	}
	d, err := expand(spec.Directory{Initialize: i}, lookup)
	if err != nil {
		return "", err
	}
	return identity(d.Initialize), nil
}

// command runs the command of the initialization if its file does not exist yet. The file's hash is written to the marker before the file
// gets its name.
func (p Prover) command(ctx context.Context, d spec.Directory, lookup environment.Lookup, marker spec.Marker) error {
	if len(d.Initialize.Command) == 0 {
		return nil
	}
	path := filepath.Join(d.Path, d.Data, d.Initialize.Makes)
	if marker.Made != "" {
		return p.Writer.Forget(path)
	}
	return p.Writer.Made(path, p.user(0o640), durable.Making{
		Make: func(path string) error {
			argv, err := environment.ExpandAll(d.Initialize.Command, withNew(lookup, path))
			if err != nil {
				return err
			}
			return run(ctx, argv, p.CommandLimit)
		},
		Commit: func(path string) error {
			var err error
			if marker.Made, err = digest(path); err != nil {
				return err
			}
			return p.writeMarker(d, marker)
		},
	})
}

// run runs a command to its end, and ends it with all its children on a timeout or a stop.
func run(ctx context.Context, argv []string, limit time.Duration) error {
	tail := &process.Tail{}
	child, err := process.Start(argv, process.Options{Stdout: tail, Stderr: tail})
	if err != nil {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-child.Done():
	case <-timer.C:
		child.Kill()
		return fmt.Errorf("%s was ended after %s: %s", argv[0], limit, tail.Lines(lastLines))
	case <-ctx.Done():
		child.Kill()
		return errors.New("stopped while " + argv[0] + " was running")
	}
	if code := child.Code(); code != 0 {
		return fmt.Errorf("%s failed with exit code %d: %s", argv[0], code, tail.Lines(lastLines))
	}
	return nil
}
