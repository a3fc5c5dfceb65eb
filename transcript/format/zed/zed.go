// Package zed reads the agent threads of the editor Zed: documents in a database,
// most of them compressed.
package zed

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

const name = "zed"

// Format returns Zed's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Zed", Detect: detect, Read: read, Places: places}
}

func detect(f *transcript.File) bool {
	return sqlitefile.Has(f, "threads.data_type", "threads.data")
}

func places(env transcript.Env) []transcript.Place {
	dir := filepath.Join(env.Dir("XDG_DATA_HOME", ".local/share"), "zed")
	switch env.GOOS {
	case "darwin":
		dir = filepath.Join(env.Home, "Library", "Application Support", "Zed")
	case "windows":
		dir = filepath.Join(env.Dir("LOCALAPPDATA", "AppData/Local"), "Zed")
	}
	return []transcript.Place{{Dir: filepath.Join(dir, "threads", "threads.db")}}
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	return sqlitefile.Read(ctx, f, func(db *sqlitefile.DB) error {
		return walk.Each(db.Rows(ctx, "threads", "", "", "updated_at"), func(row loose.Value) error {
			doc, err := document(row)
			if err != nil {
				to.Problem(transcript.Problem{Reason: fmt.Sprintf("thread %s: %v", row.Get("id").Text(), err)})
				return nil
			}
			return readThread(row, doc, to)
		})
	})
}

// maxThread is the maximum size of a thread after unpacking.
const maxThread = 256 << 20

// document returns a thread's document.
func document(row loose.Value) (loose.Value, error) {
	data := []byte(row.Get("data").Text())
	if raw, err := base64.StdEncoding.DecodeString(string(data)); err == nil {
		data = raw // a blob
	}
	if row.Get("data_type").Text() == "zstd" {
		var h zstd.Header
		err := h.Decode(data)
		if err != nil {
			return nil, err
		}
		if data, err = transcript.FileOf(row.Get("id").Text(), data).ReadAll(); err != nil {
			return nil, err
		}
		if len(data) > maxThread {
			return nil, fmt.Errorf("it unpacks to more than %d MiB: %w", maxThread>>20, session.ErrTooLarge)
		}
	}
	return loose.Parse(data)
}

func readThread(row, doc loose.Value, to transcript.Sink) error {
	c := transcript.Conversation{
		ID:    cmp.Or(row.Get("id").Text(), transcript.HashID(name, string(doc))),
		Title: cmp.Or(doc.Get("title").Text(), row.Get("summary").Text()),
		CWD:   doc.Get("initial_project_snapshot", "worktree_snapshots").First().Get("worktree_path").Text(),
	}
	parent := cmp.Or(row.Get("parent_id").Text(), doc.Get("subagent_context", "parent_thread_id").Text())
	records.ChildOf(&c, parent, session.RelationSubagent)
	if doc.Get("cumulative_token_usage").IsObject() {
		c.Extra = doc.Pick("cumulative_token_usage")
	}
	if err := to.Begin(c); err != nil {
		return err
	}
	span, err := to.Keep("thread "+c.ID, doc)
	if err != nil {
		return err
	}
	t := &thread{to: to, id: c.ID, doc: doc, from: []transcript.Span{span}}
	t.time = cmp.Or(row.Get("created_at").Time(time.UTC), row.Get("updated_at").Time(time.UTC))
	return t.read()
}
