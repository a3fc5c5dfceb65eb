package conversation_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// say adds messages to a conversation, which is made if the id is empty.
func say(t testing.TB, m *conversation.Sessions, id string, messages ...conversation.Message) string {
	t.Helper()
	if id == "" {
		id = must(m.CreateSession(""))(t).ID
	}
	for _, msg := range messages {
		must(m.AddMessage(id, msg))(t)
	}
	return id
}

// links returns what the sessions of a conversation hold, each for itself.
func links(t testing.TB, m *conversation.Sessions, id string) [][]string {
	t.Helper()
	var all [][]string
	for _, l := range must(m.Conversation(id))(t).Links {
		all = append(all, texts(must(m.LoadSession(l.ID))(t).Messages))
	}
	return all
}

func marker(id string) string { return "system: Continuing from session " + id }

func TestBoundary(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		limit    int
		messages []conversation.Message
		want     func(ids []string) [][]string
	}{
		{
			"SYSTEM, then CONTEXT, then the marker", 4,
			[]conversation.Message{contextMessage("c"), systemMessage("s"), user("1"), assistant("2"), user("3")},
			func(ids []string) [][]string {
				return [][]string{{"system: c", "system: s", "user: 1", "assistant: 2"}, {"system: s", "system: c", marker(ids[0]), "user: 3"}}
			},
		},
		{
			"an answer stays with its question", 1,
			[]conversation.Message{user("1"), assistant("2"), user("3")},
			func(ids []string) [][]string {
				return [][]string{{"user: 1", "assistant: 2"}, {marker(ids[0]), "user: 3"}}
			},
		},
		{
			"a call delays the boundary until its result", 2,
			[]conversation.Message{user("1"), call("a"), result("a", "x"), assistant("2"), user("3")},
			func(ids []string) [][]string {
				return [][]string{{"user: 1", "assistant: call a", "tool: result a"}, {"user: 1", marker(ids[0]), "assistant: 2"}, {marker(ids[1]), "user: 3"}}
			},
		},
		{
			"a call that waits delays it even if the user goes on", 2,
			[]conversation.Message{user("1"), call("a"), user("2"), assistant("3"), user("4")},
			func(ids []string) [][]string {
				return [][]string{{"user: 1", "assistant: call a", "user: 2", "assistant: 3"}, {marker(ids[0]), "user: 4"}}
			},
		},
		{
			"a turn without end is cut, with what it is about", 3,
			[]conversation.Message{
				user("1"), call("a"), result("a", "x"), call("b"), result("b", "x"), call("c"), result("c", "x"), call("d"), result("d", "x"), assistant("2"),
			},
			func(ids []string) [][]string {
				return [][]string{
					{"user: 1", "assistant: call a", "tool: result a"},
					{"user: 1", marker(ids[0]), "assistant: call b", "tool: result b"},
					{"user: 1", marker(ids[1]), "assistant: call c", "tool: result c"},
					{"user: 1", marker(ids[2]), "assistant: call d", "tool: result d"},
					{"user: 1", marker(ids[3]), "assistant: 2"},
				}
			},
		},
		{
			"what is carried leaves room for something else", 2,
			[]conversation.Message{systemMessage("a"), systemMessage("b"), user("1"), assistant("2"), user("3"), assistant("4"), user("5")},
			func(ids []string) [][]string {
				return [][]string{
					{"system: a", "system: b"},
					{"system: a", "system: b", marker(ids[0]), "user: 1", "assistant: 2"},
					{"system: a", "system: b", marker(ids[1]), "user: 3", "assistant: 4"},
					{"system: a", "system: b", marker(ids[2]), "user: 5"},
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, "", tt.limit)
			id := say(t, m, "", tt.messages...)
			var ids []string
			for _, l := range must(m.Conversation(id))(t).Links {
				ids = append(ids, l.ID)
			}
			if diff := cmp.Diff(tt.want(ids), links(t, m, id)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(texts(tt.messages), texts(must(m.Conversation(id))(t).Messages)); diff != "" {
				t.Errorf("read as one conversation:\n%s", diff)
			}
		})
	}
}

// Messages of one response are not torn apart, however long it is.
func TestBoundaryWithinAResponse(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 1)
	id := say(t, m, "", user("1"))
	for i := range 5 {
		part := assistant(fmt.Sprint("part ", i))
		part.ResponseID = "r1"
		say(t, m, id, part)
	}
	other := assistant("another")
	other.ResponseID = "r2"
	say(t, m, id, other)
	got := links(t, m, id)
	if len(got) != 2 || len(got[0]) != 6 || !slices.Contains(got[1], "user: 1") || !slices.Contains(got[1], "assistant: another") {
		t.Errorf("links %v", got)
	}
}

func TestCreateContinuationSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 100)
	s := must(m.CreateSession("A title"))(t)
	s.Metadata["project"] = "garden"
	s = s.AddMessage(systemMessage("s")).AddMessage(user("1")).AddMessage(assistant("2"))
	next := must(m.CreateContinuationSession(s))(t)
	if current, ok, err := m.CurrentSession(); err != nil || !ok || current.ID != next.ID {
		t.Errorf("the current session is %s (%v, %v), want the continuation %s", current.ID, ok, err, next.ID)
	}
	want := map[string]any{
		"title": "A title", "project": "garden", "continued_from": s.ID, "continuation_index": 1, "message_count": 2,
		"token_count": next.TotalTokens(),
	}
	if diff := cmp.Diff(want, next.Metadata); diff != "" {
		t.Errorf("metadata of the continuation:\n%s", diff)
	}
	source := must(m.LoadSession(s.ID))(t)
	if source.Metadata["continued_to"] != next.ID || source.Metadata["continuation_index"] != 0 {
		t.Errorf("metadata of the source: %v", source.Metadata)
	}
	again := must(m.CreateContinuationSession(source))(t)
	if again.ID != next.ID {
		t.Errorf("a second continuation %s beside %s", again.ID, next.ID)
	}
	// The marker says where it came from.
	mark := next.Messages[1]
	if mark.Category != conversation.CategorySystem || mark.Metadata["previous_session"] != s.ID || mark.Metadata["original_session"] != s.ID {
		t.Errorf("marker %+v", mark)
	}
	// Another program sees the same.
	if diff := cmp.Diff(next.Metadata, must(newManager(t, dir, 100).LoadSession(next.ID))(t).Metadata); diff != "" {
		t.Errorf("after reading it again:\n%s", diff)
	}
}

// An explicit continuation in the middle of a turn takes the turn along.
func TestContinuationTakesTheTurnAlong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		limit    int
		messages []conversation.Message
		carried  []string
		own      []string // said in the continuation already
	}{
		{"a question without an answer", 100, []conversation.Message{user("1"), assistant("2"), user("3")}, []string{"user: 3"}, nil},
		{"a call that waits", 100, []conversation.Message{user("1"), call("a")}, []string{"user: 1", "assistant: call a"}, nil},
		{"a result without an answer", 100, []conversation.Message{user("1"), call("a"), result("a", "x")}, []string{"user: 1", "assistant: call a", "tool: result a"}, nil},
		{"one of two results", 100, []conversation.Message{user("1"), both("a", "b"), result("a", "x")}, []string{"user: 1", "assistant: call acall b", "tool: result a"}, nil},
		{"nothing in flight", 100, []conversation.Message{user("1"), assistant("2")}, nil, nil},
		{"nobody asked", 100, []conversation.Message{call("a")}, []string{"assistant: call a"}, nil},
		{"nobody asked or called", 100, []conversation.Message{assistant("1")}, nil, nil},
		{"a long turn", 2, []conversation.Message{user("1"), call("a"), result("a", "x"), call("b")}, []string{"user: 1"}, []string{"assistant: call b"}},
		{"a long turn without a call", 2, []conversation.Message{user("1"), call("a"), result("a", "x")}, []string{"user: 1"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, "", tt.limit)
			id := say(t, m, "", tt.messages...)
			next := must(m.CreateContinuationSession(must(m.LoadSession(id))(t)))(t)
			want := slices.Concat(tt.carried, []string{marker(id)}, tt.own)
			if diff := cmp.Diff(want, texts(next.Messages)); diff != "" {
				t.Error(diff)
			}
			for _, msg := range next.Messages {
				if msg.Usage != nil {
					t.Errorf("%s is billed twice", msg.Text())
				}
			}
			if diff := cmp.Diff(texts(tt.messages), texts(must(m.Conversation(id))(t).Messages)); diff != "" {
				t.Errorf("read as one conversation:\n%s", diff)
			}
		})
	}
}

func both(a, b string) conversation.Message {
	m := call(a)
	m.Content = append(m.Content, call(b).Content...)
	m.Usage = &session.Usage{Output: 7}
	return m
}

// What a model is sent does not depend on where the boundaries are.
func TestBoundaryIsInvisible(t *testing.T) {
	t.Parallel()
	var want []string
	for _, limit := range []int{1000, 7, 3, 1} {
		m := newManager(t, "", limit)
		c := newSystem(t, m)
		c.SetSystemPrompt("be brief")
		for i := range 20 {
			must(c.PrepareConversation(fmt.Sprint("question ", i)))(t)
			if i%5 == 4 {
				must(c.Add(call(fmt.Sprint(i))))(t)
				must(c.AddActionResult(fmt.Sprint(i), "found", false))(t)
			}
			if i == 9 {
				must(c.AddContext("notes.md", "remember"))(t)
			}
			must(c.View())(t)
			must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text("answer")}}))(t)
		}
		v := must(c.View())(t)
		if want == nil {
			want = entryTexts(v.Entries)
		}
		if diff := cmp.Diff(want, entryTexts(v.Entries)); diff != "" {
			t.Errorf("with %d messages a session:\n%s", limit, diff)
		}
		// The same from scratch.
		other := newSystem(t, m)
		do(t, other.Load(c.ID()))
		if diff := cmp.Diff(want, entryTexts(must(other.View())(t).Entries)); diff != "" {
			t.Errorf("with %d messages a session, loaded:\n%s", limit, diff)
		}
	}
}

func TestConversationOfAnyLink(t *testing.T) {
	t.Parallel()
	m := newManager(t, t.TempDir(), 2)
	id := say(t, m, "", user("1"), assistant("2"), user("3"), assistant("4"), user("Five"), assistant("6"))
	c := must(m.Conversation(id))(t)
	if len(c.Links) != 3 || c.ID != id {
		t.Fatalf("%+v", c.Links)
	}
	for i, l := range c.Links {
		if l.First != 2*i || l.Messages != 2 || l.Started.IsZero() {
			t.Errorf("link %d: %+v", i, l)
		}
		if diff := cmp.Diff(c, must(m.Conversation(l.ID))(t)); diff != "" {
			t.Errorf("from link %d:\n%s", i, diff)
		}
		if got := must(m.Totals(l.ID))(t); got.Messages != 6 || got.Tokens != c.TotalTokens() || got.Conversation != id || got.Sessions != 3 || got.Tail != c.Links[2].ID {
			t.Errorf("totals from link %d: %+v", i, got)
		}
		if found := must(m.Search(l.ID, "FIVE"))(t); len(found) != 1 || found[0].Text() != "Five" {
			t.Errorf("found %v", texts(found))
		}
		for page, want := range [][]string{{"user: 1", "assistant: 2", "user: 3", "assistant: 4"}, {"user: Five", "assistant: 6"}, {}} {
			if diff := cmp.Diff(want, texts(must(m.LoadMessages(l.ID, page+1, 4))(t))); diff != "" {
				t.Errorf("page %d:\n%s", page+1, diff)
			}
		}
		for _, c := range []struct{ page, size, want int }{{1, math.MaxInt, 6}, {2, math.MaxInt, 0}, {math.MaxInt, 2, 0}, {math.MaxInt, math.MaxInt, 0}} {
			if got := must(m.LoadMessages(l.ID, c.page, c.size))(t); len(got) != c.want {
				t.Errorf("page %d of %d messages has %v", c.page, c.size, texts(got))
			}
		}
	}
	_, err := m.LoadMessages(id, 0, 5)
	wantError(t, err, session.ErrInvalid)
	for _, missing := range []func() error{
		func() error { _, err := m.Conversation("missing"); return err },
		func() error { _, err := m.Totals("missing"); return err },
		func() error { _, err := m.Search("missing", ""); return err },
		func() error { _, err := m.LoadMessages("missing", 1, 1); return err },
	} {
		wantError(t, missing(), session.ErrNotExist)
	}
}

// A chain is exported as what it is, one conversation: no marker, no copy.
func TestExportOfAChain(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 2)
	id := say(t, m, "", systemMessage("s"), user("1"), assistant("2"), user("3"), assistant("4"), user("5"))
	c := must(m.Conversation(id))(t)
	if len(c.Links) < 2 {
		t.Fatalf("%d links", len(c.Links))
	}
	exported := must(conversation.SessionFromDict(must(c.Dict())(t)))(t)
	want := []string{"system: s", "user: 1", "assistant: 2", "user: 3", "assistant: 4", "user: 5"}
	if diff := cmp.Diff(want, texts(exported.Messages)); diff != "" || exported.ID != id {
		t.Errorf("session %s:\n%s", exported.ID, diff)
	}
	if n := len(must(c.FormattedHistory())(t)); n != len(want) {
		t.Errorf("%d messages for a model", n)
	}
}

// Results of tools can be found too.
func TestSearchResults(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	id := say(t, m, "", user("1"), call("a"), result("a", "a needle in it"))
	if found := must(m.Search(id, "needle"))(t); len(found) != 1 {
		t.Errorf("found %v", texts(found))
	}
}

func TestCheckSessionBoundary(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 2)
	s := conversation.NewSession().AddMessage(user("1"))
	if m.CheckSessionBoundary(s) {
		t.Error("one of two messages is no boundary")
	}
	if !m.CheckSessionBoundary(s.AddMessage(user("2"))) {
		t.Error("two of two are")
	}
	if d := newManager(t, "", 0).Settings(); d.MaxMessagesPerSession != 5000 {
		t.Errorf("the default is %d", d.MaxMessagesPerSession)
	}
}

func TestOnTransition(t *testing.T) {
	t.Parallel()
	var seen []conversation.Transition
	o := quiet(1)
	o.OnTransition = func(tr conversation.Transition) { seen = append(seen, tr) }
	m := must(conversation.OpenSessions("", o))(t)
	id := say(t, m, "", user("1"), assistant("2"), user("3"), assistant("4"), user("5"))
	c := must(m.Conversation(id))(t)
	want := []conversation.Transition{
		{Conversation: id, From: id, To: c.Links[1].ID, Index: 1},
		{Conversation: id, From: c.Links[1].ID, To: c.Links[2].ID, Index: 2},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if s, _, _ := m.CurrentSession(); s.ID != c.Links[2].ID {
		t.Errorf("the current session is %s, want the last", s.ID)
	}
	do(t, m.Close())
}

// A crash between deciding on a continuation and making it loses nothing.
func TestCrashAtBoundary(t *testing.T) {
	t.Parallel()
	st := &crashing{Store: memory.New(nil)}
	m := newManagerOn(t, st, 2)
	id := say(t, m, "", systemMessage("s"), user("1"), assistant("2"))
	st.crash = true
	if _, err := m.AddMessage(id, user("3")); !errors.Is(err, errCrash) {
		t.Fatalf("%v, want the crash", err)
	}
	st.crash = false
	after := newManagerOn(t, st, 2)
	say(t, after, id, user("3 again"))
	c := must(after.Conversation(id))(t)
	if diff := cmp.Diff([]string{"system: s", "user: 1", "assistant: 2", "user: 3 again"}, texts(c.Messages)); diff != "" {
		t.Error(diff)
	}
	if len(c.Links) != 2 {
		t.Errorf("%d links", len(c.Links))
	}
}

// A lost session, whichever it is, costs its own messages and nothing else. The
// conversation keeps its id and goes on, and nothing is made in its place.
func TestRemovedLinks(t *testing.T) {
	t.Parallel()
	said := []conversation.Message{systemMessage("s"), user("1"), assistant("2"), user("3"), assistant("4"), user("5")}
	for lost, want := range [][]string{
		{"system: s", "user: 3", "assistant: 4", "user: 5"},
		{"system: s", "user: 1", "assistant: 2", "user: 5"},
		{"system: s", "user: 1", "assistant: 2", "user: 3", "assistant: 4"},
	} {
		t.Run(fmt.Sprint("link ", lost), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := newManager(t, dir, 3)
			id := say(t, m, "", said...)
			whole := must(m.Conversation(id))(t)
			if len(whole.Links) != 3 || len(whole.Missing) != 0 {
				t.Fatalf("links %+v, missing %v", whole.Links, whole.Missing)
			}
			gone := whole.Links[lost].ID
			must(m.DeleteSession(gone))(t)
			files := must(filepath.Glob(filepath.Join(dir, "*")))(t)

			fresh := newManager(t, dir, 3) // one that remembers nothing
			for _, m := range []*conversation.Sessions{m, fresh} {
				c := must(m.Conversation(id))(t)
				if diff := cmp.Diff(want, texts(c.Messages)); diff != "" {
					t.Error(diff)
				}
				if c.ID != id || !slices.Equal(c.Missing, []string{gone}) || len(c.Links) != 2 {
					t.Errorf("%s misses %v, has %+v", c.ID, c.Missing, c.Links)
				}
				totals := must(m.Totals(id))(t)
				if totals.Messages != len(want) || totals.Conversation != id || totals.Sessions != 2 || !slices.Equal(totals.Missing, []string{gone}) {
					t.Errorf("%+v", totals)
				}
				if found := must(m.Search(id, "s"))(t); len(found) != 1 {
					t.Errorf("found %v", texts(found))
				}
				if diff := cmp.Diff(want[1:3], texts(append(must(m.LoadMessages(id, 2, 1))(t), must(m.LoadMessages(id, 3, 1))(t)...))); diff != "" {
					t.Errorf("pages: %s", diff)
				}
				if list := must(m.ListConversations(0, 0))(t); len(list) != 1 || list[0].ID != id || list[0].MessageCount != len(want) {
					t.Errorf("list %+v", list)
				}
				chat := newSystem(t, m)
				do(t, chat.Load(id))
				if diff := cmp.Diff(want, entryTexts(must(chat.View())(t).Entries)); diff != "" {
					t.Errorf("view: %s", diff)
				}
			}
			if now := must(filepath.Glob(filepath.Join(dir, "*")))(t); !slices.Equal(now, files) {
				t.Errorf("reading made %v of %v", now, files)
			}
			say(t, fresh, id, user("6"))
			if diff := cmp.Diff(append(slices.Clone(want), "user: 6"), texts(must(fresh.Conversation(id))(t).Messages)); diff != "" {
				t.Errorf("after one more: %s", diff)
			}
			if _, err := os.Stat(filepath.Join(dir, gone+".jsonl")); err == nil {
				t.Error("the removed session was made again: it can no longer be restored")
			}

			running := newSystem(t, newManager(t, dir, 3)) // sees it come back
			do(t, running.Load(id))
			must(running.View())(t)

			st := must(file.Open(dir, nil))(t)
			defer st.Close()
			do(t, st.Trash().Restore(t.Context(), must(st.Trash().List(t.Context()))(t)[0].ID))
			all := append(texts(said), "user: 6")
			fresh = newManager(t, dir, 3)
			if diff := cmp.Diff(all, texts(must(fresh.Conversation(id))(t).Messages)); diff != "" {
				t.Errorf("after it came back: %s", diff)
			}
			if diff := cmp.Diff(all[4:6], texts(must(newManager(t, dir, 3).LoadMessages(id, 3, 2))(t))); diff != "" {
				t.Errorf("a page after it came back: %s", diff)
			}
			if totals := must(fresh.Totals(id))(t); totals.Messages != len(all) || totals.Missing != nil {
				t.Errorf("%+v", totals)
			}
			if list := must(fresh.ListConversations(0, 0))(t); len(list) != 1 || list[0].MessageCount != len(all) {
				t.Errorf("list %+v", list)
			}
			chat := newSystem(t, fresh)
			do(t, chat.Load(id))
			if diff := cmp.Diff(all, entryTexts(must(chat.View())(t).Entries)); diff != "" {
				t.Errorf("view after it came back: %s", diff)
			}
			if diff := cmp.Diff(all, entryTexts(must(running.View())(t).Entries)); diff != "" {
				t.Errorf("view of a running chat after it came back: %s", diff)
			}
			say(t, fresh, id, assistant("7"))
			if diff := cmp.Diff(append(all, "assistant: 7"), texts(must(fresh.Conversation(id))(t).Messages)); diff != "" {
				t.Errorf("one more after it came back: %s", diff)
			}
		})
	}
}

// A manager knows where a conversation ended. Others have continued it twice since, and the first
// of the two sessions was removed: the end is behind the gap.
func TestEndBehindAGap(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m, other := newManagerOn(t, st, 2), newManagerOn(t, st, 2)
	id := say(t, m, "", user("1"), assistant("2"))
	say(t, other, id, user("3"), assistant("4"), user("5"))
	lost := must(other.Conversation(id))(t).Links[1].ID
	do(t, other.SaveAll()) // or it reports what is lost
	do(t, st.Remove(t.Context(), lost))
	say(t, m, id, assistant("6"))
	c := must(m.Conversation(id))(t)
	if got := texts(c.Messages); len(c.Links) != 2 || !slices.Equal(c.Missing, []string{lost}) || !slices.Equal(got, []string{"user: 1", "assistant: 2", "user: 5", "assistant: 6"}) {
		t.Errorf("%d links without %v, %q", len(c.Links), c.Missing, got)
	}
}

// What cannot be read is the end of a conversation to no writer: a replacement takes what is added.
func TestEndThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 2)
	id := say(t, m, "", user("1"), assistant("2"), user("3"))
	last := must(m.Tail(id))(t)
	do(t, m.SaveAll()) // or it reports what is lost
	do(t, os.WriteFile(filepath.Join(dir, last+".jsonl"), []byte("garbage\n"), 0o600))
	files := must(filepath.Glob(filepath.Join(dir, "*")))(t)
	fresh := newManager(t, dir, 2)
	for range 2 {
		c := must(fresh.Conversation(id))(t)
		if got := texts(c.Messages); !slices.Equal(got, []string{"user: 1", "assistant: 2"}) || !slices.Equal(c.Missing, []string{last}) {
			t.Errorf("%q without %v", got, c.Missing)
		}
	}
	if now := must(filepath.Glob(filepath.Join(dir, "*")))(t); !slices.Equal(now, files) {
		t.Errorf("reading made %v of %v", now, files)
	}
	say(t, fresh, id, user("4"))
	if end := must(fresh.LoadSession(must(fresh.Tail(id))(t)))(t); end.Metadata["recovered_from"] != last || end.Messages[len(end.Messages)-1].Text() != "4" {
		t.Errorf("%v: %q", end.Metadata, texts(end.Messages))
	}
}

// What another manager adds is on the pages of this one.
func TestPagesOfOthersMessages(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m, other := newManagerOn(t, st, 2), newManagerOn(t, st, 2)
	id := say(t, m, "", user("1"))
	say(t, other, id, assistant("2"), user("3"))
	if diff := cmp.Diff([]string{"user: 1", "assistant: 2", "user: 3"}, texts(must(m.LoadMessages(id, 1, 10))(t))); diff != "" {
		t.Error(diff)
	}
}

// A continuation that another program made has no marker; its conversation is
// whole all the same.
func TestForeignContinuation(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := newManagerOn(t, st, 100)
	id := say(t, m, "", user("1"), assistant("2"))
	s := must(session.Open(t.Context(), st, id, nil))(t)
	next := must(s.Continue())(t)
	must(next.AppendMessage(session.RoleUser, []session.Content{session.Text("3")}))(t)
	m.ReleaseMemory(0)
	totals := must(m.Totals(id))(t)
	if totals.Messages != 3 || totals.Conversation != id || totals.Tail != next.ID() {
		t.Errorf("%+v", totals)
	}
	if diff := cmp.Diff([]string{"user: 1", "assistant: 2", "user: 3"}, texts(must(m.Conversation(id))(t).Messages)); diff != "" {
		t.Error(diff)
	}
}

// Headers that name each other must not keep us busy for ever.
func TestStrangeChains(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	for _, h := range []session.Header{
		{ID: "a", ParentSession: "b", Relation: session.RelationContinuation},
		{ID: "b", ParentSession: "a", Relation: session.RelationContinuation},
		{ID: "c", ParentSession: "../x", Relation: session.RelationContinuation},
	} {
		s := must(session.Create(t.Context(), st, h, nil))(t)
		must(s.AppendMessage(session.RoleUser, []session.Content{session.Text(h.ID)}))(t)
	}
	m := newManagerOn(t, st, 100)
	if got := texts(must(m.Conversation("c"))(t).Messages); !slices.Equal(got, []string{"user: c"}) {
		t.Errorf("%v", got)
	}
	must(m.Conversation("a"))(t)
	// Sessions that claim to continue in each other.
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		s := must(session.Open(t.Context(), st, pair[0], nil))(t)
		must(s.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": pair[1], "of": pair[0]}))(t)
	}
	m.ReleaseMemory(0)
	_, err := m.AddMessage("a", user("1"))
	wantError(t, err, session.ErrCorrupt)
}

// A message keeps its id however often it is copied.
func TestCopiesOfCopies(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 1)
	id := say(t, m, "", systemMessage("s"), user("1"), assistant("2"), user("3"), assistant("4"), user("5"))
	original := must(m.LoadSession(id))(t).Messages[0].ID
	c := must(m.Conversation(id))(t)
	if len(c.Links) < 3 {
		t.Fatalf("%d links", len(c.Links))
	}
	for _, l := range c.Links[1:] {
		if first := must(m.LoadSession(l.ID))(t).Messages[0]; first.ID != original || first.Text() != "s" {
			t.Errorf("%+v", first)
		}
	}
}

// A call that crosses a boundary after one that was interrupted is given its
// result, not one that was made up while it waited.
func TestResultAfterABoundary(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	c := newSystem(t, m)
	for _, msg := range []conversation.Message{user("1"), call("a"), user("2"), call("b")} {
		must(c.Add(msg))(t)
	}
	must(m.CreateContinuationSession(must(m.LoadSession(c.ID()))(t)))(t)
	must(c.View())(t)
	must(c.AddActionResult("b", "real", false))(t)
	v := must(c.View())(t)
	want := []string{"user: 1", "assistant: call a", "tool: result a", "user: 2", "assistant: call b", "tool: result b"}
	if diff := cmp.Diff(want, entryTexts(v.Entries)); diff != "" {
		t.Fatal(diff)
	}
	if got := v.Entries[5].Message.Content[0].ToolResult.Content; got != "real" {
		t.Errorf("the result is %q", got)
	}
}

// Another program writes to a session that was continued, on a branch that does not have the
// record of that. The conversation still goes on in the continuation.
func TestBranchBesideTheRecord(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	m, other := newManagerOn(t, st, 2), newManagerOn(t, st, 2)
	id := must(m.CreateSession(""))(t).ID
	must(m.AddMessage(id, user("one")))(t)
	must(m.AddMessage(id, assistant("two")))(t)
	behind := must(session.Open(t.Context(), st, id, nil))(t)
	defer behind.Close()
	must(other.AddMessage(id, user("three")))(t)
	do(t, session.Retry(func() error {
		_, err := behind.AppendMessage(session.RoleUser, []session.Content{session.Text("beside")})
		return err
	}, nil))
	must(m.AddMessage(id, user("four")))(t)
	c := must(newManagerOn(t, st, 2).Conversation(id))(t)
	if got := texts(c.Messages); !slices.Contains(got, "user: three") || !slices.Contains(got, "user: four") {
		t.Errorf("the conversation is %q", got)
	}
}

// A program goes back to a copy, so the marker is beside the path. What came before is known all
// the same.
func TestBranchFromACopy(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	m := newManagerOn(t, st, 2)
	id := say(t, m, "", systemMessage("s"), user("1"), assistant("2"), user("3"))
	before := must(m.Conversation(id))(t)
	last := before.Links[len(before.Links)-1].ID
	s := must(session.Open(t.Context(), st, last, nil))(t)
	defer s.Close()
	do(t, s.Branch(before.Messages[0].ID))
	must(s.AppendMessage(session.RoleUser, []session.Content{session.Text("3 again")}))(t)
	m = newManagerOn(t, st, 2)
	say(t, m, id, assistant("4"), user("5"))
	if n := must(m.Totals(id))(t); n.Conversation != id || n.Messages != 4 {
		t.Errorf("%+v", n)
	}
	c := must(m.Conversation(id))(t)
	if got := texts(c.Messages); len(c.Links) != len(before.Links)+1 || !slices.Equal(got, []string{"system: s", "user: 3 again", "assistant: 4", "user: 5"}) {
		t.Fatalf("%d links, %q", len(c.Links), got)
	}
	if mark := must(m.LoadSession(c.Links[len(c.Links)-1].ID))(t).Messages[1].Metadata; mark["original_session"] != id {
		t.Errorf("marker %v", mark)
	}
}
