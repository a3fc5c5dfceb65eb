package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// pageBlock is one piece of an entry on the page. Class says which of the other
// fields count.
type pageBlock struct {
	Class   string // text, thinking, call, result, failed result, image, media
	Summary string
	Text    iter.Seq[string]        // in pieces: it may be large
	HTML    iter.Seq[template.HTML] // in pieces
	URL     template.URL
}

func (b *pageBuilder) blocks(e *session.Entry) []pageBlock {
	switch {
	case e.Message != nil:
		return b.contents(e.Message.Content)
	case e.Compaction != nil:
		note := "A model is sent this instead of what stands above."
		if e.Compaction.TokensBefore > 0 {
			note = fmt.Sprintf("A model is sent this instead of what stands above (%s).", counted(e.Compaction.TokensBefore, "token", "tokens"))
		}
		return []pageBlock{{Class: "media", Summary: note}, {Class: "text", HTML: richText(e.Compaction.Summary)}}
	case e.BranchSummary != nil:
		return []pageBlock{{Class: "text", HTML: richText(e.BranchSummary.Summary)}}
	}
	if text := render.Gist(e, 0); text != "" {
		return []pageBlock{{Class: "text", HTML: richText(text)}}
	}
	return nil
}

func (b *pageBuilder) contents(blocks []session.Content) []pageBlock {
	var out []pageBlock
	for i := range blocks {
		out = append(out, b.content(&blocks[i])...)
	}
	return out
}

func (b *pageBuilder) content(c *session.Content) []pageBlock {
	switch {
	case c.Text != nil:
		return []pageBlock{{Class: "text", HTML: richText(c.Text.Content)}}
	case c.Thinking != nil && c.Thinking.Content == "":
		return nil
	case c.Thinking != nil:
		return []pageBlock{{Class: "thinking", Summary: "thinking", HTML: richText(c.Thinking.Content)}}
	case c.ToolUse != nil:
		b.tools[c.ToolUse.ID] = c.ToolUse.Name
		input, err := indented(c.ToolUse.Input)
		if err != nil {
			input = err.Error()
		}
		return []pageBlock{{Class: "call", Summary: "→ " + oneLine(render.CallGist(c.ToolUse), 300), Text: pieces(input)}}
	case c.ToolResult != nil:
		return b.result(c.ToolResult)
	case c.Image != nil:
		if url := dataURL(c.Image.Source); url != "" {
			return []pageBlock{{Class: "image", Summary: render.MediaGist(c), URL: url}}
		}
	}
	return []pageBlock{{Class: "media", Summary: render.MediaGist(c)}}
}

func (b *pageBuilder) result(r *session.ToolResultContent) []pageBlock {
	text := strings.Trim(r.Content, "\n")
	class, summary := "result", "← "+oneLine(b.tools[r.ToolUseID], 0)
	if r.IsError {
		class, summary = "result failed", summary+" error"
	}
	if lines := 1 + strings.Count(text, "\n"); lines > 1 {
		summary += " · " + counted(lines, "line", "lines")
	} else {
		summary += " · " + oneLine(text, 200)
	}
	out := []pageBlock{{Class: class, Summary: summary, Text: plainPieces(text)}}
	for i := range r.Parts {
		if r.Parts[i].Text == nil { // its text is in Content
			out = append(out, b.content(&r.Parts[i])...)
		}
	}
	return out
}

var imageType = regexp.MustCompile(`^image/[a-z0-9.+-]{1,40}$`)

// dataURL is an image as part of the page, or "" if it is not one that can be:
// the page loads nothing from elsewhere.
func dataURL(s *session.Source) template.URL {
	if s == nil || s.Type == "url" || s.Data == "" || !imageType.MatchString(s.MediaType) {
		return ""
	}
	data, err := base64.StdEncoding.DecodeString(s.Data)
	if err != nil {
		return ""
	}
	return template.URL("data:" + s.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data))
}

// maxPiece is how much of a text is escaped and written at a time.
const maxPiece = 64 << 10

// pieces yields a text in pieces that split neither a character nor a line end.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(maxPiece, len(text))
			for n < len(text) && (!utf8.RuneStart(text[n]) || text[n-1] == '\r' || joins(text[n:])) {
				n++
			}
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// joins reports whether a text begins with a joiner, which is harmless or not
// depending on what stands before it.
func joins(text string) bool {
	return strings.HasPrefix(text, "\u200c") || strings.HasPrefix(text, "\u200d")
}

// plainPieces is plainLines in pieces.
func plainPieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range pieces(text) {
			if !yield(plainLines(piece)) {
				return
			}
		}
	}
}

// richText is text with its code set apart and its strong words strong, in pieces.
// That is all: it is a transcript, and shows what was written.
func richText(text string) iter.Seq[template.HTML] {
	return func(yield func(template.HTML) bool) {
		w := richWriter{yield: yield, afterCode: true}
		begun, empty := false, 0 // lines since the last that is not; those at both ends are left out
		for line := range splitLines(text) {
			if line == "" {
				empty++
				continue
			}
			for ; empty > 0; empty-- {
				if begun {
					w.line("")
				}
			}
			w.line(line)
			begun = true
		}
		w.end()
	}
}

// splitLines yields lines without their ends, which may be of either kind.
func splitLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if whole, ok := strings.CutSuffix(line, "\n"); ok {
				line = strings.TrimSuffix(whole, "\r")
			}
			if !yield(line) {
				return
			}
		}
	}
}

// richWriter writes rich text line by line, and passes it on in pieces.
type richWriter struct {
	yield     func(template.HTML) bool
	stopped   bool // nobody wants more
	buf       strings.Builder
	written   bool
	open      fence // the block of code at hand
	codeLines int   // in it
	afterCode bool
}

func (w *richWriter) line(line string) {
	if len(line) <= maxRich {
		line = plain.Text(line)
	}
	switch {
	case w.open.mark != "" && w.open.closedBy(line):
		w.write("</code></pre>")
		w.open, w.afterCode = fence{}, true
	case w.open.mark != "":
		if w.codeLines++; w.codeLines > 1 {
			w.write("\n")
		}
		w.plain(line)
	case openFence(line).mark != "":
		w.open, w.codeLines = openFence(line), 0
		w.write("<pre><code>")
	case w.afterCode && strings.TrimSpace(line) == "":
	default:
		if w.written && !w.afterCode {
			w.write("\n")
		}
		if len(line) > maxRich {
			w.plain(line)
		} else {
			w.write(richLine(line))
		}
		w.afterCode = false
	}
}

// maxRich is how long a line may be in which marks are looked for: that takes
// several copies of it.
const maxRich = 1 << 20

// plain writes text without marks.
func (w *richWriter) plain(text string) {
	for piece := range pieces(text) {
		w.write(html.EscapeString(plain.Text(piece)))
	}
}

func (w *richWriter) write(markup string) {
	w.buf.WriteString(markup)
	w.written = true
	if w.buf.Len() >= maxPiece {
		w.flush()
	}
}

func (w *richWriter) flush() {
	if w.buf.Len() > 0 && !w.stopped {
		w.stopped = !w.yield(template.HTML(w.buf.String()))
	}
	w.buf.Reset()
}

func (w *richWriter) end() {
	if w.open.mark != "" {
		w.write("</code></pre>")
	}
	w.flush()
}

var strongText = regexp.MustCompile(`\*\*([^*\s](?:[^*]*[^*\s])?)\*\*`)

func richLine(line string) string {
	parts := strings.Split(html.EscapeString(line), "`")
	for i := range parts {
		if i%2 == 1 && i < len(parts)-1 {
			parts[i] = "<code>" + parts[i] + "</code>"
			continue
		}
		parts[i] = strongText.ReplaceAllString(parts[i], "<strong>$1</strong>")
		if i%2 == 1 { // the last, with no partner: the mark stays
			parts[i] = "`" + parts[i]
		}
	}
	line = strings.Join(parts, "")
	if headingLine.MatchString(line) {
		return `<span class="h">` + strings.TrimLeft(line, "# ") + "</span>"
	}
	return line
}

// indented is JSON for people: two spaces, and no escapes for < and >.
func indented(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return strings.TrimRight(b.String(), "\n"), err
}
