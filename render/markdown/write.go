package markdown

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/typed"
	"github.com/coppice-dev/coppice/session"
)

// Write writes the path to a leaf of a conversation; "" is before the first entry:
//
//	# Title
//
//	**Session ID:** …
//
//	**Created:** 2025-10-04 11:42:03
//
//	…
//
//	---
//
//	## 👤 User [11:42:03]
//
//	the text of the message
//
// Times are in UTC. Messages cannot break that structure: see the package comment. The only HTML
// is ours, and folds thinking away.
func Write(ctx context.Context, w io.Writer, c render.Conversation, leaf string) error {
	c.Session = c.WithContext(ctx)
	var path []*render.Node
	if leaf != "" {
		out, err := render.NewOutline(c, render.OutlineOptions{Leaf: leaf})
		if err != nil {
			return err
		}
		path = out.Path()
	}
	if err := writeHead(w, c, path); err != nil {
		return err
	}
	for n, err := range c.EachNode(path) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		text, err := entryText(&n.Entry)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// maxTitle is the maximum width of a title. A title that is a prompt may be of any length.
const maxTitle = 160

func writeHead(w io.Writer, c render.Conversation, path []*render.Node) error {
	h := c.Header()
	messages := 0
	for _, n := range path {
		if n.IsMessage() {
			messages++
		}
	}
	tokens := "unknown" // which is not 0
	if c.Tokens > 0 {
		tokens = strconv.Itoa(c.Tokens) // and nothing else on the line, for programs that read it
	}
	// Without the empty lines between them, they would be one line of prose.
	_, err := fmt.Fprintf(w, "# %s\n\n**Session ID:** %s\n\n**Created:** %s\n\n**Updated:** %s\n\n**Messages:** %d\n\n**Total Tokens:** %s\n\n---\n",
		cmp.Or(Line(render.OneLine(c.Title, maxTitle)), render.Untitled), Line(h.ID), h.CreatedAt.UTC().Format(time.DateTime),
		c.Updated.UTC().Format(time.DateTime), messages, tokens)
	return err
}

var roleEmoji = map[string]string{
	session.RoleUser:      "👤 ",
	session.RoleAssistant: "🤖 ",
	session.RoleSystem:    "⚙️ ",
	session.RoleTool:      "🔧 ",
}

// entryText returns an entry with an empty line before it, or nothing for what is not
// part of the conversation.
func entryText(e *session.Entry) (string, error) {
	switch {
	case e.Type == session.TypeGap:
		return "\n*An entry is missing or damaged*\n", nil
	case e.Message != nil:
		return messageText(e)
	case e.Compaction != nil:
		return "\n" + Quote("Compacted: a model is sent this instead of what is above", e.Compaction.Summary) + "\n", nil
	case e.BranchSummary != nil:
		return "\n" + Quote("Summary of another branch", e.BranchSummary.Summary) + "\n", nil
	case e.Merge != nil && e.Merge.Summary != "":
		return "\n" + Quote("Merged from another branch", e.Merge.Summary) + "\n", nil
	}
	return "", nil
}

func messageText(e *session.Entry) (string, error) {
	m := e.Message
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s%s [%s]\n", roleEmoji[m.Role], Line(titleCase(wordFor(e))), e.Timestamp.UTC().Format(time.TimeOnly))
	var calls []toolCall
	silent := true
	for i := range m.Content {
		c := &m.Content[i]
		if c.ToolUse != nil {
			call, err := newToolCall(c)
			if err != nil {
				return "", err
			}
			calls = append(calls, call)
			continue
		}
		if text := blockText(c); text != "" {
			fmt.Fprintf(&b, "\n%s\n", text)
			silent = false
		}
	}
	if words := render.StopWords(m); words != "" {
		fmt.Fprintf(&b, "\n**%s**\n", Line(words))
		silent = false
	}
	if silent {
		b.WriteString("\n\n") // it has no text, but the format requires one
	}
	if len(calls) > 0 {
		text, err := render.IndentJSON(calls)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n**Tool Calls:**\n%s\n", Fence("json", string(plain.JSON([]byte(text)))))
	}
	return b.String(), nil
}

// wordFor returns the role of a message, or what a note is called.
func wordFor(e *session.Entry) string {
	if _, isNote := e.NoteBy(); isNote {
		return render.Kind(e)
	}
	return plain.Line(e.Message.Role)
}

func titleCase(role string) string {
	if role == "" {
		return "Message"
	}
	first, size := utf8.DecodeRuneInString(role)
	return string(unicode.ToUpper(first)) + role[size:]
}

func blockText(c *session.Content) string {
	switch {
	case c.Text != nil:
		return passagesText(c.Text.Content)
	case c.Thinking != nil && c.Thinking.Content == "":
		return ""
	case c.Thinking != nil:
		return "<details><summary>Thinking</summary>\n\n" + Text(c.Thinking.Content) + "\n\n</details>"
	case c.ToolResult != nil:
		return resultText(c.ToolResult)
	}
	return "*" + Line(strings.Trim(render.MediaGist(c), "[]")) + "*"
}

// passagesText shows commands as they were typed, and their output as output.
func passagesText(text string) string {
	var parts []string
	for _, p := range render.Passages(text) {
		switch text := strings.Trim(p.Text, "\r\n"); {
		case p.Kind == typed.Prose:
			parts = append(parts, Text(p.Text))
		case p.Kind == typed.Command && !strings.Contains(text, "\n"):
			parts = append(parts, Line(text))
		default:
			parts = append(parts, Fence("", plain.Text(text)))
		}
	}
	return strings.Join(parts, "\n\n")
}

// resultText fences output of several lines: as prose, the lines would be joined.
func resultText(r *session.ToolResultContent) string {
	var parts []string
	if r.IsError {
		parts = append(parts, "**Error:**")
	}
	switch text := strings.Trim(r.Content, "\r\n"); {
	case strings.Contains(text, "\n"):
		parts = append(parts, Fence("", plain.Text(text)))
	case text != "":
		parts = append(parts, Text(text))
	}
	for i := range r.Parts {
		if r.Parts[i].Text == nil { // its text is in Content
			parts = append(parts, blockText(&r.Parts[i]))
		}
	}
	return strings.Join(parts, "\n\n")
}

// toolCall is a call in the form of the Markdown export.
type toolCall struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// newToolCall keeps the arguments as they were written: in their order, with every digit.
func newToolCall(c *session.Content) (toolCall, error) {
	block, err := c.MarshalJSON()
	if err != nil {
		return toolCall{}, err
	}
	var raw struct {
		ToolUse struct {
			Input json.RawMessage `json:"input"`
		} `json:"tool_use"`
	}
	err = json.Unmarshal(block, &raw)
	return toolCall{c.ToolUse.Name, raw.ToolUse.Input}, err
}
