package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// desk exports sessions of a home.
type desk struct {
	*home
	x *transcript.Exporter
}

func newDesk(t *testing.T) *desk {
	h := newHome(t)
	env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
	return &desk{h, &transcript.Exporter{Env: env, Ledger: h.im.Ledger}}
}

// write exports a session.
func (d *desk) write(format *transcript.Format, id string, force bool) ([]string, error) {
	d.t.Helper()
	script, err := transcript.NewScript(d.open(id), format.Name, "", toyTime)
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := d.x.Prepare(context.Background(), format, script, func(path string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(d.x.Env.Home, path))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return data, err
	})
	if err != nil {
		return nil, err
	}
	return d.x.Publish(context.Background(), out, d.x.Env.Home, force)
}

func (d *desk) mustWrite(id string, force bool) []string {
	d.t.Helper()
	paths, err := d.write(toy(), id, force)
	if err != nil {
		d.t.Fatal(err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestScriptHasNoRemarks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c", Title: "T"}, said("1", "one"), said("2", "two"))))
	s, err := transcript.NewScript(d.open(toyID("c")), "toy", "1", toyTime)
	if err != nil {
		t.Fatal(err)
	}
	if s.NativeID != "c" || s.Name != "T" || s.Leaf != "1" || len(s.Path) != 1 || len(s.Context.Entries) != 1 {
		t.Errorf("the script is %+v", s)
	}
	for _, e := range s.All {
		if e.Custom != nil && strings.HasPrefix(e.Custom.CustomType, "coppice.") || len(e.Extra) > 0 {
			t.Errorf("the script has %+v", e)
		}
	}
	if other, err := transcript.NewScript(d.open(toyID("c")), "other", "", toyTime); err != nil || other.NativeID != "" {
		t.Errorf("in another format it has the id %q, %v", other.NativeID, err)
	}
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two"))))
	paths := d.mustWrite(toyID("c"), false)
	if got, want := read(t, paths[0]), lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two")); got != want {
		t.Errorf("written: %q", got)
	}
	if got := read(t, paths[1]); got != "c\n" {
		t.Errorf("the list is %q", got)
	}
	// It does not come back as another session, nor as a change of this one.
	if report := d.bring(paths[0]); !report.Unchanged {
		t.Errorf("imported again: %+v", report)
	}
	// When the program goes on with it, the session does.
	text := read(t, paths[0]) + lines(said("3", "three"))
	rewrite(t, paths[0], text)
	if report := d.bring(paths[0]); report.New() != 1 || report.Sessions[0].ID != toyID("c") {
		t.Errorf("imported after it grew: %+v", report.Sessions)
	}
	if got := path(t, d.open(toyID("c"))); got != "one two three" {
		t.Errorf("the path is %q", got)
	}
}

// TestExportedElsewhere: a session of our own is exported, and what the other
// program adds comes back to it. A file that only has its name does not.
func TestExportedElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s, err := session.Create(context.Background(), d.st, session.Header{ID: "own"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	paths := d.mustWrite("own", false)
	rewrite(t, paths[0], lines(toyLine{Conv: "exported-own"}, said(first, "hello, simplified"), said("new", "there")))
	if report := d.bring(paths[0]); report.New() != 1 || report.Sessions[0].ID != "own" {
		t.Errorf("the report is %+v", report.Sessions)
	}
	rewrite(t, paths[0], lines(toyLine{Conv: "exported-own"}, said("z", "somebody else")))
	if report := d.bring(paths[0]); report.New() != 1 || report.Sessions[0].ID != toyID("exported-own") {
		t.Errorf("the report is %+v", report.Sessions)
	}
}

// TestExportLosesSubagents: a format that has no place for the sessions that tool calls
// started loses them.
func TestExportLosesSubagents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"))))
	d.bring(toyFile(t, lines(toyLine{Conv: "kid", Parent: "c"}, said("2", "two"))))
	subagents := func(ctx context.Context, id string) ([]*session.Session, error) {
		if id != toyID("c") {
			return nil, nil
		}
		s, err := session.Open(ctx, d.st, toyID("kid"), nil)
		return []*session.Session{s}, err
	}
	for _, known := range []bool{false, true} {
		if d.x.Subagents = nil; known {
			d.x.Subagents = subagents
		}
		for _, to := range []transcript.Destination{{Path: t.TempDir()}, {Nowhere: true}} {
			done, err := d.x.Export(t.Context(), d.open(toyID("c")), toy(), to)
			if err != nil {
				t.Fatal(err)
			}
			if lost := slices.ContainsFunc(done.Losses, func(l transcript.Loss) bool { return l.What == "subagent" }); lost != known {
				t.Errorf("to %+v: the losses are %v", to, done.Losses)
			}
		}
	}
}

func TestExportRefusesToOverwrite(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"))))
	paths := d.mustWrite(toyID("c"), false)
	d.mustWrite(toyID("c"), false) // the same again is no harm
	if _, err := d.open(toyID("c")).AppendMessage(session.RoleUser, []session.Content{session.Text("more")}); err != nil {
		t.Fatal(err)
	}
	d.mustWrite(toyID("c"), false) // our own work may be replaced
	if !strings.Contains(read(t, paths[0]), "more") || strings.Contains(read(t, paths[0]+".bak"), "more") {
		t.Error("the file and its backup are not as they should be")
	}
	rewrite(t, paths[0], "somebody's work\n")
	if _, err := d.write(toy(), toyID("c"), false); !errors.Is(err, session.ErrExist) || read(t, paths[0]) != "somebody's work\n" {
		t.Errorf("overwriting: %v", err)
	}
	d.mustWrite(toyID("c"), true)
	if read(t, paths[0]+".bak") != "somebody's work\n" {
		t.Error("what was replaced is gone")
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(paths[0]), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestExportReadsBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*transcript.Output)
		want   string
	}{
		"a text is missing": {func(o *transcript.Output) {
			o.Files[0].Data = bytes.ReplaceAll(o.Files[0].Data, []byte("two"), []byte("TWO"))
		}, "a text is missing"},
		"said to be lost": {func(o *transcript.Output) {
			o.Files[0].Data = bytes.ReplaceAll(o.Files[0].Data, []byte("two"), []byte("TWO"))
			o.Losses = []transcript.Loss{{EntryID: "2", What: "text"}}
		}, ""},
		"garbage":         {func(o *transcript.Output) { o.Files[0].Data = append(o.Files[0].Data, "x\n"...) }, "line 4"},
		"no conversation": {func(o *transcript.Output) { o.Files[0].Data = nil }, "a text is missing"},
		"no place for it": {func(o *transcript.Output) {
			o.Files[0].Data, o.Losses = nil, []transcript.Loss{{EntryID: "1", What: "text"}, {EntryID: "2", What: "text"}}
		}, "nothing that"},
		"not to be read":     {func(o *transcript.Output) { o.Files[0].Data = []byte{0x1f, 0x8b, 0, 0} }, "cannot be read"},
		"leaves its place":   {func(o *transcript.Output) { o.Files[0].Path = "../x" }, "outside its directory"},
		"no files":           {func(o *transcript.Output) { o.Files = nil }, "nothing that"},
		"as it is":           {func(*transcript.Output) {}, ""},
		"joined to one text": {func(o *transcript.Output) { o.Files[0].Data = []byte(lines(toyLine{Conv: "c"}, said("1", "one\ntwo"))) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two"))))
			format := toy()
			format.Write = func(ctx context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
				out, err := writeToy(ctx, s, env)
				test.change(out)
				return out, err
			}
			_, err := d.write(format, toyID("c"), false)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if _, found := os.Stat(filepath.Join(d.x.Env.Home, "toys")); test.want != "" && found == nil {
				t.Error("something was published")
			}
		})
	}
}

// TestScriptHangsTogether: what hung on an import's note hangs on what that hung
// on.
func TestScriptHangsTogether(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s, err := session.Create(context.Background(), d.st, session.Header{ID: "own"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.AppendCustomEntry(transcript.CustomImport, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("hi")}); err != nil {
		t.Fatal(err)
	}
	script, err := transcript.NewScript(s, "toy", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, entries := range [][]session.Entry{script.All, script.Path} {
		if len(entries) != 2 || entries[1].ParentID == nil || *entries[1].ParentID != first {
			t.Errorf("the entries are %+v", entries)
		}
	}
}

// TestExportMissesCalls: a call that got lost is noticed, one whose name had to be
// changed is not lost.
func TestExportMissesCalls(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s, err := session.Create(context.Background(), d.st, session.Header{ID: "own"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("x"), session.ToolUse("c", "a.b", nil)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "call of a.b is missing", "a_b": ""} {
		format := toy()
		format.Read = func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
			m := &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("x")}}
			if name != "" {
				m.Content = append(m.Content, session.ToolUse("c", name, nil))
			}
			return errors.Join(to.Begin(transcript.Conversation{ID: "c"}), to.Add(transcript.Record{Entry: session.Entry{Type: session.TypeMessage, Message: m}}))
		}
		_, err := d.write(format, "own", true)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

func TestExportErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"))))
	format := toy()
	format.Write = nil
	if _, err := d.write(format, toyID("c"), false); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a format without a writer: %v", err)
	}
	boom := errors.New("boom")
	format.Write = func(context.Context, *transcript.Script, transcript.Env) (*transcript.Output, error) {
		return nil, boom
	}
	if _, err := d.write(format, toyID("c"), false); !errors.Is(err, boom) {
		t.Errorf("a writer that fails: %v", err)
	}
	rewrite(t, filepath.Join(d.x.Env.Home, "list"), "broken")
	if _, err := d.write(toy(), toyID("c"), false); err == nil || !strings.Contains(err.Error(), "the list is broken") {
		t.Errorf("a shared file that is broken: %v", err)
	}
	if _, err := transcript.NewScript(d.open(toyID("c")), "toy", "none", time.Now()); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("no such leaf: %v", err)
	}
}

// Nobody knows the format of every file: that is an error, wherever a format is
// asked for.
func TestNoFormat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := transcript.FileOf("x", []byte("nothing that anybody knows"))
	im := transcript.Importer{Store: d.st}
	if report, err := im.Import(t.Context(), nil, f); !errors.Is(err, session.ErrInvalid) || report == nil {
		t.Errorf("import: %v, %v", report, err)
	}
	if _, err := im.Import(t.Context(), &transcript.Format{Name: "w"}, f); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("import of what cannot be read: %v", err)
	}
	if _, err := transcript.Collect(t.Context(), nil, f); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("collect: %v", err)
	}
	x := &transcript.Exporter{}
	if _, err := x.Prepare(t.Context(), nil, &transcript.Script{}, nil); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("prepare: %v", err)
	}
	if _, err := x.Publish(t.Context(), &transcript.Output{}, t.TempDir(), false); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("publish: %v", err)
	}
}

// Who does not say what is there now says that there is nothing.
func TestPrepareWithoutOldFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"))))
	s, err := transcript.NewScript(d.open(toyID("c")), "toy", "", toyTime)
	if err != nil {
		t.Fatal(err)
	}
	out, err := (&transcript.Exporter{}).Prepare(t.Context(), toy(), s, nil)
	if err != nil || len(out.Files) != 2 {
		t.Errorf("prepared %v, %v", out, err)
	}
}

func TestExportClean(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "hunter2"), said("2", "two"))))
	d.x.Clean = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("-")) }
	paths := d.mustWrite(toyID("c"), false)
	if got := read(t, paths[0]); strings.Contains(got, "hunter2") || strings.Count(got, "\n") != 3 {
		t.Errorf("written: %q", got)
	}
}

// A list of conversations never names one that is not there yet.
func TestPublishListsAfterTheConversation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bring(toyFile(t, lines(toyLine{Conv: "c", Title: "T"}, said("1", "one"))))
	script, err := transcript.NewScript(d.open(toyID("c")), "toy", "", toyTime)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.x.Prepare(t.Context(), toy(), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out.Files = []transcript.OutputFile{
		{Path: "c.json", Data: []byte("new")},
		{Path: "index.json", Data: []byte("new list"), Merge: func([]byte) ([]byte, error) { return nil, nil }},
	}
	list, inTheWay := filepath.Join(dir, "index.json"), filepath.Join(dir, "c.json.bak")
	for path, text := range map[string]string{filepath.Join(dir, "c.json"): "old", list: "old list"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.x.Publish(t.Context(), out, dir, true); err == nil {
		t.Error("a backup was written over a directory")
	}
	if got := read(t, list); got != "old list" {
		t.Errorf("the list says %q although the conversation was not written", got)
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if _, err := d.x.Publish(t.Context(), out, dir, true); err != nil {
		t.Fatal(err)
	}
	if got := read(t, list); got != "new list" {
		t.Errorf("the list says %q", got)
	}
}

// The command that goes on with an export works from wherever it is typed.
func TestResumeNamesTheDirectory(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"/w": "cd /w && toy ", "/my dir/it's": `cd '/my dir/it'\''s' && toy `, "": "toy "} {
		d := newDesk(t)
		s, err := session.Create(t.Context(), d.st, session.Header{ID: "s", CWD: dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")}); err != nil {
			t.Fatal(err)
		}
		done, err := d.x.Export(t.Context(), s, toy(), transcript.Destination{})
		if err != nil || !strings.HasPrefix(done.Resume, want) {
			t.Errorf("in %q: %+v, %v; want %s…", dir, done, err, want)
		}
	}
}
