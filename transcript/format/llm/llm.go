// Package llm reads the log of the llm command: one database, logs.db, with a row
// for each response.
package llm

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "llm", Title: "llm", Detect: detect, Read: read, Places: places}
}

func places(env transcript.Env) []transcript.Place {
	dir := filepath.Join(env.Dir("XDG_CONFIG_HOME", ".config"), "io.datasette.llm")
	switch env.GOOS {
	case "darwin":
		dir = filepath.Join(env.Home, "Library", "Application Support", "io.datasette.llm")
	case "windows":
		dir = filepath.Join(env.Dir("APPDATA", "AppData/Roaming"), "io.datasette.llm")
	}
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
	db, err := sqlitefile.Open(ctx, f)
	if err != nil {
		return err
	}
	return errors.Join(readLog(ctx, db, f.Path, to), db.Close())
}

func readLog(ctx context.Context, db *sqlitefile.DB, path string, to transcript.Sink) error {
	if err := keepNewer(ctx, db, path, to); err != nil {
		return err
	}
	for row, err := range db.Rows(ctx, "conversations", "", "", "id") {
		if err != nil {
			return err
		}
		r := reader{db: db, to: to, conversation: row}
		for response, err := range db.Rows(ctx, "responses", "conversation_id", row.Get("id").Text(), "datetime_utc", "id") {
			if err == nil {
				err = r.response(ctx, response)
			}
			if err != nil {
				return err
			}
		}
	}
	return readAlone(ctx, db, to)
}

// readAlone reads the responses without a conversation: each becomes one.
func readAlone(ctx context.Context, db *sqlitefile.DB, to transcript.Sink) error {
	for response, err := range db.Rows(ctx, "responses", "", "", "id") {
		if err != nil {
			return err
		}
		if response.Get("conversation_id").Text() != "" {
			continue
		}
		r := reader{db: db, to: to, conversation: response}
		if err := r.response(ctx, response); err != nil {
			return err
		}
	}
	return nil
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
		for row, err := range db.Rows(ctx, table, "", "") {
			if err == nil {
				_, err = to.Keep(table, row)
			}
			if err != nil {
				return err
			}
			to.Count("row of "+table, transcript.OnlyKept, 1)
		}
	}
	return nil
}

// at is when a response came.
func at(response loose.Value) time.Time { return response.Get("datetime_utc").Time(time.UTC) }
