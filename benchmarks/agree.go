package benchmarks

import "math"

// Contradict is true if the figures of count values are inconsistent: minimum, maximum, mean and standard deviation, each within near of
// its unrounded value. The deviation may be that of the whole set or of a sample. A count of 0 means an unknown count of at least 2.
func Contradict(count int64, least, most, mean, deviation, near float64) bool {
	if least > mean+near || mean > most+near || deviation < 0 {
		return true
	}
	distance := most - least
	switch count {
	case 0:
		return deviation > distance/math.Sqrt2+2*near || deviation == 0 && distance > 4*near
	case 1:
		return distance > near || deviation > near
	}
	n := float64(count)
	// The minimum and the maximum are two of the values. The others are between them and yield the mean.
	above, below := most-mean, mean-least
	if n == 2 && math.Abs(above-below) > 4*near {
		return true
	}
	lowest := above*above + below*below
	if n > 2 {
		rest := (n*mean - most - least) / (n - 2)
		slack := near * (n + 2) / (n - 2)
		if rest < least-slack || rest > most+slack {
			return true
		}
		lowest += (n - 2) * (rest - mean) * (rest - mean)
	}
	if count <= 3 {
		// In this case all values are known.
		ofAll, ofSample := math.Sqrt(lowest/n), math.Sqrt(lowest/(n-1))
		return math.Abs(deviation-ofAll) > 4*near && math.Abs(deviation-ofSample) > 4*near
	}
	highest := n * (above + 2*near) * (below + 2*near)
	return deviation < math.Sqrt(lowest/n)-4*near || deviation > math.Sqrt(highest/(n-1))+4*near
}

// Near is true if two numbers differ by at most apart, or by at most this part of the larger one.
func Near(a, b, apart, part float64) bool {
	return math.Abs(a-b) <= apart+part*max(math.Abs(a), math.Abs(b))
}
