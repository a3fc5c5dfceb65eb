package tools

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/net/html"
)

// What the elements of a page do to its text.
var (
	hiddenElements = map[string]bool{"script": true, "style": true, "noscript": true, "template": true, "svg": true, "iframe": true, "head": true}
	newLines       = map[string]string{
		"p": "\n\n", "div": "\n", "br": "\n", "tr": "\n", "ul": "\n", "ol": "\n", "table": "\n\n", "pre": "\n\n", "blockquote": "\n\n", "section": "\n\n", "article": "\n\n",
		"li": "\n- ", "h1": "\n\n# ", "h2": "\n\n## ", "h3": "\n\n### ", "h4": "\n\n#### ", "td": " ", "th": " ",
	}
	manySpaces = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[ \t\r\n]+`) })
	manyLines  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s*\n\s*\n\s*`) })
)

// htmlText returns the text of a page as a person reads it. Links keep their addresses.
func htmlText(r io.Reader) (string, error) {
	z := html.NewTokenizer(r)
	z.SetMaxBuf(maxPage)
	var out strings.Builder
	var link string
	hidden, pre := "", 0 // the element whose content is left out, and how many show white space
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return "", err
			}
			return strings.TrimSpace(manyLines().ReplaceAllString(out.String(), "\n\n")), nil
		}
		t := z.Token()
		switch {
		case hidden != "":
			if kind == html.EndTagToken && t.Data == hidden {
				hidden = ""
			}
		case kind == html.TextToken && pre > 0:
			out.WriteString(t.Data)
		case kind == html.TextToken:
			out.WriteString(manySpaces().ReplaceAllString(t.Data, " "))
		case kind == html.StartTagToken && hiddenElements[t.Data]:
			hidden = t.Data
		case kind == html.StartTagToken && t.Data == "a":
			link = attribute(t, "href")
			out.WriteString("[")
		case kind == html.EndTagToken && t.Data == "a":
			out.WriteString("](" + link + ")")
		case kind == html.StartTagToken || kind == html.SelfClosingTagToken:
			if t.Data == "pre" {
				pre++
			}
			out.WriteString(newLines[t.Data])
		case kind == html.EndTagToken:
			if t.Data == "pre" && pre > 0 {
				pre--
			}
			if strings.HasPrefix(newLines[t.Data], "\n") && t.Data != "li" {
				out.WriteString("\n")
			}
		}
	}
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
