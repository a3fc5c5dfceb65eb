package session_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// TestUsagePlus: every number of a usage is in the sum, and those who add keep theirs.
func TestUsagePlus(t *testing.T) {
	t.Parallel()
	var a, b session.Usage
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for i := range va.NumField() {
		if va.Field(i).CanInt() {
			va.Field(i).SetInt(int64(i + 1))
			vb.Field(i).SetInt(100)
		}
	}
	sum := reflect.ValueOf(a.Plus(&b)).Elem()
	for i := range va.NumField() {
		if va.Field(i).CanInt() && (sum.Field(i).Int() != int64(i+101) || va.Field(i).Int() != int64(i+1)) {
			t.Errorf("%s: %d and 100 make %d", va.Type().Field(i).Name, i+1, sum.Field(i).Int())
		}
	}
	var none *session.Usage
	if got := none.Plus(&a); got == nil || got.Input != a.Input {
		t.Error("nothing and a usage make", got)
	}
	if got := a.Plus(nil); got == nil || got.Input != a.Input {
		t.Error("a usage and nothing make", got)
	}
	if none.Plus(nil) != nil {
		t.Error("nothing and nothing make something")
	}
}

func TestMicroUSD(t *testing.T) {
	t.Parallel()
	for dollars, want := range map[float64]int{
		0: 0, 0.0123456: 12346, 1: 1_000_000, -1: 0, 1e9: 0, math.Inf(1): 0, math.NaN(): 0,
	} {
		if got := session.MicroUSD(dollars); got != want {
			t.Errorf("%v dollars are %d millionths, want %d", dollars, got, want)
		}
	}
}

// Entries that a continuation copied were paid for before, even if the rest of its marker is lost.
func TestCopiesWerePaidForBefore(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"input":5,"output":2}`
	marker := `{"type":"continues","id":"m","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","continues":{"session":"s0","original":"s0"}}`
	for name, c := range map[string]struct {
		marker string
		want   int
	}{
		"with a marker":         {marker, 7},
		"of which half is lost": {strings.Replace(marker, `:{"session"`, `:{#session#`, 1), 7},
		"without one":           {`{"type":"label","id":"m","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","label":{"target_id":"a","label":"x"}}`, 14},
	} {
		s := mustGet(session.Load(writeLog(t,
			`{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00.000Z","parent_session":"s0","relation":"continuation"}`,
			`{"type":"message","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"assistant","content":[],`+usage+`}}`,
			c.marker,
			`{"type":"message","id":"b","parent_id":"m","timestamp":"2024-01-01T10:00:03.000Z","message":{"role":"assistant","content":[],`+usage+`}}`)))(t)
		if sum := mustGet(session.SpentIn(s))(t); sum.Tokens() != c.want {
			t.Errorf("%s: %d tokens, want %d", name, sum.Tokens(), c.want)
		}
		mustDo(t, s.Close())
	}
}
