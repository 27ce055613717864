package options

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind is the type of an option's value. The daemons read a value that they can't parse as 0, or as false, and continue (StringTk and
// UnitTk of 7.4.6 and 8.3.1), so only this package reports a wrong value.
type kind struct {
	// read is how the daemon reads it, as testdata has it: bool, int, size, text, list, duration, quantity or range.
	read string
	// want ends the sentence "the value must be ...".
	want string
	ok   func(value string) bool
	// form converts the value to TOML, nil for a value that is written unchanged. The other configuration files have no quotes.
	form func(value string) string
}

// many is the highest number of an option that has no other limit: the daemons keep most of them in 32 bits with a sign.
const many = math.MaxInt32

var (
	// boolean accepts no other words: the daemons read an empty value as true as well, and a misspelled one as false.
	boolean = kind{read: "bool", want: "true or false", ok: func(v string) bool { return v == "true" || v == "false" }}
	// plainText is a value that only the operator sets.
	plainText = kind{read: "text", want: "text without quotes", ok: func(v string) bool {
		return !strings.ContainsAny(v, "\"\\\n\r\t")
	}, form: inQuotes}
	// absolutePath is an absolute path, or empty.
	absolutePath = kind{read: "text", want: "an absolute path", ok: func(v string) bool {
		return v == "" || strings.HasPrefix(v, "/") && plainText.ok(v)
	}, form: inQuotes}
	// commaList has commas between its elements.
	commaList = kind{read: "list", want: "a list with commas", ok: plainText.ok, form: func(v string) string {
		return "[" + inQuotes(strings.Join(strings.Split(v, ","), `", "`)) + "]"
	}}
	// networkList has the networks that connNoDefaultRoute leaves out.
	networkList = kind{read: "text", want: "networks with commas between them, such as 0.0.0.0/0", ok: func(v string) bool {
		for network := range strings.SplitSeq(v, ",") {
			if _, err := netip.ParsePrefix(network); err != nil {
				return false
			}
		}
		return true
	}}
	// timeSpan is a time of the management service of BeeGFS 8, in whole seconds.
	timeSpan = kind{read: "duration", want: "a time such as 180s, 30m or 2h", ok: func(v string) bool {
		_, ok := secondsOf(v)
		return ok
	}, form: inQuotes}
	// quantity is a number of bytes or inodes of the management service of BeeGFS 8.
	quantity = kind{read: "quantity", want: "a number such as 10M, or a size such as 512GiB", ok: func(v string) bool {
		_, ok := quantityOf(v)
		return ok
	}, form: inQuotes}
	// idRange is a range of user or group ids, of the management service of BeeGFS 8.
	idRange = kind{read: "range", want: "a range of ids such as 1000-1100", ok: func(v string) bool {
		low, high, ok := strings.Cut(v, "-")
		from, err1 := strconv.ParseUint(low, 10, 32)
		to, err2 := strconv.ParseUint(high, 10, 32)
		return ok && err1 == nil && err2 == nil && from <= to
	}, form: inQuotes}
	// twoIDs are the ends of a range of user or group ids, of the management service of BeeGFS 7.
	twoIDs = kind{read: "text", want: "two ids with a comma between them, such as 1000,1100", ok: func(v string) bool {
		return v == "" || integers(2).ok(v)
	}}
)

func inQuotes(v string) string { return `"` + v + `"` }

// integer is a whole number from least to most, or one of the words.
func integer(least, most int64, words ...string) kind {
	k := kind{
		read: "int",
		want: fmt.Sprintf("a whole number from %d to %d", least, most),
		ok: func(v string) bool {
			n, err := strconv.ParseInt(v, 10, 64)
			return slices.Contains(words, v) || err == nil && n >= least && n <= most && !strings.HasPrefix(v, "+")
		},
	}
	if len(words) > 0 {
		k.want += ", or " + strings.Join(words, " or ")
	}
	return k
}

// integers are so many whole numbers with commas between them.
func integers(count int) kind {
	return kind{
		read: "text",
		want: fmt.Sprintf("%d whole numbers with commas between them", count),
		ok: func(v string) bool {
			parts := strings.Split(v, ",")
			return len(parts) == count && !slices.ContainsFunc(parts, func(p string) bool { return !integer(0, many).ok(p) })
		},
	}
}

// oneOf is one of the words.
func oneOf(words ...string) kind {
	return kind{
		read: "text",
		want: "one of " + strings.Join(words, ", "),
		ok:   func(v string) bool { return slices.Contains(words, v) },
		form: inQuotes,
	}
}

// someOf are some of the words, with commas between them, or the word none.
func someOf(words ...string) kind {
	return kind{
		read: "text",
		want: "none, or, with commas between them, some of " + strings.Join(words, ", "),
		ok: func(v string) bool {
			return v == "none" || !slices.ContainsFunc(strings.Split(v, ","), func(p string) bool { return !slices.Contains(words, p) })
		},
	}
}

// sizeFrom is a number of bytes of at least so many, in the form of BeeGFS: k, m, g, t and p, large or small, are powers of 1024.
func sizeFrom(least int64) kind {
	k := kind{read: "size", want: "a size such as 512k, 4m or 1T"}
	if least > 0 {
		k.want += fmt.Sprintf(", of %d bytes at least", least)
	}
	k.ok = func(v string) bool {
		n, ok := sizeOf(v)
		return ok && n >= least
	}
	return k
}

// chunkSize is a power of two of at least 64 KiB.
var chunkSize = kind{read: "size", want: "a power of two of at least 64k, such as 512k", ok: func(v string) bool {
	n, ok := sizeOf(v)
	return ok && n >= 64<<10 && n&(n-1) == 0
}}

var sizePattern = regexp.MustCompile(`^([0-9]+)([kmgtp]?)$`)

// sizeOf reads a size of BeeGFS, in bytes (UnitTk::strHumanToInt64, 7.4.6, which has no "E").
func sizeOf(v string) (int64, bool) {
	parts := sizePattern.FindStringSubmatch(strings.ToLower(v))
	if parts == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	shift := 10 * (strings.Index("kmgtp", parts[2]) + 1)
	if parts[2] == "" {
		shift = 0
	}
	if err != nil || n > math.MaxInt64>>shift {
		return 0, false
	}
	return n << shift, true
}

var durationPattern = regexp.MustCompile(`^([0-9]{1,9})([smhd]?)$`)

// secondsOf reads a time of the management service of BeeGFS 8 (shared/src/parser/duration.rs, 8.3.1), where it is whole seconds.
func secondsOf(v string) (int64, bool) {
	parts := durationPattern.FindStringSubmatch(v)
	if parts == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	return n * map[string]int64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[parts[2]], err == nil
}

var quantityPattern = regexp.MustCompile(`^([0-9]+)(?:([kMGTPE])(i?))?B?$`)

// quantityOf reads a number of the management service of BeeGFS 8 (shared/src/parser/integer_unit.rs, 8.3.1). There, M is a million and
// Mi is 1024 * 1024, and an unknown unit is ignored: 10K is 10. Here, an unknown unit is refused.
func quantityOf(v string) (uint64, bool) {
	parts := quantityPattern.FindStringSubmatch(v)
	if parts == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return 0, false
	}
	base := uint64(1000)
	if parts[3] != "" {
		base = 1024
	}
	if parts[2] == "" {
		return n, true
	}
	for range strings.Index("kMGTPE", parts[2]) + 1 {
		if n > math.MaxInt64/base {
			return 0, false
		}
		n *= base
	}
	return n, true
}
