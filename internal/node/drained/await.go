// Package drained waits until a target that is being drained no longer holds data. It proves the target before every scan, because the
// mountpoint of a missing disk is empty too, and it changes nothing.
package drained

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// between is the pause between two scans.
	between = 10 * time.Second
	// enough is the number of consecutive scans that must find nothing: a scan may miss a file that is being moved.
	enough = 2
)

// Await returns nil when two consecutive scans, 10 s apart, found no file in the directories of the target. Empty directories don't count
// as data. say gets a line for a person whenever the count changes. The error is a sentence: the target can't be proven or scanned, or ctx
// has ended.
func Await(ctx context.Context, config spec.AwaitEmpty, say func(line string)) error {
	return await(ctx, config, say, between)
}

func await(ctx context.Context, config spec.AwaitEmpty, say func(line string), between time.Duration) error {
	if err := understand(config); err != nil {
		return err
	}
	said, found := "", 0 // found counts the consecutive scans that found nothing
	for {
		left, err := lookPatiently(ctx, config)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return stopped(config.Target, said)
		}
		if left > 0 {
			found = 0
		} else {
			found++
		}
		if found == enough {
			say(fmt.Sprintf("no file is left: the target %s is empty", config.Target.Name))
			return nil
		}
		if line := describe(left); line != said {
			said = line
			say(line)
		}
		select {
		case <-ctx.Done():
			return stopped(config.Target, said)
		case <-time.After(between):
		}
	}
}

func stopped(t spec.Target, said string) error {
	if said == "" {
		said = "nothing was counted yet"
	}
	return fmt.Errorf("stopped before it was sure that the target %s is empty: %s", t.Name, said)
}

func describe(left int) string {
	switch {
	case left > most:
		return fmt.Sprintf("more than %d files are left", most)
	case left == 1:
		return "1 file is left"
	case left > 0:
		return fmt.Sprintf("%d files are left", left)
	default:
		return "no file is left; once more to be sure"
	}
}

// lookPatiently returns when ctx ends, even if the disk does not answer.
func lookPatiently(ctx context.Context, config spec.AwaitEmpty) (left int, err error) {
	type result struct {
		left int
		err  error
	}
	looked := make(chan result, 1)
	go func() {
		left, err := look(ctx, config)
		looked <- result{left, err}
	}()
	select {
	case r := <-looked:
		return r.left, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Count counts the files in the directories of a target once, up to 10 001, after the target was proven. It returns when ctx ends, whatever
// the disk does.
func Count(ctx context.Context, config spec.AwaitEmpty) (int, error) {
	if err := understand(config); err != nil {
		return 0, err
	}
	return lookPatiently(ctx, config)
}

// understand refuses an invalid spec: the proof of the target does not cover a directory elsewhere.
func understand(config spec.AwaitEmpty) error {
	if len(config.Directories) == 0 {
		return errors.New("the spec names no directory, so nothing would say that the target is empty; the operator and its node image must be of the same version")
	}
	for _, d := range config.Directories {
		if filepath.Clean(d) != d || !strings.HasPrefix(d, config.Target.Path+"/") {
			return fmt.Errorf("the directory %q is not one below %s, the path of the target %s, whose proof says nothing of it; "+
				"the operator and its node image must be of the same version", d, config.Target.Path, config.Target.Name)
		}
	}
	return nil
}
