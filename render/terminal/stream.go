package terminal

import (
	"strings"

	"github.com/coppice-dev/coppice/render/code"
	"github.com/coppice-dev/coppice/render/plain"
)

// Stream draws Markdown while it is being written. Blocks that are complete become
// finished rows; the last block, which may still change, is drawn again as it grows.
type Stream struct {
	style Style
	tail  string // what is not finished
	gap   bool   // an empty row belongs before tail
	fence string // the line that opened the code block that tail begins in, or ""
}

// maxTail is how much of a block is drawn again when it grows. The beginning of a
// longer one counts as finished.
const maxTail = 8 << 10

// maxColoured is how much code of one block is coloured by its grammar.
const maxColoured = maxTail

// NewStream returns a stream that draws for a terminal.
func NewStream(s Style) *Stream { return &Stream{style: s} }

// Resize sets the width of all further rows.
func (s *Stream) Resize(width int) { s.style.Width = width }

// Add takes the next piece of the text, and returns the rows that are finished with it.
func (s *Stream) Add(text string) (finished []string) {
	s.tail += text
	for {
		at := s.boundary()
		if at == 0 {
			return finished
		}
		finished = append(finished, s.finish(at)...)
	}
}

// Rows returns the unfinished block as it looks now.
func (s *Stream) Rows() []string { return s.addGap(s.draw(s.tail)) }

// End returns the last rows. The text is complete.
func (s *Stream) End() []string {
	rows := s.Rows()
	s.tail, s.fence, s.gap = "", "", s.gap || len(rows) > 0
	return rows
}

// finish draws what is before a place and forgets it.
func (s *Stream) finish(at int) []string {
	block := s.tail[:at]
	rows := s.addGap(s.draw(block))
	s.tail = s.tail[at:]
	s.fence = openFence(s.opened() + block)
	bare := strings.TrimLeft(s.tail, "\n")
	// A block that was cut because it is long continues without a gap.
	s.gap = s.fence == "" && (len(bare) < len(s.tail) || strings.TrimSpace(lastLine(block)) == "")
	if s.fence == "" {
		s.tail = bare
	}
	return rows
}

// lastLine returns the last line of a text that ends with a newline.
func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// addGap leaves a row empty between two blocks.
func (s *Stream) addGap(rows []string) []string {
	if !s.gap || len(rows) == 0 {
		return rows
	}
	return append([]string{""}, rows...)
}

// opened is the line that opened the code block in which tail begins.
func (s *Stream) opened() string {
	if s.fence == "" {
		return ""
	}
	return s.fence + "\n"
}

func (s *Stream) draw(text string) []string {
	if strings.TrimSpace(text) == "" && s.fence == "" || text == "" {
		return nil
	}
	r := newReader(nil, s.style, ShowOptions{}) // it keeps what it draws
	r.coloured = maxColoured
	if s.style.Color {
		r.goesOn = s.fence != ""
		text = s.opened() + text
	}
	r.prose(text)
	return strings.Split(strings.TrimSuffix(r.buf.String(), "\n"), "\n")
}

// boundary returns where the first block that cannot change any more ends, or 0. Such a
// block is followed by an empty line and the beginning of something else. Only whole
// lines are looked at.
func (s *Stream) boundary() int {
	fence, empty, at := s.fence, false, 0
	for line := range strings.Lines(s.tail) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		bare := strings.TrimSpace(line)
		if empty && at > 0 && fence == "" && bare != "" && beginsBlock(line) {
			return at
		}
		at += len(line)
		fence = fenceAfter(fence, bare)
		empty = bare == ""
	}
	if len(s.tail) <= maxTail {
		return 0
	}
	if cut := strings.LastIndexByte(s.tail[:maxTail], '\n') + 1; cut > 0 {
		return cut
	}
	return maxTail - len(partial(s.tail[:maxTail]))
}

// beginsBlock reports whether a line after an empty one begins a block. A line that is
// indented, or an item, may belong to the list before.
func beginsBlock(line string) bool {
	return line[0] != ' ' && line[0] != '\t' && hangingIndent(line) == 0
}

// fenceAfter returns the fence that is open after a line, given the one before it.
func fenceAfter(fence, bare string) string {
	mark := fenceMark(bare)
	switch open := fenceMark(fence); {
	case fence == "" && mark != "":
		return bare
	case fence != "" && strings.HasPrefix(mark, open) && strings.Trim(bare, mark[:1]) == "":
		return ""
	}
	return fence
}

// fenceMark returns the backquotes or tildes that a line begins with, if they are a fence.
func fenceMark(line string) string {
	for _, mark := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, mark); len(line)-len(rest) >= 3 && (mark == "~" || !strings.Contains(rest, mark)) {
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}

// openFence returns the fence that is open at the end of a text.
func openFence(text string) (fence string) {
	for line := range strings.Lines(text) {
		fence = fenceAfter(fence, strings.TrimSpace(line))
	}
	return fence
}

// partial returns the bytes of an incomplete character at the end of a text.
func partial(text string) string {
	for n := 1; n < 4 && n <= len(text); n++ {
		if b := text[len(text)-n]; b >= 0xc0 {
			return text[len(text)-n:]
		} else if b < 0x80 {
			return ""
		}
	}
	return ""
}

// codeColours are the colours of code. What is not here has none.
var codeColours = map[code.Kind]Colour{
	code.Keyword: "35", code.Type: Cyan, code.Function: Blue, code.String: Green, code.Number: Yellow,
	code.Comment: Dim, code.Name: Cyan, code.Heading: Bold, code.Inserted: Green, code.Deleted: Red,
}

// colouredCode draws code in the colours of its language. Lines are broken after they
// are coloured, so each part of a line is painted by itself.
func (p *prose) colouredCode(language, text, before string) {
	p.coloured -= len(text)
	text = strings.ReplaceAll(plain.Text(strings.Trim(text, "\n")), "\t", "    ")
	var b strings.Builder
	for kind, part := range code.Parts(language, text) {
		b.WriteString(p.words(codeColours[kind], part))
	}
	p.paragraph(before, b.String())
}
