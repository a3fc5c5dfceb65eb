package render_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/markdown"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// document is a conversation of messages, a day apart, as Markdown.
func document(t *testing.T, messages ...session.MessageEntry) string {
	t.Helper()
	st := memory.New(nil)
	began := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	s, err := session.Create(context.Background(), st, session.Header{ID: "talk", CreatedAt: began}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AppendSessionInfo("A *title* <b>"); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if messages[i].Content == nil {
			messages[i].Content = []session.Content{}
		}
		leaf := s.LeafID()
		e := session.Entry{Type: session.TypeMessage, ID: fmt.Sprint("e", i), ParentID: &leaf, Message: &messages[i], Timestamp: began.AddDate(0, 0, i/2)}
		if err := s.Graft(e); err != nil { // it takes whatever a source has
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	c := render.Conversation{Session: s, Blobs: st.Blobs(), Title: "A *title* <b>", Tokens: 1234, Updated: began.AddDate(0, 0, 1)}
	if err := markdown.Write(context.Background(), &b, c, s.LeafID()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMarkdownWrite(t *testing.T) {
	t.Parallel()
	got := document(
		t,
		session.MessageEntry{Role: "user", Content: []session.Content{session.Text("Why?")}},
		session.MessageEntry{Role: "assistant", Content: []session.Content{
			{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm </details>"}},
			session.Text("**Because.**"),
			session.ToolUse("c1", "bash", map[string]any{"command": "ls <x>"}),
		}},
		session.MessageEntry{Role: "tool", Content: []session.Content{session.ToolResult("c1", "a\nb", true)}},
		session.MessageEntry{Role: "assistant", StopReason: "error", Metadata: map[string]any{"error": "over*loaded"}},
	)
	const want = `# A \*title\* &lt;b>

**Session ID:** talk

**Created:** 2026-01-02 15:04:05

**Updated:** 2026-01-03 15:04:05

**Messages:** 4

**Total Tokens:** 1234

---

## 👤 User [15:04:05]

Why?

## 🤖 Assistant [15:04:05]

<details><summary>Thinking</summary>

hm &lt;/details>

</details>

**Because.**

**Tool Calls:**
'''json
[
  {
    "tool": "bash",
    "args": {
      "command": "ls <x>"
    }
  }
]
'''

## 🔧 Tool [15:04:05]

**Error:**

'''
a
b
'''

## 🤖 Assistant [15:04:05]

**failed: over\*loaded**
`
	if diff := cmp.Diff(strings.ReplaceAll(want, "'''", "```"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A renderer that passes raw HTML on, with all that GitHub's knows besides, shows a
// document in which nothing is HTML but what we wrote.
func TestMarkdownNothingInADocumentIsHTMLOfAStranger(t *testing.T) {
	t.Parallel()
	hostile := []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</details></div>", "<!-- ", "<details open>",
		"<summary>", "# heading", "heading\n===", "~~~\nopen", "> quote\n<script>", "- item\n\n  <b>x</b>", "[x](javascript:alert(1))",
		"![x](http://x.example/pixel.png)", "| a | b |\n|---|---|\n| `|<i>` | x |", "[^1]\n\n[^1]: <u>note</u>", "<http://x.example><b>",
		"$<math>$", "&lt;script&gt;<s>", "a\n---\n<hr>", "\x1b[31m<em>", "***\n<style>",
	}
	var messages []session.MessageEntry
	for _, text := range hostile {
		messages = append(messages, session.MessageEntry{Role: "<b>role", StopReason: text, Content: []session.Content{
			session.Text(text),
			{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: text}},
			session.ToolUse("c", text, map[string]any{text: text}),
			{Type: session.ContentTypeFile, File: &session.FileContent{Name: text}},
		}})
		messages = append(messages, session.MessageEntry{Role: "tool", Content: []session.Content{session.ToolResult("c", text, true)}})
	}
	doc := document(t, messages...)
	for name, md := range map[string]goldmark.Markdown{
		"CommonMark": goldmark.New(goldmark.WithRendererOptions(html.WithUnsafe())),
		"GitHub":     goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote), goldmark.WithRendererOptions(html.WithUnsafe())),
	} {
		var page bytes.Buffer
		if err := md.Convert([]byte(doc), &page); err != nil {
			t.Fatal(err)
		}
		tags := map[string]int{}
		for _, tag := range regexp.MustCompile(`<(/?[A-Za-z!][^\s>/]*)`).FindAllStringSubmatch(page.String(), -1) {
			tags[tag[1]]++
		}
		for _, tag := range strings.Fields("script img style div b i u s em math hr !-- /div h3") {
			want := map[string]int{"hr": 1, "em": tags["/em"], "s": 0}[tag]
			if tags[tag] != want {
				t.Errorf("%s: %d × <%s>, want %d", name, tags[tag], tag, want)
			}
		}
		for tag, want := range map[string]int{"details": len(hostile), "/details": len(hostile), "summary": len(hostile), "h1": 1, "h2": len(messages)} {
			if tags[tag] != want {
				t.Errorf("%s: %d × <%s>, want %d", name, tags[tag], tag, want)
			}
		}
		if strings.Contains(page.String(), `href="javascript:`) || strings.Contains(page.String(), "\x1b") {
			t.Errorf("%s: something acts", name)
		}
	}
}
