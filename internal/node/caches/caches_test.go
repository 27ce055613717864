package caches_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/caches"
	"parallelfs.dev/operator/test/patience"
)

func TestWhichRequestsAreCarriedOut(t *testing.T) {
	cases := map[string]struct {
		request, last string
		due           bool
	}{
		"nothing is asked":                     {last: "run/1"},
		"the first request":                    {request: "run/1", due: true},
		"what was done is not done again":      {request: "run/1", last: "run/1"},
		"another request":                      {request: "run/2", last: "run/1", due: true},
		"the longest one":                      {request: strings.Repeat("x", 128), due: true},
		"one that is too long for the answer":  {request: strings.Repeat("x", 129)},
		"one that would not stand in one line": {request: "run\n1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(caches.Due(c.request, c.last)).To(Equal(c.due))
		})
	}
}

// kernel is a double of /proc/sys/vm/drop_caches.
func kernel(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "drop_caches")
	NewWithT(t).Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func TestCachesAreDroppedAfterEverythingWasWritten(t *testing.T) {
	g := NewWithT(t)
	file := kernel(t)
	before := "not called"
	d := caches.Dropper{File: file, Sync: func() { before = read(t, file) }, Patience: time.Minute}
	g.Expect(d.Drop(t.Context())).To(Succeed())
	g.Expect(before).To(BeEmpty(), "sync came first")
	g.Expect(read(t, file)).To(Equal("3\n"))
	g.Expect(d.Drop(t.Context())).To(Succeed(), "again does no harm")
}

func TestAKernelThatRefusesIsAnError(t *testing.T) {
	d := caches.Dropper{File: filepath.Join(t.TempDir(), "absent"), Sync: func() {}, Patience: time.Minute}
	NewWithT(t).Expect(d.Drop(t.Context())).To(MatchError(ContainSubstring("can't drop the caches")))
}

func TestADiskThatDoesNotAnswerIsReportedAndNotReadTwiceAtOnce(t *testing.T) {
	g := NewWithT(t)
	file := kernel(t)
	hang := make(chan struct{})
	d := caches.Dropper{File: file, Sync: func() { <-hang }, Patience: time.Millisecond}
	g.Expect(d.Drop(t.Context())).To(MatchError(ContainSubstring("did not write within 1ms")))
	g.Expect(d.Drop(t.Context())).To(MatchError(ContainSubstring("still writes")))
	g.Expect(read(t, file)).To(BeEmpty())
	close(hang)
	d.Patience = time.Minute
	g.Eventually(func() error { return d.Drop(t.Context()) }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
}

func TestAnAgentThatIsStoppedDoesNotWait(t *testing.T) {
	g := NewWithT(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	d := caches.Dropper{File: kernel(t), Sync: func() { <-hang }, Patience: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(d.Drop(ctx)).To(MatchError(context.Canceled))
}
