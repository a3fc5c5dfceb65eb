package render_test

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	render "github.com/yuin/goldmark/renderer/html"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render/markdown"
)

func TestMarkdownText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"prose", "a *b* `c`\n\n- d", "a *b* `c`\n\n- d"},
		{"table", "| a | b |\n|---|---|\n| `c` | d |", "| a | b |\n|---|---|\n| `c` | d |"},
		{"heading", "# a\n  ## b\n#c\n    # d", "\\# a\n  \\## b\n#c\n    # d"},
		{"indented code", "a\n\n    b", "a\n\n    b"},
		{"indented tag", "a\n\n    <b>", "```\na\n\n    <b>\n```"},
		{"empty heading", "#\n\n##", "\\#\n\n\\##"},
		{"heading in a list", "- # a\n- b\n  ===", "- \\# a\n- b\n  \\==="},
		{"heading in a quote", "> a\n> --\n> # b", "> a\n> \\--\n> \\# b"},
		{"setext", "a\n=\nb\n--", "a\n\\=\nb\n\\--"},
		{"rule", "\n---\n\n***\n_ _ _", "\\---\n\n\\***\n\\_ _ _"},
		{"code", "```\n# a\n<b>\n[a]: b\n```\n# c", "```\n# a\n<b>\n[a]: b\n```\n\\# c"},
		{"open fence", "~~~~\n# a\n~~~", "~~~~\n# a\n~~~\n~~~~"},
		{"open fence in a list", "- a\n  ```\n  b", "- a\n  ```\n  b"},
		{"open fence in a quote", "> ```\n> b", "> ```\n> b"},
		{"fence in a longer one", "````\n```\n# a\n````", "````\n```\n# a\n````"},
		{"not a fence", "``` a ` b\n# c", "``` a ` b\n\\# c"},
		{"html", "<b>a</b> <!-- 1 < 2", "&lt;b>a&lt;/b> &lt;!-- 1 < 2"},
		{"html in code", "`<b>` <b>", "`<b>` &lt;b>"},
		{"html around code", "<div>\n`<b>`\n</div>", "&lt;div>\n`<b>`\n&lt;/div>"},
		{"an escaped tag", `\<b> \\<b>`, `&lt;b> \\&lt;b>`},
		{"escaped backticks", "\\`<b>\\`", "\\`&lt;b>\\`"},
		{"runs of unequal length", "` <b> ``", "` &lt;b> ``"},
		{"spans over lines", "`a\n`<b>`", "`a\n`&lt;b>`"},
		{"code that a table would cut", "a|b\n-|-\n`c | <b>`", "a|b\n-|-\n\\`c | &lt;b>`"},
		{"autolink", "<https://example.com/a?b> <a@b.c>", "<https://example.com/a?b> <a@b.c>"},
		{"other autolink", "<javascript:alert(1)>", "&lt;javascript:alert(1)>"},
		{"link", "[a](https://b) [c](d.md#e)", "[a](https://b) [c](d.md#e)"},
		{"other link", "[a](javascript:b)", "\\[a]\\(javascript:b)"},
		{"disguised link", "[a](java&#x73;cript\\:b) [c](<  data:text/html,x>)", "\\[a]\\(java&#x73;cript\\:b) \\[c]\\(<  data:text/html,x>)"},
		{"image", "![a](https://b)", "\\![a](https://b)"},
		{"definition", "[a]: https://b\n[^1]: c", "[a]\\: https://b\n[^1]\\: c"},
		{"behind an address", "http://a/\\<b> http://a/<b>", "http://a/&lt;b> http://a/&lt;b>"},
		{"tabs", "-\ta\n\tb\n```\n\tc\n```\n\td\te", "-   a\n    b\n```\n\tc\n```\n    d\te"},
		{"line ends", "a\r\n# b", "a\n\\# b"},
		{"control", "a\x1b[2Jb", "a�[2Jb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, markdown.Text(test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarkdownLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Fix the parser":            "Fix the parser",
		"a\n# b <img> `c` [d](e) &": "a # b <img> `c` [d](e) &",
		`\<b> **c** ~~d~~ |e| $f$!`: `\<b> **c** ~~d~~ |e| $f$!`,
	} {
		out := rendered(t, strict, "# "+markdown.Line(text)+"\n")
		if got := html.UnescapeString(out); got != "<h1>"+want+"</h1>\n" {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestMarkdownFence(t *testing.T) {
	t.Parallel()
	got := markdown.Fence("json", "a ```` b")
	if want := "`````json\na ```` b\n`````"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarkdownQuoteKeepsCodeHarmless(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\t<img src=x>", "- a\n\n\t\t<img src=x>", "a\n\n\t- b\n\t\t\t<img>", "```\nopen"} {
		document := markdown.Quote("Summary", text) + "\n\n## next\n"
		checkRendered(t, document, []string{"next"})
	}
}

// Renderers of strangers: raw HTML passes.
var (
	strict = goldmark.New(goldmark.WithRendererOptions(render.WithUnsafe()))
	rich   = goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList, extension.Typographer),
		goldmark.WithParserOptions(parser.WithAttribute()),
		goldmark.WithRendererOptions(render.WithUnsafe()))
)

func rendered(t interface{ Fatal(...any) }, with goldmark.Markdown, document string) string {
	var b bytes.Buffer
	if err := with.Convert([]byte(document), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	tag       = regexp.MustCompile(`<[^>]*>?`)
	attribute = regexp.MustCompile(`\s([a-z-]+)="([^"]*)"`)
	heading   = regexp.MustCompile(`(?s)<h([1-6])[^>]*>(.*?)</h[1-6]>`)
	elements  = strings.Fields(`p em strong code pre ul ol li blockquote a br table thead tbody tr th td del dl dt dd sup input`)
)

type tester interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}

// checkRendered checks that a document has the headings that we gave it and no
// others, and beside them nothing that acts.
func checkRendered(t tester, document string, headings []string) {
	t.Helper()
	for name, with := range map[string]goldmark.Markdown{"CommonMark": strict, "with extensions": rich} {
		page := rendered(t, with, document)
		var got []string
		for _, h := range heading.FindAllStringSubmatch(page, -1) {
			if h[1] != "2" {
				t.Errorf("%s: a heading that is not ours: %s", name, h[0])
			}
			got = append(got, h[2])
		}
		if !slices.Equal(got, headings) {
			t.Errorf("%s: the headings are %q, want %q in\n%s", name, got, headings, document)
		}
		if depth := strings.Index(page, "<h2"); depth > 0 && inside(page) {
			t.Errorf("%s: a heading is inside something:\n%s", name, page)
		}
		for _, one := range tag.FindAllString(heading.ReplaceAllString(page, ""), -1) {
			if why := foreign(one); why != "" {
				t.Errorf("%s: %s: %s in\n%s\nfrom\n%s", name, one, why, page, document)
			}
		}
	}
}

// inside reports whether a heading of a page is inside another element.
func inside(page string) bool {
	depth := 0
	for _, one := range tag.FindAllString(page, -1) {
		switch {
		case strings.HasPrefix(one, "<h2"):
			if depth != 0 {
				return true
			}
			depth++
		case strings.HasPrefix(one, "</"):
			depth--
		case !strings.HasSuffix(one, "/>") && !strings.HasPrefix(one, "<br") && !strings.HasPrefix(one, "<input"):
			depth++
		}
	}
	return false
}

// A link acts by its scheme, which begins with a letter: ":0" is a path. Browsers ignore
// some characters before it and in it.
var (
	scheme  = regexp.MustCompile(`^[\x00-\x20]*([a-z][a-z0-9+.-]*):`)
	ignored = strings.NewReplacer("\t", "", "\n", "", "\r", "")
)

func foreign(one string) string {
	name := strings.TrimLeft(strings.Fields(strings.Trim(one, "<>"))[0], "/")
	if !slices.Contains(elements, strings.TrimSuffix(name, "/")) {
		return "an element that is not allowed"
	}
	for _, a := range attribute.FindAllStringSubmatch(one, -1) {
		value := strings.ToLower(html.UnescapeString(a[2]))
		switch a[1] {
		case "href":
			if m := scheme.FindStringSubmatch(ignored.Replace(value)); m != nil && !slices.Contains([]string{"http", "https", "mailto", "ftp"}, m[1]) {
				return "a link that acts"
			}
		case "title", "class", "start", "style", "align", "type", "checked", "disabled", "role", "id":
		default:
			return "an attribute that is not allowed"
		}
	}
	return ""
}

// hostile are texts that were found, or are known, to break out.
var hostile = []string{
	"one \\`<img src=x onerror=alert(1)>\\` escaped backticks",
	"` <img src=x onerror=alert(2)> `` runs of unequal length",
	"open `\n` <img src=x onerror=alert(3)> ` over lines",
	"<img src=x onerror=alert(4)>",
	"<javascript:alert(5)> and [x](javascript:alert(6)) <JaVaScRiPt:x> <vbscript:x> <data:text/html,x>",
	"[a]: javascript:alert(7)\n\n[a] [b][a] ![a]",
	"[next]: javascript:alert(8)",
	"[^1]: swallowed\n\n    and this\n\nx[^1]",
	"- a\n  ```\n  open in a list",
	"1. a\n   ~~~\n   open\n```\nat the margin",
	"> ```\nlazy\n<b>",
	"```\nopen",
	"~~~",
	"````markdown\n```\n",
	"<!-- open", "<?php open", "<![CDATA[ open", "<!DOCTYPE", "<script>\nopen", "<style>", "<textarea>", "<pre>\n\n<b>",
	"text\n<div>\n\n</div>\n<details open>", "</details></div></body>",
	"a\n===\nb\n---\n# c\n---\n***",
	"| a | b |\n|---|---|\n| `c | <img src=x onerror=alert(9)>` | d |",
	"a `x\n|---|\n<img src=x onerror=1>` |",
	"a\n: <b>definition</b>\n\n: `<i>`\n",
	"\t<b>tab</b>", "   \t- \t<b>", "- \t\t<b>\n\n\t<i>", ">\t\t<b>",
	"\\\\<b> \\\\\\<b> &#92;<b>", "http://a/\\<b> www.a.b/\\\\<b> a@b.c\\<b>",
	"http://x)``<b></b>``", "~~~|a\n|-|-|\n<img src=x onerror=1>|b", "<a@b.c>---\n1. -\n|-|-|\n\n    {a=b}\n    \n    <javascript:x>",
	"> ##\n    >## `a`", "`a](javascript:x)\n`", "[a <http://x>](javascript:x)", "[a [b](http://x)](javascript:x)",
	"#\n\t=", "a\n\t---", "- a\n\t===",
	"![a](http://x/track.png) ![b][c]\n\n[c]: http://x/y.png",
	"[a](<javascript:alert(1)>) [a](java\tscript:x) [a]( javascript:x) [a](&#106;avascript:x)",
	"[a\n](javascript:x 'title')",
	"[a](http://x \"onmouseover=1\") {onclick=alert(1)}", "para {#id onclick=x}",
	"# a {onclick=alert(1)}", "`<b>`{=html}",
	"*[b]: c", "$$\nx", "~~a", ":::", "<http://a|<b>>",
	"\u2028# a\u2029<b>", "a\r# b\r<i>", "\x00<b>", "\ufeff# a",
	strings.Repeat("> ", 3000) + "<b>", strings.Repeat("[", 5000) + "<b>", strings.Repeat("*a_ ", 5000) + "<b>",
}

func TestMarkdownHostileTextsStayInside(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		document := "## 1\n\n" + markdown.Text(text) + "\n\n## 2\n\n" + markdown.Quote("x", text) + "\n\n## 3\n\n" + markdown.Text("text [next] [a]") + "\n"
		checkRendered(t, document, []string{"1", "2", "3"})
	}
	var document strings.Builder
	var headings []string
	for i, text := range hostile {
		fmt.Fprintf(&document, "## %d\n\n%s\n\n", i, markdown.Text(text))
		headings = append(headings, fmt.Sprint(i))
	}
	checkRendered(t, document.String(), headings)
}

var pieces = rapid.SampledFrom([]string{
	"`", "``", "```", "~~~", "<", ">", "<b>", "</b>", "<img src=x onerror=alert(1)>", "<!--", "-->", "<script>", "<div", "<?", "<![CDATA[", "<a@b.c>", "<http://x>", "<javascript:x>",
	"[", "]", "](", ")", "](javascript:x)", "](http://x)", "![", "]:", "]: javascript:x", "[a]", "[^a]", "(", "'", "\"",
	"\\", "\\\\", "&lt;", "&#92;", "#", "# ", "## ", "=", "===", "-", "---", "***", "_", "*", "**", "~~", "|", "|---|", "\n|-|-|\n", ":", "{a=b}",
	" ", "  ", "    ", "\t", "\n", "\n", "\n\n", "\n- ", "\n1. ", "\n> ", "\n  ", "\n    ", "\n\t", "a", "b c", "é", "\u00a0", "\r", "\x00",
})

func TestMarkdownAnyTextStaysInside(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		first := strings.Join(rapid.SliceOfN(pieces, 1, 40).Draw(t, "first"), "")
		second := strings.Join(rapid.SliceOfN(pieces, 1, 40).Draw(t, "second"), "")
		document := "## 1\n\n" + markdown.Text(first) + "\n\n## 2\n\n" + markdown.Text(second) + "\n\n## 3\n\n" + markdown.Quote("x", first) + "\n\n## 4\n"
		checkRendered(t, document, []string{"1", "2", "3", "4"})
	})
}

func FuzzMarkdownText(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkRendered(t, "## 1\n\n"+markdown.Text(text)+"\n\n## 2\n", []string{"1", "2"})
	})
}

// What is costly to parse is not parsed: the time is in proportion to the length.
func BenchmarkMarkdownText(b *testing.B) {
	for name, piece := range map[string]string{
		"prose": "Some *prose* with `code` and a [link](http://x).\n\n", "emphasis": "*a_ ", "links": "[a](", "quotes": ">", "tags": "<div>\n",
	} {
		for _, size := range []int{20_000, 200_000} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(fmt.Sprint(name, "/", size), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					markdown.Text(text)
				}
			})
		}
	}
}
