package terminal_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

const written = `# A heading

Some *text* that is long enough to be broken into several rows, with ` + "`code`" + ` in it.
日本語のテキストもあります。

1. one

   more of one
2. two

| name | count |
|---|---:|
| apples | 3 |
| oranges | 12 |

` + "```go" + `
func main() {

	fmt.Println("a string") // a comment
}
` + "```" + `

> a quote
> goes on

- [ ] open
- done
The end.`

var narrow = terminal.Style{Color: true, Width: 40}

func flowed(s *terminal.Stream, pieces ...string) (rows []string) {
	for _, piece := range pieces {
		rows = append(rows, s.Add(piece)...)
		_ = s.Rows()
	}
	return append(rows, s.End()...)
}

func TestStreamDoesNotDependOnThePieces(t *testing.T) {
	t.Parallel()
	want := flowed(terminal.NewStream(narrow), written)
	soak.Check(t, func(t *rapid.T) {
		var pieces []string
		for rest := written; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if diff := cmp.Diff(want, flowed(terminal.NewStream(narrow), pieces...)); diff != "" {
			t.Fatalf("(-whole +pieces):\n%s", diff)
		}
	})
	for _, row := range want {
		if n := ansi.StringWidth(row); n > 40 {
			t.Errorf("a row of %d columns: %q", n, row)
		}
	}
}

func TestStreamFinishesBlocksOneByOne(t *testing.T) {
	t.Parallel()
	s := terminal.NewStream(terminal.Style{Color: true, Width: 40})
	if rows := s.Add("First.\n\n"); len(rows) > 0 {
		t.Errorf("a list could follow: %q", rows)
	}
	rows := s.Add("Second\n")
	if got := ansi.Strip(strings.Join(rows, "|")); got != "  First." {
		t.Errorf("finished: %q", got)
	}
	if got := ansi.Strip(strings.Join(s.Rows(), "|")); got != "|  Second" {
		t.Errorf("growing: %q", got)
	}
	if rows := s.Add("\n```\ncode\n\nmore\n\nPara"); len(rows) != 2 || len(s.Rows()) < 4 {
		t.Errorf("an empty line within code ends nothing: %q, %q", rows, s.Rows())
	}
}

// A block without end, such as a long listing, becomes finished bit by bit: what is drawn
// again stays small, nothing is lost and nothing is repeated.
func TestStreamOfOneLongBlock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ begin, line string }{
		"code":  {"```go\n", "x := 1 // line N\n"},
		"words": {"", "word N of a paragraph\n"},
		"line":  {"", "wordN "},
		"wide":  {"", "日本N"},
	} {
		t.Run(name, func(t *testing.T) {
			s := terminal.NewStream(terminal.Style{Color: true, Width: 80})
			rows := s.Add(c.begin)
			var want strings.Builder
			for i := range 4000 {
				line := strings.ReplaceAll(c.line, "N", string(rune('a'+i%26)))
				want.WriteString(line)
				rows = append(rows, s.Add(line)...)
				if i%500 == 0 && len(s.Rows()) > 1200 {
					t.Fatalf("%d rows are drawn again", len(s.Rows()))
				}
			}
			rows = append(rows, s.End()...)
			if last := ansi.Strip(rows[len(rows)-1]); name == "code" && !strings.HasPrefix(last, "    x := 1") {
				t.Errorf("the end is no code any more: %q", last)
			}
			squeeze := func(text string) string { return regexp.MustCompile(`\s`).ReplaceAllString(ansi.Strip(text), "") }
			got := strings.TrimPrefix(squeeze(strings.Join(rows, "")), "go")
			if got != squeeze(want.String()) {
				t.Errorf("%d bytes of text, want %d", len(got), len(squeeze(want.String())))
			}
		})
	}
}

func TestStreamIsHarmless(t *testing.T) {
	t.Parallel()
	evil := "a\x1b]0;x\x07b\n\n```go\nfunc \x1b[2Jx() \u202e {}\n```\n\n| \x9b | b |\n|---|---|\n| c | d |\n"
	for _, color := range []bool{true, false} {
		var b bytes.Buffer
		w := plain.NewWriter(&b)
		_, _ = w.Write([]byte(strings.Join(flowed(terminal.NewStream(terminal.Style{Color: color, Width: 60}), evil), "\n")))
		_ = w.Flush()
		got := regexp.MustCompile("\x1b\\[[0-9;]+m").ReplaceAllString(b.String(), "")
		if strings.ContainsAny(got, "\x1b\x07\u202e\u009b") {
			t.Errorf("a control character in %q", got)
		}
	}
}

func TestStreamColoursCodeByItsLanguage(t *testing.T) {
	t.Parallel()
	rows := flowed(terminal.NewStream(narrow), "```go\nreturn \"x\"\n```\n")
	var b bytes.Buffer
	w := plain.NewWriter(&b)
	_, _ = w.Write([]byte(strings.Join(rows, "\n")))
	if !strings.Contains(b.String(), "\x1b[35mreturn") || !strings.Contains(b.String(), "\x1b[32m\"x\"") {
		t.Errorf("%q", b.String())
	}
	if rows := flowed(terminal.NewStream(terminal.Style{Width: 40}), "```go\nreturn\n```"); strings.Join(rows, "|") != "  ```go|  return|  ```" {
		t.Errorf("without colours: %q", rows)
	}
}
