package index

import (
	"database/sql"

	"github.com/coppice-dev/coppice/session"
)

// removeDocs is how many documents are removed in one transaction.
const removeDocs = 2_000

// dropRemoved removes the sessions that are no longer in the store.
func (r *catching) dropRemoved(logs map[string]*known) error {
	for _, k := range logs {
		if k.seen {
			continue
		}
		if err := r.dropSession(k.id); err != nil {
			return err
		}
		r.report.Removed++
	}
	return nil
}

// dropSession removes a session, the row last and a part of the rest at a time,
// so that others can write in between. Without its name it is no longer found;
// if we do not come to the end, the next CatchUp does.
func (r *catching) dropSession(id int64) error {
	err := r.inTx(func(w *writer) error {
		if err := w.unfold(id); err != nil {
			return err
		}
		return w.unlink(id)
	})
	if err != nil {
		return err
	}
	for {
		n, err := r.dropDocs(id)
		if err != nil {
			return err
		}
		if n < removeDocs {
			break
		}
	}
	return r.inTx(func(w *writer) error {
		for _, query := range []string{
			`DELETE FROM entries WHERE session = ?`,
			`DELETE FROM damage WHERE session = ?`,
			`DELETE FROM silent WHERE session = ?`,
			`DELETE FROM tags WHERE session = ?`,
			`DELETE FROM ledgers WHERE session = ?`,
			`DELETE FROM stale WHERE session = ?`,
		} {
			if _, err := w.exec(query, id); err != nil {
				return err
			}
		}
		if err := w.dropUsage(id); err != nil {
			return err
		}
		_, err := w.exec(`DELETE FROM sessions WHERE id = ?`, id)
		return err
	})
}

// unlink takes a session's name, and the session out of its chain. The others of
// the chain stay one conversation, which then says that it is missing. Who belongs
// together may change for others, too: one that says that it continues the session is
// now believed, because nobody is there to ask; and of several that name the same
// missing session, the next takes the place of this one.
func (w *writer) unlink(id int64) error {
	var sid, parent, relation string
	var chain int64
	found, err := w.find([]any{&sid, &parent, &relation, &chain}, `SELECT sid, parent, relation, chain FROM sessions WHERE id = ?`, id)
	if err != nil || !found {
		return err
	}
	if _, err := w.exec(`UPDATE sessions SET name = NULL, part = ?, chain = 0 WHERE id = ?`, partGone, id); err != nil {
		return err
	}
	names, err := w.linkNames(chain)
	if err != nil {
		return err
	}
	if relation != session.RelationContinuation {
		parent = ""
	}
	for _, named := range []string{sid, parent} {
		naming, err := w.naming(named)
		if err != nil {
			return err
		}
		names = append(names, naming...)
	}
	for _, name := range names {
		if _, err := w.find([]any{&sid}, `SELECT sid FROM sessions WHERE name = ?`, name); err != nil {
			return err
		}
		w.touch(sid)
	}
	if err := w.relink(); err != nil {
		return err
	}
	return w.dropChain(chain)
}

// dropDocs removes some documents of a session and returns how many.
func (r *catching) dropDocs(id int64) (int, error) {
	var ids []int64
	err := r.inTx(func(w *writer) error {
		rows, err := w.QueryContext(w.ctx, `SELECT rowid FROM fts WHERE fts MATCH ? LIMIT ?`, quote(facet('s', id)), removeDocs)
		if err != nil {
			return err
		}
		if ids, err = scanColumn[int64](rows); err != nil {
			return err
		}
		for _, doc := range ids {
			if _, err := w.exec(`DELETE FROM fts WHERE rowid = ?`, doc); err != nil {
				return err
			}
			if _, err := w.exec(`DELETE FROM docs WHERE id = ?`, doc); err != nil {
				return err
			}
		}
		return nil
	})
	return len(ids), err
}

// scanColumn returns the values of rows that have one column, and closes them.
func scanColumn[T any](rows *sql.Rows) ([]T, error) {
	defer rows.Close()
	var values []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// inTx calls f in a transaction.
func (r *catching) inTx(f func(w *writer) error) error {
	return r.ix.change(r.ctx, r.db, func() error {
		tx, err := r.db.BeginTx(r.ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		w, err := r.newWriter(tx)
		if err != nil {
			return err
		}
		if err := f(w); err != nil {
			return err
		}
		if err := w.writeWaiting(); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// tidyEntries is how many entries a CatchUp must have read for the write-ahead
// log to be worth giving back.
const tidyEntries = 50_000

// tidy gives back the room that writing much took. Others who are reading may
// prevent it, which is no harm.
func (r *catching) tidy() error {
	if r.report.Entries < tidyEntries {
		return nil
	}
	return r.ix.change(r.ctx, r.db, func() error {
		_, err := r.db.ExecContext(r.ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		return err
	})
}
