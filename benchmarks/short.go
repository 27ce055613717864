package benchmarks

import "strings"

// Short cuts a line of a tool's output that is quoted in a message, after 200 bytes.
func Short(line string) string {
	const most = 200
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
