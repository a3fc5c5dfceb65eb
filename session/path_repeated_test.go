package session_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// Forward follows the tree even if a later line repeats the id of an entry and the whole log was
// not read before.
func TestForwardGoesPastRepeatedIDs(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := mustGet(session.Create(t.Context(), st, session.Header{ID: "s"}, nil))(t)
	for i := range 200 {
		id := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text(fmt.Sprint("text ", i))}))(t)
		if i != 100 {
			continue
		}
		log := mustGet(st.Open(t.Context(), "s"))(t)
		end := mustGet(log.End(t.Context()))(t)
		line := `{"type":"message","id":"` + id + `","parent_id":null,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":"impostor"}]}}`
		mustGet(log.Append(t.Context(), end, []byte(line)))(t)
		mustDo(t, log.Close())
		mustDo(t, s.Close())
		s = mustGet(session.Open(t.Context(), st, "s", nil))(t)
	}
	mustDo(t, s.Close())
	s = mustGet(session.Open(t.Context(), st, "s", nil))(t)
	defer s.Close()
	path := mustGet(s.Forward(""))(t)
	if len(path) != 200 || session.TextOf(path[100].Message.Content) != "text 100" {
		t.Errorf("the path has %d entries", len(path))
	}
}

// An iterator of the path to the leaf begins at what is the leaf when it is used.
func TestPathToTheLeafAgain(t *testing.T) {
	t.Parallel()
	s := mustGet(session.Create(t.Context(), memory.New(nil), session.Header{ID: "s"}, nil))(t)
	defer s.Close()
	path := s.Path("")
	for want := range 3 {
		n := 0
		for _, err := range path {
			mustDo(t, err)
			n++
		}
		if n != want {
			t.Errorf("%d entries, want %d", n, want)
		}
		mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("more")}))(t)
	}
}
