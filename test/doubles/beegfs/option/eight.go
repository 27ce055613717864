package option

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the kind of value of an option of beegfs-mgmtd 8.
type Kind int

// Option kinds of beegfs-mgmtd 8 (mgmtd/src/config.rs, 8.3.1).
const (
	// Switch is on if it is named, or named with true.
	Switch Kind = iota
	// Word is any text.
	Word
	// Number is a whole number.
	Number
	// Duration is a number with a unit, such as 180s or 30m.
	Duration
	// List is a comma-separated list of texts; in a file it is an array.
	List
	// Section is a table of numbers with units, only in a file.
	Section
)

// Eight is one option of beegfs-mgmtd 8. Line is true if the command line accepts it, and File if the configuration file does.
type Eight struct {
	Kind       Kind
	Line, File bool
}

// ManagementEight returns the options of beegfs-mgmtd 8 (mgmtd/src/config.rs, 8.3.1).
func ManagementEight() map[string]Eight {
	table := map[string]Eight{
		"init": {Switch, true, false}, "fs-uuid": {Word, true, false}, "upgrade": {Switch, true, false},
		"import-from-v7": {Word, true, false}, "config-file": {Word, true, false},
	}
	both := map[Kind][]string{
		Switch: {"tls-disable", "ipv6-disable", "auth-disable", "registration-disable", "license-disable", "quota-enable", "quota-enforce",
			"daemonize"},
		Word: {"db-file", "log-target", "log-level", "tls-cert-file", "tls-key-file", "auth-file", "license-cert-file", "license-lib-file",
			"quota-user-ids-file", "quota-user-ids-range", "quota-group-ids-file", "quota-group-ids-range", "daemonize-pid-file"},
		Number: {"beemsg-port", "grpc-port", "port-shift", "connection-limit", "max-blocking-threads", "quota-user-system-ids-min",
			"quota-group-system-ids-min"},
		Duration: {"node-offline-timeout", "client-auto-remove-timeout", "quota-update-interval"},
		List:     {"interfaces"},
	}
	for kind, names := range both {
		for _, name := range names {
			table[name] = Eight{kind, true, true}
		}
	}
	for _, name := range []string{"cap-pool-meta-limits", "cap-pool-dynamic-meta-limits", "cap-pool-storage-limits",
		"cap-pool-dynamic-storage-limits"} {
		table[name] = Eight{Section, false, true}
	}
	return table
}

// limitKeys returns the keys of a section; the second list has those of the dynamic sections only (mgmtd/src/cap_pool.rs, 8.3.1).
func limitKeys(section string) []string {
	keys := []string{"inodes-low", "inodes-emergency", "space-low", "space-emergency"}
	if strings.Contains(section, "dynamic") {
		keys = append(keys, "inodes-normal-threshold", "inodes-low-threshold", "space-normal-threshold", "space-low-threshold")
	}
	return keys
}

// UsageError is the error for an invalid command line of beegfs-mgmtd 8, which exits with 2.
type UsageError struct{ Text string }

// Error returns the text.
func (e *UsageError) Error() string { return e.Text }

// ReadEight reads the arguments of beegfs-mgmtd 8 and its file; arguments take precedence. Values of sections are named section.key.
func ReadEight(arguments []string) (Values, error) {
	line, err := arguments8(arguments)
	if err != nil {
		return nil, err
	}
	path, named := line["config-file"]
	if !named {
		path = "/etc/beegfs/beegfs-mgmtd.toml"
	}
	content, err := os.ReadFile(path)
	if err != nil {
		if named {
			return nil, invalid("Could not open config file at %q: %s (os error 2)", path, SysErr(err))
		}
		return line, nil
	}
	values, err := toml(string(content))
	if err != nil {
		return nil, err
	}
	maps.Copy(values, line)
	return values, checkEight(values)
}

func arguments8(arguments []string) (Values, error) {
	table, values := ManagementEight(), Values{}
	for i := 0; i < len(arguments); i++ {
		name, value, joined := strings.Cut(arguments[i], "=")
		bare, dashed := strings.CutPrefix(name, "--")
		option, known := table[bare]
		if !dashed || !known || !option.Line {
			return nil, &UsageError{Text: fmt.Sprintf("unexpected argument '%s' found", arguments[i])}
		}
		if !joined {
			next := i+1 < len(arguments) && !strings.HasPrefix(arguments[i+1], "--")
			switch {
			case next && (option.Kind != Switch || isBool(arguments[i+1])):
				i++
				value = arguments[i]
			case option.Kind == Switch:
				value = "true"
			default:
				return nil, &UsageError{Text: fmt.Sprintf("a value is required for '--%s <VALUE>' but none was supplied", bare)}
			}
		}
		if _, twice := values[bare]; twice {
			return nil, &UsageError{Text: fmt.Sprintf("the argument '--%s' cannot be used multiple times", bare)}
		}
		if problem := wrong(option.Kind, bare, value); problem != "" {
			return nil, &UsageError{Text: fmt.Sprintf("invalid value '%s' for '--%s': %s", value, bare, problem)}
		}
		values[bare] = value
	}
	return values, nil
}

func isBool(text string) bool { return text == "true" || text == "false" }

// wrong describes what is wrong with a value.
func wrong(kind Kind, name, value string) string {
	switch kind {
	case Switch:
		if !isBool(value) {
			return "[possible values: true, false]"
		}
	case Number:
		number, err := strconv.ParseUint(value, 10, 32)
		if err != nil || strings.HasSuffix(name, "-port") && number > 65535 {
			return "invalid digit found in string"
		}
	case Duration:
		if _, err := ParseDuration(value); err != nil {
			return err.Error()
		}
	case Word, List, Section:
	}
	allowed := map[string][]string{
		"log-target": {"journald", "stderr", "std"}, "log-level": {"off", "error", "warn", "info", "debug", "trace"},
	}[name]
	if allowed != nil && !slices.Contains(allowed, value) {
		return "[possible values: " + strings.Join(allowed, ", ") + "]"
	}
	return ""
}

// ParseDuration parses a duration of beegfs-mgmtd 8: a whole number and its unit (shared/src/parser/duration.rs, 8.3.1).
func ParseDuration(text string) (time.Duration, error) {
	text = strings.ReplaceAll(text, " ", "")
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	unit := map[string]time.Duration{
		"": time.Second, "ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute,
		"h": time.Hour,
		"d": 24 * time.Hour,
	}[text[len(digits):]]
	number, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || unit == 0 {
		return 0, fmt.Errorf("invalid duration %q: a whole number and a unit, such as 180s", text)
	}
	return time.Duration(number) * unit, nil
}

var unit = regexp.MustCompile(`^(\d+) *([kMGTPE]?i?)[[:alpha:]]*$`)

// Units parses a number of beegfs-mgmtd 8 with a unit: k, M, G, T of 1000, or ki, Mi, Gi, Ti of 1024 (shared/src/parser/integer_unit.rs,
// 8.3.1).
func Units(text string) (uint64, error) {
	parts := unit.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return 0, fmt.Errorf("invalid number %q: a whole number, with a unit such as Gi or nothing", text)
	}
	number, err := strconv.ParseUint(parts[1], 10, 64)
	factor, known := map[string]uint64{
		"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
		"ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}[parts[2]]
	if err != nil || !known {
		return 0, fmt.Errorf("invalid number %q: a whole number, with a unit such as Gi or nothing", text)
	}
	return number * factor, nil
}

func checkEight(values Values) error {
	if values.Bool("quota-enforce", false) && !values.Bool("quota-enable", false) {
		return invalid("Invalid config: Quota enforcement requires quota being enabled")
	}
	for role, title := range map[string]string{"meta": "meta", "storage": "storage"} {
		section := "cap-pool-" + role + "-limits."
		for _, kind := range []string{"inodes", "space"} {
			low, lowErr := Units(values.Get(section+kind+"-low", "18446744073709551615"))
			emergency, emergencyErr := Units(values.Get(section+kind+"-emergency", "0"))
			if lowErr == nil && emergencyErr == nil && low < emergency {
				return invalid("Invalid config: Capacity pool %s limits: The low limit is lower than the emergency limit", title)
			}
		}
	}
	return nil
}
