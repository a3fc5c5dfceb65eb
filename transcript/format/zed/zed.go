// Package zed reads the agent threads of the editor Zed: documents in a database,
// most of them compressed.
package zed

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
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
	db, err := sqlitefile.Open(ctx, f)
	if err != nil {
		return err
	}
	return errors.Join(readThreads(ctx, db, to), db.Close())
}

func readThreads(ctx context.Context, db *sqlitefile.DB, to transcript.Sink) error {
	for row, err := range db.Rows(ctx, "threads", "", "", "updated_at") {
		if err != nil {
			return err
		}
		id := row.Get("id").Text()
		doc, err := document(row)
		if err != nil {
			to.Problem(transcript.Problem{Reason: fmt.Sprintf("thread %s: %v", id, err)})
			continue
		}
		if err := readThread(row, doc, to); err != nil {
			return err
		}
	}
	return nil
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
	c := transcript.Conversation{ID: row.Get("id").Text(), Title: cmp.Or(doc.Get("title").Text(), row.Get("summary").Text())}
	if c.ID == "" {
		c.ID = transcript.HashID(name, string(doc))
	}
	c.CWD = doc.Get("initial_project_snapshot", "worktree_snapshots").First().Get("worktree_path").Text()
	if parent := row.Get("parent_id").Text(); parent != "" {
		c.Parent, c.Relation = parent, session.RelationSubagent
	} else if parent := doc.Get("subagent_context", "parent_thread_id").Text(); parent != "" {
		c.Parent, c.Relation = parent, session.RelationSubagent
	}
	if total := doc.Get("cumulative_token_usage"); total.IsObject() {
		c.Extra = map[string]any{"cumulative_token_usage": total.Any()}
	}
	if err := to.Begin(c); err != nil {
		return err
	}
	span, err := to.Keep("thread "+c.ID, doc)
	if err != nil {
		return err
	}
	t := &thread{to: to, id: c.ID, doc: doc, from: []transcript.Span{span}}
	t.time = row.Get("created_at").Time(time.UTC)
	if t.time.IsZero() {
		t.time = row.Get("updated_at").Time(time.UTC)
	}
	return t.read()
}
