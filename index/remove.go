package index

import (
	"database/sql"
	"slices"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
)

// How many documents, and how many sessions' names, are removed in one transaction.
const (
	removeDocs     = 2_000
	removeSessions = 10_000
)

// dropRemoved removes the sessions that are no longer in the store.
func (r *catching) dropRemoved(logs map[string]*known) error {
	var gone []int64
	for _, k := range logs {
		if !k.seen {
			gone = append(gone, k.id)
		}
	}
	slices.Sort(gone)
	for some := range slices.Chunk(gone, removeSessions) {
		if err := r.dropSessions(some...); err != nil {
			return err
		}
		r.report.Removed += len(some)
	}
	return nil
}

// dropSessions removes sessions in several transactions, so that others can write in between,
// and their rows last. Queries do not find a session without a name; if the removal is
// interrupted, the next CatchUp completes it.
func (r *catching) dropSessions(ids ...int64) error {
	err := r.inTx(func(w *writer) error {
		for _, id := range ids {
			if err := w.unfold(id); err != nil {
				return err
			}
		}
		return w.unlink(ids)
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := r.dropContent(id); err != nil {
			return err
		}
	}
	return nil
}

// dropContent removes everything of a session.
func (r *catching) dropContent(id int64) error {
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
			`DELETE FROM files WHERE session = ?`,
			`DELETE FROM ledgers WHERE session = ?`,
			`DELETE FROM stale WHERE session = ?`,
		} {
			if err := w.exec(query, id); err != nil {
				return err
			}
		}
		if err := w.dropUsage(id); err != nil {
			return err
		}
		return w.exec(`DELETE FROM sessions WHERE id = ?`, id)
	})
}

// unlink removes the names of sessions, and takes the sessions out of their chains. The
// rest of a chain stays one conversation, which then reports what is missing. This can
// change other chains too: a session that claims to continue the removed one is now
// believed, because the claim can no longer be checked; and among several that name the
// same missing session, the next takes its place.
//
// The chains are rebuilt once, after all sessions are out of them.
func (w *writer) unlink(ids []int64) error {
	chains, named := make(map[int64]bool), make(map[string]bool)
	for _, id := range ids {
		var sid, parent, relation, next string
		var chain int64
		found, err := w.find([]any{&sid, &parent, &relation, &next, &chain}, `SELECT sid, parent, relation, continued_to, chain FROM sessions WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := w.exec(`UPDATE sessions SET name = NULL, part = ?, chain = 0 WHERE id = ?`, partGone, id); err != nil {
			return err
		}
		chains[chain], named[sid], named[next] = true, true, true
		if relation == session.RelationContinuation {
			named[parent] = true
		}
	}
	if err := w.touchAround(chains, named); err != nil {
		return err
	}
	if err := w.relink(); err != nil {
		return err
	}
	for chain := range chains {
		if err := w.dropChain(chain); err != nil {
			return err
		}
	}
	return nil
}

// touchAround touches the sessions of chains, and those that name a session.
func (w *writer) touchAround(chains map[int64]bool, named map[string]bool) error {
	var names []string
	for chain := range chains {
		together, err := w.linkNames(chain)
		if err != nil {
			return err
		}
		names = append(names, together...)
	}
	for sid := range named {
		naming, err := w.naming(sid)
		if err != nil {
			return err
		}
		names = append(names, naming...)
	}
	for _, name := range names {
		var sid string
		if _, err := w.find([]any{&sid}, `SELECT sid FROM sessions WHERE name = ?`, name); err != nil {
			return err
		}
		w.touch(sid)
	}
	return nil
}

// dropDocs removes some documents of a session and returns how many.
func (r *catching) dropDocs(id int64) (int, error) {
	var ids []int64
	err := r.inTx(func(w *writer) error {
		rows, err := w.QueryContext(w.ctx, `SELECT rowid FROM fts WHERE fts MATCH ? LIMIT ?`, ofSession(id), removeDocs)
		if err != nil {
			return err
		}
		if ids, err = scanColumn[int64](rows); err != nil {
			return err
		}
		if err := w.flushTerms(); err != nil { // a room may take the words of the texts from the terms
			return err
		}
		if err := w.tx.DropTexts(w.ctx, ids); err != nil {
			return err
		}
		for _, doc := range ids {
			if err := w.exec(`DELETE FROM docs WHERE id = ?`, doc); err != nil {
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
	return r.ix.room.Update(r.ctx, r.db, func(tx room.Tx) error {
		w := r.newWriter(tx)
		if err := f(w); err != nil {
			return err
		}
		if err := w.writeWaiting(); err != nil {
			return err
		}
		if w.lastSession > 0 {
			if err := w.exec(`UPDATE counters SET value = ? WHERE name = 'sessions'`, w.lastSession); err != nil {
				return err
			}
		}
		return w.exec(`UPDATE counters SET value = value + 1 WHERE name = 'changes'`)
	})
}

// dropNames removes the names that nothing has any more.
func (w *writer) dropNames() error {
	return w.exec(`DELETE FROM names WHERE id NOT IN (
		SELECT dir FROM sessions UNION SELECT maker FROM sessions
		UNION SELECT role FROM docs UNION SELECT tool FROM docs UNION SELECT model FROM docs
		UNION SELECT role FROM silent UNION SELECT model FROM silent
		UNION SELECT provider FROM usage UNION SELECT model FROM usage UNION SELECT tool FROM usage)`)
}

// tidyEntries is how many entries a CatchUp must have read before tidying up is worth it.
const tidyEntries = 50_000

// tidy frees the space that a large write took.
func (r *catching) tidy() error {
	if r.report.Entries < tidyEntries {
		return nil
	}
	return r.ix.room.Tidy(r.ctx, r.db)
}
