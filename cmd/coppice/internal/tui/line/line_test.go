package line_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/internal/soak"
)

// typed presses keys as a terminal sends them, and returns what was entered and what is
// still being typed.
func typed(e *line.Editor, input string) (entered []string, text string) {
	var d line.Decoder
	for _, k := range d.Add([]byte(input)) {
		if !e.Press(k) && k.Kind == line.Enter {
			entered = append(entered, e.Submit())
		}
	}
	return entered, e.Text()
}

func TestKeysEditTheText(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"text", "héllo 日本", "héllo 日本"},
		{"backspace", "ab日\x7f\x7fc", "ac"},
		{"backspace over what is seen as one character", "x👩\u200d💻e\u0301\x7f\x7f", "x"},
		{"left and insert", "ac\x1b[Db", "abc"},
		{"home and end", "b\x1b[Ha\x1b[Fc\x01_\x05_", "_abc_"},
		{"delete", "abc\x1b[D\x1b[D\x1b[3~", "ac"},
		{"Ctrl-D deletes", "abc\x02\x02\x04", "ac"},
		{"words", "one two three\x1b[1;5D\x1bb\x17X", "Xtwo three"},
		{"cut the word to the right", "one two three\x01\x1bd\x1b[3;3~\x19!", " two! three"},
		{"cut and yank", "one two\x15abc\x19", "abcone two"},
		{"cut to the end", "one two\x1bb\x0b!", "one !"},
		{"alt-enter", "one\x1b\rtwo", "one\ntwo"},
		{"shift-enter", "one\x1b[13;2utwo", "one\ntwo"},
		{"ctrl-j", "one\ntwo", "one\ntwo"},
		{"backslash", "one\\\rtwo", "one\ntwo"},
		{"up and down within the text", "one\ntwo\x1b[AX\x1b[BY", "oneX\ntwoY"},
		{"paste", "a\x1b[200~one\r\ntwo\rthree\x03\x1b[201~b", "aone\ntwo\nthree\x03b"},
		{"keys as newer terminals send them", "bc\x1b[97;5ua\x1b[27;5;101~d\x1b[127;3u!", "!"},
		{"unknown keys", "a\x1b[15~\x1b[1;2P\x1bOP\x00b", "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e line.Editor
			if entered, got := typed(&e, c.input); got != c.want || len(entered) > 0 {
				t.Errorf("the text is %q, entered %q; want %q", got, entered, c.want)
			}
		})
	}
}

// An escape is a key of its own if nothing follows; then the next key is not lost.
func TestAnEscapeAloneIsAKey(t *testing.T) {
	for _, c := range []struct {
		name, first, then string
		want              []line.Key
	}{
		{"alone", "\x1b", "n", []line.Key{{Kind: line.Escape}, {Kind: line.Text, Text: "n"}}},
		{"twice", "\x1b\x1b", "n", []line.Key{{Kind: line.Escape}, {Kind: line.Escape}, {Kind: line.Text, Text: "n"}}},
		{"with a bracket", "\x1b[", "A", []line.Key{{Kind: line.Text, Text: "A"}}},
		{"in a paste", "\x1b[200~x\x1b", "[201~", []line.Key{{Kind: line.Paste, Text: "x"}}},
		{"half a character", "\xe6", "\x97\xa5", []line.Key{{Kind: line.Text, Text: "日"}}},
	} {
		var d line.Decoder
		got := d.Add([]byte(c.first))
		got = append(got, d.Idle()...)
		got = append(got, d.Add([]byte(c.then))...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestHistoryIsRecalledAndTheDraftComesBack(t *testing.T) {
	var e line.Editor
	e.Remember("first", "second", "second", " ")
	for _, step := range []struct{ input, want string }{
		{"draft\x1b[A", "second"},
		{"\x1b[A", "first"},
		{"\x1b[A", "first"},
		{"\x1b[B", "second"},
		{"\x1b[B", "draft"},
		{"\x1b[B", "draft"},
		{"\x1b[A!", "second!"},
	} {
		if _, got := typed(&e, step.input); got != step.want {
			t.Errorf("after %q the text is %q, want %q", step.input, got, step.want)
		}
	}
	if entered, _ := typed(&e, "\r"); cmp.Diff([]string{"second!"}, entered) != "" {
		t.Errorf("entered %q", entered)
	}
	if _, got := typed(&e, "\x1b[A"); got != "second!" {
		t.Errorf("the last message is %q", got)
	}
}

// A paste is one message, however it arrives.
func TestKeysDoNotDependOnThePieces(t *testing.T) {
	const input = "a日\x1b[200~x\r\ny\x1b[201~\x1b[D\x1b[1;5Db\x1b\rc\x7f\x1bOH👩\u200d💻"
	var whole line.Decoder
	join := func(keys []line.Key) (s string) {
		for _, k := range keys {
			s += string(rune('A'+k.Kind)) + k.Text
		}
		return strings.ReplaceAll(s, string(rune('A'+line.Text)), "")
	}
	want := join(whole.Add([]byte(input)))
	soak.Check(t, func(t *rapid.T) {
		var d line.Decoder
		var keys []line.Key
		for rest := input; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			keys = append(keys, d.Add([]byte(rest[:n]))...)
			rest = rest[n:]
		}
		if got := join(keys); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestRowsFitAndTheCursorIsInThem(t *testing.T) {
	soak.Check(t, func(t *rapid.T) {
		var e line.Editor
		keys := rapid.SliceOf(rapid.SampledFrom([]string{"a", "日", "👩\u200d💻", "\x1b[200~\x1b\t\u202e\x1b[201~", " ", "\x1b\r", "\x1b[D", "\x1b[A", "\x1b[H", "\x7f"})).Draw(t, "keys")
		_, text := typed(&e, strings.Join(keys, ""))
		columns, most := rapid.IntRange(8, 20).Draw(t, "columns"), rapid.IntRange(1, 5).Draw(t, "most")
		rows, row, column := e.Rows("> ", columns, most)
		if len(rows) == 0 || len(rows) > most || row < 0 || row >= len(rows) || column < 2 || column > columns {
			t.Fatalf("%q: %d rows, the cursor is at %d,%d", text, len(rows), row, column)
		}
		for _, r := range rows {
			if ansi.StringWidth(r) > columns || strings.ContainsAny(r, "\x1b\u202e\n") {
				t.Fatalf("%q: the row %q", text, r)
			}
		}
	})
}
