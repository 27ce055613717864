package backend

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// VersionAnnotation on a pod template is the version of the filesystem's software that its pods run. It is no part of the template's hash.
const VersionAnnotation = "parallelfs.dev/version"

// Version returns the version that all components of a filesystem run. An upgrade that is not complete does not count.
func Version(fs *v1alpha1.FileSystem) string { return cmp.Or(fs.Status.Version, fs.Spec.Version) }

// VersionOf returns the version with which the daemons of a component are started.
func VersionOf(fs *v1alpha1.FileSystem, component string) string {
	if u := fs.Status.Upgrade; u != nil && slices.Contains(u.Components, component) {
		return u.Version
	}
	return Version(fs)
}

// ChooseVersion returns the version of a filesystem whose spec names none: the one that was chosen before, the one that it runs, or the
// newest one for which the operator has an image whose key is this prefix and a version.
func ChooseVersion(in Input, prefix string, known *regexp.Regexp) (string, error) {
	fs, newest := in.FileSystem, ""
	if chosen := fs.Status.Chosen; chosen != nil {
		newest = chosen.Version
	}
	if newest = cmp.Or(newest, fs.Status.Version); newest != "" {
		return newest, nil
	}
	for key := range in.Images.Daemons {
		if version, is := strings.CutPrefix(key, prefix); is && known.MatchString(version) && CompareVersions(version, newest) > 0 {
			newest = version
		}
	}
	if newest == "" {
		return "", Invalid(v1alpha1.ReasonInvalidSpec, "spec.version is absent, and the operator has no image of a certain version of %s (chart value "+
			"images.daemons, key %s<version>); set spec.version", fs.Spec.Type, prefix)
	}
	return newest, nil
}

// CompareVersions orders versions by their numbers, such as 4.57.5 before 4.57.10.
func CompareVersions(a, b string) int { return slices.Compare(VersionNumbers(a), VersionNumbers(b)) }

// VersionNumbers returns the numbers of a version; a part that is no number counts as 0.
func VersionNumbers(version string) []int {
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		numbers = append(numbers, n)
	}
	return numbers
}
