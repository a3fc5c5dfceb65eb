package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

const indexPage = 4096

// TestDamageIsNeverBelieved damages the file in many ways while nobody has it open.
// Whatever was done to it, the next to catch up gets the answers of a new index.
func TestDamageIsNeverBelieved(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	var words []string
	for i := range 12 {
		s := f.create(session.Header{CWD: fmt.Sprintf("/src/%d", i)})
		for j := range 30 {
			word := fmt.Sprintf("word%dx%d", i, j)
			if j%10 == 0 {
				words = append(words, word)
			}
			f.append(s, session.RoleUser, session.Text(strings.Repeat("common ", j)+word))
		}
	}
	ix := f.open(t)
	older := closed(t, ix)
	f.say("what came later")
	ix = f.open(t)
	want := answers(t, ix, words)
	good := closed(t, ix)
	r := soak.Rand(t)
	for name, data := range damages(r, good, older) {
		if err := os.WriteFile(f.path(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		ix := f.open(t)
		if got := answers(t, ix, words); got != want {
			t.Errorf("%s: the answers are not those of a new index", name)
		}
		if err := ix.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// damages yields what may become of a file.
func damages(r *rand.Rand, good, older []byte) map[string][]byte {
	all := map[string][]byte{
		"empty":                          {},
		"an older copy":                  older,
		"nothing but the header":         good[:100],
		"without its last page":          good[:len(good)-indexPage],
		"cut within a page":              good[:len(good)/2+100],
		"all pages but the first zeroed": append(bytes.Clone(good[:indexPage]), make([]byte, len(good)-indexPage)...),
	}
	pages := len(good) / indexPage
	page := func(data []byte, n int) []byte { return data[n*indexPage : (n+1)*indexPage] }
	for range 30 {
		data, n := bytes.Clone(good), r.IntN(pages)
		for range 1 + r.IntN(4) {
			page(data, n)[r.IntN(indexPage)] ^= byte(1 + r.IntN(255))
		}
		all[fmt.Sprintf("bytes of page %d changed, %d", n, r.Int())] = data
	}
	for range 6 {
		data, a, b := bytes.Clone(good), r.IntN(pages), r.IntN(pages)
		copy(page(data, a), page(good, b))
		copy(page(data, b), page(good, a))
		all[fmt.Sprintf("pages %d and %d swapped", a, b)] = data
		data = bytes.Clone(good)
		copy(page(data, b), page(good, a))
		all[fmt.Sprintf("page %d in the place of %d", a, b)] = data
		data = bytes.Clone(good)
		clear(page(data, a))
		all[fmt.Sprintf("page %d zeroed", a)] = data
	}
	return all
}

// closed closes an index and returns its file.
func closed(t *testing.T, ix *index.Index) []byte {
	t.Helper()
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(ix.Path())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// answers returns what an index says about everything.
func answers(t *testing.T, ix *index.Index, words []string) string {
	t.Helper()
	var b strings.Builder
	page, _, err := ix.List(t.Context(), index.ListOptions{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page {
		fmt.Fprintf(&b, "%s %s %d\n", page[i].ID, page[i].Title, page[i].Messages)
	}
	for _, word := range append(slices.Clone(words), "came later") {
		for _, hit := range search(t, ix, index.SearchOptions{Query: word}) {
			fmt.Fprintf(&b, "%s: %s %s\n", word, hit.Session, hit.Entry)
		}
	}
	return b.String()
}

// TestVerifyFindsChangedBytes: fsck tells of damage that SQLite does not see.
func TestVerifyFindsChangedBytes(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	f.say(strings.Repeat("some words to fill a page with ", 200))
	ix := f.open(t)
	data := closed(t, ix)
	r := soak.Rand(t)
	for range 10 {
		bad := bytes.Clone(data)
		bad[100+r.IntN(len(bad)-100)] ^= 1
		if err := os.WriteFile(ix.Path(), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := index.Verify(t.Context(), ix.Path()); !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("a bit was changed: %v", err)
		}
	}
}
