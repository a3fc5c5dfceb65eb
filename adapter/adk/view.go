package adk

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/adk/v2/session"

	coppice "github.com/coppice-dev/coppice/session"
)

// view is the content of a session's log, as far as it was read.
type view struct {
	events []*session.Event // the earliest first
	// own is the state of the session alone, without what it shares.
	own map[string]any
	// since is how many events there are since the state was last repeated.
	since int
	// newest is the latest timestamp of all events.
	newest time.Time
	// updated is when the last event happened or, if there is none, when the session was
	// created.
	updated time.Time
	// last is the entry of the last event, or "".
	last string
	// met is true if reading reached the entry after which events were wanted.
	met bool
}

// reach says how much of the events a view must have.
type reach struct {
	none  bool      // no events
	most  int       // at most this many, the latest; 0 means all
	after time.Time // only those that are not before; the zero time means all
	until string    // only those after this entry
}

// look reads a session backwards, no further than necessary: to the first of the wanted
// events, and to where the state was last repeated.
func look(s *coppice.Session, want reach) (*view, error) {
	v := &view{own: make(map[string]any)}
	gotEvents, gotState := want.none, false
	for e, err := range s.Path("") {
		if err != nil {
			return nil, err
		}
		if e.ID == want.until {
			v.met, gotEvents = true, true
		}
		r, err := recordOf(e.Extra)
		var event *session.Event
		switch {
		case err != nil:
		case gotEvents:
			event, err = bareEventOf(&e, r)
		default:
			event, err = eventOf(&e, r)
		}
		if err != nil {
			return nil, fmt.Errorf("session %s, entry %s: %w", s.ID(), e.ID, err)
		}
		switch {
		case event != nil:
			v.meet(e.ID, event, gotState)
			if !gotEvents && !event.Timestamp.Before(want.after) {
				v.events = append(v.events, event)
				gotEvents = len(v.events) == want.most // never for 0
			}
		case r != nil && r.State != nil:
			if !gotState {
				addMissing(v.own, r.State)
				v.newest = later(v.newest, r.Newest)
				gotState = true
			}
			gotEvents = gotEvents || r.Newest.Before(want.after)
		}
		if gotEvents && gotState && v.last != "" {
			break
		}
	}
	if !gotState {
		r, err := recordOf(s.Header().Extra)
		if err != nil {
			return nil, fmt.Errorf("session %s: header: %w", s.ID(), err)
		}
		if r != nil {
			addMissing(v.own, r.State)
		}
	}
	if v.last == "" {
		v.updated = s.Header().CreatedAt
	}
	slices.Reverse(v.events)
	return v, nil
}

// meet adds an event; the latest comes first.
func (v *view) meet(entryID string, event *session.Event, gotState bool) {
	if v.last == "" {
		v.last, v.updated = entryID, event.Timestamp
	}
	if gotState {
		return
	}
	v.since++
	v.newest = later(v.newest, event.Timestamp)
	_, _, own := split(event.Actions.StateDelta)
	addMissing(v.own, own)
}

// lastEvent returns the entry of the last event of a session, or "".
func lastEvent(s *coppice.Session) (string, error) {
	for e, err := range s.Path("") {
		if err != nil {
			return "", err
		}
		r, err := recordOf(e.Extra)
		if err != nil {
			return "", fmt.Errorf("session %s, entry %s: %w", s.ID(), e.ID, err)
		}
		if isEvent(&e, r) {
			return e.ID, nil
		}
	}
	return "", nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// addMissing adds the keys of an earlier state that the later one lacks.
func addMissing(to, earlier map[string]any) {
	for k, v := range earlier {
		if _, ok := to[k]; !ok {
			to[k] = v
		}
	}
}

// split separates state by who shares it: the app, the user, or only the session. The keys
// lose their prefixes. Temporary state belongs to none of them.
func split(state map[string]any) (app, user, own map[string]any) {
	app, user, own = make(map[string]any), make(map[string]any), make(map[string]any)
	for k, v := range state {
		if rest, ok := strings.CutPrefix(k, session.KeyPrefixApp); ok {
			app[rest] = v
		} else if rest, ok := strings.CutPrefix(k, session.KeyPrefixUser); ok {
			user[rest] = v
		} else if !strings.HasPrefix(k, session.KeyPrefixTemp) {
			own[k] = v
		}
	}
	return app, user, own
}

// join is the opposite of split.
func join(app, user, own map[string]any) map[string]any {
	all := make(map[string]any, len(app)+len(user)+len(own))
	maps.Copy(all, own)
	for k, v := range app {
		all[session.KeyPrefixApp+k] = v
	}
	for k, v := range user {
		all[session.KeyPrefixUser+k] = v
	}
	return all
}

// The state is repeated after some events, the larger it is the less often. So it adds at
// most a few bytes to each event, and reading back to it costs no more than a few times its
// size.
const (
	repeatAfter    = 64 // events
	repeatPerEvent = 64 // bytes of state
)

// repeated returns an entry that repeats a state, if that is due after since changes.
func repeated(state map[string]any, since int, newest time.Time) ([]coppice.Entry, error) {
	if since < repeatAfter {
		return nil, nil
	}
	e, err := custom(customState, record{State: state, Newest: newest})
	if err != nil || since < len(e.Extra[0].Value)/repeatPerEvent {
		return nil, err
	}
	return []coppice.Entry{e}, nil
}
