package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// contextTexts is what a model would be sent, in one line.
func contextTexts(t *testing.T, s *session.Session) string {
	t.Helper()
	var texts []string
	for _, e := range mustGet(s.GetContext())(t) {
		if e.Compaction != nil {
			texts = append(texts, "("+e.Compaction.Summary+")")
		} else {
			texts = append(texts, session.TextOf(e.Message.Content))
		}
	}
	return strings.Join(texts, " ")
}

// A compaction of a chain may keep from an entry of any session on. It is written to the
// last session, which can still be read by itself, and nothing before it changes.
func TestCompactionOfAChain(t *testing.T) {
	t.Parallel()
	sessions := [][]string{
		{"s:a/be_kind", "u:b/one", "u:c/two"},
		{"s:a/be_kind", "m:m/mark", "u:e/three", "u:d/four"},
	}
	for _, c := range []struct{ text, id, want, alone string }{
		{"two", "c", "be_kind (so far) two three four", "be_kind three four"},
		{"three", "e", "be_kind (so far) three four", "be_kind (so far) three four"},
		{"four", "d", "be_kind (so far) four", "be_kind (so far) four"},
	} {
		st := chainOf(t, sessions...)
		whole := openChain(t, st, "s1")
		path := mustGet(whole.Forward(""))(t)
		first := path[slices.IndexFunc(path, func(e session.Entry) bool {
			return e.Message != nil && session.TextOf(e.Message.Content) == c.text
		})].ID
		mustGet(whole.AppendCompaction("so far", first, 0))(t)
		for _, s := range []*session.Session{whole, openChain(t, st, "s0")} {
			if got := contextTexts(t, s); got != c.want {
				t.Errorf("kept from %s on: %q, want %q", c.text, got, c.want)
			}
		}
		link := closeWith(t, mustGet(session.Open(t.Context(), st, "s1", nil))(t))
		if e := mustGet(link.Entry(link.LeafID()))(t); e.Compaction == nil || e.Compaction.FirstKeptEntryID != c.id {
			t.Errorf("kept from %s on: the last session ends with %+v, want a compaction that keeps %s", c.text, e, c.id)
		}
		if got := contextTexts(t, link); got != c.alone {
			t.Errorf("kept from %s on: the last session alone is %q, want %q", c.text, got, c.alone)
		}
		if problems := mustGet(link.Problems())(t); len(problems) > 0 {
			t.Errorf("kept from %s on: %v", c.text, problems)
		}
	}
}

// A later compaction takes the place of an earlier one, in whichever session that is.
func TestCompactionsOfAChain(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one", "u:b/two"}, []string{"m:m/mark", "u:c/three", "u:d/four"})
	whole := openChain(t, st, "s0")
	for _, c := range []struct{ summary, first, want string }{
		{"later", "d", "(later) four"},
		{"earlier", "b", "(earlier) two three four"},
		{"everything", "", "(everything)"},
	} {
		mustGet(whole.AppendCompaction(c.summary, c.first, 0))(t)
		if got := contextTexts(t, openChain(t, st, "s0")); got != c.want {
			t.Errorf("the context is %q, want %q", got, c.want)
		}
	}
	var cut *session.CutError
	if _, err := whole.AppendCompaction("no", "nobody", 0); !errors.As(err, &cut) {
		t.Errorf("%v, want a CutError", err)
	}
}

// A compaction brings what it says about itself, and the entries that come with it.
func TestCompactionEntryOfAChainBringsWhatItComesWith(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one", "u:b/two"}, []string{"m:m/mark", "u:c/three"})
	extra := session.Fields{{Name: "files", Value: []byte(`{"read":["a.go"]}`)}}
	cost := session.Entry{Type: session.TypeCustom, Custom: session.NewUsage("p", "m", "r", session.Usage{Input: 7})}
	var id string
	mustDo(t, openChain(t, st, "s0").Update(t.Context(), func(tx *session.Tx) error {
		tx.Append(cost)
		id = tx.Append(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "so far", FirstKeptEntryID: "b", TokensBefore: 9, Extra: extra}})
		return nil
	}))
	home := closeWith(t, mustGet(session.Open(t.Context(), st, "s1", nil))(t))
	path := mustGet(home.Forward(""))(t)
	last := path[len(path)-1]
	if last.ID != id || last.Compaction == nil || last.Compaction.TokensBefore != 9 || len(last.Compaction.Extra) != 1 {
		t.Errorf("the last entry is %+v", last)
	}
	if bill, ok := session.BillOf(&path[len(path)-2]); !ok || bill.Usage.Input != 7 {
		t.Errorf("before it is %+v", path[len(path)-2])
	}
	if got := contextTexts(t, openChain(t, st, "s0")); got != "(so far) two three" {
		t.Errorf("the context is %q", got)
	}
}
