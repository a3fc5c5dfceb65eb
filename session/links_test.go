package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestJoinLinks(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	for _, c := range []struct {
		name  string
		links []session.Link
		want  []session.Linked
	}{
		{"one", []session.Link{{ID: "a"}}, []session.Linked{{ID: "a", Links: []string{"a"}}}},
		{
			"three",
			[]session.Link{{ID: "c", Continues: "b", Index: 2}, {ID: "a", ContinuedTo: "b"}, {ID: "b", Continues: "a", ContinuedTo: "c", Index: 1}},
			[]session.Linked{{ID: "a", Links: []string{"a", "b", "c"}}},
		},
		{
			"the original is lost",
			[]session.Link{{ID: "b", Continues: "a", ContinuedTo: "c"}, {ID: "c", Continues: "b"}},
			[]session.Linked{{ID: "a", Links: []string{"b", "c"}, Missing: []string{"a"}}},
		},
		{
			"one in the middle is lost",
			[]session.Link{{ID: "a", ContinuedTo: "b"}, {ID: "c", Continues: "b", Index: 2}},
			[]session.Linked{{ID: "a", Links: []string{"a", "c"}, Missing: []string{"b"}}},
		},
		{
			"two in the middle are lost: the marker names the original",
			[]session.Link{{ID: "d", Continues: "c", Original: "a", Index: 3, Created: at(1)}, {ID: "a", ContinuedTo: "b", Created: at(2)}},
			[]session.Linked{{ID: "a", Links: []string{"a", "d"}, Missing: []string{"b", "c"}}},
		},
		{
			"the first two are lost",
			[]session.Link{{ID: "c", Continues: "b", Original: "a", Index: 2}},
			[]session.Linked{{ID: "a", Links: []string{"c"}, Missing: []string{"a", "b"}}},
		},
		{
			"the last is lost",
			[]session.Link{{ID: "a", ContinuedTo: "b"}},
			[]session.Linked{{ID: "a", Links: []string{"a"}, Missing: []string{"b"}}},
		},
		{
			"one that was replaced came back, with what continued it",
			[]session.Link{
				{ID: "a", ContinuedTo: "d", Replaced: []string{"x", "b"}},
				{ID: "b", Continues: "a", ContinuedTo: "c", Index: 1},
				{ID: "c", Continues: "b", Index: 2},
				{ID: "d", Continues: "a", Index: 1},
			},
			[]session.Linked{{ID: "a", Links: []string{"a", "b", "c", "d"}}},
		},
		{
			"several that were replaced came back, and what replaced them is lost",
			[]session.Link{
				{ID: "a", ContinuedTo: "d", Replaced: []string{"c", "b"}},
				{ID: "b", Continues: "a", ContinuedTo: "e", Index: 1},
				{ID: "c", Continues: "a", Index: 1},
			},
			[]session.Linked{{ID: "a", Links: []string{"a", "c", "b"}, Missing: []string{"d", "e"}}},
		},
		{
			"a chain that is whole takes in nobody who only names its original",
			[]session.Link{{ID: "a", ContinuedTo: "b", Created: at(1)}, {ID: "b", Continues: "a", Created: at(2)}, {ID: "x", Continues: "fork", Original: "a", Created: at(3)}},
			[]session.Linked{{ID: "a", Links: []string{"a", "b"}}, {ID: "fork", Links: []string{"x"}, Missing: []string{"fork"}}},
		},
		{
			"of two that claim to continue a session one does",
			[]session.Link{{ID: "a", ContinuedTo: "b", Created: at(1)}, {ID: "x", Continues: "a", Created: at(2)}, {ID: "b", Continues: "a", Created: at(3)}},
			[]session.Linked{{ID: "a", Links: []string{"a", "b"}}, {ID: "x", Links: []string{"x"}}},
		},
		{
			"of two that claim to continue a missing one the earliest does",
			[]session.Link{{ID: "x", Continues: "a", Created: at(3)}, {ID: "b", Continues: "a", Created: at(2)}},
			[]session.Linked{{ID: "a", Links: []string{"b"}, Missing: []string{"a"}}, {ID: "x", Links: []string{"x"}}},
		},
		{
			"circles",
			[]session.Link{{ID: "a", Continues: "b", ContinuedTo: "b"}, {ID: "b", Continues: "a", ContinuedTo: "a"}, {ID: "c", Continues: "c", ContinuedTo: "c"}},
			[]session.Linked{{ID: "c", Links: []string{"c"}}, {ID: "a", Links: []string{"a", "b"}}},
		},
	} {
		for range 3 { // whatever order they come in
			if diff := cmp.Diff(c.want, session.JoinLinks(c.links)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
			c.links = append(c.links[1:len(c.links):len(c.links)], c.links[0])
		}
	}
}

// Whatever sessions say of each other, each is in one conversation, and once.
func TestJoinLinksLosesNobody(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "lost"})
		var links []session.Link
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 1, 6, rapid.ID[string]).Draw(t, "ids") {
			links = append(links, session.Link{
				ID: name, Continues: id.Draw(t, "continues"), ContinuedTo: id.Draw(t, "to"), Original: id.Draw(t, "original"), Index: rapid.IntRange(0, 3).Draw(t, "index"),
			})
		}
		var met []string
		ids := make(map[string]bool)
		for _, c := range session.JoinLinks(links) {
			met = append(met, c.Links...)
			if len(c.Links) == 0 || ids[c.ID] {
				t.Fatalf("chain %+v", c)
			}
			ids[c.ID] = true
		}
		slices.Sort(met)
		var want []string
		for _, l := range links {
			want = append(want, l.ID)
		}
		slices.Sort(want)
		if !slices.Equal(met, want) {
			t.Fatalf("chains have %v of %v", met, want)
		}
	})
}

// chainOf makes a chain of sessions in a store. Each text is one entry, with what stands before
// its colon as its kind: "u" is a message of a user, "s" an instruction, "m" a marker. What has
// the id of an entry before is a copy.
func chainOf(t *testing.T, sessions ...[]string) *memory.Store {
	t.Helper()
	st := memory.New(nil)
	for n, texts := range sessions {
		h := session.Header{ID: fmt.Sprintf("s%d", n), Continuation: n}
		if n > 0 {
			h.ParentSession, h.Relation = fmt.Sprintf("s%d", n-1), session.RelationContinuation
		}
		s := closeWith(t, mustGet(session.Create(t.Context(), st, h, nil))(t))
		for _, text := range texts {
			mark, text, _ := strings.Cut(text, ":")
			id, text, _ := strings.Cut(text, "/")
			if mark == "m" {
				markAs(t, s, id, "s0")
				continue
			}
			m := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
			if mark == "s" {
				m.Role, m.Category = session.RoleSystem, "SYSTEM"
			}
			mustGet(s.AppendAll(session.Entry{ID: id, Type: session.TypeMessage, Message: m}))(t)
		}
		if n < len(sessions)-1 {
			mustGet(s.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": fmt.Sprintf("s%d", n+1), "of": h.ID}))(t)
		}
	}
	return st
}

// markAs appends a marker, as an import does.
func markAs(t *testing.T, s *session.Session, id, original string) {
	t.Helper()
	e := session.Entry{ID: id, Type: session.TypeContinues, Timestamp: time.Now(), Continues: &session.ContinuesEntry{Session: s.Header().ParentSession, Original: original}}
	if leaf := s.LeafID(); leaf != "" {
		e.ParentID = &leaf
	}
	mustDo(t, s.Graft(e))
}

func openChain(t *testing.T, st *memory.Store, id string) *session.Session {
	t.Helper()
	c := mustGet(session.FindChain(t.Context(), st, id, nil))(t)
	return closeWith(t, mustGet(session.OpenChain(t.Context(), st, c, nil))(t))
}

// pathTexts is what the path of a session says, in one line.
func pathTexts(t *testing.T, s *session.Session) string {
	t.Helper()
	var texts []string
	for _, e := range mustGet(s.Forward(""))(t) {
		if e.Message != nil {
			texts = append(texts, e.Message.Content[0].Text.Content)
		}
	}
	return strings.Join(texts, " ")
}

func TestOpenChain(t *testing.T) {
	t.Parallel()
	sessions := [][]string{
		{"s:a/be_kind", "u:b/one"},
		{"s:a/be_kind", "m:m1/mark", "s:c/be_brief", "u:d/two"},
		{"s:a/be_kind", "s:c/be_brief", "m:m2/mark", "u:e/three"},
	}
	for lost, want := range map[string]string{
		"":   "be_kind one be_brief two three",
		"s0": "be_kind be_brief two three",
		"s1": "be_kind one be_brief three",
		"s2": "be_kind one be_brief two",
	} {
		st := chainOf(t, sessions...)
		if lost != "" {
			mustDo(t, st.Remove(t.Context(), lost))
		}
		for _, id := range []string{"s0", "s1", "s2"} {
			s := openChain(t, st, id)
			if got := pathTexts(t, s); got != want {
				t.Errorf("without %q, by %s: %q, want %q", lost, id, got, want)
			}
			if s.ID() != "s0" {
				t.Errorf("without %q: the id is %s", lost, s.ID())
			}
			if problems := mustGet(s.Problems())(t); len(problems) > 0 {
				t.Errorf("without %q: %v", lost, problems)
			}
		}
	}
}

// What was left on other branches is there too, and can be gone on with in the last session.
func TestChainHasAllBranches(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one", "u:b/left"}, []string{"u:a/one", "m:m/mark", "u:c/two", "u:d/gone"})
	first := closeWith(t, mustGet(session.Open(t.Context(), st, "s0", nil))(t))
	mustDo(t, first.Branch("a"))
	second := closeWith(t, mustGet(session.Open(t.Context(), st, "s1", nil))(t))
	mustGet(second.SetLabel("a", "start"))(t)
	mustDo(t, second.Branch("c"))
	mustGet(second.AppendAll(session.Entry{ID: "e", Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("three")}}}))(t)
	s := openChain(t, st, "s1")
	if got := pathTexts(t, s); got != "one two three" {
		t.Errorf("the path is %q", got)
	}
	for _, id := range []string{"b", "d"} {
		if ok, err := s.Has(id); !ok || err != nil {
			t.Errorf("entry %s: %v, %v", id, ok, err)
		}
	}
	if labels := mustGet(s.Labels())(t); labels["a"] != "start" {
		t.Errorf("labels %v: a label of a copy belongs to the original", labels)
	}
	if err := s.Branch("b"); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "earlier session") {
		t.Errorf("back to an earlier session: %v", err)
	}
	mustDo(t, s.Branch("d"))
	mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("more")}))(t)
	if got, again := pathTexts(t, s), pathTexts(t, openChain(t, st, "s0")); got != "one two gone more" || again != got {
		t.Errorf("the path is %q, and %q when it is opened again", got, again)
	}
}

// An entry with the id of an earlier one is a copy only where a session begins.
func TestCopiesOnlyAtTheBeginningOfAContinuation(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one", "u:b/two"}, []string{"u:b/two", "m:m/mark", "u:c/three", "m:m2/mark2", "u:d/four", "u:a/other"})
	s := openChain(t, st, "s0")
	if got := pathTexts(t, s); got != "one two three four" {
		t.Errorf("the path is %q", got)
	}
	problems := mustGet(s.Problems())(t)
	if len(problems) == 0 || problems[0].Kind != session.ProblemDuplicate || problems[0].EntryID != "a" {
		t.Errorf("problems %v, want that the id a is there twice", problems)
	}
}

// The context of a conversation is the same wherever a session of it ends: what
// was carried over is not in it twice, and a compaction in the last session cuts
// what is in the others.
func TestContextOfAChain(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"s:a/be_kind", "u:b/one"}, []string{"s:a/be_kind", "m:m/mark", "u:c/two", "u:d/three"})
	texts := func() string {
		t.Helper()
		var said []string
		for _, e := range mustGet(openChain(t, st, "s0").GetContext())(t) {
			switch {
			case e.Compaction != nil:
				said = append(said, e.Compaction.Summary)
			case e.Message != nil:
				said = append(said, e.Message.Content[0].Text.Content)
			}
		}
		return strings.Join(said, " ")
	}
	if got := texts(); got != "be_kind one two three" {
		t.Errorf("the context is %q", got)
	}
	last := closeWith(t, mustGet(session.Open(t.Context(), st, "s1", nil))(t))
	mustGet(last.AppendCompaction("summary", "d", 10))(t)
	if got := texts(); got != "be_kind summary three" {
		t.Errorf("compacted, the context is %q", got)
	}
}

// A fork of a chain is one session with all of it: what is read from the two is the
// same, and it stays so when a session of the chain is gone.
func TestForkOfAChain(t *testing.T) {
	t.Parallel()
	said := func(s *session.Session) (ids []string, ctx string, labels map[string]string) {
		t.Helper()
		for _, e := range mustGet(s.Forward(""))(t) {
			if e.Label == nil { // the copy of a path has those at its end
				ids = append(ids, e.ID)
			}
		}
		sent := mustGet(s.GetContext())(t)
		for i := range sent {
			if c := sent[i].Compaction; c != nil {
				c.State.Kept = nil // it is about the session in which it was written
			}
		}
		return ids, string(mustGet(json.Marshal(sent))(t)), mustGet(s.Labels())(t)
	}
	for _, lost := range []string{"", "s0", "s1", "s2"} {
		st := chainOf(t,
			[]string{"s:a/be_kind", "u:b/one", "u:left/left"},
			[]string{"s:a/be_kind", "m:m1/mark", "s:c/be_brief", "u:d/two"},
			[]string{"s:a/be_kind", "s:c/be_brief", "m:m2/mark", "u:f/three", "u:e/four"})
		first := closeWith(t, mustGet(session.Open(t.Context(), st, "s0", nil))(t))
		mustGet(first.SetLabel("b", "start"))(t)
		mustDo(t, first.Branch("b"))
		last := closeWith(t, mustGet(session.Open(t.Context(), st, "s2", nil))(t))
		mustGet(last.AppendCompaction("summary", "e", 10))(t)
		if lost != "" {
			mustDo(t, st.Remove(t.Context(), lost))
		}
		chain := openChain(t, st, "s1")
		fork := closeWith(t, mustGet(chain.Fork(t.Context(), st, nil))(t))
		if h := fork.Header(); h.ParentSession != "s0" || h.Relation != session.RelationFork || h.Continuation != 0 {
			t.Errorf("without %q: header %+v", lost, h)
		}
		path, err := chain.CreateBranchedSession(chain.LeafID())
		mustDo(t, err)
		branched := closeWith(t, mustGet(session.Open(t.Context(), st, path, nil))(t))
		wantIDs, wantContext, wantLabels := said(chain)
		for what, s := range map[string]*session.Session{"fork": fork, "path": branched} {
			ids, ctx, labels := said(s)
			if diff := cmp.Diff(wantIDs, ids); diff != "" {
				t.Errorf("%s without %q: path:\n%s", what, lost, diff)
			}
			if diff := cmp.Diff(wantContext, ctx); diff != "" {
				t.Errorf("%s without %q: context:\n%s", what, lost, diff)
			}
			if diff := cmp.Diff(wantLabels, labels); diff != "" {
				t.Errorf("%s without %q: labels:\n%s", what, lost, diff)
			}
			if problems := mustGet(s.Problems())(t); len(problems) > 0 {
				t.Errorf("%s without %q: %v", what, lost, problems)
			}
			mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("on")}))(t)
		}
		if ok := mustGet(fork.Has("left"))(t); ok != (lost != "s0") {
			t.Errorf("without %q: the fork has the other branch: %v", lost, ok)
		}
	}
}

// Where damage made a root of what follows an earlier session, and where only the
// record of the continuation moved the leaf, a fork has the shape of the chain.
func TestForkOfADamagedChain(t *testing.T) {
	t.Parallel()
	const message = `,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":{"content":"x"}}]}}`
	for name, second := range map[string]string{
		"its own parent":        `{"type":"message","id":"c","parent_id":"c"` + message,
		"the first line is bad": `{"type":"message","id":"bad","parent_id":null,"timesta`,
	} {
		st := memory.New(nil)
		mustGet(st.Create(t.Context(), "s0", store.Lines([]byte(`{"type":"session","id":"s0","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}`),
			[]byte(`{"type":"message","id":"a","parent_id":null`+message),
			[]byte(`{"type":"message","id":"b","parent_id":"a"`+message),
			[]byte(`{"type":"custom","id":"r","parent_id":"a","timestamp":"2026-01-01T00:00:02.000Z","custom":{"custom_type":"coppice.continued_to","data":{"session":"s1","of":"s0"}}}`))))(t)
		mustGet(st.Create(t.Context(), "s1", store.Lines([]byte(`{"type":"session","id":"s1","version":1,"parent_session":"s0","relation":"continuation","timestamp":"2026-01-01T00:00:00.000Z"}`),
			[]byte(second))))(t)
		chain := openChain(t, st, "s0")
		fork := closeWith(t, mustGet(chain.Fork(t.Context(), st, nil))(t))
		if chain.LeafID() != fork.LeafID() {
			t.Errorf("%s: the leaf is %s, want %s", name, fork.LeafID(), chain.LeafID())
		}
		last := "c"
		if name != "its own parent" {
			last = "bad"
		}
		if e := mustGet(fork.Entry(last))(t); e.ParentID == nil || *e.ParentID != "r" {
			t.Errorf("%s: %s hangs on %v", name, last, e.ParentID)
		}
	}
}

// The example at the top of links.go.
func TestJoinLinksAcrossAGap(t *testing.T) {
	t.Parallel()
	got := session.JoinLinks([]session.Link{
		{ID: "s0", ContinuedTo: "s1"},
		{ID: "s1", Continues: "s0", ContinuedTo: "s2", Original: "s0", Index: 1},
		{ID: "s3", Continues: "s2", Original: "s0", Index: 3},
		{ID: "x", Continues: "s0", Original: "s0", Index: 1},
	})
	want := []session.Linked{{ID: "s0", Links: []string{"s0", "s1", "s3"}, Missing: []string{"s2"}}, {ID: "x", Links: []string{"x"}}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Lines that were moved to where a session begins keep their own parents.
func TestLinesMovedBeforeTheMarker(t *testing.T) {
	t.Parallel()
	line := func(kind, id, parent, payload string) []byte {
		if parent = `"` + parent + `"`; parent == `""` {
			parent = "null"
		}
		return fmt.Appendf(nil, `{"type":%q,"id":%q,"parent_id":%s,"timestamp":"2026-01-01T00:00:01.000Z",%q:%s}`, kind, id, parent, kind, payload)
	}
	said := func(id, parent string) []byte {
		return line("message", id, parent, `{"role":"user","content":"`+id+`"}`)
	}
	st := memory.New(nil)
	mustGet(st.Create(t.Context(), "s0", store.Lines([]byte(`{"type":"session","id":"s0","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}`),
		said("a", ""), said("b", "a"),
		line("custom", "r", "b", `{"custom_type":"coppice.continued_to","data":{"session":"s1","of":"s0"}}`))))(t)
	mustGet(st.Create(t.Context(), "s1", store.Lines([]byte(`{"type":"session","id":"s1","version":1,"parent_session":"s0","relation":"continuation","timestamp":"2026-01-01T00:00:00.000Z"}`),
		said("d", "c"), said("c", "m"), said("a", ""),
		line("continues", "m", "a", `{"session":"s0","original":"s0"}`), said("e", "d"))))(t)
	if got := pathTexts(t, openChain(t, st, "s0")); got != "a b c d e" {
		t.Errorf("the path is %q", got)
	}
}

// A line without an id is damaged, so it continues no session, whatever else it says.
func TestRecordWithoutAnID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`"i$":"r"`, `"id":7`, `"id":""`} {
		st := memory.New(nil)
		mustGet(st.Create(t.Context(), "s0", store.Lines([]byte(`{"type":"session","id":"s0","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}`),
			fmt.Appendf(nil, `{"type":"custom",%s,"parent_id":null,"timestamp":"2026-01-01T00:00:01.000Z","custom":{"custom_type":"coppice.continued_to","data":{"session":"s1","of":"s0"}}}`, id))))(t)
		if l := mustGet(session.ReadLink(t.Context(), st, "s0"))(t); l.ContinuedTo != "" {
			t.Errorf("%s: the session is continued by %q", id, l.ContinuedTo)
		}
	}
}
