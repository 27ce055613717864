package printed_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/printed"
)

func TestALogIsReadWhole(t *testing.T) {
	for name, output := range map[string]string{
		"no output":                "",
		"lines":                    "one\ntwo\n",
		"lines of a terminal":      "one\r\ntwo\r\n",
		"bytes that are no text":   "\xff\x00\n",
		"a line that is like ours": "parallelfs: printed 3 bytes, crc32c 00000000\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := printed.Check(printed.Log([]byte(output)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got)).To(Equal(output))
			g.Expect(printed.LastLine(printed.Log([]byte(output)))).To(Equal(len(printed.Log([]byte(output))) - len(output)))
			g.Expect(printed.LastLine([]byte(output))).To(SatisfyAny(BeZero(), Equal(len(output))))
		})
	}
	t.Run("a line that was begun is ended", func(t *testing.T) {
		g := NewWithT(t)
		got, err := printed.Check(printed.Log([]byte("one")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal("one\n"))
	})
	t.Run("the last line is of a form that stays", func(t *testing.T) {
		NewWithT(t).Expect(string(printed.Log([]byte("123456789")))).To(HaveSuffix("\nparallelfs: printed 10 bytes, crc32c a8dab577\n"))
	})
}

func TestALogThatIsNotWholeIsRefused(t *testing.T) {
	whole, mixed := printed.Log([]byte(strings.Repeat("10 MiB/s\n", 100))), printed.Log([]byte("10 MiB/s\n20 MiB/s\n30 MiB/s\n"))
	for name, c := range map[string]struct {
		log  []byte
		says string
	}{
		"rotated":                  {whole[450:], "printed 900 bytes, and 450 of 900 are left: the kubelet has rotated the log"},
		"rotated at the last line": {whole[900:], "0 of 900 are left"},
		"cut off at the end":       {whole[:450], "its output was read without its last line"},
		"cut off in the last line": {whole[:len(whole)-4], "its output was read without its last line"},
		"empty":                    {nil, "its output was read without its last line"},
		"without its middle":       {append(bytes.Clone(whole[:90]), whole[180:]...), "printed 900 bytes, and 810 of 900 are left"},
		"with a line doubled":      {append(bytes.Clone(whole[:9]), whole...), "printed 900 bytes, and its log has 909"},
		"with a line doubled and one that is missing": {
			append(bytes.Clone(mixed[:18]), append(bytes.Clone(mixed[9:18]), mixed[27:]...)...), "printed 27 bytes whose checksum",
		},
		"of two programs":                       {append(bytes.Clone(whole), whole...), "printed 900 bytes, and its log has"},
		"of which the last line is there twice": {append(bytes.Clone(whole), whole[900:]...), "printed 900 bytes, and its log has"},
		"written by something else too":         {append([]byte("10 MiB/s\n"), whole...), "printed 900 bytes, and its log has 909"},
		"changed":                               {bytes.Replace(whole, []byte("10"), []byte("60"), 1), "is not that of its log"},
		"followed by something":                 {append(bytes.Clone(whole), "more\n"...), "its output was read without its last line"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			output, err := printed.Check(c.log)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(output).To(BeNil())
		})
	}
}
