// Package markdown writes a conversation as a Markdown document, and embeds text by
// strangers in one safely.
//
// A message may use Markdown: its lists, tables, emphasis and code are rendered. But it
// cannot reach outside its own section. It has no headings, rules, images or HTML of its
// own, its links lead only to web pages and mail addresses, and nothing that it leaves open
// swallows what comes after it. That holds for every CommonMark renderer, whether or not it
// passes raw HTML through.
//
// [Text] achieves this by asking a parser. It escapes exactly what the parser finds out of
// place, and parses the result again. If that does not converge within a few rounds, or the
// text is too large to parse, the text becomes a code block, in which nothing has a
// meaning. So the output is safe because it was checked, not because we thought of every
// way to write a tag.
package markdown

import (
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render/plain"
)

const (
	// maxParsed is the size of the largest text that is parsed. Some texts take a parser
	// quadratic time.
	maxParsed = 256 << 10
	maxRounds = 8
)

// Text returns untrusted text as a part of a document, on lines of its own and without
// control characters.
func Text(text string) string {
	text = strings.Trim(plain.Text(text), "\n")
	if guest, ok := neutralise(columns(text)); ok {
		return guest
	}
	return Fence("", text)
}

// Quote returns text as a quotation, with a line of our own above it.
func Quote(title, text string) string {
	if quoted, ok := neutralise(quote(title, Text(text))); ok { // again, because what comes before it may matter
		return quoted
	}
	return quote(title, Fence("", plain.Text(text)))
}

func quote(title, text string) string {
	lines := strings.Split("**"+Line(title)+"**\n\n"+text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// neutralise escapes what is out of place in a text until nothing is, and reports whether it
// succeeded.
func neutralise(text string) (string, bool) {
	if IsCostly(text) {
		return "", false
	}
	for range maxRounds {
		f := examine(text)
		if f.lost {
			return "", false
		}
		if len(f.escapes) > 0 {
			text = escape(text, f.escapes)
			continue
		}
		if f.contained {
			return text, true
		}
		closed, ok := closeFence(text)
		if !ok {
			return "", false
		}
		text = closed
	}
	return "", false
}

// escape makes characters literal: with a backslash, except for <, which becomes an
// entity. Renderers that turn bare addresses into links would take a backslash after an
// address for a part of it.
func escape(text string, places []int) string {
	slices.Sort(places)
	var b strings.Builder
	at := 0
	for _, place := range slices.Compact(places) {
		before := text[at:place]
		at = place
		if text[place] != '<' {
			b.WriteString(before + `\`)
			continue
		}
		at++
		if backslashes := len(before) - len(strings.TrimRight(before, `\`)); backslashes%2 == 1 {
			before = before[:len(before)-1] // the backslash that escaped it
		}
		b.WriteString(before + "&lt;")
	}
	b.WriteString(text[at:])
	return b.String()
}

// columns turns the tabs before the words of each line into spaces, because renderers
// disagree on the width of a tab in lists and quotations. In a code block at the margin
// they mean nothing and stay.
func columns(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	lines := strings.Split(text, "\n")
	fence := ""
	for i, line := range lines {
		mark := line[:len(line)-len(strings.TrimLeft(line, line[:min(len(line), 1)]))]
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark {
				fence = ""
			}
		case len(mark) >= 3 && (mark[0] == '~' || mark[0] == '`' && !strings.Contains(line[len(mark):], "`")):
			fence = mark
		default:
			lines[i] = expandTabs(line)
		}
	}
	return strings.Join(lines, "\n")
}

func expandTabs(line string) string {
	words := len(line) - len(strings.TrimLeft(line, opening+"\t"))
	var b strings.Builder
	for _, c := range line[:words] {
		if c != '\t' {
			b.WriteRune(c)
			continue
		}
		b.WriteString("    "[b.Len()%4:])
	}
	return b.String() + line[words:]
}

// opening are the characters that begin quotations and lists.
const opening = " >-+*0123456789.)"

// closeFence ends a code block that reaches beyond the text. A fence closes what a
// shorter or equal one of its kind has opened, so the longest of each kind is enough.
func closeFence(text string) (string, bool) {
	for _, kind := range []string{"`", "~"} {
		closed := text + "\n" + strings.Repeat(kind, max(3, longestRun(text, kind[0])))
		if examine(closed).contained {
			return closed, true
		}
	}
	return "", false
}

// IsCostly reports whether a parser would take long over a text. It may compare
// everything that it tries to pair with everything else in the paragraph, and
// everything that a line opens with everything that is open.
func IsCostly(text string) bool {
	const budget = 10_000_000
	cost, marks := 0, 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			marks = 0
		}
		opens := line[:len(line)-len(strings.TrimLeft(line, opening))]
		cost += len(opens) * len(opens)
		for i := range len(line) {
			if strings.IndexByte("*_[]<`!", line[i]) >= 0 {
				marks++
				cost += 2 * marks
			}
		}
		if cost > budget {
			return true
		}
	}
	return len(text) > maxParsed
}

// Fence puts text into a code block with a fence that is longer than any inside.
// language is one that we set.
func Fence(language, text string) string {
	mark := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return mark + language + "\n" + text + "\n" + mark
}

func longestRun(text string, of byte) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Line returns text on one line that renders literally, for titles and names.
func Line(text string) string { return escapeLine.Replace(plain.Line(text)) }

var escapeLine = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;",
	"#", `\#`, "&", `\&`, "|", `\|`, "~", `\~`, "!", `\!`, "$", `\$`)
