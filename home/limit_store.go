package home

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
)

// view is the store of a limited home: another store without what is outside of the limit. It
// embeds nothing, so that a method that stores get later is not let through by default, and
// it is not a store.Wrapper, so that store.As does not find a way around it.
//
// A session is inside because its own log says so, or the log of one that it continues or is
// continued by, if both say that they do. So whatever is written through a view changes
// nothing about the sessions that are outside of it.
type view struct {
	part  *Home // the limited home
	whole *Home
	real  store.Store
	limit Limit
	blobs *viewBlobs
	trash *viewTrash
}

// archivingView is a view of a store that can archive.
type archivingView struct {
	*view
	archiver store.Archiver
}

func newView(part *Home) store.Store {
	v := &view{part: part, whole: part.whole, real: part.whole.store, limit: part.limit}
	v.blobs = newViewBlobs(v)
	v.trash = &viewTrash{view: v, read: make(map[string]*removed)}
	if archiver, ok := store.As[store.Archiver](v.real); ok {
		return &archivingView{v, archiver}
	}
	return v
}

// missing is the error for a session that does not exist or is outside.
func missing(op, name string) error {
	return &store.Error{Op: op, Name: name, Kind: store.ErrNotExist}
}

// isInside reports whether there is a log of that name in the view.
func (v *view) isInside(ctx context.Context, name string) (bool, error) {
	ctx = quiet(ctx)
	ix, err := v.whole.exactIndex(ctx)
	if err != nil {
		return false, err
	}
	return ix.Within(ctx, index.Limit(v.limit), name)
}

// check returns an error unless there is a log of that name in the view.
func (v *view) check(ctx context.Context, op, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	inside, err := v.isInside(ctx, name)
	if err == nil && !inside {
		err = missing(op, name)
	}
	return err
}

// checkStill is check for a log that is open already: only losing a tag can take it outside.
func (v *view) checkStill(ctx context.Context, op, name string) error {
	if v.limit.Tag == "" {
		return nil
	}
	return v.check(ctx, op, name)
}

// Open implements store.Store.
func (v *view) Open(ctx context.Context, name string) (store.Log, error) {
	if err := v.check(ctx, "open", name); err != nil {
		return nil, err
	}
	log, err := v.real.Open(ctx, name)
	return v.wrap(name, log, err)
}

func (v *view) wrap(name string, log store.Log, err error) (store.Log, error) {
	if err != nil {
		return nil, err
	}
	return &viewLog{Log: log, view: v, name: name}, nil
}

// Stat implements store.Store.
func (v *view) Stat(ctx context.Context, name string) (store.Stat, error) {
	if err := v.check(ctx, "stat", name); err != nil {
		return store.Stat{}, err
	}
	return v.real.Stat(ctx, name)
}

// List implements store.Store.
func (v *view) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		ix, err := v.whole.exactIndex(quiet(ctx))
		var names []string
		if err == nil {
			names, err = ix.AllWithin(ctx, index.Limit(v.limit))
		}
		if err != nil {
			yield(store.Stat{}, err)
			return
		}
		for _, name := range names {
			stat, err := v.real.Stat(ctx, name)
			if errors.Is(err, store.ErrNotExist) {
				continue
			}
			stat.Name = name
			if ctx.Err() != nil {
				yield(store.Stat{}, ctx.Err())
				return
			}
			if !yield(stat, err) {
				return
			}
		}
	}
}

// Create implements store.Store. A new session is always inside: it must be about the
// project, or have a key with the right beginning, or it gets the tag.
func (v *view) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return v.create(ctx, name, lines, func(lines iter.Seq2[[]byte, error]) (store.Log, error) {
		return v.real.Create(ctx, name, lines)
	})
}

// CreateCopy implements store.Store.
func (v *view) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	return v.create(ctx, name, lines, func(lines iter.Seq2[[]byte, error]) (store.Log, error) {
		return v.real.CreateCopy(ctx, name, lines, of)
	})
}

func (v *view) create(ctx context.Context, name string, lines iter.Seq2[[]byte, error], create func(iter.Seq2[[]byte, error]) (store.Log, error)) (store.Log, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(lines)
	defer stop()
	first, err, _ := next()
	if err == nil {
		err = v.admit(ctx, name, first)
	}
	if err != nil {
		return nil, err // creating it first would reveal whether the name is taken
	}
	log, err := create(func(yield func([]byte, error) bool) {
		for line, err, ok := first, error(nil), true; ok; line, err, ok = next() {
			if err == nil {
				err = v.blobs.named(ctx, name, line)
			}
			if !yield(line, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if held := v.whole.held(ctx); held != nil {
		held.Store(nil) // the next index must include the new session
	}
	if inside, err := v.isInside(ctx, name); err != nil || !inside {
		if err == nil && v.limit.Tag != "" {
			err = v.tag(ctx, name)
		}
		if err != nil {
			return nil, errors.Join(err, log.Close())
		}
		if held := v.whole.held(ctx); held != nil {
			held.Store(nil)
		}
	}
	return v.wrap(name, log, nil)
}

// tag gives a session the tag of the limit.
func (v *view) tag(ctx context.Context, name string) error {
	s, err := session.Open(ctx, v.real, name, nil)
	if err != nil {
		return err
	}
	_, err = s.AppendEntry(session.TagChange{Add: []string{v.limit.Tag}}.Entry())
	return errors.Join(err, s.Close())
}

// admit decides by its first line whether a log may be created. Its name must be a new id, or
// that of a key with the right beginning: for ids that can be known, such as those of other
// keys or of imported conversations, an error would reveal that they are taken.
func (v *view) admit(ctx context.Context, name string, first []byte) error {
	var h session.Header
	if err := json.Unmarshal(first, &h); err != nil || h.Type != session.TypeSession || h.ID != name {
		return session.Invalidf("a session in a limited home begins with its header")
	}
	if h.Relation == session.RelationContinuation && v.isContinued(ctx, h.ParentSession, name) {
		return nil
	}
	switch {
	case v.limit.Key != "" && !v.limit.has(&h, nil):
		return wrong("key", "{key} is %q; in this home it must begin with %q", h.Key, v.limit.Key)
	case v.limit.Key != "" && idOfKey(h.Key) != name:
		return wrong("key", "the session of {key} %q has another id", h.Key)
	case v.limit.Key != "":
		return nil
	case h.Key != "":
		return wrong("key", "{key} cannot be given in a home that is limited to %s: keys belong to the whole home", v.limit)
	case v.limit.Project != "" && !v.limit.has(&h, nil):
		return wrong("cwd", "{cwd} is %q; in this home it must be a directory of the project %s", h.CWD, v.limit.Project)
	case session.RandomPart(name) == name: // a UUID of version 7, as session.NewID makes them, has one
		return session.Invalidf("the id of a session in a limited home must be a new one, not %q", name)
	}
	return nil
}

// isContinued reports whether a session of the view says that another one continues it.
func (v *view) isContinued(ctx context.Context, parent, name string) bool {
	if v.check(ctx, "open", parent) != nil {
		return false
	}
	link, err := session.ReadLink(ctx, v.real, parent)
	return err == nil && link.ContinuedTo == name
}

// Batch implements store.Store. Batches are for imports, which a limited home does not have.
func (v *view) Batch() store.Batch { return refusedBatch{v} }

type refusedBatch struct{ view *view }

func (b refusedBatch) Add(context.Context, string, iter.Seq2[[]byte, error]) error {
	return b.view.part.refuse("import")
}
func (refusedBatch) Len() int                                { return 0 }
func (refusedBatch) Commit(context.Context) map[string]error { return nil }
func (refusedBatch) Discard()                                {}

// Remove implements store.Store.
func (v *view) Remove(ctx context.Context, name string) error {
	if err := v.check(ctx, "remove", name); err != nil {
		return err
	}
	return v.real.Remove(ctx, name)
}

// RemoveAt implements store.Store.
func (v *view) RemoveAt(ctx context.Context, name string, end store.Pos) error {
	if err := v.check(ctx, "remove", name); err != nil {
		return err
	}
	return v.real.RemoveAt(ctx, name, end)
}

// Archive implements store.Archiver.
func (v *archivingView) Archive(ctx context.Context, name string) error {
	if err := v.check(ctx, "archive", name); err != nil {
		return err
	}
	return v.archiver.Archive(ctx, name)
}

// Unarchive implements store.Archiver.
func (v *archivingView) Unarchive(ctx context.Context, name string) error {
	if err := v.check(ctx, "unarchive", name); err != nil {
		return err
	}
	return v.archiver.Unarchive(ctx, name)
}

// Trash implements store.Store.
func (v *view) Trash() store.Trash { return v.trash }

// Blobs implements store.Store.
func (v *view) Blobs() store.Blobs { return v.blobs }

// Notes implements store.Store. A limited home has notes of its own, except that it shares
// the leases of its sessions: one program at a time works on each.
func (v *view) Notes(room string) store.Notes {
	sum := sha256.Sum256([]byte(v.limit.String()))
	own := v.real.Notes(fmt.Sprintf("limited-%x-%s", sum[:8], room))
	if room != lease.Room {
		return own
	}
	return &viewLeases{view: v, own: own, shared: v.real.Notes(room)}
}

// Parts implements store.Store. A limited home offers no parts.
func (v *view) Parts() store.Parts { return noParts{v} }

// Changes implements store.Store. Which sessions are inside changes without a mark on them, so
// the index of a limited home looks at all of them, unless that of the whole home has not changed:
// then nothing has.
func (v *view) Changes(ctx context.Context, _ string) (store.Changes, error) {
	ix, err := v.whole.exactIndex(quiet(ctx))
	if err != nil {
		return store.Changes{}, err
	}
	n, err := ix.Changes(ctx)
	return store.Changes{Epoch: fmt.Sprintf("%p", ix), Listing: strconv.FormatInt(n, 10)}, err
}

// Settle implements store.Store.
func (v *view) Settle(context.Context, string, map[string]*store.Stat) error { return nil }

// Limits implements store.Store.
func (v *view) Limits() store.Limits { return v.real.Limits() }

// Where implements store.Store.
func (v *view) Where() string { return v.real.Where() }

// Close implements store.Store. The whole home closes the store.
func (v *view) Close() error { return nil }
