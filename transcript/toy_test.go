package transcript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
)

// toyLine is a line of a format that exists in these tests only. It can do all
// that a reader can say.
type toyLine struct {
	Conv     string   `json:"conv,omitempty"`
	Family   string   `json:"family,omitempty"`
	Title    string   `json:"title,omitempty"`
	Parent   string   `json:"of,omitempty"`
	Leaf     string   `json:"leaf,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	ID       string   `json:"id,omitempty"`
	After    string   `json:"after,omitempty"`
	Aliases  []string `json:"aliases,omitempty"`
	Text     string   `json:"text,omitempty"`
	Label    string   `json:"label,omitempty"` // of the entry ID
	Row      string   `json:"row,omitempty"`   // kept beside
	Timeless bool     `json:"timeless,omitempty"`
}

var toyTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// toy is the format. Its reader always reads everything.
func toy() *transcript.Format {
	return &transcript.Format{
		Name: "toy", Title: "Toy",
		Detect: func(f *transcript.File) bool { return bytes.HasPrefix(f.Head(), []byte(`{"conv"`)) },
		Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
			for l, err := range f.Lines(ctx) {
				if err != nil {
					return err
				}
				if err := readToy(l, to); err != nil {
					return err
				}
			}
			return nil
		},
		Write: writeToy,
	}
}

func readToy(l transcript.Line, to transcript.Sink) error {
	var t toyLine
	if err := json.Unmarshal(l.Data, &t); err != nil {
		if !l.Torn {
			to.Problem(transcript.Problem{Pos: l.Pos, Line: l.No, Reason: err.Error()})
		}
		return nil
	}
	if t.Conv != "" {
		to.Count("head", transcript.OnlyKept, 1)
		c := transcript.Conversation{ID: t.Conv, Family: t.Family, Title: t.Title, Parent: t.Parent, Leaf: t.Leaf, Tags: t.Tags, CWD: "/w"}
		if t.Parent != "" {
			c.Relation, c.ParentCall = session.RelationSubagent, "call"
		}
		return to.Begin(c)
	}
	r := transcript.Record{ID: t.ID, Parent: t.After, Aliases: t.Aliases, From: []transcript.Span{l.Span}}
	if t.After == "root" {
		r.Parent = transcript.Root
	}
	if !t.Timeless {
		r.Entry.Timestamp = toyTime.Add(time.Duration(l.No) * time.Second)
	}
	if t.Label != "" {
		r.ID = ""
		r.Entry.Type, r.Entry.Label = session.TypeLabel, &session.LabelEntry{TargetID: t.ID, Label: t.Label}
	} else {
		r.Entry.Type = session.TypeMessage
		r.Entry.Message = &session.MessageEntry{Role: "user", Content: []session.Content{session.Text(t.Text)}}
	}
	if t.Row != "" {
		span, err := to.Keep("row", []byte(t.Row))
		if err != nil {
			return err
		}
		r.From = append(r.From, span)
	}
	to.Count("line", string(r.Entry.Type), 1)
	return to.Add(r)
}

func writeToy(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	var b bytes.Buffer
	id := s.NativeID
	if id == "" {
		id = "exported-" + s.Header.ID
	}
	fmt.Fprintf(&b, "{\"conv\":%q}\n", id)
	out := &transcript.Output{Base: env.Home, Resume: "toy " + id}
	for i := range s.Path {
		e := &s.Path[i]
		if e.Message == nil {
			continue
		}
		line, err := json.Marshal(toyLine{ID: e.ID, Text: e.Message.Content[0].Text.Content})
		if err != nil {
			return nil, err
		}
		b.Write(append(line, '\n'))
	}
	out.Files = []transcript.OutputFile{
		{Path: "toys/" + strings.ReplaceAll(id, "/", "_") + ".toy", Data: b.Bytes()},
		{Path: "list", Merge: func(old []byte) ([]byte, error) {
			if bytes.Contains(old, []byte("broken")) {
				return nil, errors.New("the list is broken")
			}
			return append(bytes.Clone(old), (id + "\n")...), nil
		}},
	}
	return out, nil
}

// lines returns toy lines as a file's text.
func lines(list ...toyLine) string {
	var b strings.Builder
	for _, l := range list {
		text, err := json.Marshal(l)
		if err != nil {
			panic(err)
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

func said(id, text string) toyLine { return toyLine{ID: id, Text: text} }

// home is a store with an importer.
type home struct {
	t  testing.TB
	st store.Store
	im *transcript.Importer
}

func newHome(t testing.TB) *home {
	st := memory.New(nil)
	return &home{t, st, &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(fileStore(t))}}
}

func fileStore(t testing.TB) *file.Store {
	t.Helper()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// bring imports a file of the toy format, which must not fail.
func (h *home) bring(path string) *transcript.Report {
	h.t.Helper()
	return h.bringAs(toy(), path)
}

func (h *home) bringAs(format *transcript.Format, path string) *transcript.Report {
	h.t.Helper()
	f, err := transcript.OpenFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := h.im.Import(context.Background(), format, f)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *home) open(id string) *session.Session {
	h.t.Helper()
	s, err := session.Open(context.Background(), h.st, id, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	return s
}

// toyID is the session of a toy conversation.
func toyID(native string) string { return transcript.SessionID("toy", native) }

// tree returns what a session holds as text: each record with its parent, in
// the order of the log, without what the import noted.
func tree(t testing.TB, s *session.Session) string {
	t.Helper()
	var list []string
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Message == nil {
			continue
		}
		parent := "-"
		if e.ParentID != nil {
			parent = *e.ParentID
		}
		list = append(list, e.ID+"<"+parent+":"+e.Message.Content[0].Text.Content)
	}
	return strings.Join(list, " ")
}

// path returns the texts of the conversation.
func path(t testing.TB, s *session.Session) string {
	t.Helper()
	entries, err := s.GetContext()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range entries {
		list = append(list, entries[i].Message.Content[0].Text.Content)
	}
	return strings.Join(list, " ")
}

func healthy(t testing.TB, s *session.Session) {
	t.Helper()
	problems, err := s.Problems()
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func customs(t testing.TB, s *session.Session, typ string) []session.Entry {
	t.Helper()
	all, err := collectEntries(s)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e session.Entry) bool { return e.Custom == nil || e.Custom.CustomType != typ })
}

func collectEntries(s *session.Session) ([]session.Entry, error) {
	var all []session.Entry
	for e, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
