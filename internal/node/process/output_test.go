package process_test

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/process"
)

func TestTheOutputOfAProgramIsBounded(t *testing.T) {
	const mebibyte = 1 << 20
	g := NewWithT(t)
	for most, kept := range map[int]int{0: mebibyte, mebibyte: mebibyte, mebibyte - 1: mebibyte - 1} {
		out := process.Output{Most: most}
		program := exec.CommandContext(t.Context(), "head", "-c", "1048576", "/dev/zero")
		program.Stdout = &out
		g.Expect(program.Run()).To(Succeed(), "it is not ended: it may be changing a disk")
		g.Expect(out.String()).To(Equal(strings.Repeat("\x00", kept)))
		if kept == mebibyte {
			g.Expect(out.Err()).NotTo(HaveOccurred())
		} else {
			g.Expect(out.Err()).To(MatchError("it has printed more than 1048575 bytes"))
		}
	}
}
