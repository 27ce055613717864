package main

import (
	"bytes"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// hostile has what a terminal obeys: a cleared screen, a title, a written clipboard, an 8-bit CSI, and a return to the start of the line. A part
// of it runs from right to left. Its last byte is no UTF-8.
const hostile = "a\x1b[2J\x1b]0;t\a\x1b]52;c;aGk=\a\u009b2Jb\rForged\u202efdp.exe\u2066\u2028\x9bc"

func TestNothingThatIsPrintedIsObeyedByATerminal(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	w := &plainWriter{to: &out}
	for _, part := range []string{hostile, "\tß", "ü\n"} {
		for i := range len(part) { // a character may come in several pieces
			n, err := w.Write([]byte{part[i]})
			g.Expect(n, err).To(Equal(1))
		}
	}
	g.Expect(out.String()).To(Equal("a?[2J?]0;t??]52;c;aGk=??2Jb?Forged?fdp.exe???c\tßü\n"))

	out.Reset()
	control(w, "\x1b[H\x1b[2J")
	g.Expect(out.String()).To(Equal("\x1b[H\x1b[2J"), "the program's own sequences are sent as they are")
}

func TestAScriptReadsEachCharacterOfAValueAndATerminalObeysNone(t *testing.T) {
	const text = "a\x1b[2J\u009b\u202eb\n\t\u2028"
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			g.Expect(encode(&plainWriter{to: &out}, format, map[string]string{"text": text, "plain": "ü"})).To(Succeed())
			g.Expect(out.String()).NotTo(ContainSubstring("?"), "nothing was replaced on the way")
			g.Expect(printable(out.String())).To(HaveLen(out.Len()))
			for _, r := range out.String() {
				g.Expect(obeyed(r) && r != '\n').To(BeFalse(), "%U", r)
			}
			var read map[string]string
			unmarshal := json.Unmarshal
			if format == "yaml" {
				unmarshal = func(data []byte, v any) error { return yaml.Unmarshal(data, v) }
			}
			g.Expect(unmarshal(out.Bytes(), &read)).To(Succeed())
			g.Expect(read).To(Equal(map[string]string{"text": text, "plain": "ü"}))
		})
	}
}
