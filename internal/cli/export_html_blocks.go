package cli

import (
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// pageBlock is one piece of an entry on the page. Class says which of the other
// fields count.
type pageBlock struct {
	Class   string // text, thinking, call, result, failed result, image, media
	Summary string
	Text    string
	HTML    template.HTML
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
	if text := gist(e); text != "" {
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
		return []pageBlock{{Class: "call", Summary: "→ " + oneLine(callGist(c.ToolUse), 300), Text: input}}
	case c.ToolResult != nil:
		return b.result(c.ToolResult)
	case c.Image != nil:
		if url := dataURL(c.Image.Source); url != "" {
			return []pageBlock{{Class: "image", Summary: mediaGist(c), URL: url}}
		}
	}
	return []pageBlock{{Class: "media", Summary: mediaGist(c)}}
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
	out := []pageBlock{{Class: class, Summary: summary, Text: plainLines(text)}}
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

// richText is text with its code set apart and its strong words strong. That is
// all: it is a transcript, and shows what was written.
func richText(text string) template.HTML {
	var b strings.Builder
	var open fence
	var code []string
	lines := strings.Split(strings.Trim(plainLines(text), "\n"), "\n")
	flush := func() {
		fmt.Fprintf(&b, "<pre><code>%s</code></pre>", html.EscapeString(strings.Join(code, "\n")))
		code, open = nil, fence{}
	}
	afterCode := true
	for _, line := range lines {
		switch {
		case open.mark != "" && open.closedBy(line):
			flush()
			afterCode = true
		case open.mark != "":
			code = append(code, line)
		case openFence(line).mark != "":
			open = openFence(line)
		case afterCode && strings.TrimSpace(line) == "":
		default:
			if b.Len() > 0 && !afterCode {
				b.WriteByte('\n')
			}
			b.WriteString(richLine(line))
			afterCode = false
		}
	}
	if open.mark != "" {
		flush()
	}
	return template.HTML(b.String())
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
