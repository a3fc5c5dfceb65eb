package render_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/render"
)

// A directory is called by its last element, and by more where that is not enough.
func TestShortDirs(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{
		"/home/ada/work/api": "work/api", "/home/ada/play/api": "play/api", "/home/ada/forge": "forge", `C:\code\web`: `code\web`, "/srv/web/": "srv/web",
		"/a/b/x": "a/b/x", "/c/b/x": "c/b/x", "x": "x", "/": "/", "": "",
	}
	got := render.ShortDirs(slices.Collect(maps.Keys(dirs)))
	for dir, want := range dirs {
		if got[dir] != want {
			t.Errorf("%q is called %q, want %q", dir, got[dir], want)
		}
	}
	if got := render.ShortDirs([]string{"/x/api", "/x/api"}); got["/x/api"] != "api" {
		t.Errorf("one directory is called %q", got["/x/api"])
	}
}

// Without the others, a random id is called by what tells it from nearly all of them, and
// any other id stays whole.
func TestShortID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"0197ab12-3456-7abc-8def-0123456789ab":           "01234567",
		"0197ab12-3456-7abc-8def-0123456789ab~89abcdef":  "01234567~89ab",
		"0197ab12-3456-4abc-8def-0123456789ab":           "0197ab12",
		"5357f8ac-0f14-8d98-9c29-53c11466b940":           "5357f8ac",
		"5357f8ac0f148d989c2953c11466b9405357f8ac":       "5357f8ac",
		"2026-11-14_234943":                              "2026-11-14_234943",
		"msg_01XFDUDYJgAACzvnptvVoYEL":                   "msg_01XFDUDYJgAACzvnptvVoYEL",
		"":                                               "",
		"0197ab12-3456-7abc-8def-not-hexadecimal-at-all": "0197ab12-3456-7abc-8def-not-hexadecimal-at-all",
	} {
		if got := render.ShortID(id); got != want {
			t.Errorf("%q became %q, want %q", id, got, want)
		}
	}
}

// A hundred thousand sessions of one minute begin alike. Their names are short and
// distinct all the same, and none is the beginning of another id.
func TestNamesOfOneMinute(t *testing.T) {
	t.Parallel()
	const many = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, many)
	for i := range ids {
		ids[i] = fmt.Sprintf("019a1e50-%04x-7%03x-%04x-%012x", i*60_000/many, random.Uint32N(1<<12), 0x8000|random.Uint32N(1<<14), random.Uint64N(1<<48))
	}
	ids = append(ids, "019a1e50-1111-7abc-8def-019a1e501111") // a name that many ids begin with
	names := render.ShortIDs(ids)
	taken, long := make(map[string]bool), 0
	for _, name := range names {
		if taken[name] = true; len(name) > 8 {
			long++
		}
	}
	if len(taken) != len(ids) || long > 10 {
		t.Errorf("%d ids have %d names, %d of them longer than 8", len(ids), len(taken), long)
	}
	if name := names[ids[many]]; name != "019a1e501" {
		t.Errorf("the id whose random part begins like the others is called %q", name)
	}
	for i := 0; i < many; i += many / 10 {
		if found := render.EntriesNamed(names[ids[i]], ids); !slices.Equal(found, ids[i:i+1]) {
			t.Errorf("%s means %q", names[ids[i]], found)
		}
	}
}

// If all of the random part is another's, too, only the id is left.
func TestNamesOfEqualRandomParts(t *testing.T) {
	t.Parallel()
	const a, b = "0197ab12-3456-7abc-8def-0123456789ab", "0197ab13-3456-7abc-8def-0123456789ab"
	if names := render.ShortIDs([]string{a, b}); names[a] != a || names[b] != b {
		t.Errorf("names %q", names)
	}
}
