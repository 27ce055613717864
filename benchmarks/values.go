package benchmarks

import "parallelfs.dev/operator/api/v1alpha1"

// Values parses the values of a point one after the other. It keeps the first fault as its error, so that a tool checks for errors only
// once at the end.
type Values struct {
	point Point
	err   *InvalidPointError
}

// ValuesOf returns a parser for the values of a point.
func ValuesOf(point Point) *Values { return &Values{point: point} }

// Has is true if the point has a value for the parameter: clients has none if the spec leaves it open.
func (v *Values) Has(name v1alpha1.SweepName) bool {
	_, found := v.point.Parameters[name]
	return found
}

// Number returns a whole number between two bounds, or records an error.
func (v *Values) Number(name v1alpha1.SweepName, least, most int64) int64 {
	return v.bounded(name, least, most, ParseNumber)
}

// Bytes returns a number of bytes between two bounds, or records an error.
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

// Word returns one of the given words, or records an error.
func (v *Values) Word(name v1alpha1.SweepName, words ...string) string {
	text := v.point.Parameters[name]
	if _, err := ParseValue(Parameter{Name: name, Kind: Word, Words: words}, text); err != nil {
		v.Refuse("%s: %v", name, err)
	}
	return text
}

// Refuse records an error unless there already is one.
func (v *Values) Refuse(format string, args ...any) {
	if v.err == nil {
		v.err = InvalidPoint(format, args...)
	}
}

// Err returns an *InvalidPointError if a value was invalid.
func (v *Values) Err() error {
	if v.err == nil {
		return nil
	}
	return v.err
}
