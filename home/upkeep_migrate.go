package home

import (
	"context"

	"github.com/coppice-dev/coppice/session"
)

// MigrateResult is what Migrate has found and done.
type MigrateResult struct {
	// Home is where the home is, without a password.
	Home string `json:"home"`
	// From and To are the versions of its tables before and after. From is 0 if there were
	// none.
	From int `json:"from"`
	To   int `json:"to"`
	// Blobs is where images and long results of tools go from now on, if that was chosen.
	Blobs string `json:"blobs,omitempty"`
}

// Migrate makes the tables of a home in a database, or brings them to the version that this
// program needs. where is as for Open. Programs of the version before can still use the home,
// unless their errors say otherwise; there is no way back.
//
// If blobs is not "", it also chooses where images and long results of tools go from now on: see
// postgres.KeepBlobs.
func Migrate(ctx context.Context, where, blobs string, o *Options) (*MigrateResult, error) {
	h, err := prepare(o)
	if err != nil {
		return nil, err
	}
	at, err := h.settings.locate(where)
	if err != nil {
		return nil, err
	}
	kind := kindOf(at.scheme)
	if kind == nil || kind.Migrate == nil {
		return nil, &session.Error{
			Op: "migrate", Path: at.where, Err: session.Invalidf("it is not in a database"),
			Hint: "a home in a directory needs no migration; for one in a database give its URL: --dir postgres://user@host/database",
		}
	}
	return kind.Migrate(ctx, at.where, blobs)
}
