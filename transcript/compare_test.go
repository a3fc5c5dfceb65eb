package transcript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// faithful is a format that holds what it is given, changed by a test: the entries of the
// context, one a line.
func faithful(change func([]session.Entry) []session.Entry, losses ...transcript.Loss) *transcript.Format {
	return &transcript.Format{
		Name: "faithful", Title: "Faithful",
		Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
			if err := to.Begin(transcript.Conversation{ID: "c"}); err != nil {
				return err
			}
			for line, err := range f.Lines(ctx) {
				if err != nil {
					return err
				}
				var e session.Entry
				if err := json.Unmarshal(line.Data, &e); err != nil {
					return err
				}
				r := transcript.Record{ID: e.ID, Entry: e}
				r.Entry.ID, r.Entry.ParentID = "", nil
				if err := to.Add(r); err != nil {
					return err
				}
			}
			return nil
		},
		Write: func(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
			var b bytes.Buffer
			for _, e := range change(slices.Clone(s.Context.Entries)) {
				line, err := json.Marshal(e)
				if err != nil {
					return nil, err
				}
				b.Write(append(line, '\n'))
			}
			return &transcript.Output{Base: env.Home, Losses: losses, Files: []transcript.OutputFile{{Path: "x", Data: b.Bytes()}}}, nil
		},
	}
}

// talk is a conversation with two parallel calls, a picture and a thought. The ids of its
// entries are their places.
func talk() []session.Entry {
	picture := session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{
		Source: &session.Source{Type: "base64", MediaType: "image/png", Data: "AAAA"},
	}}
	thought := session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}}
	list := []session.Entry{
		message(session.RoleSystem, session.Text("be kind")),
		message(session.RoleUser, session.Text("look"), picture),
		message(session.RoleAssistant, thought, session.Text("both"), session.ToolUse("a", "ls", map[string]any{"dir": "x"}), session.ToolUse("b", "cat", map[string]any{"file": "y"})),
		message(session.RoleTool, session.ToolResult("a", "A", false)),
		message(session.RoleTool, session.ToolResult("b", "B", true)),
		message(session.RoleUser, session.Text("and?")),
		message(session.RoleAssistant, session.Text("done")),
	}
	for i := range list {
		list[i].ID = string(rune('0' + i))
	}
	return list
}

func message(role session.MessageRole, blocks ...session.Content) session.Entry {
	return session.Entry{Type: session.TypeMessage, Timestamp: toyTime, Message: &session.MessageEntry{Role: role, Content: blocks}}
}

// with returns entries in which one has other content.
func with(list []session.Entry, at int, blocks ...session.Content) []session.Entry {
	list[at] = message(list[at].Message.Role, blocks...)
	return list
}

// prepare writes a conversation in a format and returns the announced losses.
func prepare(t *testing.T, entries []session.Entry, format *transcript.Format) ([]transcript.Loss, error) {
	t.Helper()
	d := newDesk(t)
	s, err := session.Create(t.Context(), d.st, session.Header{ID: "own"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	script, err := transcript.NewScript(s, format.Name, "", toyTime)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.x.Prepare(t.Context(), format, script, nil)
	if err != nil {
		return nil, err
	}
	return out.Losses, nil
}

// TestExportCompares: what an export does not hold is an error or an announced loss.
func TestExportCompares(t *testing.T) {
	t.Parallel()
	type entries = []session.Entry
	same := func(list entries) entries { return list }
	for name, test := range map[string]struct {
		change func(entries) entries
		known  []transcript.Loss // what the writer says
		want   string            // the losses, or the error after a "!"
	}{
		"nothing": {same, nil, ""},
		"a call less": {func(l entries) entries {
			return with(l, 2, l[2].Message.Content[:3]...)
		}, nil, "!call of cat is missing"},
		"a call more": {func(l entries) entries {
			return with(l, 6, session.Text("done"), session.ToolUse("c", "rm", nil))
		}, nil, "!never made"},
		"other arguments": {func(l entries) entries {
			return with(l, 2, l[2].Message.Content[0], l[2].Message.Content[1], session.ToolUse("a", "ls", map[string]any{"dir": "z"}), l[2].Message.Content[3])
		}, nil, "!call of ls has become"},
		"another name": {func(l entries) entries {
			return with(l, 2, l[2].Message.Content[0], l[2].Message.Content[1], session.ToolUse("a", "list", map[string]any{"dir": "x"}), l[2].Message.Content[3])
		}, nil, "2 name of a tool"},
		"other ids": {func(l entries) entries {
			l = with(l, 2, l[2].Message.Content[0], l[2].Message.Content[1], session.ToolUse("x", "ls", map[string]any{"dir": "x"}), session.ToolUse("y", "cat", map[string]any{"file": "y"}))
			l = with(l, 3, session.ToolResult("x", "A", false))
			return with(l, 4, session.ToolResult("y", "B", true))
		}, nil, ""},
		"results change places": {func(l entries) entries {
			l = with(l, 3, session.ToolResult("b", "A", false))
			return with(l, 4, session.ToolResult("a", "B", true))
		}, nil, "!result of ls was changed"},
		"a result is missing": {func(l entries) entries { return slices.Delete(l, 4, 5) }, nil, "!result of cat is missing"},
		"a result is not the same": {func(l entries) entries {
			return with(l, 3, session.ToolResult("a", "AA", false))
		}, nil, "!result of ls was changed"},
		"a failure": {func(l entries) entries {
			return with(l, 4, session.ToolResult("b", "B", false))
		}, nil, "4 whether a tool failed"},
		"a thought":          {func(l entries) entries { return with(l, 2, l[2].Message.Content[1:]...) }, nil, "2 thinking"},
		"a picture":          {func(l entries) entries { return with(l, 1, l[1].Message.Content[0]) }, nil, "1 image"},
		"a picture by words": {func(l entries) entries { return with(l, 1, session.Text("look"), session.Text("[a picture]")) }, []transcript.Loss{{EntryID: "1", What: "image"}}, "1 image"},
		"words that nobody saw": {func(l entries) entries {
			return with(l, 1, append(l[1].Message.Content, session.Text("[a picture]"))...)
		}, nil, "![a picture]"},
		"a system message": {func(l entries) entries { return l[1:] }, nil, "0 message that is neither a user's nor a model's"},
		"a system message by a user": {func(l entries) entries {
			l[0] = message(session.RoleUser, l[0].Message.Content...)
			return l
		}, nil, ""},
		"a text is missing": {func(l entries) entries { return slices.Delete(l, 5, 6) }, nil, "!a text is missing"},
		"one may be missing, and another is": {
			func(l entries) entries { return slices.Delete(l, 5, 6) },
			[]transcript.Loss{{EntryID: "1", What: "image"}, {EntryID: "2", What: "thinking"}},
			"!a text is missing",
		},
		"a thought may be missing, and a text is": {func(l entries) entries {
			return with(l, 2, l[2].Message.Content[2:]...)
		}, []transcript.Loss{{EntryID: "2", What: "thinking"}}, "!a text is missing"},
		"the last text is missing": {func(l entries) entries { return l[:6] }, nil, "!a text is missing"},
		"an announced one is missing": {
			func(l entries) entries { return slices.Delete(l, 5, 6) },
			[]transcript.Loss{{EntryID: "5", What: "text"}},
			"5 text",
		},
		"said by another": {func(l entries) entries {
			l[6].Message = &session.MessageEntry{Role: "user", Content: l[6].Message.Content}
			return l
		}, nil, "6 who said something"},
		"said twice": {func(l entries) entries { return append(l, message("assistant", session.Text("done"))) }, nil, "!not in the session"},
		"said before the calls": {func(l entries) entries {
			c := l[2].Message.Content
			return entries{l[0], l[1], message("assistant", c[:2]...), l[5], message("assistant", c[2:]...), l[3], l[4], l[6]}
		}, nil, "5 where something was said"},
		"each block a message": {func(l entries) entries {
			var list entries
			for _, e := range l {
				for _, c := range e.Message.Content {
					list = append(list, message(e.Message.Role, c))
				}
			}
			return list
		}, nil, ""},
		"texts are joined, calls come last": {func(l entries) entries {
			l = with(l, 1, l[1].Message.Content[1], session.Text(" look\n"))
			l[5].Message.Content = append(l[5].Message.Content, session.Text("\n"))
			return l
		}, nil, ""},
		"results before their calls": {func(l entries) entries {
			return entries{l[0], l[1], l[3], l[4], l[2], l[5], l[6]}
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			losses, err := prepare(t, talk(), faithful(test.change, test.known...))
			if why, isError := strings.CutPrefix(test.want, "!"); isError {
				if !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), why) {
					t.Errorf("the error is %v, want %q; losses %v", err, why, losses)
				}
				return
			}
			var got []string
			for _, l := range losses {
				got = append(got, l.EntryID+" "+l.What)
			}
			if err != nil || strings.Join(got, ", ") != test.want {
				t.Errorf("lost: %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// TestExportComparesSummaries: a format that has no summaries may put words around one. A
// format that sends nothing before one loses what it keeps.
func TestExportComparesSummaries(t *testing.T) {
	t.Parallel()
	entries := append(talk(), session.Entry{
		Type: session.TypeCompaction, ID: "7", Compaction: &session.CompactionEntry{Summary: "we looked", FirstKeptEntryID: "5"},
	})
	said := func(list []session.Entry) []session.Entry {
		at := slices.IndexFunc(list, func(e session.Entry) bool { return e.Compaction != nil })
		list[at] = message(session.RoleUser, session.Text("Before: "+list[at].Compaction.Summary+"."))
		return list
	}
	if losses, err := prepare(t, entries, faithful(said)); err != nil || len(losses) > 0 {
		t.Errorf("a summary as words: %v, %v", losses, err)
	}
	alone := func(list []session.Entry) []session.Entry {
		return slices.DeleteFunc(said(list), func(e session.Entry) bool { return e.ID != "" })
	}
	losses, err := prepare(t, entries, faithful(alone))
	if err != nil || len(losses) != 3 { // the system message, the prompt and the reply
		t.Errorf("nothing but a summary: %v, %v", losses, err)
	}
}
