package index

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// bill is what an entry says that a response cost.
type bill struct {
	n   int64
	rec *record
}

// apply adds a record to a session.
func (w *writer) apply(s *state, rec *record) error {
	if rec.found {
		s.setHeader(rec.header)
		return nil
	}
	s.pos, s.tailPos, s.tailSum = int64(rec.next), int64(rec.pos), rec.sum
	switch {
	case rec.header != nil:
		if rec.pos != 0 {
			s.problems++
		}
		return nil
	case rec.class == classNoID:
		s.problems++
		return w.insertUnnamed(s, rec)
	}
	if s.begins && rec.isMarker {
		if err := w.endBeginning(s, rec); err != nil {
			return err
		}
	}
	n, err := w.attach(s, rec)
	if err != nil || n < 0 {
		return err
	}
	s.agent = cmp.Or(s.agent, session.OwnAgent) // a log without a header is a session if it has an entry
	if rec.damaged {
		s.problems++
	}
	if rec.class == classDamaged {
		return nil
	}
	w.entries++
	s.remember(n, rec)
	if err := w.addFiles(s, rec); err != nil {
		return err
	}
	if rec.usage != nil {
		s.bills = append(s.bills, bill{n, rec})
	}
	if !s.begins {
		if err := w.addBills(s); err != nil {
			return err
		}
	}
	if err := w.addSilent(s, n, rec); err != nil {
		return err
	}
	return w.addDocs(s, n, rec)
}

// addBills enters what responses cost. In a continuation that waits for the marker: what comes before
// that was paid for where it was copied from.
func (w *writer) addBills(s *state) error {
	for _, b := range s.bills {
		if err := w.addUsage(s, b.n, b.rec); err != nil {
			return err
		}
	}
	s.bills = s.bills[:0]
	return nil
}

// endBeginning takes the marker of a continuation: all that came before was copied, and its models,
// tools and responses are counted where it was copied from.
func (w *writer) endBeginning(s *state, rec *record) error {
	s.begins, s.original = false, bounded(rec.original)
	s.bills, s.billed, s.recorded = nil, 0, 0
	clear(s.models)
	clear(s.tools)
	if s.isNew { // nothing was entered yet
		return nil
	}
	return w.dropUsage(s.id)
}

// addSilent enters a message that has no first document.
func (w *writer) addSilent(s *state, n int64, rec *record) error {
	if !rec.isMessage || len(rec.docs) > 0 && rec.docs[0].ordinal == 0 {
		return nil
	}
	role, err := w.nameID(rec.role)
	if err != nil {
		return err
	}
	model, err := w.nameID(rec.model)
	if err != nil {
		return err
	}
	return w.exec(`INSERT INTO silent (session, entry, time, role, model) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (session, entry) DO UPDATE SET time = excluded.time, role = excluded.role, model = excluded.model`,
		s.id, n, cmp.Or(rec.time, s.updated), role, model)
}

// attach adds an entry to the tree, under its parent, and moves the leaf. It returns the
// entry's number, or -1 if the entry exists already and does not count. A parent that is not
// there yet is found by resolveOrphans.
func (w *writer) attach(s *state, rec *record) (int64, error) {
	line := s.next
	parent, isOrphan, err := w.parentOf(s, rec)
	if err != nil {
		return -1, err
	}
	n, err := w.insert(s, rec, idKey(rec.id), parent)
	if err == nil && n < 0 && rec.class == classDamaged { // another entry has the id that it seems to have
		return -1, w.insertUnnamed(s, rec)
	}
	if err == nil && n < 0 {
		n, err = w.fillMissing(s, rec)
		isOrphan = !rec.isRoot && rec.parent != rec.id // its parent may descend from it
		if err == nil && n < 0 {
			return n, w.moveToCopy(s, rec)
		}
	}
	if err == nil && n >= 0 {
		err = w.noteLost(s, rec, n)
	}
	if err == nil && n >= 0 && (isOrphan || rec.placed) {
		s.orphans = append(s.orphans, orphan{n, line, rec.parent, rec.placed})
	}
	if err != nil || n < 0 || rec.class == classDamaged {
		return n, err
	}
	if s.moved = rec.class == classLeaf; s.moved {
		s.leafID = rec.parent
		return n, nil
	}
	s.leaf, s.leafID = n, rec.id
	s.noteContext(rec)
	return n, nil
}

// moveToCopy moves the leaf on to an entry whose line comes a second time, if the first was a copy
// in the place of other lines, as package session does: see isCopied there.
func (w *writer) moveToCopy(s *state, rec *record) error {
	if rec.isRoot || s.leafID != rec.parent || rec.class == classLeaf || rec.class == classDamaged {
		return nil
	}
	n, found, err := w.numberOf(s, rec.id, idKey(rec.id))
	if err != nil || !found {
		return err
	}
	parent, found, err := w.numberOf(s, rec.parent, idKey(rec.parent))
	if err != nil || !found || parent < n && s.copied != rec.parent {
		return err
	}
	at, found := slices.BinarySearchFunc(s.orphans, n, func(o orphan, n int64) int { return cmp.Compare(o.n, n) })
	if parent < n || !found || s.orphans[at].parent != rec.parent {
		found, err = w.find([]any{new(int64)}, `SELECT n FROM entries WHERE session = ? AND n = ? AND parent = ?`, s.id, n, parent)
		if err != nil || !found {
			return err
		}
	}
	s.copied = rec.id
	s.leaf, s.leafID, s.moved = n, rec.id, false
	s.breaks++                    // it is in an unexpected place, so settle has to look
	return w.noteID(s, rec.id, n) // see isGuessed
}

// noteContext records the size of the context at the leaf, as long as the session has no
// branches; otherwise settle finds it.
func (s *state) noteContext(rec *record) {
	if context := rec.context(); context != nil {
		s.context = *context
	}
}

// context returns how many tokens the conversation has after an entry, 0 when
// that is no longer known, nil when it does not say.
func (rec *record) context() *int64 {
	switch {
	case rec.isMessage && rec.usage != nil && rec.usage.recorded == 0:
		return &rec.usage.context
	case rec.isTurn:
		return new(int64)
	}
	return nil
}

// parentOf returns the number of an entry's parent, or -1 if it has none, or none yet.
func (w *writer) parentOf(s *state, rec *record) (n int64, isOrphan bool, err error) {
	guess := rec.class == classDamaged
	switch {
	case rec.isRoot:
		return -1, false, nil
	case rec.parent == rec.id && !guess:
		s.problems++
		return -1, false, nil
	case rec.parent == s.prev && s.prev != "":
		return s.next - 1, false, nil // nearly always
	}
	if rec.parent != "" {
		n, found, err := w.numberOf(s, rec.parent, idKey(rec.parent))
		if err != nil || found {
			return n, false, err
		}
		if !guess {
			return -1, true, nil
		}
	}
	// It names none, or one that cannot be right: most likely it is the line before, or the one before
	// the gap that it fills.
	place := s.next
	if gap, found, err := w.numberOf(s, rec.id, idKey(rec.id)); err != nil {
		return -1, false, err
	} else if found {
		place = gap
	}
	n, rec.parent, err = w.lastNamed(s, place)
	rec.isRoot = n < 0
	rec.placed = n >= 0
	return n, false, err
}

// numberOf returns the number of the session's entry that has an id. The numbers of entries
// that were just read are in memory; for a new session, these are all.
func (w *writer) numberOf(s *state, id string, key any) (n int64, found bool, err error) {
	if n, found = s.ids[id]; found || s.isNew {
		return n, found, nil
	}
	if s.isAfterAll(key) {
		return 0, false, nil
	}
	found, err = w.findWritten([]any{&n}, `SELECT n FROM entries WHERE session = ? AND id = ?`, s.id, key)
	return n, found, err
}

// isAfterAll reports whether an id is greater than all that the session had when its
// log was last read. Most programs give out ids that rise, and then no entry has to
// be looked up.
func (s *state) isAfterAll(key any) bool {
	id, isBytes := key.([]byte)
	return isBytes && bytes.Compare(id, s.greatest) > 0
}

// insert adds an entry and returns its number, or -1 if its id exists already.
func (w *writer) insert(s *state, rec *record, id any, parent int64) (int64, error) {
	n := s.next
	if id != nil {
		if _, isTaken, err := w.numberOf(s, rec.id, id); err != nil || isTaken {
			return -1, err
		}
		s.ids[rec.id] = n
	}
	var context any
	if c := rec.context(); c != nil {
		context = *c
	}
	if err := w.add(w.entryRows, s.id, n, id, parent, int64(rec.pos), rec.timeInTable(), int64(rec.class), context); err != nil {
		return -1, err
	}
	if rec.class == classEntry || rec.class == classLost || rec.class == classStep {
		s.branches = max(s.branches, 1) // correct as long as there is no break
	}
	if isBreak(n, parent, rec.class) {
		s.breaks++
	}
	if s.fresh != nil {
		s.fresh.note(n, parent, rec)
	}
	s.next++
	s.prev = rec.id
	return n, nil
}

// insertUnnamed adds a damaged line that may have been any entry, after the last known one.
func (w *writer) insertUnnamed(s *state, rec *record) error {
	parent, _, err := w.lastNamed(s, s.next)
	if err != nil {
		return err
	}
	line := &record{pos: rec.pos, class: classNoID, lost: rec.lost}
	n, err := w.insert(s, line, nil, parent)
	if err != nil {
		return err
	}
	return w.noteLost(s, line, n)
}

// lastNamed returns the number and the id of the last entry that has a line with its id, among
// those before a number, or -1.
func (w *writer) lastNamed(s *state, before int64) (int64, string, error) {
	n, id := int64(-1), any(nil)
	found, err := w.find([]any{&n, &id}, `SELECT n, id FROM entries WHERE session = ? AND n < ? AND id IS NOT NULL AND class <> ? ORDER BY n DESC LIMIT 1`,
		s.id, before, classMissing)
	if err != nil || !found {
		return -1, "", err
	}
	return n, idOf(id), nil
}

// noteLost records what looks like ids in a damaged line.
func (w *writer) noteLost(s *state, rec *record, n int64) error {
	for _, id := range rec.lost {
		if id == rec.id && !rec.isRestLost() { // see isGuessed
			continue
		}
		if err := w.noteID(s, id, n); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) noteID(s *state, id string, n int64) error {
	return w.exec(`INSERT INTO damage (session, id, n) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, s.id, idKey(id), n)
}

// fillMissing puts an entry where it was missing. Any other entry whose id exists already is
// a repetition and does not count.
func (w *writer) fillMissing(s *state, rec *record) (int64, error) {
	var n int64
	var class entryClass
	found, err := w.find([]any{&n, &class}, `SELECT n, class FROM entries WHERE session = ? AND id = ? AND class IN (?, ?)`,
		s.id, idKey(rec.id), classMissing, classDamaged)
	if err != nil || !found {
		s.problems++
		return -1, err
	}
	if class == classMissing {
		s.problems-- // it only came late
	}
	s.fresh = nil // its entries change
	s.breaks++    // it is in an unexpected place, so settle has to look
	return n, w.exec(`UPDATE entries SET parent = -1, pos = ?, time = ?, class = ?, context = ? WHERE session = ? AND n = ?`,
		int64(rec.pos), rec.timeInTable(), int64(rec.class), rec.context(), s.id, n)
}
