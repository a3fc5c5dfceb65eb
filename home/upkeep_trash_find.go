package home

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// bin is the trash at one moment: what is in it, and the headers that are needed.
type bin struct {
	home    *Home
	items   []store.Trashed // the latest removal first
	sealed  store.Store     // in which the sessions are named by their removals
	headers map[string]*session.Header
}

func (h *Home) openBin(ctx context.Context) (*bin, error) {
	items, err := h.store.Trash().List(ctx)
	if err != nil {
		return nil, err
	}
	// Removed sessions are kept as they were in the store, so they can be read.
	sealed, err := h.store.Trash().Read()
	if err != nil {
		return nil, err
	}
	return &bin{home: h, items: items, sealed: sealed, headers: make(map[string]*session.Header)}, nil
}

func (b *bin) close() error { return b.sealed.Close() }

// header returns the header of a removed session. One that cannot be read has an empty one.
func (b *bin) header(ctx context.Context, item store.Trashed) *session.Header {
	if known := b.headers[item.ID]; known != nil {
		return known
	}
	header := &session.Header{}
	if log, err := b.sealed.Open(ctx, item.ID); err == nil {
		if found, err := session.FindHeader(ctx, log); err == nil && found != nil {
			header = found
		}
		_ = log.Close() // we only read
	}
	b.headers[item.ID] = header
	return header
}

// resolve returns the removal that a person named, by any name that Resolve accepts for an
// existing session. If a session was removed several times, its latest removal is meant.
func (b *bin) resolve(ctx context.Context, given string) (store.Trashed, error) {
	if given == "" {
		return store.Trashed{}, errNoName
	}
	for _, name := range []string{given, idOfKey(given)} {
		for _, item := range b.items {
			if name != "" && (item.ID == name || item.Name == name) {
				return item, nil
			}
		}
	}
	missing := &session.Error{Op: "find session in the trash", Name: given, Kind: session.ErrNotExist}
	if place, ok := positionOf(given); ok {
		if place > len(b.items) {
			missing.Err = invalidCount(len(b.items))
			return store.Trashed{}, missing
		}
		return b.items[place-1], nil
	}
	if isDirName(given) {
		if err := mustBeWhole(ctx, given); err != nil {
			return store.Trashed{}, err
		}
		return b.about(ctx, index.Dir(given), missing)
	}
	for _, meant := range b.nameMatchers(ctx, given) {
		if latest, names := latestOf(b.items, meant); len(names) > 0 {
			return b.theOne(ctx, given, latest, names)
		}
	}
	return theOneTrashed(given, nil, nil)
}

// nameMatchers returns how a name may mean a removal, the best first: see Resolve.
func (b *bin) nameMatchers(ctx context.Context, given string) []func(store.Trashed) bool {
	native := func(item store.Trashed) string {
		o, _ := session.OriginOf(b.header(ctx, item))
		return o.ID
	}
	exported := func(item store.Trashed) bool {
		ledger := transcript.LedgerOf(b.home.store)
		return slices.ContainsFunc(transcript.Formats(), func(f *transcript.Format) bool {
			if f.Write == nil {
				return false
			}
			s := ledger.ExportOf(ctx, f.Name, given)
			return s != nil && s.Exported == item.Name
		})
	}
	return []func(store.Trashed) bool{
		func(item store.Trashed) bool {
			return strings.HasPrefix(item.ID, given) || len(render.IDsNamed(given, []string{item.Name})) > 0
		},
		func(item store.Trashed) bool { return b.header(ctx, item).Key == given },
		func(item store.Trashed) bool { return native(item) == given },
		func(item store.Trashed) bool { return strings.HasPrefix(native(item), given) },
		exported,
		func(item store.Trashed) bool { return index.SameTitle(titleIn(ctx, b.sealed, item.ID), given) },
	}
}

// about returns the latest removal of a session about a directory or one below it.
func (b *bin) about(ctx context.Context, dir string, missing *session.Error) (store.Trashed, error) {
	for _, item := range b.items {
		if cwd := b.header(ctx, item).CWD; cwd == dir || strings.HasPrefix(cwd, dir+string(filepath.Separator)) {
			return item, nil
		}
	}
	missing.Err = errors.New("no session in it is about " + dir)
	return store.Trashed{}, missing
}

// theOne returns the only removal that is meant. The sessions of one conversation count as
// one.
func (b *bin) theOne(ctx context.Context, given string, latest map[string]store.Trashed, names []string) (store.Trashed, error) {
	first := latest[names[0]]
	family := b.family(ctx, first)
	if len(names) > 1 && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(family, func(item store.Trashed) bool { return item.Name == name })
	}) {
		return family[0], nil
	}
	return theOneTrashed(given, latest, names)
}

func theOneTrashed(given string, latest map[string]store.Trashed, names []string) (store.Trashed, error) {
	name, err := theOne("session in the trash", given, names, func(some []string) ([]string, error) {
		short := render.ShortIDs(names)
		for i, name := range some {
			some[i] = short.Shown(name)
		}
		return some, nil
	})
	return latest[name], err
}

// latestOf returns the latest removal of each session that is meant, and the sessions.
func latestOf(items []store.Trashed, meant func(store.Trashed) bool) (map[string]store.Trashed, []string) {
	latest := make(map[string]store.Trashed)
	var names []string
	for _, item := range items {
		if _, seen := latest[item.Name]; !seen && meant(item) {
			latest[item.Name] = item
			names = append(names, item.Name)
		}
	}
	return latest, names
}

// family returns what belongs to a removed session and was removed, too: the sessions of
// its conversation, in their order, and then those of the subagents that they started.
func (b *bin) family(ctx context.Context, of store.Trashed) []store.Trashed {
	latest, names := latestOf(b.items, func(item store.Trashed) bool { return item.Name != of.Name || item.ID == of.ID })
	in := make(map[string]bool)
	var family []store.Trashed
	for todo := []string{of.Name}; len(todo) > 0; todo = todo[1:] {
		for _, name := range b.chain(ctx, latest, todo[0]) {
			if !in[name] {
				in[name], family = true, append(family, latest[name])
			}
		}
		for _, name := range names {
			if h := b.header(ctx, latest[name]); h.Relation == session.RelationSubagent && in[h.ParentSession] && !in[name] {
				todo = append(todo, name)
			}
		}
	}
	return family
}

// chain returns the removed sessions that are one conversation with a removed session.
func (b *bin) chain(ctx context.Context, latest map[string]store.Trashed, name string) []string {
	linked, err := session.FindChain(ctx, byName{b.sealed, latest}, name, func(_ context.Context, id string) (naming []string, _ error) {
		for other, item := range latest {
			if h := b.header(ctx, item); h.Relation == session.RelationContinuation && h.ParentSession == id {
				naming = append(naming, other)
			}
		}
		return naming, nil
	})
	if err != nil || !slices.Contains(linked.Links, name) {
		return []string{name} // it cannot be read
	}
	return linked.Links
}

// byName is the trash as a store in which sessions have the names they had before.
type byName struct {
	store.Store
	latest map[string]store.Trashed
}

func (s byName) Open(ctx context.Context, name string) (store.Log, error) {
	item, ok := s.latest[name]
	if !ok {
		return nil, &store.Error{Op: "open", Name: name, Kind: store.ErrNotExist}
	}
	return s.Store.Open(ctx, item.ID)
}

// inTrash returns a *TrashedError if the session that a person named is in the trash, or nil.
func (h *Home) inTrash(ctx context.Context, given string) error {
	b, err := h.openBin(ctx)
	if err != nil {
		return nil
	}
	defer b.close()
	item, err := b.resolve(ctx, given)
	if err != nil {
		return nil
	}
	return &session.Error{
		Op: "find session", Name: given, Kind: session.ErrNotExist, Err: &TrashedError{item.Name}, Hint: "restore it",
	}
}
