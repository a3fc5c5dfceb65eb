package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// parts is everything in the store. The place of a part is the URL of the store, a "#", the
// kind, and what names it: of a copy the ID of its removal, of a draft the log's key and the
// life. What is left in a directory has its path.
type parts struct{ store *Store }

// Parts implements store.Store.
func (s *Store) Parts() store.Parts { return parts{s} }

// Where implements store.Parts.
func (p parts) Where(kind store.PartKind, name string) string {
	return p.store.where + "#" + string(kind) + "/" + name
}

// nameIn returns what a part's place ends in.
func (p parts) nameIn(part store.Part) string {
	return strings.TrimPrefix(part.Place, p.Where(part.Kind, ""))
}

func (p parts) log(r row) store.Part {
	kind, id := store.PartLog, r.name
	if r.slot > 0 {
		kind, id = store.PartCopy, removalID(r.name, r.slot)
	}
	return store.Part{Kind: kind, Name: r.name, Place: p.Where(kind, id), Size: r.tail, Modified: r.modified}
}

func (p parts) blob(ref store.Ref, size int64) store.Part {
	return store.Part{Kind: store.PartBlob, Name: string(ref), Place: p.Where(store.PartBlob, string(ref)), Size: size}
}

// All implements store.Parts.
func (p parts) All(ctx context.Context) iter.Seq2[store.Part, error] {
	const op = "list"
	return func(yield func(store.Part, error) bool) {
		for _, removed := range []bool{false, true} {
			for r, err := range p.store.rows(ctx, op, removed) {
				if err != nil {
					yield(store.Part{}, err)
					return
				}
				if !yield(p.log(r), nil) {
					return
				}
			}
		}
		for n, err := range p.notes(ctx, op) {
			if !yield(n.part, err) || err != nil {
				return
			}
		}
		for part, err := range (&blobs{p.store}).each(ctx, op) {
			if !yield(part, err) || err != nil {
				return
			}
		}
		for _, unfinished := range []func(context.Context, string) ([]store.Part, error){p.drafts, p.store.leftovers} {
			found, err := unfinished(ctx, op)
			for _, part := range found {
				if !yield(part, nil) {
					return
				}
			}
			if err != nil {
				yield(store.Part{}, err)
				return
			}
		}
	}
}

// drafts returns the lives that no log has.
func (p parts) drafts(ctx context.Context, op string) (all []store.Part, err error) {
	s := p.store
	err = s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT log, life, name, touched FROM coppice.drafts WHERE tenant = $1`), s.tenant)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(in pgx.CollectableRow) (store.Part, error) {
			var log []byte
			var life int64
			part := store.Part{Kind: store.PartTemp}
			err := in.Scan(&log, &life, &part.Name, &part.Modified)
			part.Place = p.Where(store.PartTemp, fmt.Sprintf("%x/%d", log, life))
			part.Name = "" // it is no log's yet
			return part, err
		})
		return err
	})
	return all, err
}

// note is a note with its content.
type note struct {
	part store.Part
	data []byte
}

// notes yields all notes.
func (p parts) notes(ctx context.Context, op string) iter.Seq2[note, error] {
	s := p.store
	return func(yield func(note, error) bool) {
		room, name := "", ""
		for {
			var page []note
			err := s.read(ctx, op, "", func(ctx context.Context) error {
				rows, err := s.pool.Query(ctx, s.sql(`SELECT room, name, data, modified FROM coppice.notes
					WHERE tenant = $1 AND (room, name) > ($2, $3) ORDER BY room, name LIMIT 1000`), s.tenant, room, name)
				if err != nil {
					return err
				}
				page, err = pgx.CollectRows(rows, func(in pgx.CollectableRow) (n note, err error) {
					err = in.Scan(&room, &name, &n.data, &n.part.Modified)
					n.part.Kind, n.part.Name, n.part.Size = store.PartNote, noteName(room, name), int64(len(n.data))
					n.part.Place = p.Where(store.PartNote, n.part.Name)
					return n, err
				})
				return err
			})
			if err != nil {
				yield(note{}, err)
				return
			}
			for _, n := range page {
				if !yield(n, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// noteName is the name of a note as a part.
func noteName(room, name string) string {
	if room == "" {
		return name
	}
	return room + "/" + name
}

// noteOf returns the room and the name of a note that is a part.
func (p parts) noteOf(part store.Part) (*notes, string) {
	room, name, found := strings.Cut(part.Name, "/")
	if !found {
		room, name = "", part.Name
	}
	return &notes{p.store, room}, name
}

// naming returns the logs, copies and drafts that name a blob.
func (p parts) naming(ctx context.Context, op string, sum []byte) (all []store.Part, err error) {
	s := p.store
	err = s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT r.log, r.life, coalesce(l.slot, 0), coalesce(l.name, ''), coalesce(l.tail, 0), coalesce(l.modified, now())
			FROM coppice.refs r LEFT JOIN coppice.logs l ON l.tenant = r.tenant AND l.log = r.log AND l.life = r.life
			WHERE r.tenant = $1 AND r.ref = $2`), s.tenant, sum)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(in pgx.CollectableRow) (store.Part, error) {
			var r row
			err := in.Scan(&r.log, &r.life, &r.slot, &r.name, &r.tail, &r.modified)
			if r.name == "" {
				return store.Part{Kind: store.PartTemp, Place: p.Where(store.PartTemp, fmt.Sprintf("%x/%d", r.log, r.life)), Modified: r.modified}, err
			}
			return p.log(r), err
		})
		return err
	})
	return all, err
}

// Copies implements store.Parts.
func (p parts) Copies(ctx context.Context, name string) ([]store.Part, error) {
	var all []store.Part
	for r, err := range p.store.rows(ctx, "list copies", true) {
		if err != nil {
			return nil, err
		}
		if name == "" || r.name == name {
			all = append(all, p.log(r))
		}
	}
	return all, nil
}

// open opens a log, a copy or a draft.
func (p parts) open(ctx context.Context, op string, part store.Part) (*log, error) {
	s := p.store
	if err := s.ready(ctx, op, part.Name); err != nil {
		return nil, err
	}
	k, err := s.keyOf(part.Name), error(nil)
	switch part.Kind {
	case store.PartLog:
	case store.PartCopy:
		if k, err = s.removal(op, p.nameIn(part)); err != nil {
			return nil, err
		}
	default:
		return nil, p.refuse(op, part)
	}
	h, err := s.find(ctx, op, part.Name, k)
	if err != nil {
		return nil, err
	}
	return s.handle(part.Name, k, h.life), nil
}

func (p parts) refuse(op string, part store.Part) error {
	return &store.Error{Op: op, Name: part.Name, Path: part.Place, Kind: store.ErrInvalid, Err: fmt.Errorf("it is of the kind %q", part.Kind)}
}

// Open implements store.Parts.
func (p parts) Open(ctx context.Context, part store.Part) (io.ReadCloser, error) {
	const op = "read"
	switch part.Kind {
	case store.PartBlob:
		data, err := (&blobs{p.store}).Get(ctx, store.Ref(part.Name))
		return io.NopCloser(bytes.NewReader(data)), err
	case store.PartNote:
		n, name := p.noteOf(part)
		data, err := n.Read(ctx, name)
		return io.NopCloser(bytes.NewReader(data)), err
	case store.PartTemp:
		if d := p.store.leftIn(part); d != nil {
			return d.files.Parts().Open(ctx, part)
		}
		return p.openDraft(ctx, op, part)
	}
	l, err := p.open(ctx, op, part)
	if err != nil {
		return nil, err
	}
	return readLines(l.Forward(ctx, 0)), nil
}

// readLines returns a reader of lines with their line ends.
func readLines(lines iter.Seq2[store.Line, error]) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		for line, err := range lines {
			if err == nil {
				_, err = w.Write(append(bytes.Clone(line.Data), '\n'))
			}
			if err != nil {
				w.CloseWithError(err)
				return
			}
		}
		w.Close()
	}()
	return r
}

// Lines implements store.Parts.
func (p parts) Lines(ctx context.Context, part store.Part) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		l, err := p.open(ctx, "read", part)
		if err != nil {
			yield(store.Line{}, err)
			return
		}
		for line, err := range l.Forward(ctx, 0) {
			if !yield(line, err) {
				return
			}
		}
	}
}

// Edit implements store.Parts.
func (p parts) Edit(ctx context.Context, part store.Part, edit func(line []byte) ([]byte, error)) error {
	const op = "edit"
	if part.Kind == store.PartNote {
		return p.editNote(ctx, op, part, edit)
	}
	old, err := p.open(ctx, op, part)
	if err != nil {
		return err
	}
	s := p.store
	d, end, changed := s.draft(op, part.Name, old.key), int64(0), false
	defer func() { d.discard(ctx) }()
	for line, err := range old.Forward(ctx, 0) {
		if err != nil {
			return conflicting(err)
		}
		data := line.Data
		if !line.Cut {
			if data, err = edit(bytes.Clone(line.Data)); err != nil {
				return err
			}
		}
		end = int64(line.Next)
		if err := p.copyLine(ctx, d, old, line, data, &changed); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	if err := p.swap(ctx, op, old, end, d); err != nil {
		return err
	}
	d.begun = false
	s.edits.Add(1)
	s.hub.changed(old.key)
	return nil
}

// conflicting returns ErrConflict for a log that another has rewritten or removed meanwhile.
func conflicting(err error) error {
	if e, ok := errors.AsType[*store.Error](err); ok && errors.Is(err, store.ErrReplaced) {
		return &store.Error{Op: "edit", Name: e.Name, Kind: store.ErrConflict}
	}
	return err
}

// copyLine adds an edited line to the draft. What comes before the first line that changes is
// copied within the database.
func (p parts) copyLine(ctx context.Context, d *draft, old *log, line store.Line, data []byte, changed *bool) error {
	if !*changed && (line.Cut || bytes.Equal(data, line.Data)) {
		d.addUnchanged(line)
		return nil
	}
	if !*changed {
		*changed = true
		if err := d.copyUnchanged(ctx, old.life); err != nil {
			return err
		}
	}
	if line.Cut {
		return d.copyCut(ctx, old.life, line)
	}
	return d.add(ctx, data)
}

// swap gives a log the life of a draft, if it is still as it was, and deletes the old one. The
// log's row is locked first and changed last, so that others wait and never see half of it.
func (p parts) swap(ctx context.Context, op string, old *log, end int64, d *draft) error {
	s := p.store
	return s.write(ctx, op, old.name, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			h, err := s.head(ctx, tx, old.key, " FOR UPDATE")
			switch {
			case err == nil && h.life == d.life:
				return nil // it was done, and the answer got lost
			case errors.Is(err, pgx.ErrNoRows), err == nil && (h.life != old.life || h.tail != end):
				return &store.Error{Op: op, Name: old.name, Kind: store.ErrConflict}
			case err != nil:
				return err
			}
			if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil { // the log may be large
				return err
			}
			b := new(pgx.Batch)
			d.queue(b)
			b.Queue(s.sql(`DELETE FROM coppice.drafts WHERE tenant = $1 AND log = $2 AND life = $3`), s.tenant, d.key.log, d.life)
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			if err := s.deleteLife(ctx, tx, old.key.log, old.life); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, s.sql(`UPDATE coppice.logs SET life = $4, tail = $5, modified = clock_timestamp(), marked = true
				WHERE tenant = $1 AND log = $2 AND slot = $3`), s.tenant, old.key.log, old.key.slot, d.life, d.tail)
			return err
		})
	})
}

// deleteLife deletes what belongs to a life that no log has, or will have when the transaction
// is committed.
func (s *Store) deleteLife(ctx context.Context, tx pgx.Tx, log []byte, life int64) error {
	for _, table := range []string{"lines", "refs", "drafts"} {
		if _, err := tx.Exec(ctx, s.sql(`DELETE FROM coppice.`+table+` WHERE tenant = $1 AND log = $2 AND life = $3`), s.tenant, log, life); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) editNote(ctx context.Context, op string, part store.Part, edit func(line []byte) ([]byte, error)) error {
	n, name := p.noteOf(part)
	return n.change(ctx, op, name, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, &store.Error{Op: op, Name: part.Name, Path: part.Place, Kind: store.ErrNotExist}
		}
		return store.EditText(old, edit)
	})
}

// draftOf returns the log's key and the life of a draft.
func (p parts) draftOf(op string, part store.Part) (log []byte, life int64, err error) {
	digits, number, _ := strings.Cut(p.nameIn(part), "/")
	if log, err = hex.DecodeString(digits); err == nil {
		life, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil {
		err = p.refuse(op, part)
	}
	return log, life, err
}

// openDraft returns the lines of a draft that are there.
func (p parts) openDraft(ctx context.Context, op string, part store.Part) (io.ReadCloser, error) {
	s := p.store
	log, life, err := p.draftOf(op, part)
	if err != nil {
		return nil, err
	}
	return readLines(func(yield func(store.Line, error) bool) {
		for pos := int64(-1); ; {
			var line store.Line
			err := s.read(ctx, op, "", func(ctx context.Context) error {
				return s.pool.QueryRow(ctx, s.sql(`SELECT pos, data FROM coppice.lines
					WHERE tenant = $1 AND log = $2 AND life = $3 AND pos > $4 ORDER BY pos LIMIT 1`), s.tenant, log, life, pos).Scan(&pos, &line.Data)
			})
			if errors.Is(err, pgx.ErrNoRows) || !yield(line, err) || err != nil {
				return
			}
		}
	}), nil
}

// Remove implements store.Parts.
func (p parts) Remove(ctx context.Context, part store.Part) error {
	const op = "remove"
	if part.Kind != store.PartTemp {
		return p.refuse(op, part)
	}
	if d := p.store.leftIn(part); d != nil {
		return d.files.Parts().Remove(ctx, part)
	}
	log, life, err := p.draftOf(op, part)
	if err != nil {
		return err
	}
	s := p.store
	return s.write(ctx, op, "", func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var young bool
			err := tx.QueryRow(ctx, s.sql(`SELECT touched > now() - $4::interval FROM coppice.drafts
				WHERE tenant = $1 AND log = $2 AND life = $3 FOR UPDATE`), s.tenant, log, life, store.StaleAfter).Scan(&young)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return nil // published, or removed by another
			case err != nil:
				return err
			case young:
				return &store.Error{Op: op, Path: part.Place, Kind: store.ErrLocked, Err: fmt.Errorf("it was written to within the last %v", store.StaleAfter)}
			}
			return s.deleteLife(ctx, tx, log, life)
		})
	})
}
