package transcript

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lineOf is a line as text.
type lineOf struct {
	Data      string
	Pos, Len  int64
	No        int64
	Torn, Cut bool
}

func linesOf(t *testing.T, f *File) []lineOf {
	t.Helper()
	var list []lineOf
	for l, err := range f.Lines(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, lineOf{string(l.Data), l.Pos, l.Len, l.No, l.Torn, l.Cut})
	}
	return list
}

func TestLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []lineOf
	}{
		"empty":                {"", nil},
		"one":                  {"a\n", []lineOf{{Data: "a", Len: 2, No: 1}}},
		"torn":                 {"a\nbc", []lineOf{{Data: "a", Len: 2, No: 1}, {Data: "bc", Pos: 2, Len: 2, No: 2, Torn: true}}},
		"empty lines count":    {"\na\n \t\n\nb\n", []lineOf{{Data: "a", Pos: 1, Len: 2, No: 2}, {Data: "b", Pos: 7, Len: 2, No: 5}}},
		"carriage returns":     {"a\r\nb\r\n", []lineOf{{Data: "a", Len: 3, No: 1}, {Data: "b", Pos: 3, Len: 3, No: 2}}},
		"byte order mark":      {"\ufeffa\n\ufeffb\n", []lineOf{{Data: "a", Len: 5, No: 1}, {Data: "\ufeffb", Pos: 5, Len: 5, No: 2}}},
		"nothing but the mark": {"\ufeff\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, linesOf(t, FileOf("x", []byte(test.text)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinesFrom(t *testing.T) {
	t.Parallel()
	f := FileOf("x", []byte("aa\nbb\ncc\n"))
	var got []string
	for l, err := range f.LinesFrom(context.Background(), 3, 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(l.Data))
		if want := int64(len(got) * 3); l.Pos != want || l.No != int64(len(got))+1 {
			t.Errorf("line %q is at %d, number %d", l.Data, l.Pos, l.No)
		}
	}
	if diff := cmp.Diff([]string{"bb", "cc"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLinesStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := FileOf("x", []byte("a\nb\n"))
	for l, err := range f.Lines(ctx) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			return
		}
		if string(l.Data) == "b" {
			t.Error("a line came after the end")
		}
		cancel()
	}
	t.Error("no error came")
}

// repeated is a reader of so many equal bytes, then a text.
type repeated struct {
	n    int64
	then io.Reader
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return r.then.Read(p)
	}
	n := copy(p[:min(int64(len(p)), r.n)], manyX)
	r.n -= int64(n)
	return n, nil
}

// manyX is copied because the race detector looks at a copy once, and at a loop for
// each byte.
var manyX = strings.Repeat("x", 64<<10)

// TestLinesOfGigabyte: a line of 1 GB is cut while it is read, and what follows is still
// read.
func TestLinesOfGigabyte(t *testing.T) {
	const size = 1 << 30
	f := &File{Path: "x", open: func() (io.ReadCloser, error) {
		return io.NopCloser(&repeated{size, strings.NewReader("\nnext\n")}), nil
	}}
	var got []lineOf
	if took := allocated(func() { got = linesOf(t, f) }); took >= size { // the buffer, and the half of it before, and so on
		t.Errorf("it took %d MiB of memory", took>>20)
	}
	if len(got) != 2 || !got[0].Cut || got[0].Len != size+1 || len(got[0].Data) != cutSize {
		t.Fatalf("%d lines; the first has %d bytes of %d", len(got), len(got[0].Data), got[0].Len)
	}
	if want := (lineOf{Data: "next", Pos: size + 1, Len: 5, No: 2}); got[1] != want {
		t.Errorf("the next line is %+v", got[1])
	}
}

// allocated returns how much memory a function takes, garbage included. Tests that call it
// are not parallel: others would be counted too.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongLineMemory: a long line is in memory once, for the reader and for what is kept
// of it.
func TestLongLineMemory(t *testing.T) {
	const size = 16 << 20
	k := newKeeper(0, nil, nil, nil)
	f := &File{Path: "x", tap: k, open: func() (io.ReadCloser, error) {
		return io.NopCloser(&repeated{size, strings.NewReader("\nnext\n")}), nil
	}}
	var lasting bool
	took := allocated(func() {
		for l, err := range f.Lines(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			lasting = lasting || l.Lasting
		}
		k.finish(1 << 62)
		k.done.Wait()
	})
	if !lasting {
		t.Error("the reader has to copy the line")
	}
	// The buffer has up to twice the line's size, and was half of that before, and so on.
	// Whoever packs it needs a part of it.
	if took > 6*size {
		t.Errorf("a line of %d MiB took %d MiB", size>>20, took>>20)
	}
	if len(k.chunks) != 2 || k.chunks[0].size != size+1 || k.chunks[1].size != int64(len("next\n")) {
		t.Errorf("%d chunks are kept", len(k.chunks))
	}
}

// tapped notes what a tap sees.
type tapped struct {
	text string
	all  []string
}

func (t *tapped) part(pos int64, b []byte) {
	if pos == int64(len(t.text)) {
		t.text += string(b)
	}
}
func (t *tapped) line(pos int64, b []byte) { t.part(pos, b) }
func (t *tapped) whole(b []byte)           { t.all = append(t.all, string(b)) }

func TestTapSeesAll(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some line\n", 300_000) + "torn"
	seen := &tapped{}
	f := FileOf("x", []byte(text))
	f.tap = seen
	linesOf(t, f)
	linesOf(t, f)
	if seen.text != text {
		t.Errorf("the tap saw %d bytes of %d", len(seen.text), len(text))
	}
	if _, err := f.ReadAll(); err != nil || len(seen.all) != 1 || seen.all[0] != text {
		t.Errorf("ReadAll: %v, %d times", err, len(seen.all))
	}
}

// TestLinesLast: reading on does not change a long line that is marked as lasting, and the
// tap sees it once, in its place.
func TestLinesLast(t *testing.T) {
	t.Parallel()
	long := func(c string) string { return strings.Repeat(c, 3*readSize) }
	text := "a\n" + long("b") + "\nc\n" + long("d") + "\n" + long("e") + "\nf\n" + long("g")
	seen := &tapped{}
	f := &File{Path: "x", tap: seen, open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
	var lasting [][]byte
	for l, err := range f.Lines(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if l.Lasting {
			lasting = append(lasting, l.Data)
		}
	}
	if seen.text != text {
		t.Errorf("the tap saw %d bytes of %d", len(seen.text), len(text))
	}
	if len(lasting) == 0 {
		t.Error("no line lasts")
	}
	for _, data := range lasting {
		if string(data) != long(string(data[:1])) {
			t.Errorf("the line of %.1s has changed", data)
		}
	}
}

// TestClean: what is taken out is seen by nobody, and places are those in what
// is left.
func TestClean(t *testing.T) {
	t.Parallel()
	seen := &tapped{}
	f := FileOf("x", []byte("a secret\r\n\nb\nsecret"))
	f.tap = seen
	f.clean = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "secret", "-")) }
	want := []lineOf{{Data: "a -", Len: 4, No: 1}, {Data: "b", Pos: 5, Len: 2, No: 3}, {Data: "-", Pos: 7, Len: 2, No: 4, Torn: true}}
	if diff := cmp.Diff(want, linesOf(t, f)); diff != "" {
		t.Error(diff)
	}
	if seen.text != "a -\n\nb\n-\n" {
		t.Errorf("the tap saw %q", seen.text)
	}
	if all, err := f.ReadAll(); err != nil || strings.Contains(string(all), "secret") {
		t.Errorf("ReadAll gave %q, %v", all, err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\r\nb"), 3)
	f.Fuzz(func(t *testing.T, data []byte, _ int) {
		file := FileOf("x", data)
		end := int64(0)
		for l, err := range file.Lines(context.Background()) {
			if err != nil {
				return // compressed, and not well
			}
			if l.Pos < end || len(l.Data) == 0 {
				t.Fatalf("a line of %d bytes at %d after %d", len(l.Data), l.Pos, end)
			}
			end = l.Pos + l.Len
		}
	})
}
