package redact_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/redact"
)

// pieces are what texts are put together from: secrets, parts of secrets, and
// what may stand around them.
func pieces() []string {
	all := []string{
		"password", "token", "=", ":", `"`, `'`, `\"`, `\n`, "\n", " ", "://", "@", "Bearer ", "Basic ", "[REDACTED:", "]", "-----BEGIN PRIVATE KEY-----",
		"AKIA", "ghp_", "eyJ", ".", "/", "+", "x", "é", "{", "}", ",", "kX9#mQ2$vL", "secret", "&", "--", "\\", "\xff", "sk-",
	}
	for _, kind := range slices.Sorted(maps.Keys(samples())) {
		for _, s := range samples()[kind] {
			s = strings.NewReplacer("«", "", "»", "").Replace(s)
			all = append(all, s, s[:len(s)/2], s[len(s)/2:])
		}
	}
	return all
}

func anyText(all []string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(all), rapid.String()), 0, 12).Draw(t, "pieces"), "")
	})
}

// check holds for any text.
func check(t interface{ Fatalf(string, ...any) }, text string) {
	once, found := redact.Text(text)
	if len(found) == 0 && once != text {
		t.Fatalf("%q became %q without findings", text, once)
	}
	for i, f := range found {
		if f.Start < 0 || f.End <= f.Start || f.End > len(text) || i > 0 && f.Start < found[i-1].End {
			t.Fatalf("%q has impossible findings %+v", text, found)
		}
		if secret := text[f.Start:f.End]; strings.Contains(f.Preview, secret) {
			t.Fatalf("the preview %q tells %q", f.Preview, secret)
		}
	}
	if twice, again := redact.Text(once); twice != once || again != nil {
		t.Fatalf("%q became %q and then %q with %+v", text, once, twice, again)
	}
}

func checkJSON(t interface{ Fatalf(string, ...any) }, value []byte) {
	once, found, err := redact.JSON(value)
	if err != nil {
		t.Fatalf("%q is said not to be JSON: %v", value, err)
	}
	if len(found) == 0 && string(once) != string(value) || !json.Valid(once) {
		t.Fatalf("%q became %q with %v", value, once, found)
	}
	if twice, again, err := redact.JSON(once); string(twice) != string(once) || again != nil || err != nil {
		t.Fatalf("%q became %q and then %q with %+v, %v", value, once, twice, again, err)
	}
}

func TestTextProperties(t *testing.T) {
	t.Parallel()
	all := pieces()
	soak.Check(t, func(t *rapid.T) { check(t, anyText(all).Draw(t, "text")) })
}

func TestJSONProperties(t *testing.T) {
	t.Parallel()
	all := pieces()
	soak.Check(t, func(t *rapid.T) {
		value := map[string]any{"list": []any{anyText(all).Draw(t, "element"), 1.5, nil}}
		value[anyText(all).Draw(t, "name")] = anyText(all).Draw(t, "value")
		value["password"] = anyText(all).Draw(t, "password")
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		checkJSON(t, data)
	})
}

func FuzzText(f *testing.F) {
	for _, list := range samples() {
		for _, s := range list {
			f.Add(strings.NewReplacer("«", "", "»", "").Replace(s))
		}
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"password":"kX9#mQ2$vL","a":["\u0041\n",{"b":null}]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			redact.Bytes(value)
			return
		}
		checkJSON(t, value)
	})
}

// TestCorpus looks at real conversations, where there are any: what is found in
// them must be what was judged by hand to be a secret, which is passwords that a
// tool made up, under the name "password", and nothing else.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"COPPICE_CORPUS": 34, "COPPICE_SAMPLES": 0} {
		root := os.Getenv(name)
		if root == "" {
			continue
		}
		n := 0
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil || !utf8.Valid(data) {
				return err
			}
			_, found := redact.Bytes(data)
			for _, f := range found {
				if f.Kind != "password" || !strings.HasPrefix(f.Preview, "password=") {
					t.Errorf("%s: %+v", path, f)
				}
			}
			n += len(found)
			return nil
		})
		if err != nil || n != want {
			t.Errorf("%s has %d findings, of which %d were judged: %v", name, n, want, err)
		}
	}
}

// The manual lists the kinds that there are, and no others.
func TestManualListsKinds(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join("..", "docs", "redaction.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(manual), "| kind | what |")
	table, _, _ = strings.Cut(table, "\n\n")
	all := samples()
	for _, kind := range redact.TokenKinds() {
		if _, ok := all[kind]; !ok {
			t.Errorf("there is no sample of %s", kind)
		}
	}
	for kind := range all {
		if !strings.Contains(table, "`"+kind+"`") {
			t.Errorf("the manual does not list %s", kind)
		}
	}
	for _, row := range strings.Split(table, "\n") {
		kinds, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for i, kind := range strings.Split(kinds, "`") {
			if _, ok := all[kind]; i%2 == 1 && !ok {
				t.Errorf("the manual lists %s, of which there is no sample", kind)
			}
		}
	}
}
