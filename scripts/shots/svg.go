package main

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// The size of a character, in pixels.
const charWidth, charHeight = 8.4, 18.0

// look is how text is painted.
type look struct {
	colour                        string // the number of an ANSI colour, or ""
	bold, dim, turned, underlined bool
}

// change applies the parameters of an ANSI sequence.
func (l *look) change(params string) {
	for p := range strings.SplitSeq(params, ";") {
		switch p {
		case "", "0":
			*l = look{}
		case "1":
			l.bold = true
		case "2":
			l.dim = true
		case "4":
			l.underlined = true
		case "7":
			l.turned = true
		case "22":
			l.bold, l.dim = false, false
		case "24":
			l.underlined = false
		case "27":
			l.turned = false
		case "39":
			l.colour = ""
		default:
			if len(p) == 2 && (p[0] == '3' || p[0] == '9') {
				l.colour = p[1:]
			}
		}
	}
}

func (l *look) classes() string {
	var names []string
	if l.colour != "" {
		names = append(names, "c"+l.colour)
	}
	for _, class := range []struct {
		name string
		is   bool
	}{{"b", l.bold}, {"d", l.dim}, {"u", l.underlined}, {"t", l.turned}} {
		if class.is {
			names = append(names, class.name)
		}
	}
	return strings.Join(names, " ")
}

// The colours are those of the reader's page: light or dark.
const sheet = `text{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#24292f;white-space:pre}
.bg{fill:#fff;stroke:#d0d7de}.hl{fill:#24292f}.t{fill:#fff}.b{font-weight:600}.d{opacity:.6}.u{text-decoration:underline}
.c1{fill:#cf222e}.c2{fill:#116329}.c3{fill:#7d4e00}.c4{fill:#0969da}.c5{fill:#8250df}.c6{fill:#1b7c83}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117;stroke:#30363d}.hl{fill:#e6edf3}.t{fill:#0d1117}
.c1{fill:#ff7b72}.c2{fill:#7ee787}.c3{fill:#d29922}.c4{fill:#79c0ff}.c5{fill:#d2a8ff}.c6{fill:#76e3ea}}`

// draw makes a picture of a screen.
func draw(screen string, of size) string {
	var b strings.Builder
	width, height := float64(of.columns)*charWidth+20, float64(of.rows)*charHeight+20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img"><style>%s</style>`, width, height, sheet)
	fmt.Fprintf(&b, `<rect class="bg" x=".5" y=".5" width="%.0f" height="%.0f" rx="8"/>`, width-1, height-1)
	var l look
	row := 0
	for line := range strings.Lines(screen) {
		y := 10 + charHeight*float64(row)
		at := 0
		drawRuns(line, &l, func(text string, l look) {
			columns := ansi.StringWidth(text)
			x := 10 + charWidth*float64(at)
			if l.turned {
				fmt.Fprintf(&b, `<rect class="hl" x="%.1f" y="%.0f" width="%.1f" height="%.0f"/>`, x, y, charWidth*float64(columns), charHeight)
			}
			if word := strings.TrimLeft(text, " "); word != "" {
				x += charWidth * float64(len(text)-len(word))
				word = strings.TrimRight(word, " ")
				fmt.Fprintf(&b, `<text x="%.1f" y="%.0f" textLength="%.1f" class="%s">`, x, y+14, charWidth*float64(ansi.StringWidth(word)), l.classes())
				_ = xml.EscapeText(&b, []byte(word)) // it goes to memory
				b.WriteString("</text>")
			}
			at += columns
		})
		row++
	}
	return b.String() + "</svg>\n"
}

// drawRuns calls a function for each run of text that is painted alike. Several spaces are a run of
// their own, so that a font with other widths keeps the columns. A run may begin or end with a space:
// many renderers leave those out, so the caller places the text without them.
func drawRuns(line string, l *look, run func(text string, l look)) {
	line = strings.TrimRight(line, "\n")
	for line != "" {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			end := strings.IndexByte(rest, 'm')
			if end < 0 {
				return
			}
			l.change(rest[:end])
			line = rest[end+1:]
			continue
		}
		end := strings.Index(line, "\x1b[")
		if end < 0 {
			end = len(line)
		}
		text := line[:end]
		for text != "" {
			cut := strings.Index(text, "  ")
			if cut <= 0 {
				cut = len(text) - len(strings.TrimLeft(text, " "))
			}
			if cut == 0 {
				cut = len(text)
			}
			run(text[:cut], *l)
			text = text[cut:]
		}
		line = line[end:]
	}
}
