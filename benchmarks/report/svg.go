package report

import (
	"html"
	"strings"
)

// face is vgsvg's font style for every text. The page sets it once, with fallbacks for readers without this font.
const (
	face     = "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;"
	boldFace = "font-family:Liberation Sans;font-variant:normal;font-weight:bold;font-style:normal;"
)

// svgElement converts a document of vgsvg to an element of a page: without the prologue and the fixed size, with a title and a description.
func svgElement(document, id, title, description string) string {
	_, body, _ := strings.Cut(document, "<svg ")
	head, body, _ := strings.Cut(body, ">\n")
	view := ""
	if _, rest, has := strings.Cut(head, `viewBox="`); has {
		view, _, _ = strings.Cut(rest, `"`)
	}
	body = strings.ReplaceAll(body, face, "")
	body = strings.ReplaceAll(body, boldFace, "font-weight:bold;")
	var b strings.Builder
	b.WriteString(`<svg role="img" viewBox="` + view + `" xmlns="http://www.w3.org/2000/svg"`)
	b.WriteString(` aria-labelledby="` + id + `-title ` + id + `-description">` + "\n")
	b.WriteString(`<title id="` + id + `-title">` + html.EscapeString(title) + "</title>\n")
	b.WriteString(`<desc id="` + id + `-description">` + html.EscapeString(description) + "</desc>\n")
	b.WriteString(body)
	return b.String()
}
