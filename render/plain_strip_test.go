package render_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

func TestPlainStrip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"plain\ttext\r\n":          "plain\ttext\r\n",
		"\x1b[1;31mred\x1b[0m":     "red",
		"\x1b[38:2::1:2:3mé\x1b[m": "é",
		"a\x1b[2Kb\x1b[10;20Hc":    "abc",
		"\x1b]0;a title\x07text":   "text",
		"\x1b]8;;https://x.org\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1bPq#0;2;0;0;0\x1b\\sixel":                   "sixel",
		"\x1b(Bascii\x1b=\x1b7":                         "ascii",
		"cut \x1b[1":                                    "cut ",
		"cut \x1b]0;title":                              "cut ",
		"cut \x1b":                                      "cut ",
		"\x1b[1\nline":                                  "\nline",
		"日\x1b[1m本":                                     "日本",
	} {
		if got := plain.Strip(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What programs print is stripped as others strip it.
func FuzzPlainStrip(f *testing.F) {
	f.Add("\x1b[1;31mred\x1b[0m\x1b]0;a\x07\x1b(B\x1bPq\x1b\\")
	f.Fuzz(func(t *testing.T, text string) {
		got := plain.Strip(text)
		if strings.ContainsRune(got, '\x1b') {
			t.Errorf("%q: an escape is left in %q", text, got)
		}
		if !strings.ContainsRune(text, '\x1b') && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if again := plain.Strip(got); again != got {
			t.Errorf("%q is stripped again: %q", got, again)
		}
	})
}

func TestPlainStripAgrees(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\x1b[0;32m✓\x1b[0m ok\r\n\x1b[90m  at x.go:1\x1b[39m\n", "\x1b[?25l\x1b[2J\x1b[H> \x1b[6n",
		"\x1b]11;?\x1b\\\x1b]2;vim\x07\x1b[>4;2m", "progress 10%\r\x1b[Kprogress 20%\r",
	} {
		if got, want := plain.Strip(text), ansi.Strip(text); got != want {
			t.Errorf("%q: %q, and x/ansi has %q", text, got, want)
		}
	}
}
