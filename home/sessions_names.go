package home

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// LastSession means the most recently active conversation.
const LastSession = "last"

// Leaf means the last entry of the conversation on the live branch.
const Leaf = "leaf"

// NoEntry means that there is no message yet: see AppendRequest.At.
const NoEntry = "none"

// SessionRequest names a session.
type SessionRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
}

// ResolveResult is the session that a person means.
type ResolveResult struct {
	Session string `json:"session"`
}

// Resolve returns the id of the session that a person means. These are tried in order:
//
//   - an id, which needs no index;
//   - "last", the most recently active conversation, or "@1", "@2", …, the first, second, …
//     of the list;
//   - a key, such as "telegram:123456", under which package keyed or Create made it;
//   - a directory, ".", "../x", "~/x" or an absolute path: the most recently active
//     conversation about it or a directory below it;
//   - a short name (see Short), or the beginning of an id, if no other session has it;
//   - the key that an importer gave it;
//   - its id in the program that it was imported from or exported to, such as what claude
//     --resume takes, or the beginning of such an id;
//   - its title, ignoring case.
//
// So exact matches come before inexact ones, and what a user chose comes before what
// happens to match. Create refuses a key that could not be typed: one that means a
// place in the list, or is the id of another session. A session that has such a key
// anyway can be found by its id. Resolve returns session.ErrNotExist if nothing
// matches, and an *AmbiguousError if several sessions do.
func (s *Sessions) Resolve(ctx context.Context, r SessionRequest) (*ResolveResult, error) {
	return call(ctx, s.home, "sessions.resolve", r, s.resolve)
}

func (s *Sessions) resolve(ctx context.Context, r SessionRequest) (*ResolveResult, error) {
	name, err := s.home.resolveHere(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	return &ResolveResult{name}, nil
}

func (h *Home) resolve(ctx context.Context, given string) (string, error) {
	if given == "" {
		return "", errNoName
	}
	found, err := h.Sessions.Resolve(ctx, SessionRequest{Session: given})
	if err != nil {
		return "", err
	}
	return found.Session, nil
}

func (h *Home) resolveHere(ctx context.Context, given string) (string, error) {
	if given == "" {
		return "", errNoName
	}
	if name, err := h.exactID(ctx, given); name != "" || err != nil {
		return name, err
	}
	if place, ok := positionOf(given); ok {
		return h.byPosition(ctx, given, place)
	}
	if name, err := h.exactID(ctx, idOfKey(given)); name != "" || err != nil {
		return name, err
	}
	if isDirName(given) {
		return h.byDir(ctx, given)
	}
	found, err := h.byPrefix(ctx, given)
	if err == nil && len(found) == 0 {
		found, err = h.byDescription(ctx, given)
	}
	if err != nil {
		return "", err
	}
	if len(found) == 0 && strings.HasPrefix(given, "@") {
		return "", &session.Error{Op: "find session", Name: given, Kind: session.ErrNotExist, Hint: "@1 is the first session of the list, @2 the second"}
	}
	if len(found) == 0 {
		if err := h.inTrash(ctx, given); err != nil {
			return "", err
		}
		return "", &session.Error{Op: "find session", Name: given, Kind: session.ErrNotExist, Hint: h.nearSessions(ctx, given)}
	}
	return h.theOne(ctx, given, found)
}

// errNoName is the error of a request that names no session.
var errNoName = wrong("session", "the session's name is empty")

// exactID returns the given id if there is such a session, or else "".
func (h *Home) exactID(ctx context.Context, id string) (string, error) {
	if id == "" || store.CheckName(id) != nil {
		return "", nil
	}
	_, err := h.store.Stat(ctx, id)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, store.ErrNotExist):
		return "", nil
	}
	return id, nil // it exists; opening it reports what may be wrong
}

// checkKey refuses a key for a new session that would mean something else.
func (h *Home) checkKey(ctx context.Context, key string) error {
	if _, ok := positionOf(key); ok {
		return &session.Error{Op: "create", Name: key, Err: wrong("key", "a key like %s would be taken for a place in the list", key), Hint: "choose another key"}
	}
	id, err := h.exactID(ctx, key)
	if err == nil && id != "" && id != idOfKey(key) {
		err = &session.Error{Op: "create", Name: key, Err: wrong("key", "the key is the id of another session"), Hint: "choose another key"}
	}
	return err
}

// idOfKey returns the id that package keyed or Create gives to the session of a key, or
// "" if that cannot be a key.
func idOfKey(key string) string {
	id, err := session.KeyID(key)
	if err != nil {
		return ""
	}
	return id
}

// positionOf returns which place of the list is meant: the first for "last", the nth for "@n".
func positionOf(given string) (place int, ok bool) {
	if given == LastSession {
		return 1, true
	}
	number, ok := strings.CutPrefix(given, "@")
	if !ok {
		return 0, false
	}
	place, err := strconv.Atoi(number)
	return place, err == nil && place > 0
}

// byPosition returns the session at a place of the list.
func (h *Home) byPosition(ctx context.Context, given string, place int) (string, error) {
	ix, err := h.index(ctx)
	if err != nil {
		return "", err
	}
	list, _, err := ix.List(ctx, index.ListOptions{Desc: true, Fold: true, Limit: place})
	if err != nil {
		return "", err
	}
	if len(list) < place {
		return "", &session.Error{Op: "find session", Name: given, Kind: session.ErrNotExist, Err: invalidCount(len(list))}
	}
	return list[place-1].Name, nil
}

// isDirName reports whether a directory is meant.
func isDirName(given string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(given), "/")
	return first == "." || first == ".." || first == "~" || filepath.IsAbs(given)
}

// byDir returns the most recently active conversation about a directory.
func (h *Home) byDir(ctx context.Context, given string) (string, error) {
	if err := mustBeWhole(ctx, given); err != nil {
		return "", err
	}
	ix, err := h.index(ctx)
	if err != nil {
		return "", err
	}
	dir := index.Dir(given)
	list, _, err := ix.List(ctx, index.ListOptions{Desc: true, Fold: true, Limit: 1, CWD: dir})
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", &session.Error{Op: "find session", Name: given, Kind: session.ErrNotExist, Err: fmt.Errorf("no conversation is about %s", dir)}
	}
	return list[0].Name, nil
}

// mustBeWhole refuses a relative directory from a confined caller: what it means would reveal
// something about the machine.
func mustBeWhole(ctx context.Context, given string) error {
	if !isConfined(ctx) || filepath.IsAbs(given) {
		return nil
	}
	return &session.Error{Op: "find session", Name: given, Kind: session.ErrNotExist, Err: errors.New("on another machine, give the whole path of the directory")}
}

// IsMoving reports whether the next message may make a name mean another session:
// a place in the list, or a directory.
func IsMoving(given string) bool {
	_, isPlace := positionOf(given)
	return isPlace || isDirName(given)
}

func invalidCount(n int) error {
	switch n {
	case 0:
		return errors.New("there are no sessions")
	case 1:
		return errors.New("there is only one session")
	}
	return errors.New("there are only " + strconv.Itoa(n) + " sessions")
}

// maxPrefixed is how many sessions with the same beginning are looked up at most.
const maxPrefixed = 100

// byPrefix returns the sessions whose ids or short names begin with a text. The
// index has all of them, even one that was created a moment ago or cannot be read. Without
// an index we ask the store, which has to list everything.
func (h *Home) byPrefix(ctx context.Context, given string) ([]string, error) {
	if ix, err := h.index(ctx); err == nil {
		return ix.Names(ctx, given, maxPrefixed)
	}
	names, err := store.Names(ctx, h.store)
	return render.IDsNamed(given, names), err
}

// byDescription returns the sessions whose key, id in another program, or title is what was
// given.
func (h *Home) byDescription(ctx context.Context, given string) ([]string, error) {
	ix, err := h.index(ctx)
	if err != nil {
		return sessionsByKey(ctx, h.store, given) // slower, but it works without an index
	}
	keyed, _, err := ix.List(ctx, index.ListOptions{Key: given, Limit: -1, Links: true})
	if err != nil || len(keyed) > 0 {
		return namesOf(keyed), err
	}
	found, err := ix.Natives(ctx, given, maxPrefixed)
	if err != nil || len(found) > 0 {
		return found, err
	}
	if id := h.exportedAs(ctx, given); id != "" {
		return []string{id}, nil
	}
	titled, err := ix.FindTitle(ctx, given)
	return namesOf(titled), err
}

func namesOf(list []index.Session) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// exportedAs returns the session that an export wrote under an id in another program, or "".
func (h *Home) exportedAs(ctx context.Context, native string) string {
	ledger := transcript.LedgerOf(h.store)
	for _, format := range transcript.Formats() {
		if format.Write == nil {
			continue
		}
		if s := ledger.ExportOf(ctx, format.Name, native); s != nil {
			if name, err := h.exactID(ctx, s.Exported); err == nil && name != "" {
				return name
			}
		}
	}
	return ""
}

// sessionsByKey returns the sessions of a store that have a key, by their headers.
func sessionsByKey(ctx context.Context, st store.Store, key string) ([]string, error) {
	var found []string
	names, err := store.Names(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		log, err := st.Open(ctx, name)
		if err != nil {
			continue // it is gone, or cannot be read; a check reports that
		}
		for line, err := range log.Forward(ctx, 0) {
			var h session.Header
			if err == nil && json.Unmarshal(line.Data, &h) == nil && h.Key == key {
				found = append(found, name)
			}
			break
		}
		if err := log.Close(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// resolveConversation is resolve for an operation on a conversation. That is also known by the
// ids of its sessions that are missing, which count for more than the beginning of another id.
func (h *Home) resolveConversation(ctx context.Context, given string) (string, error) {
	name, err := h.resolve(ctx, given)
	_, isAmbiguous := errors.AsType[*AmbiguousError](err)
	switch {
	case errors.Is(err, session.ErrNotExist):
		if lost, lostErr := h.resolveLost(ctx, given); lostErr == nil {
			return lost, nil
		}
	case isAmbiguous, err == nil && name != given && strings.HasPrefix(name, given):
		if ix := h.builtIndex(ctx); ix != nil {
			if lost, lostErr := ix.Lost(ctx, given); lostErr == nil && slices.Contains(lost, given) {
				return given, nil
			}
		}
	}
	return name, err
}

// resolveLost returns the id of a missing session that a person named and whose
// conversation still exists.
func (h *Home) resolveLost(ctx context.Context, given string) (string, error) {
	ix, err := h.index(ctx)
	if err != nil {
		return "", err
	}
	found, err := ix.Lost(ctx, given)
	if err != nil {
		return "", err
	}
	if slices.Contains(found, given) {
		return given, nil
	}
	return h.theOne(ctx, given, found)
}

// ResolveEntry returns the id of the entry that a person means: by its id, its label,
// a short name from render.ShortEntryIDs, the beginning of an id or of a short name that no
// other entry has, or "leaf" or "" for the last entry of the conversation. That is
// "" before the first entry.
//
// Several entries may have the same label, because programs use labels to mark what
// needs a look. Such a label is an *AmbiguousError. A label that could never be typed
// is refused when it is set (see checkLabel); if a log has one anyway, the entry can be
// found by its id.
func ResolveEntry(s *session.Session, given string) (string, error) {
	if given == "" || given == Leaf {
		return conversationEnd(s, s.LeafID())
	}
	labels, err := s.Labels()
	if err != nil {
		return "", err
	}
	shape, err := s.Shape()
	if err != nil {
		return "", err
	}
	var found []string
	ids := shape.IDs()
	for _, id := range ids {
		if id == given {
			return given, nil
		}
		if labels[id] == given {
			found = append(found, id)
		}
	}
	if len(found) == 0 { // a user chose the label; an id only happens to begin like this
		found = render.EntriesNamed(given, ids)
	}
	return theOne("entry", given, found, func(some []string) ([]string, error) { return gists(shape, ids, some) })
}

// gists returns for each of some entries its short name and what it says.
func gists(shape *session.Shape, all, some []string) (texts []string, err error) {
	short := render.ShortEntryIDs(all)
	for e, err := range shape.Entries(shape.Numbers(some)) {
		if err != nil {
			return nil, err
		}
		texts = append(texts, named(short.Shown(e.ID), render.Gist(&e, maxMeant)))
	}
	return texts, nil
}

// checkLabel refuses a label that would mean something else: "leaf", "none", and the ids of
// entries.
func checkLabel(s *session.Session, label string) error {
	refused := func(why string) error {
		return &session.Error{Op: "label", Name: s.ID(), Err: wrong("label", "%s", why), Hint: "choose another label"}
	}
	switch label {
	case "":
		return nil
	case Leaf:
		return refused(fmt.Sprintf("%q means the last entry of the conversation", label))
	case NoEntry:
		return refused(fmt.Sprintf("%q means no entry", label))
	}
	has, err := s.Has(label)
	if err == nil && has {
		return refused(fmt.Sprintf("%q is the id of an entry", label))
	}
	return err
}

// conversationEnd returns the last entry of the conversation on the path to a leaf. The
// leaf may be after it: labels, tags and names are entries too, but a person who says
// "the last entry" does not mean those.
func conversationEnd(s *session.Session, id string) (string, error) {
	var unqueued []string
	for id != "" {
		entries, err := s.Peek(id)
		if err != nil {
			return "", err
		}
		e := &entries[0]
		_, isDraft := e.DraftText()
		_, isQueued := e.Queued()
		if isDraft || isQueued && !slices.Contains(unqueued, id) || !e.IsAside() {
			return id, nil
		}
		unqueued = append(unqueued, e.Unqueued()...)
		if e.ParentID == nil {
			return "", nil
		}
		id = *e.ParentID
	}
	return "", nil
}

// theOne returns the only candidate for a session, or an error that lists them.
func (h *Home) theOne(ctx context.Context, given string, found []string) (string, error) {
	return theOne("session", given, found, func(some []string) ([]string, error) {
		short, err := h.short(ctx, some...)
		if err != nil {
			return nil, err
		}
		var texts []string
		ix := h.builtIndex(ctx)
		for _, id := range some {
			title := ""
			if ix != nil {
				if s, err := ix.Conversation(ctx, id); err == nil { // one that cannot be read has no title
					title = s.Title
				}
			}
			texts = append(texts, named(short.Shown(id), title))
		}
		return texts, nil
	})
}

const (
	maxFound = 8  // how many candidates an error lists
	maxMeant = 40 // columns of what each is about
)

// named is a short name and a description of its entry or session.
func named(short, about string) string {
	if about = render.OneLine(about, maxMeant); about == "" {
		return short
	}
	return short + " (" + about + ")"
}

// theOne returns the only candidate, or an error that describes the first few.
func theOne(what, given string, found []string, describe func(some []string) ([]string, error)) (string, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &session.Error{Op: "find " + what, Name: given, Kind: session.ErrNotExist}
	}
	some, err := describe(found[:min(len(found), maxFound)])
	if err != nil {
		return "", err
	}
	return "", &AmbiguousError{What: what, Given: given, Found: some, More: len(found) - len(some)}
}

// SessionNamesRequest asks what people can type for sessions.
type SessionNamesRequest struct {
	Sessions []string `json:"sessions,omitempty"` // their ids
	All      bool     `json:"all,omitempty"`      // all sessions of the home; Sessions is not used
}

// Short returns the short names of sessions. According to the index, no other session of
// the home has them.
func (s *Sessions) Short(ctx context.Context, r SessionNamesRequest) (*NamesResult, error) {
	return call(ctx, s.home, "sessions.short", r, s.short)
}

func (s *Sessions) short(ctx context.Context, r SessionNamesRequest) (*NamesResult, error) {
	if r.All {
		names, err := store.Names(ctx, s.home.store)
		return &NamesResult{render.ShortIDs(names)}, err
	}
	all := r.Sessions
	if ix := s.home.builtIndex(ctx); ix != nil {
		rivals, err := ix.Rivals(ctx, all...)
		if err != nil {
			return nil, err
		}
		all = append(rivals, all...)
	}
	names, short := render.ShortIDs(all), make(render.Names, len(r.Sessions))
	for _, id := range r.Sessions {
		short[id] = names[id]
	}
	return &NamesResult{short}, nil
}

func (h *Home) short(ctx context.Context, ids ...string) (render.Names, error) {
	found, err := h.Sessions.Short(ctx, SessionNamesRequest{Sessions: ids})
	if err != nil {
		return nil, err
	}
	return found.Names, nil
}

// EntryNamesRequest asks what people can type for entries.
type EntryNamesRequest struct {
	// Sessions have the entries, as a person names them: see Resolve. The names distinguish
	// all of their entries. An entry that does not exist has none.
	Sessions []string `json:"sessions"`
	Link     bool     `json:"link,omitempty"`    // only the sessions that are named, not whole conversations
	Entries  []string `json:"entries,omitempty"` // the ids of those to name. Default: all of them
}

// NamesResult has short names: what people see, and can type.
type NamesResult struct {
	Names map[string]string `json:"names"` // by id
}

// Short returns the short names of entries. It reads the shape of whole sessions, so call it
// only to show a result to a person.
func (e *Entries) Short(ctx context.Context, r EntryNamesRequest) (*NamesResult, error) {
	return call(ctx, e.home, "entries.short", r, e.short)
}

func (e *Entries) short(ctx context.Context, r EntryNamesRequest) (*NamesResult, error) {
	var all []string
	for _, given := range r.Sessions {
		c, err := e.home.openFor(ctx, OpenRequest{Session: given, Link: r.Link})
		if errors.Is(err, session.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		shape, err := c.Shape()
		if err == nil {
			all = append(all, shape.IDs()...)
		}
		if err := errors.Join(err, c.Close()); err != nil {
			return nil, err
		}
	}
	names := render.ShortEntryIDs(all)
	if len(r.Entries) > 0 {
		maps.DeleteFunc(names, func(id, _ string) bool { return !slices.Contains(r.Entries, id) })
	}
	return &NamesResult{names}, nil
}
