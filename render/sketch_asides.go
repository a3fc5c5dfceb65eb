package render

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// classify finds out what the entries from a number on are. gone are those before it that are left
// out now.
func (k *Sketch) classify(shape *session.Shape, from int32) (gone []int32, err error) {
	if k.all {
		k.hideMoves(shape)
	}
	var read []int32 // what only the entry itself says
	for i := from; i < int32(shape.Len()); i++ {
		k.traits[i] = k.traits[i] & isAside
		switch t := shape.Type(i); {
		case t == session.TypeMessage:
			role, known := shape.Role(i)
			if role == session.RoleUser {
				k.traits[i] |= isPrompt
			} else if !known {
				read = append(read, i)
			}
		case k.all:
		case t == session.TypeCustom:
			read = append(read, i)
		case t == session.TypeContinues: // where a session ends and another begins is worth a line
		case t.IsRemark() || t == session.TypeLeaf:
			k.traits[i] |= isAside
		}
	}
	var unqueued []string
	err = peekEach(shape, read, func(i int32, e *session.Entry) {
		if m := e.Message; m != nil && m.Role == session.RoleUser {
			k.traits[i] |= isPrompt
		}
		if !k.all {
			k.traits[i] |= traitsOf(e)
			unqueued = append(unqueued, e.Unqueued()...)
		}
	})
	if err != nil || k.all {
		return nil, err
	}
	answered, err := k.answered(shape, from)
	if err != nil {
		return nil, err
	}
	done, err := k.done(shape, from, unqueued)
	for _, i := range slices.Concat(answered, done) {
		if i < from && !k.traits[i].isShown() {
			gone = append(gone, i)
		}
	}
	return gone, err
}

// hideMoves leaves out entries that only move the leaf, unless something follows them.
func (k *Sketch) hideMoves(shape *session.Shape) {
	for i := range int32(shape.Len()) {
		if k.traits[i] = 0; shape.Type(i) == session.TypeLeaf {
			k.traits[i] = isAside
		}
	}
	for i := range int32(shape.Len()) {
		if shape.Type(i) == session.TypeLeaf {
			continue
		}
		for p := shape.Parent(i); p != none && k.traits[p] == isAside; p = shape.Parent(p) {
			k.traits[p] = 0
		}
	}
}

// traitsOf returns the properties of a custom entry.
func traitsOf(e *session.Entry) (t trait) {
	if e.Custom == nil {
		return 0
	}
	if e.IsAside() {
		t |= isAside
	}
	if _, ok := e.DraftText(); ok {
		t |= isDraft
	}
	if _, ok := e.Queued(); ok {
		t |= isQueued | isPrompt
	}
	return t
}

// peekEach reads entries, a few at a time.
func peekEach(shape *session.Shape, numbers []int32, visit func(i int32, e *session.Entry)) error {
	for some := range slices.Chunk(numbers, ReadAtOnce) {
		entries, err := shape.Peek(some, nil)
		if err != nil {
			return err
		}
		for i := range entries {
			visit(some[i], &entries[i])
		}
	}
	return nil
}

// answered finds the drafts that another draft or a message of the model follows, among the entries
// from a number on. Only the last draft of an answer that was never completed is shown.
func (k *Sketch) answered(shape *session.Shape, from int32) (drafts []int32, _ error) {
	follows := make(map[int32]int32) // by a message of which the role is not known: the draft before it
	for i := from; i < int32(shape.Len()); i++ {
		role, known := shape.Role(i)
		if k.traits[i]&isDraft == 0 && known && role != session.RoleAssistant {
			continue
		}
		p := shape.Parent(i)
		for p != none && k.traits[p]&(isAside|isDraft) == isAside {
			p = shape.Parent(p)
		}
		switch {
		case p == none || k.traits[p]&isDraft == 0:
		case known || k.traits[i]&isDraft != 0:
			drafts = append(drafts, p)
		default:
			follows[i] = p
		}
	}
	for i, draft := range follows {
		entries, err := shape.Peek([]int32{i}, nil)
		if err != nil {
			return nil, err
		}
		if m := entries[0].Message; m != nil && m.Role == session.RoleAssistant {
			drafts = append(drafts, draft)
		}
	}
	for _, i := range drafts {
		k.traits[i] |= isAnswered
	}
	return drafts, nil
}

// done finds what is queued no longer because of the entries from a number on: they take it back,
// or a message below it ends its wait.
func (k *Sketch) done(shape *session.Shape, from int32, takenBack []string) (queued []int32, err error) {
	for i := from; i < int32(shape.Len()); i++ {
		if k.traits[i]&isQueued != 0 {
			k.waiting = append(k.waiting, i)
		}
	}
	if len(k.waiting) == 0 {
		return nil, nil
	}
	end := func(isEnd func(i int32) bool) {
		k.waiting = slices.DeleteFunc(k.waiting, func(i int32) bool {
			if !isEnd(i) {
				return false
			}
			k.traits[i] |= isDone
			queued = append(queued, i)
			return true
		})
	}
	for _, id := range takenBack {
		end(func(i int32) bool { return shape.ID(i) == id })
	}
	above := k.newAbove(shape, from)
	for i := from; i < int32(shape.Len()) && len(k.waiting) > 0; i++ {
		nearest := above.add(i)
		if nearest == none || shape.Type(i) != session.TypeMessage {
			continue
		}
		if role, known := shape.Role(i); known && role != session.RoleUser {
			continue // only people end it
		}
		var said []session.Entry
		if said, err = shape.Peek([]int32{i}, nil); err != nil {
			return nil, err
		}
		var before []int32
		for q := nearest; q != none; q = above.nearestAbove(q) {
			before = append(before, q)
		}
		end(func(q int32) bool { return slices.Contains(before, q) && said[0].EndsWait(shape.ID(q)) })
	}
	return queued, nil
}

// waitingAbove finds the queued entries that wait on the paths to the entries from a number on. A
// path may be long, so each entry remembers the nearest.
type waitingAbove struct {
	*Sketch
	shape   *session.Shape
	from    int32
	first   int32 // nothing before it waits
	nearest []int32
	earlier map[int32]int32 // the nearest of some entries before from
}

func (k *Sketch) newAbove(shape *session.Shape, from int32) *waitingAbove {
	first := none
	if len(k.waiting) > 0 {
		first = slices.Min(k.waiting)
	}
	return &waitingAbove{k, shape, from, first, make([]int32, 0, shape.Len()-int(from)), make(map[int32]int32)}
}

// add returns the nearest for the next entry.
func (w *waitingAbove) add(i int32) int32 {
	w.nearest = append(w.nearest, none)
	w.nearest[i-w.from] = w.nearestAbove(i)
	return w.nearest[i-w.from]
}

func (w *waitingAbove) nearestAbove(i int32) int32 {
	p := w.shape.Parent(i)
	for p != none {
		if w.traits[p]&(isQueued|isDone) == isQueued {
			return p
		}
		if at := p - w.from; at >= 0 && int(at) < len(w.nearest) && p != i {
			if q := w.nearest[at]; q == none || w.traits[q]&isDone == 0 {
				return q
			} else {
				p = q // it is done by now
			}
		} else if at < 0 {
			return w.nearestBefore(p)
		}
		p = w.shape.Parent(p)
	}
	return none
}

// nearestBefore returns the nearest at or before an entry with a number below from.
func (w *waitingAbove) nearestBefore(i int32) int32 {
	q, known := w.earlier[i]
	if !known {
		for q = i; q >= w.first && w.traits[q]&(isQueued|isDone) != isQueued; {
			q = w.shape.Parent(q)
		}
		if q < w.first {
			q = none
		}
		w.earlier[i] = q
	}
	if q != none && w.traits[q]&isDone != 0 {
		if p := w.shape.Parent(q); p != none {
			return w.nearestBefore(p)
		}
		return none
	}
	return q
}
