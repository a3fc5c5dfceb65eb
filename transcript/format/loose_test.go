package format_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

func parse(t *testing.T, text string) loose.Value {
	t.Helper()
	v, err := loose.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestLooseParse(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "{", `{"a":}`, "[1,]", "{} {}", `"torn`} {
		if v, err := loose.Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q) is %s, want an error", bad, v)
		}
	}
	if got := string(parse(t, " \n[1]\r\n")); got != "[1]" {
		t.Errorf("white space around a value stays: %q", got)
	}
}

func TestLooseGet(t *testing.T) {
	t.Parallel()
	v := parse(t, `{"a":{"b":[1,"x",{"c":true}]},"n":null,"a2":"text"}`)
	if got := v.Get("a", "b").First().Int(); got != 1 {
		t.Errorf("a.b[0] is %d, want 1", got)
	}
	if v.Get("a", "missing", "deeper") != nil || v.Get("a2", "x") != nil {
		t.Error("a path to nowhere leads somewhere")
	}
	if !v.Has("a", "a2") || v.Has("a", "n") || v.Has("z") {
		t.Error("Has does not tell what exists")
	}
	if v.Get("n").Exists() || !v.Get("a").Exists() || loose.Value(nil).Exists() {
		t.Error("Exists does not tell what exists")
	}
	if n := len(slices.Collect(v.Get("a", "b").Items())); n != 3 {
		t.Errorf("a.b has %d items, want 3", n)
	}
	for range v.Get("a", "b").Items() {
		break
	}
	names := slices.Sorted(maps.Keys(maps.Collect(v.Members())))
	if !slices.Equal(names, []string{"a", "a2", "n"}) {
		t.Errorf("members are %q", names)
	}
	for range v.Members() {
		break
	}
	for range parse(t, "7").Members() {
		t.Error("a number has members")
	}
	for range parse(t, "7").Items() {
		t.Error("a number has items")
	}
}

func TestLooseScalars(t *testing.T) {
	t.Parallel()
	v := parse(t, `{"s":"é","i":3,"f":2.75,"e":1e3,"d":"42","b":true,"o":{"k":1.50},"z":"zz"}`)
	if v.Get("s").Text() != "é" || v.Get("i").Text() != "" {
		t.Error("Text gives something else than strings")
	}
	if v.Get("s").Name() != "é" || v.Get("i").Name() != "3" || v.Get("o").Name() != "" {
		t.Error("Name does not give strings and numbers")
	}
	if v.Get("i").Int() != 3 || v.Get("f").Int() != 2 || v.Get("e").Int() != 1000 || v.Get("d").Int() != 42 || v.Get("z").Int() != 0 || v.Get("b").Int() != 0 {
		t.Error("Int does not give numbers")
	}
	if !v.Get("b").Bool() || v.Get("i").Bool() {
		t.Error("Bool does not give booleans")
	}
	if !v.Get("s").IsString() || !v.Get("o").IsObject() || v.Get("o").IsArray() || !v.Get("i").IsNumber() {
		t.Error("kinds are told wrong")
	}
	if got, ok := v.Get("o").Map()["k"]; !ok || got == 1.5 {
		t.Errorf("numbers in a map do not stay as they are written: %v", got)
	}
	if v.Get("s").Map() != nil || loose.Value("{").Any() != nil {
		t.Error("Map or Any give something of nothing")
	}
}

func TestLooseExcept(t *testing.T) {
	t.Parallel()
	v := parse(t, `{"a":1,"b": [ 2 ],"c":"x"}`)
	got := v.Except("a", "c")
	if len(got) != 1 || got[0].Name != "b" || string(got[0].Value) != "[ 2 ]" {
		t.Errorf("Except gives %q", got)
	}
}

func TestLooseTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("two east", 2*60*60)
	want := time.Date(2026, 1, 2, 3, 4, 5, 250_000_000, time.UTC)
	for _, text := range []string{
		`"2026-01-02T03:04:05.25Z"`, `"2026-01-02T05:04:05.250+02:00"`, `"2026-01-02T05:04:05.250000"`,
		`"2026-01-02 05:04:05.25"`, `"2026-01-02 03:04:05.25+00:00"`,
		"1767323045.25", "1767323045250", "1767323045250000", "1767323045250000000", `"1767323045.25"`,
	} {
		if got := parse(t, text).Time(zone); !got.Equal(want) {
			t.Errorf("Time of %s is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{`"yesterday"`, `""`, "0", "-5", "1e30", "{}", "null"} {
		if got := parse(t, text).Time(zone); !got.IsZero() {
			t.Errorf("Time of %s is %v, want none", text, got)
		}
	}
}

func FuzzLooseValue(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null,{"b":"2026-01-02"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := loose.Parse(text)
		if err != nil {
			return
		}
		for name, member := range v.Members() {
			if v.Get(name) == nil {
				t.Errorf("member %q cannot be got", name)
			}
			member.Time(time.UTC)
			member.Any()
			for item := range member.Items() {
				item.Int()
			}
		}
	})
}
