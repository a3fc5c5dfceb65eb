package storetest

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var nameChecks = []check{
	{"Refused", checkNamesRefused},
	{"Allowed", checkNamesAllowed},
}

var badNames = []string{
	"", ".", "..", "...", ".hidden",
	"../x", "..\\x", "a/b", "a\\b", "a/../b", "/abs", "/", "\\", "a/", "\\\\host\\share",
	"C:\\x", "C:x", "a:b", "a*", "a?", "a<b", "a>b", "a|b", "a\"b",
	"a\x00b", "a\x00", "\x00", "a\nb", "a\rb", "a\tb", "a\x1bb", "a\x7fb", "a\u0085b",
	"a.", "a..", "a ", " a", " ",
	"con", "CON", "nul.txt", "aux.tar.gz", "com1", "LPT9.log",
	"a\xffb", "\xc3", "\xed\xa0\x80",
	"a\u202eb", "a\u200bb", "\ufeffa",
	strings.Repeat("n", store.MaxName+1), strings.Repeat("n", 1<<16), strings.Repeat("é", store.MaxName/2+1),
}

var goodNames = []string{
	"a", "0", "A-Z_0-9", "-", "_x", "~", "a'b", "$HOME", "%2e%2e", "a;b", "#1", "a&b",
	"019a3d5e-7c1b-7f00-8a52-3b9c0d1e2f34",
	"two words", "a.b", "v1.2.3", "x.jsonl", "a..b", "session.lock",
	"café", "会話", "разговор", "😀",
	"console", "con1", "com", "com10", "nulx",
	strings.Repeat("n", store.MaxName), strings.Repeat("界", store.MaxName/3),
}

func checkNamesRefused(t *testing.T, s store.Store) {
	kinds := []error{store.ErrInvalid, fs.ErrInvalid}
	for _, name := range badNames {
		_, err := s.Create(t.Context(), name, store.Lines([]byte(num(0))))
		wantRefused(t, "create", name, err, kinds)
		_, err = s.Open(t.Context(), name)
		wantRefused(t, "open", name, err, kinds)
		wantRefused(t, "remove", name, s.Remove(t.Context(), name), kinds)
		wantRefused(t, "remove at", name, s.RemoveAt(t.Context(), name, 0), kinds)
		_, err = s.Stat(t.Context(), name)
		wantRefused(t, "describe", name, err, kinds)
		wantRefused(t, "write note", name, s.Notes("").Write(t.Context(), name, nil), kinds)
		_, err = s.Notes("").Read(t.Context(), name)
		wantRefused(t, "read note", name, err, kinds)
	}
	wantTexts(t, "list after refusals", mustNames(t, s), nil)
}

func wantRefused(t *testing.T, what, name string, err error, kinds []error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s %.80q was not refused", what, name)
	}
	wantErr(t, err, "", kinds...)
}

// All names are in the store at once, so that none can be taken for another.
func checkNamesAllowed(t *testing.T, s store.Store) {
	for i, name := range goodNames {
		MustCreate(t, s, name, num(i))
	}
	wantTexts(t, "list", mustNames(t, s), slices.Sorted(slices.Values(goodNames)))
	for i, name := range goodNames {
		log := MustOpen(t, s, name)
		MustAppend(t, log, num(-1))
		wantLines(t, log, num(i), num(-1))
	}
	for _, name := range goodNames {
		mustRemove(t, s, name)
	}
	wantTexts(t, "list after all were removed", mustNames(t, s), nil)
}

// mustNames returns the names of all logs in order, as often as they are listed.
func mustNames(t testing.TB, s store.Store) []string {
	t.Helper()
	var names []string
	for stat, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatalf("list: %q: %v", stat.Name, err)
		}
		names = append(names, stat.Name)
	}
	slices.Sort(names)
	return names
}
