//go:build scale

package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// bucket is one bucket of a histogram: how many took at most so many seconds.
type bucket struct{ seconds, count float64 }

// histogram is a histogram of Prometheus, with its buckets in order.
type histogram []bucket

// readHistogram reads a histogram from Prometheus' text format. label is a label that its lines have.
func readHistogram(text, name, label string) histogram {
	var out histogram
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name+"_bucket{") || !strings.Contains(line, label) {
			continue
		}
		_, rest, _ := strings.Cut(line, `le="`)
		limit, rest, _ := strings.Cut(rest, `"`)
		seconds, err := strconv.ParseFloat(limit, 64) // ParseFloat accepts "+Inf"
		_, value, _ := strings.Cut(rest, "} ")
		count, err2 := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err == nil && err2 == nil {
			out = append(out, bucket{seconds, count})
		}
	}
	slices.SortFunc(out, func(a, b bucket) int {
		switch {
		case a.seconds < b.seconds:
			return -1
		case a.seconds > b.seconds:
			return 1
		default:
			return 0
		}
	})
	return out
}

// since returns the difference from an earlier histogram.
func (h histogram) since(before histogram) histogram {
	out := slices.Clone(h)
	for i := range out {
		for _, b := range before {
			if b.seconds == out[i].seconds {
				out[i].count -= b.count
			}
		}
	}
	return out
}

// total is how many there are.
func (h histogram) total() float64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].count
}

// quantile is Prometheus' histogram_quantile, in seconds: within a bucket, all values are equally likely. NaN when there are none.
func (h histogram) quantile(q float64) float64 {
	if h.total() == 0 {
		return math.NaN()
	}
	rank := q * h.total()
	low, below := 0.0, 0.0
	for _, b := range h {
		if b.count >= rank {
			if math.IsInf(b.seconds, 1) {
				return low
			}
			if b.count == below {
				return b.seconds
			}
			return low + (b.seconds-low)*(rank-below)/(b.count-below)
		}
		low, below = b.seconds, b.count
	}
	return low
}

// exponent is the power of n with which a quantity grows: the slope of the least-squares line through the logarithms. It is NaN for fewer
// than two sizes, or for a value that is not above 0.
func exponent(sizes, values []float64) float64 {
	var x, y []float64
	for i, v := range values {
		if !math.IsNaN(v) && v > 0 {
			x, y = append(x, math.Log(sizes[i])), append(y, math.Log(v))
		}
	}
	if len(x) < 2 {
		return math.NaN()
	}
	var meanX, meanY, up, down float64
	for i := range x {
		meanX, meanY = meanX+x[i]/float64(len(x)), meanY+y[i]/float64(len(y))
	}
	for i := range x {
		up, down = up+(x[i]-meanX)*(y[i]-meanY), down+(x[i]-meanX)*(x[i]-meanX)
	}
	return up / down
}

// figure prints a number with its significant digits.
func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
