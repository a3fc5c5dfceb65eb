package upkeep

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// repairPlan says how to rewrite a session's log. Making a plan changes nothing; the
// caller decides whether to apply it.
//
// Three things must hold, whatever the damage: every entry that could be read before
// can be read afterwards; the leaf and the path to it do not change, unless the end of
// the log yields an entry that could not be read before; and repairing a repaired log
// does nothing.
type repairPlan struct {
	name        string
	lines       []rawLine
	header      session.Header
	leaf        string
	next        string                 // the session that continues it, if the record of that is lost
	marker      string                 // the id of the session's marker, if its line is damaged
	markerEntry session.ContinuesEntry // in it, if it is known
	gaps        map[string]string      // the missing entries, with their parents
	filled      map[string]bool        // the gaps that have a placeholder
	circles     map[string]int         // the entries that are their own ancestors, with the number of their cycle
	cut         map[int]bool           // the cycles that have been broken
	present     map[string]int         // the entries that are there, with the index of their first line
	now         time.Time

	seen    map[string][sha256.Size]byte // the entries that were taken over
	newLeaf string
	actions []Action
	moved   bool // something other than the end changes
	pieces  []store.Piece
}

// planRepair decides what to do about each line of a log. It asks package session
// first, which can recover more than a look at single lines.
func planRepair(ctx context.Context, st store.Store, name string, raw store.Raw) (*repairPlan, error) {
	p := &repairPlan{
		name: name, header: session.Header{ID: name, Version: session.Version},
		gaps: make(map[string]string), filled: make(map[string]bool), present: make(map[string]int), cut: make(map[int]bool),
		seen: make(map[string][sha256.Size]byte), now: time.Now(),
	}
	for line, err := range raw.Lines(ctx) {
		if err != nil {
			return nil, err
		}
		p.lines = append(p.lines, classify(line)...)
	}
	if p.isLost() {
		return p, nil
	}
	if err := p.readGaps(ctx, st); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.lines, func(l rawLine) bool { return l.class == lineHeader }) {
		if err := p.findEarlier(ctx, st); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(p.findLater(ctx, st), p.readMarker(ctx, st)); err != nil {
		return nil, err
	}
	p.decide()
	return p, nil
}

// isLost reports whether nothing can be saved.
func (p *repairPlan) isLost() bool {
	for i := range p.lines {
		if c := p.lines[i].class; c == lineHeader || c == lineEntry || c == lineLong {
			return false
		}
	}
	return true
}

// readGaps asks package session which entries are missing, and for their parents.
func (p *repairPlan) readGaps(ctx context.Context, st store.Store) error {
	s, err := session.Open(ctx, st, p.name, nil)
	if errors.Is(err, session.ErrCorrupt) {
		return nil // the only line has no line end, so there is nothing to ask about
	}
	if err != nil {
		return err
	}
	defer s.Close()
	p.header, p.leaf = s.Header(), s.LeafID()
	for e, err := range s.Entries() {
		if err != nil {
			return err
		}
		if e.Type != session.TypeGap {
			continue
		}
		p.gaps[e.ID] = ""
		if e.ParentID != nil {
			p.gaps[e.ID] = *e.ParentID
		}
	}
	return nil
}

// decide goes through the lines in order and chooses the new content.
func (p *repairPlan) decide() {
	for i := range p.lines {
		l := &p.lines[i]
		if _, again := p.present[l.id]; l.class == lineEntry && !again {
			p.present[l.id] = i
		}
	}
	p.findParents()
	p.findCircles()
	p.decideHeader()
	for i := range p.lines {
		l := &p.lines[i]
		switch l.class {
		case lineLong:
			p.keep(l)
		case lineDamaged:
			p.decideDamage(l)
		case lineEntry:
			p.decideEntry(l)
		}
	}
	p.decideLeaf()
	p.decideNext()
}

func (p *repairPlan) decideEntry(l *rawLine) {
	sum, again := p.seen[l.id]
	if again && sum == l.sum {
		p.moved = p.moved || !l.torn
		p.act("repeated line", l, "dropped; it is the same as an earlier one, byte for byte")
		return
	}
	p.fillGap(l.parent, l)
	p.keep(l)
	if !again { // a repeated line does not move the leaf
		p.seen[l.id] = l.sum
		p.newLeaf = l.leaf()
	}
}

func (p *repairPlan) decideDamage(l *rawLine) {
	if l.torn {
		p.act("torn end", l, fmt.Sprintf("%s moved to quarantine", counted(int64(l.next-l.pos), "byte", "bytes")))
		return
	}
	p.moved = true
	p.act("damaged line", l, "moved to quarantine")
	at, isThere := p.present[l.id]
	if _, done := p.seen[l.id]; isThere && !done && !p.lines[at].torn {
		p.act("misplaced line", &p.lines[at], "the same entry without damage; moved to where the damage was")
		p.decideEntry(&p.lines[at])
		return
	}
	p.fillGap(l.id, l)
}

// decideLeaf keeps the leaf where it was, or moves it to the last of the entries that
// were saved from the log's end.
func (p *repairPlan) decideLeaf() {
	want := p.leaf
	for i := len(p.lines) - 1; i >= 0; i-- {
		l := &p.lines[i]
		if l.class != lineEntry || p.present[l.id] != i {
			continue
		}
		if l.glued || l.torn {
			want = l.leaf()
		}
		break
	}
	if want == p.newLeaf || p.isGiven(want) {
		return
	}
	e := session.Entry{
		Type: session.TypeLeaf, ID: "repair-" + strings.ToLower(rand.Text()), Timestamp: p.now.UTC(),
		Leaf: &session.LeafEntry{FromID: p.newLeaf},
	}
	if want != "" {
		e.ParentID = &want
	}
	line, _ := e.MarshalJSON() // nothing in it can fail to encode
	p.moved, p.newLeaf = true, want
	p.act("leaf", &rawLine{id: want}, "moved back to where it was")
	p.pieces = append(p.pieces, store.Piece{Line: line})
}

// findParents adds missing entries that package session cannot know about, because the
// only lines that refer to them are those it could not read. All we know about such an
// entry is that it came after what is before its child in the log.
func (p *repairPlan) findParents() {
	parents := make([]int32, len(p.lines))
	for i := range p.lines {
		l := &p.lines[i]
		parents[i] = -1
		if at, ok := p.present[l.parent]; ok && p.present[l.id] == i && l.class == lineEntry {
			parents[i] = int32(at)
		}
	}
	places := session.LikelyParents(parents, func(i int32) bool {
		_, gap := p.gaps[p.lines[i].id]
		return p.lines[i].class == lineEntry || gap
	})
	for i := range p.lines {
		l := &p.lines[i]
		if l.class != lineEntry || !l.glued && !l.torn || l.parent == "" {
			continue
		}
		_, there := p.present[l.parent]
		if _, known := p.gaps[l.parent]; known || there {
			continue
		}
		p.gaps[l.parent] = ""
		if i > 0 && places[i-1] >= 0 {
			p.gaps[l.parent] = p.lines[places[i-1]].id
		}
	}
}

func (p *repairPlan) decideHeader() {
	first := -1
	for i := range p.lines {
		l := &p.lines[i]
		switch {
		case l.class != lineHeader:
		case first >= 0 && l.sum == p.lines[first].sum:
			p.moved = true
			p.act("repeated header", l, "dropped; it is the same as the first, byte for byte")
		case first >= 0:
			p.moved = true
			p.act("second header", l, "moved to quarantine; the first counts")
		default:
			first = i
			_ = json.Unmarshal(l.data, &p.header) // it was read before
			if l.pos != 0 {
				p.moved = true
				p.act("misplaced header", l, "moved to the beginning")
			}
			if l.torn {
				p.act("torn end", l, "the line end was missing")
			}
			if p.header.ID == "" {
				p.moved = true
				p.header.ID = p.name
				p.act("header without an id", l, "it gets the session's name")
			}
		}
	}
	if first < 0 {
		p.moved = true
		if p.header.CreatedAt.IsZero() {
			p.header.CreatedAt = p.now
		}
		p.act("missing header", nil, "rewritten, with the time of the first entry")
	}
}

// keep copies a line to the new content. Neighbouring lines without damage become one
// piece, so that a plan for a long log stays short.
func (p *repairPlan) keep(l *rawLine) {
	switch n := len(p.pieces); {
	case l.glued:
		p.act("glued line", l, "saved from the line that it was joined to")
		p.pieces = append(p.pieces, store.Piece{Line: l.data})
	case l.torn:
		p.act("torn end", l, "the line end was missing; the entry is whole")
		p.pieces = append(p.pieces, store.Piece{Line: l.data})
	case n > 0 && p.pieces[n-1].Line == nil && p.pieces[n-1].To == l.pos:
		p.pieces[n-1].To = l.next
	default:
		p.pieces = append(p.pieces, store.Piece{From: l.pos, To: l.next})
	}
}

// fillGap writes a placeholder for a missing entry. If its parent is missing too, the
// parent's comes first, because parents come before their children.
func (p *repairPlan) fillGap(id string, at *rawLine) {
	var chain []string
	for p.isMissing(id) && !p.filled[id] {
		p.filled[id] = true
		chain = append(chain, id)
		if circle, ok := p.circles[id]; ok && !p.cut[circle] {
			p.gaps[id], p.cut[circle] = "", true // a root is better than a cycle
		}
		id = p.gaps[id]
	}
	for i := len(chain) - 1; i >= 0; i-- {
		p.moved = true
		p.act("gap", &rawLine{id: chain[i], pos: at.pos}, "a placeholder takes the place of an entry that cannot be read")
		p.pieces = append(p.pieces, store.Piece{Line: p.gapLine(chain[i])})
		p.newLeaf = chain[i]
	}
}

func (p *repairPlan) isMissing(id string) bool {
	_, gap := p.gaps[id]
	_, there := p.present[id]
	return gap && !there
}

// findCircles finds the entries that are their own ancestors. It looks at every entry
// once: a walk ends where an earlier one has been.
func (p *repairPlan) findCircles() {
	p.circles = make(map[string]int)
	met := make(map[string]int) // the number of the walk, from 1
	walk := 0
	for id := range p.gaps {
		at := id
		for walk++; at != "" && met[at] == 0; at = p.parentOf(at) {
			met[at] = walk
		}
		if at == "" || met[at] != walk {
			continue // it ended at a root, or where an earlier walk has been
		}
		for ; p.circles[at] == 0; at = p.parentOf(at) {
			p.circles[at] = walk
		}
	}
}

func (p *repairPlan) parentOf(id string) string {
	if at, ok := p.present[id]; ok {
		return p.lines[at].parent
	}
	return p.gaps[id]
}

// gapLine returns the placeholder: an entry that is not sent to a model.
func (p *repairPlan) gapLine(id string) []byte {
	e := session.Entry{
		Type: session.TypeCustom, ID: id, Timestamp: p.now.UTC(),
		Custom: &session.CustomEntry{CustomType: session.CustomGap, Data: map[string]any{"session": p.header.ID}},
	}
	if id == p.marker {
		e.Type, e.Custom, e.Continues = session.TypeContinues, nil, &p.markerEntry
	}
	if parent := p.gaps[id]; parent != "" {
		e.ParentID = &parent
	}
	line, _ := e.MarshalJSON() // nothing in it can fail to encode
	return line
}

func (p *repairPlan) act(what string, l *rawLine, detail string) {
	act := Action{Session: p.name, Action: what, Detail: detail}
	if l != nil {
		act.Offset = int64(l.pos)
		if l.class != lineHeader {
			act.Entry = l.id
		}
	}
	p.actions = append(p.actions, act)
}

// newContent yields the new content, header first. If anything but the end changes, the
// header must change too: that is how programs with the log open notice that their
// positions no longer hold.
func (p *repairPlan) newContent() iter.Seq2[store.Piece, error] {
	return func(yield func(store.Piece, error) bool) {
		if !yield(p.headerPiece(), nil) {
			return
		}
		for _, piece := range p.pieces {
			if !yield(piece, nil) {
				return
			}
		}
	}
}

func (p *repairPlan) headerPiece() store.Piece {
	if !p.moved {
		for i := range p.lines {
			switch l := &p.lines[i]; {
			case l.class == lineHeader && l.torn:
				return store.Piece{Line: l.data}
			case l.class == lineHeader:
				return store.Piece{From: l.pos, To: l.next}
			}
		}
	}
	h := p.header
	h.Extra = slices.DeleteFunc(slices.Clone(h.Extra), func(f session.Field) bool { return f.Name == "repaired" })
	at, _ := p.now.UTC().MarshalJSON() // fails only for years of five digits
	h.Extra = append(h.Extra, session.Field{Name: "repaired", Value: at})
	line, _ := h.MarshalJSON() // nothing in it can fail to encode
	return store.Piece{Line: line}
}
