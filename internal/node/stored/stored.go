// Package stored decides whether a program can read the format version of something stored. Formats are frozen (ADR 0077): a program reads
// all versions up to its own, and treats newer ones neither as damaged nor as absent.
package stored

import (
	"encoding/json"
	"fmt"
)

// Known returns nil if a program that reads the format versions from 1 to newest can read this version. The error continues a sentence that
// begins with the name of the stored thing; field is the field of the version.
func Known(field string, version, newest int) error {
	switch {
	case version > newest:
		return fmt.Errorf("has version %d of its form, and this program reads versions up to %d: the program is older than the file. "+
			"Update the operator to the version that wrote it, or a newer one; nothing is changed until then", version, newest)
	case version < 1:
		return fmt.Errorf("has no version of its form, so no release of the operator wrote it. "+
			"Restore it from a backup; or, if all else in it is right, add %q: %d; nothing is changed until then", field, newest)
	}
	return nil
}

// Check is Known for the field "version" of JSON. It returns nil for text that can't be parsed, because the full decoder has a better
// error.
func Check(content []byte, newest int) error {
	var form struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(content, &form); err != nil {
		return nil //nolint:nilerr // see above
	}
	return Known("version", form.Version, newest)
}
