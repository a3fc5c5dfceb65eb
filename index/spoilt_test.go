package index_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/chaingen"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// TestSpoiltLogs spoils logs and lets them grow. The index must always have the tree that
// package session has: it meets the lines as they come, and package session has them all.
func TestSpoiltLogs(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &machine{fixture: newFixture(t), rand: rand.New(rand.NewPCG(seed, 0))}
			harms := make(map[string]string)
			for range 10 {
				s := m.create(session.Header{})
				for range 2 + m.rand.IntN(25) {
					m.say(s)
				}
				m.check(s.Close())
				m.spoil(s.ID(), harms)
			}
			ix := m.open(t)
			for range 3 {
				for name := range harms {
					m.compareTree(ix, name, harms[name])
				}
				for name := range harms {
					m.goOnAfter(name, harms)
				}
				mustCatchUp(t, ix)
			}
		})
	}
}

// A type with a wrong byte in it hides nothing: not what another line with the id says, and not the
// title that it gives.
func TestTypeWithAWrongByte(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const asked = `"id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"Paint it"}}`
	const record = `"id":"r","parent_id":"a","timestamp":"2026-01-01T00:00:02.000Z","custom":{"custom_type":"coppice.continued_to","data":{"session":"s1","of":"s0"}}}`
	log := strings.Join([]string{
		`{"type":"session","id":"s0","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		`{"type":"messagf",` + asked, `{"type":"message",` + asked, `{"typu":"custom",` + record, `{"type":"custom",` + record,
	}, "\n") + "\n"
	if err := os.WriteFile(f.st.Path("s0"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	row := must[index.Session](t)(f.open(t).Get(t.Context(), "s0"))
	if row.ContinuedTo != "s1" || row.Title != "Paint it" || row.Entries != 2 || row.Messages != 1 {
		t.Errorf("%d entries, %d messages, continued to %q, titled %q", row.Entries, row.Messages, row.ContinuedTo, row.Title)
	}
	opened := must[store.Log](t)(f.st.Open(t.Context(), "s0"))
	defer opened.Close()
	title := must[index.Title](t)(index.FirstTitle(t.Context(), opened))
	if title.Text != "Paint it" {
		t.Errorf("the first title is %q", title.Text)
	}
}

// say appends something to a session, often on another branch.
func (m *machine) say(s *session.Session) {
	m.n++
	ids := must[*session.Shape](m.tb)(s.Shape()).IDs()
	some := func() string { return ids[m.rand.IntN(len(ids))] }
	var err error
	switch k := m.rand.IntN(12); {
	case k < 7 || len(ids) == 0:
		m.append(s, session.RoleUser, session.Text(strings.Repeat(fmt.Sprintf("words %d ", m.n), 1+m.rand.IntN(40))))
	case k == 7:
		err = s.Branch(some())
	case k == 8:
		_, err = s.AppendSessionInfo(fmt.Sprintf("Name %d", m.n))
	case k == 9:
		_, err = s.AppendEntry(session.Tags(fmt.Sprintf("tag%d", m.n%3)))
	case k == 10:
		_, err = s.SetLabel(some(), "a label")
	case k == 11:
		_, err = s.BranchWithSummary(some(), "we tried that")
	}
	m.check(err)
}

// spoil damages a log once or twice.
func (m *machine) spoil(name string, harms map[string]string) {
	m.tb.Helper()
	path := m.st.Path(name)
	data, err := os.ReadFile(path)
	m.check(err)
	for range 1 + m.rand.IntN(2) {
		var harm string
		data, harm = chaingen.Spoil(m.rand, data, 0, len(data))
		harms[name] += harm + "; "
	}
	m.check(os.WriteFile(path, data, 0o600))
}

// goOnAfter lets a log grow after damage: a session goes on, or lines are written again.
func (m *machine) goOnAfter(name string, harms map[string]string) {
	m.tb.Helper()
	path := m.st.Path(name)
	data, err := os.ReadFile(path)
	m.check(err)
	if m.rand.IntN(3) == 0 && bytes.HasSuffix(data, []byte("\n")) { // else the two would be joined
		lines := bytes.SplitAfter(data, []byte("\n"))
		again := lines[m.rand.IntN(len(lines))]
		harms[name] += fmt.Sprintf("%.60q written again; ", again)
		m.check(os.WriteFile(path, slices.Concat(data, again), 0o600))
		return
	}
	s, err := session.Open(context.Background(), m.st, name, m.options())
	if err != nil {
		return // nothing is left of it
	}
	defer s.Close()
	for range 1 + m.rand.IntN(4) {
		m.say(s)
	}
	harms[name] += "it went on; "
}

// compareTree compares what the index has of a session to what package session reads.
func (m *machine) compareTree(ix *index.Index, name, harm string) {
	m.tb.Helper()
	row := must[index.Session](m.tb)(ix.Get(context.Background(), name))
	s, err := session.Open(context.Background(), m.st, name, nil)
	if err != nil {
		if row.Agent != "" || row.Messages > 0 {
			m.tb.Errorf("%s %s: %v, and the index has %d messages of %q", name, harm, err, row.Messages, row.Agent)
		}
		return
	}
	defer s.Close()
	nodes, leaf, path, err := ix.Tree(name)
	m.check(err)
	shape := must[*session.Shape](m.tb)(s.Shape())
	var want []index.TreeNode
	for n := range int32(shape.Len()) {
		node := index.TreeNode{ID: shape.ID(n)}
		if parent := shape.Parent(n); parent >= 0 {
			node.Parent = shape.ID(parent)
		}
		want = append(want, node)
	}
	byID := cmpopts.SortSlices(func(a, b index.TreeNode) bool { return a.ID < b.ID })
	if diff := cmp.Diff(want, nodes, byID, cmpopts.EquateEmpty()); diff != "" {
		m.tb.Errorf("%s %s\nthe tree (-session +index):\n%s", name, harm, diff)
		return
	}
	var ids []string
	for _, e := range must[[]session.Entry](m.tb)(s.Forward("")) {
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff(ids, path, cmpopts.EquateEmpty()); diff != "" || leaf != s.LeafID() {
		m.tb.Errorf("%s %s: leaf %q, of the index %q; the path (-session +index):\n%s", name, harm, s.LeafID(), leaf, diff)
	}
	remarks := must[session.Remarks](m.tb)(s.Remarks())
	type facts struct {
		Messages, Branches int
		Tags               []string
	}
	if diff := cmp.Diff(
		facts{must[int](m.tb)(s.MessageCount()), len(must[[]string](m.tb)(s.Leaves())), remarks.Tags},
		facts{row.Messages, row.Branches, row.Tags}, cmpopts.EquateEmpty()); diff != "" {
		m.tb.Errorf("%s %s (-session +index):\n%s", name, harm, diff)
	}
	if problems := must[[]session.Problem](m.tb)(s.Problems()); len(problems) == 0 && row.Problems > 0 {
		m.tb.Errorf("%s %s: the index has %d problems, the session none", name, harm, row.Problems)
	}
}
