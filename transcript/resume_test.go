package transcript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// going is the toy format whose reader goes on where it stood. It counts the
// lines that it reads.
func going(read *int) *transcript.Format {
	f := toy()
	f.Read = func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
		resumer := to.(transcript.Resumer)
		pos, no, state := resumer.Saved()
		if state != nil {
			if err := to.Begin(transcript.Conversation{ID: string(bytes.Trim(state, `"`))}); err != nil {
				return err
			}
		}
		conv := string(bytes.Trim(state, `"`))
		for l, err := range f.LinesFrom(ctx, pos, no) {
			if err != nil {
				return err
			}
			if l.Torn {
				break
			}
			*read++
			var t toyLine
			if json.Unmarshal(l.Data, &t) == nil && t.Conv != "" {
				conv = t.Conv
			}
			if err := readToy(l, to); err != nil {
				return err
			}
			pos, no = l.Pos+l.Len, l.No
		}
		if conv != "" {
			resumer.Save(pos, no, json.RawMessage(`"`+conv+`"`))
		}
		return nil
	}
	return f
}

func TestResume(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	read := 0
	list := []toyLine{{Conv: "c"}, said("1", "one"), said("2", "two")}
	file := toyFile(t, lines(list...)+`{"torn`)
	h.bringAs(going(&read), file)
	list = append(list, said("3", "three"))
	rewrite(t, file, lines(list...))
	report := h.bringAs(going(&read), file)
	if read != 4 || report.New() != 1 || path(t, h.open(toyID("c"))) != "one two three" {
		t.Errorf("%d lines were read, %+v", read, report.Sessions)
	}
	// Lines of which nothing is made are kept, and the leaf stays.
	rewrite(t, file, lines(list...)+lines(toyLine{Conv: "c"}))
	h.bringAs(going(&read), file)
	if s := h.open(toyID("c")); s.LeafID() != "3" || read != 5 {
		t.Errorf("the leaf is %q after %d lines", s.LeafID(), read)
	}
	rewrite(t, file, lines(list...)+lines(toyLine{Conv: "c"}, said("4", "four")))
	h.bringAs(going(&read), file)
	if s := h.open(toyID("c")); path(t, s) != "one two three four" || read != 6 {
		t.Errorf("the path is %q after %d lines", path(t, s), read)
	}
	healthy(t, h.open(toyID("c")))
}

// TestResumeFromTheBeginning: when the place cannot be trusted, all is read.
func TestResumeFromTheBeginning(t *testing.T) {
	t.Parallel()
	first := lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two"))
	for name, spoil := range map[string]func(h *home) string{
		"what was read is another": func(*home) string { return strings.Replace(first, "one", "eno", 1) },
		"it is shorter":            func(*home) string { return lines(toyLine{Conv: "c"}) },
		"the session is gone": func(h *home) string {
			if err := h.st.Remove(context.Background(), toyID("c")); err != nil {
				t.Fatal(err)
			}
			return first
		},
		"it is to be read again": func(h *home) string { h.im.Again = true; return first },
	} {
		h := newHome(t)
		read := 0
		file := toyFile(t, first)
		h.bringAs(going(&read), file)
		read = 0
		text := spoil(h) + lines(said("3", "three"))
		rewrite(t, file, text)
		h.bringAs(going(&read), file)
		if want := strings.Count(text, "\n"); read != want {
			t.Errorf("%s: %d lines were read of %d", name, read, want)
		}
	}
}

// document is a format whose file is one document: a list of toy lines.
func document() *transcript.Format {
	return &transcript.Format{Name: "toy", Title: "Document", Read: func(_ context.Context, f *transcript.File, to transcript.Sink) error {
		data, err := f.ReadAll()
		if err != nil {
			return err
		}
		pos, no := int64(0), int64(0)
		for text := range bytes.Lines(data) {
			no++
			l := transcript.Line{Data: bytes.TrimSpace(text), No: no, Span: transcript.Span{Pos: pos, Len: int64(len(text))}}
			pos += l.Len
			if err := readToy(l, to); err != nil {
				return err
			}
		}
		return nil
	}}
}

func TestImportDocument(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	list := []toyLine{{Conv: "c"}}
	for i := range 10 {
		list = append(list, said(fmt.Sprint("id", i), noise(100_000+i)))
	}
	file := toyFile(t, lines(list...))
	h.bringAs(document(), file)
	pieces := len(customs(t, h.open(toyID("c")), transcript.CustomImport))
	list = append(list, said("new", "more"))
	rewrite(t, file, lines(list...))
	h.bringAs(document(), file)
	s := h.open(toyID("c"))
	healthy(t, s)
	if now := len(customs(t, s, transcript.CustomImport)); pieces < 4 || now != pieces+1 {
		t.Errorf("%d pieces became %d", pieces, now)
	}
	for _, l := range list[1:] { // some of them stand in two pieces
		e, err := s.Entry(l.ID)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := transcript.Raw(context.Background(), h.st, s, &e)
		if err != nil || string(raw) != lines(l) {
			t.Errorf("%s: %d bytes, %v", l.ID, len(raw), err)
		}
	}
}

// TestImportReferences: what entries say of others is translated like their ids.
func TestImportReferences(t *testing.T) {
	t.Parallel()
	const odd = "an id with spaces"
	format := &transcript.Format{Name: "toy", Read: func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
		if err := to.Begin(transcript.Conversation{ID: "c", Created: toyTime, Leaf: odd + "9"}); err != nil {
			return err
		}
		text := func(s string) *session.MessageEntry {
			return &session.MessageEntry{Role: "user", Content: []session.Content{session.Text(s)}}
		}
		for i, e := range []session.Entry{
			{Type: session.TypeMessage, Message: text("one")},
			{Type: session.TypeMessage, Message: text("two")},
			{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: odd + "0", Label: "x"}},
			{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: odd + "1"}},
			{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "s", FirstKeptEntryID: odd + "1"}},
			{Type: session.TypeRevert, Revert: &session.RevertEntry{TargetID: odd + "3"}},
			{Type: session.TypeBranchSummary, BranchSummary: &session.BranchSummaryEntry{Summary: "b", FromID: odd + "1"}},
			{Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: odd + "1", Summary: "m", EntryIDs: []string{odd + "10"}}},
			{Type: session.TypeLeaf, Leaf: &session.LeafEntry{FromID: odd + "7"}},
			{Type: session.TypeMessage, Message: text("last")},
			{Type: session.TypeMessage, Message: text("aside")},
		} {
			record := transcript.Record{ID: fmt.Sprint(odd, i), Entry: e}
			if i == 10 {
				record.Parent = odd + "0"
			}
			if err := to.Add(record); err != nil {
				return err
			}
		}
		return nil
	}}
	h := newHome(t)
	if _, err := h.im.Import(context.Background(), format, transcript.FileOf("-", nil)); err != nil {
		t.Fatal(err)
	}
	s := h.open(toyID("c"))
	healthy(t, s)
	last, err := s.Entry(s.LeafID())
	if err != nil || last.Message.Content[0].Text.Content != "last" || !last.Timestamp.Equal(toyTime) {
		t.Errorf("the leaf is %+v, %v", last, err)
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil || c.Compaction == "" || len(c.Problems) > 0 {
		t.Errorf("the context is %+v, %v", c, err)
	}
}

// broken is a store in which something does not work.
type broken struct {
	store.Store
	create, put error
}

func (b broken) Create(ctx context.Context, name string, l iter.Seq2[[]byte, error]) (store.Log, error) {
	if b.create != nil {
		return nil, b.create
	}
	return b.Store.Create(ctx, name, l)
}

func (b broken) Blobs() store.Blobs { return brokenBlobs{b.Store.Blobs(), b.put} }

type brokenBlobs struct {
	store.Blobs
	put error
}

func (b brokenBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	if b.put != nil {
		return "", b.put
	}
	return b.Blobs.Put(ctx, data)
}

// TestImportFails: an error of the store ends the import, whoever waits for
// whom; afterwards importing again brings the rest.
func TestImportFails(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	list := []toyLine{{Conv: "c"}}
	for i := range 100 {
		list = append(list, said(fmt.Sprint("id", i), noise(200_000+i)))
	}
	file := toyFile(t, lines(list...))
	h := newHome(t)
	for name, st := range map[string]store.Store{
		"create": broken{h.st, full, nil}, "put": broken{h.st, nil, full},
	} {
		im := &transcript.Importer{Store: st}
		if _, err := im.Import(context.Background(), toy(), open(t, file)); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cut := &transcript.Importer{Store: h.st, Ledger: h.im.Ledger, Progress: func(int64) { cancel() }}
	if _, err := cut.Import(ctx, toy(), open(t, file)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	h.bring(file)
	s := h.open(toyID("c"))
	healthy(t, s)
	if n, err := s.MessageCount(); err != nil || n != 100 || s.LeafID() != "id99" {
		t.Errorf("%d messages, leaf %q, %v", n, s.LeafID(), err)
	}
}

// TestImporterClock: importing a conversation is not going on with it. What is
// said about it has the time of its newest record, and says when it was imported.
func TestImporterClock(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	h.im.Now = func() time.Time { return at }
	h.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"))))
	s := h.open(toyID("c"))
	newest, err := s.Entry("1")
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Entries() {
		if err != nil || e.Timestamp.After(newest.Timestamp) {
			t.Errorf("%s %s has the time %v (%v)", e.Type, e.ID, e.Timestamp, err)
		}
	}
	if got := customs(t, s, transcript.CustomImport)[0].Custom.Data["imported"]; got != "2030-01-01T00:00:00Z" {
		t.Errorf("imported at %v", got)
	}
}

// TestOnlyAHeader: another importer may have made the session and come no
// further. What is noted about it still hangs on the conversation.
func TestOnlyAHeader(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s, err := session.Create(context.Background(), d.st, session.Header{ID: toyID("c")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := toyFile(t, lines(toyLine{Conv: "c"}))
	d.bring(path)
	rewrite(t, path, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two")))
	d.bring(path)
	for e, err := range d.open(toyID("c")).Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.ParentID == nil && e.Message == nil {
			t.Errorf("%s is a root", e.ID)
		}
	}
}

// TestImportedCompactionNeverSeparatesACallFromItsResult: its cut is moved to the
// nearest before it that is legal. The report says so, and that everything was read.
func TestImportedCompactionNeverSeparatesACallFromItsResult(t *testing.T) {
	t.Parallel()
	said := func(role string, c session.Content) session.Entry {
		return session.Message(role, c)
	}
	compaction := func(firstKept string) session.Entry {
		return session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "s", FirstKeptEntryID: firstKept}}
	}
	for name, test := range map[string]struct {
		entries []session.Entry
		want    string // what it keeps from
	}{
		"between the two": {[]session.Entry{
			said("user", session.Text("one")), said("assistant", session.ToolUse("c", "n", nil)), said("tool", session.ToolResult("c", "r", false)),
			compaction("r2"), said("assistant", session.Text("done")),
		}, "r1"},
		"while the call waits": {[]session.Entry{
			said("user", session.Text("one")), said("assistant", session.ToolUse("c", "n", nil)), compaction(""),
			said("tool", session.ToolResult("c", "r", false)), said("assistant", session.Text("done")),
		}, "r1"},
	} {
		format := &transcript.Format{Name: "toy", Read: func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
			err := to.Begin(transcript.Conversation{ID: "c", Created: toyTime})
			for i, e := range test.entries {
				err = errors.Join(err, to.Add(transcript.Record{ID: fmt.Sprint("r", i), Entry: e}))
			}
			return err
		}}
		h := newHome(t)
		report, err := h.im.Import(t.Context(), format, transcript.FileOf("-", nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Sessions) != 1 || report.Sessions[0].ProblemCount != 0 || len(report.Sessions[0].Fidelity) != 1 || report.Sessions[0].Fidelity[0].N != 1 {
			t.Errorf("%s: the report is %+v", name, report)
		}
		s := h.open(toyID("c"))
		c, err := s.Context(session.ContextOptions{})
		if err != nil || len(c.Problems) > 0 || c.Compaction == "" {
			t.Errorf("%s: compaction %q, problems %v, %v", name, c.Compaction, c.Problems, err)
		}
		e, err := s.Entry(c.Compaction)
		if err != nil || e.Compaction.FirstKeptEntryID != test.want {
			t.Errorf("%s: it keeps from %q on, want %q (%v)", name, e.Compaction.FirstKeptEntryID, test.want, err)
		}
	}
}
