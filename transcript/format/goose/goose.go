// Package goose reads the sessions of Goose: files of JSON lines, the database
// that came after them, and what `goose session export` prints.
package goose

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "goose", Title: "Goose", Detect: detect, Read: read, Places: places, Resume: resume}
}

func resume(id string) []string { return []string{"goose", "session", "--resume", "--session-id", id} }

// places are the directories of old and new versions: they moved from the configuration to the
// data. GOOSE_PATH_ROOT replaces both, and on Windows everything is below the maker's name.
func places(env transcript.Env) []transcript.Place {
	dirs := []string{
		filepath.Join(place.Data(env), "goose", "sessions"),
		filepath.Join(env.Dir("XDG_CONFIG_HOME", ".config"), "goose", "sessions"),
	}
	if root := env.Getenv("GOOSE_PATH_ROOT"); filepath.IsAbs(root) {
		dirs = []string{filepath.Join(root, "data", "sessions")}
	} else if env.GOOS == "windows" {
		dirs = []string{filepath.Join(env.Dir("APPDATA", "AppData/Roaming"), "Block", "goose", "data", "sessions")}
	}
	var found []transcript.Place
	for _, dir := range dirs {
		found = append(found, transcript.Place{Dir: dir, Match: func(path string) bool {
			return path == "sessions.db" || strings.HasSuffix(path, ".jsonl")
		}})
	}
	return found
}

func detect(f *transcript.File) bool {
	if sqlitefile.Is(f) {
		return sqlitefile.Has(f, "sessions", "messages.content_json")
	}
	head := bytes.TrimSpace(f.Head())
	if isExport(head) {
		return true
	}
	first, rest, more := bytes.Cut(head, []byte("\n"))
	header := loose.Try(first)
	if header.Has("type") {
		return false
	}
	if !more { // there is no message yet
		return header.Has("working_dir") && (header.Has("description") || header.Has("message_count") || len(header.Except("working_dir")) == 0)
	}
	// Anything may have a description; a message with its time comes only after Goose's.
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	seen := shape.Of(second)
	return (header.Has("working_dir") || header.Has("description")) && seen.Has("role") && seen.Has("created")
}

// isExport recognises an export: a session as an object, with its messages as its conversation.
func isExport(head []byte) bool {
	if !bytes.Contains(head, []byte(`"working_dir"`)) {
		return false // quicker than a close look
	}
	seen := shape.Of(head)
	return seen.Has("conversation") && seen.Has("working_dir")
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	switch {
	case sqlitefile.Is(f):
		return readDatabase(ctx, f, to)
	case isExport(bytes.TrimSpace(f.Head())):
		return readExport(f, to)
	}
	return readLines(ctx, f, to)
}

// readLines reads an old file: a header, then a message on each line. Without a header, the name
// of the file is the session's id.
func readLines(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	name := strings.TrimSuffix(filepath.Base(f.Path), ".jsonl")
	r := reader{to: to}
	return jsonl.Each(ctx, f, to, func(line jsonl.Object) error {
		if r.id == "" {
			if err := r.begin(conversation(line.Value, name)); err != nil {
				return err
			}
			if !line.Has("role") {
				to.Count("header", "session", 1)
				return nil
			}
		}
		return r.message(line.Value, line.Get("content"), line.Get("metadata"), line.Span)
	})
}

// readExport reads the output of "goose session export --format json".
func readExport(f *transcript.File, to transcript.Sink) error {
	whole, err := records.Whole(f)
	if err != nil {
		return err
	}
	v := whole.Value
	r := reader{to: to}
	if err := r.begin(conversation(v, filepath.Base(f.Path))); err != nil {
		return err
	}
	for m := range v.Get("conversation").Items() {
		if err := r.message(m, m.Get("content"), m.Get("metadata"), whole.Span); err != nil {
			return err
		}
	}
	return nil
}

// conversation returns what a header, a row or an export says about a session.
func conversation(v loose.Value, name string) transcript.Conversation {
	c := transcript.Conversation{
		ID: cmp.Or(v.Get("id").Text(), name), Title: cmp.Or(v.Get("name").Text(), v.Get("description").Text()), CWD: v.Get("working_dir").Text(),
		Created: v.Get("created_at").Time(time.UTC),
		Extra: v.Pick("session_type", "schedule_id", "accumulated_total_tokens", "accumulated_input_tokens", "accumulated_output_tokens",
			"accumulated_cost", "project_id"),
	}
	if c.Extra["session_type"] == "user" {
		delete(c.Extra, "session_type")
	}
	if parent := v.Get("parent_session_id").Text(); parent != "" {
		c.Parent, c.Relation = parent, session.RelationFork
		if v.Get("session_type").Text() == "sub_agent" {
			c.Relation = session.RelationSubagent
		}
	}
	return c
}

func readDatabase(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	return sqlitefile.Read(ctx, f, func(db *sqlitefile.DB) error {
		return walk.Each(db.Rows(ctx, "sessions", "", "", "created_at"), func(row loose.Value) error { return readSession(ctx, db, row, to) })
	})
}

// readSession reads a session of the database. Its rows are kept, because they have no place in
// a file to which an entry could refer. Times are whole seconds, so the row's id orders the
// messages of one second.
func readSession(ctx context.Context, db *sqlitefile.DB, row loose.Value, to transcript.Sink) error {
	r := reader{to: to, provider: row.Get("provider_name").Text(), model: sqlitefile.JSON(row.Get("model_config_json")).Get("model_name").Text()}
	if err := r.begin(conversation(row, "")); err != nil {
		return err
	}
	if _, err := to.Keep("session "+r.id, row); err != nil {
		return err
	}
	if err := r.ledger(ctx, db); err != nil {
		return err
	}
	return walk.Each(db.Rows(ctx, "messages", "session_id", r.id, "created_timestamp", "id"), func(m loose.Value) error {
		span, err := to.Keep("message "+m.Get("id").Name(), m)
		if err != nil {
			return err
		}
		return r.message(m, sqlitefile.JSON(m.Get("content_json")), sqlitefile.JSON(m.Get("metadata_json")), span)
	})
}
