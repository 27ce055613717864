package cli

import (
	"bytes"
	"cmp"
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Fsck checks all metadata and all chunks of a running filesystem, and changes nothing. Without --readOnly, it would ask what to repair,
// and remove files from the disposal (ModeCheckFS.cpp, 7.4.6 and 8.3.1). It builds a database in a directory. The options that find the
// management service are those of a client; in BeeGFS 7, the configuration of beegfs-ctl has them.
func Fsck(version, directory string, client map[string]string) []string {
	argv := []string{programFsck, "--checkfs", "--readOnly", "--overwriteDbFile", "--databasePath=" + directory,
		"--logOutFile=" + path.Join(directory, "beegfs-fsck.out"), "--logStdFile=" + path.Join(directory, "beegfs-fsck.log")}
	if !Is8(version) {
		return append(argv, "--cfgFile="+ClientConfig)
	}
	for _, name := range backend.SortedKeys(client) {
		argv = append(argv, "--"+name+"="+client[name])
	}
	return argv
}

// The lines that beegfs-fsck prints for each kind of damage, and at its end.
var (
	fsckChecking   = regexp.MustCompile(`^\* Checking: (.*?)[ .]*$`)
	fsckFound      = regexp.MustCompile(`^>>> Found ([0-9]+) errors\.`)
	fsckUnfixable  = regexp.MustCompile(`^>>> Found (duplicated|mismirrored) `)
	fsckDone       = regexp.MustCompile(`^Found ([0-9]+) errors\. Detailed information`)
	fsckGaveUp     = "Found errors beegfs-fsck cannot fix."
	fsckSaysNo     = "beegfs-fsck ended without a result"
	fsckNeedsHelp  = "beegfs-fsck can't repair some of it: ask the vendor's support"
	fsckCanRepair  = "Back up the metadata, and read the log of the Job's pod and BeeGFS's documentation of beegfs-fsck: it repairs when it is run by hand without --readOnly"
	fsckUnnamed    = "errors of a kind that stands in the log only"
	fsckLookedAtIt = "beegfs-fsck has looked at all metadata and all chunks"
)

// ReadFsck reads the output of beegfs-fsck.
func ReadFsck(output []byte) (spec.CheckAnswer, error) {
	var f fsckReader
	for line := range bytes.FieldsFuncSeq(output, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if text := strings.TrimSpace(string(line)); text != "" {
			f.read(text)
		}
	}
	switch answer := &f.answer; {
	case !answer.Done:
		return spec.CheckAnswer{}, errors.New(fsckSaysNo + "; its last line: " + quote(f.last))
	case f.gaveUp:
		answer.Message = fsckNeedsHelp
	case len(answer.Findings) > 0:
		answer.Message = fsckCanRepair
	default:
		answer.Message = fsckLookedAtIt
	}
	return f.answer, nil
}

// fsckReader reads line by line.
type fsckReader struct {
	answer spec.CheckAnswer
	// kind is the kind of damage that is being searched for, and last the last line.
	kind, last string
	gaveUp     bool
}

func (f *fsckReader) read(line string) {
	f.last = line
	checking, found, done := fsckChecking.FindStringSubmatch(line), fsckFound.FindStringSubmatch(line), fsckDone.FindStringSubmatch(line)
	switch {
	case checking != nil:
		f.kind = checking[1]
	case found != nil:
		// ParseInt returns the largest number for one that is too large.
		count, _ := strconv.ParseInt(found[1], 10, 64)
		f.found(count)
	case fsckUnfixable.MatchString(line):
		f.found(1)
	case strings.HasPrefix(line, fsckGaveUp):
		f.answer.Done, f.gaveUp = true, true
		f.atLeast(1)
	case done != nil:
		f.answer.Done = true
		count, _ := strconv.ParseInt(done[1], 10, 64)
		f.atLeast(count)
	}
}

func (f *fsckReader) found(count int64) {
	f.answer.Findings = append(f.answer.Findings, spec.CheckFinding{What: cmp.Or(f.kind, fsckUnnamed), Count: count})
}

// atLeast counts the number at the end as a finding if there is no other one: an output that was not understood is not clean.
func (f *fsckReader) atLeast(count int64) {
	if len(f.answer.Findings) == 0 && count > 0 {
		f.kind = ""
		f.found(count)
	}
}
