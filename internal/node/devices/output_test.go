package devices_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/devices"
)

func TestAProgramThatPrintsTooMuchHasNoAnswer(t *testing.T) {
	g := NewWithT(t)
	out, err := devices.Execute(t.Context(), "head", "-c", "16777217", "/dev/zero")
	g.Expect(err).To(MatchError("head: it has printed more than 16777216 bytes"))
	g.Expect(out.Stdout).To(BeEmpty())
}
