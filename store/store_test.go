package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", store.MaxName)
	for _, test := range []struct{ name, reason string }{
		{"019a3d5e-7c1b-7f00-8a52-3b9c0d1e2f34", ""},
		{"two words", ""},
		{"a.b..c", ""},
		{"会話 😀", ""},
		{"console", ""},
		{"com", ""},
		{"com10", ""},
		{"comx", ""},
		{long, ""},
		{"", "is empty"},
		{long + "n", "is 201 bytes long"},
		{"a\xff", "not valid UTF-8"},
		{".", "begins with a dot"},
		{"..", "begins with a dot"},
		{".coppice", "begins with a dot"},
		{"a/b", "path separator"},
		{`a\b`, "path separator"},
		{"/abs", "path separator"},
		{"C:x", "Windows"},
		{"a*", "Windows"},
		{"a\x00b", "control character"},
		{"a\nb", "control character"},
		{"a\u202eb", "control character"},
		{"a\u200bb", "control character"},
		{"a.", "ends with a dot"},
		{"a ", "ends with a space"},
		{" a", "begins or ends with a space"},
		{"con", "device name"},
		{"Nul.txt", "device name"},
		{"lpt0", "device name"},
		{"COM9.a.b", "device name"},
	} {
		err := store.CheckName(test.name)
		if test.reason == "" {
			if err != nil {
				t.Errorf("CheckName(%q) = %v", test.name, err)
			}
			continue
		}
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("CheckName(%.40q) = %v, want an invalid argument that %q", test.name, err, test.reason)
		}
	}
}

// However long and strange the name, the message is fit for a terminal.
func TestCheckNameMessage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("n", 1<<20), "\x1b[2J", "a\nb", "\u202egnp.exe"} {
		text := store.CheckName(name).Error()
		if len(text) > 500 || strings.ContainsAny(text, "\x1b\n\u202e") {
			t.Errorf("CheckName(%.20q) says %.600q", name, text)
		}
	}
}

func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"a", "..", "a/b", "nul", "a\x00", "\u202e", "C:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if store.CheckName(name) != nil {
			return
		}
		if len(name) > store.MaxName || !utf8.ValidString(name) || !filepath.IsLocal(name) ||
			filepath.Base(name) != name || strings.ContainsAny(name, "\x00/\\:") {
			t.Errorf("CheckName(%q) = nil", name)
		}
	})
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	for _, test := range []struct {
		err  store.Error
		want string
	}{
		{store.Error{Op: "open"}, "open"},
		{store.Error{Op: "open", Kind: store.ErrClosed}, "open: closed"},
		{store.Error{Op: "open", Name: "a b"}, `open "a b"`},
		{store.Error{Op: "open", Name: "a", Path: "/x/a.jsonl"}, "open /x/a.jsonl"},
		{store.Error{Op: "read", Name: "a", Offset: 12}, `read "a"`},
		{store.Error{Op: "read", Name: "a", At: true}, `read "a" at byte 0`},
		{store.Error{Op: "read", Err: cause}, "read: disk on fire"},
		{
			store.Error{Op: "append", Name: "a", Offset: 12, At: true, Kind: store.ErrUnknown, Err: cause, Hint: "reopen the log"},
			`append "a" at byte 12: outcome unknown: disk on fire (reopen the log)`,
		},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%#v says %q, want %q", test.err, got, test.want)
		}
	}
}

func TestErrorUnwrap(t *testing.T) {
	t.Parallel()
	cause := &fs.PathError{Op: "write", Path: "x", Err: io.ErrShortWrite}
	err := error(&store.Error{Op: "append", Kind: store.ErrUnknown, Err: cause})
	for _, want := range []error{store.ErrUnknown, cause, io.ErrShortWrite} {
		if !errors.Is(err, want) {
			t.Errorf("%v does not match %v", err, want)
		}
	}
	if path, ok := errors.AsType[*fs.PathError](err); !ok || path != cause {
		t.Errorf("%v does not give its cause", err)
	}
	if bare := (&store.Error{Op: "append"}); len(bare.Unwrap()) != 0 {
		t.Errorf("%v unwraps to %v", bare, bare.Unwrap())
	}
}

// Each error matches itself, its cousin in package fs, and nothing else.
func TestSentinels(t *testing.T) {
	t.Parallel()
	cousins := map[error]error{
		store.ErrInvalid:  fs.ErrInvalid,
		store.ErrNotExist: fs.ErrNotExist,
		store.ErrExist:    fs.ErrExist,
		store.ErrClosed:   fs.ErrClosed,
		store.ErrTooLarge: nil, store.ErrCorrupt: nil, store.ErrConflict: nil, store.ErrLocked: nil, store.ErrUnknown: nil,
	}
	for kind, cousin := range cousins {
		err := error(&store.Error{Op: "do", Kind: kind})
		for other, otherCousin := range cousins {
			if errors.Is(err, other) != (kind == other) {
				t.Errorf("%q matches %q: %v", kind, other, kind != other)
			}
			if otherCousin != nil && errors.Is(err, otherCousin) != (cousin == otherCousin) {
				t.Errorf("%q matches fs's %q: %v", kind, otherCousin, cousin != otherCousin)
			}
		}
	}
}

func TestRef(t *testing.T) {
	t.Parallel()
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := store.RefOf(nil); got != "sha256:"+empty {
		t.Errorf("RefOf(nil) = %s", got)
	}
	if store.RefOf([]byte("a")) == store.RefOf([]byte("b")) {
		t.Error("different content has the same name")
	}
	if got, ok := store.RefOf(nil).Hex(); !ok || got != empty {
		t.Errorf("Hex() = %q, %v", got, ok)
	}
	for _, bad := range []string{
		"", "sha256:", empty, "md5:" + empty, "SHA256:" + empty, "sha256:" + empty + "0", "sha256:" + empty[1:],
		"sha256:" + strings.ToUpper(empty), "sha256:g" + empty[1:], "sha256:../" + empty[3:], "sha256:`" + empty[1:],
	} {
		if got, ok := store.Ref(bad).Hex(); ok || got != "" {
			t.Errorf("Ref(%q).Hex() = %q, %v", bad, got, ok)
		}
	}
}

// wrapper is a store around another one.
type wrapper struct{ store.Store }

func (w wrapper) Unwrap() store.Store { return w.Store }

// A capability of the store inside is found through any number of wrappers.
func TestAs(t *testing.T) {
	t.Parallel()
	inside := memory.New(nil)
	if got, ok := store.As[*memory.Store](wrapper{wrapper{inside}}); !ok || got != inside {
		t.Errorf("As found %v, %v", got, ok)
	}
	if got, ok := store.As[store.Directory](wrapper{inside}); ok || got != nil {
		t.Errorf("As found a directory in memory: %v", got)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	want := [][]byte{[]byte("a"), nil, []byte("b")}
	var got [][]byte
	for line, err := range store.Lines(want...) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("Lines gave %q, want %q", got, want)
	}
	for line := range store.Lines(want...) {
		if string(line) != "a" {
			t.Errorf("first line is %q", line)
		}
		break
	}
	for line := range store.Lines() {
		t.Errorf("Lines() gave %q", line)
	}
}

// A reference is found wherever it stands and however JSON spells it, whole or not
// at all, also when a text comes in parts.
func TestEachRef(t *testing.T) {
	t.Parallel()
	one, two := string(store.RefOf([]byte("one"))), string(store.RefOf([]byte("two")))
	spelled := ""
	for i, c := range one {
		spelled += fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[i%2], c)
	}
	for text, want := range map[string][]string{
		"":                                   nil,
		one:                                  {one},
		one + two:                            {one, two},
		`{"blob":"` + two + `"}`:             {two},
		`"{\"blob\":\"` + two + `\"}"`:       {two},
		one[:70]:                             nil,
		strings.ToUpper(one):                 nil,
		"sha256:sha256:" + one[7:] + one[1:]: {one},
		spelled:                              {one},
		strings.Replace(one, ":", `\u003a`, 1) + two: {two, one, two},
		`\u00`:   nil,
		`\u00zz`: nil,
	} {
		var got []string
		store.EachRef([]byte(text), func(ref store.Ref) { got = append(got, string(ref)) })
		if !slices.Equal(got, want) {
			t.Errorf("%.200q: got %q, want %q", text, got, want)
		}
	}
	if n := len(spelled); n != store.RefOverlap+1 {
		t.Errorf("the longest spelling has %d bytes, the overlap is %d", n, store.RefOverlap)
	}
}
