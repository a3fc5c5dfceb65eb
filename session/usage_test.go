package session_test

import (
	"math"
	"reflect"
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
