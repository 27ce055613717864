package provision

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// registrationFile is the file on a disk, in the directory of the server's data, from which a storage server reads the number that it
	// registers for the target. Servers of filesystems without registrations have no file of that name there.
	registrationFile = "storage/data/targetID"
	// mostRegistration bounds its content, in bytes.
	mostRegistration = 128
)

// registrationForm is the form of a registration.
var registrationForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// registration reads what the target on a mounted disk registers with. It is empty where there is no such file, and for a content of
// another form.
func registration(mountPath string) string {
	file, err := os.OpenFile(filepath.Join(mountPath, registrationFile), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	if about, err := file.Stat(); err != nil || !about.Mode().IsRegular() {
		return ""
	}
	content, err := io.ReadAll(io.LimitReader(file, mostRegistration+1))
	first, _, _ := strings.Cut(string(content), "\n")
	if first = strings.TrimSpace(first); err != nil || len(content) > mostRegistration || !registrationForm.MatchString(first) {
		return ""
	}
	return first
}
