package clean_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session/clean"
)

// A store learns what was taken out of others, each of which has a key of its own, takes it out
// of its own sessions, and hands on all that it knows.
func TestAdopt(t *testing.T) {
	t.Parallel()
	first, second, third := newFixture(t), newFixture(t), newFixture(t)
	first.session("one", message("DB_PASSWORD=kX9#mQ2$vL"))
	first.apply(first.look())
	second.session("one", message("DB_PASSWORD=zW4!hR7&nB"))
	second.apply(second.look())
	second.session("two", message("bare kX9#mQ2$vL"))
	third.session("two", message("bare kX9#mQ2$vL, zW4!hR7&nB"))

	receipt, err := clean.Adopt(t.Context(), second.st, first.st, clean.Options{})
	second.must(err)
	if receipt == nil || len(receipt.Sessions) != 1 || receipt.Sessions[0] != "two" {
		t.Fatalf("the receipt is %+v", receipt)
	}
	if got := second.texts("two")[0]; got != "bare [REDACTED:password]" {
		t.Errorf("the second store has %q", got)
	}
	_, err = clean.Adopt(t.Context(), third.st, second.st, clean.Options{})
	third.must(err)
	if got := third.texts("two")[0]; got != "bare [REDACTED:password], [REDACTED:password]" {
		t.Errorf("the third store has %q", got)
	}
	if receipt, err := clean.Adopt(t.Context(), third.st, first.st, clean.Options{}); receipt != nil || err != nil {
		t.Errorf("it knows everything, but %+v, %v", receipt, err)
	}
	for text, want := range map[string]bool{"so kX9#mQ2$vL": true, "so zW4!hR7&nB": true, "so it is": false} {
		if got, err := third.guard().Has([]byte(text)); got != want || err != nil {
			t.Errorf("%q is known: %v, %v", text, got, err)
		}
	}
	if has, err := newFixture(t).guard().Has([]byte("kX9#mQ2$vL")); has || err != nil {
		t.Errorf("a store that knows nothing: %v, %v", has, err)
	}
}

// A list that cannot be read is not replaced by another store's.
func TestAdoptIntoADamagedList(t *testing.T) {
	t.Parallel()
	f, from := newFixture(t), newFixture(t)
	from.session("one", message("DB_PASSWORD=kX9#mQ2$vL"))
	from.apply(from.look())
	f.must(f.st.Notes("").Change(t.Context(), "redacted.json", func([]byte) ([]byte, error) { return []byte("{"), nil }))
	if receipt, err := clean.Adopt(t.Context(), f.st, from.st, clean.Options{}); err == nil {
		t.Errorf("it gives %+v", receipt)
	}
	if receipt, err := clean.Adopt(t.Context(), from.st, f.st, clean.Options{}); err == nil {
		t.Errorf("the other way it gives %+v", receipt)
	}
}
