package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// scheme is how the place of a store and of its parts begins.
const scheme = "mem:"

// Where implements store.Store.
func (s *Store) Where() string { return scheme }

// parts is everything in the store. Of a copy, the place ends in the ID of its removal.
type parts struct{ store *Store }

// Parts implements store.Store.
func (s *Store) Parts() store.Parts { return parts{s} }

func (p parts) Where(kind store.PartKind, name string) string {
	return scheme + string(kind) + "/" + name
}

func (p parts) All(ctx context.Context) iter.Seq2[store.Part, error] {
	return func(yield func(store.Part, error) bool) {
		if err := p.store.ready(ctx, "list", ""); err != nil {
			yield(store.Part{}, err)
			return
		}
		for _, part := range p.list() {
			if !yield(part, nil) {
				return
			}
		}
	}
}

func (p parts) list() []store.Part {
	s := p.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := p.copies("")
	for name, c := range s.logs {
		all = append(all, p.log(store.PartLog, name, name, c))
	}
	for name, n := range s.notes {
		all = append(all, p.note(name, n))
	}
	for ref := range s.blobs {
		all = append(all, p.blob(ref))
	}
	return all
}

func (p parts) log(kind store.PartKind, name, id string, c *content) store.Part {
	stat := c.stat(name)
	return store.Part{Kind: kind, Name: name, Place: p.Where(kind, id), Size: stat.Size, Modified: stat.Modified}
}

func (p parts) note(name string, n note) store.Part {
	return store.Part{Kind: store.PartNote, Name: name, Place: p.Where(store.PartNote, name), Size: int64(len(n.data)), Modified: n.modified}
}

func (p parts) blob(ref store.Ref) store.Part {
	return store.Part{Kind: store.PartBlob, Name: string(ref), Place: p.Where(store.PartBlob, string(ref)), Size: int64(len(p.store.blobs[ref]))}
}

func (p parts) Copies(ctx context.Context, name string) ([]store.Part, error) {
	if err := p.store.ready(ctx, "list copies", ""); err != nil {
		return nil, err
	}
	p.store.mu.RLock()
	defer p.store.mu.RUnlock()
	return p.copies(name), nil
}

// copies is Copies for a caller who holds the store's mutex.
func (p parts) copies(name string) (all []store.Part) {
	for id, item := range p.store.trash {
		if name == "" || item.Name == name {
			all = append(all, p.log(store.PartCopy, item.Name, id, item.content))
		}
	}
	slices.SortFunc(all, func(a, b store.Part) int { return strings.Compare(a.Place, b.Place) })
	return all
}

// content returns what a log or a copy holds, or nil. The caller holds the store's mutex.
func (p parts) content(part store.Part) *content {
	switch part.Kind {
	case store.PartLog:
		return p.store.logs[part.Name]
	case store.PartCopy:
		return p.store.trash[strings.TrimPrefix(part.Place, p.Where(store.PartCopy, ""))].content
	}
	return nil
}

func (p parts) Open(ctx context.Context, part store.Part) (io.ReadCloser, error) {
	const op = "read"
	if err := p.store.ready(ctx, op, part.Name); err != nil {
		return nil, err
	}
	p.store.mu.RLock()
	defer p.store.mu.RUnlock()
	if data, ok := p.store.blobs[store.Ref(part.Name)]; ok && part.Kind == store.PartBlob {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	if n, ok := p.store.notes[part.Name]; ok && part.Kind == store.PartNote {
		return io.NopCloser(bytes.NewReader(n.data)), nil
	}
	c := p.content(part)
	if c == nil {
		return nil, p.missing(op, part)
	}
	var data []byte
	c.eachLine(func(line []byte) { data = append(append(data, line...), '\n') })
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (p parts) Lines(ctx context.Context, part store.Part) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		const op = "read"
		if err := p.store.ready(ctx, op, part.Name); err != nil {
			yield(store.Line{}, err)
			return
		}
		p.store.mu.RLock()
		c := p.content(part)
		p.store.mu.RUnlock()
		if c == nil {
			yield(store.Line{}, p.missing(op, part))
			return
		}
		copied := c.clone() // which does not change meanwhile
		for line, err := range p.store.handle(part.Name, copied).Forward(ctx, 0) {
			if !yield(line, err) {
				return
			}
		}
	}
}

func (p parts) Edit(ctx context.Context, part store.Part, edit func(line []byte) ([]byte, error)) error {
	const op = "edit"
	if err := p.store.ready(ctx, op, part.Name); err != nil {
		return err
	}
	if part.Kind == store.PartNote {
		return p.editNote(ctx, part, edit)
	}
	p.store.mu.RLock()
	old := p.content(part)
	p.store.mu.RUnlock()
	if old == nil {
		return p.missing(op, part)
	}
	if err := old.pinned.LockContext(ctx); err != nil { // no one appends meanwhile
		return &store.Error{Op: op, Name: part.Name, Err: err}
	}
	defer old.pinned.Unlock()
	fresh, err := p.edited(ctx, op, part, old, edit)
	if err != nil {
		return err
	}
	return p.swap(op, part, old, fresh)
}

// edited returns what the lines of a log become.
func (p parts) edited(ctx context.Context, op string, part store.Part, old *content, edit func(line []byte) ([]byte, error)) (*content, error) {
	fresh := newContent()
	for i := 0; ; i++ {
		l, ok := old.at(i)
		if !ok {
			return fresh, nil
		}
		data, err := edit(bytes.Clone(l.data))
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = p.store.checkLine(op, part.Name, data)
		}
		if err != nil {
			return nil, err
		}
		fresh.add(bytes.Clone(data))
	}
}

// swap puts new content in the place of the old, if that is still there.
func (p parts) swap(op string, part store.Part, old, fresh *content) error {
	s := p.store
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case closed(s.done):
		return &store.Error{Op: op, Name: part.Name, Kind: store.ErrClosed}
	case p.content(part) != old:
		return &store.Error{Op: op, Name: part.Name, Kind: store.ErrConflict}
	case fresh.same(old):
		return nil
	}
	old.retire(store.ErrReplaced)
	if part.Kind == store.PartLog {
		s.logs[part.Name] = fresh
		s.news.logChanged(part.Name)
		return nil
	}
	id := strings.TrimPrefix(part.Place, p.Where(store.PartCopy, ""))
	item := s.trash[id]
	item.content, item.Size = fresh, int64(fresh.end)
	s.trash[id] = item
	return nil
}

func (p parts) editNote(ctx context.Context, part store.Part, edit func(line []byte) ([]byte, error)) error {
	s := p.store
	if err := s.changing.LockContext(ctx); err != nil {
		return &store.Error{Op: "edit", Name: part.Name, Err: err}
	}
	defer s.changing.Unlock()
	s.mu.RLock()
	old, ok := s.notes[part.Name]
	s.mu.RUnlock()
	if !ok {
		return p.missing("edit", part)
	}
	fresh, err := store.EditText(old.data, edit)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed(s.done) {
		return &store.Error{Op: "edit", Name: part.Name, Kind: store.ErrClosed}
	}
	s.notes[part.Name] = note{fresh, time.Now()}
	return nil
}

// Remove has nothing to delete: the store leaves nothing behind.
func (p parts) Remove(_ context.Context, part store.Part) error {
	return &store.Error{Op: "remove", Path: part.Place, Kind: store.ErrInvalid, Err: fmt.Errorf("it is of the kind %q", part.Kind)}
}

func (p parts) missing(op string, part store.Part) error {
	kind := store.ErrNotExist
	if part.Kind == store.PartTemp || part.Kind == store.PartIndex || part.Kind == store.PartOther || part.Kind == store.PartBlob && op == "edit" {
		kind = store.ErrInvalid
	}
	return &store.Error{Op: op, Name: part.Name, Path: part.Place, Kind: kind}
}
