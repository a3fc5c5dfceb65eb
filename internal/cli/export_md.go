package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/markdown"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// exportMarkdown writes the path to a leaf:
//
//	# Title
//
//	**Session ID:** …
//	**Created:** 2025-10-04 11:42:03
//	…
//	---
//
//	## 👤 User [11:42:03]
//
//	what was said
//
// Times are in UTC. Where another day begins, its date stands on a line of its
// own. What was said cannot break that structure: see package markdown.
func exportMarkdown(ctx context.Context, w io.Writer, o opened, leaf string) error {
	path, err := pathTo(o.Session, leaf)
	if err != nil {
		return err
	}
	if err := markdownHead(ctx, w, o, path); err != nil {
		return err
	}
	day := o.Header().CreatedAt.UTC().Format(time.DateOnly) // the head has it
	for i := range path {
		text, err := markdownEntry(&path[i])
		if err != nil {
			return err
		}
		if at := path[i].Timestamp.UTC().Format(time.DateOnly); text != "" && at != day {
			day, text = at, "\n*"+at+"*\n"+text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func markdownHead(ctx context.Context, w io.Writer, o opened, path []session.Entry) error {
	name, err := o.Name()
	if err != nil {
		return err
	}
	title := markdown.Line(name)
	if title == "" {
		title = "Untitled Session"
	}
	h := o.Header()
	updated, messages := h.CreatedAt, 0
	for i := range path {
		if path[i].Timestamp.After(updated) && path[i].Type.IsSaid() {
			updated = path[i].Timestamp
		}
		if path[i].Message != nil {
			messages++
		}
	}
	tokens, err := o.tokens(ctx)
	if err != nil {
		return err
	}
	// Two spaces at the end of a line break it.
	_, err = fmt.Fprintf(w, "# %s\n\n**Session ID:** %s  \n**Created:** %s  \n**Updated:** %s  \n**Messages:** %d  \n**Total Tokens:** %s\n\n---\n",
		title, markdown.Line(h.ID), h.CreatedAt.UTC().Format(time.DateTime), updated.UTC().Format(time.DateTime), messages, tokens)
	return err
}

// tokens says how many tokens the conversation has cost, and who counted them: what ls
// shows. Of sessions that continue each other, each has its own.
func (o opened) tokens(ctx context.Context) (string, error) {
	sum, reported := 0, false
	add := func(s *session.Session) error {
		spent, err := s.Spent()
		sum, reported = sum+spent.Tokens(), reported || spent.Reported > 0
		return err
	}
	if len(o.chain.Links) <= 1 {
		if err := add(o.Session); err != nil {
			return "", err
		}
	} else {
		for _, name := range o.chain.Links {
			s, err := session.Open(ctx, o.store, name, nil)
			if err != nil {
				return "", err
			}
			if err := errors.Join(add(s), s.Close()); err != nil {
				return "", err
			}
		}
	}
	if from := tokensFrom(index.Session{Tokens: int64(sum), Reported: reported}); from != "" {
		return fmt.Sprintf("%d (%s)", sum, from), nil
	}
	return "0", nil
}

var roleEmoji = map[string]string{
	session.RoleUser:      "👤 ",
	session.RoleAssistant: "🤖 ",
	session.RoleSystem:    "⚙️ ",
	session.RoleTool:      "🔧 ",
}

// markdownEntry is an entry with an empty line before it, or nothing for what is
// not part of the conversation.
func markdownEntry(e *session.Entry) (string, error) {
	switch {
	case e.Message != nil:
		return markdownMessage(e)
	case e.Compaction != nil:
		return "\n" + markdown.Quote("Compacted: a model is sent this instead of what stands above", e.Compaction.Summary) + "\n", nil
	case e.BranchSummary != nil:
		return "\n" + markdown.Quote("Summary of another branch", e.BranchSummary.Summary) + "\n", nil
	case e.Merge != nil && e.Merge.Summary != "":
		return "\n" + markdown.Quote("Merged from another branch", e.Merge.Summary) + "\n", nil
	}
	return "", nil
}

func markdownMessage(e *session.Entry) (string, error) {
	m := e.Message
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s%s [%s]\n", roleEmoji[m.Role], markdown.Line(titleCase(plain.Line(m.Role))), e.Timestamp.UTC().Format(time.TimeOnly))
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
		if text := markdownBlock(c); text != "" {
			fmt.Fprintf(&b, "\n%s\n", text)
			silent = false
		}
	}
	if silent {
		b.WriteString("\n\n") // its content is empty, and stands there as such
	}
	if len(calls) > 0 {
		text, err := indented(calls)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n**Tool Calls:**\n%s\n", markdown.Fence("json", string(plain.JSON([]byte(text)))))
	}
	return b.String(), nil
}

func titleCase(role string) string {
	if role == "" {
		return "Message"
	}
	first, size := utf8.DecodeRuneInString(role)
	return string(unicode.ToUpper(first)) + role[size:]
}

func markdownBlock(c *session.Content) string {
	switch {
	case c.Text != nil:
		return markdown.Text(c.Text.Content)
	case c.Thinking != nil && c.Thinking.Content == "":
		return ""
	case c.Thinking != nil:
		return "<details><summary>Thinking</summary>\n\n" + markdown.Text(c.Thinking.Content) + "\n\n</details>"
	case c.ToolResult != nil:
		return markdownResult(c.ToolResult)
	}
	return "*" + markdown.Line(strings.Trim(render.MediaGist(c), "[]")) + "*"
}

// markdownResult fences output of several lines: it is no prose, and would be
// run together.
func markdownResult(r *session.ToolResultContent) string {
	var parts []string
	if r.IsError {
		parts = append(parts, "**Error:**")
	}
	switch text := strings.Trim(r.Content, "\r\n"); {
	case strings.Contains(text, "\n"):
		parts = append(parts, markdown.Fence("", plain.Text(text)))
	case text != "":
		parts = append(parts, markdown.Text(text))
	}
	for i := range r.Parts {
		if r.Parts[i].Text == nil { // its text is in Content
			parts = append(parts, markdownBlock(&r.Parts[i]))
		}
	}
	return strings.Join(parts, "\n\n")
}

// toolCall is a call in the form of the Markdown export.
type toolCall struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// newToolCall keeps the arguments as they were written: in their order, with
// every digit.
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

// indented is JSON for people: two spaces, and no escapes for < and >.
func indented(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return strings.TrimRight(b.String(), "\n"), err
}
