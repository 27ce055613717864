package benchmarks

import "strings"

// Short truncates a line of a tool's output to 200 bytes, for a message.
func Short(line string) string {
	const most = 200
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
