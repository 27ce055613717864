package benchmarks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kilo is the number of bytes in a kilobyte of the tools and the API.
const Kilo = 1024

// units lists the units of sizes as in a quantity of Kubernetes, each 1024 times the previous one. Tools and recorded results may have only
// the first letter, in lower case.
var units = []string{"Ki", "Mi", "Gi", "Ti"}

// cutUnit separates the number of a size from its unit, which is one of the first units of the list. The result of is the factor of the
// unit, or 0 without one.
func cutUnit(text string, most int) (digits string, of int64) {
	for i, unit := range units[:most] {
		for _, suffix := range []string{unit, strings.ToLower(unit[:1])} {
			if digits, found := strings.CutSuffix(text, suffix); found {
				return digits, int64(Kilo) << (10 * i)
			}
		}
	}
	return text, 0
}

// askedSize refuses a size in a spec that is not written as a quantity of Kubernetes, in which k is 1000 and m is a thousandth.
func askedSize(text string, bare bool) error {
	digits, of := cutUnit(text, len(units))
	switch {
	case of != 0 && digits != "" && !strings.HasSuffix(text, "i"):
		return fmt.Errorf("%q has a unit with two meanings; write %s%s", text, digits, units[strings.Index("kmgt", text[len(text)-1:])])
	case of == 0 && !bare:
		return fmt.Errorf("%q is no size: write a whole number of at least 1 with Ki, Mi or Gi behind it, such as 64Ki", text)
	}
	return nil
}

// ParseSize parses a size of iozone, in bytes: a number with Ki, Mi or Gi. Results of tools also have k, m and g, which mean the same, and
// numbers of kilobytes without a unit.
func ParseSize(text string) (int64, error) {
	digits, unit := cutUnit(text, 3)
	unit = cmp.Or(unit, Kilo)
	number, err := ParseCount(digits)
	if err != nil {
		return 0, fmt.Errorf("%q is no size: write a whole number of at least 1 with Ki, Mi or Gi behind it, such as 64Ki", text)
	}
	if number > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is too large: a size must be less than 8589934592Gi", text)
	}
	return number * unit, nil
}

// FormatSize formats a positive multiple of 1024 bytes with the largest unit that divides it, up to Gi: 1048576 is "1Mi".
func FormatSize(bytes int64) string {
	number, at := bytes/Kilo, 0
	for at < 2 && number%Kilo == 0 {
		number, at = number/Kilo, at+1
	}
	return strconv.FormatInt(number, 10) + units[at]
}

// maxDigits is the length of the largest number in the API.
const maxDigits = 12

// ParseCount parses a whole number of at least 1 in the format of the API: only digits, without a leading 0.
func ParseCount(text string) (int64, error) {
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > maxDigits || text[0] == '0' {
		return 0, fmt.Errorf("%q is no whole number of at least 1 with at most %d digits", text, maxDigits)
	}
	return int64(number), nil
}

// ParseNumber parses a whole number of at least 0 in the format of the API: only digits, without a leading 0 except for 0 itself.
func ParseNumber(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	number, err := ParseCount(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number of at least 0 with at most %d digits", text, maxDigits)
	}
	return number, nil
}

// ParseBytes parses a v1alpha1.BenchmarkSize in bytes: a whole number of bytes, or a number with Ki, Mi, Gi or Ti. Results of tools also
// have k, m, g and t, which mean the same.
func ParseBytes(text string) (int64, error) {
	digits, unit := cutUnit(text, len(units))
	unit = max(unit, 1)
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || len(digits) > 15 || digits[0] == '0' && text != "0" {
		return 0, fmt.Errorf("%q is no number of bytes: write a whole number, or one with Ki, Mi, Gi or Ti behind it, such as 64Ki", text)
	}
	if int64(number) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is too large: a size must be less than 8388608Ti", text)
	}
	return int64(number) * unit, nil
}

// FormatBytes formats a number of bytes with the largest unit that divides it: 1048576 is "1Mi", 1000 is "1000", 0 is "0".
func FormatBytes(bytes int64) string {
	unit := ""
	for i := 0; i < len(units) && bytes != 0 && bytes%Kilo == 0; i++ {
		bytes, unit = bytes/Kilo, units[i]
	}
	return strconv.FormatInt(bytes, 10) + unit
}

// ParseValue parses a value of a parameter of a spec: a number, or the bytes of a size. A word is only checked and yields 0.
func ParseValue(p Parameter, text string) (int64, error) {
	switch p.Kind {
	case Count:
		return ParseCount(text)
	case Number:
		return ParseNumber(text)
	case Size:
		if err := askedSize(text, false); err != nil {
			return 0, err
		}
		return ParseSize(text)
	case Bytes:
		if err := askedSize(text, true); err != nil {
			return 0, err
		}
		return ParseBytes(text)
	case Word:
		if text == "" {
			return 0, fmt.Errorf("%s needs a word", p.Name)
		}
		if len(p.Words) > 0 && !slices.Contains(p.Words, text) {
			return 0, fmt.Errorf("%q is none of %s", text, strings.Join(p.Words, ", "))
		}
	}
	return 0, nil
}

// FormatValue formats a number as a value of a parameter that is not a Word.
func FormatValue(p Parameter, number int64) string {
	switch p.Kind {
	case Size:
		return FormatSize(number)
	case Bytes:
		return FormatBytes(number)
	case Count, Number, Word:
	}
	return strconv.FormatInt(number, 10)
}
