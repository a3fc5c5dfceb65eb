package rawjson_test

import (
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// checkDecode compares Any and Map with a json.Decoder that keeps numbers.
func checkDecode(t *testing.T, b []byte) {
	t.Helper()
	got, err := rawjson.Any(b)
	if valid := rawjson.Valid(b); valid != (err == nil) {
		t.Fatalf("Any(%.80q) gives %v, and Valid %v", b, err, valid)
	}
	m, mapErr := rawjson.Map(b)
	if err != nil {
		var syntax *rawjson.SyntaxError
		if !errors.As(err, &syntax) || !errors.As(mapErr, &syntax) {
			t.Fatalf("Any and Map of %.80q give %v and %v", b, err, mapErr)
		}
		return
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if want = exact(want); !reflect.DeepEqual(got, want) {
		t.Fatalf("Any(%.80q) = %#v, want %#v", b, got, want)
	}
	if wantMap, ok := want.(map[string]any); ok != (mapErr == nil) || ok && !reflect.DeepEqual(m, wantMap) {
		t.Fatalf("Map(%.80q) = %#v, %v", b, m, mapErr)
	}
}

// exact makes float64s of the numbers that those hold, by other means than
// Number does.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v
		}
		if mantissa, _, _ := strings.Cut(strings.ToLower(string(v)), "e"); f == 0 {
			if strings.Trim(mantissa, "-0.") != "" {
				return v
			}
			return f
		}
		text, err := json.Marshal(f)
		if err != nil {
			return v
		}
		if len(v) < 30 && value(string(v)).Cmp(value(string(text))) != 0 || len(v) >= 30 && string(text) != string(v) {
			return v
		}
		return f
	case map[string]any:
		for name := range v {
			v[name] = exact(v[name])
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	}
	return v
}

func value(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text)
	return r
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, s := range nasty() {
		checkDecode(t, []byte(s))
	}
	checkDecode(t, []byte(`{"a":[1,2.5,-0,"x",null,true,{"b":{}}],"a":[],"c":[[],{}],"chat":123456789012345678}`))
}

// TestNumbersKeepTheirDigits: a number is a float64 only if that loses nothing.
func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "1", "-1", "42.0", "0.1", "1.50", "1e3", "1E+3", "9007199254740992", "100000000000000000000", "1.7976931348623157e308", "0e400"} {
		if _, ok := rawjson.Number([]byte(text)).(float64); !ok {
			t.Errorf("%s is not a float64", text)
		}
	}
	for _, text := range []string{"9007199254740993", "-123456789012345678", "18446744073709551615", "1e400", "1e-400", "5e-325", "0.12345678901234567890", "1234567890123.4567891"} {
		v := rawjson.Number([]byte(text))
		if v != any(json.Number(text)) {
			t.Errorf("%s became %v", text, v)
		}
		if got, err := rawjson.AppendAny(nil, v); err != nil || string(got) != text {
			t.Errorf("%s is written as %s, %v", text, got, err)
		}
	}
}

// TestAppendAnyRefusesNoNumber: a json.Number that is none must not get into a
// line.
func TestAppendAnyRefusesNoNumber(t *testing.T) {
	t.Parallel()
	for _, n := range []json.Number{"x", "1,2", "01", "- 1", `"1"`} {
		if got, err := rawjson.AppendAny(nil, n); err == nil {
			t.Errorf("%q is written as %s", n, got)
		}
	}
}
