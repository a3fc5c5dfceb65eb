package adk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"

	coppice "github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// ErrStale means that others appended to a session since it was read, and that nothing was
// written. Get the session again and decide. It also matches Coppice's ErrConflict.
var ErrStale = fmt.Errorf("stale session: %w", coppice.ErrConflict)

// Options adjusts a Service. The zero value is what most programs want.
type Options struct {
	// Merge appends events to stale sessions instead of refusing them with ErrStale. The
	// others' events come before the new one, in the log and in the session that AppendEvent
	// got. Default: false.
	Merge bool
	// Compacted lets Get return a summary in place of the events that a compaction replaces,
	// if it is asked for all events: see Service.Compact. A runner sends what Get returns.
	// Default: all events of the path, even if they were compacted.
	Compacted bool
	// Session adjusts the sessions in the store, for example to remove secrets from
	// everything that is written. Its OnConflict has no effect. Default: the zero Options.
	Session *coppice.Options
}

// Service is a session.Service on a Coppice store. All its methods may be called
// concurrently, and several processes may use one store. It keeps nothing open between
// calls, so there is nothing to close.
//
// Errors match those of Coppice's package session: ErrNotExist if there is no such session,
// ErrExist if there is one already, ErrInvalid for a request that lacks something.
type Service struct {
	store     store.Store
	merge     bool
	compacted bool
	opts      coppice.Options
}

var _ session.Service = (*Service)(nil)

// New returns the service for a store. The caller closes the store when the service is no
// longer used.
func New(st store.Store, o *Options) *Service {
	s := &Service{store: st}
	if o != nil {
		s.merge, s.compacted = o.Merge, o.Compacted
		if o.Session != nil {
			s.opts = *o.Session
		}
	}
	// An event is appended only if we have seen everything before it.
	s.opts.OnConflict = coppice.ReportAll
	return s
}

func (s *Service) sessions() *coppice.Options { return &s.opts }

func (s *Service) open(ctx context.Context, name string) (*coppice.Session, error) {
	opened, err := coppice.Open(ctx, s.store, name, s.sessions())
	if err != nil {
		return nil, err
	}
	return opened.WithContext(ctx), nil
}

// openAt opens the session at a place.
func (s *Service) openAt(ctx context.Context, p place) (*coppice.Session, error) {
	opened, err := s.open(ctx, p.name)
	if errors.Is(err, coppice.ErrNotExist) {
		return nil, p.err(coppice.ErrNotExist)
	}
	return opened, err
}

// Create creates a session. If the session id is empty, it makes one up. If there is a
// session with that id, the error matches Coppice's ErrExist.
func (s *Service) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if req == nil {
		return nil, errNil("request")
	}
	p, err := placeOf(req.AppName, req.UserID, cmp.Or(req.SessionID, platform.NewUUID(ctx)))
	if err != nil {
		return nil, err
	}
	app, user, own := split(req.State)
	extra, err := s.firstState(own)
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", p.id, err)
	}
	if there, err := s.open(ctx, p.name); err == nil {
		return nil, errors.Join(p.err(coppice.ErrExist), there.Close())
	}
	undo, err := s.changeShared(ctx, p, app, user)
	if err != nil {
		return nil, err
	}
	header := coppice.Header{ID: p.name, Key: p.key, CreatedAt: platform.Now(ctx).UTC(), Extra: append(extra, agentField)}
	made, err := coppice.Create(ctx, s.store, header, s.sessions())
	if errors.Is(err, coppice.ErrExist) {
		err = p.err(coppice.ErrExist)
	}
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	defer made.Close()
	h := &handle{place: p, view: view{own: own, updated: header.CreatedAt}}
	err = s.fillState(ctx, h, maps.Clone(own))
	return &session.CreateResponse{Session: h}, err
}

// firstState returns the state of a new session as members of its header, so that the session
// appears with its state or not at all. A session does not clean headers, so the state is
// cleaned here as if it were an entry.
func (s *Service) firstState(own map[string]any) (coppice.Fields, error) {
	e, err := custom(customState, record{State: own})
	if err != nil {
		return nil, fmt.Errorf("its state: %w: %w", coppice.ErrInvalid, err)
	}
	if s.opts.Clean != nil {
		err = s.opts.Clean(&e)
	}
	return e.Extra, err
}

// agentField names the program in a header, for lists.
var agentField = coppice.Field{Name: "agent", Value: []byte(`"adk"`)}

func errNil(what string) error { return fmt.Errorf("the %s is nil: %w", what, coppice.ErrInvalid) }

// fillState sets a handle's state, given its own.
func (s *Service) fillState(ctx context.Context, h *handle, own map[string]any) error {
	app, err := s.sharedState(ctx, h.app)
	if err != nil {
		return err
	}
	user, err := s.sharedState(ctx, h.app, h.user)
	h.state = join(app, user, own)
	return err
}

// Get returns a session with all its events, or with those that the request asks for. It
// reads the log backwards, and only as far as necessary. With both After and NumRecentEvents
// it returns the latest of the events that are not before After.
func (s *Service) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if req == nil {
		return nil, errNil("request")
	}
	p, err := placeOf(req.AppName, req.UserID, req.SessionID)
	if err != nil {
		return nil, err
	}
	h, err := s.get(ctx, p, reach{most: max(req.NumRecentEvents, 0), after: req.After})
	if err != nil {
		return nil, err
	}
	return &session.GetResponse{Session: h}, s.fillState(ctx, h, h.own)
}

// get returns the handle of a session, without its shared state.
func (s *Service) get(ctx context.Context, p place, want reach) (*handle, error) {
	opened, err := s.openAt(ctx, p)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	v, err := s.view(opened, want)
	if err != nil {
		return nil, err
	}
	return &handle{place: p, view: *v}, nil
}

// view reads a session for Get.
func (s *Service) view(opened *coppice.Session, want reach) (*view, error) {
	if !s.compacted || want != (reach{}) {
		return look(opened, want)
	}
	events, ok, err := compacted(opened)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return look(opened, want)
	}
	v, err := look(opened, reach{none: true})
	if err == nil {
		v.events = events
	}
	return v, err
}

// List returns the sessions of a user, or of all users of an app if the request names no
// user, without their events. They are sorted by user and id.
func (s *Service) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if req == nil {
		return nil, errNil("request")
	}
	if req.AppName == "" {
		return nil, fmt.Errorf("an app name is required: %w", coppice.ErrInvalid)
	}
	handles, err := s.list(ctx, req.AppName, req.UserID)
	if err != nil {
		return nil, err
	}
	app, err := s.sharedState(ctx, req.AppName)
	if err != nil {
		return nil, err
	}
	users := make(map[string]map[string]any)
	list := make([]session.Session, 0, len(handles))
	for _, h := range handles {
		user, ok := users[h.user]
		if !ok {
			if user, err = s.sharedState(ctx, h.app, h.user); err != nil {
				return nil, err
			}
			users[h.user] = user
		}
		h.state = join(app, user, h.own)
		list = append(list, h)
	}
	return &session.ListResponse{Sessions: list}, nil
}

func (s *Service) list(ctx context.Context, app, user string) ([]*handle, error) {
	tail, err := tailOf(app, user)
	if err != nil {
		return nil, err
	}
	var handles []*handle
	for stat, err := range s.store.List(ctx) {
		if !strings.HasSuffix(stat.Name, tail) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h, err := s.listed(ctx, stat.Name)
		if errors.Is(err, coppice.ErrNotExist) {
			continue // it was deleted a moment ago
		}
		if err != nil {
			return nil, err
		}
		if h != nil && h.app == app && (user == "" || h.user == user) {
			handles = append(handles, h)
		}
	}
	slices.SortFunc(handles, func(a, b *handle) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.id, b.id))
	})
	return handles, nil
}

// listed returns the session that has a name in the store, or nil if it is not ours.
func (s *Service) listed(ctx context.Context, name string) (*handle, error) {
	opened, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	parts, err := partsOf(opened.Header().Key)
	if err != nil || len(parts) != 3 {
		return nil, nil
	}
	p, err := placeOf(parts[0], parts[1], parts[2])
	if err != nil || p.name != name {
		return nil, nil // a copy under another name
	}
	v, err := look(opened, reach{none: true})
	if err != nil {
		return nil, err
	}
	return &handle{place: p, view: *v}, nil
}

// Delete removes a session with its events. A store of files moves it to the trash. Its
// changes to shared state stay. Deleting a session that does not exist does nothing.
func (s *Service) Delete(ctx context.Context, req *session.DeleteRequest) error {
	if req == nil {
		return errNil("request")
	}
	p, err := placeOf(req.AppName, req.UserID, req.SessionID)
	if err != nil {
		return err
	}
	err = s.store.Remove(ctx, p.name)
	if errors.Is(err, coppice.ErrNotExist) {
		return nil
	}
	return err
}
