package filesystem

import (
	"encoding/json"

	"parallelfs.dev/operator/api/v1alpha1"
)

// largestStatus is how large a status may become in JSON, in bytes. A filesystem that is well needs a twentieth of that at any size.
const largestStatus = 64 << 10

// fit makes a status small enough, where very much is wrong at once: first it shortens all messages alike, then it leaves out the last of
// what is missing and of what a check has found. The summary and the result of the check still say that they are there. What is on
// record, such as maintenance and candidates, stays.
func fit(status *v1alpha1.FileSystemStatus) {
	for _, most := range []int{2048, 1024, 512, 256, 128} {
		if sizeOf(status) <= largestStatus {
			return
		}
		shorten(status, most)
	}
	for len(status.Missing) > 0 && sizeOf(status) > largestStatus {
		status.Missing = status.Missing[:len(status.Missing)-1]
	}
	for status.Check != nil && len(status.Check.Findings) > 0 && sizeOf(status) > largestStatus {
		status.Check.Findings = status.Check.Findings[:len(status.Check.Findings)-1]
	}
}

// shorten cuts the messages of a status. None of them becomes empty: that means something else.
func shorten(status *v1alpha1.FileSystemStatus, most int) {
	cut := func(message *string) { *message = v1alpha1.Cut(*message, most) }
	for i := range status.Conditions {
		cut(&status.Conditions[i].Message)
	}
	for i := range status.Missing {
		cut(&status.Missing[i].Message)
	}
	for i := range status.MetadataCopies {
		cut(&status.MetadataCopies[i].Message)
	}
	for i := range status.Backups {
		cut(&status.Backups[i].Message)
	}
	if status.Check != nil {
		cut(&status.Check.Message)
	}
	if status.Recovery != nil {
		for i := range status.Recovery.Candidates {
			cut(&status.Recovery.Candidates[i].Message)
		}
	}
}

// sizeOf is the size of a status as the API server gets it.
func sizeOf(status *v1alpha1.FileSystemStatus) int {
	raw, err := json.Marshal(status)
	if err != nil {
		return 0 // it can't be written either, and that says why
	}
	return len(raw)
}
