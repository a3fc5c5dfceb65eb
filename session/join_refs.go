package session

import (
	"bytes"
	"strconv"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// How the entries of a link name each other in the conversation: what their ids, parents and
// references become, and which lines change because of that.

// idFor returns the id that an entry has in the conversation: its own, unless an
// entry of another session has that.
func (l *linkJoiner) idFor(id string) string {
	is := id
	if _, taken := l.tree.at(id); taken {
		is = l.unused(id)
		l.part.was[is], l.made[is], l.now[id] = id, true, is
	}
	return is
}

// isNow returns the id that an entry of this session has in the conversation, if it stays.
func (l *linkJoiner) isNow(id string) (_ string, ok bool) {
	if is, ok := l.now[id]; ok {
		return is, true
	}
	at, ok := l.own.at(id)
	if !ok || int(at) >= len(l.places) || l.places[at] == none {
		return "", false
	}
	return l.tree.nodes[l.places[at]].id, true
}

// unused returns an id like a given one that no entry has, and that none of a later
// session gets: their numbers are greater.
func (l *linkJoiner) unused(id string) string {
	for n := len(l.log.parts); ; n++ {
		is := id + "~" + strconv.Itoa(n)
		if _, taken := l.tree.at(is); !taken {
			return is
		}
	}
}

// up returns where in the chain's tree a node is, or for one that is left out the
// nearest above it that stays: none only at the beginning of the conversation.
// given says that its child was given to the session, too.
func (l *linkJoiner) up(i int32, given bool) int32 {
	i, original := l.climb(i, given)
	if original != "" {
		at, _ := l.tree.at(original)
		return at
	}
	if i == none {
		return l.above
	}
	return l.places[i]
}

// climb returns the nearest node above one that is left out, or that node itself, or the
// original that is meant: what hangs on a copy hangs on the original. But what hangs on the
// last thing that a session was given continues all that came before.
func (l *linkJoiner) climb(i int32, given bool) (_ int32, original string) {
	for ; i != none && l.gone[l.own.nodes[i].id]; i = l.own.nodes[i].parent {
		id := l.own.nodes[i].id
		if original := l.branchesAt(id); original != "" && !given {
			return i, original
		}
		given = given || !l.records[id]
	}
	return i, ""
}

// resolve returns the id of that.
func (l *linkJoiner) resolve(id string) string {
	at, ok := l.own.at(id)
	if !ok {
		return id
	}
	at, original := l.climb(at, false)
	switch {
	case original != "":
		return original
	case at == none:
		return l.aboveID()
	}
	is, _ := l.isNow(l.own.nodes[at].id)
	return is
}

// aboveID returns the id of the leaf of the session before, or "".
func (l *linkJoiner) aboveID() string {
	if l.above == none {
		return ""
	}
	return l.tree.nodes[l.above].id
}

// branchesAt returns the original of a copy on which a branch may hang, or "".
func (l *linkJoiner) branchesAt(id string) string {
	if id == l.base {
		return ""
	}
	return l.stands[id]
}

// changeLine leaves a line out, or makes it say what the tree says.
func (l *linkJoiner) changeLine(line store.Line) {
	h, ok := rawjson.ScanHead(line.Data)
	if !ok || line.Cut || len(h.ID) == 0 {
		// Damage stays where it is, unless it is only a trace of what is left out.
		if h, ok := rawjson.LenientHead(line.Data); ok && l.gone[string(h.ID)] {
			l.part.patch[line.Pos] = []byte{}
		}
		return
	}
	id := string(h.ID)
	at, known := l.nodeAt(line.Pos, id)
	switch {
	case string(h.Type) == string(TypeSession):
		l.part.patch[line.Pos] = []byte{}
		l.headed = l.headed || l.first && line.Pos == 0
	case l.gone[id]:
		l.part.patch[line.Pos] = []byte{}
		if known && l.own.nodes[at].pos == line.Pos { // the first line counts, not one that repeats it
			l.after = append(l.after, id)
		}
	case !known || l.own.nodes[at].pos != line.Pos: // it is there a second time: the first counts
		if is, _ := l.isNow(id); is != id {
			l.part.patch[line.Pos] = []byte{}
		}
	default:
		n, parent := &l.tree.nodes[l.places[at]], ""
		if n.parent != none {
			parent = l.tree.nodes[n.parent].id
		}
		l.changeEntry(line, h, n.id, parent)
	}
}

// nodeAt returns the node that has an id, which is nearly always the one after that of the
// line before.
func (l *linkJoiner) nodeAt(pos store.Pos, id string) (int32, bool) {
	if at := l.line; int(at) < len(l.own.nodes) && l.own.nodes[at].pos == pos && l.own.nodes[at].id == id {
		l.line++
		return at, true
	}
	at, ok := l.own.at(id)
	if ok {
		l.line = at + 1
	}
	return at, ok
}

// changeEntry makes the line of an entry say what the tree says: its id and its parent.
func (l *linkJoiner) changeEntry(line store.Line, h rawjson.Head, is, parent string) {
	if l.log.leaf = is; string(h.Type) == string(TypeLeaf) {
		l.log.leaf = parent
	}
	for _, gone := range l.after {
		l.next[gone] = is
	}
	l.after = nil
	if is == string(h.ID) && parent == string(h.Parent) && !l.refers(kindOfType(h.Type)) {
		return
	}
	e, err := decodeEntry(bytes.Clone(line.Data))
	if err != nil {
		return
	}
	e.ID, e.ParentID = is, nil
	if parent != "" {
		e.ParentID = &parent
	}
	l.refer(e)
	if changed, err := appendEntry(nil, e); err == nil {
		l.part.patch[line.Pos] = changed
	}
}

// refers reports whether entries of a type name others, and some have changed.
func (l *linkJoiner) refers(k kind) bool {
	return kinds[k].refs != nil && (len(l.gone) > 0 || !l.first)
}

// refer makes an entry name the entries that are there. Copies that are left out are named by
// their originals; but if a compaction keeps from such a copy on, it keeps from the entry
// after it. Something without an original, such as the marker, is not there: a reference to it
// has no meaning, and must not become one to the message before it.
func (l *linkJoiner) refer(e *Entry) {
	point := func(id *string) {
		if original := l.stands[*id]; original != "" {
			*id = original
		} else if is, ok := l.isNow(*id); ok {
			*id = is
		} else if l.gone[*id] { // an entry of another session may have the id, also of a later one
			*id = l.unused(*id)
		} else if is, ok := l.original(*id); ok {
			*id = is
		}
	}
	place := func(id *string) { // where the conversation was
		if l.gone[*id] && l.stands[*id] == "" {
			*id = l.resolve(*id)
		} else {
			point(id)
		}
	}
	if e.Compaction != nil && e.Compaction.State != nil {
		e.Compaction.State.Kept = nil // it names what this session was given, not what came before it
	}
	e.eachRef(func(as ref, id *string) {
		switch next := l.next[*id]; {
		case as == refFirstKept && next != "":
			*id = next
		case as == refFirstKept || as == refFrom:
			place(id)
		default:
			point(id)
		}
	})
}
