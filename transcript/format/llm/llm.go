// Package llm reads the log of the llm command: one database, logs.db, with a row
// for each response.
package llm

import (
	"context"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "llm", Title: "llm", Detect: detect, Read: read, Places: places}
}

func places(env transcript.Env) []transcript.Place {
	dir := filepath.Join(place.Config(env), "io.datasette.llm")
	if own := env.Getenv("LLM_USER_PATH"); filepath.IsAbs(own) {
		dir = own
	}
	return []transcript.Place{{Dir: filepath.Join(dir, "logs.db")}}
}

// newer are the tables of the next version of the store. Their bytes are
// kept.
var newer = []string{"threads", "turns"}

func detect(f *transcript.File) bool {
	return sqlitefile.Has(f, "responses.prompt", "conversations") || sqlitefile.Has(f, newer...)
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	return sqlitefile.Read(ctx, f, func(db *sqlitefile.DB) error { return readLog(ctx, db, f.Path, to) })
}

func readLog(ctx context.Context, db *sqlitefile.DB, path string, to transcript.Sink) error {
	if err := keepNewer(ctx, db, path, to); err != nil {
		return err
	}
	err := walk.Each(db.Rows(ctx, "conversations", "", "", "id"), func(row loose.Value) error {
		r := reader{db: db, to: to, conversation: row}
		responses := db.Rows(ctx, "responses", "conversation_id", row.Get("id").Text(), "datetime_utc", "id")
		return walk.Each(responses, func(response loose.Value) error { return r.response(ctx, response) })
	})
	if err != nil {
		return err
	}
	// A response without a conversation becomes one.
	return walk.Each(db.Rows(ctx, "responses", "", "", "id"), func(response loose.Value) error {
		if response.Get("conversation_id").Text() != "" {
			return nil
		}
		r := reader{db: db, to: to, conversation: response}
		return r.response(ctx, response)
	})
}

// keepNewer keeps the rows of the newer store as they are.
func keepNewer(ctx context.Context, db *sqlitefile.DB, path string, to transcript.Sink) error {
	if !db.HasTable(newer[0]) || !db.HasTable(newer[1]) {
		return nil
	}
	if err := to.Begin(transcript.Conversation{ID: transcript.HashID("llm", path), Title: "llm: the newer store, as it is"}); err != nil {
		return err
	}
	for _, table := range append(newer, "messages", "parts") {
		err := walk.Each(db.Rows(ctx, table, "", ""), func(row loose.Value) error {
			to.Count("row of "+table, transcript.OnlyKept, 1)
			_, err := to.Keep(table, row)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// at is when a response came.
func at(response loose.Value) time.Time { return response.Get("datetime_utc").Time(time.UTC) }
