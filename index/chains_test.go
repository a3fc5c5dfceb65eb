package index_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// chain makes three sessions that continue each other. Each begins with a copy of the prompt
// and says one thing of its own, which costs 10 tokens.
func (f *fixture) chain() []*session.Session {
	f.tb.Helper()
	s := f.create(session.Header{CWD: "/src", Key: "k"})
	prompt := f.append(s, session.RoleSystem, session.Text("never say xylophone"))
	all := []*session.Session{s}
	for n, word := range []string{"first", "second", "third"} {
		if n > 0 {
			copied := must[session.Entry](f.tb)(all[n-1].Entry(prompt))
			next := must[*session.Session](f.tb)(all[n-1].Continue(copied))
			f.tb.Cleanup(func() { next.Close() })
			all = append(all, next)
		}
		f.append(all[n], session.RoleUser, session.Text(word+" question"))
		f.respond(all[n], "r-"+word, "m", session.Usage{Input: 4, Output: 6}, session.Text(word+" answer"))
		if _, err := all[n].AppendEntry(session.Tags(word)); err != nil {
			f.tb.Fatal(err)
		}
	}
	return all
}

func TestChainIsOneRow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	links := f.chain()
	other := f.say("another")
	ix := f.open(t)
	ctx := context.Background()
	for _, sort := range []index.Sort{index.ByUpdated, index.ByCreated, index.ByTitle, index.ByMessages, index.ByTokens, index.BySize} {
		page, _, err := ix.List(ctx, index.ListOptions{Sort: sort})
		if err != nil || len(page) != 2 {
			t.Fatalf("by %s: %d rows, %v", sort, len(page), err)
		}
	}
	page, _, err := ix.List(ctx, index.ListOptions{CWD: "/src"})
	if err != nil || len(page) != 1 {
		t.Fatalf("%d rows, %v", len(page), err)
	}
	row := page[0]
	first := must[index.Session](t)(ix.Get(ctx, links[0].ID()))
	last := must[index.Session](t)(ix.Get(ctx, links[2].ID()))
	switch {
	case row.ID != links[0].ID() || row.Name != row.ID || row.Key != "k" || row.Links != 3 || len(row.Missing) != 0:
		t.Errorf("the chain is %+v", row)
	case row.Messages != 7: // the prompt, and three times two
		t.Errorf("%d messages", row.Messages)
	case row.Tokens != 30:
		t.Errorf("%d tokens", row.Tokens)
	case !row.Created.Equal(first.Created) || !row.Updated.Equal(last.Updated) || row.Leaf != last.Leaf || row.Context != last.Context:
		t.Errorf("from %v to %v, leaf %s", row.Created, row.Updated, row.Leaf)
	case row.Title != "first question" || !slices.Equal(row.Tags, []string{"first", "second", "third"}):
		t.Errorf("%q with tags %q", row.Title, row.Tags)
	case first.Conversation != row.ID || last.Conversation != row.ID || row.Conversation != "" || last.Messages != 3:
		t.Errorf("the links are %+v and %+v", first, last)
	}
	single, _, err := ix.List(ctx, index.ListOptions{Links: true})
	if err != nil || len(single) != 4 {
		t.Errorf("%d sessions, %v", len(single), err)
	}
	for _, tag := range []string{"first", "third"} {
		tagged, _, err := ix.List(ctx, index.ListOptions{Tags: []string{tag}})
		if err != nil || len(tagged) != 1 || tagged[0].ID != row.ID {
			t.Errorf("tagged %s: %+v, %v", tag, tagged, err)
		}
	}
	if tags := must[[]index.Count](t)(ix.Tags(ctx)); len(tags) != 3 || tags[0].Count != 1 {
		t.Errorf("tags %v", tags)
	}
	for _, l := range append(links, other) {
		want := row.ID
		if l == other {
			want = other.ID()
		}
		if got := must[index.Session](t)(ix.Conversation(ctx, l.ID())); got.ID != want {
			t.Errorf("session %s is in %s", l.ID(), got.ID)
		}
	}
	if _, err := ix.Conversation(ctx, "nobody"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("an unknown session: %v", err)
	}
}

func TestSearchInAChain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	links := f.chain()
	f.say("first question of another")
	ix := f.open(t)
	found := func(o index.SearchOptions) string {
		t.Helper()
		var said []string
		for _, h := range search(t, ix, o) {
			if h.Session != links[0].ID() {
				t.Errorf("%q is found in %s", h.Snippet, h.Session)
			}
			said = append(said, h.Snippet)
		}
		slices.Sort(said)
		return strings.Join(said, ", ")
	}
	for _, l := range links {
		if got := found(index.SearchOptions{Query: "question", Session: l.ID()}); got != "first question, second question, third question" {
			t.Errorf("in %s: %s", l.ID(), got)
		}
	}
	// The instructions are in all of them, and were given once.
	if got := found(index.SearchOptions{Query: "xylophone"}); got != "never say xylophone" {
		t.Errorf("found %s", got)
	}
	// A tag of one session is a tag of the conversation.
	if got := found(index.SearchOptions{Query: "answer", Tags: []string{"first", "third"}}); got != "first answer, second answer, third answer" {
		t.Errorf("found %s", got)
	}
}

func TestStatsOfAChain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	links := f.chain()
	f.respond(f.say("other"), "r-other", "m", session.Usage{Input: 1, Output: 1}, session.Text("x"))
	ix := f.open(t)
	ctx := context.Background()
	for _, l := range links {
		sums := must[[]index.Usage](t)(ix.Usage(ctx, index.UsageOptions{Session: l.ID()}))
		if len(sums) != 1 || sums[0].Responses != 3 || sums[0].Tokens() != 30 {
			t.Errorf("usage of %s: %+v", l.ID(), sums)
		}
		a := must[*index.Activity](t)(ix.Activity(ctx, index.StatsOptions{Session: l.ID()}))
		if a.Messages != 7 {
			t.Errorf("%d messages in %s", a.Messages, l.ID())
		}
	}
	sums := must[[]index.Usage](t)(ix.Usage(ctx, index.UsageOptions{By: index.BySession}))
	if len(sums) != 2 || !slices.ContainsFunc(sums, func(u index.Usage) bool { return u.Key == links[0].ID() && u.Responses == 3 }) {
		t.Errorf("by session: %+v", sums)
	}
}

// Whichever session of a chain goes, the others stay one conversation under the
// id of the original; when it comes back, all is as it was.
func TestChainWithoutALink(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for lost := range 3 {
		f := newFixture(t)
		links := f.chain()
		ix := f.open(t)
		before, _, err := ix.List(ctx, index.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.st.Remove(ctx, links[lost].ID()); err != nil {
			t.Fatal(err)
		}
		mustCatchUp(t, ix)
		page, _, err := ix.List(ctx, index.ListOptions{})
		if err != nil || len(page) != 1 {
			t.Fatalf("without %d: %d rows, %v", lost, len(page), err)
		}
		row := page[0]
		// The prompt is still there, in a copy if the original is gone.
		if row.ID != links[0].ID() || row.Links != 2 || !slices.Equal(row.Missing, []string{links[lost].ID()}) || row.Messages != 5 || row.Tokens != 20 {
			t.Errorf("without %d: %+v", lost, row)
		}
		hits := search(t, ix, index.SearchOptions{Query: "xylophone", Session: links[0].ID()})
		if len(hits) != 1 || hits[0].Session != links[0].ID() {
			t.Errorf("without %d: %d hits", lost, len(hits))
		}
		if got := must[index.Session](t)(ix.Conversation(ctx, links[lost].ID())); got.ID != row.ID {
			t.Errorf("the id of the lost session means %s", got.ID)
		}
		if ids := must[[]string](t)(ix.Lost(ctx, links[lost].ID()[:30])); !slices.Contains(ids, links[lost].ID()) {
			t.Errorf("lost are %v", ids)
		}
		trashed, err := f.st.Trash().List(ctx)
		if err == nil {
			err = f.st.Trash().Restore(ctx, trashed[0].ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		mustCatchUp(t, ix)
		after, _, err := ix.List(ctx, index.ListOptions{})
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Errorf("without %d, and again with it (-before +after, %v):\n%s", lost, err, diff)
		}
	}
}

// Entries before the marker of a continuation are copies: they count, and were paid for, where they
// were said. The marker counts even if its rest is lost, or if it comes in a later transaction.
func TestCopiesCountOnce(t *testing.T) {
	t.Parallel()
	prompt, lost := said("prompt", "null", "system"), `"type":"message","id":"prompt","parent_id":null,"timestamp":"2026-03-14T12:00:00Z","message":{"content":[#`
	marker := `"type":"continues","id":"marker","parent_id":"prompt","timestamp":"2026-03-14T12:01:00Z","continues":{"session":"a","original":"a"}`
	for name, test := range map[string]struct {
		first, second  []string // the lines of two sessions
		tokens, inside int64    // of both, and of the second one
		messages       int
	}{
		"a copy":                   {[]string{prompt, said("one", `"prompt"`, "user")}, []string{prompt, marker, said("two", `"marker"`, "user")}, 15, 5, 3},
		"the marker has no rest":   {[]string{prompt}, []string{prompt, strings.Replace(marker, ":{", ":{#", 1), said("two", `"marker"`, "user")}, 10, 5, 2},
		"the marker has no new id": {[]string{prompt}, []string{prompt, strings.Replace(marker, `"marker"`, `"prompt"`, 1), said("two", `"prompt"`, "user")}, 10, 5, 2},
		"the marker is gone":       {[]string{prompt}, []string{prompt, said("two", `"marker"`, "user")}, 10, 10, 2},
		"the original has no rest": {[]string{lost}, []string{prompt, marker, said("two", `"marker"`, "user")}, 5, 5, 2},
		"the original is gone":     {[]string{said("one", "null", "user")}, []string{prompt, marker, said("two", `"marker"`, "user")}, 10, 5, 3},
		"a copy after the marker":  {[]string{prompt}, []string{marker, prompt, said("two", `"prompt"`, "user")}, 10, 10, 2},
	} {
		for _, batch := range []int{1, 4000} {
			f := newFixture(t)
			next := `"type":"custom","id":"next","parent_id":null,"timestamp":"2026-03-14T12:02:00Z","custom":{"custom_type":"coppice.continued_to","data":{"session":"b","of":"a"}}`
			f.write("a", append([]string{`"type":"session","id":"a","version":1,"timestamp":"2026-03-14T12:00:00Z"`, next}, test.first...))
			f.write("b", append([]string{`"type":"session","id":"b","version":1,"timestamp":"2026-03-14T12:00:00Z","relation":"continuation","parent_session":"a"`}, test.second...))
			ix := index.New(f.st, f.room(t), nil)
			defer ix.Close()
			ix.SetBatch(batch)
			mustCatchUp(t, ix)
			page, _, err := ix.List(t.Context(), index.ListOptions{})
			if err != nil || len(page) != 1 || page[0].Messages != test.messages {
				t.Errorf("%s, in batches of %d: %+v, %v", name, batch, page, err)
			}
			if b := must[index.Session](t)(ix.Get(t.Context(), "b")); b.Tokens != test.inside {
				t.Errorf("%s, in batches of %d: the second one has %d tokens", name, batch, b.Tokens)
			}
			if sum := must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{})); sum.Total.Tokens() != test.tokens || sum.Activity.Messages != int64(test.messages) {
				t.Errorf("%s, in batches of %d: %+v", name, batch, sum)
			}
			if hits := search(t, ix, index.SearchOptions{Query: "prompt"}); len(hits) != 1 {
				t.Errorf("%s, in batches of %d: %d hits", name, batch, len(hits))
			}
		}
	}
}

// Entries that an earlier session gets late count there, and no longer in a later session that has
// copies of them. A copied name is older than any name that the conversation got since.
func TestEarlierSessionGrows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name := func(id, text string) string {
		return `"type":"session_info","id":"` + id + `","parent_id":null,"timestamp":"2026-03-14T12:00:00Z","session_info":{"name":"` + text + `"}`
	}
	first := []string{
		`"type":"session","id":"a","version":1,"timestamp":"2026-03-14T12:00:00Z"`, name("old", "Garden"), name("new", "Kitchen"),
		`"type":"custom","id":"next","parent_id":null,"timestamp":"2026-03-14T12:02:00Z","custom":{"custom_type":"coppice.continued_to","data":{"session":"b","of":"a"}}`,
	}
	f.write("a", first)
	f.write("b", []string{
		`"type":"session","id":"b","version":1,"timestamp":"2026-03-14T12:00:00Z","relation":"continuation","parent_session":"a"`, name("old", "Garden"),
		`"type":"continues","id":"marker","parent_id":"old","timestamp":"2026-03-14T12:01:00Z","continues":{"session":"a","original":"a"}`, said("late", `"marker"`, "user"),
	})
	ix := f.open(t)
	for _, in := range []string{"b", "a"} {
		row := must[index.Session](t)(ix.Conversation(t.Context(), "a"))
		if alone := must[index.Session](t)(ix.Get(t.Context(), "b")); row.Title != "Kitchen" || alone.Title != "Garden" || row.Messages != 1 {
			t.Errorf("the conversation is %q with %d messages, its last session %q", row.Title, row.Messages, alone.Title)
		}
		if hits := search(t, ix, index.SearchOptions{Query: "late"}); len(hits) != 1 || hits[0].Name != in {
			t.Errorf("%+v, want one hit in session %s", hits, in)
		}
		f.write("a", append(first, said("late", `"next"`, "user")))
		mustCatchUp(t, ix)
	}
}

// said is a message that says its id, without the brackets of its line.
func said(id, parent, role string) string {
	return fmt.Sprintf(`"type":"message","id":%q,"parent_id":%s,"timestamp":"2026-03-14T12:00:00Z","message":{"role":%q,"tokens":5,"content":[{"type":"text","text":{"content":%q}}]}`, id, parent, role, id)
}

// write writes the lines of a log.
func (f *fixture) write(name string, lines []string) {
	f.tb.Helper()
	text := "{" + strings.Join(lines, "}\n{") + "}\n"
	if err := os.WriteFile(filepath.Join(f.dir, name+".jsonl"), []byte(text), 0o600); err != nil {
		f.tb.Fatal(err)
	}
}

// Removing a session can change which conversation other sessions belong to, even ones
// outside its chain.
func TestRemovalChangesWhoBelongsTogether(t *testing.T) {
	t.Parallel()
	f := &machine{fixture: newFixture(t)}
	ix := f.open(t)
	belongs := func(id, want string) {
		t.Helper()
		mustCatchUp(t, ix)
		if got := must[index.Session](t)(ix.Conversation(t.Context(), id)); got.ID != want {
			t.Errorf("%s is in conversation %s, want %s", id, got.ID, want)
		}
	}
	continues := func(id, parent string) {
		f.check(f.create(session.Header{ID: id, ParentSession: parent, Relation: session.RelationContinuation}).Close())
	}
	f.check(f.create(session.Header{ID: "known"}).Close())
	continues("unknown", "known") // which does not say that it goes on
	belongs("unknown", "unknown")
	f.check(f.st.Remove(t.Context(), "known"))
	belongs("unknown", "known") // nobody is there to ask

	continues("first", "lost")
	continues("second", "lost")
	belongs("first", "lost")
	belongs("second", "second")
	f.check(f.st.Remove(t.Context(), "first"))
	belongs("second", "lost")
}
