// Package store reads the files or the database in which beegfs-mgmtd keeps its state. 7.4 has files, in the form of 7.4.6: text of lines
// like A=B with numbers in hexadecimal, and binary files in the form of its network messages, little-endian. 8 has a database. It is pure.
package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Content is the content of a store.
type Content struct {
	// ID is the UUID of the filesystem without its dashes; empty for 7.4, which writes none.
	ID string
	// Metadata and Storage list the numbers of the servers.
	Metadata, Storage []int32
	// Root is the metadata server that owns the root directory, or its buddy group where RootMirrored; 0 for none.
	Root         int32
	RootMirrored bool
	// Targets maps the storage targets to their servers.
	Targets map[int32]int32
	// Pools maps the storage pools to their targets.
	Pools                           map[int32][]int32
	StorageMirrors, MetadataMirrors map[int32]Pair
}

// Pair is a buddy group.
type Pair struct{ Primary, Secondary int32 }

// Read reads the required and the optional files of a store, by their names. It ignores other files.
func Read(files map[string][]byte) (Content, error) {
	c := Content{}
	var errs []error
	for _, f := range []struct {
		name string
		// optional files do not exist before there is something to write.
		optional bool
		read     func(content []byte) error
	}{
		{"format.conf", false, format},
		{"meta.nodes", false, func(b []byte) (err error) { c.Metadata, c.Root, c.RootMirrored, err = nodes(b, true); return err }},
		{"storage.nodes", false, func(b []byte) (err error) { c.Storage, _, _, err = nodes(b, true); return err }},
		{"clients.nodes", true, func(b []byte) error { _, _, _, err := nodes(b, false); return err }},
		{"targetNumIDs", false, targetNumbers},
		{"targets", false, func(b []byte) (err error) { c.Targets, err = targets(b); return err }},
		{"storagePools", false, func(b []byte) (err error) { c.Pools, err = pools(b); return err }},
		{"targetStates", false, states},
		{"nodeStates", false, states},
		{"storagebuddygroups", true, func(b []byte) (err error) { c.StorageMirrors, err = mirrors(b); return err }},
		{"metabuddygroups", true, func(b []byte) (err error) { c.MetadataMirrors, err = mirrors(b); return err }},
	} {
		content, there := files[f.name]
		switch {
		case there:
			if err := f.read(content); err != nil {
				errs = append(errs, fmt.Errorf("%s can't be read: %w", f.name, err))
			}
		case !f.optional:
			errs = append(errs, fmt.Errorf("%s is missing", f.name))
		}
	}
	return c, errors.Join(errs...)
}

// formatVersion is that of a store that 7.1 or later has written.
const formatVersion = "5"

func format(content []byte) error {
	version := ""
	err := lines(content, func(key, value string) error {
		if key == "version" {
			version = value
		}
		return nil
	})
	if err == nil && version != formatVersion {
		err = fmt.Errorf("it says version %q, and 7.4 writes %s", version, formatVersion)
	}
	return err
}

// lines reads lines like A=B.
func lines(content []byte, each func(key, value string) error) error {
	if len(content) > 0 && content[len(content)-1] != '\n' {
		return errShort
	}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return fmt.Errorf("line %d has no =: %q", n, line)
		}
		if err := each(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return scanner.Err()
}

// number reads a hexadecimal number of a server, a target or a group.
func number(text string) (int32, error) {
	n, err := strconv.ParseUint(text, 16, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no number of a server or a target", text)
	}
	return int32(n), nil
}

// targetNumbers checks the numbers of all targets that ever existed, by their text ids.
func targetNumbers(content []byte) error {
	return lines(content, func(_, value string) error {
		_, err := number(value)
		return err
	})
}

func targets(content []byte) (map[int32]int32, error) {
	out := map[int32]int32{}
	return out, lines(content, func(key, value string) error {
		target, err := number(key)
		server, err2 := number(value)
		out[target] = server
		return errors.Join(err, err2)
	})
}

func mirrors(content []byte) (map[int32]Pair, error) {
	out := map[int32]Pair{}
	return out, lines(content, func(key, value string) error {
		first, second, ok := strings.Cut(value, ",")
		if !ok {
			return fmt.Errorf("%q is no pair", value)
		}
		group, err := number(key)
		primary, err2 := number(strings.TrimSpace(first))
		secondary, err3 := number(strings.TrimSpace(second))
		out[group] = Pair{primary, secondary}
		return errors.Join(err, err2, err3)
	})
}

const (
	// cardBytes is the size of a network interface, and statesBytes the size of a state after the number of its target: reachability,
	// consistency, and when they changed.
	cardBytes   = 24
	statesBytes = 1 + 1 + 8 + 8
)

// nodes reads servers or clients. The list of servers begins with the owner of the root directory.
func nodes(content []byte, servers bool) (numbers []int32, root int32, mirrored bool, err error) {
	r := &reader{rest: content}
	if version := r.u32(); r.err == nil && version != 0 {
		return nil, 0, false, fmt.Errorf("its version is %d, and 7.4 writes 0", version)
	}
	if servers {
		root, mirrored = r.id32(), r.u8() != 0
	}
	r.list(false, func() {
		r.text()
		r.list(false, func() { r.skip(cardBytes) })
		numbers = append(numbers, r.id32())
		r.skip(2 + 2 + 1) // both ports, and the type of the node
	})
	return numbers, root, mirrored, r.end()
}

// pools reads storage pools, each with its members and their fill levels.
func pools(content []byte) (map[int32][]int32, error) {
	r := &reader{rest: content}
	out := map[int32][]int32{}
	ids := func() (ids []int32) {
		r.list(true, func() { ids = append(ids, int32(r.u16())) })
		return ids
	}
	count := r.u64()
	for i := uint64(0); i < count && r.err == nil; i++ {
		id := int32(r.u16())
		r.text()
		out[id] = ids()
		ids() // its buddy groups
		r.list(true, func() { ids() })
		r.list(true, func() { r.list(false, func() { r.u32(); ids() }) })
		r.list(false, func() { r.u16(); r.u32() })
		r.list(true, func() { ids() })
	}
	return out, r.end()
}

// states reads the states of targets. An empty file was made by a person, because the states were lost.
func states(content []byte) error {
	if len(content) == 0 {
		return nil
	}
	r := &reader{rest: content}
	r.list(false, func() { r.u16(); r.skip(statesBytes) })
	return r.end()
}

// reader reads numbers and lists from the beginning of the remaining bytes. After its first error it reads nothing but zeros.
type reader struct {
	rest []byte
	err  error
}

var errShort = errors.New("it ends in the middle")

func (r *reader) skip(n int) []byte {
	if r.err == nil && len(r.rest) < n {
		r.err = errShort
	}
	if r.err != nil {
		return make([]byte, n)
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// little is a number of so many bytes.
func (r *reader) little(n int) uint64 {
	out := uint64(0)
	for _, b := range slices.Backward(r.skip(n)) {
		out = out<<8 | uint64(b)
	}
	return out
}

func (r *reader) u8() byte    { return byte(r.little(1)) }        // #nosec G115 -- it has one byte
func (r *reader) u16() uint16 { return uint16(r.little(2)) }      // #nosec G115 -- it has two bytes
func (r *reader) u32() uint32 { return uint32(r.little(4)) }      // #nosec G115 -- it has four bytes
func (r *reader) u64() uint64 { return r.little(8) }              //
func (r *reader) id32() int32 { return int32(r.u32() << 1 >> 1) } // #nosec G115 -- numbers of BeeGFS have 16 bits

// text is a string with its length before it and a zero behind it.
func (r *reader) text() {
	n := r.u32()
	if r.err == nil && uint64(n) >= uint64(len(r.rest)) {
		r.err = errShort
	}
	if r.err != nil {
		return
	}
	r.skip(int(n))
	if end := r.u8(); end != 0 && r.err == nil {
		r.err = errors.New("a text in it has no end")
	}
}

// list reads the elements of a list. The list begins with its size in bytes if it is sized, and then with its count.
func (r *reader) list(sized bool, each func()) {
	before := len(r.rest)
	size := uint32(0)
	if sized {
		size = r.u32()
	}
	count := r.u32()
	for i := uint32(0); i < count && r.err == nil; i++ {
		each()
	}
	if read := before - len(r.rest); sized && r.err == nil && int64(read) != int64(size) {
		r.err = fmt.Errorf("a list in it says that it has %d bytes and has %d", size, read)
	}
}

func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("it has %d bytes too many", len(r.rest))
	}
	return r.err
}
