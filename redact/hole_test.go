package redact_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/redact"
)

// However many secrets are glued together, none is left for a second time.
func TestGluedWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, text := range some(hostile(2 << 10)) {
		once, _ := redact.Text(text)
		if twice, found := redact.Text(once); found != nil {
			t.Errorf("%s: %d are found again, and %d bytes become %d", name, len(found), len(once), len(twice))
		}
	}
}

// What only looks like the beginning of a replacement hides nothing.
func TestMarkHidesNothing(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	for in, want := range map[string]string{
		"[REDACTED:" + gh:                     "[REDACTED:[REDACTED:github-token]",
		"[REDACTED: see " + gh + "]":          "[REDACTED: see [REDACTED:github-token]]",
		"[REDACTED:" + gh + "]":               "[REDACTED:[REDACTED:github-token]]",
		"[REDACTED:password=kX9mQ2vL":         "[REDACTED:password=[REDACTED:password]",
		"[REDACTED:no-such-kind " + gh + "]":  "[REDACTED:no-such-kind [REDACTED:github-token]]",
		"[REDACTED:password]" + gh:            "[REDACTED:password][REDACTED:github-token]",
		"[REDACTED:password] [REDACTED:" + gh: "[REDACTED:password] [REDACTED:[REDACTED:github-token]",
	} {
		got, found := redact.Text(in)
		if got != want || len(found) != 1 {
			t.Errorf("%q became %q with %+v", in, got, found)
		}
		if again, found := redact.Text(got); again != got || found != nil {
			t.Errorf("then it became %q with %+v", again, found)
		}
	}
}

// A known secret may be a word that a replacement has in it.
func TestKnownIsNotFoundInReplacement(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	for _, same := range []bool{false, true} {
		s := redact.NewScanner(
			redact.Known{Kind: "password", Value: "password"}, redact.Known{Kind: "own", Value: "REDACTED"}, redact.Known{Kind: "own", Value: "github-token"},
			redact.Known{Kind: "own", Value: "********"},
		)
		s.SameLength = same
		text := "the password is " + gh + " and not 'REDACTED' or password"
		got, found := s.Text(text)
		if len(found) != 4 || strings.Contains(got, gh) {
			t.Fatalf("got %q with %+v", got, found)
		}
		for i, f := range found {
			want := []string{"password", gh, "REDACTED", "password"}[i]
			if text[f.Start:f.End] != want {
				t.Errorf("finding %d is %q, want %q", i, text[f.Start:f.End], want)
			}
		}
		if same {
			continue // eight asterisks are a secret here, and what stands for one
		}
		if again, found := s.Text(got); again != got || found != nil {
			t.Errorf("then it became %q with %+v", again, found)
		}
	}
}

// Of known secrets that contain one another, what begins first counts, and then
// the longest.
func TestKnownOverlap(t *testing.T) {
	t.Parallel()
	var known []redact.Known
	for _, value := range []string{"abcdefgh", "abcdefghij", "cdefghijkl", "ijklmnop", "mnopqrstuv"} {
		known = append(known, redact.Known{Kind: value, Value: value})
	}
	s := redact.NewScanner(known...)
	for in, want := range map[string]string{
		"abcdefghi":                        "abcdefgh",
		"abcdefghijkl":                     "abcdefghij",
		"bcdefghijklmnopqrstuv":            "cdefghijkl mnopqrstuv",
		"abcdefghijklmnopqrstuv":           "abcdefghij mnopqrstuv",
		"abcdefgabcdefghhijklmnop-abcdefg": "abcdefgh ijklmnop",
	} {
		var kinds []string
		for _, f := range s.Known([]byte(in)) {
			kinds = append(kinds, f.Kind)
			if in[f.Start:f.End] != f.Kind {
				t.Errorf("%s is at %q", f.Kind, in[f.Start:f.End])
			}
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s has %s, want %s", in, got, want)
		}
	}
}

// A token of any length may be the password of a URL.
func TestLongURLPassword(t *testing.T) {
	t.Parallel()
	token := random(alnum, 1500)
	got, _ := redact.Text("git clone https://oauth2:" + token + "@git.corp.io/x.git")
	if want := "git clone https://oauth2:[REDACTED:url-password]@git.corp.io/x.git"; got != want {
		t.Errorf("got %q", got)
	}
}

// Many tokens may begin in one run; the one that is real is found.
func TestTokenAmongBeginnings(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"eyJ-", "eyJhbGciOiJ4In0-", "-" + b64(`{"a":{"a":`), "-" + b64(`{"a":"{`), strings.Repeat("eyJ-", 50)} {
		for _, pad := range []string{"-", "--", "---", "----"} {
			text := before + pad + jwt()
			got, found := redact.Text(text)
			if strings.Contains(got, jwt()[len(jwt())-20:]) {
				t.Errorf("%q became %q with %+v", text, got, found)
			}
		}
	}
}

// A path shows a bounded part of names and levels, and never a secret.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	for name, value := range hostileJSON(64 << 10) {
		_, found := redact.Bytes([]byte(value))
		for _, f := range found {
			if len(f.Path) > 4096 || strings.Contains(f.Path, "ghp_") {
				t.Fatalf("%s: a path has %d bytes: %.100s", name, len(f.Path), f.Path)
			}
		}
		_ = redact.Strings([]byte(value), func(path string, _ []byte) {
			if len(path) > 4096 {
				t.Fatalf("%s: a path has %d bytes", name, len(path))
			}
		})
	}
}

// Secrets are found that only a sign stands between.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	all := samples()
	var marked []string
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		marked = append(marked, all[kind][0])
	}
	for _, sign := range []string{"\n", " ", `\n`, ",", ";", "|", `"`, "'", "<", "\t", ":", "@"} {
		for i, a := range marked {
			for j, b := range marked {
				if (i+j)%stride > 0 {
					continue
				}
				first, secret := unmark(t, a)
				second, other := unmark(t, b)
				if (sign == ":" || sign == "@") && strings.Contains(second, "://") {
					continue // what has a URL in it is no value, but an address
				}
				got, _ := redact.Text(first + sign + second)
				if strings.Contains(got, secret) || strings.Contains(got, other) {
					t.Errorf("%q became %q", first+sign+second, got)
				}
			}
		}
	}
}

// The value of a name is found although a part of it is another secret.
func TestValueBeforeSecret(t *testing.T) {
	t.Parallel()
	gh := "ghp_" + random(alnum, 36)
	for in, want := range map[string]string{
		"password=kX9#mQ2$vL:" + gh:                 "password=[REDACTED:password]:[REDACTED:github-token]",
		`password="kX9#mQ2$vL:` + gh + `"`:          `password="[REDACTED:password][REDACTED:github-token]"`,
		`{"password":"kX9#mQ2$vL:` + gh + `"}`:      `{"password":"[REDACTED:password][REDACTED:github-token]"}`,
		"API_KEY=" + random(hexOnly, 32) + "@" + gh: "API_KEY=[REDACTED:api-key][REDACTED:github-token]",
		`{"password":"` + gh + `"}`:                 `{"password":"[REDACTED:github-token]"}`,
		`{"password":"see ` + gh + `"}`:             `{"password":"see [REDACTED:github-token]"}`,
	} {
		if got, _ := redact.Bytes([]byte(in)); string(got) != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
