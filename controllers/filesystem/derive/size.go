package derive

import (
	"encoding/json"

	"parallelfs.dev/operator/api/v1alpha1"
)

// largestStatus is the maximum size of a status as JSON without its certificate, in bytes. A healthy filesystem of any size needs a
// twentieth of it. The certificate has its own bounds (CertificateStatus), 13 KiB in all: a shortened certificate would verify no server.
const largestStatus = 64 << 10

// Fit makes a status small enough if very much is wrong at once. First it shortens all messages equally, then it drops the last entries of
// what is missing and of a check's findings. The summary and the result of the check still count them. Records, such as maintenance and
// candidates, stay.
func Fit(status *v1alpha1.FileSystemStatus) {
	for _, most := range []int{2048, 1024, 512, 256, 128, 64} {
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

// shorten cuts the messages of a status. No message becomes empty, because an empty one has a meaning.
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

// sizeOf returns the size of a status without its certificate, in its encoding for the API server.
func sizeOf(status *v1alpha1.FileSystemStatus) int {
	without := *status
	without.Certificate = nil
	raw, err := json.Marshal(without)
	if err != nil {
		return 0 // the write fails too, with the reason
	}
	return len(raw)
}
