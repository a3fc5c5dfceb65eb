package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

// TestRandomOperations does to a store what people do to theirs, and compares
// the index, as it catches up now and then, to what the sessions say themselves
// and to an index that is made from nothing.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	for n := range soak.N(2) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			m := &machine{fixture: newFixture(t), rand: soak.Rand(t)}
			ix := m.open(t)
			if n%2 == 1 {
				ix.SetSweepAlways(0) // as in a large store, only what is marked is looked at
			}
			for range 12 {
				for range 1 + m.rand.IntN(12) {
					m.step()
				}
				mustCatchUp(t, ix)
				m.compareCatalogue(ix)
				m.compareLive(ix)
				m.compareStats(ix)
			}
			fresh, err := index.Open(context.Background(), m.st, filepath.Join(t.TempDir(), "fresh.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer fresh.Close()
			mustCatchUp(t, fresh)
			want, got := must[string](t)(fresh.Dump()), must[string](t)(ix.Dump())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rebuilt and incremental differ (-rebuilt +incremental):\n%s", diff)
			}
			if ok := must[string](t)(ix.Integrity()); ok != "ok" {
				t.Error(ok)
			}
		})
	}
}

// compareStats holds the sums against the rows that they are sums of.
func (m *machine) compareStats(ix *index.Index) {
	m.tb.Helper()
	ctx := context.Background()
	sessions := append(must[[]index.Session](m.tb)(listAll(ix)), index.Session{})
	for _, s := range sessions {
		stats, err := ix.Stats(ctx, index.StatsOptions{Session: s.ID})
		if err != nil {
			m.tb.Fatal(err)
		}
		activity := must[*index.Activity](m.tb)(ix.Activity(ctx, index.StatsOptions{Session: s.ID}))
		if diff := cmp.Diff(*activity, stats.Activity); diff != "" {
			m.tb.Errorf("activity of %q (-rows +sums):\n%s", s.ID, diff)
		}
		for by, got := range map[index.By][]index.Usage{
			index.ByDay: stats.Days, index.ByModel: stats.Models, index.BySession: stats.Sessions,
		} {
			want := must[[]index.Usage](m.tb)(ix.Usage(ctx, index.UsageOptions{By: by, Session: s.ID}))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				m.tb.Errorf("usage of %q by %s (-rows +sums):\n%s", s.ID, by, diff)
			}
		}
	}
}

// machine does random things to a store.
type machine struct {
	*fixture
	rand *rand.Rand
	n    int
}

func (m *machine) names() []string {
	var names []string
	for stat, err := range m.st.List(context.Background()) {
		if err != nil {
			m.tb.Fatal(err)
		}
		names = append(names, stat.Name)
	}
	slices.Sort(names)
	return names
}

func (m *machine) step() {
	ctx := context.Background()
	names := m.names()
	if len(names) < 2 || m.rand.IntN(10) == 0 {
		h := session.Header{CWD: fmt.Sprintf("/p/%d", m.rand.IntN(3)), Key: fmt.Sprintf("k%d", m.n)}
		if len(names) > 0 && m.rand.IntN(2) == 0 {
			h.ParentSession, h.Relation = names[m.rand.IntN(len(names))], session.RelationSubagent
		}
		s := m.create(h)
		m.n++
		m.check(s.Close())
		return
	}
	name := names[m.rand.IntN(len(names))]
	switch m.rand.IntN(20) {
	case 0:
		m.check(m.st.Remove(ctx, name))
		return
	case 1:
		trashed, err := m.st.Trash().List(ctx)
		m.check(err)
		if len(trashed) > 0 {
			err := m.st.Trash().Restore(ctx, trashed[m.rand.IntN(len(trashed))].ID)
			if !errors.Is(err, session.ErrExist) { // a continuation that was removed may have been made again
				m.check(err)
			}
		}
		return
	case 2:
		m.check(m.st.Archive(ctx, name))
		return
	case 3:
		m.check(m.st.Unarchive(ctx, name))
		return
	case 4:
		m.damage(name)
		return
	}
	s, err := session.Open(ctx, m.st, name, m.options())
	m.check(err)
	defer s.Close()
	m.use(s)
}

// damage writes into a file what no session would.
func (m *machine) damage(name string) {
	m.check(m.st.Unarchive(context.Background(), name))
	f, err := os.OpenFile(m.st.Path(name), os.O_APPEND|os.O_WRONLY, 0)
	m.check(err)
	_, err = f.WriteString([]string{
		"not json\n", "\n", `{"type":"message","id":"half` + "\n", `{"type":"message"}` + "\n",
		`{"type":"message","id":"torn","parent_id":null,"timestamp":"2026-03-14T12:00:00Z","message":{"role":"us` + "\n",
		fmt.Sprintf(`{"type":"message","id":"lost-%d","parent_id":"nobody-%d-%s","timestamp":"2026-03-14T12:00:00Z","message":{"role":"user","content":"found"}}`+"\n", m.n, m.rand.IntN(3), name),
	}[m.rand.IntN(6)])
	m.check(err)
	m.check(f.Close())
}

// use does something to a session.
func (m *machine) use(s *session.Session) {
	m.n++
	var ids []string
	for e, err := range s.Entries() {
		m.check(err)
		if e.Type == session.TypeMessage {
			ids = append(ids, e.ID)
		}
	}
	some := func() string { return ids[m.rand.IntN(len(ids))] }
	var err error
	switch k := m.rand.IntN(18); {
	case k < 4 || len(ids) == 0:
		m.ask(s, fmt.Sprintf("question %d about camelCase%d", m.n, m.n%7))
	case k < 7:
		call := fmt.Sprintf("call-%d", m.n)
		m.respond(s, fmt.Sprintf("resp-%d", m.n), fmt.Sprintf("model-%d", m.n%3), session.Usage{Input: m.n, Output: 2 * m.n},
			session.Text("answer"), session.ToolUse(call, []string{"read", "tool1", "tool2", "tool3"}[m.n%4], map[string]any{"path": fmt.Sprintf("f%d.go", m.n%3)}))
		m.append(s, session.RoleTool, session.ToolResult(call, fmt.Sprintf("output %d", m.n), false))
		if m.rand.IntN(2) == 0 { // an answer in which nothing can be found
			m.respond(s, fmt.Sprintf("none-%d", m.n), "model-0", session.Usage{Input: m.n}, session.Text([]string{"", "…"}[m.rand.IntN(2)]))
		}
	case k == 7:
		err = s.Branch(some())
	case k == 8:
		_, err = s.BranchWithSummary(some(), "we tried that")
	case k == 9:
		_, err = s.AppendSessionInfo([]string{"", "A name", "Another Name"}[m.rand.IntN(3)])
	case k == 10:
		_, err = s.AppendEntry(session.Tags([]string{"red", "green", "blue"}[:m.rand.IntN(4)]...))
	case k == 11:
		_, err = s.AppendEntry(session.Pinned(m.rand.IntN(2) == 0))
	case k == 12:
		_, err = s.SetLabel(some(), fmt.Sprintf("label %d", m.n))
	case k == 13:
		var fork *session.Session
		if fork, err = s.Fork(context.Background(), m.st, &session.ForkOptions{Options: m.options()}); err == nil {
			err = fork.Close()
		}
	case k == 14:
		_, err = s.AppendEntry(session.TagChange{Add: []string{"red", "grey"}[:m.rand.IntN(3)], Remove: []string{"blue", "grey"}[:m.rand.IntN(3)]}.Entry())
	case k > 15:
		err = m.goOn(s)
	case k == 15: // as if somebody had labelled an entry while an agent went on from it
		at := some()
		if _, err = s.SetLabel(at, "beside"); err == nil {
			err = s.Branch(at)
		}
	}
	m.check(err)
}

// ask appends what a user says, and now and then how many tokens that has.
func (m *machine) ask(s *session.Session, text string) {
	e := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text(text)},
	}}
	if m.rand.IntN(2) == 0 {
		e.Message.Tokens = &m.n
	}
	_, err := s.AppendAll(e)
	m.check(err)
}

// goOn continues a session, with copies of some of what it has.
func (m *machine) goOn(s *session.Session) error {
	var carry []session.Entry
	path, err := s.Forward("")
	if err != nil {
		return err
	}
	for _, e := range path {
		if e.Message != nil && m.rand.IntN(3) == 0 {
			carry = append(carry, e)
		}
	}
	next, err := s.Continue(carry...)
	if errors.Is(err, session.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.rand.IntN(4) == 0 { // it is lost at once, and another one begins
		id := next.ID()
		m.check(next.Close())
		m.check(m.st.Remove(context.Background(), id))
		if next, err = s.Continue(carry...); err != nil {
			return err
		}
	}
	return next.Close()
}

func (m *machine) check(err error) {
	m.tb.Helper()
	if err != nil {
		m.tb.Fatal(err)
	}
}

// compareCatalogue compares the catalogue to what the sessions say.
func (m *machine) compareCatalogue(ix *index.Index) {
	m.tb.Helper()
	var want []index.Session
	for stat, err := range m.st.List(context.Background()) {
		m.check(err)
		s, err := session.Open(context.Background(), m.st, stat.Name, nil)
		m.check(err)
		info := describe(m.tb, s)
		info.Size, info.Archived = stat.Size, stat.Archived
		want = append(want, info)
		m.check(s.Close())
	}
	for i := range want {
		isHis := func(s index.Session) bool {
			return s.Relation == session.RelationSubagent && s.Parent == want[i].ID
		}
		for _, s := range want {
			if isHis(s) {
				want[i].Subagents++
			}
			younger := s.Created.After(want[i].Created) || s.Created.Equal(want[i].Created) && s.ID > want[i].ID
			if s.Parent == want[i].ID && younger && (s.Relation == session.RelationFork || s.Relation == session.RelationRecovery) {
				want[i].Forks++
			}
		}
	}
	got, _, err := ix.List(context.Background(), index.ListOptions{Limit: -1, Links: true})
	m.check(err)
	byID := cmpopts.SortSlices(func(a, b index.Session) bool { return a.ID < b.ID })
	// What counts as a problem is more to a session than to the index.
	if diff := cmp.Diff(want, got, byID, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(index.Session{}, "Problems", "Conversation")); diff != "" {
		m.tb.Errorf("catalogue (-want +got):\n%s", diff)
	}
	m.compareChains(ix)
}

// conversations returns every conversation of the store, as package session has
// it, by its id.
func (m *machine) conversations() map[string]session.Linked {
	m.tb.Helper()
	all := make(map[string]session.Linked)
	done := make(map[string]bool)
	for _, name := range m.names() {
		if done[name] {
			continue
		}
		c, err := session.FindChain(context.Background(), m.st, name, nil)
		m.check(err)
		for _, link := range c.Links {
			done[link] = true
		}
		if _, twice := all[c.ID]; twice {
			m.tb.Errorf("two conversations have the id %s", c.ID)
		}
		all[c.ID] = c
	}
	return all
}

// compareChains compares the list of conversations to what their sessions say
// when they are read as one.
func (m *machine) compareChains(ix *index.Index) {
	m.tb.Helper()
	type row struct {
		Links, Messages, Branches int
		Missing, Tags             []string
		Leaf                      string
		Pinned                    bool
	}
	want, got := map[string]row{}, map[string]row{}
	for id, c := range m.conversations() {
		s, err := session.OpenChain(context.Background(), m.st, c, nil)
		m.check(err)
		last, err := session.Open(context.Background(), m.st, c.Links[len(c.Links)-1], nil)
		m.check(err)
		r := row{
			Links: len(c.Links), Missing: c.Missing, Messages: must[int](m.tb)(s.MessageCount()), Leaf: last.LeafID(),
		}
		for _, name := range c.Links {
			link, err := session.Open(context.Background(), m.st, name, nil)
			m.check(err)
			r.Tags = append(r.Tags, must[session.Remarks](m.tb)(link.Remarks()).Tags...)
			r.Pinned = r.Pinned || must[session.Remarks](m.tb)(link.Remarks()).Pinned
			m.check(link.Close())
		}
		slices.Sort(r.Tags)
		r.Tags = slices.Compact(r.Tags)
		if len(c.Links)+len(c.Missing) == 1 { // else a session may begin, or end, with several branches
			r.Branches = len(must[[]string](m.tb)(last.Leaves()))
		}
		want[id] = r
		m.check(s.Close())
		m.check(last.Close())
	}
	list, _, err := ix.List(context.Background(), index.ListOptions{Limit: -1})
	m.check(err)
	for _, s := range list {
		r := row{Links: max(s.Links, 1), Missing: s.Missing, Messages: s.Messages, Branches: s.Branches, Tags: s.Tags, Leaf: s.Leaf, Pinned: s.Pinned}
		if s.Links > 0 {
			r.Branches = 0
		}
		got[s.ID] = r
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		m.tb.Errorf("conversations (-want +got):\n%s", diff)
	}
	m.compareActivity(ix, list)
	for id, c := range m.conversations() {
		for _, name := range append(slices.Clone(c.Links), c.Missing...) {
			if s, err := ix.Conversation(context.Background(), name); err != nil || s.ID != id {
				m.tb.Errorf("session %s is in conversation %s, %v; want %s", name, s.ID, err, id)
			}
		}
	}
}

// compareActivity compares what was said when to the list: each message counts in
// both or in neither.
func (m *machine) compareActivity(ix *index.Index, list []index.Session) {
	m.tb.Helper()
	all := int64(0)
	for _, s := range list {
		a, err := ix.Activity(context.Background(), index.StatsOptions{Session: s.ID})
		m.check(err)
		if a.Messages != int64(s.Messages) {
			m.tb.Errorf("conversation %s has %d messages, and its activity is %d", s.ID, s.Messages, a.Messages)
		}
		if len(s.Missing) == 0 && (s.Links > 0 || s.Relation != session.RelationContinuation) { // else there are copies whose originals are gone, or in another conversation
			if diff := cmp.Diff([][]index.Count{s.Models, s.Tools}, [][]index.Count{a.Models, a.Tools}, cmpopts.EquateEmpty()); diff != "" {
				m.tb.Errorf("models and tools of conversation %s (-list +activity):\n%s", s.ID, diff)
			}
		}
		all += a.Messages
	}
	a, err := ix.Activity(context.Background(), index.StatsOptions{})
	m.check(err)
	if a.Messages != all {
		m.tb.Errorf("%d messages in all conversations, %d in each of them", a.Messages, all)
	}
}

// describe computes a session's row from the session alone.
func describe(tb testing.TB, s *session.Session) index.Session {
	h := s.Header()
	info := index.Session{
		ID: h.ID, Name: h.ID, Key: h.Key, CWD: h.CWD, Agent: session.OwnAgent, Project: index.ProjectOf(h.CWD), Parent: h.ParentSession, Relation: h.Relation, Continuation: h.Continuation,
		Created: h.CreatedAt, Leaf: s.LeafID(),
		Tags: must[session.Remarks](tb)(s.Remarks()).Tags, Pinned: must[session.Remarks](tb)(s.Remarks()).Pinned, Messages: must[int](tb)(s.MessageCount()),
		Branches: len(must[[]string](tb)(s.Leaves())), ContinuedTo: must[string](tb)(s.Continuation()),
	}
	var title index.Title
	models, tools, seen := map[string]int64{}, map[string]int64{}, map[string]bool{}
	recorded, begins := int64(0), h.Relation == session.RelationContinuation
	for e, err := range s.Entries() {
		if err != nil {
			tb.Fatal(err)
		}
		if e.Type == session.TypeGap {
			continue
		}
		info.Entries++
		if e.Timestamp.After(info.Updated) && e.Type.IsSaid() {
			info.Updated = e.Timestamp
		}
		title = index.BetterTitle(title, index.TitleIn(&e))
		if begins && e.Continues != nil { // what came before is counted where it was copied from
			begins, info.Tokens, recorded = false, 0, 0
			clear(models)
			clear(tools)
			clear(seen)
		}
		if e.Message != nil {
			addMessage(&info, e.Message, models, tools, seen)
			if e.Message.Usage == nil && e.Message.Tokens != nil {
				recorded += int64(*e.Message.Tokens)
			}
		}
	}
	if info.Updated.IsZero() {
		info.Updated = h.CreatedAt
	}
	if info.Reported = info.Tokens > 0; !info.Reported {
		info.Tokens = recorded
	}
	if spent := must[session.Spent](tb)(session.SpentIn(s)); int64(spent.Tokens()) != info.Tokens || spent.Reported > 0 != info.Reported {
		tb.Errorf("session %s has spent %d tokens, reported: %t; want %d, %t", h.ID, spent.Tokens(), spent.Reported > 0, info.Tokens, info.Reported)
	}
	info.Title = title.Text
	if name := must[string](tb)(s.Name()); name != "" {
		info.Title, info.Named = name, true
	}
	for _, e := range must[[]session.Entry](tb)(s.Forward("")) {
		if e.Message != nil && e.Message.Usage != nil {
			info.Context = int64(e.Message.Usage.Context())
		}
	}
	info.Created, info.Updated = info.Created.Truncate(time.Millisecond), info.Updated.Truncate(time.Millisecond)
	info.Models, info.Tools = counts(models), counts(tools)
	return info
}

func addMessage(info *index.Session, msg *session.MessageEntry, models, tools map[string]int64, seen map[string]bool) {
	if msg.Model != "" {
		models[msg.Model]++
	}
	for _, c := range msg.Content {
		if c.ToolUse != nil {
			tools[c.ToolUse.Name]++
		}
	}
	if u := msg.Usage; u != nil && !seen[msg.ResponseID] {
		seen[msg.ResponseID] = true
		info.Tokens += int64(u.Context())
	}
}

func counts(byName map[string]int64) []index.Count {
	var list []index.Count
	for name, n := range byName {
		list = append(list, index.Count{Name: name, Count: n})
	}
	slices.SortFunc(list, func(a, b index.Count) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// compareLive compares which user messages are found, and which of them are live
// and on which branch, to what the sessions say.
func (m *machine) compareLive(ix *index.Index) {
	m.tb.Helper()
	want := map[string]bool{}
	chains := m.conversations()
	for id, c := range chains {
		whole, err := session.OpenChain(context.Background(), m.st, c, nil)
		m.check(err)
		for e, err := range whole.Entries() {
			m.check(err)
			if e.Message != nil && e.Message.Role == "user" {
				want[id+" "+e.ID] = false
			}
		}
		// An entry is live if it is on the path of its own session, even if a later session has a
		// copy of it, or went back to a copy of something before it.
		for _, link := range c.Links {
			s, err := session.Open(context.Background(), m.st, link, nil)
			m.check(err)
			for _, e := range must[[]session.Entry](m.tb)(s.Forward("")) {
				if _, counts := want[id+" "+e.ID]; counts && whole.SessionOf(e.ID) == link {
					want[id+" "+e.ID] = true
				}
			}
			m.check(s.Close())
		}
		m.check(whole.Close())
	}
	got := map[string]bool{}
	for id := range chains { // one by one: what a fork repeats is one hit
		for _, hit := range search(m.tb, ix, index.SearchOptions{Query: "role:user kind:text", Session: id, Limit: 10_000}) {
			got[hit.Session+" "+hit.Entry] = hit.Live
			if m.rand.IntN(5) == 0 { // it takes long
				m.compareLeaf(hit)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.tb.Errorf("live user messages (-want +got):\n%s", diff)
	}
	for _, hit := range search(m.tb, ix, index.SearchOptions{Query: "role:user kind:text branch:live", Limit: 10_000}) {
		if !hit.Live {
			m.tb.Errorf("entry %s is found on the live branch and is not on it", hit.Entry)
		}
	}
}

// compareLeaf checks that the entry is on the path of the leaf it leads to.
func (m *machine) compareLeaf(hit index.Hit) {
	m.tb.Helper()
	s, err := session.Open(context.Background(), m.st, hit.Name, nil)
	m.check(err)
	defer s.Close()
	path, err := s.Forward(hit.Leaf)
	m.check(err)
	if !slices.ContainsFunc(path, func(e session.Entry) bool { return e.ID == hit.Entry }) {
		m.tb.Errorf("entry %s is not on the path of %s", hit.Entry, hit.Leaf)
	}
	if hit.Snippet == "" {
		m.tb.Errorf("entry %s has no snippet", hit.Entry)
	}
}
