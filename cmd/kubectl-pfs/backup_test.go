package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestARunningCopyOfTheMetadataIsShownWithTheChangesThatItLacked(t *testing.T) {
	g := NewWithT(t)
	at := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	fs := &v1alpha1.FileSystem{Status: v1alpha1.FileSystemStatus{MetadataCopies: []v1alpha1.MetadataCopyStatus{
		{Node: "n1", Result: v1alpha1.MetadataCopyProven, Since: at, Proven: &at, Behind: new(int64(12))},
		{Node: "n2", Result: v1alpha1.MetadataCopyRefused, Since: at, Proven: &at, Behind: new(int64(7)), Message: "hole in change files"},
		{Node: "n3", Result: v1alpha1.MetadataCopyProven, Since: at, Proven: &at},
	}}}
	text := strings.Join(strings.Fields(backupsText(fs)), " ")
	g.Expect(text).To(ContainSubstring("n1 is proven since 2026-11-23T12:00:00Z. It was read back at 2026-11-23T12:00:00Z, and was 12 changes behind."))
	g.Expect(text).To(ContainSubstring("n2 is refused since 2026-11-23T12:00:00Z. hole in change files"))
	g.Expect(strings.Count(text, "behind")).To(Equal(1), "nothing is said of a copy that is refused, or whose number is unknown")
}
