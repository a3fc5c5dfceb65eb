package home

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/upkeep"
)

// CopyRequest says what is copied, and where to.
type CopyRequest struct {
	// From and To are homes, as for Open. To is made if it is a directory that does not exist.
	From string
	To   string
	// Sessions are those to copy, as a person names them, each with its whole conversation.
	// Empty means everything.
	Sessions []string
}

// CopyResult is what was copied.
type CopyResult struct {
	// From and To are where the homes are, without passwords.
	From string `json:"from"`
	To   string `json:"to"`
	upkeep.CopyResult
}

// Copy makes a home have what another one has: sessions, the content that they refer to, the
// trash, the digests of what was redacted, and what is known about imports. See upkeep.Copy. If
// some sessions could not be copied or differ, or something is left that was redacted, the error
// is ErrPartial.
//
// It is for two homes that this machine can open, so it is no operation of a home.
func Copy(ctx context.Context, r CopyRequest, o *Options) (*CopyResult, error) {
	from, err := openToCopy(ctx, "copy from", r.From, o, false)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := openToCopy(ctx, "copy to", r.To, o, true)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	result := &CopyResult{From: from.Dir(), To: to.Dir()}
	if realPath(result.From) == realPath(result.To) {
		return nil, &session.Error{
			Op: "copy", Path: result.From, Err: session.Invalidf("both homes are the same"),
			Hint: "give another directory or URL to copy to",
		}
	}
	var names []string
	for _, given := range r.Sessions {
		links, err := from.linksOf(ctx, given, false)
		if err != nil {
			return nil, err
		}
		names = append(names, links...)
	}
	from.beforeWriting(ctx) // which finishes redactions
	to.beforeReplacing(ctx)
	did, err := upkeep.Copy(ctx, from.store, to.store, upkeep.CopyRequest{
		Sessions: names, Rooms: []string{transcript.LedgerRoom}, Progress: to.reporter(ctx),
		DropIndex: func(ctx context.Context) error {
			_, err := to.site.dropIndexes(ctx)
			return err
		},
	})
	result.CopyResult = *did
	if err == nil && len(did.Conflicts)+len(did.Failed)+len(did.Left) > 0 {
		err = ErrPartial
	}
	return result, err
}

// openToCopy opens one of the homes. The one that is written to takes no more sessions when it is
// full: it would have to remove those that were copied before.
func openToCopy(ctx context.Context, op, where string, o *Options, create bool) (*Home, error) {
	h, err := prepare(o)
	if err != nil {
		return nil, err
	}
	h.opts.Create, h.rejectsWhenFull = create, true
	if IsAway(where) || where == "" && IsAway(h.settings.home) {
		return nil, &session.Error{
			Op: op, Err: session.Invalidf("the home is behind a server"),
			Hint: "run this where the server runs, with the directory or database that it serves",
		}
	}
	at, err := h.settings.locate(where)
	if err != nil {
		return nil, err
	}
	if err := h.openAt(ctx, at); err != nil {
		if at.scheme == inFiles && errors.Is(err, session.ErrNotExist) {
			err = &session.Error{Op: op, Path: where, Kind: session.ErrNotExist, Hint: "check the path: there must be a home to copy from"}
		}
		return nil, err
	}
	return h, nil
}
