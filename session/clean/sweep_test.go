package clean_test

import (
	"bytes"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// grep returns the files below a directory that have a text in them, compressed
// or not.
func grep(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			data = []byte(unpack(t, data))
		}
		if bytes.Contains(data, []byte(text)) {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fixture is a store that is full of secrets.
type fixture struct {
	*testing.T
	st   *file.Store
	opts session.Options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &fixture{t, st, session.Options{BlobThreshold: 200}}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// session makes a session with the given entries.
func (f *fixture) session(id string, entries ...session.Entry) {
	f.Helper()
	s, err := session.Create(f.Context(), f.st, session.Header{ID: id}, &f.opts)
	f.must(err)
	_, err = s.AppendAll(entries...)
	f.must(err)
	f.must(s.Close())
}

func message(text string) session.Entry {
	return session.Message("user", session.Text(text))
}

func result(text string) session.Entry {
	return session.Message("tool", session.ToolResult("c", text, false))
}

func (f *fixture) look(names ...string) *clean.Sweep {
	f.Helper()
	s, err := clean.Look(f.Context(), f.st, names...)
	f.must(err)
	return s
}

func (f *fixture) apply(s *clean.Sweep) *clean.Receipt {
	f.Helper()
	r, err := s.Apply(f.Context())
	f.must(err)
	return r
}

// texts returns all that a session says, in order.
func (f *fixture) texts(id string) []string {
	f.Helper()
	s, err := session.Open(f.Context(), f.st, id, nil)
	f.must(err)
	defer s.Close()
	var all []string
	for e, err := range s.Entries() {
		f.must(err)
		if e.Message == nil {
			continue
		}
		for _, c := range e.Message.Content {
			switch {
			case c.Text != nil:
				all = append(all, c.Text.Content)
			case c.ToolResult != nil:
				if c.ToolResult.Blob != "" && c.ToolResult.Size != int64(len(c.ToolResult.Content)) {
					f.Errorf("the log says %d bytes, the blob has %d", c.ToolResult.Size, len(c.ToolResult.Content))
				}
				all = append(all, c.ToolResult.Content)
			}
		}
	}
	problems, err := s.Problems()
	f.must(err)
	for _, p := range problems {
		if p.Kind != session.ProblemOrphan { // results without calls are all that the fixture has
			f.Errorf("problem %v", p)
		}
	}
	return all
}

// Everything that a store has of a session is cleaned: the log, the blobs, what
// was kept of its source, the trash, the quarantine, the backup.
func TestSweepOne(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		f := newFixture(t)
		secret, password := token(1), "kX9#mQ2$vL"
		long := strings.Repeat("line of output\n", 30) + "key " + secret
		source := `{"line":"` + secret + `"}` + "\n" + strings.Repeat("more\n", 1000)
		ref, err := f.st.Blobs().Put(t.Context(), pack(t, source))
		f.must(err)
		imported := func(data map[string]any) session.Entry {
			data["encoding"], data["from"], data["len"], data["sha256"] = "zstd", 0, len(source), strings.Repeat("0", 64)
			return session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "coppice.import", Data: data}}
		}
		entries := []session.Entry{
			message("DB_PASSWORD=" + password), message("bare " + password), result(long), result("short " + secret),
			imported(map[string]any{"blob": string(ref)}), imported(map[string]any{"data": base64.StdEncoding.EncodeToString(pack(t, source))}),
		}
		f.session("one", entries...)
		f.must(f.st.Remove(t.Context(), "one"))
		f.session("one", entries...)
		f.must(os.WriteFile(f.st.Path("one")+".bak", []byte(`{"torn":"`+secret), 0o600))
		raw, err := f.st.OpenRaw(t.Context(), "one")
		f.must(err)
		_, err = raw.Rewrite(t.Context(), func(yield func(store.Piece, error) bool) { yield(store.Piece{To: store.Pos(raw.Size())}, nil) })
		f.must(err)
		f.must(raw.Close())
		if archived {
			f.must(f.st.Archive(t.Context(), "one"))
		}
		ledger := filepath.Join(f.st.Where(), ".coppice", "imports", "x.json")
		f.must(os.MkdirAll(filepath.Dir(ledger), 0o700))
		f.must(os.WriteFile(ledger, []byte(`{"chunks":[{"blob":"`+string(ref)+`"}],"state":"`+secret+`"}`), 0o600))
		modTime := func() time.Time {
			info, err := os.Stat(f.st.Path("one"))
			if err != nil {
				return time.Time{}
			}
			return info.ModTime()
		}

		before := modTime()
		sweep := f.look("one")
		if modTime() != before || len(grep(t, f.st.Where(), secret)) < 5 {
			t.Fatal("looking has changed something")
		}
		var places []string
		for _, s := range sweep.Secrets {
			if s.Session != "one" || s.Preview == "" || strings.Contains(s.Preview, secret) {
				t.Errorf("%+v", s)
			}
			if s.File == "" {
				places = append(places, s.Path+" "+s.Kind)
			}
		}
		want := []string{
			"message.content[0].text.content password", "message.content[0].text.content password", "message.content[0].tool_result.blob github-token",
			"message.content[0].tool_result.content github-token", "custom.data.blob github-token", "custom.data.data github-token",
		}
		if diff := cmp.Diff(want, places); diff != "" {
			t.Errorf("places (-want +got)\n%s", diff)
		}

		receipt := f.apply(sweep)
		if len(receipt.Left) > 0 || len(receipt.Blobs) != 2 || len(receipt.Removed) != 2 || len(receipt.Copies) != 4 || !slices.Equal(receipt.Sessions, []string{"one"}) {
			t.Errorf("the receipt is %+v", receipt)
		}
		for _, s := range []string{secret, password, string(ref)} {
			if where := grep(t, f.st.Where(), s); len(where) > 0 {
				t.Errorf("%s is in %v", s, where)
			}
		}
		wantTexts := []string{"DB_PASSWORD=[REDACTED:password]", "bare [REDACTED:password]", strings.ReplaceAll(long, secret, gone), "short " + gone}
		if diff := cmp.Diff(wantTexts, f.texts("one")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if _, err := os.Stat(f.st.Path("one")); archived != (err != nil) {
			t.Errorf("archived %v, but the plain file: %v", archived, err)
		}
		f.checkKept("one", len(source))
		if again := f.look("one"); len(again.Secrets) > 0 {
			t.Errorf("looking again finds %+v", again.Secrets)
		}
		if r := f.apply(f.look("one")); len(r.Sessions) > 0 {
			t.Errorf("applying nothing did %+v", r)
		}
	}
}

// checkKept makes sure that the entries of an import still describe what is kept.
func (f *fixture) checkKept(id string, size int) {
	f.Helper()
	s, err := session.Open(f.Context(), f.st, id, nil)
	f.must(err)
	defer s.Close()
	n := 0
	for e, err := range s.Entries() {
		f.must(err)
		if e.Custom == nil {
			continue
		}
		var packed []byte
		if ref, ok := e.Custom.Data["blob"].(string); ok {
			packed, err = f.st.Blobs().Get(f.Context(), store.Ref(ref))
		} else {
			packed, err = base64.StdEncoding.DecodeString(e.Custom.Data["data"].(string))
		}
		f.must(err)
		plain := unpack(f.T, packed)
		if len(plain) != size || "sha256:"+e.Custom.Data["sha256"].(string) != string(store.RefOf([]byte(plain))) {
			f.Errorf("%d bytes are kept, and described as %v", len(plain), e.Custom.Data)
		}
		n++
	}
	if n != 2 {
		f.Errorf("%d pieces of the source are kept", n)
	}
}

// What other sessions need stays, and is said.
func TestSweepSharedBlob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(4)
	long := strings.Repeat("line of output\n", 30) + "key " + secret
	f.session("one", result(long))
	f.session("two", result(long), message("also "+secret))
	f.session("three", message("nothing"))
	r := f.apply(f.look("one"))
	var left []string
	for _, l := range r.Left {
		left = append(left, l.Session+" "+filepath.Base(filepath.Dir(filepath.Dir(l.Path))))
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"two " + filepath.Base(filepath.Dir(f.st.Where())), "two blobs"}, left); diff != "" || len(r.Removed) > 0 {
		t.Errorf("left (-want +got)\n%s\n%+v", diff, r)
	}
	if got := f.texts("two"); got[0] != long {
		t.Errorf("the other session became %q", got)
	}
	r = f.apply(f.look())
	if len(r.Left) > 0 || len(r.Removed) != 1 || !slices.Equal(r.Sessions, []string{"two"}) {
		t.Errorf("then %+v", r)
	}
	if where := grep(t, f.st.Where(), secret); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
}

// An Apply that did not come to its end is completed by the next.
func TestSweepAfterACrash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(5)
	f.session("one", result(strings.Repeat("line of output\n", 30)+secret))
	var ref store.Ref
	for r, err := range f.st.Blobs().All(t.Context()) {
		f.must(err)
		ref = r
	}
	data, err := f.st.Blobs().Get(t.Context(), ref)
	f.must(err)
	f.apply(f.look("one"))
	// As if the machine had stopped before the blob was deleted:
	_, err = f.st.Blobs().Put(t.Context(), data)
	f.must(err)
	note, err := json.Marshal([]store.Ref{ref, "nonsense"})
	f.must(err)
	f.must(os.WriteFile(filepath.Join(f.st.Where(), ".coppice", "redact.pending"), note, 0o600))
	if r := f.apply(f.look("one")); len(r.Removed) != 1 {
		t.Errorf("the receipt is %+v", r)
	}
	if where := grep(t, f.st.Where(), secret); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
	if _, err := os.Stat(filepath.Join(f.st.Where(), ".coppice", "redact.pending")); err == nil {
		t.Error("the note is still there")
	}
	f.must(os.WriteFile(filepath.Join(f.st.Where(), ".coppice", "redact.pending"), []byte("{"), 0o600))
	if _, err := clean.Look(t.Context(), f.st, "one"); err == nil {
		t.Error("a note that cannot be read was passed over")
	}
}

// A blob that somebody may be about to name stays, and the receipt says so; the
// next Apply deletes it.
func TestSweepBesideAHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(7)
	f.session("one", result(strings.Repeat("line of output\n", 30)+secret))
	impatient, err := file.Open(f.st.Where(), &file.Options{LockWait: 20 * time.Millisecond})
	f.must(err)
	defer impatient.Close()
	release, err := f.st.Blobs().Hold(t.Context())
	f.must(err)
	defer release()
	sweep, err := clean.Look(t.Context(), impatient)
	f.must(err)
	r, err := sweep.Apply(t.Context())
	f.must(err)
	if len(r.Removed) != 0 || len(r.Left) != 1 || len(r.Blobs) != 1 {
		t.Errorf("the receipt is %+v", r)
	}
	if where := grep(t, f.st.Where(), secret); len(where) != 1 || !strings.Contains(where[0], "blobs") {
		t.Errorf("it is in %v", where)
	}
	release()
	if r := f.apply(f.look()); len(r.Removed) != 1 || len(r.Left) != 0 {
		t.Errorf("the second receipt is %+v", r)
	}
	if where := grep(t, f.st.Where(), secret); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
	if _, err := os.Stat(filepath.Join(f.st.Where(), ".coppice", "redact.pending")); err == nil {
		t.Error("the note is still there")
	}
}

// Files that writers have left are deleted when they are old, and named when they
// may be in use.
func TestSweepTemporaryFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(6)
	f.session("one", message(secret))
	tmp := filepath.Join(f.st.Where(), ".coppice", "tmp")
	// Files are searched a part at a time; the secret stands where parts may meet.
	for name, before := range map[string]int{"old": 1<<20 - 10, "new": 1<<20 + 6*len(secret) - 10} {
		f.must(os.WriteFile(filepath.Join(tmp, name), []byte(strings.Repeat("x", before)+secret+strings.Repeat("x", 1<<20)), 0o600))
	}
	stray, err := f.st.Blobs().Put(t.Context(), []byte("stray "+secret))
	f.must(err)
	past := time.Now().Add(-2 * time.Hour)
	f.must(os.Chtimes(filepath.Join(tmp, "old"), past, past))
	r := f.apply(f.look("one"))
	digits, _ := stray.Hex()
	blob := filepath.Join(f.st.Where(), ".coppice", "blobs", digits[:2], digits) // which nobody is about to name: nobody holds it
	if !slices.Equal(r.Removed, []string{filepath.Join(tmp, "old"), blob}) || len(r.Left) != 1 {
		t.Errorf("the receipt is %+v", r)
	}
	_, err = f.st.Blobs().Put(t.Context(), []byte("stray "+secret))
	f.must(err)
	f.must(os.Remove(filepath.Join(tmp, "new")))
	f.session("two", message(secret))
	if r := f.apply(f.look("two")); len(r.Removed) != 1 || len(r.Left) > 0 {
		t.Errorf("then %+v", r)
	}
}

// Damaged lines are text, and are cleaned as such; a line that is too long is
// named.
func TestSweepDamage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(7)
	f.session("one", message("a "+secret))
	data, err := os.ReadFile(f.st.Path("one"))
	f.must(err)
	f.must(os.WriteFile(f.st.Path("one"), append(data, []byte("damaged "+secret+"\n\n"+`{"torn":"`+secret)...), 0o600))
	if r := f.apply(f.look("one")); len(r.Left) > 0 || r.Kinds["github-token"] != 3 {
		t.Errorf("the receipt is %+v", r)
	}
	after, err := os.ReadFile(f.st.Path("one"))
	f.must(err)
	if strings.Count(string(after), gone) != 3 || strings.Contains(string(after), secret) {
		t.Errorf("the log is %s", after)
	}
	if !strings.Contains(strings.SplitN(string(after), "\n", 2)[0], `"redacted":"2`) {
		t.Errorf("the header does not tell: %s", after)
	}
	small, err := file.Open(f.st.Where(), &file.Options{MaxLine: 400})
	f.must(err)
	defer small.Close()
	f.session("two", message(strings.Repeat("x ", 300)+secret), message(secret))
	sweep, err := clean.Look(t.Context(), small, "two")
	f.must(err)
	r := f.apply(sweep)
	if len(r.Left) != 2 || !strings.Contains(r.Left[0].Why, "longer than the limit") || !strings.Contains(r.Left[1].Why, "the same secret") {
		t.Errorf("the receipt is %+v", r)
	}
}

// A copy that somebody compressed and left beside the sessions is named.
func TestSweepNamesCompressedCopies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(4)
	f.session("one", message("key "+secret))
	text, err := os.ReadFile(f.st.Path("one"))
	f.must(err)
	pack := func(name string, text []byte) string {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(text)
		f.must(errors.Join(err, w.Close()))
		path := filepath.Join(f.st.Where(), name)
		f.must(os.WriteFile(path, packed.Bytes(), 0o600))
		return path
	}
	want := []string{pack("one.jsonl.gz", text), pack("two.jsonl.gz", append(bytes.Repeat([]byte("x\n"), 2<<20), text...))}
	pack("other.gz", []byte("nothing"))
	f.must(os.WriteFile(filepath.Join(f.st.Where(), "broken.gz"), []byte("\x1f\x8b\x08 not really"), 0o600))
	var left []string
	for _, l := range f.apply(f.look()).Left {
		left = append(left, l.Path)
	}
	if slices.Sort(left); !slices.Equal(left, want) {
		t.Errorf("left is %v, want %v", left, want)
	}
}

// Whoever has the session open cannot write to places that have moved.
func TestSweepUnderAnOpenSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("a "+token(8)))
	s, err := session.Open(t.Context(), f.st, "one", nil)
	f.must(err)
	defer s.Close()
	f.apply(f.look("one"))
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("x")}); err == nil {
		t.Error("it was written to")
	}
	if got := f.texts("one"); !slices.Equal(got, []string{"a " + gone}) {
		t.Errorf("it reads %q", got)
	}
}

// What cannot be read is named, and the rest is cleaned.
func TestSweepUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(10)
	f.session("one", message(secret))
	f.session("two", message(secret))
	f.must(f.st.Archive(t.Context(), "two"))
	archive := filepath.Join(f.st.Where(), ".coppice", "archive", "two.jsonl.zst")
	f.must(os.WriteFile(archive, []byte("damaged"), 0o600))
	trashed := filepath.Join(f.st.Where(), ".coppice", "quarantine", "one.0.1.replaced.zst")
	f.must(os.MkdirAll(filepath.Dir(trashed), 0o700))
	f.must(os.WriteFile(trashed, append([]byte{0x28, 0xb5, 0x2f, 0xfd}, secret...), 0o600))
	sweep := f.look()
	if len(sweep.Unread) != 2 || len(sweep.Secrets) != 1 {
		t.Errorf("unread %+v, secrets %+v", sweep.Unread, sweep.Secrets)
	}
	if r := f.apply(sweep); len(r.Left) != 2 || !slices.Equal(r.Sessions, []string{"one"}) {
		t.Errorf("the receipt is %+v", r)
	}
}

// A part of an archive may be damaged, so that nobody knows what it has.
func TestSweepDamagedArchive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	noise := func() session.Entry {
		data := make([]byte, 600<<10)
		crand.Read(data)
		return message(base64.StdEncoding.EncodeToString(data)[:700<<10])
	}
	f.session("one", noise(), noise(), noise(), noise())
	f.must(f.st.Archive(t.Context(), "one"))
	archive := filepath.Join(f.st.Where(), ".coppice", "archive", "one.jsonl.zst")
	data, err := os.ReadFile(archive)
	f.must(err)
	clear(data[len(data)/2 : len(data)/2+100])
	f.must(os.WriteFile(archive, data, 0o600))
	sweep := f.look()
	if len(sweep.Unread) != 1 || sweep.Unread[0].Session != "one" {
		t.Errorf("unread %+v, want the archive", sweep.Unread)
	}
	if r := f.apply(sweep); len(r.Left) != 1 {
		t.Errorf("the receipt is %+v, and does not name the archive", r)
	}
}

// Cleaning loses nothing that others write meanwhile.
func TestSweepBesideAWriter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(11)
	f.session("one", message(secret))
	done := make(chan []string)
	go func() {
		var ids []string
		for len(ids) < 40 {
			s, err := session.Open(t.Context(), f.st, "one", &f.opts)
			if err != nil {
				continue
			}
			for err == nil && len(ids) < 40 {
				var id string
				if id, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("more " + secret)}); err == nil {
					ids = append(ids, id)
				}
			}
			s.Close()
		}
		done <- ids
	}()
	var ids []string
	for ids == nil {
		f.apply(f.look("one"))
		select {
		case ids = <-done:
		default:
		}
	}
	f.apply(f.look("one"))
	s, err := session.Open(t.Context(), f.st, "one", nil)
	f.must(err)
	defer s.Close()
	for _, id := range ids {
		if e, err := s.Entry(id); err != nil || e.Message.Content[0].Text.Content != "more "+gone {
			t.Errorf("entry %s: %v", id, err)
		}
	}
	if where := grep(t, f.st.Where(), secret); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
}

// Content that is no text, or not what it seems, stays as it is.
func TestSweepBinary(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(12)
	binary := base64.StdEncoding.EncodeToString([]byte("\x00\x01" + secret + strings.Repeat("x", 300)))
	packed := base64.StdEncoding.EncodeToString(append([]byte{0x28, 0xb5, 0x2f, 0xfd}, strings.Repeat("no zstd", 60)...))
	image := func(data string) session.Entry {
		return session.Message("user", session.Image("image/png", data))
	}
	odd := session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "coppice.import", Data: map[string]any{"data": "not base64!"}}}
	gone := session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "x", Data: map[string]any{"blob": "sha256:" + strings.Repeat("0", 64)}}}
	f.session("one", image(binary), image(packed), odd, gone)
	if sweep := f.look("one"); len(sweep.Secrets) > 0 || len(sweep.Unread) > 0 {
		t.Errorf("found %+v, %+v", sweep.Secrets, sweep.Unread)
	}
	f.session("two", message(secret)) // now its value is known
	r := f.apply(f.look())
	if len(r.Left) != 1 || r.Left[0].Session != "one" || len(r.Blobs) > 0 {
		t.Errorf("the receipt is %+v", r)
	}
}

// A sweep that finds nothing leaves the note of another alone that has begun meanwhile.
func TestApplyNothingBesideAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("nothing"))
	sweep := f.look("one")
	f.must(f.st.Notes("").Write(t.Context(), store.PendingNote, []byte(`{"blobs":null,"all":true}`)))
	f.apply(sweep)
	if left, err := clean.Unfinished(t.Context(), f.st); err != nil || !left {
		t.Errorf("the other sweep is forgotten: %v", err)
	}
}

// Interrupted or overtaken by others, Apply leaves a store that is whole, and the
// next does what is left.
func TestApplyInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := token(13)
	f.session("one", message("a"), message(secret), message("b"), message("c"), result(strings.Repeat("x ", 200)+secret))
	f.must(f.st.Remove(t.Context(), "one"))
	f.session("one", message("a"), message(secret), message("b"), message("c"), result(strings.Repeat("x ", 200)+secret))
	f.session("two", message(secret))
	sweep := f.look("one", "two")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := sweep.Apply(canceled); !errors.Is(err, context.Canceled) || len(r.Kinds) > 0 || len(r.Sessions) > 0 {
		t.Errorf("got %v, %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join(f.st.Where(), ".coppice", "redact.pending")); err != nil {
		t.Errorf("what is to be done was not noted: %v", err)
	}
	if _, err := clean.Look(canceled, f.st, "one"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := f.texts("one"); got[1] != secret {
		t.Errorf("it reads %q", got)
	}
	_, err := f.st.Trash().Empty(t.Context(), time.Now())
	f.must(err)
	f.must(f.st.Remove(t.Context(), "two"))
	_, err = f.st.Trash().Empty(t.Context(), time.Now())
	f.must(err)
	r, err := sweep.Apply(t.Context())
	// The other session is gone, and was not rewritten.
	if !errors.Is(err, store.ErrNotExist) || !slices.Equal(r.Sessions, []string{"one"}) || !maps.Equal(r.Kinds, map[string]int{"github-token": 3}) {
		t.Errorf("got %v, %+v", err, r)
	}
	if diff := cmp.Diff([]string{"a", gone, "b", "c", strings.Repeat("x ", 200) + gone}, f.texts("one")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if where := grep(t, f.st.Where(), secret); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
}

// A password that is a word is taken out where it is one, and the word stays.
func TestSweepPlainWord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("redis://:butterflies@cache:6379"), message("butterflies are insects"))
	r := f.apply(f.look("one"))
	if got := f.texts("one"); !slices.Equal(got, []string{"redis://:[REDACTED:url-password]@cache:6379", "butterflies are insects"}) || len(r.Left) > 0 {
		t.Errorf("it reads %q; %+v", got, r)
	}
}

func TestLookFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := clean.Look(t.Context(), f.st, "nothing"); err == nil {
		t.Error("a session that does not exist was looked at")
	}
	f.session("one", message(token(9)))
	sweep := f.look("one")
	f.must(f.st.Remove(t.Context(), "one"))
	if _, err := sweep.Apply(t.Context()); err == nil {
		t.Error("a session that was removed was changed")
	}
	f.must(f.st.Close())
	if _, err := clean.Look(t.Context(), f.st); err == nil {
		t.Error("a closed store was looked at")
	}
}
