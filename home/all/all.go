// Package all gives a program everything that homes can do. Import it for that alone:
//
//	import _ "github.com/coppice-dev/coppice/home/all"
//
// It links SQLite, which keeps the index; PostgreSQL and buckets; the readers and writers of
// other agents' files; exact counters of tokens; pages; and MCP. See home.Parts.
package all

import (
	"context"
	"io"

	"github.com/coppice-dev/coppice/agent/mcp"
	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/local" // registers directories and memory
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/html"
	"github.com/coppice-dev/coppice/render/markdown"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs/notify"
	_ "github.com/coppice-dev/coppice/transcript/all" // registers the formats
	"github.com/coppice-dev/coppice/window/tiktoken"
)

func init() {
	home.Register(home.Parts{
		Index:   &home.IndexFiles{Open: openIndex, Delete: sqlite.Delete, Verify: sqlite.Verify},
		Stores:  []home.StoreKind{postgres},
		Counter: tiktoken.For, CounterNamed: tiktoken.Named,
		HTML: writeHTML, Markdown: markdown.Write,
		Notices: notify.New(),
		Connect: connect,
	})
}

func openIndex(ctx context.Context, path string) (room.Room, error) {
	r, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return nil, err // not a room that is nil inside
	}
	return r, nil
}

func writeHTML(ctx context.Context, w io.Writer, c render.Conversation, leaf string, look func(*session.Entry)) error {
	return html.Write(ctx, w, c, &html.Options{Leaf: leaf, Look: look})
}

func connect(ctx context.Context, s home.ToolServer) (home.Tools, error) {
	server, err := mcp.Connect(ctx, mcp.Options{
		Name: s.Name, Command: s.Command, Dir: s.Dir, Env: s.Env, URL: s.URL, Header: s.Header, Hide: s.Hide,
	})
	if err != nil {
		return nil, err
	}
	return server, nil
}
