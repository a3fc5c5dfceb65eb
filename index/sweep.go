package index

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// # Looking at every session, and not
//
// To find out what has changed, the index compares the store's description of each session
// with its own record: a sweep. That is always right and costs 6 µs a session: nothing for
// hundreds, but 0.6 s for 100,000.
//
// In a large store whose writers leave marks (store.Changes), only the marked sessions are
// compared. A mark is removed once the index has recorded the session's current state; the
// store makes sure that no writer comes in between. So no change by a writer of ours is
// missed, whichever process dies at whatever moment:
//
//   - The writer dies after its mark: the session is compared for nothing.
//   - We die before a mark is removed: the session is compared again.
//   - We die after that: the change is committed. SQLite may lose it in a power cut, but
//     then the epoch is another one.
//   - The index is deleted, or rebuilt: a new one has no epoch on record.
//
// There is a sweep
//
//   - if the epoch is not that of the last sweep, or there is none,
//   - if sessions came or went and no mark says which,
//   - if the last one was sweepEvery ago, or the clock was set back,
//   - in a store of up to sweepAlways sessions, where it costs next to nothing,
//   - if there are more than sweepMarks marks, which would take longer one by one.
//
// The second to the fourth are for programs that leave no marks. In a store that has none, because
// the listing is empty, they do not apply.
const (
	sweepEvery  = 10 * time.Minute
	sweepAlways = 1_000
	sweepMarks  = 1_000
)

// marked is what is known of a log that the store has marked. If nothing is, because another
// process has written it or it cannot be read, the mark stays.
type marked struct {
	known bool
	was   *store.Stat // as the index has recorded it; nil: not at all
}

// note remembers what the index has recorded of a log, so that its mark can be removed.
func (r *catching) note(name string, was *store.Stat) {
	if m := r.marks[name]; m != nil {
		*m = marked{true, was}
	}
}

// swept is the record of the last sweep.
type swept struct {
	epoch, listing string
	time           int64 // in milliseconds
	sessions       int
}

// survey finds out what has to be read, and what is gone: it returns the known logs that it
// looked at, and marks those that it saw in the store.
func (r *catching) survey() (map[string]*known, []job, error) {
	var err error
	if r.changes, err = r.ix.store.Changes(r.ctx, r.ix.room.Reader()); err != nil {
		return nil, nil, err
	}
	r.marks = make(map[string]*marked, len(r.changes.Names))
	for _, name := range r.changes.Names {
		r.marks[name] = &marked{}
	}
	if r.last, err = r.lastSweep(); err != nil {
		return nil, nil, err
	}
	last, now := r.last, time.Now().UnixMilli()
	r.sweep = r.sweep || r.changes.Epoch == "" || r.changes.Epoch != last.epoch || len(r.marks) > sweepMarks ||
		r.changes.Listing != "" && (last.sessions <= r.ix.sweepAlways || now < last.time || now-last.time > sweepEvery.Milliseconds())
	if !r.sweep {
		logs, jobs, explained, err := r.compareMarked()
		if err != nil || explained || r.changes.Listing == last.listing {
			return logs, jobs, err
		}
		r.sweep, r.total, r.report = true, 0, Report{}
	}
	// The index is read before the store: a session that another process adds in between
	// must not look like one that was removed.
	logs, err := r.loadKnown()
	if err != nil {
		return nil, nil, err
	}
	jobs, err := r.compare(logs)
	return logs, jobs, err
}

func (r *catching) lastSweep() (s swept, err error) {
	err = r.db.QueryRowContext(r.ctx, `SELECT epoch, listing, time, sessions FROM swept`).Scan(&s.epoch, &s.listing, &s.time, &s.sessions)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return s, err
}

// noteSweep remembers a sweep, or the sessions that have come and gone since.
func (r *catching) noteSweep() error {
	if r.changes.Epoch == "" {
		return nil
	}
	last := r.last
	if !r.sweep && last.listing == r.changes.Listing {
		return nil
	}
	if r.sweep {
		if last.epoch == r.changes.Epoch && last.listing == r.changes.Listing && last.sessions == r.report.Sessions && (last.listing == "" || last.sessions <= r.ix.sweepAlways) {
			return nil // nothing depends on its time
		}
		last = swept{epoch: r.changes.Epoch, time: time.Now().UnixMilli(), sessions: r.report.Sessions}
	}
	return r.inTx(func(w *writer) error {
		return w.exec(`INSERT INTO swept (id, epoch, listing, time, sessions) VALUES (1, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, listing = excluded.listing, time = excluded.time, sessions = excluded.sessions`,
			last.epoch, r.changes.Listing, last.time, last.sessions)
	})
}

// removeMarks removes the marks of sessions that are as the index has recorded them, and records the
// sweep.
func (r *catching) removeMarks() error {
	if r.changes.Epoch == "" {
		return nil
	}
	for names := range slices.Chunk(r.changes.Names, settleBatch) {
		seen := make(map[string]*store.Stat, len(names))
		for _, name := range names {
			if m := r.marks[name]; m.known {
				seen[name] = m.was
			}
		}
		if err := r.ix.store.Settle(r.ctx, r.ix.room.Reader(), seen); err != nil {
			if r.ctx.Err() != nil {
				return r.ctx.Err()
			}
			r.ix.opts.Logger.Debug("marks stay", "cause", err) // each costs a comparison every time
		}
	}
	return r.noteSweep()
}

// settleBatch is how many marks are removed at once.
const settleBatch = 500

// compareMarked compares the marked sessions. explained says that one of them
// came, went or was replaced, which is why the store's listing differs.
func (r *catching) compareMarked() (logs map[string]*known, jobs []job, explained bool, err error) {
	logs = make(map[string]*known)
	for _, name := range r.changes.Names {
		was, err := r.knownOf(name)
		if err != nil {
			return nil, nil, false, err
		}
		if was != nil {
			logs[name] = was
		}
		stat, err := r.ix.store.Stat(r.ctx, name)
		if errors.Is(err, store.ErrNotExist) {
			explained = explained || was != nil
			r.note(name, nil)
			continue
		}
		if err == nil {
			explained = explained || was == nil || was.archived != stat.Archived || stat.Size < was.size
		}
		if jobs, err = r.consider(jobs, stat, err, was); err != nil {
			return nil, nil, false, err
		}
	}
	return logs, jobs, explained, nil
}

// knownOf returns what the index knows about a log, or nil.
func (r *catching) knownOf(name string) (*known, error) {
	k := &known{placed: true}
	err := r.db.QueryRowContext(r.ctx, `SELECT id, size, modified, archived, pos, head_hash, tail_pos, tail_hash FROM sessions WHERE name = ? AND part <> 2`, name).
		Scan(&k.id, &k.size, &k.modified, &k.archived, &k.pos, &k.head, &k.tailPos, &k.tailSum)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return k, err
}

func (r *catching) loadKnown() (map[string]*known, error) {
	rows, err := r.db.QueryContext(r.ctx, `SELECT name, id, size, modified, archived FROM sessions INDEXED BY stats WHERE part <> 2`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	logs := make(map[string]*known)
	for rows.Next() {
		var name sql.NullString
		k := &known{}
		if err := rows.Scan(&name, &k.id, &k.size, &k.modified, &k.archived); err != nil {
			return nil, err
		}
		if !name.Valid { // a removal that was interrupted
			name.String = fmt.Sprintf("\x00%d", k.id)
		}
		logs[name.String] = k
	}
	return logs, rows.Err()
}

// compare lists the store and returns what has to be read.
func (r *catching) compare(logs map[string]*known) (jobs []job, err error) {
	all, err := store.All(r.ctx, r.ix.store)
	if err != nil {
		return nil, err
	}
	for name := range r.marks {
		r.note(name, nil)
	}
	for _, l := range all {
		if m := r.marks[l.Name]; m != nil {
			m.known = false
		}
		if jobs, err = r.consider(jobs, l.Stat, l.Err, logs[l.Name]); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// consider adds a log to the jobs if it differs from the index's record. statErr is why the
// store cannot describe it.
func (r *catching) consider(jobs []job, stat store.Stat, statErr error, was *known) ([]job, error) {
	r.report.Sessions++
	if was != nil {
		was.seen = true
	}
	if statErr != nil {
		r.unread(stat.Name, statErr)
		return jobs, nil
	}
	if was != nil && was.size == stat.Size && was.modified == stat.Modified.UnixNano() && was.archived == stat.Archived {
		r.note(stat.Name, &stat)
		return jobs, nil
	}
	r.total += stat.Size
	if was != nil {
		r.total -= min(was.size, stat.Size)
	}
	if was != nil && !was.placed {
		err := r.db.QueryRowContext(r.ctx, `SELECT pos, head_hash, tail_pos, tail_hash FROM sessions WHERE id = ?`, was.id).
			Scan(&was.pos, &was.head, &was.tailPos, &was.tailSum)
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // another process may have removed it
			return nil, err
		}
	}
	if was != nil && (!r.ix.opts.Apart || r.ix.room.Forgets()) { // the others would forget all logs for this one
		if err := r.isGuessed(was); err != nil {
			return nil, err
		}
	}
	return append(jobs, job{stat, was}), nil
}

// isGuessed finds out whether later lines may change the meaning of those that were read of a log:
// it has a missing parent, whose place was guessed (see resolveOrphans); or an entry that damage has
// under its own number, because its rest is lost (see session.Rewritten) or its copy moved the leaf
// (see moveToCopy).
func (r *catching) isGuessed(was *known) error {
	return r.db.QueryRowContext(r.ctx, `SELECT EXISTS (SELECT 1 FROM sessions s JOIN entries e ON e.session = s.id WHERE s.id = ? AND s.problems > 0 AND e.class = ?)
		OR EXISTS (SELECT 1 FROM damage d JOIN entries e ON e.session = d.session AND e.id = d.id AND e.n = d.n WHERE d.session = ?)`,
		was.id, int64(classMissing), was.id).Scan(&was.guessed)
}
