package clean_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

func (f *fixture) guard() *clean.Guard {
	f.Helper()
	g, err := clean.LoadGuard(f.Context(), f.st)
	f.must(err)
	return g
}

// What was taken out once is known, in whatever form it comes back, and nothing
// else is touched. The list does not have the secrets.
func TestGuardKnowsWhatWasTakenOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret, password, odd := token(1), "kX9#mQ2$vL", `p"w\9#mQ2$vL<x>`
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R4\n-----END PRIVATE KEY-----"
	if f.guard() != nil {
		t.Error("there is a guard before anything was taken out")
	}
	quoted, _ := json.Marshal(odd)
	f.session("one", message("DB_PASSWORD="+password+" "+secret), message(key), message("password: "+string(quoted)))
	f.apply(f.look())
	list, err := os.ReadFile(f.st.Parts().Where(store.PartNote, "redacted.json"))
	f.must(err)
	for _, s := range []string{secret, password, secret[4:14]} {
		if bytes.Contains(list, []byte(s)) {
			t.Errorf("the list has %q", s)
		}
	}
	g := f.guard()
	inJSON := func(text string) string {
		b, _ := json.Marshal(map[string]string{"x": text})
		return string(b)
	}
	unicode := strings.Replace(secret, "g", `\u0067`, 1)
	for name, text := range map[string]string{
		"plain": "so " + secret + " it is", "by value": "bare " + password, "twice": secret + secret, "json": inJSON(secret),
		"json in json": inJSON(inJSON(password)), "lines": inJSON("x") + "\n" + inJSON(secret) + "\nrest", "unicode escape": `{"x":"` + unicode + `"}`,
		"key": "a\n" + key + "\nb", "key in json": inJSON(key), "key in json in json": inJSON(inJSON(key)),
		"in the middle": strings.Repeat("x", 1<<20) + secret + strings.Repeat("y", 1000),
	} {
		got := string(g.Raw([]byte(text)))
		if len(got) != len(text) || !strings.Contains(got, "***") && !strings.Contains(got, "REDACTED") {
			t.Errorf("%s: %.200q", name, got)
		}
		for _, s := range []string{secret, password, unicode, "jMzEfYyjiWA4R4"} {
			if strings.Contains(got, s) {
				t.Errorf("%s: %q is in %.200q", name, s, got)
			}
		}
	}
	for _, text := range []string{"", "short", secret[:len(secret)-1], password[1:], "other " + token(2), inJSON("SOME_PASSWORD=aB3$dE5^gH"), secret[1:] + secret[:1]} {
		if got := string(g.Raw([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	e := message("again " + secret + " and " + token(3))
	f.must(g.Append(&e))
	if got := e.Message.Content[0].Text.Content; got != "again "+gone+" and "+token(3) {
		t.Errorf("the entry says %q", got)
	}
}

// A word that was a password stays a word where it is none.
func TestGuardLeavesWordsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("redis://:butterflies@cache:6379"))
	f.apply(f.look())
	g := f.guard()
	for text, want := range map[string]string{
		"butterflies are insects":         "butterflies are insects",
		"redis://:butterflies@cache:6379": "redis://:***********@cache:6379",
	} {
		if got := string(g.Raw([]byte(text))); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// It does not come back as the name of a member, however that is spelled, nor coloured, nor
// as the type of an entry.
func TestGuardLooksAtNamesTypesAndColours(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(1)
	f.session("one", message("use "+secret))
	f.apply(f.look())
	g := f.guard()
	for name, value := range map[string]string{
		"a name": `{"` + secret + `":1}`, "an escaped name": `{"\u0067` + secret[1:] + `":1}`, "a name in JSON in JSON": `{"x":"{\"` + secret + `\":1}"}`,
		"coloured": `{"x":"\u001b[31m` + secret[:9] + `\u001b[m` + secret[9:] + `"}`, "an escaped colour": `{"x":"\\u001b[31m` + secret + `\\u001b[m"}`,
	} {
		for _, got := range []string{string(g.JSON([]byte(value))), string(g.Raw([]byte(value)))} {
			if strings.Contains(got, secret[9:]) || !json.Valid([]byte(got)) {
				t.Errorf("%s: %s became %s", name, value, got)
			}
		}
	}
	e := session.Entry{Type: session.EntryType(secret)}
	if err := g.Append(&e); !errors.Is(err, session.ErrInvalid) || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
	if err := clean.Append(&e); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("the error is %v", err)
	}
}

// A store that wraps another, and does not even say so, has the guard of the other one.
func TestGuardOfAWrappedStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("use "+token(1)))
	f.apply(f.look())
	thin := struct{ store.Store }{f.st}
	g, err := clean.LoadGuard(t.Context(), thin)
	if err != nil || !g.Knows(f.guard()) || g == nil {
		t.Errorf("the guard is %v, %v", g, err)
	}
}

// A store without a list lets all pass.
func TestNoGuard(t *testing.T) {
	t.Parallel()
	g, err := clean.LoadGuard(t.Context(), memory.New(nil))
	if g != nil || err != nil {
		t.Errorf("the guard is %v, %v", g, err)
	}
	e := message(token(1))
	if string(g.Raw([]byte("x"))) != "x" || string(g.JSON([]byte("{}"))) != "{}" || g.Append(&e) != nil || !g.Knows(nil) {
		t.Error("no guard does something")
	}
	f := newFixture(t)
	f.must(f.st.Notes("").Write(t.Context(), "redacted.json", []byte(`{"key":"","values":[{"kind":"x"}]}`)))
	if _, err := clean.LoadGuard(t.Context(), f.st); err == nil {
		t.Error("a damaged list was passed over")
	}
}

// Sweeps at the same time all leave what they took out in the list.
func TestGuardOfSweepsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 8
	for i := range n {
		f.session(fmt.Sprint("s", i), message(token(uint64(i+1))))
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s, err := clean.Look(t.Context(), f.st, fmt.Sprint("s", i))
			if err == nil {
				_, err = s.Apply(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	g := f.guard()
	for i := range n {
		if text := token(uint64(i + 1)); string(g.Raw([]byte(text))) == text {
			t.Errorf("secret %d is not known", i)
		}
	}
}

// What was taken out of one session is found in another by its value alone.
func TestSweepKnowsWhatWasTakenOutBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	password := "kX9#mQ2$vL"
	f.session("one", message("DB_PASSWORD="+password))
	f.apply(f.look("one"))
	f.session("two", message("bare "+password+" and "+token(1)))
	s, err := clean.LookWith(t.Context(), f.st, clean.Options{Listed: true})
	f.must(err)
	if len(s.Secrets) != 1 || s.Secrets[0].Session != "two" || s.Secrets[0].Kind != "password" {
		t.Fatalf("found %+v", s.Secrets)
	}
	f.apply(s)
	if got := f.texts("two"); got[0] != "bare [REDACTED:password] and "+token(1) {
		t.Errorf("became %q", got)
	}
}

// What a guard costs where there is nothing to find, with a hundred secrets known.
func BenchmarkGuard(b *testing.B) {
	st, err := file.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(b.Context(), st, session.Header{ID: "one"}, nil)
	for i := 0; i < 100 && err == nil; i++ {
		_, err = s.AppendAll(message(token(uint64(i))))
	}
	sweep, lookErr := clean.Look(b.Context(), st)
	if err := errors.Join(err, s.Close(), lookErr); err != nil {
		b.Fatal(err)
	}
	if _, err := sweep.Apply(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := clean.LoadGuard(b.Context(), st)
	if err != nil {
		b.Fatal(err)
	}
	for name, line := range map[string]string{"plain": "some words of a line of text, %d\n", "lines": `{"n":%d,"text":"some words \n with an escape"}` + "\n"} {
		text := make([]byte, 0, 1<<20)
		for i := 0; len(text) < 1<<20; i++ {
			text = fmt.Appendf(text, line, i)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				g.Raw(text)
			}
		})
	}
}
