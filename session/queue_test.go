package session_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

func queuedText(t *testing.T, s *session.Session) (texts []string) {
	t.Helper()
	list, err := s.Queued()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		texts = append(texts, session.TextOf(q.Content))
	}
	return texts
}

func appendQueued(t *testing.T, s *session.Session, in, text string) session.Queued {
	t.Helper()
	q := session.Queued{Content: []session.Content{session.Text(text)}, Session: in}
	e, err := q.Entry()
	if err == nil {
		q.ID, err = s.AppendEntry(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestQueued: what is queued is found by whoever opens the session, on whatever branch it is,
// until it is used or taken back.
func TestQueued(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	both := func(when string, want ...string) {
		t.Helper()
		again, err := session.Open(t.Context(), st, "s", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got, fresh := queuedText(t, s), queuedText(t, again); !slices.Equal(got, want) || !slices.Equal(fresh, want) {
			t.Errorf("%s: %q, and %q in another program; want %q", when, got, fresh, want)
		}
	}
	// say does what an agent does at the beginning of a turn.
	say := func(text string) string {
		t.Helper()
		ids, err := s.AppendAll(
			session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}},
			session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: session.CustomAsking}})
		if err != nil {
			t.Fatal(err)
		}
		return ids[0]
	}
	both("in the beginning")
	first := say("hello")
	one, two := appendQueued(t, s, "s", "one"), appendQueued(t, s, "s", "two")
	appendQueued(t, s, "another", "of another session")
	both("queued", "one", "two")
	if err := s.Branch(first); err != nil {
		t.Fatal(err)
	}
	both("on another branch", "one", "two")
	if _, err := s.AppendEntry(two.Message()); err != nil {
		t.Fatal(err)
	}
	both("one is used", "one")
	say("somebody did not know") // another program queued it at that moment
	both("after a prompt", "one")
	if _, err := s.AppendEntry(session.NewTakenBack(one.ID)); err != nil {
		t.Fatal(err)
	}
	both("the other is taken back")
	for i := range 3 {
		say(fmt.Sprint(i))
	}
	three := appendQueued(t, s, "s", "three")
	both("much later", "three")
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	shown := session.ShowUnsaid(path)
	if last := shown[len(shown)-1]; last.ID != three.ID || last.Message == nil || last.Message.StopReason != session.StopQueued || path[len(path)-1].Message != nil {
		t.Errorf("readers are shown %+v", last)
	}
	for i := range shown[:len(shown)-1] {
		if m := shown[i].Message; m != nil && m.StopReason == session.StopQueued {
			t.Errorf("readers are shown %+v", m)
		}
	}
}
