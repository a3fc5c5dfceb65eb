package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// NewScript returns a session in the form that writers of a format get, up to an entry;
// "" is the leaf. Entries that only record an import are left out.
func NewScript(s *session.Session, format, leaf string, now time.Time) (*Script, error) {
	if s == nil {
		return nil, errMissing("export", "a session")
	}
	script := &Script{Header: s.Header(), Leaf: leaf, Now: now}
	if leaf == "" {
		script.Leaf = s.LeafID()
	}
	var err error
	if script.Leaf != "" {
		if script.Path, err = s.Forward(script.Leaf); err != nil {
			return nil, err
		}
	}
	if script.Context, err = s.Context(session.ContextOptions{Leaf: script.Leaf}); err != nil {
		return nil, err
	}
	for e, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		script.All = append(script.All, e)
	}
	script.Path, script.All = ownEntries(script.Path), ownEntries(script.All)
	script.Context.Entries = ownEntries(script.Context.Entries)
	script.showUnsaid()
	script.assignCosts()
	if script.Name, err = s.Name(); err != nil {
		return nil, err
	}
	script.nativeIn(format)
	return script, nil
}

// showUnsaid turns drafts of unfinished answers, and queued prompts, into messages.
func (s *Script) showUnsaid() {
	shown := session.ShowUnsaid(s.Path)
	for i := range shown {
		e := &shown[i]
		if e.Message == nil || s.Path[i].Message != nil {
			continue
		}
		if e.Message.StopReason = ""; e.Message.Role == session.RoleAssistant {
			e.Message.Provider, e.Message.Model = s.Context.Provider, s.Context.Model
		}
		if at := slices.IndexFunc(s.All, func(one session.Entry) bool { return one.ID == e.ID }); at >= 0 {
			s.All[at] = *e
		}
		if !slices.ContainsFunc(shown[i+1:], func(e session.Entry) bool { return !e.IsAside() }) {
			s.Context.Entries = append(s.Context.Entries, *e)
		}
	}
	s.Path = shown
}

// ownEntries returns entries without the notes of an import.
func ownEntries(entries []session.Entry) []session.Entry {
	entries = leaveOut(entries, isRemark)
	for i := range entries {
		entries[i].Extra = slices.DeleteFunc(slices.Clone(entries[i].Extra), func(f session.Field) bool { return f.Name == sourceField })
	}
	return entries
}

// leaveOut returns a copy of a list without some entries. Their children become children of the
// entry before.
func leaveOut(entries []session.Entry, left func(*session.Entry) bool) []session.Entry {
	before := make(map[string]*string) // the parents of the entries that are left out
	for i := range entries {
		if left(&entries[i]) {
			before[entries[i].ID] = entries[i].ParentID
		}
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e session.Entry) bool { return left(&e) })
	for i := range entries {
		for parent := entries[i].ParentID; parent != nil; {
			above, left := before[*parent]
			if !left {
				break
			}
			entries[i].ParentID, parent = above, above
		}
	}
	return entries
}

// withoutNotes returns a copy of the script without the notes that people and programs left, and
// what that loses. No other program has notes: each would make of one what the user said.
func (s *Script) withoutNotes() (*Script, []Loss) {
	var losses []Loss
	for i := range s.All {
		if isNote(&s.All[i]) {
			losses = append(losses, Loss{EntryID: s.All[i].ID, What: "note", Why: "it is nobody's message, and there are only messages there"})
		}
	}
	if len(losses) == 0 {
		return s, nil
	}
	out, given := *s, *s.Context
	given.Entries = leaveOut(given.Entries, isNote)
	out.Context, out.Path, out.All = &given, leaveOut(s.Path, isNote), leaveOut(s.All, isNote)
	if len(out.Path) > 0 {
		out.Leaf = out.Path[len(out.Path)-1].ID
	}
	return &out, losses
}

func isNote(e *session.Entry) bool {
	_, ok := e.NoteBy()
	return ok
}

// nativeIn fills in the facts of the conversation in a source of a format.
func (s *Script) nativeIn(format string) {
	from, ok := session.OriginOf(&s.Header)
	if !ok || from.Format != format {
		return
	}
	s.NativeID = from.ID
	s.Facts, _ = rawjson.Map(from.Facts) // there may be none
}

// Exporter writes sessions into other programs' files.
type Exporter struct {
	Env Env
	// Ledger remembers what was written, so that importing it again does not create
	// another session. Default: none.
	Ledger *Ledger
	// Clean, if it is set, changes the files' content: see Importer.
	Clean func([]byte) []byte
	// Subagents returns the sessions that tool calls of a session started. Export
	// closes them. Default: they are not written.
	Subagents func(ctx context.Context, id string) ([]*session.Session, error)
}

// Prepare makes the files of a conversation and checks that they read back correctly.
// It writes nothing to their destination. For files that several conversations share,
// old returns the present content, or nil. A nil old means that there are none. A
// format that is nil, or cannot be written, is ErrInvalid.
func (x *Exporter) Prepare(ctx context.Context, format *Format, s *Script, old func(path string) ([]byte, error)) (*Output, error) {
	if err := format.check("export", "", canWrite); err != nil {
		return nil, err
	}
	if x == nil || s == nil || s.Context == nil {
		return nil, errMissing("export", "an exporter and a script of a session")
	}
	if old == nil {
		old = func(string) ([]byte, error) { return nil, nil }
	}
	s, notes := s.withoutNotes()
	s, local := s.withoutLocal()
	s.Existing = old
	out, err := format.Write(ctx, s, x.Env)
	if err != nil {
		return nil, err
	}
	if out == nil || len(out.Files) == 0 {
		return nil, errNothing(format)
	}
	for i := range out.Files {
		f := &out.Files[i]
		if f.Merge != nil {
			have, err := old(f.Path)
			if err != nil {
				return nil, err
			}
			if f.Data, err = f.Merge(have); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		if x.Clean != nil {
			f.Data = cleanText(x.Clean, f.Data)
		}
	}
	out.format, out.of = format, s.Header.ID
	out.Losses = slices.Concat(out.Losses, notes, local)
	out.Native, err = x.readBack(ctx, format, s, out)
	return out, err
}

// cleanText cleans a file: as a whole if it is one document, otherwise by lines.
func cleanText(clean func([]byte) []byte, data []byte) []byte {
	if json.Valid(data) {
		return clean(data)
	}
	var all bytes.Buffer
	for line := range bytes.Lines(data) {
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		all.Write(clean(text))
		if ended {
			all.WriteByte('\n')
		}
	}
	return all.Bytes()
}

// readBack writes the files to a temporary directory, reads them with the format's
// reader, and compares. It returns the conversation's id there.
func (x *Exporter) readBack(ctx context.Context, format *Format, s *Script, out *Output) (string, error) {
	dir, err := os.MkdirTemp("", "coppice-export-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for _, f := range out.Files {
		if !fs.ValidPath(f.Path) || strings.ContainsRune(f.Path, 0) {
			return "", &session.Error{Op: "export", Path: f.Path, Kind: session.ErrInvalid, Err: errors.New("the export would write outside its directory, or a file that cannot exist")}
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			return "", err
		}
	}
	f, err := OpenFile(filepath.Join(dir, filepath.FromSlash(out.Files[0].Path)))
	if err != nil {
		return "", err
	}
	read, err := Collect(ctx, format, f)
	if err != nil {
		return "", fmt.Errorf("the export cannot be read back: %w", err)
	}
	if len(read.Problems) > 0 {
		return "", errReadBack("", "line %d: %s", read.Problems[0].Line, read.Problems[0].Reason)
	}
	if x.Clean == nil { // a cleaned copy is meant to differ
		if err := x.compare(ctx, s, out, format, f.Path, read); err != nil {
			return "", err
		}
	}
	if !slices.ContainsFunc(read.Conversations, func(c *CollectedConversation) bool { return len(c.Records) > 0 }) {
		return "", errNothing(format)
	}
	if out.wrote = out.Records; out.wrote == nil {
		out.wrote = entriesByRecord(s, read.Conversations[0].Records)
	}
	return read.Conversations[0].ID, nil
}

func errNothing(format *Format) error {
	return &session.Error{
		Op: "export", Kind: session.ErrInvalid, Err: fmt.Errorf("the session has nothing that %s can hold", format.Title),
	}
}

// errReadBack says how the conversation that was read back differs.
func errReadBack(entry, format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	if entry != "" {
		why = "entry " + entry + ": " + why
	}
	return &session.Error{Op: "export", Kind: session.ErrCorrupt, Err: fmt.Errorf("the export does not read back as the same conversation: %s", why)}
}

// compare compares what was read back with the script, and adds what is missing to the
// losses.
func (x *Exporter) compare(ctx context.Context, s *Script, out *Output, format *Format, file string, read *Collected) error {
	entries, err := sentBack(ctx, format, file, read)
	if err != nil {
		return fmt.Errorf("the export cannot be read back: %w", err)
	}
	losses, err := compare(s, out, entries)
	out.Losses = slices.Concat(out.Losses, losses, s.lostCosts(read), s.lostNotices(read, out.Losses))
	return err
}

// sentBack returns what a model would be sent after the conversation was read back.
func sentBack(ctx context.Context, format *Format, path string, read *Collected) ([]session.Entry, error) {
	if len(read.Conversations) == 0 {
		return nil, nil
	}
	first := read.Conversations[0]
	if entries, ok := first.plainChain(); ok && len(read.Conversations) == 1 {
		return entries, nil
	}
	// Only a session knows what a tree of records amounts to.
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	st := memory.New(nil)
	defer st.Close()
	if _, err := (&Importer{Store: st}).Import(ctx, format, f); err != nil {
		return nil, err
	}
	s, err := session.Open(ctx, st, SessionID(format.Name, cmp.Or(first.Family, first.ID)), nil)
	if errors.Is(err, session.ErrNotExist) {
		return nil, nil // it has no records
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c, err := s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	return c.Entries, nil
}

// plainChain returns the entries of a conversation if each follows the one before it
// and none decides which others count.
func (c *CollectedConversation) plainChain() ([]session.Entry, bool) {
	entries := make([]session.Entry, 0, len(c.Records))
	for i := range c.Records {
		r := &c.Records[i]
		e := &r.Entry
		follows := r.Parent == "" || i == 0 && r.Parent == Root
		if i > 0 && !follows {
			before := &c.Records[i-1]
			follows = r.Parent == before.ID || slices.Contains(before.Aliases, r.Parent)
		}
		if !follows || shapes(e) || e.Leaf != nil {
			return nil, false
		}
		entries = append(entries, *e)
	}
	last := len(c.Records) - 1
	return entries, c.Leaf == "" || last >= 0 && c.Leaf == c.Records[last].ID
}
