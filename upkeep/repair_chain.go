package upkeep

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Two sessions are one conversation if each names the other: the header of the later one, and a
// record in the earlier one. If damage took one of the two, the other says what it was.

// findEarlier finds the session that the lost header named as the one that it continues: its log
// names this one in turn. Without it a repair would make two conversations of one.
func (p *repairPlan) findEarlier(ctx context.Context, st store.Store) error {
	names, err := namesIn(ctx, st)
	if err != nil {
		return err
	}
	for _, name := range names {
		link, err := session.ReadLink(ctx, st, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || name == p.name || link.ContinuedTo != p.name { // what cannot be read names nothing
			continue
		}
		p.header.ParentSession, p.header.Relation = name, session.RelationContinuation
		p.header.Continuation = link.Index + 1
		return nil
	}
	return nil
}

// findLater finds the session that continues this one, if the record of that is most likely on a
// damaged line: the log names no continuation, and one session says that it is one. If several do,
// choosing would be guessing.
func (p *repairPlan) findLater(ctx context.Context, st store.Store) error {
	mayBeRecord := func(l rawLine) bool {
		return l.class == lineDamaged && (l.kind == "" || l.kind == session.TypeCustom)
	}
	if !slices.ContainsFunc(p.lines, mayBeRecord) {
		return nil
	}
	link, err := session.ReadLink(ctx, st, p.name)
	if err != nil || link.ContinuedTo != "" {
		return ctx.Err() // what cannot be read yet is read after it was repaired
	}
	names, err := namesIn(ctx, st)
	if err != nil {
		return err
	}
	var claim []string
	for _, name := range names {
		if before, err := continuedBy(ctx, st, name); err == nil && before == p.name && name != p.name {
			claim = append(claim, name)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if len(claim) == 1 {
		p.next = claim[0]
	}
	return nil
}

// continuedBy returns the session that another one continues, as its header says, or "".
func continuedBy(ctx context.Context, st store.Store, name string) (before string, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	h, err := session.FindHeader(ctx, log)
	if err != nil || h == nil || h.Relation != session.RelationContinuation {
		return "", err
	}
	return h.ParentSession, nil
}

// readMarker learns what the marker of the session said if it is damaged: see session.TypeContinues.
// With an ordinary placeholder, what the session was given would count as said and paid in it.
func (p *repairPlan) readMarker(ctx context.Context, st store.Store) error {
	if p.header.Relation != session.RelationContinuation {
		return nil
	}
	at := slices.IndexFunc(p.lines, func(l rawLine) bool { return l.class == lineDamaged && l.kind == session.TypeContinues })
	if at < 0 {
		return nil
	}
	p.marker = p.lines[at].id
	p.said = session.ContinuesEntry{Session: p.header.ParentSession, Original: p.header.ParentSession}
	if link, err := session.ReadLink(ctx, st, p.header.ParentSession); err == nil && link.Original != "" {
		p.said.Original = link.Original
	}
	return ctx.Err()
}

// isGiven reports whether an entry is one of those that the session was given by the one that it
// continues. A line that moves the leaf there would move that of the conversation, too.
func (p *repairPlan) isGiven(id string) bool {
	if p.header.Relation != session.RelationContinuation {
		return false
	}
	marker := slices.IndexFunc(p.lines, func(l rawLine) bool { return l.kind == session.TypeContinues })
	at, ok := p.present[id]
	return id == "" || ok && at < marker
}

// decideNext adds the record of the continuation again, at the leaf.
func (p *repairPlan) decideNext() {
	if p.next == "" {
		return
	}
	e := session.Entry{
		Type: session.TypeCustom, ID: "repair-" + strings.ToLower(rand.Text()), Timestamp: p.now.UTC(),
		Custom: &session.CustomEntry{CustomType: session.CustomContinuedTo, Data: map[string]any{"session": p.next, "of": p.name}},
	}
	if leaf := p.newLeaf; leaf != "" {
		e.ParentID = &leaf
	}
	line, _ := e.MarshalJSON() // nothing in it can fail to encode
	p.moved, p.newLeaf = true, e.ID
	p.act("continuation", nil, "session "+p.next+" says that it continues this one; the record of that was lost, and is added again")
	p.pieces = append(p.pieces, store.Piece{Line: line})
}

// rejoins reports whether repairing a session would join it again with one that continues it.
func rejoins(ctx context.Context, st store.Store, name, next string) (bool, error) {
	mender, ok := store.As[store.Mender](st)
	if !ok {
		return false, nil
	}
	raw, err := mender.OpenRaw(ctx, name)
	if err != nil {
		return false, err
	}
	p, err := planRepair(ctx, st, name, raw)
	return err == nil && p.next == next, errors.Join(err, raw.Close())
}
