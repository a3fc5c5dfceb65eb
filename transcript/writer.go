package transcript

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// writer puts the records of a reader into sessions.
type writer struct {
	*run
	ctx      context.Context
	targets  map[string]*target // by the conversation's id
	families map[string]*target // by family: conversations may share a session
	order    []*target          // in which they began
	current  *target
	chunks   []*chunk // of the file, by position
	rows     []*chunk // of the bytes for Keep
}

// work writes parcels until there are no more.
func (w *writer) work(parcels <-chan *parcel) error {
	for p := range parcels {
		if err := w.writeParcel(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeParcel(p *parcel) error {
	for _, c := range p.chunks {
		<-c.ready
		if c.from < keptSpace {
			w.chunks = append(w.chunks, c)
		} else {
			w.rows = append(w.rows, c)
		}
	}
	for i := range p.steps {
		if err := w.step(&p.steps[i]); err != nil {
			return err
		}
	}
	if err := w.assignChunks(w.chunks); err != nil {
		return err
	}
	for _, t := range w.order {
		if w.batch != nil && t.s == nil {
			continue // it is small, and written when it is complete
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	for _, c := range p.chunks {
		w.src.Chunks = append(w.src.Chunks, Kept{From: c.from, Len: c.size, Sum: c.sum, Blob: c.ref})
		if w.im.Progress != nil && c.from < keptSpace {
			w.im.Progress(c.size)
		}
	}
	w.forget(p.chunks)
	return nil
}

func (w *writer) step(st *step) error {
	switch {
	case st.begin != nil:
		return w.begin(*st.begin)
	case w.current == nil:
		return errors.New("a reader gave a record before it began a conversation")
	}
	return w.current.add(st.rec)
}

// begin makes a conversation the current one.
func (w *writer) begin(c Conversation) error {
	t := w.targets[c.ID]
	if t == nil {
		family := c.Family
		if family == "" {
			family = c.ID
		}
		if t = w.families[family]; t == nil {
			var err error
			if t, err = w.newTarget(c, family); err != nil {
				return err
			}
			w.families[family] = t
			w.order = append(w.order, t)
		}
		w.targets[c.ID] = t
	}
	t.addFacts(c)
	w.current = t
	return nil
}

// assignChunks gives chunks without a record to the first conversation, so that nothing
// that was read is lost.
func (w *writer) assignChunks(chunks []*chunk) error {
	if len(w.order) == 0 {
		return nil
	}
	for _, c := range chunks {
		if !c.assigned {
			if _, err := w.order[0].imported(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget releases chunks that are kept, so that memory does not grow with the file.
func (w *writer) forget(chunks []*chunk) {
	for _, c := range chunks {
		if c.ref != "" {
			c.packed = nil
		}
	}
}

// chunkAt returns the chunk that holds a position, or nil.
func (w *writer) chunkAt(pos int64) *chunk {
	chunks := w.chunks
	if pos >= keptSpace {
		chunks = w.rows
	}
	at, found := slices.BinarySearchFunc(chunks, pos, func(c *chunk, pos int64) int {
		switch {
		case c.end() <= pos:
			return -1
		case c.from > pos:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return chunks[at]
}

// finish completes the sessions and closes them.
func (w *writer) finish(tallies map[string]*tally, whole bool) error {
	var errs []error
	// A database is not kept again because one of its rows changed: for an existing
	// session only the bytes of new records are kept.
	if len(w.order) > 0 && w.order[0].created && whole {
		errs = append(errs, w.assignChunks(w.rows))
	}
	for i, t := range w.order {
		if i == 0 && tallies[""] != nil { // counts from before the first conversation began
			t.tally.addAll(tallies[""])
			delete(tallies, "")
		}
		for _, id := range t.natives {
			if tally := tallies[id]; tally != nil {
				t.tally.addAll(tally)
				delete(tallies, id)
			}
		}
		if whole {
			errs = append(errs, t.finish())
		}
		errs = append(errs, t.close())
		w.report.Sessions = append(w.report.Sessions, t.report())
		w.report.Problems += t.tally.n
		if t.s != nil {
			w.src.Sessions = append(w.src.Sessions, t.id)
		}
	}
	for _, rest := range slices.Sorted(maps.Keys(tallies)) { // of no conversation
		w.report.Problems += tallies[rest].n
	}
	if w.before != nil { // a resumed reading may not see all of them again
		for _, id := range w.before.Sessions {
			if !slices.Contains(w.src.Sessions, id) {
				w.src.Sessions = append(w.src.Sessions, id)
			}
		}
	}
	return errors.Join(errs...)
}

// addAll adds another tally.
func (t *tally) addAll(other *tally) {
	for k, n := range other.counts {
		t.count(k.What, k.Became, n)
	}
	t.n += other.n
	t.problems = append(t.problems, other.problems...)
	t.problems = t.problems[:min(len(t.problems), maxProblems)]
}
