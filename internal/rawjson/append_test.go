package rawjson_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// encode is what encoding/json writes without HTML escapes and newline.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// escapesInvalid reports whether the encoding/json at hand writes invalid UTF-8
// as \ufffd. Built on its second version, it writes the character itself.
func escapesInvalid() bool {
	b, _ := encode("\xff")
	return string(b) == `"\ufffd"`
}

// checkAppendString compares AppendString with encoding/json, and reads it back.
func checkAppendString(t *testing.T, s string) {
	t.Helper()
	want, err := encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got := rawjson.AppendString([]byte("x"), s)
	if string(got) != "x"+string(want) && (escapesInvalid() || utf8.ValidString(s)) {
		t.Fatalf("AppendString(%q) = %s, want x%s", s, got, want)
	}
	if back, ok := rawjson.String(got[1:]); !ok || back != strings.Map(func(r rune) rune { return r }, s) {
		t.Fatalf("AppendString(%q) reads back as %q, %v", s, back, ok)
	}
}

func TestAppendStringBytes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                     `""`,
		"a\"b\\c/":             `"a\"b\\c/"`,
		"\b\f\n\r\t\v\x00\x7f": `"\b\f\n\r\t\u000b\u0000` + "\x7f\"",
		"<&>":                  `"<&>"`,
		"\u2028\u2029\u202a":   `"\u2028\u2029` + "\u202a\"",
		"\xff\xe2\x80é":        `"\ufffd\ufffd\ufffdé"`,
		"\ufffd":               "\"\ufffd\"",
	} {
		if got := rawjson.AppendString(nil, s); string(got) != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for before := range 9 {
			s := strings.Repeat("a", before) + string([]byte{byte(c)})
			checkAppendString(t, s)
			checkAppendString(t, s+"bcdefghijk")
			checkAppendString(t, s+s)
		}
	}
	for _, s := range nasty() {
		checkAppendString(t, s)
	}
	for _, s := range []string{"<a href='&'>", "\u2027\u2028\u2029\u202a", "é\u2028世\xe2\x80", "\ufffd", "\xef\xbf\xbd\xef\xbf"} {
		checkAppendString(t, s)
	}
}

func TestAppendInt(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "x0", -1: "x-1", math.MaxInt64: "x9223372036854775807", math.MinInt64: "x-9223372036854775808",
	} {
		if got := rawjson.AppendInt([]byte("x"), n); string(got) != want {
			t.Errorf("AppendInt(%d) = %s", n, got)
		}
	}
}

func TestAppendTime(t *testing.T) {
	t.Parallel()
	noon := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{noon, `"2024-01-01T12:00:00.000Z"`},
		{noon.Add(time.Millisecond), `"2024-01-01T12:00:00.001Z"`},
		{noon.Add(120 * time.Millisecond), `"2024-01-01T12:00:00.120Z"`},
		{noon.Add(100 * time.Microsecond), `"2024-01-01T12:00:00.0001Z"`},
		{noon.Add(123456 * time.Microsecond), `"2024-01-01T12:00:00.123456Z"`},
		{noon.Add(1234567 * 100), `"2024-01-01T12:00:00.1234567Z"`},
		{noon.Add(1), `"2024-01-01T12:00:00.000000001Z"`},
		{noon.Add(999999999), `"2024-01-01T12:00:00.999999999Z"`},
		{noon.In(time.FixedZone("", -9*3600)), `"2024-01-01T12:00:00.000Z"`},
		{time.Time{}, `"0001-01-01T00:00:00.000Z"`},
	} {
		got := rawjson.AppendTime([]byte("x"), c.t)
		if string(got) != "x"+c.want {
			t.Errorf("AppendTime(%v) = %s, want x%s", c.t, got, c.want)
		}
		var back time.Time
		if err := json.Unmarshal(got[1:], &back); err != nil || !back.Equal(c.t) {
			t.Errorf("AppendTime(%v) reads back as %v, %v", c.t, back, err)
		}
	}
}
