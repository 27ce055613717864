package benchmarks

import "parallelfs.dev/operator/api/v1alpha1"

// Values reads the values of a point one after the other, and keeps the first that can't be used as its error, so that a tool looks at that
// once, behind all of them.
type Values struct {
	point Point
	err   *InvalidPointError
}

// ValuesOf reads the values of a point.
func ValuesOf(point Point) *Values { return &Values{point: point} }

// Has is true when the point has such a parameter with a value: clients has none where the spec leaves it open.
func (v *Values) Has(name v1alpha1.SweepName) bool {
	_, found := v.point.Parameters[name]
	return found
}

// Number is a whole number between two others, or an error that says so.
func (v *Values) Number(name v1alpha1.SweepName, least, most int64) int64 {
	return v.bounded(name, least, most, ParseNumber)
}

// Bytes is a number of bytes between two others, or an error that says so.
func (v *Values) Bytes(name v1alpha1.SweepName, least, most int64) int64 {
	return v.bounded(name, least, most, ParseBytes)
}

func (v *Values) bounded(name v1alpha1.SweepName, least, most int64, parse func(string) (int64, error)) int64 {
	text := v.point.Parameters[name]
	number, err := parse(text)
	switch {
	case err != nil:
		v.Refuse("%s: %v", name, err)
	case number < least:
		v.Refuse("%s: %s is less than %d, the least that can be run", name, text, least)
	case number > most:
		v.Refuse("%s: %s is more than %d, the most that can be run", name, text, most)
	}
	return number
}

// Word is one of some words, or an error that says so.
func (v *Values) Word(name v1alpha1.SweepName, words ...string) string {
	text := v.point.Parameters[name]
	if _, err := ParseValue(Parameter{Name: name, Kind: Word, Words: words}, text); err != nil {
		v.Refuse("%s: %v", name, err)
	}
	return text
}

// Refuse makes the point an invalid one, unless it is already.
func (v *Values) Refuse(format string, args ...any) {
	if v.err == nil {
		v.err = InvalidPoint(format, args...)
	}
}

// Err is an *InvalidPointError when a value could not be used.
func (v *Values) Err() error {
	if v.err == nil {
		return nil
	}
	return v.err
}
