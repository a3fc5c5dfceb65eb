package home

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/window"
)

// Parts are what a home can do with code that is large and that not every program needs. A
// program has those that it registers; whatever needs another part says so in its error.
// Package home/all registers all of them, and the formats of package transcript:
//
//	import _ "github.com/coppice-dev/coppice/home/all"
//
// Package home/local only registers directories and memory, which need no other module.
type Parts struct {
	// Index keeps the index of a home in a file.
	Index *IndexFiles
	// Stores are the kinds of stores that a home can be in.
	Stores []StoreKind
	// Counter returns the exact counter of a model, or nil if there is none.
	Counter func(provider, model string) window.Counter
	// CounterNamed returns the counter of a vocabulary.
	CounterNamed func(name string) (window.Counter, error)
	// HTML writes a conversation as a page that shows the path to leaf first. It calls look,
	// unless that is nil, with every entry that it shows.
	HTML func(ctx context.Context, w io.Writer, c render.Conversation, leaf string, look func(*session.Entry)) error
	// Markdown writes the path to leaf.
	Markdown func(ctx context.Context, w io.Writer, c render.Conversation, leaf string) error
	// Notices tells of changes in directories, so that nobody has to look for them.
	Notices vfs.Notifier
	// Connect starts an MCP server, or connects with it.
	Connect func(ctx context.Context, s ToolServer) (Tools, error)
}

// IndexFiles opens and deletes the files of indexes.
type IndexFiles struct {
	Open   func(ctx context.Context, path string) (room.Room, error)
	Delete func(ctx context.Context, path string) (had bool, err error)
	Verify func(ctx context.Context, path string) error
}

// StoreKind is a kind of store that a home can be in.
type StoreKind struct {
	// Schemes are the schemes of its URLs. The kind with the scheme file is that of directories,
	// and the kind with mem is that of homes in memory.
	Schemes []string
	// Open opens a store. where is its directory or its URL.
	Open func(ctx context.Context, where string, o StoreOptions) (store.Store, error)
	// Waits says that appends wait for the disk, as StoreOptions.Sync says. An import opens such a
	// store a second time, without waiting.
	Waits bool
	// Room, if it is not nil, opens the room that a store has for an index. It returns nil if
	// that was made by another version of the program, or not at all.
	Room func(ctx context.Context, st store.Store) (room.Room, error)
	// Migrate, if it is not nil, is for the function Migrate.
	Migrate func(ctx context.Context, url, blobs string) (*MigrateResult, error)
}

// StoreOptions is what a home wants of its store. The zero value means the defaults of the kind.
type StoreOptions struct {
	Limits store.Limits
	// MakeRoom, if it is not nil, is called before a log is refused because there are as many as
	// there may be. It makes room for n of them.
	MakeRoom func(ctx context.Context, st store.Store, n int) error
	// Sync is how long after an append it is made durable: 0 is before the append returns, and
	// anything negative leaves it to the operating system.
	Sync time.Duration
	// Notices tells of changes in directories. Nil means that somebody has to look for them.
	Notices vfs.Notifier
	// OnLoss, if it is not nil, is called when a log came back from an archive without a part.
	OnLoss func(ctx context.Context, name string)
}

// ToolServer is an MCP server, and how it is reached: by a command or an address. The fields are
// those of mcp.Options.
type ToolServer struct {
	Name    string
	Command []string
	Dir     string
	Env     []string
	URL     string
	Header  http.Header
	Hide    *strings.Replacer
}

// Tools are the tools of a server.
type Tools interface {
	Tools() []agent.Tool
	Close() error
}

// parts are the parts that the program has. What a program can do is decided by what it
// imports, so they are global, as the drivers of database/sql are.
var parts Parts

// Register adds parts to those that the program has. It must be called by an init function. A
// part that is registered twice is the latter.
func Register(p Parts) {
	if p.Index != nil {
		parts.Index = p.Index
	}
	parts.Stores = append(slices.Clone(p.Stores), parts.Stores...)
	if p.Counter != nil {
		parts.Counter, parts.CounterNamed = p.Counter, p.CounterNamed
	}
	if p.HTML != nil {
		parts.HTML = p.HTML
	}
	if p.Markdown != nil {
		parts.Markdown = p.Markdown
	}
	if p.Notices != nil {
		parts.Notices = p.Notices
	}
	if p.Connect != nil {
		parts.Connect = p.Connect
	}
}

// missingPart is the error of an operation that needs a part that the program lacks.
func missingPart(op, what string) error {
	return &session.Error{
		Op: op, Err: session.Invalidf("this program was built without %s", what),
		Hint: `its source must import _ "github.com/coppice-dev/coppice/home/all"`,
	}
}

// kindOf returns the kind of stores whose URLs have a scheme, or nil.
func kindOf(scheme string) *StoreKind {
	at := slices.IndexFunc(parts.Stores, func(k StoreKind) bool { return slices.Contains(k.Schemes, scheme) })
	if at < 0 {
		return nil
	}
	return &parts.Stores[at]
}

// indexFiles returns what opens indexes.
func indexFiles() (*IndexFiles, error) {
	if parts.Index == nil {
		return nil, missingPart("open index", "an index")
	}
	return parts.Index, nil
}
