package index_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store/storetest"
)

// Whatever lies in the place of the index, and of its log, the answer is right or
// an error, and costs no more than making it anew.
func FuzzDatabase(f *testing.F) {
	fixture := newFileFixture(f)
	fixture.say("needle")
	if err := fixture.open(f).Close(); err != nil {
		f.Fatal(err)
	}
	good := must[[]byte](f)(os.ReadFile(fixture.path()))
	f.Add(good, []byte(nil), 0, byte(0))
	f.Add(good, []byte(nil), 4096*3+8, byte(0xff))
	f.Add(good[:4096], []byte(nil), 60, byte(9))
	f.Add([]byte("SQLite format 3\x00"), []byte("\x37\x7f\x06\x82"), 0, byte(0))
	f.Fuzz(func(t *testing.T, database, log []byte, at int, flip byte) {
		if len(database) > 0 && at >= 0 { // a mutation costs little where most are in vain
			database[at%len(database)] ^= flip
		}
		fx := newFileFixture(t)
		fx.say("needle")
		if err := os.WriteFile(fx.path(), database, 0o600); err != nil {
			t.Fatal(err)
		}
		if len(log) > 0 {
			if err := os.WriteFile(fx.path()+"-wal", log, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Bounded(t, 512<<20, func() {
			ix, err := index.Open(t.Context(), fx.st, fx.path(), nil)
			if err != nil {
				return
			}
			defer ix.Close()
			if _, err := ix.CatchUp(t.Context(), nil); err != nil {
				return
			}
			_, _, _ = ix.List(t.Context(), index.ListOptions{Limit: -1})
			_, _ = ix.Search(t.Context(), index.SearchOptions{Query: "needle"})
			_, _ = ix.Tags(t.Context())
		})
	})
}

// A list of prices is understood or refused.
func FuzzPrices(f *testing.F) {
	f.Add([]byte("[models.a]\ninput = 1.5\noutput = 2\n"))
	f.Add(must[[]byte](f)(os.ReadFile("prices.toml")))
	f.Add([]byte("a.b.c.d = {e = [[[]]]}\n"))
	path := filepath.Join(f.TempDir(), "prices.toml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		storetest.Bounded(t, 32<<20+int64(len(text))*1000, func() {
			if prices, err := index.ReadPrices(path); (prices == nil) == (err == nil) {
				t.Errorf("prices %v, error %v", prices, err)
			}
		})
	})
}
