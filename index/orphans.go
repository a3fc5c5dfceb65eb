package index

import (
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// An entry whose parent was not read yet is an orphan. Its parent may come later, or never, and
// only all lines show which. So orphans wait until all lines that there are were read, as in
// package session. If the place of a missing parent was guessed and the log grows, all of it is
// read again: the parent may have come.

// orphan is an entry without its parent.
type orphan struct {
	n       int64
	line    int64  // the number that the next entry had when its line was read
	parent  string // its id
	guessed bool   // the line does not name the parent, which was guessed
}

// guess is an entry whose parent is guessed, and the entry that came before it.
type guess struct{ n, after int64 }

// resolveOrphans gives orphans their parents, or entries in place of those that are missing, and
// moves the leaf where the last line moved it.
func (w *writer) resolveOrphans(s *state) error {
	if len(s.orphans) > 0 {
		s.fresh = nil // its entries change
		if err := w.findParents(s); err != nil {
			return err
		}
		s.orphans = nil
	}
	if s.moved {
		s.moved = false
		return w.moveLeaf(s)
	}
	return nil
}

// findParents resolves the orphans, in the order in which package session does.
func (w *writer) findParents(s *state) error {
	cameLate, placed, missing := false, []guess(nil), []guess(nil)
	made := make(map[int64]int) // the entries that were missing, with the numbers of their guesses
	last := make(map[int64]int)
	for i, o := range s.orphans {
		last[o.n] = i
	}
	for i, o := range s.orphans {
		if o.guessed && last[o.n] != i { // an entry has filled the gap since
			continue
		}
		parent, found, err := w.numberOf(s, o.parent, idKey(o.parent))
		switch {
		case err != nil:
			return err
		case o.guessed:
			placed = append(placed, guess{o.n, parent})
		case found:
			cameLate = true
		default:
			g, err := w.insertMissing(s, o)
			if err != nil {
				return err
			}
			made[g.n] = len(missing)
			missing = append(missing, g)
			parent = g.n
		}
		if at, ok := made[parent]; ok && o.n < o.line { // it filled a gap before its line
			cameLate = true
			before, _, err := w.lastNamed(s, o.n)
			if err != nil {
				return err
			}
			missing[at].after = min(missing[at].after, before)
		}
		if err := w.setParent(s, o.n, parent); err != nil {
			return err
		}
	}
	if !cameLate { // without one there is no circle, and no descendant before its ancestor
		return nil
	}
	return w.setGuesses(s, append(placed, missing...))
}

// setGuesses cuts the circles that the lines make, and then gives each entry whose parent is guessed
// the most likely one.
func (w *writer) setGuesses(s *state, guesses []guess) error {
	for _, g := range guesses {
		if err := w.setParent(s, g.n, -1); err != nil {
			return err
		}
	}
	if err := w.cutCircles(s, nil); err != nil || len(guesses) == 0 {
		return err
	}
	if err := w.chooseParents(s, guesses); err != nil {
		return err
	}
	for _, g := range guesses {
		if err := w.setParent(s, g.n, g.after); err != nil {
			return err
		}
	}
	return w.cutCircles(s, guesses)
}

func (w *writer) setParent(s *state, n, parent int64) error {
	s.breaks++
	return w.exec(`UPDATE entries SET parent = ? WHERE session = ? AND n = ?`, parent, s.id, n)
}

// chooseParents makes sure that no guess follows its own descendant: see session.LikelyParents. The
// parents of all guesses must be open.
func (w *writer) chooseParents(s *state, guesses []guess) error {
	sh, err := loadShape(w.ctx, w, s.id, s.next, -1)
	if err != nil {
		return err
	}
	parents, hasLine := make([]int32, s.next), make([]bool, s.next)
	for _, r := range sh.runs {
		for n := r.first; n <= r.last; n++ {
			parents[n], hasLine[n] = int32(n-1), true
		}
		parents[r.first] = int32(r.parent)
		hasLine[r.first] = r.class != classNoID && r.class != classMissing
	}
	likely := session.LikelyParents(parents, func(n int32) bool { return hasLine[n] })
	for i, g := range guesses {
		if g.after >= 0 {
			guesses[i].after = int64(likely[g.after])
		}
	}
	return nil
}

// insertMissing adds an entry that an orphan names as its parent and that is missing. A damaged
// line with its id counts as that entry, or else an unreadable line that was not taken for
// another and is not the first, which is the header. If there is none, it follows the line before
// its child. So damage does not cut a conversation in two.
func (w *writer) insertMissing(s *state, o orphan) (guess, error) {
	s.problems++
	var n, parent int64
	var free bool
	found, err := w.find([]any{&n, &parent, &free}, `SELECT d.n, CASE WHEN e.class IN (?, ?) THEN e.parent ELSE e.n END, e.id IS NULL
		FROM damage d JOIN entries e ON e.session = d.session AND e.n = d.n WHERE d.session = ? AND d.id = ? AND d.n < ? ORDER BY d.n DESC LIMIT 1`,
		int64(classNoID), int64(classMissing), s.id, idKey(o.parent), o.line)
	if err != nil {
		return guess{}, err
	}
	if !found {
		free, err = w.find([]any{&n, &parent}, `SELECT n, parent FROM entries WHERE session = ? AND id IS NULL AND pos > 0 AND n < ? ORDER BY n DESC LIMIT 1`, s.id, o.line)
		if err == nil && !free {
			parent, _, err = w.lastNamed(s, o.n)
		}
		if err != nil {
			return guess{}, err
		}
	}
	if free {
		s.ids[o.parent] = n
		err := w.exec(`UPDATE entries SET id = ?, class = ? WHERE session = ? AND n = ?`, idKey(o.parent), classMissing, s.id, n)
		return guess{n, parent}, err
	}
	n, err = w.insert(s, &record{pos: -1, id: o.parent, class: classMissing}, idKey(o.parent), parent)
	return guess{n, parent}, err
}

// cutCircles makes one entry of each circle a root.
func (w *writer) cutCircles(s *state, guesses []guess) error {
	sh, err := loadShape(w.ctx, w, s.id, s.next, -1)
	if err != nil {
		return err
	}
	above := func(run int) int { return sh.runOf(sh.runs[run].parent) } // -1 above a root
	visited := make([]int, len(sh.runs))                                // the number of the walk that visited a run, or zero
	for i, o := range s.orphans {
		at := sh.runOf(o.n)
		for ; at >= 0 && visited[at] == 0; at = above(at) {
			visited[at] = i + 1
		}
		if at < 0 || visited[at] != i+1 {
			continue // it ended at a root, or where an earlier walk has been
		}
		var circle []span // the entries of each run that are in it
		for run, first := at, true; first || run != at; first = false {
			next := above(run)
			circle = append(circle, span{sh.runs[next].first, sh.runs[run].parent})
			run = next
		}
		if err := w.cutCircle(s, circle, guesses); err != nil {
			return err
		}
	}
	return nil
}

// cutCircle cuts a circle where package session does: of the entries whose parent came later,
// at the last; but if a parent was only guessed, because that entry is missing, there.
func (w *writer) cutCircle(s *state, circle []span, guesses []guess) error {
	type place struct{ n, parent, pos int64 }
	pos := make(map[int64]int64)
	var places []place
	guessed := -1
	for _, part := range circle {
		rows, err := w.QueryContext(w.ctx, `SELECT n, parent, pos FROM entries WHERE session = ? AND n BETWEEN ? AND ?`, s.id, part.first, part.last)
		if err != nil {
			return err
		}
		for rows.Next() {
			var p place
			if err := rows.Scan(&p.n, &p.parent, &p.pos); err != nil {
				return errors.Join(err, rows.Close())
			}
			pos[p.n], places = p.pos, append(places, p)
			at := slices.IndexFunc(guesses, func(g guess) bool { return g.n == p.n })
			if at > guessed {
				guessed = at
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	if guessed >= 0 {
		return w.setParent(s, guesses[guessed].n, -1)
	}
	cut := place{pos: -1}
	for _, p := range places {
		if pos[p.parent] > p.pos && p.pos > cut.pos {
			cut = p
		}
	}
	s.problems++
	return w.setParent(s, cut.n, -1)
}

// moveLeaf moves the leaf where the last line moved it. If that entry only moves the leaf
// itself, the leaf goes where that entry moved it, as in package session.
func (w *writer) moveLeaf(s *state) error {
	id := s.leafID
	if id == "" {
		s.leaf = -1
		return nil
	}
	to, found, err := w.numberOf(s, id, idKey(id))
	if err != nil || !found {
		return err
	}
	for range s.next { // no path is longer
		var class, parent int64
		var above any
		found, err := w.find([]any{&class, &parent, &above}, `SELECT e.class, e.parent, p.id FROM entries e
			LEFT JOIN entries p ON p.session = e.session AND p.n = e.parent WHERE e.session = ? AND e.n = ?`, s.id, to)
		if err != nil {
			return err
		}
		if !found || class != int64(classLeaf) {
			break
		}
		to, id = parent, idOf(above)
	}
	s.leaf, s.leafID = to, id
	return nil
}
