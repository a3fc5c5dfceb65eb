package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
)

func toyFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.toy")
	rewrite(t, path, text)
	return path
}

// rewrite changes a file and makes it look old, so that its time tells.
func rewrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour).Add(time.Duration(len(text)) * time.Millisecond)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	text := lines(
		toyLine{Conv: "c1", Title: "Talk", Tags: []string{"b", "a"}},
		said("1", "one"), said("2", "two"), toyLine{ID: "3", After: "1", Text: "three"},
		toyLine{ID: "1", Label: "start"},
		toyLine{Conv: "c2", Parent: "c1"}, said("1", "other"), said("bad id", "odd"),
		toyLine{Conv: "c1", Leaf: "3"},
	)
	file := toyFile(t, text)
	report := h.bring(file)
	if len(report.Sessions) != 2 || report.New() != 6 || report.Bytes != int64(len(text)) {
		t.Errorf("the report is %+v", report)
	}
	s := h.open(toyID("c1"))
	if got, want := tree(t, s), "1<-:one 2<1:two 3<1:three"; got != want {
		t.Errorf("the tree is %q, want %q", got, want)
	}
	if s.LeafID() != "3" || path(t, s) != "one three" {
		t.Errorf("the leaf is %q", s.LeafID())
	}
	head := s.Header()
	if head.Key != "toy:c1" || head.CWD != "/w" || !head.CreatedAt.Equal(toyTime.Add(2*time.Second)) {
		t.Errorf("the header is %+v", head)
	}
	name, err := s.Name()
	found, _ := s.Remarks()
	labels, _ := s.Labels()
	if err != nil || name != "Talk" || strings.Join(found.Tags, " ") != "a b" || labels["1"] != "start" {
		t.Errorf("name %q, tags %q, labels %q, %v", name, found.Tags, labels, err)
	}
	healthy(t, s)
	child := h.open(toyID("c2"))
	if head := child.Header(); head.ParentSession != toyID("c1") || head.Relation != session.RelationSubagent || !strings.Contains(string(head.Extra[0].Value), `"parent_call":"call"`) {
		t.Errorf("the child's header is %+v", head)
	}
	healthy(t, child)
	fidelity := customs(t, s, transcript.CustomFidelity)
	if len(fidelity) != 1 || fidelity[0].Custom.Data["new"] != 4.0 {
		t.Errorf("fidelity: %v", fidelity)
	}
	became := fidelity[0].Custom.Data["became"].(map[string]any)
	if fmt.Sprint(became["line"]) != "map[label:1 message:3]" || fmt.Sprint(became["head"]) != "map[kept as bytes:2]" {
		t.Errorf("became %v", became)
	}
}

// TestImportLeafIsLastLine: a reader that knows only that the last line is the
// leaf lands where the conversation stands.
func TestImportLeafIsLastLine(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5} {
		h := newHome(t)
		list := []toyLine{{Conv: "c"}}
		for i := range n {
			list = append(list, said(fmt.Sprint("id", i), "text"))
		}
		h.bring(toyFile(t, lines(list...)))
		s := h.open(toyID("c"))
		if want := fmt.Sprint("id", n-1); s.LeafID() != want {
			t.Errorf("%d records: the leaf is %q, want %q", n, s.LeafID(), want)
		}
		healthy(t, s)
	}
}

func TestImportTwice(t *testing.T) {
	t.Parallel()
	text := lines(toyLine{Conv: "c", Title: "T"}, said("1", "one"), toyLine{Text: "no id"}, toyLine{Text: "no id"}, toyLine{ID: "4", Row: "row 4", Text: "four"})
	for name, adjust := range map[string]func(*transcript.Importer){
		"unchanged":      func(*transcript.Importer) {},
		"read again":     func(im *transcript.Importer) { im.Again = true },
		"without ledger": func(im *transcript.Importer) { im.Ledger = nil },
		"in a dry run":   func(im *transcript.Importer) { im.DryRun, im.Again = true, true },
		"a broken ledger": func(im *transcript.Importer) {
			st := fileStore(t)
			st.Close()
			im.Ledger, im.DryRun = transcript.LedgerOf(st), true
		},
	} {
		h := newHome(t)
		file := toyFile(t, text)
		h.bring(file)
		before, err := collectEntries(h.open(toyID("c")))
		if err != nil {
			t.Fatal(err)
		}
		adjust(h.im)
		report := h.bring(file)
		if report.New() != 0 || report.Unchanged != (name == "unchanged") {
			t.Errorf("%s: the second report is %+v", name, report)
		}
		after, err := collectEntries(h.open(toyID("c")))
		if err != nil || len(after) != len(before) {
			t.Errorf("%s: %d entries became %d, %v", name, len(before), len(after), err)
		}
	}
}

// TestImportCopyWithAnotherTime: records without a time get that of their file. A copy
// of the file has another, and still holds the same records.
func TestImportCopyWithAnotherTime(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	text := lines(toyLine{Conv: "c"}, toyLine{ID: "1", Text: "one", Timeless: true}, toyLine{ID: "2", Text: "two", Timeless: true})
	h.bring(toyFile(t, text))
	copied := toyFile(t, text)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(copied, later, later); err != nil {
		t.Fatal(err)
	}
	if report := h.bring(copied); report.New() != 0 {
		t.Errorf("the report of the copy is %+v", report)
	}
	if got := path(t, h.open(toyID("c"))); got != "one two" {
		t.Errorf("the path is %q", got)
	}
	rewrite(t, copied, strings.Replace(text, "two", "other", 1))
	if report := h.bring(copied); report.New() != 1 {
		t.Errorf("the report of a changed copy is %+v", report)
	}
}

func TestImportGrown(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	all := []toyLine{{Conv: "c"}, said("1", strings.Repeat("one ", 3000)), said("2", "two"), said("3", "three"), {Text: "four"}}
	file := toyFile(t, lines(all[:2]...))
	h.bring(file)
	for n := 3; n <= len(all); n++ {
		rewrite(t, file, lines(all[:n]...))
		if report := h.bring(file); report.New() != 1 || report.Sessions[0].Created {
			t.Errorf("with %d lines the report is %+v", n, report)
		}
	}
	s := h.open(toyID("c"))
	healthy(t, s)
	if got := path(t, s); !strings.HasSuffix(got, "two three four") || strings.Count(got, "three") != 1 {
		t.Errorf("the path is %q", got)
	}
	// What was kept before is not kept again: the pieces are as long as the file.
	kept := 0.0
	for _, e := range customs(t, s, transcript.CustomImport) {
		kept += e.Custom.Data["len"].(float64)
	}
	if want := len(lines(all...)); int(kept) != want {
		t.Errorf("%v bytes are kept of %d", kept, want)
	}
}

func TestImportRevision(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two"), said("3", "three")))
	h.bring(file)
	rewrite(t, file, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "TWO"), said("3", "three"), said("4", "four")))
	report := h.bring(file)
	if got := report.Sessions[0]; got.New != 3 || got.Revised != 2 || got.Known != 1 {
		t.Errorf("the report is %+v", got)
	}
	s := h.open(toyID("c"))
	if got := path(t, s); got != "one TWO three four" {
		t.Errorf("the path is %q", got)
	}
	if all := tree(t, s); !strings.Contains(all, "2<1:two 3<2:three") || !strings.Contains(all, "<1:TWO") {
		t.Errorf("the tree is %q", all)
	}
	healthy(t, s)
	h.im.Again = true
	if report := h.bring(file); report.New() != 0 {
		t.Errorf("a third time: %+v", report.Sessions[0])
	}
	rewrite(t, file, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "TWO"), said("3", "three"), said("4", "four"), said("5", "five")))
	h.bring(file)
	if got := path(t, h.open(toyID("c"))); got != "one TWO three four five" {
		t.Errorf("after more the path is %q", got)
	}
}

// TestImportReadInParts: a record that was two when it was read before is not a
// revision.
func TestImportReadInParts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", "two")))
	h.bring(file)
	rewrite(t, file, lines(toyLine{Conv: "c"}, toyLine{ID: "1", Aliases: []string{"2"}, Text: "one two"}, toyLine{ID: "3", After: "2", Text: "three"}))
	if report := h.bring(file); report.New() != 1 {
		t.Errorf("the report is %+v", report.Sessions[0])
	}
	if got := path(t, h.open(toyID("c"))); got != "one two three" {
		t.Errorf("the path is %q", got)
	}
}

// TestImportRepeatedID: of records of one id the first counts, now and later.
func TestImportRepeatedID(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.im.Again = true
	file := toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("1", "uno"), said("2", "two")))
	for range 3 {
		h.bring(file)
	}
	if got := tree(t, h.open(toyID("c"))); got != "1<-:one 2<1:two" {
		t.Errorf("the tree is %q", got)
	}
}

func TestImportVanished(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one")))
	h.bring(file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.OpenFile(file); err == nil {
		t.Error("it is still there")
	}
	if got := path(t, h.open(toyID("c"))); got != "one" {
		t.Errorf("the path is %q", got)
	}
}

// TestImportHeadTakenAway: records without ids are known by what they say.
func TestImportHeadTakenAway(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	list := []toyLine{{Conv: "c"}, {Text: "a"}, {Text: "b"}, {Text: "a"}, {Text: "c"}}
	file := toyFile(t, lines(list...))
	h.bring(file)
	rewrite(t, file, lines(list[0], list[2], toyLine{Text: "a"}, list[4], toyLine{Text: "d"}))
	if report := h.bring(file); report.New() != 1 {
		t.Errorf("the report is %+v", report.Sessions[0])
	}
	if got := path(t, h.open(toyID("c"))); got != "a b a c d" {
		t.Errorf("the path is %q", got)
	}
}

func TestImportFamily(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	original := toyFile(t, lines(toyLine{Conv: "c1", Family: "f"}, said("1", "one"), said("2", "two")))
	fork := toyFile(t, lines(toyLine{Conv: "c2", Family: "f"}, said("1", "one"), toyLine{ID: "9", After: "1", Text: "nine"}))
	h.bring(original)
	if report := h.bring(fork); report.New() != 1 || report.Sessions[0].ID != toyID("f") {
		t.Errorf("the fork's report is %+v", report.Sessions)
	}
	s := h.open(toyID("f"))
	if got := tree(t, s); got != "1<-:one 2<1:two 9<1:nine" {
		t.Errorf("the tree is %q", got)
	}
}

func TestImportOddities(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	long := strings.Repeat("x", 300)
	file := toyFile(t, lines(toyLine{Conv: "c"}, said(long, "long id"), toyLine{ID: "2", After: long, Text: "after"},
		toyLine{ID: "3", After: "nowhere", Text: "lost"}, said("3", "twice"), toyLine{ID: "4", After: "root", Text: "another root"}, toyLine{ID: "5", Timeless: true})+
		"not json\n")
	report := h.bring(file)
	if report.Problems != 2 || report.Sessions[0].ProblemCount != 2 || report.Sessions[0].Known != 1 {
		t.Errorf("the report is %+v", report)
	}
	s := h.open(toyID("c"))
	e, err := s.Entry("2")
	if err != nil || *e.ParentID == long || len(*e.ParentID) != 36 {
		t.Errorf("2 hangs on %v, %v", e.ParentID, err)
	}
	if e, err := s.Entry("3"); err != nil || *e.ParentID != "2" || e.Message.Content[0].Text.Content != "lost" {
		t.Errorf("3 is %+v, %v", e, err)
	}
	four, _ := s.Entry("4")
	five, err := s.Entry("5")
	if err != nil || four.ParentID != nil || !five.Timestamp.Equal(four.Timestamp) {
		t.Errorf("4 and 5 are %+v and %+v", four, five)
	}
}

func TestImportNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, text := range []string{"", "{\"conv\":\"c\"}\n", "garbage\n"} {
		report := h.bring(toyFile(t, text))
		if report.New() != 0 {
			t.Errorf("%q: %+v", text, report)
		}
	}
	for stat := range h.st.List(context.Background()) {
		t.Errorf("there is a session %s", stat.Name)
	}
}

func TestImportReaderFaults(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		read func(context.Context, *transcript.File, transcript.Sink) error
		want string
	}{
		"fails": {func(context.Context, *transcript.File, transcript.Sink) error { return boom }, "boom"},
		"no id": {func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
			return to.Begin(transcript.Conversation{})
		}, "without an id"},
		"no conversation": {func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
			return to.Add(transcript.Record{ID: "1"})
		}, "before it began"},
	} {
		h := newHome(t)
		_, err := h.im.Import(context.Background(), &transcript.Format{Name: "x", Read: test.read}, transcript.FileOf("-", nil))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A session that is full stays as it is: its records do not become stubs that
// would fit.
func TestImportIntoAFullSession(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never, MaxLog: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	f, err := transcript.OpenFile(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", strings.Repeat("large ", 10_000)))))
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&transcript.Importer{Store: st}).Import(t.Context(), toy(), f)
	if limit, ok := errors.AsType[*store.LimitError](err); !ok || limit.Limit != store.MaxSession {
		t.Errorf("%v, want an error that names the limit", err)
	}
}

// TestImportUnwritable: a record that a session cannot hold does not prevent the
// others.
func TestImportUnwritable(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never, MaxLine: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	h := &home{t, st, &transcript.Importer{Store: st}}
	report := h.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"), said("2", strings.Repeat("large ", 10_000)), said("3", "three"))))
	if report.Problems != 1 {
		t.Errorf("the report is %+v", report)
	}
	s := h.open(toyID("c"))
	if got := path(t, s); got != "one three" {
		t.Errorf("the path is %q", got)
	}
	e, err := s.Entry("2")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := transcript.Raw(context.Background(), st, s, &e); err != nil || !bytes.Contains(raw, []byte("large large")) {
		t.Errorf("its bytes: %d, %v", len(raw), err)
	}
}

func TestImportDryRun(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.im.DryRun = true
	report := h.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "one"))))
	if report.New() != 1 || !report.Sessions[0].Created {
		t.Errorf("the report is %+v", report.Sessions)
	}
	for stat := range h.st.List(context.Background()) {
		t.Errorf("there is a session %s", stat.Name)
	}
}

func TestImportTitles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file := toyFile(t, lines(toyLine{Conv: "c", Title: "First"}, said("1", "one")))
	h.bring(file)
	name := func() string {
		n, err := h.open(toyID("c")).Name()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	rewrite(t, file, lines(toyLine{Conv: "c", Title: "Second!"}, said("1", "one")))
	h.bring(file)
	if name() != "Second!" {
		t.Errorf("a new title was not taken over: %q", name())
	}
	if _, err := h.open(toyID("c")).AppendSessionInfo("My own"); err != nil {
		t.Fatal(err)
	}
	rewrite(t, file, lines(toyLine{Conv: "c", Title: "Third one"}, said("1", "one")))
	h.bring(file)
	if name() != "My own" {
		t.Errorf("a name that was given here was changed to %q", name())
	}
}

func TestImportClean(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.im.Clean = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("[gone]")) }
	h.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", "my password is hunter2"), toyLine{ID: "2", Text: "x", Row: "row hunter2"})))
	s := h.open(toyID("c"))
	for _, id := range []string{"1", "2"} {
		e, err := s.Entry(id)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := transcript.Raw(context.Background(), h.st, s, &e)
		if err != nil || !bytes.Contains(raw, []byte("[gone]")) || bytes.Contains(raw, []byte("hunter2")) {
			t.Errorf("%s: the bytes are %q, %v", id, raw, err)
		}
	}
	if got := path(t, s); got != "my password is [gone] x" {
		t.Errorf("the path is %q", got)
	}
}

// TestImportRedacted: what was taken out of a session does not come back.
func TestImportRedacted(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.im.Clean = func(b []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("hunter2"), []byte("[REDACTED:password]")), []byte("s3cr3t"), []byte("[REDACTED:token-x]"))
	}
	file := toyFile(t, lines(toyLine{Conv: "c"}, said("1", "hunter2 and s3cr3t, so"), said("2", "two")))
	h.bring(file)
	h.im.Clean, h.im.Again = nil, true
	if report := h.bring(file); report.New() != 0 {
		t.Errorf("the secret is back: %+v", report.Sessions[0])
	}
	for _, text := range []string{"hunter2 or s3cr3t, so", "x hunter2 and s3cr3t, so", "hunter2 and s3cr3t, so?"} {
		rewrite(t, file, lines(toyLine{Conv: "c"}, said("1", text)))
		if report := h.bring(file); report.Sessions[0].Revised != 1 {
			t.Errorf("%q is not a change: %+v", text, report.Sessions[0])
		}
	}
}

// TestImportTogether: importers that work at the same time double nothing.
func TestImportTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := []toyLine{{Conv: "c", Title: "T"}}
	for i := range 300 {
		list = append(list, said(fmt.Sprint("id", i), fmt.Sprint("text ", i)))
	}
	path := toyFile(t, lines(list...))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			st, err := file.Open(dir, &file.Options{Sync: file.Never})
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			f, err := transcript.OpenFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			im := &transcript.Importer{Store: st}
			if _, err := im.Import(context.Background(), toy(), f); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := (&home{t: t, st: st}).open(toyID("c"))
	healthy(t, s)
	if n, err := s.MessageCount(); err != nil || n != 300 {
		t.Errorf("%d messages, %v", n, err)
	}
	if s.LeafID() != "id299" {
		t.Errorf("the leaf is %q", s.LeafID())
	}
}

// TestImportPieces: however a file grows, and wherever an import is cut short,
// the session is in the end what it would be at once.
func TestImportPieces(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(rt, "n")
		list := []toyLine{{Conv: "c"}}
		for i := range n {
			l := toyLine{Text: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "text")}
			if rapid.Bool().Draw(rt, "named") {
				l.ID = fmt.Sprint("id", i)
			}
			if at := rapid.IntRange(0, i).Draw(rt, "after"); list[at].ID != "" {
				l.After = list[at].ID
			}
			list = append(list, l)
		}
		whole := lines(list...)
		once, pieces := newHome(t), newHome(t)
		once.bring(toyFile(t, whole))
		file := toyFile(t, "")
		for _, cut := range rapid.SliceOfN(rapid.IntRange(0, len(whole)), 0, 5).Draw(rt, "cuts") {
			if info, err := os.Stat(file); err != nil || info.Size() > int64(cut) {
				continue
			}
			rewrite(t, file, whole[:cut])
			pieces.bring(file)
			if rapid.Bool().Draw(rt, "forget") {
				pieces.im.Ledger = nil
			}
		}
		rewrite(t, file, whole)
		pieces.bring(file)
		a, b := once.open(toyID("c")), pieces.open(toyID("c"))
		if tree(t, a) != tree(t, b) || a.LeafID() != b.LeafID() {
			rt.Fatalf("in pieces: %q at %s\nat once:   %q at %s", tree(t, b), b.LeafID(), tree(t, a), a.LeafID())
		}
	})
}

// A session that was removed stays removed when its file is imported again and did
// not change, even if it was so fresh that its time proves nothing.
func TestRemovedSessionStaysRemovedWhenItsFileIsFresh(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	path := filepath.Join(t.TempDir(), "talk.toy")
	write := func(list ...toyLine) {
		if err := os.WriteFile(path, []byte(lines(list...)), 0o600); err != nil {
			t.Fatal(err)
		}
		soon := time.Now().Add(time.Hour) // however long this takes, it was changed just now
		if err := os.Chtimes(path, soon, soon); err != nil {
			t.Fatal(err)
		}
	}
	write(toyLine{Conv: "c"}, said("a", "one"), said("b", "two"))
	first := h.bring(path)
	if len(first.Sessions) != 1 {
		t.Fatalf("%+v", first)
	}
	if err := h.st.Remove(t.Context(), first.Sessions[0].ID); err != nil {
		t.Fatal(err)
	}
	if again := h.bring(path); again.New() != 0 {
		t.Errorf("it came back: %+v", again)
	}
	write(toyLine{Conv: "c"}, said("a", "one"), said("b", "two"), said("c", "three"))
	if grown := h.bring(path); grown.New() == 0 {
		t.Errorf("it grew, and nothing came: %+v", grown)
	}
}
