package index

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render/typed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// maxBlob is the size above which a tool's output is not fetched to be searched.
const maxBlob = 64 << 20

// part is a piece of an entry's text that is a hit of its own.
type part struct {
	kind   Kind
	role   string
	tool   string // of a call; of an output, once its call is known
	call   string // of an output: the id of the call
	failed bool   // an output that is an error
	text   string
}

// partsOf returns the texts of an entry. An entry always has the same parts in the same
// order, so that a hit can name one by its number.
func partsOf(ctx context.Context, blobs store.Blobs, e *session.Entry, maxText int) []part {
	var parts []part
	add := func(p part) {
		if p.text = clip(p.text, maxText); p.text != "" {
			parts = append(parts, p)
		}
	}
	switch by, isNote := e.NoteBy(); {
	case isNote:
		if text, ok := e.NoteText(); ok {
			add(part{kind: KindNote, text: by + ": " + text})
			break
		}
		messageParts(ctx, blobs, e.Message, func(p part) { // a person has changed it
			p.kind, p.role = KindNote, ""
			add(p)
		})
	case e.Message != nil:
		messageParts(ctx, blobs, e.Message, add)
	case e.Summary() != "":
		add(part{kind: KindSummary, text: e.Summary()})
	case e.Label != nil:
		add(part{kind: KindLabel, text: e.Label.Label})
	case e.SessionInfo != nil:
		add(part{kind: KindTitle, text: e.SessionInfo.Name})
	case e.Custom != nil && e.Custom.CustomType == session.CustomTags:
		said := e.Custom.Tags()
		if note := e.Custom.TagNote(); note != "" {
			said = append(said, note) // the reason for a rating
		}
		add(part{kind: KindTag, text: strings.Join(said, " · ")})
	default:
		if waiting, ok := e.Waiting(); ok {
			messageParts(ctx, blobs, waiting.Message, func(p part) {
				p.kind = KindDraft
				add(p)
			})
			break
		}
		text, _ := e.DraftText()
		add(part{kind: KindDraft, role: session.RoleAssistant, text: text})
	}
	return parts
}

// shown returns what faces show of a text: what a person typed, without the elements that a
// program put around it. Text that is not shown is not searched either.
func shown(text string) string {
	if !typed.IsWrapped(text) {
		return text
	}
	var parts []string
	for _, p := range typed.Read(text) {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, "\n")
}

// messageParts adds the text of a message as one part, its thinking as another, and
// each call and each output by itself.
func messageParts(ctx context.Context, blobs store.Blobs, m *session.MessageEntry, add func(part)) {
	var said, thought []string
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.Text != nil:
			said = append(said, shown(c.Text.Content))
		case c.File != nil && c.File.Name != "":
			said = append(said, c.File.Name)
		case c.Thinking != nil:
			thought = append(thought, c.Thinking.Content)
		}
	}
	add(part{kind: KindThinking, role: m.Role, text: strings.Join(thought, "\n")})
	add(part{kind: KindText, role: m.Role, text: strings.Join(said, "\n")})
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.ToolUse != nil:
			add(part{kind: KindCall, role: m.Role, tool: c.ToolUse.Name, text: callText(c.ToolUse)})
		case c.ToolResult != nil:
			add(part{kind: KindOutput, role: m.Role, call: c.ToolResult.ToolUseID, text: outputText(ctx, blobs, c.ToolResult), failed: c.ToolResult.IsError})
		}
	}
}

// callText writes a call so that a person can read it: the tool, and its input
// with the strings as they are.
func callText(c *session.ToolUseContent) string {
	var b strings.Builder
	b.WriteString(c.Name)
	for _, key := range slices.Sorted(maps.Keys(c.Input)) {
		fmt.Fprintf(&b, " %s: ", key)
		writeValue(&b, c.Input[key], 0)
	}
	return b.String()
}

// writeValue writes a JSON value without quotes and braces.
func writeValue(b *strings.Builder, v any, depth int) {
	const tooDeep = 32
	switch v := v.(type) {
	case string:
		b.WriteString(v)
	case []any:
		for i, elem := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if depth < tooDeep {
				writeValue(b, elem, depth+1)
			}
		}
	case map[string]any:
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(b, "%s: ", key)
			if depth < tooDeep {
				writeValue(b, v[key], depth+1)
			}
		}
	default:
		if data, err := json.Marshal(v); err == nil {
			b.Write(data)
		}
	}
}

// outputText returns a tool's answer as text. If the content is missing from the store, it is
// empty.
func outputText(ctx context.Context, blobs store.Blobs, r *session.ToolResultContent) string {
	switch {
	case r.Content != "":
		return r.Content
	case r.Blob != "" && r.Size <= maxBlob:
		data, err := blobs.Get(ctx, r.Blob)
		if err != nil {
			return ""
		}
		return string(data)
	}
	var texts []string
	for i := range r.Parts {
		if t := r.Parts[i].Text; t != nil {
			texts = append(texts, t.Content)
		}
	}
	return strings.Join(texts, "\n")
}

// clip shortens a text to about n bytes, at the beginning of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
