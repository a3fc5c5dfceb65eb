package transcript

import (
	"context"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// TestImportOfAResultBeforeItsCall: what is imported is sent.
func TestImportOfAResultBeforeItsCall(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	format := &Format{Name: "toy", Read: func(_ context.Context, _ *File, to Sink) error {
		if err := to.Begin(Conversation{ID: "c"}); err != nil {
			return err
		}
		for _, m := range []session.MessageEntry{
			{Role: "tool", Content: []session.Content{session.ToolResult("c1", "OUT", false)}},
			{Role: "assistant", Content: []session.Content{session.ToolUse("c1", "run", nil)}},
			{Role: "tool", Content: []session.Content{session.ToolResult("none", "LOST", false)}},
		} {
			if err := to.Add(Record{Entry: session.Entry{Type: session.TypeMessage, Message: &m}}); err != nil {
				return err
			}
		}
		return nil
	}}
	report, err := (&Importer{Store: st}).Import(t.Context(), format, FileOf("x", nil))
	if err != nil || report.New() != 3 {
		t.Fatalf("the import is %+v, %v", report, err)
	}
	s, err := session.Open(t.Context(), st, report.Sessions[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries) != 2 || c.Entries[1].Message.Content[0].ToolResult.Content != "OUT" {
		t.Errorf("the context is %+v", c.Entries)
	}
}

// TestResultsFollowTheirCalls: a result that stands just before its call is put behind
// it, and nothing else is moved.
func TestResultsFollowTheirCalls(t *testing.T) {
	t.Parallel()
	message := func(role session.MessageRole, blocks ...session.Content) Record {
		return Record{Entry: session.Message(role, blocks...)}
	}
	word := func(word string) Record { // "call:a", "result:a", "b", or with "/" before it a record that has a parent
		word, named := strings.CutPrefix(word, "/")
		r := message("user", session.Text(word))
		if id, ok := strings.CutPrefix(word, "call:"); ok {
			r = message("assistant", session.ToolUse(id, "run", nil))
		} else if id, ok := strings.CutPrefix(word, "result:"); ok {
			r = message("tool", session.ToolResult(id, "x", false))
		}
		if r.ID = word; named {
			r.Parent = "p"
		}
		return r
	}
	for in, want := range map[string]string{
		"u call:a result:a v":                   "u call:a result:a v",
		"u result:a call:a v":                   "u call:a result:a v",
		"u result:a result:b call:a call:b":     "u call:a result:a call:b result:b",
		"u result:a call:b result:b":            "u result:a call:b result:b",
		"u result:a v call:a":                   "u result:a v call:a",
		"call:a result:a call:a result:a":       "call:a result:a call:a result:a",
		"u result:a":                            "u result:a",
		"/u /result:a /call:a":                  "u result:a call:a",
		"call:a call:b result:b result:a v":     "call:a call:b result:b result:a v",
		"u result:a call:a result:b call:b end": "u call:a result:a call:b result:b end",
	} {
		format := &Format{Read: func(_ context.Context, _ *File, to Sink) error {
			if err := to.Begin(Conversation{ID: "c"}); err != nil {
				return err
			}
			for _, w := range strings.Fields(in) {
				if err := to.Add(word(w)); err != nil {
					return err
				}
			}
			return nil
		}}
		c, err := Collect(t.Context(), format, FileOf("x", nil))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range c.Conversations[0].Records {
			got = append(got, r.ID)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", in, s, want)
		}
	}
}
