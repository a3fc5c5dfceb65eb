package redact_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/redact"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	key := privateKey("PRIVATE KEY", "\n")
	inner, _ := json.Marshal(key)
	nested, _ := json.Marshal(`{"password":"kX9#mQ2$vL","note":"a\nb"}`)
	tests := []struct {
		name, in, want string
		path, kind     string
	}{
		{"a value that is a string", `"x ` + gh + `"`, `"x [REDACTED:github-token]"`, "", "github-token"},
		{
			"all else stays as it is", `{ "a" : [1.50,"caf\u00e9 \/ ` + gh + `\ud83d\ude00\ud83d", null ], "n":1e+9 }`,
			`{ "a" : [1.50,"caf\u00e9 \/ [REDACTED:github-token]\ud83d\ude00\ud83d", null ], "n":1e+9 }`, "a[1]", "github-token",
		},
		{"a member with a telling name", `{"db":{"password":"kX9#mQ2$vL"}}`, `{"db":{"password":"[REDACTED:password]"}}`, "db.password", "password"},
		{"letters that are escaped", `{"x":"\u0067hp_` + gh[4:] + `"}`, `{"x":"[REDACTED:github-token]"}`, "x", "github-token"},
		{"a slash that is escaped", `{"x":"redis:\/\/:k3Yz9pQw@cache"}`, `{"x":"redis:\/\/:[REDACTED:url-password]@cache"}`, "x", "url-password"},
		{"lines that are escaped", `{"x":` + string(inner) + `}`, `{"x":"[REDACTED:private-key]"}`, "x", "private-key"},
		{"JSON in JSON", `{"x":` + string(nested) + `}`, strings.Replace(`{"x":`+string(nested)+`}`, "kX9#mQ2$vL", "[REDACTED:password]", 1), "x", "password"},
		{"the name of a member", `{"` + gh + `":1}`, `{"[REDACTED:github-token]":1}`, "[REDACTED:github-token]", "github-token"},
		{"an odd name", `{"a b":{"":["` + gh + `"]}}`, `{"a b":{"":["[REDACTED:github-token]"]}}`, `["a b"][""][0]`, "github-token"},
		{"a name that is escaped", `{"pass\u0077ord":"kX9#mQ2$vL"}`, `{"pass\u0077ord":"[REDACTED:password]"}`, "password", "password"},
		{"a secret with a quote in it", `{"password":"kX9\"mQ2$vL"}`, `{"password":"[REDACTED:password]"}`, "password", "password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, found, err := redact.JSON([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(found) != 1 || found[0].Path != tt.path || found[0].Kind != tt.kind {
				t.Errorf("found %+v", found)
			}
			if !json.Valid(got) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
}

// Programs write what is nearly JSON. A secret behind an escape is found there, too.
func TestNearlyJSON(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{`"bad \q"`, `"cut \u00"`, "\"a line\nand a tab\t\"", `01`, `1.2.3`} {
		text := []byte(`{"x":` + odd + `,"pass\u0077ord":"kX9\u0023mQ2$vL"}`)
		got, found, err := redact.JSON(text)
		if want := `{"x":` + odd + `,"pass\u0077ord":"[REDACTED:password]"}`; string(got) != want || err != nil || len(found) != 1 {
			t.Errorf("%s: got %s, %v, %v", odd, got, found, err)
		}
		var last string
		if err := redact.AllStrings(text, func(text []byte) { last = string(text) }); last != "kX9#mQ2$vL" || err != nil {
			t.Errorf("%s: the last string is %q, %v", odd, last, err)
		}
	}
}

// What only a provider can read is left alone, whatever it looks like.
func TestJSONKeepsSignatures(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	line := `{"thinking":{"content":"x","signature":"` + gh + `","redacted":"` + gh + `"},"encrypted_content":"` + gh + `","thoughtSignature":"` + gh + `"}`
	got, found, err := redact.JSON([]byte(line))
	if string(got) != line || found != nil || err != nil {
		t.Errorf("got %s, %v, %v", got, found, err)
	}
}

func TestScannerKeep(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	seen := 0
	s := &redact.Scanner{Keep: func(path string) bool { return path == "id" }, Seen: func(string, string) { seen++ }}
	got, found, err := s.JSON([]byte(`{"id":"` + gh + `","text":"` + gh + `"}`))
	if want := `{"id":"` + gh + `","text":"[REDACTED:github-token]"}`; string(got) != want || err != nil || len(found) != 1 || seen != 1 {
		t.Errorf("got %s, %v, %v; told of %d", got, found, err, seen)
	}
}

func TestNotJSON(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000)
	for _, text := range []string{
		"", " ", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, "[", "[1", "[1,", "[1 2]", `"a`, `"a\"`, "nul", "truex", "x", "1 2", `{"a":1}}`, "]", deep,
	} {
		_, _, err := redact.JSON([]byte(text))
		var syntax *redact.SyntaxError
		if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), "not JSON at byte ") {
			t.Errorf("%.20q gives %v", text, err)
		}
		if err := redact.Strings([]byte(text), func(string, []byte) {}); err == nil {
			t.Errorf("%.20q has strings", text)
		}
	}
	for _, text := range []string{"{}", "[]", " [ ] ", "1", "-1.5e3", "true", "null", `""`, `{"a":[{},[[]]]}`} {
		if got, found, err := redact.JSON([]byte(text)); err != nil || found != nil || string(got) != text {
			t.Errorf("%q gives %q, %v, %v", text, got, found, err)
		}
	}
}

// Bytes takes what is not JSON for text.
func TestBytes(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	for in, want := range map[string]string{
		`{"a":"\u0067hp_` + gh[4:] + `"}`: `{"a":"[REDACTED:github-token]"}`,
		`{"a":"torn ` + gh + ` and`:       `{"a":"torn [REDACTED:github-token] and`,
		"nothing here":                    "nothing here",
	} {
		if got, _ := redact.Bytes([]byte(in)); string(got) != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	var got []string
	err := redact.Strings([]byte(`{"a":["x\n",{"b":"y"}],"c":1,"d":"z\u"}`), func(path string, text []byte) { got = append(got, path+"="+string(text)) })
	if diff := cmp.Diff([]string{"a[0]=x\n", "a[1].b=y", "d=zu"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
