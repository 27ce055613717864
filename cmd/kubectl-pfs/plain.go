package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// obeyed is true for a character that a terminal obeys instead of showing it. These are the control characters of ASCII and of ISO 6429
// (C1), those that reorder a line (UAX #9, explicit directional formatting), and other ends of lines (U+2028, U+2029). Names and messages
// come from disks, manifests and the output of programs.
func obeyed(r rune) bool {
	switch {
	case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// printable replaces the characters that a terminal obeys.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) {
			return '?'
		}
		return r
	}, text)
}

// escaped escapes them in a JSON document, whose own line ends and blanks stay.
func escaped(document string) string {
	if !strings.ContainsFunc(document, func(r rune) bool { return obeyed(r) && r != '\n' }) {
		return document
	}
	var out strings.Builder
	for _, r := range document {
		if obeyed(r) && r != '\n' {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// plainWriter is the way of everything that the program prints. It replaces the characters that a terminal obeys, but for the ends of lines
// and tabs, and bytes that are no UTF-8.
type plainWriter struct {
	to io.Writer
	// begun is the beginning of a character whose other bytes come with the next Write.
	begun []byte
}

// Write implements io.Writer.
func (p *plainWriter) Write(data []byte) (int, error) {
	text := slices.Concat(p.begun, data)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if start := len(text) - n; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				whole = start
			}
			break
		}
	}
	p.begun = append([]byte(nil), text[whole:]...)
	shown := strings.Map(func(r rune) rune {
		if obeyed(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(text[:whole]), "?"))
	if _, err := io.WriteString(p.to, shown); err != nil {
		return 0, err
	}
	return len(data), nil
}

// unchanged returns the way of bytes that are no text, such as a picture.
func unchanged(w io.Writer) io.Writer {
	if p, is := w.(*plainWriter); is {
		return p.to
	}
	return w
}

// control sends a control sequence of the program itself to a terminal. A screen that is gone obeys nothing, and that is no error.
func control(w io.Writer, sequence string) { _, _ = io.WriteString(unchanged(w), sequence) }
