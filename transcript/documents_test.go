package transcript_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
		bad  bool
	}{
		"empty":              {"", nil, false},
		"white space":        {" \n\t\r ", nil, false},
		"one object":         {`{"a":[1,{"b":"]}"}]}`, []string{`{"a":[1,{"b":"]}"}]}`}, false},
		"after each other":   {"{\"a\":1}\n\n [2] \"x\\\"y\" 3 true", []string{`{"a":1}`, `[2]`, `"x\"y"`, `3`, `true`}, false},
		"an array":           {`[ {"a":1} , 2,"three",[4] ]`, []string{`{"a":1}`, `2`, `"three"`, `[4]`}, false},
		"an empty array":     {`[]`, nil, false},
		"a byte order mark":  {"\ufeff[1]", []string{"1"}, false},
		"cut off":            {`{"a":1} {"b":`, []string{`{"a":1}`}, true},
		"an array, cut off":  {`[1,{"a"`, []string{"1"}, true},
		"not JSON":           {`{"a":1} {]}`, []string{`{"a":1}`}, true},
		"a string, cut off":  {`"abc`, nil, true},
		"no comma is no end": {`{"a":1}{"b":2}`, []string{`{"a":1}`, `{"b":2}`}, false},
	} {
		var got []string
		var failed error
		for doc, err := range transcript.FileOf("x", []byte(test.text)).Documents(context.Background()) {
			if err != nil {
				failed = err
				continue
			}
			got = append(got, string(doc.Data))
			if at := test.text[doc.Pos : doc.Pos+doc.Len]; at != string(doc.Data) {
				t.Errorf("%s: %q is said to be at %q", name, doc.Data, at)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" && !test.bad {
			t.Errorf("%s: %s", name, diff)
		}
		if errors.Is(failed, session.ErrCorrupt) != test.bad {
			t.Errorf("%s: error %v", name, failed)
		}
	}
}

// endless is a value that does not end.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, manyX)
	if !e.begun {
		p[0], e.begun = '"', true
	}
	return n, nil
}

// manyX is copied because the race detector looks at a copy once, and at a loop for
// each byte.
var manyX = strings.Repeat("x", 64<<10)

func TestDocumentTooLarge(t *testing.T) {
	t.Parallel()
	f := transcript.FileFrom("x", func() (io.ReadCloser, error) { return io.NopCloser(&endless{}), nil })
	var failed error
	for _, err := range f.Documents(context.Background()) {
		failed = err
	}
	if !errors.Is(failed, session.ErrTooLarge) {
		t.Errorf("error %v", failed)
	}
}

func TestDocumentsStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var failed error
	for _, err := range transcript.FileOf("x", []byte("1 2 3")).Documents(ctx) {
		failed = err
		cancel()
	}
	if !errors.Is(failed, context.Canceled) {
		t.Errorf("error %v", failed)
	}
}

func zipOf(t testing.TB, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		m, err := w.Create(members[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Write([]byte(members[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZip(t *testing.T) {
	t.Parallel()
	data := zipOf(t, "b/x.json", "[1]", "dir/", "", "a.json", "[2]")
	for _, f := range []*transcript.File{
		transcript.FileOf("x.zip", data), open(t, writeFile(t, filepath.Join(t.TempDir(), "x.zip"), string(data))),
	} {
		if !f.IsZip() {
			t.Error("not told to be a zip")
		}
		a, err := f.Zip()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"b/x.json", "a.json"}, a.Names()); diff != "" {
			t.Error(diff)
		}
		m, err := a.File("b/x.json")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.ReadAll(); err != nil || string(got) != "[1]" || !strings.HasSuffix(m.Path, "x.zip!b/x.json") {
			t.Errorf("%s has %q, %v", m.Path, got, err)
		}
		if _, err := a.File("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a member that is not there: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// linkZip returns an archive with a symbolic link.
func linkZip(t *testing.T) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "link"}
	h.SetMode(fs.ModeSymlink | 0o777)
	if m, err := w.CreateHeader(h); err != nil {
		t.Fatal(err)
	} else if _, err := m.Write([]byte("/etc/passwd")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sharingZip returns an archive with ten members that are the same bytes in it.
func sharingZip(t *testing.T) []byte {
	noise := make([]byte, 10_000)
	rand.NewChaCha8([32]byte{}).Read(noise)
	data := zipOf(t, "0.json", string(noise))
	at := bytes.LastIndex(data, []byte("PK\x01\x02"))
	end := bytes.LastIndex(data, []byte("PK\x05\x06"))
	record, tail := data[at:end], bytes.Clone(data[end:])
	var directory []byte
	for i := range 10 {
		copied := bytes.Clone(record)
		copied[46] = byte('0' + i) // its name
		directory = append(directory, copied...)
	}
	binary.LittleEndian.PutUint16(tail[8:], 10)
	binary.LittleEndian.PutUint16(tail[10:], 10)
	binary.LittleEndian.PutUint32(tail[12:], uint32(len(directory)))
	return slices.Concat(data[:at], directory, tail)
}

// What is large is packed to less than one in two hundred by nothing honest.
func TestLargeBombs(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 120<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	data := zstdOf(t, append(noise, make([]byte, 80<<20)...))
	r, err := transcript.FileOf("bomb", data).Open()
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	if !errors.Is(err, session.ErrTooLarge) || n > 70<<20 {
		t.Errorf("%d bytes of %d: %v", n, len(data), err)
	}
}

func TestZipHostile(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"leads elsewhere": zipOf(t, "../../etc/passwd", "x"),
		"absolute":        zipOf(t, "/etc/passwd", "x"),
		"not a zip":       []byte("PK\x03\x04 and nothing else"),
		"a name twice":    zipOf(t, "a.json", "1", "b.json", "2", "a.json", "3"),
		"a link":          linkZip(t),
		"shared bytes":    sharingZip(t),
	} {
		if _, err := transcript.FileOf("x.zip", data).Zip(); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := transcript.FileOf("x.zip", zipOf(t, "bomb.json", strings.Repeat("0", 64<<20))).Zip()
	if err != nil {
		t.Fatal(err)
	}
	bomb, err := a.File("bomb.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bomb.ReadAll(); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("a bomb: %v", err)
	}
	if transcript.FileOf("x", []byte("text")).IsZip() {
		t.Error("text is a zip")
	}
}

func TestAbove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a", "near"), "found")
	f := open(t, writeFile(t, filepath.Join(dir, "a", "b", "c", "x"), ""))
	if got, err := f.Above(2).Beside("near"); err != nil || string(got) != "found" {
		t.Errorf("two above: %q, %v", got, err)
	}
	if _, err := f.Beside("near"); err == nil {
		t.Error("the file itself has moved")
	}
	if _, err := transcript.FileOf("x", nil).Above(1).Beside("near"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("above bytes: %v", err)
	}
}

func TestScriptLosses(t *testing.T) {
	t.Parallel()
	said := func(id string, blocks ...session.Content) session.Entry {
		return session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: "user", Content: blocks}}
	}
	tag := session.Entry{Type: session.TypeCustom, ID: "t", Custom: &session.CustomEntry{
		CustomType: session.CustomTags, Data: map[string]any{"tags": []any{"b", "a"}},
	}}
	one, two, three := said("1", session.Text("x")), said("2", session.Text("y")), said("3", session.Text("z"))
	s := &transcript.Script{Path: []session.Entry{one, two}, All: []session.Entry{one, tag, two, three}}
	if got := strings.Join(s.Tags(), " "); got != "a b" && got != "b a" {
		t.Errorf("tags %q", got)
	}
	if got := s.OtherBranches(); len(got) != 1 || !strings.Contains(got[0].Why, "1 message of another is") {
		t.Errorf("losses %v", got)
	}
	s.All = s.Path
	if got := s.OtherBranches(); got != nil {
		t.Errorf("losses %v", got)
	}
	result := session.ToolResult("c", "x", false)
	result.ToolResult.Parts = []session.Content{session.Image("image/png", "aGk=")}
	e := said("4", session.Text("x"), session.Image("image/png", "aGk="), result)
	var what []string
	for _, l := range transcript.Lost(&e, "why", session.ContentTypeText, session.ContentTypeToolResult) {
		what = append(what, l.What)
	}
	if diff := cmp.Diff([]string{"image", "parts of a tool's result"}, what); diff != "" {
		t.Error(diff)
	}
}
