package index_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// A conversation that says one word here and another there is found if no text says both.
func TestWordsInDifferentTexts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("the heron fishes at dawn", "reeds grow here", "and again reeds", "a kingfisher")
	f.say("a heron of tin", "herons by the thousand")
	f.say("reeds and rushes", "a falcon over the cliff", "the kingfisher sleeps")
	links := f.chain()
	f.append(links[0], session.RoleUser, session.Text("an owl hoots"))
	f.append(links[2], session.RoleUser, session.Text("a badger digs"))
	ix := f.open(t)
	for _, tt := range []struct {
		query  string
		want   string // the snippets of the hits
		across bool
	}{
		{"heron dawn", "the heron fishes at dawn", false},
		{"heron reeds", "the heron fishes at dawn|and again reeds", true},
		{"reeds heron", "the heron fishes at dawn|and again reeds", true},
		{"heron again reeds", "the heron fishes at dawn|and again reeds", true}, // one text has two
		{"heron kingfishers", "a kingfisher|the heron fishes at dawn", true},    // in another form
		{"heron reed*", "the heron fishes at dawn|and again reeds", true},
		{"heron reeds -again", "the heron fishes at dawn|reeds grow here", true},
		{`"heron fishes" "again reeds"`, "the heron fishes at dawn|and again reeds", true},
		{"heron (cliff OR again)", "the heron fishes at dawn|and again reeds", true},
		{"heron falcon", "", false},       // in different conversations
		{"heron reeds falcon", "", false}, // two of three are not enough
		{"heron reeds role:assistant", "", false},
		{`"heron reeds"`, "", false}, // a phrase is one thing
		{"owl badger", "a badger digs|an owl hoots", true},
		{"heron xylophones", "", false},
	} {
		res, err := ix.Search(context.Background(), index.SearchOptions{Query: tt.query})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, h := range res.Hits {
			said = append(said, h.Snippet)
			if len(h.Highlights) == 0 {
				t.Errorf("%s: nothing is marked in %q", tt.query, h.Snippet)
			}
		}
		got := strings.Join(said, "|")
		if len(said) > 1 { // the rarest word comes first, but some are as rare as others
			want := strings.Split(tt.want, "|")
			slices.Sort(want)
			tt.want = strings.Join(want, "|")
			slices.Sort(said)
			got = strings.Join(said, "|")
		}
		if got != tt.want || res.Across != tt.across || res.Bounded || res.Matches != len(said) {
			t.Errorf("%s: %s, %d matches, across %v; want %s, %v", tt.query, got, res.Matches, res.Across, tt.want, tt.across)
		}
	}
}

// Hits of one conversation stay together, the best conversation first, and a list has one for
// each.
func TestConversationsWithWordsInDifferentTexts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []string
	for n := range 3 { // the shorter the texts, the better
		s := f.say("heron"+strings.Repeat(" lorem", 20*(2-n)), "reeds"+strings.Repeat(" ipsum", 20*(2-n)))
		want = append([]string{s.ID()}, want...)
		if n == 2 {
			fork := must[*session.Session](t)(s.Fork(t.Context(), f.st, nil))
			fork.Close()
		}
	}
	ix := f.open(t)
	var all []string
	for _, h := range search(t, ix, index.SearchOptions{Query: "heron reeds"}) {
		if (h.Session == want[0]) != (len(h.Also) == 1) {
			t.Errorf("%s is also in %v", h.Session, h.Also)
		}
		all = append(all, h.Session)
	}
	if diff := cmp.Diff([]string{want[0], want[0], want[1], want[1], want[2], want[2]}, all); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	var each []string
	o := index.SearchOptions{Query: "heron reeds", BySession: true, Limit: 2}
	for ; o.Offset < 4; o.Offset += 2 {
		res := must[*index.Results](t)(ix.Search(t.Context(), o))
		if res.Matches != 3 || !res.Across {
			t.Errorf("%d conversations, across %v; want 3", res.Matches, res.Across)
		}
		for _, h := range res.Hits {
			each = append(each, h.Session)
			if h.Hits != 2 {
				t.Errorf("%d hits in %s", h.Hits, h.Session)
			}
		}
	}
	if diff := cmp.Diff(want, each); diff != "" {
		t.Errorf("conversations (-want +got):\n%s", diff)
	}
	newest := search(t, ix, index.SearchOptions{Query: "heron reeds", Order: index.ByTime})
	if !slices.IsSortedFunc(newest, func(a, b index.Hit) int { return b.Time.Compare(a.Time) }) {
		t.Error("the newest is not first")
	}
}

// Only so many conversations are searched, and the answer says so.
func TestWordsInDifferentTextsOfManyConversations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const many = index.MaxAcross + 5
	for n := range many {
		f.say(fmt.Sprint("heron number", n), "reeds", "reeds").Close()
	}
	ix := f.open(t)
	res := must[*index.Results](t)(ix.Search(t.Context(), index.SearchOptions{Query: "heron reeds", BySession: true, Limit: 2 * many}))
	if len(res.Hits) != index.MaxAcross || !res.Across || !res.Bounded {
		t.Errorf("%d conversations, across %v, bounded %v", len(res.Hits), res.Across, res.Bounded)
	}
	if res := must[*index.Results](t)(ix.Search(t.Context(), index.SearchOptions{Query: "heron reeds since:2026-03-14T12:08", BySession: true, Limit: 2 * many})); res.Bounded || len(res.Hits) == 0 {
		t.Errorf("%d conversations, bounded %v", len(res.Hits), res.Bounded)
	}
}
