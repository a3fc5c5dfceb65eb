package clean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Secret is a secret in a store. It does not contain the secret itself.
type Secret struct {
	// ID names it for Options.Keep: see idOf.
	ID      string    `json:"id"`
	Session string    `json:"session"` // "" if it is in a blob that nothing refers to
	Entry   string    `json:"entry,omitempty"`
	Path    string    `json:"path,omitempty"` // of the string in the entry, or of what refers to the blob
	Kind    string    `json:"kind"`
	Preview string    `json:"preview"`
	Blob    store.Ref `json:"blob,omitempty"` // the blob that has it
	File    string    `json:"file,omitempty"` // the copy of the session that has it: see store.Parts
	// Kept means that it is in the part of its source that an import kept.
	Kept bool `json:"kept,omitempty"`
	// Also is how many other places refer to Blob, or have the same kept source. The
	// secrets in it are listed once, at the first place that leads to it.
	Also int `json:"also,omitempty"`
	// Same is equal for findings of the same secret, in any spelling: see redact.Finding.
	Same uint64 `json:"-"`

	in    store.Ref // the blob, or the kept source by its content
	start int       // in the string
}

// Sweep has the secrets that were found in a store.
type Sweep struct {
	Secrets []Secret
	// Unread are the places that could not be searched.
	Unread []Left

	store   store.Store
	names   []string
	secrets map[redact.Known]bool // the secrets that were found, and whether each is a plain word
	same    map[uint64]uint64     // the number of each spelling, and that of its secret
	kept    map[uint64]bool       // the numbers of secrets that stay
	logs    map[string]bool       // those that must change
	copies  []store.Part          // the same
	pending pending               // changes that must be finished even after a crash
	begun   bool                  // an earlier sweep was interrupted, and pending is its note
	// unsettled means that Apply could not determine whether something refers to the blobs
	// in pending.
	unsettled bool
	// leads are the places that lead to a blob or a kept source, by entry and path.
	leads  map[store.Ref][]string
	ids    map[string]int  // how many findings have the same place: see idOf
	listed map[string]bool // all logs
	sizes  map[string]int64
	opts   Options
}

// Options adjusts the search. The zero value means all sessions, including
// removed ones.
type Options struct {
	// Sessions are those that are looked at. Default: all.
	Sessions []string
	// Listed skips the rules: it searches only for the secrets that were taken out of this store before.
	Listed bool
	// Value, if set, is searched for, in every spelling, instead of secrets that the rules
	// find. Apply keeps it from coming back even if it was found nowhere.
	Value string
	// Keep are the IDs of secrets that stay where they are, as an earlier Look has given them.
	// Each means all findings of the same secret. One that is not found is session.ErrInvalid.
	Keep []string
	// Progress, if set, is called with how far looking, and later applying, has come.
	Progress func(doing string, done, total int64)
	// DropDerived, if set, deletes files that were made from the logs and repeat their content:
	// an index. Apply calls it twice. First before anything changes, so that an interrupted
	// sweep leaves no index with a secret; and again after the last change, because other
	// processes keep reading and may have indexed a log just before it was rewritten.
	DropDerived func(ctx context.Context) error
	// Elsewhere, if set, does what Guard.Recheck would do to these sessions, in a store that can
	// only be swept where it is: one on another machine.
	Elsewhere func(ctx context.Context, sessions []string) error
}

// Look searches sessions for secrets, or all sessions if none is named: see LookWith.
func Look(ctx context.Context, st store.Store, names ...string) (*Sweep, error) {
	return LookWith(ctx, st, Options{Sessions: names})
}

// LookWith searches the logs of sessions, the blobs that these refer to, and the copies
// of the logs for secrets. A secret that was found in one place is found everywhere,
// even where only its value shows that it is one, and so is a secret that was taken out
// of this store before. LookWith changes nothing.
func LookWith(ctx context.Context, st store.Store, o Options) (*Sweep, error) {
	s := &Sweep{
		store: st, names: o.Sessions, opts: o,
		secrets: make(map[redact.Known]bool), same: make(map[uint64]uint64), listed: make(map[string]bool), sizes: make(map[string]int64),
	}
	if n := len(o.Value); n > 0 && n < minSpelling {
		return nil, &session.Error{
			Op: "redact", Kind: session.ErrInvalid, Err: fmt.Errorf("the value has %d bytes, and at least %d are needed", n, minSpelling),
			Hint: "a shorter one would also be found in the middle of words",
		}
	}
	all, err := store.All(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		s.listed[l.Name], s.sizes[l.Name] = true, l.Size
	}
	if len(o.Sessions) == 0 {
		s.names = slices.Sorted(maps.Keys(s.listed))
	}
	copies, err := s.listCopies(ctx, len(o.Sessions) == 0)
	if err != nil {
		return nil, err
	}
	if err := s.collect(ctx, copies); err != nil {
		return nil, err
	}
	if err := s.locate(ctx, copies); err != nil || len(o.Keep) == 0 {
		return s, err
	}
	if err := s.allow(o.Keep); err != nil {
		return nil, err
	}
	return s, s.locate(ctx, copies) // without what is kept
}

// locate lists where the secrets are, and what must change to take them out.
func (s *Sweep) locate(ctx context.Context, copies []store.Part) (err error) {
	if s.pending, err = s.readPending(ctx); err != nil {
		return err
	}
	s.Secrets, s.copies = nil, nil
	s.logs, s.leads, s.ids = make(map[string]bool), make(map[store.Ref][]string), make(map[string]int)
	if len(s.secrets) == 0 {
		return nil
	}
	s.Unread = nil
	list := newEditor(s.scanner(), s.store.Blobs(), false)
	if err := s.each(ctx, "locating secrets", list, copies, s.add); err != nil {
		return err
	}
	if err := s.eachOrphan(ctx, list, s.addOrphan); err != nil {
		return err
	}
	for i := range s.Secrets {
		s.Secrets[i].Also = max(0, len(s.leads[s.Secrets[i].in])-1)
	}
	for _, ref := range slices.Sorted(maps.Keys(list.known)) {
		if len(list.known[ref].found) > 0 {
			s.pending.add(ref)
		}
	}
	return nil
}

// collect lists the secrets: those that the rules find, and those that were taken out
// before and are back.
func (s *Sweep) collect(ctx context.Context, copies []store.Part) error {
	if s.opts.Value != "" {
		s.addSecret(redact.Given, s.opts.Value, false) // a word that the user names means all of its spellings
		return nil
	}
	guard, err := LoadGuard(ctx, s.store)
	if err != nil {
		return err
	}
	note := func(kind, secret string) { s.addSecret(kind, secret, isPlainWord(secret)) }
	ed := newEditor(&redact.Scanner{Seen: note, OnlyKnown: s.opts.Listed}, s.store.Blobs(), false)
	ed.listed = func(data []byte) {
		found := guard.find(data)
		for _, k := range slices.Concat(found.known, found.words) {
			note(k.Kind, k.Value)
		}
	}
	if err := s.each(ctx, "looking for secrets", ed, copies, func(*store.Part, string, edited) {}); err != nil {
		return err
	}
	if err := s.eachOrphan(ctx, ed, func(store.Ref, *blob) {}); err != nil || guard == nil {
		return err
	}
	// An interrupted sweep may have cleaned all logs already. Then only the list says what
	// else to search for.
	return s.parts(ctx, func(p store.Part) error {
		if p.Kind != store.PartNote && p.Kind != store.PartTemp || isOurs(p) {
			return nil
		}
		from, err := s.store.Parts().Open(ctx, p)
		if err != nil {
			return err
		}
		return errors.Join(guard.scanStream(from, p.Size, note), from.Close())
	})
}

// addSecret notes a secret in all of its spellings.
func (s *Sweep) addSecret(kind, secret string, word bool) {
	number := s.sameAs(redact.SameAs([]byte(secret)))
	for _, form := range spellings(secret) {
		s.secrets[redact.Known{Kind: kind, Value: form}] = word && isPlainWord(form)
		if spelled := redact.SameAs([]byte(form)); s.same[spelled] == 0 {
			s.same[spelled] = number
		}
	}
}

// sameAs returns the number of a secret, given that of one of its spellings.
func (s *Sweep) sameAs(spelled uint64) uint64 { return cmp.Or(s.same[spelled], spelled) }

// isPlainWord reports whether a secret consists of letters only. Such a password is
// removed where it is used as one, not wherever the word occurs.
func isPlainWord(secret string) bool {
	return !strings.ContainsFunc(secret, func(r rune) bool { return !unicode.IsLetter(r) })
}

// listCopies returns the copies of the sessions. In a sweep of everything, these
// include removed sessions.
func (s *Sweep) listCopies(ctx context.Context, all bool) ([]store.Part, error) {
	if all {
		return s.store.Parts().Copies(ctx, "")
	}
	var copies []store.Part
	for _, name := range s.names {
		some, err := s.store.Parts().Copies(ctx, name)
		if err != nil {
			return nil, err
		}
		copies = append(copies, some...)
	}
	return copies, nil
}

// scanner returns a scanner that knows everything that is found by its value.
func (s *Sweep) scanner() *redact.Scanner {
	var known []redact.Known
	for k, word := range s.secrets {
		if !word {
			known = append(known, k)
		}
	}
	slices.SortFunc(known, func(a, b redact.Known) int {
		return strings.Compare(a.Kind+a.Value, b.Kind+b.Value) // sorted, so that the result is always the same
	})
	scanner := redact.NewScanner(known...)
	scanner.Spare = s.isAllowed
	scanner.OnlyKnown = s.opts.Value != "" || s.opts.Listed && len(known) == len(s.secrets) // plain words are found only by rules
	return scanner
}

// each calls found with what each line would become. What cannot be read is noted, and
// the rest is searched anyway.
func (s *Sweep) each(ctx context.Context, doing string, ed *editor, copies []store.Part, found func(c *store.Part, name string, e edited)) error {
	total, done := int64(len(copies)), int64(0) // each copy counts as one byte
	for _, name := range s.names {
		total += s.sizes[name]
	}
	for _, name := range s.names {
		s.report(doing, done, total)
		done += s.sizes[name]
		err := s.eachLine(ctx, s.logPart(name), ed, func(e edited) { found(nil, name, e) })
		switch {
		case ctx.Err() != nil, errors.Is(err, store.ErrNotExist), errors.Is(err, store.ErrClosed):
			return err
		case err != nil:
			s.unread(s.logPart(name), err.Error())
		}
	}
	for i := range copies {
		s.report(doing, done+int64(i), total)
		err := s.eachLine(ctx, copies[i], ed, func(e edited) { found(&copies[i], copies[i].Name, e) })
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			s.unread(copies[i], err.Error())
		}
	}
	return nil
}

// logPart returns the log of a name as a part of the store.
func (s *Sweep) logPart(name string) store.Part {
	return store.Part{Kind: store.PartLog, Name: name, Place: s.store.Parts().Where(store.PartLog, name)}
}

// eachOrphan looks, in a sweep of everything, at the blobs that no line led to. A
// program that was killed may have left one, or a trash that was emptied.
func (s *Sweep) eachOrphan(ctx context.Context, ed *editor, found func(ref store.Ref, b *blob)) error {
	if len(s.opts.Sessions) > 0 {
		return nil
	}
	for ref, err := range s.store.Blobs().All(ctx) {
		if err != nil {
			return err
		}
		if _, seen := ed.known[ref]; seen {
			continue
		}
		b, err := ed.blob(ctx, ref)
		if err != nil {
			return err
		}
		found(ref, b)
	}
	return nil
}

func (s *Sweep) addOrphan(ref store.Ref, b *blob) {
	for _, f := range b.found {
		s.list(Secret{Kind: f.Kind, Same: f.Same, Preview: f.Preview, Blob: ref, start: f.Start})
	}
}

func (s *Sweep) report(doing string, done, total int64) {
	if s.opts.Progress != nil {
		s.opts.Progress(doing, done, total)
	}
}

func (s *Sweep) unread(p store.Part, why string) {
	s.Unread = append(s.Unread, Left{Path: p.Place, Session: p.Name, Why: "it could not be searched: " + why})
}

func (s *Sweep) eachLine(ctx context.Context, p store.Part, ed *editor, found func(e edited)) error {
	for line, err := range s.store.Parts().Lines(ctx, p) {
		if err != nil {
			return err
		}
		if line.Cut {
			s.unread(p, fmt.Sprintf("the line at byte %d is longer than the limit", line.Pos))
			continue
		}
		e, err := ed.edit(ctx, line.Data)
		if err != nil {
			return fmt.Errorf("session %s at byte %d: %w", p.Name, line.Pos, err)
		}
		found(e)
	}
	return nil
}

func (s *Sweep) add(c *store.Part, name string, e edited) {
	if len(e.secrets) == 0 {
		return
	}
	if c == nil {
		s.logs[name] = true
	} else if !slices.Contains(s.copies, *c) {
		s.copies = append(s.copies, *c)
	}
	for _, secret := range e.secrets {
		secret.Session = name
		if c != nil {
			secret.File = c.Place
		}
		if secret.in == "" || s.leadsFirst(&secret) {
			s.list(secret)
		}
	}
}

func (s *Sweep) list(secret Secret) {
	secret.ID, secret.Same = s.idOf(&secret), s.sameAs(secret.Same)
	s.Secrets = append(s.Secrets, secret)
}

// leadsFirst notes a place that leads to a blob or to a kept source, and reports
// whether it is the first. Many sessions may have been imported from one file, and what
// is in it counts once.
func (s *Sweep) leadsFirst(secret *Secret) bool {
	at := strings.Join([]string{secret.File, secret.Session, secret.Entry, secret.Path}, "\x00")
	leads := s.leads[secret.in]
	if len(leads) == 0 || leads[len(leads)-1] != at { // the secrets of one place come in a row
		leads = append(leads, at)
		s.leads[secret.in] = leads
	}
	return leads[0] == at
}

// rewriteLog replaces the secrets in a log. It starts again if another process writes
// to the log in between.
func (s *Sweep) rewriteLog(ctx context.Context, name string, ed *editor) error {
	return session.Retry(func() error {
		first := true
		return s.store.Parts().Edit(ctx, s.logPart(name), func(line []byte) ([]byte, error) {
			e, err := ed.edit(ctx, line)
			if first {
				e.line = markHeader(e.line)
			}
			first = false
			return e.line, err
		})
	}, nil)
}

// markHeader records in a header when something was last taken out. A line that is not
// a header stays as it is.
func markHeader(line []byte) []byte {
	var h session.Header
	head, ok := rawjson.ScanHead(line)
	if !ok || string(head.Type) != string(session.TypeSession) || h.UnmarshalJSON(line) != nil {
		return line
	}
	h.Extra = slices.DeleteFunc(slices.Clone(h.Extra), func(f session.Field) bool { return f.Name == "redacted" })
	h.Extra = append(h.Extra, session.Field{Name: "redacted", Value: rawjson.AppendTime(nil, time.Now())})
	out, err := h.MarshalJSON()
	if err != nil {
		return line
	}
	return out
}
