package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// notes is a room of notes.
type notes struct {
	store *Store
	room  string
}

// Notes implements store.Store.
func (s *Store) Notes(room string) store.Notes { return &notes{s, room} }

// admit returns nil if an operation on a note of that name may proceed.
func (n *notes) admit(ctx context.Context, op, name string) error {
	if err := store.CheckRoom(n.room); err != nil {
		return err
	}
	return n.store.admit(ctx, op, name)
}

// Read implements store.Notes.
func (n *notes) Read(ctx context.Context, name string) ([]byte, error) {
	const op = "read note"
	if err := n.admit(ctx, op, name); err != nil {
		return nil, err
	}
	var data []byte
	err := n.store.read(ctx, op, name, func(ctx context.Context) (err error) {
		data, _, err = n.get(ctx, name)
		return absent(op, name, err)
	})
	return data, err
}

// get returns a note and its version, or pgx.ErrNoRows.
func (n *notes) get(ctx context.Context, name string) (data []byte, version int64, err error) {
	s := n.store
	err = s.pool.QueryRow(ctx, s.sql(`SELECT data, version FROM coppice.notes WHERE tenant = $1 AND room = $2 AND name = $3`),
		s.tenant, n.room, name).Scan(&data, &version)
	return data, version, err
}

// List implements store.Notes.
func (n *notes) List(ctx context.Context) ([]store.Note, error) {
	const op = "list notes"
	if err := n.admit(ctx, op, "list"); err != nil {
		return nil, err
	}
	var all []store.Note
	s := n.store
	err := s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT name, octet_length(data)::bigint, modified FROM coppice.notes
			WHERE tenant = $1 AND room = $2 ORDER BY name`), s.tenant, n.room)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[store.Note])
		}
		return err
	})
	return all, err
}

// The statements that write a note: whatever it is now, if it has a version, and if there is
// none. Of the versions before, a note remembers so many that a program whose answer was lost can
// find out whether its change was one of them.
const (
	writeNote = `INSERT INTO coppice.notes AS n (tenant, room, name, version, past, data, modified) VALUES ($1, $2, $3, $4, '{}', $5, now())
		ON CONFLICT (tenant, room, name) DO UPDATE SET version = $4, past = (n.version || n.past)[1:32], data = $5, modified = now()`
	changeNote = `UPDATE coppice.notes SET version = $4, past = (version || past)[1:32], data = $5, modified = now()
		WHERE tenant = $1 AND room = $2 AND name = $3 AND version = $6`
	insertNote = `INSERT INTO coppice.notes (tenant, room, name, version, past, data, modified)
		VALUES ($1, $2, $3, $4, '{}', $5, now()) ON CONFLICT DO NOTHING`
)

// Write implements store.Notes.
func (n *notes) Write(ctx context.Context, name string, data []byte) error {
	const op = "write note"
	if err := n.admit(ctx, op, name); err != nil {
		return err
	}
	s := n.store
	return s.write(ctx, op, name, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, s.sql(writeNote), s.tenant, n.room, name, number(), append([]byte{}, data...))
		return err
	})
}

// WriteHint implements store.Notes.
func (n *notes) WriteHint(ctx context.Context, name string, data []byte) error {
	return n.Write(ctx, name, data)
}

// Change implements store.Notes.
func (n *notes) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	const op = "change note"
	if err := n.admit(ctx, op, name); err != nil {
		return err
	}
	return n.change(ctx, op, name, change)
}

// change replaces a note if it is still what change was given. The version that it writes
// tells whether it was this change that succeeded when the answer gets lost.
func (n *notes) change(ctx context.Context, op, name string, change func(old []byte) ([]byte, error)) error {
	s := n.store
	for {
		var data []byte
		var version int64
		err := s.read(ctx, op, name, func(ctx context.Context) (err error) {
			if data, version, err = n.get(ctx, name); errors.Is(err, pgx.ErrNoRows) {
				data, version = nil, 0
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		changed, err := change(data)
		if err != nil {
			return err
		}
		if done, err := n.swap(ctx, op, name, version, bytes.Clone(changed)); done || err != nil {
			return err
		}
	}
}

// swap writes a note if it has that version, or, if the version is 0, if there is none, and
// reports whether it did.
func (n *notes) swap(ctx context.Context, op, name string, version int64, data []byte) (done bool, err error) {
	s, next, wasLost := n.store, number(), false
	if data == nil {
		data = []byte{}
	}
	statement, args := insertNote, []any{s.tenant, n.room, name, next, data}
	if version != 0 {
		statement, args = changeNote, append(args, version)
	}
	err = s.write(ctx, op, name, func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, s.sql(statement), args...)
		wasLost = wasLost || classify(err) == lost
		if done = err == nil && tag.RowsAffected() == 1; done || err != nil || !wasLost {
			return err
		}
		done, err = n.wasSwapped(ctx, op, name, version, next)
		return err
	})
	return done, err
}

// wasSwapped reports whether a change of a version to the next one has happened, after its answer
// was lost. Others may have changed the note since.
func (n *notes) wasSwapped(ctx context.Context, op, name string, version, next int64) (bool, error) {
	s := n.store
	var versions []int64
	err := s.pool.QueryRow(ctx, s.sql(`SELECT version || past FROM coppice.notes WHERE tenant = $1 AND room = $2 AND name = $3`),
		s.tenant, n.room, name).Scan(&versions)
	switch {
	case slices.Contains(versions, next):
		return true, nil
	case err == nil && (slices.Contains(versions, version) || version == 0 && len(versions) <= 32):
		return false, nil
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return false, err
	}
	return false, &store.Error{Op: op, Name: name, Kind: store.ErrUnknown, Err: errors.New("the connection was lost, and then others changed or removed the note"), Hint: "look at it"}
}

// Remove implements store.Notes.
func (n *notes) Remove(ctx context.Context, name string) error {
	const op = "remove note"
	if err := n.admit(ctx, op, name); err != nil {
		return err
	}
	s := n.store
	return s.write(ctx, op, name, func(ctx context.Context) error {
		// To a role that only reads the tenant, there is nothing to delete. The insertion is refused.
		_, err := s.pool.Exec(ctx, s.sql(`WITH writer AS (INSERT INTO coppice.gates (tenant, gate) VALUES ($1, $4) ON CONFLICT DO NOTHING)
			DELETE FROM coppice.notes WHERE tenant = $1 AND room = $2 AND name = $3`), s.tenant, n.room, name, gateStandbys)
		return err
	})
}
