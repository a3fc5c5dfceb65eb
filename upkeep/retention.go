package upkeep

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Session is what decides whether a session stays.
type Session struct {
	store.Stat
	Active time.Time // when its conversation was last active: see session.LatestSaid
	Pinned bool      // it or another session of its conversation is pinned

	continues string // the session that it continues, or ""
	startedBy string // the session that started it as a subagent, or ""
}

// Survey returns all readable sessions of a store, most recently active first. It calls
// unread, which may be nil, for each of the others.
//
// Sessions that continue each other are one conversation, and all of them are as old as
// the latest message in it. A fork is at most as old as the fork itself, and a subagent
// at most as old as the conversation that started it.
func Survey(ctx context.Context, st store.Store, unread func(name string, err error)) ([]Session, error) {
	var all []Session
	listed, err := store.All(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		s, err := Session{Stat: l.Stat}, l.Err
		if err == nil {
			err = s.look(ctx, st)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			all = append(all, s)
		} else if unread != nil {
			unread(l.Name, err)
		}
	}
	if err := joinChains(ctx, st, all); err != nil {
		return nil, err
	}
	joinSubagents(all)
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(b.Active.Compare(a.Active), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// joinChains gives all sessions of a conversation its activity and its pin.
func joinChains(ctx context.Context, st store.Store, all []Session) error {
	linked := make(map[string]bool)
	for i := range all {
		if all[i].continues != "" {
			linked[all[i].Name], linked[all[i].continues] = true, true
		}
	}
	var links []session.Link
	byName := make(map[string]*Session)
	for more := true; more; { // markers name sessions, too
		more = false
		for i := range all {
			if !linked[all[i].Name] || byName[all[i].Name] != nil {
				continue
			}
			link, err := session.ReadLink(ctx, st, all[i].Name)
			if errors.Is(err, store.ErrNotExist) {
				continue // removed since it was listed
			}
			if err != nil {
				return err
			}
			byName[all[i].Name] = &all[i]
			links = append(links, link)
			if link.Original != "" && !linked[link.Original] {
				linked[link.Original], more = true, true
			}
		}
	}
	for _, chain := range session.JoinLinks(links) {
		var active time.Time
		pinned := false
		for _, name := range chain.Links {
			s := byName[name]
			pinned = pinned || s.Pinned
			if s.Active.After(active) {
				active = s.Active
			}
		}
		for _, name := range chain.Links {
			byName[name].Active, byName[name].Pinned = active, pinned
		}
	}
	return nil
}

func (s *Session) look(ctx context.Context, st store.Store) (err error) {
	opened, err := session.Open(ctx, st, s.Name, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	now, err := opened.Remarks()
	if err != nil {
		return err
	}
	s.Pinned = now.Pinned
	if s.Active, err = session.LatestSaid(ctx, st, s.Name); err != nil {
		return err
	}
	h := opened.Header()
	switch h.Relation {
	case session.RelationContinuation:
		s.continues = h.ParentSession
	case session.RelationSubagent:
		s.startedBy = h.ParentSession
	}
	_, imported := session.OriginOf(&h)
	if made := h.Relation == session.RelationFork && !imported; s.Active.IsZero() || made && h.CreatedAt.After(s.Active) {
		s.Active = h.CreatedAt
	}
	return nil
}

// joinSubagents makes subagents as young as what started them.
func joinSubagents(all []Session) {
	byName := make(map[string]*Session)
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	for range len(all) { // as deep as they are nested
		changed := false
		for i := range all {
			if by := byName[all[i].startedBy]; by != nil && by.Active.After(all[i].Active) {
				all[i].Active, changed = by.Active, true
			}
		}
		if !changed {
			return
		}
	}
}

// Rule says which sessions to remove.
type Rule struct {
	OlderThan time.Duration // remove those that have been inactive for longer; 0 means no limit
	MaxCount  int           // keep only this many of the latest; negative means no limit
}

// Reason is why a session is removed.
type Reason int

// The reasons.
const (
	TooOld  Reason = iota // it has been inactive for longer than OlderThan
	TooMany               // it is not among the MaxCount most recently active
)

// Choice is a session to be removed.
type Choice struct {
	Session
	Reason Reason
}

// Choose returns which of the sessions, as returned by Survey, the rule removes, oldest
// first, and how many stay only because they are pinned. Pinned sessions do not count
// towards MaxCount.
func (r Rule) Choose(all []Session, now time.Time) (going []Choice, pinned int) {
	rank := 0
	for _, s := range all {
		var why Reason
		switch {
		case r.OlderThan > 0 && s.Active.Before(now.Add(-r.OlderThan)):
			why = TooOld
		case r.MaxCount >= 0 && !s.Pinned && rank >= r.MaxCount:
			why = TooMany
		default:
			if !s.Pinned {
				rank++
			}
			continue
		}
		if s.Pinned {
			pinned++
			continue
		}
		going = append(going, Choice{s, why})
	}
	slices.Reverse(going)
	return going, pinned
}

// MakeRoom returns a function for the option MakeRoom of a store. It moves as many sessions to
// the trash as necessary, longest inactive first, and calls moved for each. Pinned
// sessions stay.
func MakeRoom(moved func(Session)) func(ctx context.Context, st store.Store, n int) error {
	return func(ctx context.Context, st store.Store, n int) error {
		all, err := Survey(ctx, st, nil)
		if err != nil {
			return err
		}
		free := 0
		for _, s := range all {
			if !s.Pinned {
				free++
			}
		}
		going, _ := Rule{MaxCount: max(0, free-n)}.Choose(all, time.Now())
		for _, s := range going {
			if err := discard(ctx, st, s.Session); err != nil {
				return err
			}
			moved(s.Session)
		}
		return nil // if that was not enough, the store reports it
	}
}

// discard checks the pin again before removing, because choosing may have taken a while.
func discard(ctx context.Context, st store.Store, s Session) error {
	_, err := Remove(ctx, st, RemoveRequest{Sessions: []string{s.Name}})
	if errors.Is(err, store.ErrNotExist) {
		return nil // another process removed it first
	}
	return err
}
