package benchmarks

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kilo is the number of bytes in a kilobyte of the tools and the API.
const Kilo = 1024

// ParseSize parses a size in the format of the API, in bytes: a whole number of kilobytes, or a number with k, m or g (powers of 1024).
func ParseSize(text string) (int64, error) {
	digits, unit := text, int64(Kilo)
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'k':
			digits = text[:n-1]
		case 'm':
			digits, unit = text[:n-1], Kilo*Kilo
		case 'g':
			digits, unit = text[:n-1], Kilo*Kilo*Kilo
		}
	}
	number, err := ParseCount(digits)
	if err != nil {
		return 0, fmt.Errorf("%q is no size: write a whole number of kilobytes of at least 1, or one with k, m or g behind it, such as 64k", text)
	}
	if number > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is too large: a size must be less than 8589934592g", text)
	}
	return number * unit, nil
}

// FormatSize formats a positive multiple of 1024 bytes with the largest unit that divides it: 1048576 is "1m".
func FormatSize(bytes int64) string {
	number, units := bytes/Kilo, "kmg"
	for len(units) > 1 && number%Kilo == 0 {
		number, units = number/Kilo, units[1:]
	}
	return strconv.FormatInt(number, 10) + units[:1]
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

// byteUnits lists the units of ParseBytes, each 1024 times the previous one.
const byteUnits = "kmgt"

// ParseBytes parses a v1alpha1.BenchmarkSize in bytes: a whole number of bytes, or a number with k, m, g or t (powers of 1024).
func ParseBytes(text string) (int64, error) {
	digits, unit := text, int64(1)
	if n := len(text); n > 1 {
		if at := strings.IndexByte(byteUnits, text[n-1]); at >= 0 {
			digits, unit = text[:n-1], int64(1)<<(10*(at+1))
		}
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || len(digits) > 15 || digits[0] == '0' && text != "0" {
		return 0, fmt.Errorf("%q is no number of bytes: write a whole number, or one with k, m, g or t behind it, such as 64k", text)
	}
	if int64(number) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is too large: a size must be less than 8388608t", text)
	}
	return int64(number) * unit, nil
}

// FormatBytes formats a number of bytes with the largest unit that divides it: 1048576 is "1m", 1000 is "1000", 0 is "0".
func FormatBytes(bytes int64) string {
	unit := ""
	for i := 0; i < len(byteUnits) && bytes != 0 && bytes%Kilo == 0; i++ {
		bytes, unit = bytes/Kilo, byteUnits[i:i+1]
	}
	return strconv.FormatInt(bytes, 10) + unit
}

// ParseValue parses a value of a parameter for expressions: a number, or the bytes of a size. A word is only checked and yields 0.
func ParseValue(p Parameter, text string) (int64, error) {
	switch p.Kind {
	case Count:
		return ParseCount(text)
	case Number:
		return ParseNumber(text)
	case Size:
		return ParseSize(text)
	case Bytes:
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
