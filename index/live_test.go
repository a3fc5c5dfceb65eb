package index_test

import (
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// The name of a session holds on every branch, also where an import put it: beside the
// conversation.
func TestNamesAreLive(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := must[*session.Session](t)(session.Create(t.Context(), st, session.Header{ID: "a"}, nil))
	for _, e := range []session.Entry{
		{ID: "name", Timestamp: time.Unix(1, 0), Type: session.TypeSessionInfo, SessionInfo: &session.SessionInfoEntry{Name: "Runner beans"}},
		{ID: "said", Timestamp: time.Unix(2, 0), Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hello")}}},
	} {
		if err := s.Graft(e); err != nil { // each a root
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ix := must[*index.Index](t)(index.Open(t.Context(), st, t.TempDir()+"/index.db", nil))
	defer ix.Close()
	must[index.Report](t)(ix.CatchUp(t.Context(), nil))
	for _, branch := range []index.Branch{index.LiveBranch, index.AllBranches} {
		found, err := ix.Search(t.Context(), index.SearchOptions{Query: "runner", Branch: branch})
		if err != nil || len(found.Hits) != 1 || !found.Hits[0].Live {
			t.Errorf("on %s: %+v, %v", branch, found, err)
		}
	}
}
