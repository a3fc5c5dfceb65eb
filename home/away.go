package home

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
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
	if h.own, err = h.settings.own(ctx); err != nil {
		return nil, err
	}
	h.remote, h.trust = there, h.own.Notes("")
	h.begin(ctx)
	return h, nil
}

// IsAway reports whether a home is on another machine, by its address.
func IsAway(where string) bool {
	return strings.HasPrefix(where, "https://") || strings.HasPrefix(where, "http://")
}

// errAway is the error of an operation that needs the index of a home on another machine.
// Code that only adds something to an answer works without the index.
var errAway = errors.New("the index of this home is on another machine")

// Every operation that needs the index, or that should be one step for other readers of
// the home, goes through call, ask or follow: it runs here or, for a home on another machine,
// there. The other operations (those about files of this machine) always run here, on the
// home's store, wherever that is.

// checkOpen refuses an operation of a home that is closed.
func (h *Home) checkOpen(op string) error {
	if h.isClosed() {
		return &store.Error{Op: op, Path: h.Dir(), Kind: store.ErrClosed}
	}
	return nil
}

func call[R, T any](ctx context.Context, h *Home, op string, r R, here func(context.Context, R) (*T, error)) (*T, error) {
	if err := h.checkOpen(op); err != nil {
		return nil, err
	}
	if h.remote == nil {
		return here(ctx, r)
	}
	return there[T](ctx, h, op, &r, nil)
}

func ask[T any](ctx context.Context, h *Home, op string, here func(context.Context) (*T, error)) (*T, error) {
	if err := h.checkOpen(op); err != nil {
		return nil, err
	}
	if h.remote == nil {
		return here(ctx)
	}
	return there[T](ctx, h, op, &Nothing{}, nil)
}

func follow[R, E, T any](ctx context.Context, h *Home, op string, r R, send func(E) error, here func(context.Context, R, func(E) error) (*T, error)) (*T, error) {
	if err := h.checkOpen(op); err != nil {
		return nil, err
	}
	if h.remote == nil {
		return here(ctx, r, send)
	}
	var sent Streamed
	result, err := there[T](ctx, h, op, &r, func(event any) error { return pass(&sent, send, event.(E)) })
	if result == nil { // the answer has no end, such as that of a watch
		result = new(T)
		if counts, ok := any(result).(interface{ counted() *Streamed }); ok {
			*counts.counted() = sent
		}
	}
	return result, err
}

func there[T any](ctx context.Context, h *Home, op string, request any, send func(any) error) (*T, error) {
	if err := h.fromHere(ctx, request); err != nil {
		return nil, err
	}
	result, err := h.remote.Do(ctx, OperationNamed(op), request, func(event any) error {
		switch e := event.(type) {
		case Notice:
			h.notify(ctx, e)
		case Progress:
			h.reporter(ctx)(e.Doing, e.Done, e.Total)
		case Begun:
			begun(ctx)
		default:
			if send != nil {
				return send(event)
			}
		}
		return nil
	})
	if result == nil {
		return nil, err
	}
	t, ok := result.(*T)
	if !ok {
		return nil, fmt.Errorf("%s: the answer is a %T, not a %T", op, result, t)
	}
	return t, err
}

// fromHere prepares a request for another machine. There "." is another directory, and JSON
// can only hold text in UTF-8.
func (h *Home) fromHere(ctx context.Context, request any) error {
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
			if name == "cwd" || slices.Contains(namesOfSessions, name) && isDirName(text) && !h.isKey(ctx, text) {
				texts[i] = index.Dir(text)
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
	name, err := h.exactly(ctx, idOfKey(given))
	return err == nil && name != ""
}

// listed returns the sessions of a list that is on another machine, with all its pages.
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
