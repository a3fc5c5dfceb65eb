package home

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/session"
)

// Access is what a caller may do: Write includes Read, and Admin includes both.
type Access int

// The degrees of access.
const (
	Read  Access = iota + 1 // look at sessions
	Write                   // change sessions, and move them to the trash
	Admin                   // look after the home as a whole, and delete for good
)

var accessNames = []string{Read: "read", Write: "write", Admin: "admin"}

// String returns read, write or admin.
func (a Access) String() string {
	if a < Read || a > Admin {
		return fmt.Sprintf("Access(%d)", int(a))
	}
	return accessNames[a]
}

// MarshalText implements encoding.TextMarshaler.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Access) UnmarshalText(text []byte) error {
	for access := Read; access <= Admin; access++ {
		if access.String() == string(text) {
			*a = access
			return nil
		}
	}
	return session.Invalidf("access %q is not read, write or admin", text)
}

// Operation describes an operation of a home as data, for servers, clients and tests. It is
// one of the methods of the groups.
type Operation struct {
	Name   string // the group and the method: sessions.list
	Doc    string // what it does, in a sentence
	Access Access // what the caller must be allowed
	// Route is its place in HTTP: a method and a path, whose {names} are fields of the
	// request. "" means that it only makes sense on the caller's own machine, because it is
	// about files there.
	Route string
	// Request and Result are structs. Event is the struct that the operation sends before it
	// is done, or nil if it sends nothing.
	Request, Result, Event reflect.Type
	// Here has the JSON names of the fields of the request that are about files of the
	// machine on which the operation runs: those with the tag here. See Receive.
	Here []string
	// Reads says that the operation reads what the caller sends after the request.
	Reads bool

	run func(ctx context.Context, h *Home, request any, in io.Reader, send func(event any) error) (any, error)
}

// Call performs the operation. request is a pointer to a Request; the result, if it is not
// nil, is one to a Result, and comes with an error if something was done until then. in is
// for an operation that Reads. send, which may be nil, gets each Event.
func (o *Operation) Call(ctx context.Context, h *Home, request any, in io.Reader, send func(event any) error) (any, error) {
	return o.run(ctx, h, request, in, send)
}

// Receive prepares a request that came from another machine: it refuses one that names files
// here.
func (o *Operation) Receive(request any) error {
	if len(o.Here) == 0 {
		return nil
	}
	v := reflect.ValueOf(request).Elem()
	for _, f := range reflect.VisibleFields(o.Request) {
		there, here := f.Tag.Lookup("here")
		if !here {
			continue
		}
		field := v.FieldByIndex(f.Index)
		if !field.IsZero() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return wrong(name, "{"+name+"} is about files of the machine with the home; it cannot be given from elsewhere")
		}
		switch {
		case there == "":
		case field.Kind() == reflect.Slice:
			field.Set(reflect.ValueOf([]string{there}))
		default:
			field.SetString(there)
		}
	}
	return nil
}

// Operations lists every operation. The list is shared: do not change it.
func Operations() []*Operation {
	operationsOnce.Do(func() { operations = listOperations() })
	return operations
}

// OperationNamed returns the operation with a name, or nil.
func OperationNamed(name string) *Operation {
	for _, o := range Operations() {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// The list is made when it is first needed, because the methods in it use it.
var (
	operationsOnce sync.Once
	operations     []*Operation
)

func listOperations() []*Operation {
	sessions := func(h *Home) *Sessions { return h.Sessions }
	entries := func(h *Home) *Entries { return h.Entries }
	search := func(h *Home) *Search { return h.Search }
	transfer := func(h *Home) *Transfer { return h.Transfer }
	upkeep := func(h *Home) *Upkeep { return h.Upkeep }
	turns := func(h *Home) *Turns { return h.Turns }
	return []*Operation{
		unary(Read, "sessions.list", "GET /v1/sessions", "List conversations, page by page.", sessions, (*Sessions).List),
		unary(Read, "sessions.shelf", "GET /v1/shelf", "List conversations in groups, for somebody who scrolls through them.", sessions, (*Sessions).Shelf),
		unary(Write, "sessions.create", "POST /v1/sessions", "Create a session.", sessions, (*Sessions).Create),
		unary(Read, "sessions.get", "GET /v1/sessions/{session}", "Describe a conversation.", sessions, (*Sessions).Get),
		unary(Read, "sessions.card", "GET /v1/sessions/{session}/card", "Say what is needed to take up a conversation again.", sessions, (*Sessions).Card),
		unary(Write, "sessions.remove", "DELETE /v1/sessions/{session}", "Move a conversation to the trash.", sessions, (*Sessions).Remove),
		unary(Read, "sessions.resolve", "GET /v1/sessions/{session}/name", "Find the session that a name means.", sessions, (*Sessions).Resolve),
		unary(Write, "sessions.fork", "POST /v1/sessions/{session}/fork", "Copy a conversation into a new session.", sessions, (*Sessions).Fork),
		unary(Write, "sessions.rename", "PUT /v1/sessions/{session}/name", "Give a conversation a name.", sessions, (*Sessions).Rename),
		unary(Write, "sessions.pin", "PUT /v1/sessions/{session}/pin", "Pin a conversation, or unpin it.", sessions, (*Sessions).Pin),
		unary(Write, "sessions.tag", "POST /v1/sessions/{session}/tags", "Add and remove tags.", sessions, (*Sessions).Tag),
		unary(Write, "sessions.rate", "PUT /v1/sessions/{session}/rating", "Rate a conversation.", sessions, (*Sessions).Rate),
		unary(Read, "sessions.suggest_tags", "GET /v1/sessions/{session}/tags/suggested", "Suggest tags for a conversation.", sessions, (*Sessions).SuggestTags),
		unary(Write, "sessions.auto_tag", "POST /v1/tags/auto", "Tag conversations by what they are about.", sessions, (*Sessions).AutoTag),
		none(Read, "sessions.tags", "GET /v1/tags", "List all tags.", sessions, (*Sessions).Tags),
		unary(Write, "sessions.archive", "POST /v1/archive", "Compress conversations.", sessions, (*Sessions).Archive),
		unary(Write, "sessions.unarchive", "POST /v1/sessions/{session}/unarchive", "Take a conversation out of the archive.", sessions, (*Sessions).Unarchive),
		none(Read, "sessions.overview", "GET /v1/overview", "Describe the home as a whole.", sessions, (*Sessions).Overview),
		unary(Read, "sessions.suggest", "GET /v1/suggest/sessions", "Suggest the sessions that are most likely meant.", sessions, (*Sessions).Suggest),
		unary(Read, "sessions.filter_values", "GET /v1/suggest/filters/{filter}", "List the values of a filter.", sessions, (*Sessions).FilterValues),
		unary(Read, "sessions.short", "POST /v1/names/sessions", "Shorten the ids of sessions.", sessions, (*Sessions).Short),
		unary(Read, "sessions.distinct", "POST /v1/names/distinct", "Find out which names mean the same conversation.", sessions, (*Sessions).Distinct),

		stream(Read, "entries.path", "GET /v1/sessions/{session}/entries", "Read the entries from the root to a leaf, or all of them.", entries, (*Entries).Path),
		unary(Write, "entries.append", "POST /v1/sessions/{session}/entries", "Append an entry.", entries, (*Entries).Append),
		unary(Write, "entries.note", "POST /v1/sessions/{session}/notes", "Leave a note that is not the user's message.", entries, (*Entries).Note),
		unary(Read, "entries.raw", "GET /v1/sessions/{session}/entries/{entry}/raw", "Return the bytes from which an entry was imported.", entries, (*Entries).Raw),
		unary(Write, "entries.label", "PUT /v1/sessions/{session}/entries/{entry}/label", "Label an entry.", entries, (*Entries).Label),
		unary(Read, "entries.context", "POST /v1/sessions/{session}/context", "Build what would be sent to a model.", entries, (*Entries).Context),
		unary(Read, "entries.why", "GET /v1/sessions/{session}/requests", "Explain the last requests that agents sent.", entries, (*Entries).Why),
		unary(Read, "entries.picture", "GET /v1/sessions/{session}/picture", "Draw how a conversation went, request by request.", entries, (*Entries).Picture),
		stream(Read, "entries.tree", "GET /v1/sessions/{session}/tree", "Read every entry with its place in the tree.", entries, (*Entries).Tree),
		unary(Read, "entries.rows", "GET /v1/sessions/{session}/rows", "Read a window of the path to a leaf, as people see it.", entries, (*Entries).Rows),
		unary(Read, "entries.seek", "GET /v1/sessions/{session}/seek", "Find the next row that has a text or is of a kind.", entries, (*Entries).Seek),
		unary(Read, "entries.outline", "GET /v1/sessions/{session}/outline", "List the places of a path to which one jumps: prompts, compactions and labels.", entries, (*Entries).Outline),
		unary(Read, "entries.map", "GET /v1/sessions/{session}/map", "Read a window of the tree as it is drawn.", entries, (*Entries).Map),
		unary(Write, "entries.branch", "POST /v1/sessions/{session}/branch", "Go back to an entry and begin a branch there.", entries, (*Entries).Branch),
		unary(Write, "entries.merge", "POST /v1/sessions/{session}/merge", "Bring what was found out on one branch into another.", entries, (*Entries).Merge),
		unary(Write, "entries.revert", "POST /v1/sessions/{session}/revert", "Take back what an entry does to the context.", entries, (*Entries).Revert),
		unary(Write, "entries.compact", "POST /v1/sessions/{session}/compact", "Replace the beginning of a conversation with a summary.", entries, (*Entries).Compact),
		unary(Read, "entries.compare", "GET /v1/sessions/{session}/compare", "Compare two branches.", entries, (*Entries).Compare),
		unary(Read, "entries.images", "GET /v1/images", "List the images of a conversation, or find images.", entries, (*Entries).Images),
		unary(Read, "entries.image", "GET /v1/sessions/{session}/images/{image}", "Return an image.", entries, (*Entries).Image),
		unary(Read, "entries.blob", "GET /v1/sessions/{session}/blobs/{ref}", "Return content that is kept apart from its entry.", entries, (*Entries).Blob),
		stream(Read, "entries.write_images", "", "Write the images of a conversation to files.", entries, (*Entries).WriteImages),
		unary(Read, "entries.suggest", "GET /v1/sessions/{session}/suggest", "Suggest the entries that are most likely meant.", entries, (*Entries).Suggest),
		unary(Read, "entries.short", "POST /v1/names/entries", "Shorten the ids of entries.", entries, (*Entries).Short),
		stream(Read, "entries.follow", "GET /v1/follow", "Watch what is appended to one session, or to all.", entries, (*Entries).Follow),

		unary(Read, "search.find", "GET /v1/search", "Search what was said.", search, (*Search).Find),
		unary(Read, "search.stats", "GET /v1/stats", "Count sessions, messages, tokens and cost.", search, (*Search).Stats),

		stream(Read, "transfer.export", "GET /v1/sessions/{session}/export", "Write a conversation in a format.", transfer, (*Transfer).Export),
		stream(Read, "transfer.export_all", "", "Write several conversations to files.", transfer, (*Transfer).ExportAll),
		reader(Write, "transfer.import", "POST /v1/import", "Import a transcript of another program.", transfer, (*Transfer).Import),
		none(Read, "transfer.programs", "", "List the programs whose sessions can be imported.", transfer, (*Transfer).Programs),
		unary(Write, "transfer.resume", "", "Write what a program needs to continue a conversation.", transfer, (*Transfer).Resume),

		unary(Read, "upkeep.trash", "GET /v1/trash", "List the trash.", upkeep, (*Upkeep).Trash),
		unary(Write, "upkeep.restore", "POST /v1/trash/{session}/restore", "Bring a conversation back from the trash.", upkeep, (*Upkeep).Restore),
		unary(Read, "upkeep.distinct_removals", "POST /v1/names/removals", "Find out which names mean the same removal.", upkeep, (*Upkeep).DistinctRemovals),
		unary(Admin, "upkeep.empty_trash", "POST /v1/trash/empty", "Delete what is in the trash for good.", upkeep, (*Upkeep).EmptyTrash),
		stream(Admin, "upkeep.check", "POST /v1/upkeep/check", "Check sessions.", upkeep, (*Upkeep).Check),
		unary(Admin, "upkeep.repair", "POST /v1/sessions/{session}/repair", "Repair a session.", upkeep, (*Upkeep).Repair),
		unary(Admin, "upkeep.redact", "POST /v1/upkeep/redact", "Find secrets, and take them out.", upkeep, (*Upkeep).Redact),
		unary(Admin, "upkeep.retain", "POST /v1/upkeep/retain", "Move old sessions to the trash.", upkeep, (*Upkeep).Retain),
		unary(Admin, "upkeep.tidy", "POST /v1/upkeep/tidy", "Delete what no session needs.", upkeep, (*Upkeep).Tidy),
		none(Admin, "upkeep.index_status", "GET /v1/upkeep/index", "Describe the index.", upkeep, (*Upkeep).IndexStatus),
		none(Admin, "upkeep.rebuild_index", "POST /v1/upkeep/index", "Build the index again.", upkeep, (*Upkeep).RebuildIndex),
		none(Admin, "upkeep.quarantine", "GET /v1/upkeep/quarantine", "List what was set aside by repairs.", upkeep, (*Upkeep).Quarantine),
		unary(Admin, "upkeep.readmit", "POST /v1/upkeep/quarantine/{id}/readmit", "Bring back what was set aside.", upkeep, (*Upkeep).Readmit),
		none(Admin, "upkeep.unfinished", "GET /v1/upkeep/unfinished", "List redactions that were interrupted.", upkeep, (*Upkeep).Unfinished),
		unary(Admin, "upkeep.backup", "", "Make a backup of the home.", upkeep, (*Upkeep).Backup),

		stream(Write, "turns.prompt", "POST /v1/turns", "Say something in a conversation, and let the model answer.", turns, (*Turns).Prompt),
		stream(Write, "turns.resume", "POST /v1/sessions/{session}/turn/resume", "Go on with a turn that ended in the middle, or answer it again.", turns, (*Turns).Resume),
		stream(Read, "turns.watch", "GET /v1/sessions/{session}/turn/events", "Listen to the turn of a conversation.", turns, (*Turns).Watch),
		unary(Write, "turns.approve", "POST /v1/sessions/{session}/turn/approve", "Decide about a call that needs approval.", turns, (*Turns).Approve),
		unary(Write, "turns.steer", "POST /v1/sessions/{session}/turn/steer", "Say something to the model while it works.", turns, (*Turns).Steer),
		unary(Write, "turns.take_back", "POST /v1/sessions/{session}/turn/take_back", "Take back what the model has not heard yet.", turns, (*Turns).TakeBack),
		unary(Write, "turns.cancel", "POST /v1/sessions/{session}/turn/cancel", "Stop the turn of a conversation.", turns, (*Turns).Cancel),
		unary(Read, "turns.status", "GET /v1/sessions/{session}/turn", "Describe the state of a conversation: its turn, and what waits.", turns, (*Turns).Status),
		none(Read, "turns.running", "GET /v1/turns", "List the turns that run.", turns, (*Turns).Running),
	}
}

// The rows of the table, by the shape of the method: see the package's comment.

func none[G, T any](a Access, name, route, doc string, in func(*Home) *G, method func(*G, context.Context) (*T, error)) *Operation {
	o := row[struct{}, T](a, name, route, doc)
	o.run = func(ctx context.Context, h *Home, _ any, _ io.Reader, _ func(any) error) (any, error) {
		return orNil(method(in(h), ctx))
	}
	return o
}

func unary[G, R, T any](a Access, name, route, doc string, in func(*Home) *G, method func(*G, context.Context, R) (*T, error)) *Operation {
	o := row[R, T](a, name, route, doc)
	o.run = func(ctx context.Context, h *Home, request any, _ io.Reader, _ func(any) error) (any, error) {
		return orNil(method(in(h), ctx, *request.(*R)))
	}
	return o
}

func stream[G, R, E, T any](a Access, name, route, doc string, in func(*Home) *G, method func(*G, context.Context, R, func(E) error) (*T, error)) *Operation {
	o := row[R, T](a, name, route, doc)
	o.Event = reflect.TypeFor[E]()
	o.run = func(ctx context.Context, h *Home, request any, _ io.Reader, send func(any) error) (any, error) {
		return orNil(method(in(h), ctx, *request.(*R), typed[E](send)))
	}
	return o
}

func reader[G, R, E, T any](a Access, name, route, doc string, in func(*Home) *G, method func(*G, context.Context, R, io.Reader, func(E) error) (*T, error)) *Operation {
	o := row[R, T](a, name, route, doc)
	o.Event, o.Reads = reflect.TypeFor[E](), true
	o.run = func(ctx context.Context, h *Home, request any, from io.Reader, send func(any) error) (any, error) {
		return orNil(method(in(h), ctx, *request.(*R), from, typed[E](send)))
	}
	return o
}

func row[R, T any](a Access, name, route, doc string) *Operation {
	o := &Operation{Name: name, Doc: doc, Access: a, Route: route, Request: reflect.TypeFor[R](), Result: reflect.TypeFor[T]()}
	for _, f := range reflect.VisibleFields(o.Request) {
		if _, here := f.Tag.Lookup("here"); here {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			o.Here = append(o.Here, name)
		}
	}
	return o
}

// orNil keeps a nil pointer from becoming an any that is not nil.
func orNil[T any](result *T, err error) (any, error) {
	if result == nil {
		return nil, err
	}
	return result, err
}

func typed[E any](send func(any) error) func(E) error {
	if send == nil {
		return nil
	}
	return func(event E) error { return send(event) }
}
