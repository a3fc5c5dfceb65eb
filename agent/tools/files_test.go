package tools_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/session"
)

// png is the smallest image that counts as one.
var png, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==") // one pixel

func TestReadReturnsFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for name, tt := range map[string]struct{ content, want string }{
		"lines":      {"one\n two\n\nthree\n", "one\n two\n\nthree\n"},
		"no newline": {"one\ntwo", "one\ntwo"},
		"mark":       {"\uFEFFone\n", "one\n"},
		"crlf":       {"one\r\ntwo\r\n", "one\ntwo\n[lines end with CRLF]"},
		"latin":      {"caf\xe9\n", "caf\uFFFD\n[bytes that are not UTF-8 are shown as \uFFFD]"},
		"empty":      {"", "[the file empty is empty]"},
		"newline":    {"\n", "\n"},
	} {
		b.file(name, tt.content)
		if got := b.run("read", "path", name); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A model that follows the notes of each page has read the whole file.
func TestReadInPages(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{MaxOutput: 4096})
	var whole strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&whole, "line %d\n", i+1)
	}
	b.file("long", whole.String())
	var got strings.Builder
	for offset, pages := 1, 0; ; pages++ {
		text := b.run("read", "path", "long", "offset", offset)
		if len(text) > 4200 || pages > 100 {
			t.Fatalf("page %d has %d bytes", pages, len(text))
		}
		page, note, more := strings.Cut(text, "[lines ")
		got.WriteString(page)
		if !more {
			break
		}
		var from, to, next int
		if _, err := fmt.Sscanf(note, "%d to %d; the file continues: read it with offset %d]", &from, &to, &next); err != nil || from != offset || next != to+1 {
			t.Fatalf("%q: %v", note, err)
		}
		offset = next
	}
	if got.String() != whole.String() {
		t.Error("the pages are not the file")
	}
	if text := b.run("read", "path", "long", "offset", 4999, "limit", 1); !strings.HasPrefix(text, "line 4999\n[lines 4999 to 4999;") {
		t.Error(text)
	}
	if text := b.run("read", "path", "long", "offset", 5000); text != "line 5000\n" {
		t.Errorf("%q", text)
	}
	b.fails("only 5000 lines", "read", "path", "long", "offset", 5001)
}

func TestReadCutsLongLines(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for shift := range 4 { // so that the cut falls everywhere in a character
		b.file("long", strings.Repeat("x", shift)+strings.Repeat("日本", 10_000)+"\nnext\n")
		text := b.run("read", "path", "long")
		if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) || len(text) > 2200 ||
			!strings.Contains(text, "more bytes in this line]\nnext\n") {
			t.Errorf("%d bytes: %.20q … %q", len(text), text, text[max(0, len(text)-60):])
		}
	}
}

// A huge file is not read whole, and one who gives up is not kept waiting.
func TestReadOfAHugeFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	name := b.file("huge", strings.Repeat("text\n", 4000))
	b.must(os.Truncate(name, 1<<40)) // nothing but NULs follow, in one line
	if text := b.run("read", "path", "huge", "limit", 3); !strings.HasPrefix(text, "text\ntext\ntext\n[") {
		t.Errorf("%.100q", text)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	if _, err := b.tools["read"].Run(ctx, call("read", args("path", "huge", "offset", 4002))); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestReadOfImagesAndOtherBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	b.file("a.txt", string(png)) // what counts is what it is
	r := b.runIn(t.Context(), "read", args("path", "a.txt"))
	if r.IsError || len(r.Parts) != 2 || r.Parts[1].Type != session.ContentTypeImage || r.Text == "" {
		t.Fatalf("%+v", r)
	}
	source := r.Parts[1].Image.Source
	if data, err := base64.StdEncoding.DecodeString(source.Data); err != nil || !bytes.Equal(data, png) || source.MediaType != "image/png" {
		t.Errorf("%q as %s, %v", data, source.MediaType, err)
	}
	b.must(os.Truncate(b.file("big.png", string(png)), 5<<20))
	big := b.runIn(t.Context(), "read", args("path", "big.png"))
	if len(big.Parts) != 2 || len(big.Parts[1].Image.Source.Data) > 1000 {
		t.Errorf("a picture with too many bytes is not made smaller: %s", big.Text)
	}
	b.must(os.Truncate(b.file("huge.png", string(png)), 64<<20))
	b.fails("make it smaller", "read", "path", "huge.png")
	b.file("torn.png", string(png[:40]))
	b.fails("it is no whole picture", "read", "path", "torn.png")
	b.file("program", "\x7fELF\x00\x01\x02")
	b.fails("binary file", "read", "path", "program")
	b.file("wide", "\xff\xfea\x00")
	b.fails("UTF-16", "read", "path", "wide")
	b.fails("does not exist", "read", "path", "none")
	b.fails("does not exist", "read", "path", filepath.Join(filepath.Dir(b.dir), "none"))
}

func TestReadListsDirectories(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	if text := b.run("read", "path", "."); !strings.Contains(text, "empty") {
		t.Error(text)
	}
	b.file("b/c", "")
	b.file("a", "")
	b.file(".hidden", "")
	if text := b.run("read", "path", "."); text != ".hidden\na\nb/\n" {
		t.Errorf("%q", text)
	}
	if text := b.run("read", "path", filepath.Dir(b.dir)); text != "work/\n" {
		t.Errorf("%q", text)
	}
	for i := range 1100 {
		b.file(fmt.Sprintf("many/%d", i), "")
	}
	if text := b.run("read", "path", "many"); !strings.HasSuffix(text, "[100 more names]\n") {
		t.Errorf("%q", text[max(0, len(text)-40):])
	}
	if text := b.run("read", "path", string(filepath.Separator)); text == "" {
		t.Error("the root is empty")
	}
}

func TestWriteReplacesTheWholeFileAndKeepsItsPermissions(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	if text := b.run("write", "path", "new/dir/a.sh", "content", "one\ntwo"); !strings.Contains(text, "new file") || !strings.Contains(text, "2 lines") {
		t.Error(text)
	}
	b.must(os.Chmod(filepath.Join(b.dir, "new/dir/a.sh"), 0o751))
	if text := b.run("write", "path", "new/dir/a.sh", "content", "three\n"); !strings.Contains(text, "replaced") || !strings.Contains(text, "1 line,") {
		t.Error(text)
	}
	info, err := os.Stat(filepath.Join(b.dir, "new/dir/a.sh"))
	b.must(err)
	if got := b.content("new/dir/a.sh"); got != "three\n" || info.Mode().Perm() != 0o751 {
		t.Errorf("%q, %v", got, info.Mode())
	}
	made, err := os.Stat(b.file("ordinary", ""))
	b.must(err)
	b.must(os.Chmod(b.dir+"/ordinary", 0o666&made.Mode()))
	b.run("write", "path", "other", "content", "")
	if info, err := os.Stat(b.dir + "/other"); err != nil || info.Mode().Perm()&^0o666 != 0 || info.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	b.fails("directory", "write", "path", "new", "content", "x")
	b.fails("a.sh", "write", "path", "new/dir/a.sh/b", "content", "x")
	entries, err := os.ReadDir(b.dir + "/new/dir")
	if b.must(err); len(entries) != 1 {
		t.Errorf("something is left: %v", entries)
	}
}

// Who approved a path outside gets exactly that, and no directories on the way.
func TestWriteOutside(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	b.run("write", "path", "../beside", "content", "x")
	if b.content("../beside") != "x" {
		t.Error("not written")
	}
	b.run("edit", "path", filepath.Join(b.dir, "../beside"), "old_string", "x", "new_string", "y")
	if b.content("../beside") != "y" || b.run("read", "path", "../beside") != "y" {
		t.Error("not changed")
	}
	b.fails("does not exist", "write", "path", "../none/beside", "content", "x")
	b.fails("does not exist", "edit", "path", "../none", "old_string", "x", "new_string", "y")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for name, tt := range map[string]struct {
		content, old, new string
		all               bool
		want, says        string
	}{
		"once":          {"a b c", "b", "x", false, "a x c", "line 1"},
		"all":           {"a\nb\na\na", "a", "x", true, "x\nb\nx\nx", "3 occurrences in all, at line 1, 3, 4"},
		"remove":        {"a\nb\nc\n", "b\n", "", false, "a\nc\n", "line 2"},
		"many lines":    {"a\nb\nc\n", "a\nb\n", "x\n", false, "x\nc\n", "line 1"},
		"dollars":       {"a", "a", "$1 \\1 %s", false, "$1 \\1 %s", ""},
		"crlf":          {"a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n", "line 1"},
		"crlf as it is": {"a\r\nb\r\n", "a\r\n", "x\r\n", false, "x\r\nb\r\n", ""},
		"not UTF-8":     {"caf\xe9\nb\n", "b", "x", false, "caf\xe9\nx\n", ""},
		"mark":          {"\uFEFFa\n", "a", "b", false, "\uFEFFb\n", ""},
		"once with all": {"a", "a", "b", true, "b", ""},
	} {
		b.file(name, tt.content)
		b.must(os.Chmod(filepath.Join(b.dir, name), 0o640))
		b.run("read", "path", name)
		text := b.run("edit", "path", name, "old_string", tt.old, "new_string", tt.new, "replace_all", tt.all)
		info, err := os.Stat(filepath.Join(b.dir, name))
		b.must(err)
		if got := b.content(name); got != tt.want || !strings.Contains(text, tt.says) || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %q, %q, %v, want %q", name, got, text, info.Mode(), tt.want)
		}
	}
}

func TestEditThatDoesNotMatchSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	text := "package a\n\nfunc f() {\n\tif x {\n\t\treturn 1\n\t}\n}\n\nfunc g() {\n\treturn 2\n}\n"
	b.file("a.go", text)
	b.run("read", "path", "a.go")
	b.fails("occurs 2 times, at the lines 5, 10", "edit", "path", "a.go", "old_string", "return", "new_string", "x")
	b.fails("lines 4 to 6 differ from it only in white space. The file has:\n\tif x {\n\t\treturn 1\n\t}", "edit", "path", "a.go",
		"old_string", "    if x {\n        return 1\n    }\n", "new_string", "x")
	b.fails("begins at line 9:\nfunc g() {\n\treturn 2\n}", "edit", "path", "a.go", "old_string", "func g() int {\n\treturn 2\n}", "new_string", "x")
	b.fails("nothing in the file is close to it", "edit", "path", "a.go", "old_string", "zebra crossing", "new_string", "x")
	b.file("bin", "x\x00")
	b.fails("binary", "read", "path", "bin")
	b.fails("binary", "edit", "path", "bin", "old_string", "x", "new_string", "y")
	b.fails("does not exist", "edit", "path", "none", "old_string", "x", "new_string", "y")
	b.must(os.Truncate(b.file("huge", "x"), 17<<20))
	b.fails("binary", "read", "path", "huge")
	b.fails("larger than 16 MiB", "edit", "path", "huge", "old_string", "x", "new_string", "y")
	if b.content("a.go") != text {
		t.Error("it was changed")
	}
}

// Two edits of a file at the same time are both in it.
func TestParallelEditsAllCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	var content strings.Builder
	for i := range 20 {
		fmt.Fprintf(&content, "<%d>\n", i)
	}
	b.file("a", content.String())
	b.run("read", "path", "a")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r, err := b.tools["edit"].Run(t.Context(), call("edit", args("path", "a", "old_string", fmt.Sprintf("<%d>", i), "new_string", "done")))
			if err != nil || r.IsError {
				t.Error(r.Text, err)
			}
		})
	}
	wg.Wait()
	if got := b.content("a"); got != strings.Repeat("done\n", 20) {
		t.Errorf("%q", got)
	}
}

// What makes a call fail is known before anyone is asked about it, and nothing is changed.
func TestCallsAreCheckedBeforeTheyAsk(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "there")
	work, r := rules(t, nil, []string{"write(hidden)"})
	b := newBench(t, tools.Options{Dir: work.dir, Rules: r, MaxTimeout: time.Minute})
	b.file("seen", "some beans\n")
	b.file("unseen", "peas\n")
	b.file("hidden", "key\n")
	b.link(outside, "link")
	b.run("read", "path", "seen")
	edit := func(path, old string) json.RawMessage {
		return args("path", path, "old_string", old, "new_string", "corn")
	}
	for _, tt := range []struct {
		tool  string
		input json.RawMessage
		want  string
	}{
		{"write", at("write", "new/file"), ""},
		{"write", at("write", "seen"), ""},
		{"write", at("write", "unseen"), "read it first"},
		{"write", at("write", "link"), "leads out of the working directory"},
		{"write", at("write", ""), "is empty"},
		{"write", at("write", "hidden"), ""}, // its rule says more
		{"write", args("path", "seen"), "missing properties"},
		{"edit", edit("seen", "beans"), ""},
		{"edit", edit("seen", "rice"), "seen: old_string"},
		{"edit", edit("seen", "e"), "occurs 2 times"},
		{"edit", edit("unseen", ""), "old_string is empty"},
		{"edit", edit("unseen", "peas"), "read it first"},
		{"edit", edit("nothing", "x"), "does not exist"},
		{"bash", args("command", "ls"), ""},
		{"bash", args("command", "ls", "timeout", 61), "from 1 to 60"},
		{"bash", args("command", " "), "is empty"},
	} {
		err := b.tools[tt.tool].Check(call(tt.tool, tt.input))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.tool, tt.input, err, tt.want)
		}
	}
	if b.exists("new") || b.content("seen") != "some beans\n" {
		t.Error("a check changed something")
	}
}
