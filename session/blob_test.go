package session_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// blobFiles returns the blobs of a directory.
func blobFiles(t testing.TB, dir string) []string {
	t.Helper()
	return mustGet(filepath.Glob(filepath.Join(dir, ".coppice", "blobs", "*", "*")))(t)
}

// picture returns an image of some bytes.
func picture(seed, size int) session.Content {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(seed + i*i>>4)
	}
	return session.Image("image/png", base64.StdEncoding.EncodeToString(data))
}

func TestBlobThreshold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		threshold, size, blobs int
	}{
		"default, at it":     {0, session.DefaultBlobThreshold, 0},
		"default, above it":  {0, session.DefaultBlobThreshold + 1, 1},
		"own, at it":         {10, 10, 0},
		"own, above it":      {10, 11, 1},
		"never":              {-1, 1 << 20, 0},
		"smallest threshold": {1, 2, 1},
	} {
		s := newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = test.threshold })
		text := strings.Repeat("x", test.size)
		id := s.message(session.RoleTool, session.ToolResult("c", text, true))
		if got := len(blobFiles(t, filepath.Dir(s.File()))); got != test.blobs {
			t.Errorf("%s: %d blobs, want %d", name, got, test.blobs)
		}
		if inline := strings.Contains(string(readBytes(t, s.File())), text); inline != (test.blobs == 0) {
			t.Errorf("%s: in the line: %v", name, inline)
		}
		e := mustGet(s.again().Entry(id))(t)
		if r := e.Message.Content[0].ToolResult; r.Content != text || !r.IsError {
			t.Errorf("%s: read back %d bytes", name, len(r.Content))
		}
	}
}

// The same content is kept once, however often it is said, in forks and in other
// sessions of the directory.
func TestBlobIsKeptOnce(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	shot := picture(1, 100_000)
	s.user("look")
	for range 5 {
		s.message(session.RoleUser, shot)
	}
	audio := session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: shot.Image.Source}}
	doc := session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: "n", Source: shot.Image.Source}}
	s.message(session.RoleUser, audio, doc)
	s.message(session.RoleTool, session.Content{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{
		ToolUseID: "c", Content: "see", Parts: []session.Content{session.Text("see"), shot},
	}})
	dir := filepath.Dir(s.File())
	mustGet(s.AppendEntry(session.ContextEdit(mustGet(s.GetContext())(t)[1].ID, shot)))(t)
	mustGet(s.CreateBranchedSession(s.LeafID()))(t)
	fork := scribe{closeWith(t, mustGet(session.ForkFrom(s.File(), dir))(t)), t}
	fork.message(session.RoleUser, shot)
	other := scribe{closeWith(t, mustGet(session.New(dir, ""))(t)), t}
	other.message(session.RoleUser, shot)
	blobs := blobFiles(t, dir)
	if len(blobs) != 1 || mustGet(os.Stat(blobs[0]))(t).Size() != 100_000 {
		t.Errorf("blobs %v", blobs)
	}
	for _, each := range []scribe{s.again(), fork.again(), other.again()} {
		for e, err := range each.Entries() {
			mustDo(t, err)
			if e.Message == nil {
				continue
			}
			for _, c := range e.Message.Content {
				checkPicture(t, c, shot)
			}
		}
		if kinds := each.problemKinds(); slices.Contains(kinds, session.ProblemBlob) {
			t.Errorf("problems %q", kinds)
		}
	}
	// What the caller gave was not changed.
	if shot.Image.Source.Blob != "" || len(shot.Image.Source.Data) < 100_000 {
		t.Error("the caller's image was changed")
	}
	// Elsewhere the fork has its own copy.
	far := scribe{closeWith(t, mustGet(session.ForkFrom(s.File(), t.TempDir()))(t)), t}
	if got := blobFiles(t, filepath.Dir(far.File())); len(got) != 1 {
		t.Errorf("blobs in the other directory: %v", got)
	}
	mustDo(t, os.RemoveAll(filepath.Join(dir, ".coppice")))
	if kinds := far.again().problemKinds(); slices.Contains(kinds, session.ProblemBlob) {
		t.Errorf("the fork depends on the original's blobs: %q", kinds)
	}
}

func checkPicture(t testing.TB, c, want session.Content) {
	t.Helper()
	var got *session.Source
	switch {
	case c.Image != nil:
		got = c.Image.Source
	case c.Audio != nil:
		got = c.Audio.Source
	case c.File != nil:
		got = c.File.Source
	case c.ToolResult != nil:
		checkPicture(t, c.ToolResult.Parts[1], want)
		return
	default:
		return
	}
	if got.Data != want.Image.Source.Data || got.MediaType != "image/png" {
		t.Errorf("%s: %d bytes of base64, want %d", c.Type, len(got.Data), len(want.Image.Source.Data))
	}
}

// Only what comes back as it was is moved.
func TestBlobsKeepOddBase64InTheLine(t *testing.T) {
	t.Parallel()
	good := picture(3, 1000).Image.Source.Data // ends in padding
	for name, source := range map[string]session.Source{
		"line breaks":       {Type: "base64", Data: good[:76] + "\n" + good[76:]},
		"no padding":        {Type: "base64", Data: strings.TrimRight(good, "=")},
		"URL alphabet":      {Type: "base64", Data: strings.Repeat("-_-_", 200)},
		"stray bits":        {Type: "base64", Data: good[:len(good)-3] + "B=="},
		"not base64 at all": {Type: "base64", Data: strings.Repeat("!", 1000)},
		"a URL":             {Type: "url", Data: "data:image/png;base64," + good},
		"another type":      {Type: "file_id", Data: good},
	} {
		s := newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = 100 })
		id := s.message(session.RoleUser, session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: &source}})
		got := mustGet(s.again().Entry(id))(t).Message.Content[0].Image.Source
		if got.Data != source.Data || got.Blob != "" {
			t.Errorf("%s: came back as %.40q, blob %q", name, got.Data, got.Blob)
		}
		if blobs := blobFiles(t, filepath.Dir(s.File())); name != "stray bits" && len(blobs) != 0 {
			t.Errorf("%s: blobs %v", name, blobs)
		}
	}
}

// What is missing or damaged is reported; the rest of the session is fine.
func TestBlobMissingOrCorrupt(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"missing": os.Remove,
		"corrupt": func(path string) error { return os.WriteFile(path, []byte("something else"), 0o600) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScribe(t)
			s.user("begin")
			s.call("c")
			r := s.message(session.RoleTool, session.ToolResult("c", strings.Repeat("x", 50_000), false))
			im := s.message(session.RoleUser, picture(1, 50_000), session.Text("see?"))
			s.say("end")
			for _, blob := range blobFiles(t, filepath.Dir(s.File())) {
				mustDo(t, spoil(blob))
			}
			again := s.again()
			c := again.at("")
			if len(c.Entries) != 5 || len(c.Problems) != 2 || c.Problems[0].Kind != session.ProblemBlob || c.Problems[0].EntryID != r || c.Problems[1].EntryID != im {
				t.Fatalf("%d entries, problems %v", len(c.Entries), c.Problems)
			}
			if got := c.Entries[2].Message.Content[0].ToolResult.Content; !strings.Contains(got, "missing") {
				t.Errorf("the result reads %q", got)
			}
			if kinds := again.problemKinds(); !slices.Equal(kinds, []session.ProblemKind{session.ProblemBlob}) {
				t.Errorf("problems %q", kinds)
			}
			mustGet(again.GetTree())(t)
			again.user("goes on")
			// A copy has the same gap, and is no reason to refuse.
			for _, dir := range []string{t.TempDir(), filepath.Dir(s.File())} {
				fork := scribe{closeWith(t, mustGet(session.ForkFrom(s.File(), dir))(t)), t}
				if kinds := fork.problemKinds(); !slices.Contains(kinds, session.ProblemBlob) {
					t.Errorf("fork: problems %q", kinds)
				}
			}
			mustGet(again.CreateBranchedSession(again.LeafID()))(t)
			// Saying the same again heals it.
			if name != "corrupt" {
				again.message(session.RoleTool, session.ToolResult("c", strings.Repeat("x", 50_000), false))
				again.message(session.RoleUser, picture(1, 50_000))
				if c := again.again().at(""); slices.ContainsFunc(c.Problems, func(p session.Problem) bool { return p.Kind == session.ProblemBlob }) {
					t.Errorf("still missing: %v", c.Problems)
				}
			}
		})
	}
}

// A blob that cannot be written is an append that did not happen.
func TestBlobThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	first := s.user("one")
	mustDo(t, os.WriteFile(filepath.Join(filepath.Dir(s.File()), ".coppice", "blobs"), []byte("in the way"), 0o600))
	for name, content := range map[string]session.Content{
		"result":  session.ToolResult("c", strings.Repeat("x", 50_000), false),
		"picture": picture(1, 50_000),
		"part":    {Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{ToolUseID: "c", Parts: []session.Content{picture(1, 50_000)}}},
	} {
		if _, err := s.AppendMessage(session.RoleTool, []session.Content{content}); err == nil {
			t.Errorf("%s: acknowledged", name)
		}
		if _, err := s.AppendEntry(session.ContextEdit(first, content)); err == nil {
			t.Errorf("%s: edit acknowledged", name)
		}
	}
	if s.LeafID() != first || len(s.again().ids()) != 1 {
		t.Error("a line refers to a blob that is not there")
	}
	s.user("small things still work")
}

// A reference from outside cannot name a file of its own choice.
func TestBlobReferencesCannotEscape(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"../../../../etc/passwd", "sha256:../x", "sha256:" + strings.Repeat("A", 64), "md5:00", "/etc/passwd"} {
		path := writeLog(t, headerLine, fmt.Sprintf(`{"type":"message","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":false,"blob":%q,"size":5}}]}}`, ref))
		s := loadScribe(t, path)
		e := mustGet(s.Entry("a"))(t)
		if got := e.Message.Content[0].ToolResult.Content; !strings.Contains(got, "missing") || strings.Contains(got, "root:") {
			t.Errorf("%s: %q", ref, got)
		}
		if kinds := s.problemKinds(); !slices.Contains(kinds, session.ProblemBlob) {
			t.Errorf("%s: problems %q", ref, kinds)
		}
	}
}

// What was read with its content filled in can be appended elsewhere.
func TestBlobContentCanBeAppendedAgain(t *testing.T) {
	t.Parallel()
	s, other := newScribe(t), newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = -1 })
	id := s.message(session.RoleUser, picture(1, 50_000), session.ToolResult("c", strings.Repeat("x", 50_000), false))
	e := mustGet(s.Entry(id))(t)
	want := e.Message.Content[0].Image.Source.Data
	e.ID = ""
	id = other.add(e)
	copied := mustGet(other.again().Entry(id))(t)
	if copied.Message.Content[0].Image.Source.Data != want || len(copied.Message.Content[1].ToolResult.Content) != 50_000 {
		t.Error("the content was not copied")
	}
	if blobs := blobFiles(t, filepath.Dir(other.File())); len(blobs) != 0 {
		t.Errorf("blobs %v", blobs)
	}
	if strings.Contains(string(readBytes(t, other.File())), `"blob"`) {
		t.Error("a reference to another store's blob was written")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(other.File()), ".coppice", "blobs")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(s.at("").Fingerprints[0], other.at("").Fingerprints[0]); diff != "" {
		t.Error(diff)
	}
}

// Content of 0 bytes in a blob is there, and is empty.
func TestEmptyBlob(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	ref := mustGet(st.Blobs().Put(t.Context(), nil))(t)
	e := session.Entry{ID: "a", Timestamp: time.Unix(1, 0), Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{
		{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{ToolUseID: "c", Blob: ref}},
	}}}
	s := closeWith(t, mustGet(session.Create(t.Context(), st, session.Header{ID: "s"}, nil))(t))
	mustDo(t, s.Graft(e))
	got, err := s.Forward("")
	if r := got[0].Message.Content[0].ToolResult; err != nil || r.Content != "" || r.Blob != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if problems := mustGet(s.Problems())(t); slices.ContainsFunc(problems, func(p session.Problem) bool { return p.Kind == session.ProblemBlob }) {
		t.Errorf("%v", problems)
	}
}
