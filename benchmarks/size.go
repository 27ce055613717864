package benchmarks

import (
	"fmt"
	"math"
	"strconv"
)

// Kilo is the size of a kilobyte in bytes, as the tools and the API count it.
const Kilo = 1024

// ParseSize returns the bytes of a size as the API writes it: a whole number of kilobytes, or a number with k, m or g
// (powers of 1024).
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

// FormatSize writes a multiple of 1024 bytes, of at least 1024, with the largest unit that divides it: 1048576 is "1m".
func FormatSize(bytes int64) string {
	number, units := bytes/Kilo, "kmg"
	for len(units) > 1 && number%Kilo == 0 {
		number, units = number/Kilo, units[1:]
	}
	return strconv.FormatInt(number, 10) + units[:1]
}

// maxDigits is the length of the largest number that the API takes.
const maxDigits = 12

// ParseCount returns a whole number of at least 1 as the API writes it: digits only, the first of them not 0.
func ParseCount(text string) (int64, error) {
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > maxDigits || text[0] == '0' {
		return 0, fmt.Errorf("%q is no whole number of at least 1 with at most %d digits", text, maxDigits)
	}
	return int64(number), nil
}
