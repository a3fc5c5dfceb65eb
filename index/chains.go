package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Sessions that continue each other are one conversation: a chain. It has a row of its own
// among the sessions, with the sums of theirs, so that every order and every filter of a list
// works on it as on any other row. Package session decides which sessions are a chain, and in
// which order (JoinLinks).
//
// The column part says what a row is:
const (
	partAlone = 0 // a session by itself
	partLink  = 1 // a session of a chain
	partChain = 2 // a chain: it has no log, and so no name
	partGone  = 3 // a session that is being removed
)

// noteLink remembers to check a session's chain before the transaction ends, because the
// session is in a chain, says that it is, or is new and others may name it.
func (w *writer) noteLink(s *state) {
	switch {
	case s.chain != 0 || s.relation == session.RelationContinuation || s.continuedTo != "":
		w.touch(s.sid)
	case s.headed && s.sid != "":
		w.headed = append(w.headed, s.sid)
	}
}

// touchNamed touches the new sessions that others name as their neighbours.
func (w *writer) touchNamed() error {
	if len(w.headed) == 0 {
		return nil
	}
	rows, err := w.QueryContext(w.ctx, `SELECT parent FROM sessions WHERE name IS NOT NULL AND parent IN (SELECT atom FROM json_each(?1)) AND parent <> '' AND relation = ?2
		UNION SELECT continued_to FROM sessions WHERE name IS NOT NULL AND continued_to IN (SELECT atom FROM json_each(?1)) AND continued_to <> ''
		UNION SELECT original FROM sessions WHERE name IS NOT NULL AND original IN (SELECT atom FROM json_each(?1)) AND original <> ''`, marshal(w.headed), session.RelationContinuation)
	if err != nil {
		return err
	}
	w.headed = nil
	named, err := scanColumn[string](rows)
	for _, sid := range named {
		w.touch(sid)
	}
	return err
}

func (w *writer) touch(sid string) {
	if w.linked == nil {
		w.linked = make(map[string]bool)
	}
	w.linked[sid] = true
}

// linkRow is what a chain needs to know about a session.
type linkRow struct {
	session.Link
	id, chain, nth, part int64
	docs, problems       int64
	greatest             []byte    // of the ids of its entries
	changed              bool      // its entries or its place
	elsewhere            elsewhere // as the table has it
}

// elsewhere are the entries of a session that count in another one of its chain.
type elsewhere struct {
	Entries  []int64 `json:"entries,omitempty"` // their numbers, ascending
	Messages int64   `json:"messages,omitempty"`
}

// naming returns the names of the sessions that name another as their neighbour
// in a chain.
func (w *writer) naming(sid string) ([]string, error) { return naming(w.ctx, w, sid) }

func naming(ctx context.Context, q querier, sid string) ([]string, error) {
	if sid == "" {
		return nil, nil
	}
	rows, err := q.QueryContext(ctx, `SELECT name FROM sessions WHERE name IS NOT NULL AND parent = ?1 AND parent <> '' AND relation = ?2
		UNION SELECT name FROM sessions WHERE name IS NOT NULL AND continued_to = ?1 AND continued_to <> ''
		UNION SELECT name FROM sessions WHERE name IS NOT NULL AND original = ?1 AND original <> ''`, sid, session.RelationContinuation)
	if err != nil {
		return nil, err
	}
	return scanColumn[string](rows)
}

// relink updates the chains of the sessions that were touched.
func (w *writer) relink() error {
	if err := w.touchNamed(); err != nil {
		return err
	}
	for _, sid := range slices.Sorted(maps.Keys(w.linked)) {
		if !w.linked[sid] {
			continue // it was handled with another session of its chain
		}
		rows, err := w.neighbours(sid)
		if err != nil {
			return err
		}
		links := make([]session.Link, 0, len(rows))
		for _, r := range rows {
			r.changed = w.linked[r.ID]
			delete(w.linked, r.ID)
			links = append(links, r.Link)
		}
		delete(w.linked, sid)
		if err := w.saveChains(rows, session.JoinLinks(links)); err != nil {
			return err
		}
	}
	return nil
}

// neighbours returns the sessions that are linked with one, or were, by their ids.
func (w *writer) neighbours(sid string) (map[string]*linkRow, error) {
	rows := make(map[string]*linkRow)
	asked := make(map[string]bool)
	chains := map[int64]bool{0: true} // those whose sessions are or were in todo; 0 means no chain
	todo := []string{sid}
	for len(todo) > 0 {
		sid := todo[0]
		if todo = todo[1:]; sid == "" || asked[sid] {
			continue
		}
		asked[sid] = true
		r, err := w.linkRow(sid)
		if err != nil {
			return nil, err
		}
		names, err := w.naming(sid)
		if err != nil {
			return nil, err
		}
		if r != nil {
			rows[r.ID] = r
			todo = append(append(todo, r.Continues, r.ContinuedTo, r.Original), r.Replaced...)
		}
		if r != nil && !chains[r.chain] {
			chains[r.chain] = true
			// The session that held them together may be gone by now.
			together, err := w.linkNames(r.chain)
			if err != nil {
				return nil, err
			}
			names = append(names, together...)
		}
		for _, name := range names {
			var next string
			if _, err := w.find([]any{&next}, `SELECT sid FROM sessions WHERE name = ?`, name); err != nil {
				return nil, err
			}
			todo = append(todo, next)
		}
	}
	return rows, nil
}

// linkRow returns the session with an id, or nil if there is no readable one.
func (w *writer) linkRow(sid string) (*linkRow, error) {
	r := &linkRow{}
	var parent, relation, replaced, elsewhere string
	var created int64
	found, err := w.find([]any{&r.id, &r.chain, &r.nth, &r.part, &r.ID, &parent, &relation, &r.ContinuedTo, &replaced, &r.Original, &r.Index, &created, &r.docs, &r.problems, &elsewhere, &r.greatest},
		`SELECT id, chain, nth, part, sid, parent, relation, continued_to, replaced, original, continuation, created, docs, problems, elsewhere,
			(SELECT e.id FROM entries e WHERE e.session = sessions.id AND e.id IS NOT NULL ORDER BY e.id DESC LIMIT 1)
			FROM sessions WHERE sid = ? AND name IS NOT NULL AND agent <> ''`, sid)
	if err != nil || !found {
		return nil, err
	}
	if err := errors.Join(json.Unmarshal([]byte(replaced), &r.Replaced), json.Unmarshal([]byte(elsewhere), &r.elsewhere)); err != nil {
		return nil, err
	}
	r.Created = timeOf(created)
	if relation == session.RelationContinuation {
		r.Continues = parent
	}
	return r, nil
}

// saveChains writes the rows of chains, and into each session's row where it belongs.
// It deletes the rows of chains that no longer exist.
func (w *writer) saveChains(rows map[string]*linkRow, chains []session.Linked) error {
	old := make(map[int64]bool)
	for _, r := range rows {
		if err := w.stale(r.id); err != nil {
			return err
		}
		if r.chain != 0 {
			old[r.chain] = true
		}
	}
	ids := make([]int64, len(chains))
	for n, c := range chains {
		if len(c.Links) == 1 && len(c.Missing) == 0 {
			r := rows[c.Links[0]]
			if err := errors.Join(w.setChain(r, partAlone, 0, 0), w.markElsewhere(r, elsewhere{})); err != nil {
				return err
			}
			continue
		}
		id, err := w.chainRow(rows, c, old)
		if err != nil {
			return err
		}
		delete(old, id)
		ids[n] = id
		for i, sid := range c.Links {
			if err := w.setChain(rows[sid], partLink, id, int64(i)+1); err != nil {
				return err
			}
		}
	}
	for n, id := range ids { // each has its place now
		if id == 0 {
			continue
		}
		if err := w.countOnce(rows, chains[n]); err != nil {
			return err
		}
		if err := w.sumUp(id, rows, chains[n]); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if err := w.dropChain(id); err != nil {
			return err
		}
	}
	return nil
}

// chainRow returns the row of a chain: an existing one if one of its sessions has it.
func (w *writer) chainRow(rows map[string]*linkRow, c session.Linked, free map[int64]bool) (int64, error) {
	for _, sid := range c.Links {
		if id := rows[sid].chain; free[id] {
			return id, nil
		}
	}
	id, err := w.newSession()
	if err != nil {
		return 0, err
	}
	err = w.exec(`INSERT INTO sessions (id, sid, part) VALUES (?, ?, ?)`, id, c.ID, partChain)
	return id, err
}

func (w *writer) setChain(r *linkRow, part, chain, nth int64) error {
	if r.part == part && r.chain == chain && r.nth == nth {
		return nil
	}
	r.part, r.chain, r.nth, r.changed = part, chain, nth, true
	return w.exec(`UPDATE sessions SET part = ?, chain = ?, nth = ? WHERE id = ?`, part, chain, nth, r.id)
}

// countOnce finds the entries that several sessions of a chain have. Such an entry counts in the
// first of them, or if its rest is lost there, in the first that has all of it.
//
// It depends on the session and those before it, and if the rest of an entry is lost, on those after
// it, too. So if a message is added to the last session, only that is looked at.
func (w *writer) countOnce(rows map[string]*linkRow, c session.Linked) error {
	var before []byte // the greatest id of the sessions before
	changed := false
	for _, sid := range c.Links {
		r := rows[sid]
		if changed = changed || r.changed; changed || r.problems > 0 {
			there, err := w.findElsewhere(r, before)
			if err == nil {
				err = w.markElsewhere(r, there)
			}
			if err != nil {
				return err
			}
		}
		if bytes.Compare(r.greatest, before) > 0 {
			before = r.greatest
		}
	}
	return nil
}

// findElsewhere finds the entries of a session that count in another one of its chain.
//
// Its own entries have greater ids than those of the sessions before, if ids rise, as most do; then
// only copies are looked up. An entry is looked for in the nearest session first, which nearly
// always has it; looking in all would make a chain's cost quadratic. It is not an EXISTS, because
// SQLite would ignore the order there.
func (w *writer) findElsewhere(r *linkRow, before []byte) (there elsewhere, err error) {
	cond := `c.id <= ?4`
	if r.problems > 0 {
		cond = `(c.id <= ?4 OR c.time = ?5)`
	}
	rows, err := w.QueryContext(w.ctx, `SELECT c.n, CASE WHEN c.class IN (0, 6) THEN 1 ELSE 0 END FROM entries c
		WHERE c.session = ?1 AND c.class NOT IN (2, 3, 4) AND `+cond+` AND (SELECT 1 FROM sessions l
			WHERE l.chain = ?2 AND l.chain <> 0 AND (l.nth < ?3 OR c.time = ?5) AND EXISTS (SELECT 1 FROM entries e
				WHERE e.session = l.id AND e.id = c.id AND e.class NOT IN (2, 3, 4) AND (e.time <> ?5 OR c.time = ?5 AND l.nth < ?3))
			ORDER BY l.nth DESC LIMIT 1) IS NOT NULL ORDER BY c.n`, r.id, r.chain, r.nth, before, int64(lostTime))
	if err != nil {
		return there, err
	}
	defer rows.Close()
	for rows.Next() {
		var n, message int64
		if err := rows.Scan(&n, &message); err != nil {
			return there, err
		}
		there.Entries, there.Messages = append(there.Entries, n), there.Messages+message
	}
	return there, rows.Err()
}

// markElsewhere records which entries of a session count in another one of its chain, so that
// searches and sums leave them out. Documents that are not written yet are marked as they are.
func (w *writer) markElsewhere(r *linkRow, there elsewhere) error {
	if slices.Equal(r.elsewhere.Entries, there.Entries) && r.elsewhere.Messages == there.Messages {
		return nil
	}
	r.elsewhere = there
	if err := w.exec(`UPDATE sessions SET elsewhere = ? WHERE id = ?`, marshal(there), r.id); err != nil {
		return err
	}
	entries := "[]"
	if len(there.Entries) > 0 {
		entries = marshal(there.Entries)
	}
	const mark = ` SET elsewhere = CASE WHEN entry IN (SELECT value FROM json_each(?)) THEN 1 ELSE 0 END WHERE session = ?`
	if err := w.exec(`UPDATE silent`+mark, entries, r.id); err != nil {
		return err
	}
	for i := range w.docs {
		if d := &w.docs[i]; d.session == r.id {
			_, d.elsewhere = slices.BinarySearch(there.Entries, d.entry)
			r.docs--
		}
	}
	if r.docs == 0 {
		return nil
	}
	return w.exec(`UPDATE docs`+mark+` AND id IN (SELECT rowid FROM fts WHERE fts MATCH ?)`, entries, r.id, ofSession(r.id))
}

// dropChain removes the row of a chain that has no sessions any more.
func (w *writer) dropChain(id int64) error {
	var one int
	if used, err := w.find([]any{&one}, `SELECT 1 FROM sessions WHERE chain = ? AND chain <> 0 LIMIT 1`, id); err != nil || used {
		return err
	}
	if err := w.exec(`DELETE FROM tags WHERE session = ?`, id); err != nil {
		return err
	}
	return w.exec(`DELETE FROM sessions WHERE id = ? AND part = ?`, id, partChain)
}

// sumUp writes the row of a chain.
func (w *writer) sumUp(id int64, rows map[string]*linkRow, c session.Linked) error {
	sum := &state{
		id: id, sid: c.ID, name: c.ID, leaf: -1, archived: true, links: int64(len(c.Links)), missing: c.Missing,
		models: make(map[string]int64), tools: make(map[string]int64), tagSet: &session.TagSet{}, retagged: true,
	}
	folded := false
	names, err := w.linkNames(id)
	if err != nil {
		return err
	}
	states, err := w.loadStates(names)
	if err != nil {
		return err
	}
	for i, name := range names {
		s := states[name]
		sum.add(s, rows[s.sid].elsewhere, i == 0)
		if i == 0 {
			if _, err := w.find([]any{&folded}, `SELECT folded FROM sessions WHERE id = ?`, s.id); err != nil {
				return err
			}
		}
	}
	if sum.billed > 0 { // as Usage counts: of each session the reports, or else the recorded sizes
		sum.billed, sum.recorded = sum.tokens, 0
	}
	sum.describe()
	if sum.dir, err = w.nameID(sum.cwd); err != nil {
		return err
	}
	if sum.maker, err = w.nameID(sum.agent); err != nil {
		return err
	}
	sum.row = sum.encodeRow()
	text := rowText{marshal(sum.tags), marshal(sum.models), marshal(sum.tools), "[]", "[]", "[]"}
	if len(sum.tags) == 0 {
		text.tags = "[]"
	}
	if err := w.exec(updateRow, append(values(sum.fields(&text)), id)...); err != nil {
		return err
	}
	if err := w.exec(`UPDATE sessions SET folded = ? WHERE id = ?`, folded, id); err != nil {
		return err
	}
	return w.saveTags(sum)
}

// linkNames returns the logs of a chain's sessions in their order.
func (w *writer) linkNames(chain int64) ([]string, error) { return linkNames(w.ctx, w, chain) }

func linkNames(ctx context.Context, q querier, chain int64) ([]string, error) {
	rows, err := q.QueryContext(ctx, `SELECT name FROM sessions WHERE chain = ? AND chain <> 0 AND name IS NOT NULL ORDER BY nth`, chain)
	if err != nil {
		return nil, err
	}
	return scanColumn[string](rows)
}

// add adds a session to the sum of its chain, without what counts elsewhere.
func (s *state) add(link *state, there elsewhere, first bool) {
	if first {
		s.created, s.cwd, s.agent, s.branches = link.created, link.cwd, link.agent, 1
		if link.sid == s.sid {
			s.name, s.parent, s.relation = link.name, link.parent, link.relation
		}
	}
	if s.key == "" {
		s.key = link.key
	}
	for _, named := range link.names {
		if _, copied := slices.BinarySearch(there.Entries, named.N); !copied {
			s.given = named.Name
		}
	}
	s.first = BetterTitle(s.first, link.first)
	s.leafID, s.context = link.leafID, link.context
	s.said = max(s.said, link.said)
	s.updated = cmp.Or(s.said, max(s.updated, link.updated))
	s.entries += link.entries - int64(len(there.Entries))
	s.messages += link.messages - there.Messages
	s.branches += max(link.branches-1, 0) // one branch of each continues in the next
	s.tokens += link.tokens
	s.billed += link.billed
	s.recorded += link.recorded
	s.problems += link.problems
	s.size += link.size
	s.docs += link.docs
	s.pinned = s.pinned || link.pinned
	s.archived = s.archived && link.archived
	s.tagSet.Add(link.tags...)
	for name, n := range link.models {
		s.models[name] += n
	}
	for name, n := range link.tools {
		s.tools[name] += n
	}
}

// Conversation returns the catalogue's row of the conversation that a session is part of: of
// the session itself, or of its chain. The id may be that of any session of the chain, even a
// missing one, or a log's name. An unknown id is store.ErrNotExist.
func (ix *Index) Conversation(ctx context.Context, id string) (Session, error) {
	var found []Session
	err := ix.read(ctx, "get", func(db room.Tables) error {
		row, err := conversationOf(ctx, db, id)
		if err != nil {
			return err
		}
		found, err = scanSessions(ctx, db, `s.id = ?`, row)
		return err
	})
	if err == nil && len(found) == 0 {
		err = &store.Error{Op: "get", Name: id, Kind: store.ErrNotExist}
	}
	if err != nil {
		return Session{}, err
	}
	return found[0], nil
}

// conversationOf returns the row of the conversation that a session is part of.
func conversationOf(ctx context.Context, db room.Tables, id string) (int64, error) {
	var row int64
	var unread bool
	found, err := scanRow(db.QueryRowContext(ctx, `SELECT CASE chain WHEN 0 THEN id ELSE chain END, name IS NOT NULL AND agent = '' FROM sessions
			WHERE (name = ?1 OR sid = ?1 AND part = ?2) AND ?1 <> '' ORDER BY 2, name IS NULL LIMIT 1`, id, partChain), []any{&row, &unread})
	if err != nil || found && !unread {
		return row, err
	}
	// It may be missing from the middle of a chain, or be unreadable.
	names, err := naming(ctx, db, id)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		row, err := conversationOf(ctx, db, name)
		if err != nil {
			return 0, err
		}
		found, err := scanSessions(ctx, db, `s.id = ?`, row)
		if err != nil {
			return 0, err
		}
		if len(found) > 0 && slices.Contains(found[0].Missing, id) {
			return row, nil
		}
	}
	if found {
		return row, nil
	}
	return 0, &store.Error{Op: "look up", Name: id, Kind: store.ErrNotExist}
}

// Links returns the sessions of the conversation that a session is part of, in order: see
// Conversation.
func (ix *Index) Links(ctx context.Context, id string) ([]Session, error) {
	var found []Session
	err := ix.read(ctx, "links", func(db room.Tables) error {
		row, err := conversationOf(ctx, db, id)
		if err != nil {
			return err
		}
		found, err = scanSessions(ctx, db, `(s.id = ?1 AND s.part <> ?2 OR s.chain = ?1 AND s.chain <> 0) AND s.name IS NOT NULL ORDER BY s.nth`, row, partChain)
		return err
	})
	return found, err
}

// Naming returns the names of the sessions that name a session as the one that they continue,
// that continues them, or that their chain begins with. session.FindChain needs them.
func (ix *Index) Naming(ctx context.Context, id string) (names []string, err error) {
	err = ix.read(ctx, "find", func(db room.Tables) error {
		names, err = naming(ctx, db, id)
		return err
	})
	return names, err
}

// Lost returns the ids of missing sessions that begin with a prefix and whose chains still
// exist, so that a conversation can be found by its id when its first session is gone. It
// returns at most 20.
func (ix *Index) Lost(ctx context.Context, prefix string) ([]string, error) {
	if prefix == "" {
		return nil, nil
	}
	var lost []string
	err := ix.read(ctx, "find", func(db room.Tables) error {
		rows, err := db.QueryContext(ctx, `SELECT sid FROM sessions WHERE sid >= ?1 AND sid < ?2 AND part = ?3
			UNION SELECT sid FROM sessions WHERE tail >= ?1 AND tail < ?2 AND tail <> '' AND part = ?3
			UNION SELECT parent FROM sessions WHERE parent >= ?1 AND parent < ?2 AND parent <> '' AND relation = ?4 AND name IS NOT NULL
			UNION SELECT continued_to FROM sessions WHERE continued_to >= ?1 AND continued_to < ?2 AND continued_to <> '' AND name IS NOT NULL
			LIMIT ?5`, prefix, afterPrefix(prefix), partChain, session.RelationContinuation, maxFound)
		if err != nil {
			return err
		}
		lost, err = scanColumn[string](rows)
		return err
	})
	slices.Sort(lost)
	return slices.Compact(lost), err
}
