package render_test

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render/plain"
)

func TestPlainShellWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                 "''",
		"telegram:123":     "telegram:123",
		"/a/b-c_d.e+f@g%h": "/a/b-c_d.e+f@g%h",
		"two words":        "'two words'",
		"it's":             `'it'\''s'`,
		"$(rm -rf ~)":      "'$(rm -rf ~)'",
		"a;b":              "'a;b'",
		"größe":            "'größe'",
		"a\x1b[2J%s'":      `"$(printf 'a\033\1332J\045s\047')"`,
		"-\n-":             `"$(printf '\055\012-')"`,
		"a\x00b":           "a",
	} {
		if got := plain.ShellWord(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// A real shell makes of each word the text that it was made of.
func TestPlainShellUnderstandsTheWords(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	soak.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("a0-$`'\"\\;&|<>(){}[]*?!#~% \t\n\x1b\x7f\u009b\u202eé")), 0, 12, -1), 1, 50).Draw(t, "texts")
		for i := range texts {
			texts[i] = strings.TrimRight(texts[i], "\n") // see ShellWord
		}
		words := plain.Command(texts...)
		if plain.Flat(words) != words {
			t.Fatalf("%q is not harmless", words)
		}
		out, err := exec.Command(sh, "-c", `printf '%s\0' `+words).CombinedOutput()
		if got, want := string(out), strings.Join(texts, "\x00")+"\x00"; err != nil || got != want {
			t.Fatalf("the shell understands %s as %q, want %q (%v)", words, got, want, err)
		}
	})
}
