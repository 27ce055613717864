package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// values holds the values of $(NAME) in arguments, files and standard input.
type values struct {
	// See benchmarks.Command: the tool's directory, the process's rank, the server's targets, hostsFile and launcherIP.
	directory, rank, targets, hostsFile, launcherIP string
}

func (v values) replacer(more ...string) *strings.Replacer {
	pairs := more
	for name, value := range map[string]string{
		"DIRECTORY": v.directory, "RANK": v.rank, "TARGETS": v.targets, "HOSTS_FILE": v.hostsFile, "LAUNCHER_IP": v.launcherIP,
	} {
		if value != "" {
			pairs = append(pairs, "$("+name+")", value)
		}
	}
	return strings.NewReplacer(pairs...)
}

func (v values) arguments(argv []string) []string {
	replacer, replaced := v.replacer(), make([]string, len(argv))
	for i, argument := range argv {
		replaced[i] = replacer.Replace(argument)
	}
	return replaced
}

// hostsFile returns the path of the first file.
func hostsFile(b spec.Benchmark, h Host) string {
	if len(b.Files) > 0 && b.Files[0].Path != "" {
		return values{directory: b.Directory}.replacer().Replace(b.Files[0].Path)
	}
	return h.HostFile
}

// content returns the text of a file: its beginning, PerHost for each host, PerProcess for each process, and its end. Processes are dealt
// to the hosts in turn until each host has its number in placement. $(PROCESSES) is the number of processes on that host; $(INDEX) counts
// hosts or processes from 1.
func content(f spec.BenchmarkFile, placement []int, hosts []string, v values) string {
	var text strings.Builder
	line := func(form string, host, index int) {
		own := v.replacer("$(HOST)", hosts[host], "$(INDEX)", strconv.Itoa(index), "$(PROCESSES)", strconv.Itoa(placement[host]))
		text.WriteString(own.Replace(form))
	}
	text.WriteString(v.replacer().Replace(f.Text))
	used := 0
	for i := range hosts {
		if placement[i] > 0 {
			used++
			line(f.PerHost, i, used)
		}
	}
	for round, process, more := 0, 0, true; more; round++ {
		more = false
		for i := range hosts {
			if round < placement[i] {
				process++
				line(f.PerProcess, i, process)
				more = true
			}
		}
	}
	text.WriteString(v.replacer().Replace(f.End))
	return text.String()
}

// writeFiles writes the files of a benchmark into the directory for temporary files and, if there is a mount, into the tool's own
// directory. It follows no symbolic link out of them.
func writeFiles(mount *os.Root, b spec.Benchmark, placement []int, hosts []string, v values, h Host) error {
	temporary := filepath.Dir(h.HostFile)
	for i, f := range b.Files {
		path := v.replacer().Replace(f.Path)
		if path == "" {
			path = h.HostFile
			if i > 0 {
				return fmt.Errorf("file %d has no path; only the first may have none", i+1)
			}
		}
		text := []byte(content(f, placement, hosts, v))
		var err error
		switch {
		case below(path, temporary):
			err = writeIn(temporary, path, text)
		case mount != nil && below(path, b.Directory):
			err = writeInDirectory(mount, b, path, text)
		default:
			err = errors.New("it would lie neither in the directory for temporary files nor in that of the repetition")
		}
		if err != nil {
			return fmt.Errorf("can't write the tool's file %s: %w", path, err)
		}
	}
	return nil
}

func writeIn(parent, path string, text []byte) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(parent, path)
	if err != nil {
		return errors.Join(err, root.Close())
	}
	return errors.Join(write(root, name, text), root.Close())
}

// writeInDirectory creates missing directories between the repetition's directory and the file.
func writeInDirectory(mount *os.Root, b spec.Benchmark, path string, text []byte) error {
	directory, err := enter(mount, inside(b, filepath.Dir(path)), true)
	if err != nil {
		return err
	}
	return errors.Join(write(directory, filepath.Base(path), text), directory.Close())
}

// write replaces a file, and does not follow a link of the same name.
func write(root *os.Root, name string, text []byte) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
