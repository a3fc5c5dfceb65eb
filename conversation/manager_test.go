package conversation_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestSessionManager(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"in memory": "", "in files": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, dir, 100)
			if _, ok, err := m.CurrentSession(); ok || err != nil {
				t.Fatalf("a current session before there is any: %v, %v", ok, err)
			}
			s := must(m.CreateSession("A title"))(t)
			if current, ok, err := m.CurrentSession(); !ok || err != nil || current.ID != s.ID || current.Metadata["title"] != "A title" {
				t.Errorf("%+v, %v, %v", current, ok, err)
			}
			s = s.AddMessage(user("hello"))
			s.Metadata["project"] = "garden"
			if saved, err := m.SaveSession(s); !saved || err != nil {
				t.Fatal(saved, err)
			}
			other := must(m.CreateSession(""))(t)
			loaded := must(m.LoadSession(s.ID))(t)
			if current, _, _ := m.CurrentSession(); current.ID != s.ID {
				t.Errorf("loading made %s the current session, not %s", current.ID, s.ID)
			}
			if diff := cmp.Diff([]string{"user: hello"}, texts(loaded.Messages)); diff != "" {
				t.Error(diff)
			}
			want := map[string]any{"title": "A title", "project": "garden", "continuation_index": 0, "message_count": 1, "token_count": 5}
			if diff := cmp.Diff(want, loaded.Metadata); diff != "" {
				t.Error(diff)
			}
			if deleted := must(m.DeleteSession(s.ID))(t); !deleted {
				t.Error("not deleted")
			}
			if gone := must(m.DeleteSession(s.ID))(t); !gone {
				t.Error("deleted twice")
			}
			if _, ok, _ := m.CurrentSession(); ok {
				t.Error("the deleted session is still the current one")
			}
			_, err := m.LoadSession(s.ID)
			wantError(t, err, os.ErrNotExist)
			must(m.LoadSession(other.ID))(t)
		})
	}
}

func TestSaveSession(t *testing.T) {
	t.Parallel()
	m := newManager(t, t.TempDir(), 3)
	if saved, err := m.SaveSession(conversation.Session{}); saved || err != nil {
		t.Errorf("saving nothing: %v, %v", saved, err)
	}
	// A session that was never in a store, and that is over the boundary at once.
	s := conversation.NewSession()
	s.Metadata["directory"], s.Metadata["title"] = "/src", "T"
	for i := range 8 {
		s = s.AddMessage(user(fmt.Sprint(i)))
	}
	must(m.SaveSession(s))(t)
	must(m.SaveSession(s))(t) // nothing new
	c := must(m.Conversation(s.ID))(t)
	if diff := cmp.Diff(texts(s.Messages), texts(c.Messages)); diff != "" {
		t.Error(diff)
	}
	if len(c.Links) != 3 || c.Metadata["title"] != "T" || !c.CreatedAt.Equal(s.CreatedAt) {
		t.Errorf("%d links, %v", len(c.Links), c.Metadata)
	}
	if got := must(m.LoadSession(s.ID))(t).Metadata["directory"]; got != "/src" {
		t.Errorf("directory %v", got)
	}
	for i, msg := range c.Messages {
		if msg.ID != s.Messages[i].ID || !msg.Timestamp.Equal(s.Messages[i].Timestamp) {
			t.Errorf("message %d is not the one that was saved: %+v", i, msg)
		}
	}
	// Metadata can be changed and taken back.
	c.Session.Metadata["mood"] = "good"
	must(m.SaveSession(c.Session))(t)
	c = must(m.Conversation(s.ID))(t)
	if c.Metadata["mood"] != "good" {
		t.Errorf("%v", c.Metadata)
	}
	delete(c.Metadata, "mood")
	must(m.SaveSession(c.Session))(t)
	if c = must(m.Conversation(s.ID))(t); c.Metadata["mood"] != nil {
		t.Errorf("%v", c.Metadata)
	}
	bad := s.AddMessage(user("x"))
	bad.Messages[0].Role = ""
	_, err := m.SaveSession(bad.Clone())
	wantError(t, err, session.ErrInvalid)
}

// However many messages are saved at once, all of them are.
func TestSaveManyMessages(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{5, 10_000} {
		st := memory.New(nil)
		m := newManagerOn(t, st, limit)
		s := conversation.NewSession()
		for i := range 1200 {
			s.Messages = append(s.Messages, conversation.NewSession().AddMessage(user(fmt.Sprint(i))).Messages[0])
		}
		must(m.SaveSession(s))(t)
		if diff := cmp.Diff(texts(s.Messages), texts(must(newManagerOn(t, st, limit).Conversation(s.ID))(t).Messages)); diff != "" {
			t.Errorf("%d messages a session:\n%s", limit, diff)
		}
	}
}

func TestHandedOutValues(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	msg := user("as it was")
	msg.Metadata = map[string]any{"k": "v"}
	id := say(t, m, "", msg)
	msg.Content[0].Text.Content, msg.Metadata["k"] = "changed", "changed"
	s := must(m.LoadSession(id))(t)
	s.Messages[0].Content[0].Text.Content, s.Messages[0].Metadata["k"], s.Metadata["title"] = "changed", "changed", "changed"
	c := must(m.Conversation(id))(t)
	if c.Messages[0].Text() != "as it was" || c.Messages[0].Metadata["k"] != "v" || c.Metadata["title"] != nil {
		t.Errorf("%+v", c.Messages[0])
	}
}

func TestAddMessageTwice(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	id := say(t, m, "", user("1"))
	msg := user("2")
	msg.ID = "msg_1a2b3c4d"
	must(m.AddMessage(id, msg))(t)
	msg.Content = user("another").Content
	_, err := m.AddMessage(id, msg)
	wantError(t, err, session.ErrExist)
	_, err = m.AddMessage(id, conversation.Message{})
	wantError(t, err, session.ErrInvalid)
	_, err = m.AddMessage("missing", user("x"))
	wantError(t, err, session.ErrNotExist)
	if got := len(must(m.LoadSession(id))(t).Messages); got != 2 {
		t.Errorf("%d messages", got)
	}
}

// Somebody else may move the leaf; what is added then goes there.
func TestBranchOfAnotherProgram(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := newManagerOn(t, st, 100)
	id := say(t, m, "", user("1"), assistant("2"), user("3"))
	s := must(session.Open(t.Context(), st, id, nil))(t)
	path := must(s.Forward(""))(t)
	do(t, s.Branch(path[1].ID))
	say(t, m, id, user("4"))
	if diff := cmp.Diff([]string{"user: 1", "assistant: 2", "user: 4"}, texts(must(m.LoadSession(id))(t).Messages)); diff != "" {
		t.Error(diff)
	}
	// The id of a message on the branch that was left is taken.
	dup := user("x")
	dup.ID = path[2].ID
	_, err := m.AddMessage(id, dup)
	wantError(t, err, session.ErrExist)
}

func TestListSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 2)
	var ids []string
	for i := range 5 {
		id := say(t, m, "", user(fmt.Sprint(i)))
		when := time.Now().Add(time.Duration(i-10) * time.Minute)
		do(t, os.Chtimes(filepath.Join(dir, id+".jsonl"), when, when))
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	idsOf := func(list []conversation.Info) (got []string) {
		for _, s := range list {
			got = append(got, s.ID)
		}
		return got
	}
	for _, tt := range []struct {
		limit, offset int
		want          []string
	}{{0, 0, ids}, {2, 0, ids[:2]}, {2, 3, ids[3:]}, {2, 9, nil}, {-1, 1, ids[1:]}, {-1, -1, ids}} {
		if diff := cmp.Diff(tt.want, idsOf(must(m.ListSessions(tt.limit, tt.offset))(t))); diff != "" {
			t.Errorf("sessions %d from %d:\n%s", tt.limit, tt.offset, diff)
		}
		if diff := cmp.Diff(tt.want, idsOf(must(m.ListConversations(tt.limit, tt.offset))(t))); diff != "" {
			t.Errorf("conversations %d from %d:\n%s", tt.limit, tt.offset, diff)
		}
	}
	// A conversation of three sessions is three sessions and one conversation.
	id := say(t, m, "", user("1"), assistant("2"), user("3"), assistant("4"), user("5"))
	sessions, conversations := must(m.ListSessions(0, 0))(t), must(m.ListConversations(0, 0))(t)
	if len(sessions) != 8 || len(conversations) != 6 {
		t.Fatalf("%d sessions, %d conversations", len(sessions), len(conversations))
	}
	first := conversations[0]
	want := conversation.Info{
		ID: id, Title: "1", CreatedAt: must(m.LoadSession(id))(t).CreatedAt, LastActive: must(m.Conversation(id))(t).LastActive,
		MessageCount: 5, TokenCount: must(m.Totals(id))(t).Tokens, ContinuationIndex: 2,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	if s := sessions[0]; s.ContinuationIndex != 2 || s.ContinuedFrom == "" || s.MessageCount != 1 || s.TokenCount == 0 {
		t.Errorf("%+v", s)
	}
	// What cannot be read is listed, and stays as it is.
	broken, now := filepath.Join(dir, "broken.jsonl"), time.Now()
	do(t, os.WriteFile(broken, []byte("?\n"), 0o600))
	do(t, os.Chtimes(broken, now, now)) // the clock of files may be milliseconds behind
	listed := must(m.ListSessions(0, 0))(t)
	if len(listed) != 9 || listed[0].ID != "broken" || !errors.Is(listed[0].Err, session.ErrCorrupt) {
		t.Errorf("%d, %+v", len(listed), listed[0])
	}
	recovered := must(m.LoadSession("broken"))(t)
	for _, s := range must(m.ListSessions(0, 0))(t) {
		if s.ID == recovered.ID && s.RecoveredFrom != "broken" {
			t.Errorf("%+v", s)
		}
	}
}

// Activity dates a session: what is noted about it later does not move it up, and
// neither does touching its file.
func TestListGoesByActivity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 100)
	older := say(t, m, "", user("1"))
	time.Sleep(2 * time.Millisecond)
	newer := say(t, m, "", user("2"))
	said := must(m.LoadSession(older))(t).Messages[0].Timestamp
	s := must(session.Load(filepath.Join(dir, older+".jsonl")))(t)
	must(s.AppendEntry(session.Tags("garden", "winter")))(t)
	must(s.AppendSessionInfo("A name"))(t)
	do(t, s.Close())
	later := time.Now().Add(time.Hour)
	do(t, os.Chtimes(filepath.Join(dir, older+".jsonl"), later, later))
	for name, list := range map[string][]conversation.Info{"sessions": must(m.ListSessions(0, 0))(t), "conversations": must(m.ListConversations(0, 0))(t)} {
		if len(list) != 2 || list[0].ID != newer || list[1].Title != "A name" || !list[1].LastActive.Equal(said) || !slices.Equal(list[1].Tags, []string{"garden", "winter"}) {
			t.Errorf("%s: %+v", name, list)
		}
	}
	// What was said since it was last listed is in the list. Lists go by milliseconds.
	time.Sleep(2 * time.Millisecond)
	must(m.AddMessage(older, assistant("3")))(t)
	if list := must(m.ListConversations(0, 0))(t); list[0].ID != older || list[0].MessageCount != 2 {
		t.Errorf("%+v", list)
	}
	if info := must(m.Info(older))(t); info.MessageCount != 2 || info.Title != "A name" || len(info.Tags) != 2 {
		t.Errorf("%+v", info)
	}
	_, err := m.Info("missing")
	wantError(t, err, session.ErrNotExist)
}

// The latest name of a conversation is its title, in whichever of its sessions it was given.
func TestListsNameAConversationByItsLatestName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 2)
	id := say(t, m, "", user("first words"), assistant("2"), user("3"), assistant("4"))
	tail := must(m.Totals(id))(t).Tail
	name := func(link, to string) {
		t.Helper()
		s := must(session.Load(filepath.Join(dir, link+".jsonl")))(t)
		must(s.AppendSessionInfo(to))(t)
		do(t, s.Close())
	}
	check := func(want string) {
		t.Helper()
		list := must(m.ListConversations(0, 0))(t)
		if len(list) != 1 || list[0].Title != want {
			t.Errorf("%+v, want the title %q", list, want)
		}
		if info := must(m.Info(id))(t); info.Title != want {
			t.Errorf("%+v, want the title %q", info, want)
		}
	}
	check("first words")
	name(id, "Early\nand more")
	check("Early")
	name(tail, "Late")
	check("Late")
	name(id, "Early again")
	check("Late")
	name(tail, "")
	check("first words")
}

// A list of conversations shows where a chain that was cut off ends.
func TestListConversationsWithAGap(t *testing.T) {
	t.Parallel()
	m := newManager(t, t.TempDir(), 1)
	id := say(t, m, "", user("1"), assistant("2"), user("3"))
	must(m.DeleteSession(must(m.Totals(id))(t).Tail))(t)
	list := must(m.ListConversations(0, 0))(t)
	if len(list) != 1 || list[0].ID != id || list[0].MessageCount != 2 || list[0].Err != nil {
		t.Errorf("%+v", list)
	}
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	o := quiet(100)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	m := must(conversation.OpenSessions(dir, o))(t)
	id := say(t, m, "", user("one"), assistant("two"), user("three"))
	do(t, m.Close())
	path := filepath.Join(dir, id+".jsonl")
	whole := must(os.ReadFile(path))(t)
	open := func() *conversation.Sessions {
		m := must(conversation.OpenSessions(dir, o))(t)
		t.Cleanup(func() { m.Close() })
		return m
	}
	t.Run("a damaged line is passed over", func(t *testing.T) {
		lines := bytes.SplitAfter(whole, []byte("\n"))
		lines[2] = []byte("{\"type\":\"message\",\"id\":\"half\n")
		do(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
		m := open()
		got := texts(must(m.LoadSession(id))(t).Messages)
		if !slices.Contains(got, "user: three") {
			t.Errorf("%v", got)
		}
		if problems := must(m.Problems(id))(t); len(problems) == 0 {
			t.Error("nobody is told")
		}
	})
	t.Run("a torn end is not in the way", func(t *testing.T) {
		do(t, os.WriteFile(path, append(slices.Clone(whole), `{"type":"message","id":"to`...), 0o600))
		m := open()
		say(t, m, id, user("four"))
		if diff := cmp.Diff([]string{"user: one", "assistant: two", "user: three", "user: four"}, texts(must(open().LoadSession(id))(t).Messages)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the backup takes the place of what cannot be read", func(t *testing.T) {
		do(t, os.WriteFile(path, []byte("garbage\n"), 0o600))
		do(t, os.WriteFile(path+".bak", whole, 0o600))
		s := must(open().LoadSession(id))(t)
		if s.ID != id || len(s.Messages) != 3 {
			t.Errorf("%s: %v", s.ID, texts(s.Messages))
		}
	})
	t.Run("or else a new session with a notice", func(t *testing.T) {
		do(t, os.WriteFile(path, []byte("garbage\n"), 0o600))
		_ = os.Remove(path + ".bak")
		m := open()
		s := must(m.LoadSession(id))(t)
		if s.ID == id || s.Metadata["recovered_from"] != id || !strings.Contains(s.Messages[0].Text(), id) {
			t.Errorf("%+v", s)
		}
		say(t, m, id, user("on we go")) // the old id leads there
		if got := texts(must(m.LoadSession(s.ID))(t).Messages); len(got) != 2 {
			t.Errorf("%v", got)
		}
		if data := must(os.ReadFile(path))(t); string(data) != "garbage\n" {
			t.Errorf("the file was changed: %q", data)
		}
	})
	if !strings.Contains(log.String(), "cannot be read") || !strings.Contains(log.String(), id) {
		t.Errorf("nobody was told: %s", log.String())
	}
}

func TestRecoveryWithoutFiles(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	log := must(st.Create(t.Context(), "broken", func(yield func([]byte, error) bool) { yield([]byte("?"), nil) }))(t)
	do(t, log.Close())
	m := newManagerOn(t, st, 100)
	s := must(m.LoadSession("broken"))(t)
	if s.Metadata["recovered_from"] != "broken" || !strings.Contains(s.Messages[0].Text(), "broken") {
		t.Errorf("%+v", s)
	}
}

// Where a session is asked for, none stands for the current one.
func TestTheCurrentSessionIsMeant(t *testing.T) {
	t.Parallel()
	var none conversation.Session
	m := newManager(t, t.TempDir(), 2)
	if saved, err := m.SaveSession(none); saved || err != nil {
		t.Errorf("nothing to save: %v, %v", saved, err)
	}
	if m.CheckSessionBoundary(none) {
		t.Error("no session has reached its boundary")
	}
	_, err := m.CreateContinuationSession(none)
	wantError(t, err, session.ErrInvalid)
	_, err = m.SaveSession(none.AddMessage(user("of no session")))
	wantError(t, err, session.ErrInvalid)

	id := say(t, m, "", user("1"))
	if saved, err := m.SaveSession(none); !saved || err != nil {
		t.Errorf("%v, %v", saved, err)
	}
	if m.CheckSessionBoundary(none) {
		t.Error("one of two messages is no boundary")
	}
	say(t, m, id, assistant("2"))
	if !m.CheckSessionBoundary(none) {
		t.Error("two of two are")
	}
	next := must(m.CreateContinuationSession(none))(t)
	if next.Metadata[conversation.MetaContinuedFrom] != id {
		t.Errorf("%v", next.Metadata)
	}
	if current, _, _ := m.CurrentSession(); current.ID != next.ID {
		t.Errorf("%s is the current session, not %s", current.ID, next.ID)
	}
}

func TestClosedManager(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	id := say(t, m, "", user("1"))
	do(t, m.Close())
	do(t, m.Close())
	_, err := m.LoadSession(id)
	wantError(t, err, session.ErrClosed)
	_, err = m.AddMessage(id, user("2"))
	wantError(t, err, session.ErrClosed)
	_, err = m.CreateSession("")
	wantError(t, err, session.ErrClosed)
}

func TestManagerOfABadDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	do(t, os.WriteFile(path, nil, 0o600))
	m, err := conversation.OpenSessions(path, quiet(100))
	if err == nil {
		_, err = m.CreateSession("")
		m.Close()
	}
	if err == nil {
		t.Error("a file is no directory")
	}
	_, err = conversation.OpenSessions("", &conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: -1}})
	wantError(t, err, session.ErrInvalid)
	_, err = conversation.NewSessions(memory.New(nil), &conversation.Options{Settings: conversation.Settings{MaxSessionsInMemory: -1}})
	wantError(t, err, session.ErrInvalid)
}
