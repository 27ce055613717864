package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

func TestAnAgentOfASecondInstallationNamesTheFirstOneOnceAMinuteAndDoesNothing(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "agent.lock")
	first, err := alone(t.Context(), path, "parallelfs-a/agent-1", time.Hour, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(first.Close()).To(Succeed()) }()

	var said []string
	ctx, end := context.WithTimeout(t.Context(), patience.Bound(50*time.Millisecond))
	defer end()
	_, err = alone(ctx, path, "parallelfs-b/agent-2", time.Millisecond, func(sentence string) { said = append(said, sentence) })
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(said).To(ConsistOf(And(
		HavePrefix("agent parallelfs-a/agent-1 works on this node, so agent parallelfs-b/agent-2 does nothing with its disks: remove one"),
		HaveSuffix("(lock of "+path+")"),
	)))
}
