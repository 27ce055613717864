package benchmarks

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	// maxQuote bounds a quotation of an output, in bytes as %q prints it.
	maxQuote = 200
	// maxError bounds an error of a library that quotes an output, in bytes.
	maxError = 500
)

// Short cuts a word or a line of a tool's output for a message. The result has at most 200 bytes, also with the escapes of %q.
func Short(text string) string {
	const quotes, ellipsis = `""`, "…"
	if len(text) <= maxQuote && len(strconv.Quote(text)) <= maxQuote+len(quotes) {
		return text
	}
	printed, end := len(ellipsis), 0
	for end < len(text) {
		_, size := utf8.DecodeRuneInString(text[end:])
		if printed += len(strconv.Quote(text[end:end+size])) - len(quotes); printed > maxQuote {
			break
		}
		end += size
	}
	return strings.ToValidUTF8(text[:end], "") + ellipsis
}

// Parse has a tool read an output. Its error has at most 500 bytes, whatever it quotes.
func Parse(tool Tool, spec *v1alpha1.BenchmarkRunSpec, point Point, step int, output []byte) (Report, error) {
	report, err := tool.Parse(spec, point, step, output)
	if err != nil {
		return Report{}, ShortError(err)
	}
	return report, nil
}

// ShortError cuts an error of a library that quotes a tool's output, such as one of encoding/json.
func ShortError(err error) error {
	if len(err.Error()) <= maxError {
		return err
	}
	return errors.New(v1alpha1.Cut(err.Error(), maxError))
}
