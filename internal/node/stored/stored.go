// Package stored says what a program makes of the version that something stored has of its form. Forms are frozen (ADR 0077): a program
// reads all versions up to its own, and takes what is newer neither for damaged nor for absent.
package stored

import (
	"encoding/json"
	"fmt"
)

// Known returns nil for a version of a form that a program reads which knows the versions from 1 to newest. The error is the rest of a
// sentence that begins with the name of what is stored; field is where the version stands in it.
func Known(field string, version, newest int) error {
	switch {
	case version > newest:
		return fmt.Errorf("has version %d of its form, and this program knows versions up to %d: the program is older than the file. "+
			"Update the operator to the version that wrote it, or a newer one; nothing is changed until then", version, newest)
	case version < 1:
		return fmt.Errorf("has no version of its form, so no release of the operator wrote it. "+
			"Restore it from a backup; or, if all else in it is right, add %q: %d; nothing is changed until then", field, newest)
	}
	return nil
}

// Check is Known for the field "version" of JSON. It returns nil for what can't be understood: who decodes all of it has more to say then.
func Check(content []byte, newest int) error {
	var form struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(content, &form); err != nil {
		return nil //nolint:nilerr // see above
	}
	return Known("version", form.Version, newest)
}
