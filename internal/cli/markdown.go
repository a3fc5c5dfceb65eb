package cli

import (
	"regexp"
	"strings"

	"github.com/coppice-dev/coppice/render/plain"
)

// markdownText makes what somebody wrote harmless inside a document: it may use
// Markdown, but its headings and rules do not become the document's, its HTML is
// text, and a fence that it leaves open is closed.
func markdownText(text string) string {
	var b strings.Builder
	var open fence
	afterText := false // a line of = or - below text makes it a heading
	for line := range strings.SplitSeq(plainLines(text), "\n") {
		switch {
		case open.mark != "":
			if open.closedBy(line) {
				open = fence{}
			}
		case openFence(line).mark != "":
			open = openFence(line)
		default:
			line = escapeStructure(line, afterText)
			afterText = strings.TrimSpace(line) != ""
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if open.mark != "" {
		b.WriteString(open.mark + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainLines has no line ends but newlines, and no control characters: a document
// is often printed to a terminal.
func plainLines(text string) string { return plain.Text(strings.ReplaceAll(text, "\r\n", "\n")) }

// fence is the mark that begins a block of code.
type fence struct{ mark string }

var (
	fenceLine   = regexp.MustCompile("^ {0,3}(`{3,}[^`]*|~{3,}.*)$")
	headingLine = regexp.MustCompile(`^ {0,3}(#{1,6})([ \t]|$)`)
	ruleLine    = regexp.MustCompile(`^ {0,3}(=+|-+|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})[ \t]*$`)
	htmlMark    = regexp.MustCompile(`<([A-Za-z/!?])`)
	autolink    = regexp.MustCompile(`^<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>`)
)

func openFence(line string) fence {
	if !fenceLine.MatchString(line) {
		return fence{}
	}
	line = strings.TrimLeft(line, " ")
	return fence{line[:len(line)-len(strings.TrimLeft(line, line[:1]))]}
}

func (f fence) closedBy(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 {
		return false
	}
	trimmed = strings.TrimRight(trimmed, " \t")
	return len(trimmed) >= len(f.mark) && strings.Trim(trimmed, f.mark[:1]) == ""
}

// escapeStructure takes from a line of prose what would give the document
// structure.
func escapeStructure(line string, afterText bool) string {
	if at := headingLine.FindStringSubmatchIndex(line); at != nil {
		line = line[:at[2]] + `\` + line[at[2]:]
	} else if at := ruleLine.FindStringSubmatchIndex(line); at != nil && (afterText || at[3]-at[2] > 2) {
		line = line[:at[2]] + `\` + line[at[2]:]
	}
	return escapeHTML(line)
}

// escapeHTML makes tags text, except in spans of code, where they are text
// anyway and a backslash would be seen.
func escapeHTML(line string) string {
	if !strings.Contains(line, "<") {
		return line
	}
	parts := strings.Split(line, "`")
	for i := range parts {
		inCode := i%2 == 1 && i < len(parts)-1
		if !inCode {
			parts[i] = escapeTags(parts[i])
		}
	}
	return strings.Join(parts, "`")
}

func escapeTags(text string) string {
	var b strings.Builder
	for {
		at := htmlMark.FindStringIndex(text)
		if at == nil {
			return b.String() + text
		}
		b.WriteString(text[:at[0]])
		text = text[at[0]:]
		if link := autolink.FindString(text); link != "" {
			b.WriteString(link)
			text = text[len(link):]
			continue
		}
		b.WriteString(`\<`)
		text = text[1:]
	}
}

// escapeLine makes a line that is not Markdown appear as it is.
var escapeLine = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "]", `\]`, "#", `\#`).Replace

// fenced puts text into a block of code whose fence is longer than any inside.
func fenced(language, text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	mark := strings.Repeat("`", max(3, longest+1))
	return mark + language + "\n" + text + "\n" + mark
}
