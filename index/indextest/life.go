package indextest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// lifeChecks are about what happens to a room. Each has a place of its own.
var lifeChecks = []struct {
	name string
	run  func(t *testing.T, d *sessionStore, place Place)
}{
	{"Empty", checkEmpty},
	{"CatchUp", checkCatchUp},
	{"Remove", checkRemove},
	{"Rewrite", checkRewrite},
	{"Apart", checkApart},
	{"Discard", checkDiscard},
	{"Close", checkClose},
	{"Cancel", checkCancel},
	{"Together", checkTogether},
	{"Bounded", checkBounded},
	{"Transaction", checkTransaction},
	{"Replaced", checkReplaced},
	{"Damaged", checkDamaged},
}

func found(t testing.TB, ix *index.Index, query string) int {
	t.Helper()
	return len(search(t, ix, index.SearchOptions{Query: query}).Hits)
}

func checkEmpty(t *testing.T, d *sessionStore, place Place) {
	ix := d.open(t, place)
	if !ix.IsEmpty(t.Context()) {
		t.Error("a new room has something")
	}
	d.catchUp(t, ix)
	if !ix.IsEmpty(t.Context()) {
		t.Error("the index of an empty store is not empty")
	}
	want(t, "sessions", len(all(t, ix, index.ListOptions{})), 0)
	want(t, "hits", found(t, ix, "anything"), 0)
	must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{}))
	d.say("a", "anything")
	d.catchUp(t, ix)
	other := d.open(t, place)
	if other.IsEmpty(t.Context()) {
		t.Error("another program does not see what is in the room")
	}
	want(t, "hits of another program", found(t, other, "anything"), 1)
}

func checkCatchUp(t *testing.T, d *sessionStore, place Place) {
	ix := d.open(t, place)
	d.say("a", "one", "two")
	d.say("b", "three")
	if r := d.catchUp(t, ix); r.Changed != 2 || r.Entries != 3 {
		t.Errorf("the first time: %+v", r)
	}
	before := must[int64](t)(ix.Changes(t.Context()))
	other := d.open(t, place)
	for _, ix := range []*index.Index{ix, other} {
		if r := d.catchUp(t, ix); r.Changed != 0 || r.Bytes != 0 || r.Rebuilt {
			t.Errorf("nothing is new: %+v", r)
		}
	}
	want(t, "changes", must[int64](t)(ix.Changes(t.Context())), before)
	s := must[*session.Session](t)(session.Open(t.Context(), d.st, "a", d.options()))
	defer s.Close()
	d.add(s, session.Message(session.RoleUser, session.Text("four")))
	if r := d.catchUp(t, other); r.Changed != 1 || r.Entries != 1 || r.Rebuilt {
		t.Errorf("one entry is new: %+v", r)
	}
	if must[int64](t)(ix.Changes(t.Context())) == before {
		t.Error("a change is not noticed")
	}
	want(t, "hits of what another program read", found(t, ix, "four"), 1)
	status := must[index.Status](t)(ix.Status(t.Context()))
	if status.Sessions != 2 || status.Entries != 4 || status.Texts != 4 || status.Size <= 0 || status.Schema != room.Version || status.Engine == "" || status.Path != ix.Where() {
		t.Errorf("status: %+v", status)
	}
}

// peculiar makes a session of words that no other has.
func (d *sessionStore) peculiar(id, word string) {
	s := d.create(session.Header{ID: id, CWD: "/" + word, Key: word, Extra: imported(word)})
	defer s.Close()
	d.add(s, session.Message(session.RoleUser, session.Text("say "+word)))
	d.add(s, answer("r-"+word, word+"-9", session.Usage{Input: 3, Output: 4}, session.ToolUse("c", "read", map[string]any{"path": word + ".go"})))
	d.add(s, session.Name("Title "+word))
	d.add(s, session.Tags(word))
}

// traces counts what an index knows by a word.
func traces(t testing.TB, ix *index.Index, word string) string {
	t.Helper()
	ctx := t.Context()
	var values []int
	for _, filter := range []string{"model", "tag", "project", "file"} {
		n := 0
		for _, v := range must[[]string](t)(ix.FilterValues(ctx, filter)) {
			if strings.Contains(v, word) {
				n++
			}
		}
		values = append(values, n)
	}
	stats := must[*index.Stats](t)(ix.Stats(ctx, index.StatsOptions{}))
	return fmt.Sprint(found(t, ix, word), found(t, ix, word[:4]+"*"), len(must[[]index.Session](t)(ix.Find(ctx, word))), len(must[[]index.Session](t)(ix.FindTitle(ctx, "title "+word))),
		len(must[[]string](t)(ix.Natives(ctx, word, 5))), len(all(t, ix, index.ListOptions{CWD: "/" + word})), values, stats.Total.Tokens(), stats.Activity.Messages)
}

func checkRemove(t *testing.T, d *sessionStore, place Place) {
	ix := d.open(t, place)
	d.peculiar("a", "kumquat")
	d.catchUp(t, ix)
	want(t, "traces", traces(t, ix, "kumquat"), "4 4 1 1 1 1 [1 1 1 1] 7 2")
	d.check(d.st.Remove(t.Context(), "a"))
	if r := d.catchUp(t, ix); r.Removed != 1 {
		t.Errorf("a session was removed: %+v", r)
	}
	want(t, "traces of what was removed", traces(t, ix, "kumquat"), "0 0 0 0 0 0 [0 0 0 0] 0 0")
	status := must[index.Status](t)(ix.Status(t.Context()))
	want(t, "what is left", fmt.Sprint(status.Sessions, status.Entries, status.Texts), "0 0 0")
	r := place.open(t)
	want(t, "texts that are left", count(t, r, countTexts, room.Match{Query: `"kumquat"`}), 0)
	for _, table := range []string{"sessions", "docs", "entries", "usage", "files", "tags", "ledgers", "silent"} {
		want(t, "rows that are left in "+table, count(t, r, `SELECT count(*) FROM `+table), 0)
	}
	d.peculiar("b", "kumquat")
	d.catchUp(t, ix)
	want(t, "traces of the same words", traces(t, ix, "kumquat"), "4 4 1 1 1 1 [1 1 1 1] 7 2")
}

// rewrite replaces a session by another of the same name.
func (d *sessionStore) rewrite(id, word string) {
	d.check(d.st.Remove(d.t.Context(), id))
	d.peculiar(id, word)
}

func checkRewrite(t *testing.T, d *sessionStore, place Place) {
	ix := d.open(t, place)
	d.peculiar("a", "swordfish")
	d.say("b", "unchanged")
	d.catchUp(t, ix)
	d.rewrite("a", "butterfly")
	d.catchUp(t, ix)
	want(t, "traces of the old words", traces(t, ix, "swordfish"), "0 0 0 0 0 0 [0 0 0 0] 7 3")
	want(t, "traces of the new words", traces(t, ix, "butterfly"), "4 4 1 1 1 1 [1 1 1 1] 7 3")
	d.check(ix.Forget(t.Context()))
	d.catchUp(t, ix)
	want(t, "the old words in the tables", count(t, place.open(t), countWord, "swordfish"), 0)
	for _, query := range []string{"swordfihs", "swordf"} {
		want(t, "suggestions for "+query, fmt.Sprint(search(t, ix, index.SearchOptions{Query: query}).DidYouMean), "[]")
	}
	want(t, "suggestions", fmt.Sprint(search(t, ix, index.SearchOptions{Query: "butterfyl"}).DidYouMean), "[butterfly]")
	want(t, "traces of the new words", traces(t, ix, "butterfly"), "4 4 1 1 1 1 [1 1 1 1] 7 3")
	want(t, "what did not change", found(t, ix, "unchanged"), 1)
}

// checkApart checks an index that is not told which logs were removed.
func checkApart(t *testing.T, d *sessionStore, place Place) {
	r, err := place(t.Context())
	d.check(err)
	ix := index.New(d.st, r, &index.Options{Apart: true})
	defer ix.Close()
	d.peculiar("a", "swordfish")
	d.catchUp(t, ix)
	d.rewrite("a", "butterfly")
	d.catchUp(t, ix)
	want(t, "the old words in the tables", count(t, place.open(t), countWord, "swordfish"), 0)
	want(t, "traces of the new words", traces(t, ix, "butterfly"), "4 4 1 1 1 1 [1 1 1 1] 7 2")
}

func checkDiscard(t *testing.T, d *sessionStore, place Place) {
	ix, other := d.open(t, place), d.open(t, place)
	d.peculiar("a", "kumquat")
	d.catchUp(t, ix)
	d.catchUp(t, other)
	for _, discard := range []*index.Index{ix, other} {
		d.check(discard.Discard(t.Context()))
		for _, ix := range []*index.Index{other, ix} { // each fills it again, or finds it filled
			want(t, "traces", traces(t, ix, "kumquat"), "4 4 1 1 1 1 [1 1 1 1] 7 2")
		}
	}
	if r, err := ix.Rebuild(t.Context(), nil); err != nil || !r.Rebuilt || r.Changed != 1 {
		t.Errorf("rebuild: %+v, %v", r, err)
	}
	want(t, "traces", traces(t, other, "kumquat"), "4 4 1 1 1 1 [1 1 1 1] 7 2")
}

func checkClose(t *testing.T, d *sessionStore, place Place) {
	ix, other := d.open(t, place), d.open(t, place)
	d.say("a", "anything")
	d.catchUp(t, ix)
	d.check(ix.Close())
	d.check(ix.Close())
	ctx := t.Context()
	for what, ask := range map[string]func() error{
		"list":     func() error { _, _, err := ix.List(ctx, index.ListOptions{}); return err },
		"search":   func() error { _, err := ix.Search(ctx, index.SearchOptions{Query: "anything"}); return err },
		"find":     func() error { _, err := ix.Find(ctx, "a"); return err },
		"stats":    func() error { _, err := ix.Stats(ctx, index.StatsOptions{}); return err },
		"status":   func() error { _, err := ix.Status(ctx); return err },
		"catch up": func() error { _, err := ix.CatchUp(ctx, nil); return err },
		"rebuild":  func() error { _, err := ix.Rebuild(ctx, nil); return err },
		"discard":  func() error { return ix.Discard(ctx) },
		"forget":   func() error { return ix.Forget(ctx) },
	} {
		if err := ask(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s a closed index: %v", what, err)
		}
	}
	want(t, "hits of another program", found(t, other, "anything"), 1)
}

func checkCancel(t *testing.T, d *sessionStore, place Place) {
	ix := d.open(t, place)
	d.say("a", "anything")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ix.CatchUp(ctx, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("catch up: %v", err)
	}
	d.catchUp(t, ix)
	if _, err := ix.Search(ctx, index.SearchOptions{Query: "anything"}); !errors.Is(err, context.Canceled) {
		t.Errorf("search: %v", err)
	}
	want(t, "hits", found(t, ix, "anything"), 1)
}

// answers is much of what an index knows, in words.
func answers(t testing.TB, ix *index.Index) string {
	t.Helper()
	var b strings.Builder
	for _, sort := range []index.Sort{index.ByUpdated, index.ByTitle, index.BySize} {
		list, _, err := ix.List(t.Context(), index.ListOptions{Sort: sort, Limit: -1, Links: true})
		fmt.Fprintf(&b, "%v %+v\n", err, list)
	}
	for _, query := range []string{"fox", "quick OR num*", `"brown fox"`, "role:assistant"} {
		res := search(t, ix, index.SearchOptions{Query: query, Order: index.ByTime, Limit: 1000})
		fmt.Fprintln(&b, query, res.Matches)
		for _, h := range res.Hits {
			fmt.Fprintln(&b, h.Session, h.Entry, h.Kind, h.Live, h.Snippet)
		}
	}
	fmt.Fprintf(&b, "%+v %+v", must[[]index.Count](t)(ix.Tags(t.Context())), must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{})))
	return b.String()
}

// checkTogether lets two programs write at once, while sessions grow. In the end they know the same,
// and as much as one that read it all at the end.
func checkTogether(t *testing.T, d *sessionStore, place Place) {
	const sessions, rounds = 6, 5
	one, two := d.open(t, place), d.open(t, place)
	for round := range rounds {
		for n := range sessions {
			id := fmt.Sprint("s", n)
			if round == 0 {
				d.say(id, "the quick brown fox")
			}
			s := must[*session.Session](t)(session.Open(t.Context(), d.st, id, d.options()))
			d.add(s, session.Message(session.RoleUser, session.Text(fmt.Sprint("number", round, " of the fox"))))
			d.add(s, answer(fmt.Sprint("r", n, round), "claude-opus-4-1", session.Usage{Input: 1, Output: 1}, session.Text("yes")))
			d.add(s, session.Tags(fmt.Sprint("round", round), "all"))
			d.check(s.Close())
		}
		if round == 2 {
			d.check(d.st.Remove(t.Context(), "s1"))
			d.say("s1", "another fox")
		}
		var wg sync.WaitGroup
		for _, ix := range []*index.Index{one, two} {
			wg.Go(func() {
				if r, err := ix.CatchUp(t.Context(), nil); err != nil || len(r.Unread) > 0 {
					t.Errorf("catch up: %+v, %v", r, err)
				}
			})
		}
		wg.Wait()
	}
	got := answers(t, one)
	want(t, "what another program knows", answers(t, two), got)
	if _, err := two.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want(t, "what is known after a rebuild", answers(t, two), got)
}

func checkBounded(t *testing.T, d *sessionStore, place Place) {
	const texts = 1_500
	s := d.create(session.Header{ID: "crowd"})
	defer s.Close()
	var entries []session.Entry
	for n := range texts {
		text := fmt.Sprintf("common n%d", n)
		if n == 3 {
			text += " needle"
		}
		entries = append(entries, session.Message(session.RoleUser, session.Text(text)))
	}
	must[[]string](t)(s.AppendAll(entries...))
	ix := d.open(t, place)
	d.catchUp(t, ix)
	res := search(t, ix, index.SearchOptions{Query: "common", Order: index.ByTime, Limit: 1000})
	if !res.Bounded || res.Matches != 1000 || len(res.Hits) != 1000 {
		t.Fatalf("%d matches, %d hits, bounded %v; want the newest 1000", res.Matches, len(res.Hits), res.Bounded)
	}
	for i, h := range res.Hits {
		if text := fmt.Sprintf("common n%d", texts-1-i); h.Snippet != text {
			t.Fatalf("hit %d is %q, want %q", i, h.Snippet, text)
		}
	}
	for _, o := range []index.SearchOptions{{Query: "common", Newest: texts}, {Query: "common", Newest: texts + 1}} {
		res := search(t, ix, o)
		want(t, fmt.Sprintf("among the newest %d", o.Newest), fmt.Sprint(res.Matches, res.Bounded), fmt.Sprint(texts, false))
	}
	res = search(t, ix, index.SearchOptions{Query: "common", Until: d.now.Add(-700e9), Newest: 5, Limit: 5, Order: index.ByTime})
	want(t, "the newest before a time", fmt.Sprint(res.Matches, res.Bounded, len(res.Hits)), "5 true 5")
	res = search(t, ix, index.SearchOptions{Query: "needle common"})
	want(t, "an old text with a rare word", fmt.Sprint(res.Matches, res.Bounded), "1 false")
}

// open returns a room that is closed with the test.
func (p Place) open(t testing.TB) room.Room {
	t.Helper()
	r, err := p(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// count returns the answer to a query that counts.
func count(t testing.TB, r room.Room, query string, args ...any) (n int) {
	t.Helper()
	if err := r.View(t.Context(), false, func(tables room.Tables) error {
		return tables.QueryRowContext(t.Context(), query, args...).Scan(&n)
	}); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// write adds a row, and a text in which a word is found.
func write(ctx context.Context, tx room.Tx, n int64, word string) error {
	if err := tx.InsertContext(ctx, "stale", "session", "", []any{n}); err != nil {
		return err
	}
	return tx.AddTexts(ctx, []room.Text{{ID: n, Body: []uint32{0}}}, []string{word})(nil)
}

const (
	countRows  = `SELECT count(*) FROM stale`
	countTexts = `SELECT count(*) FROM fts WHERE fts MATCH ?`
	countWord  = `SELECT count(*) FROM terms WHERE term = ?`
)

func checkTransaction(t *testing.T, _ *sessionStore, place Place) {
	r := place.open(t)
	failed := errors.New("changed my mind")
	for n, tt := range []struct{ fail, want error }{{nil, nil}, {failed, failed}} {
		err := r.View(t.Context(), false, func(tables room.Tables) error {
			return r.Update(t.Context(), tables, func(tx room.Tx) error {
				return errors.Join(write(t.Context(), tx, int64(n+1), "word"), tt.fail)
			})
		})
		if !errors.Is(err, tt.want) {
			t.Errorf("update: %v, want %v", err, tt.want)
		}
		other := place.open(t)
		want(t, "rows", count(t, other, countRows), 1)
		want(t, "texts", count(t, other, countTexts, room.Match{Query: `"word"`}), 1)
	}
}

// checkReplaced lets a program empty the tables that another one reads and writes.
func checkReplaced(t *testing.T, _ *sessionStore, place Place) {
	one, two := place.open(t), place.open(t)
	one.Rebuilt()
	two.Rebuilt()
	for what, replace := range map[string]func(context.Context) error{"emptied": one.Empty, "discarded": one.Discard} {
		err := two.View(t.Context(), false, func(tables room.Tables) error {
			if err := replace(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := one.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := two.Update(t.Context(), tables, func(tx room.Tx) error { return write(t.Context(), tx, 1, "word") }); !errors.Is(err, room.ErrReplaced) {
				t.Errorf("a write to tables that were %s: %v", what, err)
			}
			return nil
		})
		if !errors.Is(err, room.ErrReplaced) {
			t.Errorf("the tables were %s: %v", what, err)
		}
		if err := two.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "rows", count(t, two, countRows), 0)
	}
}

func checkDamaged(t *testing.T, _ *sessionStore, place Place) {
	r := place.open(t)
	r.Rebuilt()
	err := r.View(t.Context(), false, func(tables room.Tables) error {
		return r.Update(t.Context(), tables, func(tx room.Tx) error { return write(t.Context(), tx, 1, "word") })
	})
	if err != nil || r.Rebuilt() {
		t.Fatalf("%v, or the tables were rebuilt", err)
	}
	if err := r.View(t.Context(), false, func(room.Tables) error { return fmt.Errorf("a row: %w", room.ErrDamaged) }); !errors.Is(err, room.ErrDamaged) {
		t.Errorf("damage: %v", err)
	}
	want(t, "rows", count(t, r, countRows), 0)
	want(t, "texts", count(t, r, countTexts, room.Match{Query: `"word"`}), 0)
	if !r.Rebuilt() || r.Rebuilt() {
		t.Error("it does not report exactly once that the tables were rebuilt")
	}
}
