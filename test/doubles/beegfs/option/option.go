// Package option holds the options of each BeeGFS program as facts of 7.4.6 and 8.3.1, and reads them from arguments and files like the
// programs. The product's own tables are not used here, so that a mistake in either one is found.
package option

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
)

// Type is the format of an option's value.
type Type int

// The types of options.
const (
	// Text is any text, paths and names.
	Text Type = iota
	// Bool is read by BeeGFS as true (1, y, on, yes, true, or nothing at all) or false (0, n, off, no, false).
	Bool
	// Int is a whole number, which may be negative.
	Int
	// Port is a number from 1 to 65535.
	Port
	// Size is a number, optionally followed by k, m, g, t or p.
	Size
	// Triple is three comma-separated numbers.
	Triple
)

var (
	integer = regexp.MustCompile(`^-?[0-9]+$`)
	size    = regexp.MustCompile(`^[0-9]+[kKmMgGtTpP]?$`)
	triple  = regexp.MustCompile(`^[0-9]+,[0-9]+,[0-9]+$`)
)

// fits reports whether a value has the type. The daemons read an invalid text as zero or false and continue. The doubles refuse it, because
// such a value is a mistake that no test would find otherwise.
func (t Type) fits(value string) bool {
	switch t {
	case Bool:
		switch strings.ToLower(value) {
		case "", "1", "y", "on", "yes", "true", "0", "n", "off", "no", "false":
			return true
		}
		return false
	case Int:
		return integer.MatchString(value)
	case Port:
		number := 0
		if _, err := fmt.Sscanf(value, "%d", &number); err != nil || !integer.MatchString(value) {
			return false
		}
		return number > 0 && number <= 65535
	case Size:
		return size.MatchString(value)
	case Triple:
		return triple.MatchString(value)
	case Text:
	}
	return true
}

// Table holds the options of one program: the type of each by name.
type Table map[string]Type

// Error is the error for a configuration that a program refuses, with the program's text.
type Error struct{ Text string }

// Error returns the text.
func (e *Error) Error() string { return e.Text }

func invalid(format string, arguments ...any) error {
	return &Error{Text: fmt.Sprintf(format, arguments...)}
}

// Values holds the given options.
type Values map[string]string

// Get returns an option's value, or otherwise if it is not given.
func (v Values) Get(name, otherwise string) string {
	if value, given := v[name]; given {
		return value
	}
	return otherwise
}

// Bool reads an option as BeeGFS does: an option without a value is on.
func (v Values) Bool(name string, otherwise bool) bool {
	value, given := v[name]
	if !given {
		return otherwise
	}
	switch strings.ToLower(value) {
	case "", "1", "y", "on", "yes", "true":
		return true
	}
	return false
}

// Int parses a number; an option that is not given has the value otherwise.
func (v Values) Int(name string, otherwise int) int {
	value, given := v[name]
	if !given {
		return otherwise
	}
	number := 0
	_, _ = fmt.Sscanf(value, "%d", &number)
	return number
}

// Bytes parses a size with the binary units of BeeGFS.
func (v Values) Bytes(name, otherwise string) uint64 { return Bytes(v.Get(name, otherwise)) }

// Bytes converts a size such as 512k or 10G.
func Bytes(text string) uint64 {
	if text == "" {
		return 0
	}
	shift := map[byte]uint{'k': 10, 'm': 20, 'g': 30, 't': 40, 'p': 50}[text[len(text)-1]|0x20]
	var number uint64
	_, _ = fmt.Sscanf(text, "%d", &number)
	return number << shift
}

// Daemon reads the arguments of a server, and the file in cfgFile; arguments take precedence.
func Daemon(table Table, arguments []string) (Values, error) {
	given := Values{}
	for _, argument := range arguments {
		given.add(argument)
	}
	// The command line is checked before the file is opened, as in the daemons.
	if err := check(table, given); err != nil {
		return nil, err
	}
	file := given["cfgFile"]
	if file == "" {
		return given, nil
	}
	values, err := File(file)
	if err != nil {
		return nil, err
	}
	maps.Copy(values, given)
	return values, check(table, values)
}

// File reads a configuration file with name=value on each line and comments after #.
func File(path string) (Values, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, invalid("Failed to load map file: %s", path)
	}
	defer file.Close()
	values := Values{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line != "" && !strings.HasPrefix(line, "#") {
			values.add(line)
		}
	}
	return values, lines.Err()
}

func (v Values) add(line string) {
	name, value, _ := strings.Cut(line, "=")
	v[strings.TrimSpace(name)] = strings.TrimSpace(value)
}

// check refuses options and values that the program does not accept.
func check(table Table, values Values) error {
	for _, name := range Sorted(values) {
		kind, known := table[name]
		if !known || !kind.fits(values[name]) && values[name] != "" || kind != Text && kind != Bool && values[name] == "" && !mayBeEmpty[name] {
			return invalid("The config argument '%s' is invalid", name)
		}
	}
	if value := values["logType"]; value != "" && value != "syslog" && value != "logfile" {
		return invalid("The value of config argument logType is invalid.")
	}
	if value, given := values["sysTargetOfflineTimeoutSecs"]; given && values.Int("sysTargetOfflineTimeoutSecs", 0) < 30 {
		return invalid("Invalid sysTargetOfflineTimeoutSecs value %s (must be at least 30)", value)
	}
	if minutes := values.Int("tuneClientAutoRemoveMins", 0); minutes > 0 && minutes < 5 {
		return invalid("config argument tuneClientAutoRemoveMins must be at least 5")
	}
	return nil
}
