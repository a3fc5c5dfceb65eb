package home

import (
	"context"
	"fmt"
)

// Remote performs the operations of a home that is on another machine. It behaves as
// Operation.Call does there: an event is a value of the operation's Event, and the error is
// the *ErrorInfo that came back.
type Remote interface {
	Do(ctx context.Context, op *Operation, request any, send func(event any) error) (result any, err error)
}

// Every operation that needs the index, or that should be one step for those who read the
// home, goes through call, ask or follow: it runs here or, in a home that is elsewhere,
// there. The other operations (those about files of this machine) always run here, on the
// home's store, wherever that is.

func call[R, T any](ctx context.Context, h *Home, op string, r R, here func(context.Context, R) (*T, error)) (*T, error) {
	if h.remote == nil {
		return here(ctx, r)
	}
	return there[T](ctx, h, op, &r, nil)
}

func ask[T any](ctx context.Context, h *Home, op string, here func(context.Context) (*T, error)) (*T, error) {
	if h.remote == nil {
		return here(ctx)
	}
	return there[T](ctx, h, op, &Nothing{}, nil)
}

func follow[R, E, T any](ctx context.Context, h *Home, op string, r R, send func(E) error, here func(context.Context, R, func(E) error) (*T, error)) (*T, error) {
	if h.remote == nil {
		return here(ctx, r, send)
	}
	return there[T](ctx, h, op, &r, func(event any) error {
		if send == nil {
			return nil
		}
		return send(event.(E))
	})
}

func there[T any](ctx context.Context, h *Home, op string, request any, send func(any) error) (*T, error) {
	result, err := h.remote.Do(ctx, OperationNamed(op), request, send)
	if result == nil {
		return nil, err
	}
	t, ok := result.(*T)
	if !ok {
		return nil, fmt.Errorf("%s: the answer is a %T, not a %T", op, result, t)
	}
	return t, err
}
