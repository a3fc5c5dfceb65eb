package home

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// Remote performs the operations of a home that is on another machine. It behaves as
// Operation.Call does there: an event is a value of the operation's Event, and the error is
// the *ErrorInfo that came back. It also sends each Notice, and each Progress.
type Remote interface {
	Do(ctx context.Context, op *Operation, request any, send func(event any) error) (result any, err error)
}

// Progress is how far an operation has come: what it is doing, and how much of how much is done.
type Progress struct {
	Doing string `json:"doing"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// Begun is an event of a Remote that follows: from now on nothing is missed. See WithBegun.
type Begun struct{}

// Away opens a home on another machine: a store with its sessions, and a Remote that performs
// the operations which need its index. Package client does this for a server's address.
func Away(ctx context.Context, st store.Store, there Remote, o *Options) (*Home, error) {
	h, err := prepareOn(st, o)
	if err != nil {
		return nil, err
	}
	// Another machine does not decide what may run on this one: the user's own home does.
	if h.userStore, err = h.settings.openOwn(ctx); err != nil {
		return nil, err
	}
	h.kind, h.site = awayKind, away{h, there}
	h.begin(ctx)
	return h, nil
}

// awayKind is the kind of a home on another machine. Nothing opens its index here.
var awayKind = &StoreKind{Room: func(context.Context, store.Store) (room.Room, error) { return nil, errAway }}

// IsAway reports whether a home is on another machine, by its address.
func IsAway(where string) bool {
	return strings.HasPrefix(where, "https://") || strings.HasPrefix(where, "http://")
}

// errAway is the error of an operation that needs the index of a home on another machine.
// Code that only adds something to an answer works without the index.
var errAway = errors.New("the index of this home is on another machine")

// away is the site of a home on another machine, which looks after it.
type away struct {
	*Home
	remote Remote
}

func (a away) perform(ctx context.Context, name string, request any, send func(any) error, _ func() (any, error)) (any, error) {
	if err := a.forRemote(ctx, request); err != nil {
		return nil, err
	}
	op := OperationNamed(name)
	var sent Streamed
	result, err := a.remote.Do(ctx, op, request, func(event any) error {
		switch is := event.(type) {
		case Notice:
			a.notify(ctx, is)
		case Progress:
			a.reporter(ctx)(is.Doing, is.Done, is.Total)
		case Begun:
			begun(ctx)
		default:
			return pass(&sent, send, event)
		}
		return nil
	})
	if result == nil && op.Event != nil { // the answer has no end, such as that of a watch
		result = reflect.New(op.Result).Interface()
		if counts, ok := result.(interface{ counted() *Streamed }); ok {
			*counts.counted() = sent
		}
	}
	return result, err
}

// changes only notices appends.
func (a away) changes(ctx context.Context, changed func()) error {
	_, err := a.Entries.Follow(ctx, FollowRequest{}, func(Arrival) error { changed(); return nil })
	return err
}

func (a away) subagents(ctx context.Context, id string, _ bool) ([]string, error) {
	return a.listed(ctx, ListRequest{Parent: id, Relation: session.RelationSubagent, All: true, Links: true, Limit: -1})
}

func (a away) dropIndexes(ctx context.Context) ([]string, error) {
	_, err := a.Upkeep.RebuildIndex(ctx)
	return nil, err
}

func (a away) finishRedaction(context.Context) (*clean.Receipt, error) { return nil, nil }

func (a away) redactKnown() func(context.Context, []string) error {
	return func(ctx context.Context, sessions []string) error {
		_, err := a.Upkeep.Redact(ctx, RedactRequest{Sessions: sessions, Link: true, Known: true, Apply: true})
		return err
	}
}

// forRemote prepares a request for another machine. There "." is another directory, and JSON
// can only hold text in UTF-8.
func (h *Home) forRemote(ctx context.Context, request any) error {
	v := reflect.ValueOf(request).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := v.FieldByIndex(f.Index)
		var texts []string
		switch {
		case field.Kind() == reflect.String:
			texts = []string{field.String()}
		case field.Type() == reflect.TypeFor[[]string]():
			texts = slices.Clone(field.Interface().([]string))
		}
		for i, text := range texts {
			if err := checkUTF8(name, text); err != nil {
				return err
			}
			switch {
			case name == "cwd", slices.Contains(namesOfSessions, name) && isDirName(text) && !h.isKey(ctx, text):
				texts[i] = index.Dir(text)
			case name == "file":
				texts[i] = index.File(text)
			case name == "filter", name == "query":
				texts[i] = index.WithWholePaths(text)
			}
		}
		if field.Kind() == reflect.String {
			field.SetString(texts[0])
		} else if texts != nil {
			field.Set(reflect.ValueOf(texts))
		}
	}
	return nil
}

// namesOfSessions are the fields of requests in which people name sessions.
var namesOfSessions = []string{"session", "sessions", "other", "parent"}

// isKey reports whether what looks like a directory is the key of a session.
func (h *Home) isKey(ctx context.Context, given string) bool {
	name, err := h.exactID(ctx, idOfKey(given))
	return err == nil && name != ""
}

// listed returns the sessions of a list, with all its pages.
func (h *Home) listed(ctx context.Context, r ListRequest) (names []string, err error) {
	for {
		page, err := h.Sessions.List(ctx, r)
		if err != nil {
			return nil, err
		}
		for i := range page.Sessions {
			names = append(names, page.Sessions[i].Name)
		}
		if r.After = page.Next; r.After == "" {
			return names, nil
		}
	}
}
