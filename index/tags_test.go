package index_test

import (
	"context"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// A tag stands for the tags below it, in lists and in searches, and for nothing that
// only begins like it.
func TestATagStandsForThoseBelowIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tag := range map[string]string{"a": "forge", "b": "forge/parser", "c": "forge/parser/tokens", "d": "forgery", "e": "other/forge"} {
		s := f.create(session.Header{ID: name})
		f.append(s, session.RoleUser, session.Text("hello"))
		must[string](t)(s.AppendEntry(session.Tags(tag, "all")))
	}
	ix := f.open(t)
	for tag, want := range map[string][]string{
		"forge": {"a", "b", "c"}, "forge/parser": {"b", "c"}, "forge/parser/tokens": {"c"}, "other": {"e"}, "forgery": {"d"}, "forg": nil,
	} {
		for _, tags := range [][]string{{tag}, {tag, "all"}, {"all", tag}} {
			var listed, found []string
			for _, s := range pages(t, ix, index.ListOptions{Tags: tags, Limit: 2}) {
				listed = append(listed, s.Name)
			}
			hits := must[*index.Results](t)(ix.Search(context.Background(), index.SearchOptions{Query: "hello", Tags: tags}))
			for _, h := range hits.Hits {
				found = append(found, h.Session)
			}
			slices.Sort(listed)
			slices.Sort(found)
			if !slices.Equal(listed, want) || !slices.Equal(found, want) {
				t.Errorf("%v: listed %v, found %v, want %v", tags, listed, found, want)
			}
		}
	}
}
