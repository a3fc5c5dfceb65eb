package home

import (
	"context"
	"errors"
)

// Confine returns a context for callers that must not reach the machine of the home: their turns
// get no tools, MCP servers or files there, they cannot allow a call, and they cannot steer a
// turn that has tools. A server confines callers unless its owner allows them more.
func Confine(ctx context.Context) context.Context {
	return context.WithValue(ctx, confinedKey{}, true)
}

type confinedKey struct{}

func isConfined(ctx context.Context) bool { return ctx.Value(confinedKey{}) != nil }

// errForbidden means that a confined caller asked for more.
var errForbidden = errors.New("this caller may not act on the machine with the home")

// confined is the error of a field with which a confined caller asks for more.
func confined(field string) error { return wrong(field, "{"+field+"}: %w", errForbidden) }
