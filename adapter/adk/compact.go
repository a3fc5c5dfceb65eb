package adk

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/agent"
	coppice "github.com/coppice-dev/coppice/session"
)

// Compact asks a model for a summary that replaces the beginning of a session: see
// agent.Keeper, whose options need a Compaction.Model. The log keeps all events. With
// Options.Compacted, Get returns the summary in their place. Call it between two runs.
func (s *Service) Compact(ctx context.Context, of session.Session, o agent.KeeperOptions) (done *agent.Compacted, err error) {
	if of == nil {
		return nil, errNil("session")
	}
	p, err := placeOf(of.AppName(), of.UserID(), of.ID())
	if err != nil {
		return nil, err
	}
	opened, err := s.openAt(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	k, err := agent.NewKeeper(opened, o)
	if err != nil {
		return nil, err
	}
	if _, err := k.Begin(ctx); err != nil {
		return nil, err
	}
	done, err = k.Compact("")
	return done, errors.Join(err, k.End())
}

// compacted returns the events of a session, with a summary in place of those that a
// compaction replaces. ok is false if there is no compaction.
func compacted(s *coppice.Session) (events []*session.Event, ok bool, _ error) {
	c, err := s.Context(coppice.ContextOptions{})
	if err != nil {
		return nil, false, err
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		r, err := recordOf(e.Extra)
		if err != nil {
			return nil, false, fmt.Errorf("session %s, entry %s: %w", s.ID(), e.ID, err)
		}
		event, err := eventOf(e, r)
		if e.Compaction != nil {
			event, ok = summaryOf(e), true
		}
		if err != nil {
			return nil, false, fmt.Errorf("session %s, entry %s: %w", s.ID(), e.ID, err)
		}
		if event != nil {
			events = append(events, event)
		}
	}
	return events, ok, nil
}

// summaryOf returns a summary as an event of the user, as ADK shows it to a model.
func summaryOf(e *coppice.Entry) *session.Event {
	event := &session.Event{ID: e.ID, InvocationID: e.ID, Timestamp: e.Timestamp, Author: "user"}
	event.Content = genai.NewContentFromText(e.Summary(), genai.RoleUser)
	return event
}
