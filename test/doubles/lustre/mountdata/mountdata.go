// Package mountdata reads and writes the file CONFIGS/mountdata of a target on a real ext4 (struct lustre_disk_data of Lustre's
// lustre_disk.h, on a little-endian machine).
package mountdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Flags of a target.
const (
	MDT         = 0x1
	OST         = 0x2
	MGS         = 0x4
	NeedsIndex  = 0x10
	FirstTime   = 0x20
	Update      = 0x40
	Writeconf   = 0x100
	NoPrimnode  = 0x1000
	NoLocalLogs = 0x10000
)

// Unassigned is the index of a target without one.
const Unassigned = 0xffff

// CommentLength is the maximum length of a comment.
const CommentLength = 823

const (
	magic   = 0x1dd00001
	ldiskfs = 1
)

// Data is the identity of a target. Parameters start with a space each.
type Data struct {
	Flags, Index                                    uint32
	FSName, Name, Comment, MountOptions, Parameters string
}

// layout is the binary format of the file.
type layout struct {
	Magic, Compat, ROCompat, Incompat, ConfigVersion, Flags, Index, MountType uint32
	FSName, Name                                                              [64]byte
	UUID                                                                      [40]byte
	Comment                                                                   [824]byte
	Padding                                                                   [3072]byte
	MountOptions, Parameters                                                  [4096]byte
}

// Bytes returns the content of the file.
func (d Data) Bytes() []byte {
	l := layout{Magic: magic, ConfigVersion: 1, Flags: d.Flags, Index: d.Index, MountType: ldiskfs}
	put := func(field []byte, text string) { copy(field[:len(field)-1], text) }
	put(l.FSName[:], d.FSName)
	put(l.Name[:], d.Name)
	put(l.MountOptions[:], d.MountOptions)
	put(l.Parameters[:], d.Parameters)
	put(l.Comment[:], d.Comment)
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, l) // into memory, and of a fixed size
	return out.Bytes()
}

func text(field []byte) string {
	s, _, _ := strings.Cut(string(field), "\x00")
	return s
}

// Parse reads the content of the file.
func Parse(content []byte) (Data, error) {
	var l layout
	if err := binary.Read(bytes.NewReader(content), binary.LittleEndian, &l); err != nil {
		return Data{}, err
	}
	if l.Magic != magic || l.MountType != ldiskfs {
		return Data{}, fmt.Errorf("it has the magic %#x and the type %d", l.Magic, l.MountType)
	}
	return Data{
		Flags: l.Flags, Index: l.Index, FSName: text(l.FSName[:]), Name: text(l.Name[:]), Comment: text(l.Comment[:]),
		MountOptions: text(l.MountOptions[:]), Parameters: text(l.Parameters[:]),
	}, nil
}

// Of reads the file of a device, and the label of the device. found is false for a device without the file.
func Of(device string) (data Data, label string, found bool, err error) {
	label, is, err := ext4Label(device)
	if err != nil || !is {
		return Data{}, "", false, err
	}
	content, err := ReadFile(device, "mountdata")
	if err != nil || len(content) == 0 {
		return Data{}, label, false, err
	}
	data, err = Parse(content)
	return data, label, err == nil, err
}

// Write writes the file of a device, and reads it back.
func Write(device string, data Data) error {
	if err := WriteFiles(device, map[string][]byte{"mountdata": data.Bytes()}); err != nil {
		return err
	}
	if now, _, found, err := Of(device); err != nil || !found || now != data {
		return fmt.Errorf("CONFIGS/mountdata of %s does not read as it was written (%w)", device, err)
	}
	return nil
}

// ReadFile reads a file in CONFIGS of a device with an ext4; a missing file is empty.
func ReadFile(device, name string) ([]byte, error) {
	directory, err := os.MkdirTemp("", "mountdata")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	copied := filepath.Join(directory, name)
	if err := debugfs(device, false, "dump CONFIGS/"+name+" "+copied); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(copied)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Files returns the names of all files in CONFIGS of a device.
func Files(device string) ([]string, error) {
	output, err := exec.Command("debugfs", "-R", "ls -p CONFIGS", device).Output()
	if err != nil {
		return nil, fmt.Errorf("debugfs of %s: %w", device, err)
	}
	var out []string
	for line := range strings.Lines(string(output)) {
		// The fields are inode, mode, owner, name and size.
		if parts := strings.Split(line, "/"); len(parts) > 6 && strings.HasPrefix(parts[2], "10") {
			out = append(out, parts[5])
		}
	}
	return out, nil
}

// WriteFiles writes files in CONFIGS of a device, by their names.
func WriteFiles(device string, files map[string][]byte) error {
	directory, err := os.MkdirTemp("", "mountdata")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	requests := []string{"mkdir CONFIGS", "cd CONFIGS"}
	for name, content := range files {
		source := filepath.Join(directory, name)
		if err := os.WriteFile(source, content, 0o600); err != nil {
			return err
		}
		requests = append(requests, "rm "+name, "write "+source+" "+name)
	}
	return debugfs(device, true, requests...)
}

// debugfs carries out requests of debugfs(8). Its exit code does not show whether they succeeded.
func debugfs(device string, write bool, requests ...string) error {
	file, err := os.CreateTemp("", "requests")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(strings.Join(requests, "\n") + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	arguments := []string{"-f", file.Name(), device}
	if write {
		arguments = append([]string{"-w"}, arguments...)
	}
	if output, err := exec.Command("debugfs", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("debugfs of %s: %w: %s", device, err, output)
	}
	return nil
}

// ext4Label returns the label of a device with an ext4 (kernel Documentation/filesystems/ext4/super.rst), or false for any other.
func ext4Label(device string) (string, bool, error) {
	file, err := os.Open(device)
	if err != nil {
		return "", false, err
	}
	defer file.Close()
	super := make([]byte, 1024)
	if n, err := file.ReadAt(super, 1024); n < len(super) {
		return "", false, err
	}
	return text(super[120:136]), binary.LittleEndian.Uint16(super[56:]) == 0xef53, nil
}

// Register records on a device that its target is registered with its MGS: in its label and in its file.
func Register(device, label string, data Data) error {
	if output, err := exec.Command("e2label", device, label).CombinedOutput(); err != nil {
		return fmt.Errorf("e2label of %s: %w: %s", device, err, output)
	}
	return Write(device, data)
}
