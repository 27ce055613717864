package report

import (
	"math"
	"strconv"
	"strings"
)

// thin is the SI's thousands separator (BIPM brochure, 5.4.4): a narrow no-break space.
const thin = "\u202f"

// number formats a value for a person: at least four significant digits if available, separated thousands, no exponent.
func number(v float64) string {
	abs := math.Abs(v)
	decimals := 0
	switch {
	case v == math.Trunc(v) || abs >= 1000:
	case abs >= 100:
		decimals = 1
	case abs >= 10:
		decimals = 2
	case abs >= 1:
		decimals = 3
	case abs > 0:
		decimals = min(3-int(math.Floor(math.Log10(abs))), 12)
	}
	return grouped(strconv.FormatFloat(v, 'f', decimals, 64))
}

// grouped separates the thousands of a decimal number; four digits stay together.
func grouped(text string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "\u2212", rest
	}
	whole, fraction, has := strings.Cut(text, ".")
	if len(whole) > 4 {
		var parts []string
		for len(whole) > 3 {
			parts = append([]string{whole[len(whole)-3:]}, parts...)
			whole = whole[:len(whole)-3]
		}
		whole = strings.Join(append([]string{whole}, parts...), thin)
	}
	if has {
		whole += "." + fraction
	}
	return sign + whole
}

// percent formats a share, such as 0.031 as "3.1 %".
func percent(share float64) string {
	return grouped(strconv.FormatFloat(share*100, 'f', 1, 64)) + "\u00a0%"
}

// change formats a relative difference with its sign.
func change(share float64) string {
	if text := percent(share); share < 0 || text == percent(0) {
		return text
	}
	return "+" + percent(share)
}

// powersOfTwo is true for at least two values that are all powers of two.
func powersOfTwo(values []float64) bool {
	for _, v := range values {
		if fraction, _ := math.Frexp(v); v <= 0 || fraction != 0.5 {
			return false
		}
	}
	return len(values) > 1
}

// niceTicks returns about five multiples of 1, 2, 2.5 or 5 times a power of ten, from 0 to at least top.
func niceTicks(top float64) []float64 {
	if top <= 0 || math.IsInf(top, 0) || math.IsNaN(top) {
		top = 1
	}
	raw := top / 5
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= raw*0.999 {
			step = factor * power
			break
		}
	}
	count := int(math.Ceil(top/step - 1e-9))
	out := make([]float64, 0, count+1)
	for i := range count + 1 {
		out = append(out, float64(i)*step)
	}
	return out
}

// tickLabels formats the numbers of an axis, all with as many decimals as the finest needs.
func tickLabels(values []float64) []string {
	decimals := 0
	for _, v := range values {
		text := strconv.FormatFloat(math.Round(v*1e12)/1e12, 'f', -1, 64)
		if _, fraction, has := strings.Cut(text, "."); has {
			decimals = max(decimals, min(len(fraction), 6))
		}
	}
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, grouped(strconv.FormatFloat(v, 'f', decimals, 64)))
	}
	return out
}
