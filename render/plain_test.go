package render_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render/plain"
)

func TestPlainText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"words", "a b\n\tc ~", "a b\n\tc ~"},
		{"other scripts", "größe 漢字 नमस्ते عربي", "größe 漢字 नमस्ते عربي"},
		{"title of the window", "\x1b]0;pwned\x07x", "�]0;pwned�x"},
		{"clipboard", "\x1b]52;c;cm0=\x1b\\", "�]52;c;cm0=�\\"},
		{"colour", "\x1b[31mred\x1b[0m", "�[31mred�[0m"},
		{"hidden", "\x1b[8mrm -rf\x1b[28m", "�[8mrm -rf�[28m"},
		{"C1 as runes", "\u009b2J\u009d0;x\u009c\u0085", "�2J�0;x��"},
		{"C1 as bytes", "\x9b2J", "�2J"},
		{"delete, backspace, bell", "a\x7fb\bc\a\x00", "a�b�c��"},
		{"carriage return", "good\rbad\r\nnext\r", "good�bad\nnext�"},
		{"direction", "\u202eabc\u202c\u2066\u2069\u200e\u200f\u061c", "�abc������"},
		{"no width", "a\u200bb\u2060c\ufeffd\u00ade", "a�b�c�d�e"},
		{"joiner after ASCII", "a\u200db\u200c", "a�b�"},
		{"separators", "a\u2028b\u2029c", "a�b�c"},
		{"tags", "x\U000e0041\U000e007f", "x��"},
		{"not UTF-8", "a\xffb\xe2\x82", "a�b��"},
		{"surrogate", "\xed\xa0\x80", "���"},
		{"emoji of several", "👩\u200d💻 ⚙\ufe0f", "👩\u200d💻 ⚙\ufe0f"},
		{"joiners of words", "می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"},
		{"two joiners", "é\u200d\u200d", "é\u200d�"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := plain.Text(test.text); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestPlainLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" a\n\n b\t\u2028c\r\nd ": "a b �c d", "": "", " ": "", "a": "a", " a": "a", "a ": "a", "a b": "a b", "a  b": "a b", "a\u00a0b": "a b", "é ü": "é ü", "é\tü": "é ü",
	} {
		if got := plain.Line(text); got != want {
			t.Errorf("Line(%q) is %q, want %q", text, got, want)
		}
	}
	if got, want := plain.Flat(" a\n b\tc"), " a  b c"; got != want {
		t.Errorf("Flat is %q, want %q", got, want)
	}
}

// A style that Paint made reaches the terminal, and looks like no text before
// that; a style that somebody else wrote does not, not even inside one of ours.
func TestPlainOnlyOurStylesPass(t *testing.T) {
	t.Parallel()
	painted := plain.Paint("1;31", "x\x1b[32my")
	if n := ansi.StringWidth(plain.Text(painted)); n != len("x?[32my") {
		t.Errorf("it is %d columns wide", n)
	}
	for _, text := range []string{painted, plain.Text(painted)} { // cleaning twice changes nothing
		var out bytes.Buffer
		w := plain.NewWriter(&out)
		_, _ = w.Write([]byte(text))
		_ = w.Flush()
		if got, want := out.String(), "\x1b[1;31mx�[32my\x1b[0m"; got != want {
			t.Errorf("%q was written, want %q", got, want)
		}
	}
}

// What came out of a Writer once, and was recorded, is not trusted when it comes
// again.
func TestPlainStylesCannotBeCopied(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := plain.NewWriter(&out)
	_, _ = w.Write([]byte(plain.Paint("31", "x")))
	if clean := plain.Text(out.String()); strings.Contains(clean, "\x1b") {
		t.Errorf("an escape stays: %q", clean)
	}
}

func TestPlainRedrawStaysOnItsLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := plain.NewWriter(&out)
	_ = w.Redraw("50 %\n\x1b]0;x\x07")
	if got, want := out.String(), "\r\x1b[K50 % �]0;x�"; got != want {
		t.Errorf("%q was written, want %q", got, want)
	}
}

func TestPlainJSONIsTheSameValue(t *testing.T) {
	t.Parallel()
	value := "\x7f\u009b\u202e\u2028\u200b\U000e0041 é\u200d <&> \x1b"
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]string{value: value}); err != nil {
		t.Fatal(err)
	}
	shown := plain.JSON(raw.Bytes())
	var back map[string]string
	if err := json.Unmarshal(shown, &back); err != nil {
		t.Fatal(err)
	}
	if back[value] != value {
		t.Errorf("%q became %q", value, back)
	}
	if plain.Text(string(shown)) != string(shown) {
		t.Errorf("%q is not harmless", shown)
	}
	if got := plain.JSON([]byte("\"a\xffb\"\r\n")); string(got) != `"a\ufffdb"`+"\n" {
		t.Errorf("bytes that are not UTF-8 become %q", got)
	}
}

var bits = rapid.SampledFrom([]string{
	"a", "\n", "\t", "\r", "\x1b", "[", "31m", ";", "]0;", "\x07", "\x9b", "\u009b", "é", "\xe2", "\x82", "\xac", "\u200d", "\u202e", "👩", plain.Paint("31", "x"),
})

// However a text is cut into writes, the same is written.
func TestPlainWriterDoesNotDependOnTheCuts(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(bits).Draw(t, "parts")
		whole := strings.Join(parts, "")
		var once, pieces bytes.Buffer
		w := plain.NewWriter(&once)
		_, _ = w.Write([]byte(whole))
		_ = w.Flush()
		w = plain.NewWriter(&pieces)
		for rest := []byte(whole); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if wrote, err := w.Write(rest[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		_ = w.Flush()
		if once.String() != pieces.String() {
			t.Fatalf("at once %q, in pieces %q", &once, &pieces)
		}
	})
}

func FuzzPlainText(f *testing.F) {
	f.Add("\x1b]0;x\x07 \x9b \u202e\r\n\u200d")
	f.Add("é\u200dé\xff")
	f.Fuzz(func(t *testing.T, text string) {
		clean := plain.Text(text)
		if !utf8.ValidString(clean) {
			t.Errorf("%q is not UTF-8", clean)
		}
		before := rune(0)
		for _, r := range clean {
			if !plain.Harmless(before, r) || unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("%q has %U", clean, r)
			}
			before = r
		}
		if again := plain.Text(clean); again != clean {
			t.Errorf("%q becomes %q when cleaned again", clean, again)
		}
		if json.Valid([]byte(text)) {
			var was, is any
			if json.Unmarshal([]byte(text), &was) != nil {
				return // a number that is too large
			}
			shown := plain.JSON([]byte(text))
			if err := json.Unmarshal(shown, &is); err != nil {
				t.Errorf("%q: %v", shown, err)
			}
			a, _ := json.Marshal(was)
			b, _ := json.Marshal(is)
			if !bytes.Equal(a, b) {
				t.Errorf("%q became %q", a, b)
			}
		}
	})
}

func BenchmarkPlainWriter(b *testing.B) {
	text := []byte(strings.Repeat("a line of text, größer als nichts\n", 1000))
	b.SetBytes(int64(len(text)))
	var out bytes.Buffer
	w := plain.NewWriter(&out)
	for b.Loop() {
		out.Reset()
		_, _ = w.Write(text)
	}
}
