package home

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Limit is the part of a home that a limited home has: the sessions with a tag, about a
// project, or whose keys begin alike. At most one member is set; the zero Limit is the whole
// home.
type Limit struct {
	// Tag selects the sessions that have this tag or one below it.
	Tag string `json:"tag,omitempty"`
	// Project selects the sessions about a directory of this name, as ListRequest.Project
	// does.
	Project string `json:"project,omitempty"`
	// Key selects the sessions whose keys begin like this.
	Key string `json:"key,omitempty"`
}

// String returns tag:T, project:P or key:K, or "" for the whole home.
func (l Limit) String() string {
	switch {
	case l.Tag != "":
		return "tag:" + l.Tag
	case l.Project != "":
		return "project:" + l.Project
	case l.Key != "":
		return "key:" + l.Key
	}
	return ""
}

// Check returns an error unless the limit can be used.
func (l Limit) Check() error {
	switch {
	case l.Tag != "" && l.Project != "":
		return exclude("tag", "project")
	case l.Tag != "" && l.Key != "":
		return exclude("tag", "key")
	case l.Project != "" && l.Key != "":
		return exclude("project", "key")
	case l.Tag != "":
		clean, err := cleanTags("tag", []string{l.Tag})
		if err == nil && clean[0] != l.Tag {
			err = wrong("tag", "{tag} begins or ends with white space")
		}
		return err
	}
	if err := checkUTF8("project", l.Project); err != nil {
		return err
	}
	return checkUTF8("key", l.Key)
}

// has reports whether a session itself is in the limit, by its header and its tags.
func (l Limit) has(header *session.Header, tags []string) bool {
	switch {
	case l.Tag != "":
		return slices.ContainsFunc(tags, l.hasTag)
	case l.Project != "":
		return index.IsProject(header.CWD, l.Project)
	}
	return l.Key != "" && strings.HasPrefix(header.Key, l.Key)
}

// hasTag reports whether a tag is the limit's, or below it.
func (l Limit) hasTag(tag string) bool { return tag == l.Tag || strings.HasPrefix(tag, l.Tag+"/") }

// Limited returns a view of the home in which only a part of it exists: sessions outside of
// the limit are neither read nor found, counted, suggested or named in an error, and whatever
// is created is inside. Operations that are about the home as a whole are refused: those that
// need Admin, those about files of this machine, and imports. Turns are confined: see Confine.
//
// Whenever something is opened, the home's index, brought up to date, decides whether the
// session is inside. The view has its own index, in a temporary directory: numbers, names and
// the order of search results depend on everything in an index, so a shared one would reveal
// something about what is outside.
//
// The same limit is always the same view. Closing the home closes it; its own Close does
// nothing.
func (h *Home) Limited(l Limit) (*Home, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	switch {
	case h.limit == l:
		return h, nil
	case h.whole != nil:
		return nil, session.Invalidf("this home is limited to %s already", h.limit)
	case h.remote != nil:
		return nil, session.Invalidf("a home on another machine is limited there, by a token")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, &session.Error{Op: "open home", Path: h.store.Where(), Kind: store.ErrClosed}
	}
	if part := h.parts[l]; part != nil {
		return part, nil
	}
	part := &Home{opts: h.opts, settings: h.settings, kind: h.kind, turns: newTurnTable(), keeper: h.keeper, whole: h, limit: l}
	part.store = newView(part)
	part.guarded.Store(h.guarded.Load())
	part.group()
	if h.parts == nil {
		h.parts = make(map[Limit]*Home)
	}
	h.parts[l] = part
	return part, nil
}

// limitedParts returns the views of the home that are open.
func (h *Home) limitedParts() []*Home {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.parts))
}

// real returns the store with everything.
func (h *Home) real() store.Store {
	if h.whole != nil {
		return h.whole.store
	}
	return h.store
}

// admit refuses an operation of a home that is closed, and one that a limited home does not
// have.
func (h *Home) admit(op string) error {
	if h.isClosed() {
		return &store.Error{Op: op, Path: h.Dir(), Kind: store.ErrClosed}
	}
	if h.whole == nil {
		return nil
	}
	if o := OperationNamed(op); o != nil && o.Access < Admin && o.Route != "" && !o.Reads {
		return nil
	}
	return h.refuse(op)
}

// refuse is the error of an operation that a limited home does not offer.
func (h *Home) refuse(op string) error {
	return &session.Error{
		Op: op, Err: session.Invalidf("this home is limited to %s, and the operation concerns more", h.limit),
		Hint: "use a token without a limit",
	}
}

// asOne returns a context for an operation that looks at one state of the whole home: it
// determines only once which sessions are inside a limit.
func (h *Home) asOne(ctx context.Context) context.Context {
	if h.whole == nil {
		return ctx
	}
	return h.whole.catchUpOnce(h.confine(ctx))
}

// confine returns a context for an operation of a limited home, which must not reach the
// machine.
func (h *Home) confine(ctx context.Context) context.Context {
	if h.whole == nil {
		return ctx
	}
	return Confine(ctx)
}

// quiet returns a context without notices: the user of a part must not hear what happens to
// the whole home.
func quiet(ctx context.Context) context.Context {
	return WithProgress(WithNotify(ctx, func(Notice) {}), func(string, int64, int64) {})
}
