package clean_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// A value that a person gives is taken out in every spelling, and nothing else is. It does
// not come back, even if it is a word, and the list does not have it.
func TestGivenValueIsTakenOutInEverySpelling(t *testing.T) {
	t.Parallel()
	const value, other = `blue "whale" & sons/7`, "kX9#mQ2$vL"
	quoted, _ := json.Marshal(value)
	spelled := map[string]string{
		"plain": value, "JSON": string(quoted[1 : len(quoted)-1]), "query": url.QueryEscape(value), "path": strings.ToLower(url.PathEscape(value)),
		"base64": base64.StdEncoding.EncodeToString([]byte(value)), "base64 of more": base64.StdEncoding.EncodeToString([]byte("bob:" + value + "!")),
		"base64 in a URL": base64.RawURLEncoding.EncodeToString([]byte("ab" + value)),
	}
	f := newFixture(t)
	for name, text := range spelled {
		f.session(strings.ReplaceAll(name, " ", "-"), message("it is "+text+" here"), message("password="+other))
	}
	s, err := clean.LookWith(t.Context(), f.st, clean.Options{Value: value})
	f.must(err)
	if len(s.Secrets) != len(spelled) {
		t.Errorf("%d found: %+v", len(s.Secrets), s.Secrets)
	}
	receipt, err := s.Apply(t.Context())
	f.must(err)
	if len(receipt.Left) > 0 || receipt.Kinds["value"] != len(spelled) {
		t.Errorf("the receipt is %+v", receipt)
	}
	for name := range spelled {
		log, err := os.ReadFile(f.st.Path(strings.ReplaceAll(name, " ", "-")))
		f.must(err)
		if !strings.Contains(string(log), "[REDACTED:value]") || !strings.Contains(string(log), other) {
			t.Errorf("%s: %s", name, log)
		}
	}
	list, err := os.ReadFile(f.st.Parts().Where(store.PartNote, "redacted.json"))
	f.must(err)
	if strings.Contains(string(list), "whale") {
		t.Errorf("the list is %s", list)
	}
	e := message("again: " + value)
	f.must(f.guard().Append(&e))
	if got := session.TextOf(e.Message.Content); got != "again: [REDACTED:value]" {
		t.Errorf("the entry says %q", got)
	}
}

// A word that a rule found is taken out only where a rule says so, until a person names it.
func TestGivenWordIsTakenOutEverywhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("redis://:butterflies@cache:6379"), message("butterflies are insects"))
	f.apply(f.look())
	for range 2 { // the second time it is nowhere
		s, err := clean.LookWith(t.Context(), f.st, clean.Options{Value: "butterflies"})
		f.must(err)
		f.apply(s)
	}
	if got := string(f.guard().JSON([]byte(`"some butterflies"`))); got != `"some [REDACTED:value]"` {
		t.Errorf("the guard says %s", got)
	}
	if _, err := clean.LookWith(t.Context(), f.st, clean.Options{Value: "moth"}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("the error is %v", err)
	}
}
