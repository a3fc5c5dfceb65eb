package home

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/index"
)

// Confine returns a context for callers that must not reach the machine of the home: their turns
// get no tools, MCP servers or files there, they cannot allow a call, and they cannot steer a
// turn that has tools. A server confines callers unless its owner allows them more.
func Confine(ctx context.Context) context.Context {
	return context.WithValue(ctx, confinedKey{}, true)
}

type confinedKey struct{}

func isConfined(ctx context.Context) bool { return ctx.Value(confinedKey{}) != nil }

// absolutePaths returns a directory and a file that a caller has named, as absolute paths. Those
// of a confined caller are left as they are: what they mean here would reveal something about the
// machine.
func absolutePaths(ctx context.Context, dir, file string) (wholeDir, wholeFile string) {
	if isConfined(ctx) {
		return dir, file
	}
	return index.Dir(dir), index.File(file)
}

// errForbidden means that a confined caller asked for more.
var errForbidden = errors.New("this caller may not act on the machine with the home")

// confined is the error of a field that a confined caller must not set.
func confined(field string) error { return wrong(field, "{"+field+"}: %w", errForbidden) }
