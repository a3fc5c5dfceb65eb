package conversation_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/store/file"
)

// A program that runs while somebody redacts its conversations shows what is
// left, and goes on.
func TestConversationRewrittenUnderAManager(t *testing.T) {
	dir := t.TempDir()
	m := newManager(t, dir, 100)
	s := must(m.CreateSession(""))(t)
	must(m.AddMessage(s.ID, user("the word is xyzzy")))(t)
	rewrite(t, dir, s.ID, "xyzzy", "[gone]")
	sees := func(want ...string) {
		t.Helper()
		if got := texts(must(m.LoadSession(s.ID))(t).Messages); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if c := must(m.Conversation(s.ID))(t); !slices.Equal(texts(c.Messages), want) {
			t.Errorf("the conversation has %q, want %q", texts(c.Messages), want)
		}
	}
	sees("user: the word is [gone]")
	rewrite(t, dir, s.ID, "[gone]", "lost")
	must(m.AddMessage(s.ID, assistant("noted")))(t)
	sees("user: the word is lost", "assistant: noted")
}

// rewrite exchanges a session's file as redaction does.
func rewrite(t *testing.T, dir, id, old, new string) {
	t.Helper()
	path := must(file.Open(dir, nil))(t).Path(id)
	data := must(os.ReadFile(path))(t)
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%q is not in %q", old, data)
	}
	if err := os.WriteFile(path+".new", bytes.ReplaceAll(data, []byte(old), []byte(new)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
