package conversation_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// must returns a value, or fails the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want one that matches %v", err, want)
	}
}

// newManager returns a manager of the sessions in a directory or, if that is
// empty, in memory, that never saves by itself.
func newManager(t testing.TB, dir string, limit int) *conversation.Sessions {
	t.Helper()
	m := must(conversation.OpenSessions(dir, quiet(limit)))(t)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func newManagerOn(t testing.TB, st store.Store, limit int) *conversation.Sessions {
	t.Helper()
	m := must(conversation.NewSessions(st, quiet(limit)))(t)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func quiet(limit int) *conversation.Options {
	return &conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: limit, AutoSaveInterval: -1}}
}

func newSystem(t testing.TB, m *conversation.Sessions) *conversation.Chat {
	t.Helper()
	return conversation.NewChat(m, conversation.NewWindow(nil))
}

func user(text string) conversation.Message {
	return conversation.Message{Role: "user", Content: []session.Content{session.Text(text)}}
}

func assistant(text string) conversation.Message {
	return conversation.Message{Role: "assistant", Content: []session.Content{session.Text(text)}}
}

func call(id string) conversation.Message {
	return conversation.Message{Role: "assistant", Content: []session.Content{session.ToolUse(id, "look", map[string]any{"at": id})}}
}

func result(id, text string) conversation.Message {
	return conversation.Message{Role: "tool", Content: []session.Content{session.ToolResult(id, text, false)}}
}

// texts returns what messages say, with calls and results in short.
func texts(messages []conversation.Message) []string {
	said := []string{}
	for _, m := range messages {
		said = append(said, m.Role+": "+blocksText(m.Content))
	}
	return said
}

func blocksText(blocks []session.Content) string {
	text := ""
	for _, c := range blocks {
		switch {
		case c.Text != nil:
			text += c.Text.Content
		case c.ToolUse != nil:
			text += "call " + c.ToolUse.ID
		case c.ToolResult != nil:
			text += "result " + c.ToolResult.ToolUseID
		case c.Image != nil:
			text += "image"
		}
	}
	return text
}

// entryTexts is texts of what a model is sent.
func entryTexts(entries []session.Entry) []string {
	said := []string{}
	for _, e := range entries {
		if e.Message != nil {
			said = append(said, e.Message.Role+": "+blocksText(e.Message.Content))
		} else if e.Compaction != nil {
			said = append(said, "summary: "+e.Compaction.Summary)
		}
	}
	return said
}

func systemMessage(text string) conversation.Message {
	m := user(text)
	m.Role, m.Category = "system", conversation.CategorySystem
	return m
}

func contextMessage(text string) conversation.Message {
	m := systemMessage(text)
	m.Category = conversation.CategoryContext
	return m
}

// pixel is a PNG file, or enough of one to be told.
func pixel(n byte) []byte {
	return append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10\x08\x02\x00\x00\x00"), n)
}
