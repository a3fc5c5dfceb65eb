package adk

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/agent"
	coppice "github.com/coppice-dev/coppice/session"
)

// AppendEvent appends an event to a session. When it returns nil, the event is as durable
// as the store promises, and the session has it. After an error the session is as it was
// before. Partial events are ignored, and temporary state is not written.
//
// If others have appended to the session since it was read, AppendEvent refuses with
// ErrStale: see Options.Merge. A session that another service made, or that another type
// wraps, is never stale, because we cannot know what it has seen.
func (s *Service) AppendEvent(ctx context.Context, to session.Session, event *session.Event) error {
	switch {
	case to == nil:
		return errNil("session")
	case event == nil:
		return errNil("event")
	case event.Partial:
		return nil
	}
	h, ours := to.(*handle)
	if !ours {
		p, err := placeOf(to.AppName(), to.UserID(), to.ID())
		if err != nil {
			return err
		}
		h = &handle{place: p}
	}
	if event.ID == "" {
		event.ID = platform.NewUUID(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	opened, err := s.openAt(ctx, h.place)
	if err != nil {
		return fmt.Errorf("append event %q: %w", event.ID, err)
	}
	defer opened.Close()
	a := appending{Service: s, session: opened, handle: h, event: event, stored: trimmed(event), merge: s.merge || !ours}
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("append event %q: %w", event.ID, h.err(err))
	}
	return nil
}

// appending is an event that is being appended.
type appending struct {
	*Service
	session *coppice.Session
	handle  *handle
	event   *session.Event
	stored  *session.Event // the event without temporary state
	merge   bool           // append even if the handle is stale
}

func (a *appending) run(ctx context.Context) error {
	if err := a.catchUp(); err != nil {
		return err
	}
	entries, err := a.entries()
	if err != nil {
		return err // before anything is written
	}
	app, user, _ := split(a.stored.Actions.StateDelta)
	undo, err := a.changeShared(ctx, a.handle.place, app, user)
	if err != nil {
		return err
	}
	// Another writer may come first, if only to tag the session. Between catching up and the
	// next attempt the session must not read more: it would append after entries that the
	// handle has not seen.
	err = coppice.Retry(func() error {
		ids, err := a.session.AppendAll(entries...)
		if err == nil {
			a.landed(ids[0], entries)
		}
		return err
	}, func() (err error) {
		if _, err = a.session.Refresh(); err != nil {
			return err
		}
		if err = a.catchUp(); err != nil {
			return err
		}
		entries, err = a.entries()
		return err
	})
	if err == nil || errors.Is(err, coppice.ErrUnknown) { // in the log, or it may be
		return err
	}
	return errors.Join(err, undo())
}

// landed adds the appended event to the handle, given its id and its entries.
func (a *appending) landed(id string, entries []coppice.Entry) {
	a.handle.add(id, a.event, a.stored)
	if last := entries[len(entries)-1].Custom; len(entries) > 1 && last != nil && last.CustomType == customState {
		a.handle.since = 0
	}
}

// catchUp makes sure that the handle has seen the last event of the session, or returns
// ErrStale.
func (a *appending) catchUp() error {
	h := a.handle
	last, err := lastEvent(a.session)
	if err != nil || last == h.last && h.own != nil {
		return err
	}
	if !a.merge {
		return fmt.Errorf("others have appended to it since it was read; get it again: %w", ErrStale)
	}
	want := reach{until: h.last}
	if h.own == nil { // another service's handle does not need the events
		want = reach{none: true}
	}
	v, err := look(a.session, want)
	if err != nil {
		return err
	}
	if v.met || h.last == "" { // otherwise the leaf was moved back, and v has the whole session
		v.events = append(h.events[:len(h.events):len(h.events)], v.events...)
	}
	h.view = *v
	if h.state == nil {
		h.state = make(map[string]any)
	}
	maps.Copy(h.state, v.own)
	return nil
}

// entries returns the event as an entry, followed by a mark that its calls run and, if it is
// due, by the state after it.
func (a *appending) entries() ([]coppice.Entry, error) {
	before, lost, err := a.calls()
	if err != nil {
		return nil, err
	}
	entry, err := entryOf(a.stored, before, lost)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", coppice.ErrInvalid, err)
	}
	entries := []coppice.Entry{entry}
	if calls := callsIn(&entry); len(calls) > 0 {
		entries = append(entries, agent.Running(calls...)) // the runner starts them once the event is in the log
	}
	h := a.handle
	if h.since+1 < repeatAfter {
		return entries, nil
	}
	state := maps.Clone(h.own)
	_, _, own := split(a.stored.Actions.StateDelta)
	maps.Copy(state, own)
	again, err := repeated(state, h.since+1, later(h.newest, a.event.Timestamp))
	return append(entries, again...), err
}

// callsIn returns the ids of the calls in an entry.
func callsIn(e *coppice.Entry) (ids []string) {
	if e.Message == nil {
		return nil
	}
	for i := range e.Message.Content {
		if use := e.Message.Content[i].ToolUse; use != nil {
			ids = append(ids, use.ID)
		}
	}
	return ids
}

// calls finds the calls that the responses of the event answer. It returns the content that
// made them, if a response does not name its call, and a function that reports whether no
// call with an id waits for a response. The calls are nearly always in the event before.
func (a *appending) calls() (before *genai.Content, lost func(id string) bool, err error) {
	unknown := make(map[string]bool) // calls that we have not found yet
	unnamed := false
	for _, id := range responses(a.stored.Content) {
		unknown[id] = true
		unnamed = unnamed || id == ""
	}
	delete(unknown, "")
	answered := make(map[string]bool)
	lost = func(id string) bool { return unknown[id] || answered[id] }
	if len(unknown) == 0 && !unnamed {
		return nil, lost, nil
	}
	for e, err := range a.session.Path("") {
		if err != nil {
			return nil, nil, err
		}
		if e.Message == nil {
			continue
		}
		called := false
		for _, c := range e.Message.Content {
			if c.ToolUse != nil {
				called = true
				delete(unknown, c.ToolUse.ID)
			}
			if c.ToolResult != nil && unknown[c.ToolResult.ToolUseID] {
				answered[c.ToolResult.ToolUseID] = true
				delete(unknown, c.ToolResult.ToolUseID)
			}
		}
		if called && unnamed {
			unnamed = false
			if before, err = contentOf(bareMessage(e.Message)); err != nil {
				return nil, nil, err
			}
		}
		if len(unknown) == 0 && !unnamed {
			break
		}
	}
	return before, lost, nil
}

// responses returns the ids of the calls that a content answers.
func responses(c *genai.Content) []string {
	if c == nil {
		return nil
	}
	var ids []string
	for _, p := range c.Parts {
		if p != nil && p.FunctionResponse != nil {
			ids = append(ids, p.FunctionResponse.ID)
		}
	}
	return ids
}
