// Package storedtest holds the stored formats: a committed file shows each format, and a test beside its reader checks that the format is
// still read and written (ADR 0077).
package storedtest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/onsi/gomega"
)

// Fixture returns a committed file below testdata of the test's package. Tests don't write it.
func Fixture(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return content
}

// ExpectWhole fails the test unless every field of a value is set, at any depth, because a fixture must show the whole format.
func ExpectWhole(t *testing.T, value any) {
	t.Helper()
	gomega.NewWithT(t).Expect(unset("", reflect.ValueOf(value))).To(gomega.BeEmpty(), "fields that the fixture does not show")
}

func unset(path string, v reflect.Value) []string {
	if v.IsZero() {
		return []string{path}
	}
	var out []string
	switch v.Kind() { //nolint:exhaustive // all others have no parts
	case reflect.Pointer:
		return unset(path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				out = append(out, unset(path+"."+f.Name, v.Field(i))...)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return []string{path}
		}
		for i := range v.Len() {
			out = append(out, unset(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
	}
	return out
}
