// Package transcripttest helps to test formats. Standard runs the tests that every format
// needs; Outline shows what a reader found as text that a person can check, and Script turns
// it into the input of a writer.
package transcripttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// Outline returns what a reader found: each conversation with its records, one a
// line, then what became of the source's records, and the problems.
func Outline(c *transcript.Collected) string {
	var b strings.Builder
	for _, conv := range c.Conversations {
		conversation(&b, conv)
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.Counts), func(x, y transcript.Became) int {
		return strings.Compare(x.What+"\x00"+x.Became, y.What+"\x00"+y.Became)
	}) {
		fmt.Fprintf(&b, "count: %d %s -> %s\n", c.Counts[k], k.What, k.Became)
	}
	for _, p := range c.Problems {
		fmt.Fprintf(&b, "problem: line %d: %s\n", p.Line, p.Reason)
	}
	return b.String()
}

func conversation(b *strings.Builder, c *transcript.CollectedConversation) {
	fmt.Fprintf(b, "conversation %s\n", c.ID)
	for _, f := range [][2]string{
		{"family", c.Family},
		{"title", c.Title},
		{"cwd", c.CWD},
		{"created", stamp(c.Created)},
		{"tags", strings.Join(c.Tags, " ")},
		{"parent", c.Parent},
		{"relation", c.Relation},
		{"call", c.ParentCall},
		{"leaf", c.Leaf},
	} {
		if f[1] != "" {
			fmt.Fprintf(b, " %s: %s\n", f[0], f[1])
		}
	}
	if len(c.Extra) > 0 {
		fmt.Fprintf(b, " extra: %s\n", compact(c.Extra))
	}
	for i := range c.Records {
		fmt.Fprintf(b, "  %s\n", Line(&c.Records[i]))
	}
}

// Line returns a record in one line.
func Line(r *transcript.Record) string {
	words := []string{r.ID}
	switch r.Parent {
	case "":
	case transcript.Root:
		words = append(words, "<-", "root")
	default:
		words = append(words, "<-", r.Parent)
	}
	if len(r.Aliases) > 0 {
		words = append(words, "("+strings.Join(r.Aliases, " ")+")")
	}
	if t := stamp(r.Entry.Timestamp); t != "" {
		words = append(words, t)
	}
	if r.Entry.Message != nil {
		words = append(words, message(r.Entry.Message)...)
	} else {
		words = append(words, string(r.Entry.Type), payload(&r.Entry))
	}
	return strings.Join(words, " ")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z")
}

func message(m *session.MessageEntry) []string {
	words := []string{m.Role + ":"}
	if m.Model != "" || m.Provider != "" {
		words = append(words, "("+strings.TrimPrefix(m.Provider+"/"+m.Model, "/")+")")
	}
	for i := range m.Content {
		words = append(words, block(&m.Content[i]))
	}
	if m.StopReason != "" {
		words = append(words, "stop="+m.StopReason)
	}
	if m.ResponseID != "" {
		words = append(words, "response="+m.ResponseID)
	}
	if u := m.Usage; u != nil {
		words = append(words, fmt.Sprintf("usage=%d+%dr+%dw>%d(%d)$%d", u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning, u.CostMicroUSD))
	}
	if len(m.Metadata) > 0 {
		words = append(words, "metadata="+compact(m.Metadata))
	}
	return words
}

func block(c *session.Content) string {
	switch {
	case c.Text != nil:
		return strconv.Quote(c.Text.Content)
	case c.Thinking != nil:
		t := c.Thinking
		return "[thinking " + strings.Join(slices.DeleteFunc([]string{
			strconv.Quote(t.Content), mark("signature", t.Signature), mark("redacted", t.Redacted),
		}, func(s string) bool { return s == "" }), " ") + "]"
	case c.ToolUse != nil:
		input, _ := c.ToolUse.InputJSON()
		return fmt.Sprintf("[call %s %s %s]", c.ToolUse.ID, c.ToolUse.Name, input)
	case c.ToolResult != nil:
		return result(c.ToolResult)
	case c.Image != nil:
		return "[image" + source(c.Image.Source) + "]"
	case c.Audio != nil:
		return "[audio" + source(c.Audio.Source) + "]"
	case c.File != nil:
		return "[file " + c.File.Name + source(c.File.Source) + "]"
	}
	return "[raw " + string(c.Raw) + "]"
}

func result(r *session.ToolResultContent) string {
	words := []string{"result", r.ToolUseID, strconv.Quote(r.Content)}
	if r.IsError {
		words[0] = "error"
	}
	for i := range r.Parts {
		words = append(words, block(&r.Parts[i]))
	}
	return "[" + strings.Join(words, " ") + "]"
}

func mark(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + value
}

func source(s *session.Source) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(" %s %s %.40s", s.Type, s.MediaType, s.Data)
}

// payload describes an entry that is not a message.
func payload(e *session.Entry) string {
	text, err := json.Marshal(*e)
	if err != nil {
		return err.Error()
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err.Error()
	}
	return string(members[string(e.Type)])
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
