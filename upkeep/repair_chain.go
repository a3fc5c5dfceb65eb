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
// record in the earlier one. If one is lost, it can be rebuilt from the other.

// findEarlier finds the session that the lost header named as the one that it continues: its log
// names this one in turn. Without it a repair would make two conversations of one.
func (p *repairPlan) findEarlier(ctx context.Context, st store.Store) error {
	names, err := namesIn(ctx, st)
	if err != nil {
		return err
	}
	for _, name := range names {
		link, err := session.ReadLink(ctx, st, name)
		if err != nil && !isUnreadable(err) {
			return err
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
// damaged line: the log names no continuation, and one session says that it is one. If several may
// be, choosing would be guessing.
func (p *repairPlan) findLater(ctx context.Context, st store.Store) error {
	mayBeRecord := func(l rawLine) bool {
		return l.class == lineDamaged && (l.kind == "" || l.kind == session.TypeCustom)
	}
	// Package session may be unable to open the log yet, and after the repair it has no damaged
	// line.
	isRecord := func(l rawLine) bool {
		return l.record != nil && session.ContinuedTo(l.record, p.name, "") != ""
	}
	if !slices.ContainsFunc(p.lines, mayBeRecord) || slices.ContainsFunc(p.lines, isRecord) {
		return nil
	}
	names, err := namesIn(ctx, st)
	if err != nil {
		return err
	}
	var claimants []string
	for _, name := range names {
		if name == p.name {
			continue
		}
		before, err := continuedBy(ctx, st, name)
		switch {
		case errors.Is(err, session.ErrNotExist): // it was removed since
		case isUnreadable(err):
			return nil // it may be another one
		case err != nil:
			return err
		case before == p.name:
			claimants = append(claimants, name)
		}
	}
	if len(claimants) == 1 {
		p.next = claimants[0]
	}
	return nil
}

// continuedBy returns the session that another one continues, as its header says, or "". The error
// matches session.ErrCorrupt if its header is lost.
func continuedBy(ctx context.Context, st store.Store, name string) (before string, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	h, err := session.FindHeader(ctx, log)
	switch {
	case err != nil:
		return "", err
	case h == nil:
		return "", session.ErrCorrupt
	case h.Relation != session.RelationContinuation:
		return "", nil
	}
	return h.ParentSession, nil
}

// isUnreadable reports whether a session is missing or damaged, or is in a version that we do not
// know. After any other error it may be readable the next time.
func isUnreadable(err error) bool {
	return errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrInvalid)
}

// readMarker learns what the marker of the session said if it is damaged: see
// session.TypeContinues. With an ordinary placeholder, the copied messages would count as said
// and paid in it.
func (p *repairPlan) readMarker(ctx context.Context, st store.Store) error {
	if p.header.Relation != session.RelationContinuation {
		return nil
	}
	at := slices.IndexFunc(p.lines, func(l rawLine) bool { return l.class == lineDamaged && l.kind == session.TypeContinues })
	if at < 0 {
		return nil
	}
	p.marker = p.lines[at].id
	p.markerEntry = session.ContinuesEntry{Session: p.header.ParentSession, Original: p.header.ParentSession}
	link, err := session.ReadLink(ctx, st, p.header.ParentSession)
	if err != nil && !isUnreadable(err) {
		return err
	}
	if link.Original != "" {
		p.markerEntry.Original = link.Original
	}
	return nil
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
