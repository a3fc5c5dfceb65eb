// Package opencode reads the sessions of opencode: the tree of JSON files of its
// early versions, the database of the later ones, and what `opencode export`
// prints. It writes what `opencode import` reads.
//
// In all of them a session is a list of messages, and a message a list of parts.
// A tool's call and its result are one part there, and two messages here.
package opencode

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "opencode", Title: "opencode", Detect: detect, Read: read, Places: places, Resume: resume, Load: load, Write: write}
}

func resume(id string) []string { return []string{"opencode", "--session", id} }

func places(env transcript.Env) []transcript.Place {
	dir := filepath.Join(place.Data(env), "opencode")
	found := []transcript.Place{
		{Dir: dir, Match: func(p string) bool {
			return !strings.Contains(p, "/") && strings.HasPrefix(p, "opencode") && strings.HasSuffix(p, ".db")
		}},
		{Dir: filepath.Join(dir, "storage", "session"), Match: func(p string) bool { return strings.HasSuffix(p, ".json") }},
		{Dir: filepath.Join(dir, "project"), Match: func(p string) bool {
			return strings.Contains(p, "/storage/session/info/") && strings.HasSuffix(p, ".json")
		}},
	}
	if db := env.Getenv("OPENCODE_DB"); filepath.IsAbs(db) {
		found = append(found, transcript.Place{Dir: db})
	}
	return found
}

func detect(f *transcript.File) bool {
	if sqlitefile.Is(f) {
		return sqlitefile.Has(f, "session", "message.data", "part.data")
	}
	head := bytes.TrimSpace(f.Head())
	return isExport(head) || isSession(f, head) || isPiece(f, head)
}

// isPiece recognises a file of the tree that is a message or a part of one. It is read with
// its session.
func isPiece(f *transcript.File, head []byte) bool {
	dirs := strings.Split(filepath.ToSlash(filepath.Dir(f.Path)), "/")
	if !slices.Contains(dirs, "message") && !slices.Contains(dirs, "part") {
		return false
	}
	v := loose.Try(head)
	return v.Has("id") && (v.Has("sessionID") || v.Has("messageID") || v.Has("type", "time"))
}

func isExport(head []byte) bool {
	if !bytes.Contains(head, []byte(`"info"`)) {
		return false // quicker than a close look
	}
	seen := shape.Of(head)
	return seen.Has("info") && seen.Has("messages[].parts", "info.projectID")
}

// isSession recognises a session's file in the tree by its path and content.
func isSession(f *transcript.File, head []byte) bool {
	v := loose.Try(head)
	return v.Has("id", "time") && v.Get("title").IsString() && storage(f) != nil
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	if sqlitefile.Is(f) {
		return sqlitefile.Read(ctx, f, func(db *sqlitefile.DB) error {
			return walk.Each(db.Rows(ctx, "session", "", "", "time_created"), func(row loose.Value) error { return readSession(ctx, db, row, to) })
		})
	}
	v, err := records.Whole(f)
	if err != nil {
		return err
	}
	switch {
	case v.Get("info").IsObject():
		return readExport(v, to)
	case isPiece(f, v.Value):
		to.Count("piece of a session", "left to the session's own file", 1)
		return nil
	}
	return readTree(f, v.Value, to)
}

func readExport(v records.Record, to transcript.Sink) error {
	r := reader{to: to, info: v.Get("info")}
	if err := r.begin(); err != nil {
		return err
	}
	for m := range v.Get("messages").Items() {
		if err := r.message(m.Get("info"), slices.Collect(m.Get("parts").Items()), v.Span); err != nil {
			return err
		}
	}
	return r.end()
}

func readSession(ctx context.Context, db *sqlitefile.DB, row loose.Value, to transcript.Sink) error {
	r := reader{to: to, info: fromRow(row)}
	if err := r.begin(); err != nil {
		return err
	}
	id := row.Get("id").Text()
	if _, err := to.Keep("session "+id, row); err != nil {
		return err
	}
	err := walk.Each(db.Rows(ctx, "message", "session_id", id, "time_created", "id"), func(m loose.Value) error {
		r.rows++
		raw := [][]byte{m}
		var parts []loose.Value
		err := walk.Each(db.Rows(ctx, "part", "message_id", m.Get("id").Text(), "id"), func(part loose.Value) error {
			raw = append(raw, part)
			parts = append(parts, withID(sqlitefile.JSON(part.Get("data")), part.Get("id").Text()))
			return nil
		})
		if err != nil {
			return err
		}
		span, err := to.Keep("message "+m.Get("id").Text(), bytes.Join(raw, []byte("\n")))
		if err != nil {
			return err
		}
		return r.message(withID(sqlitefile.JSON(m.Get("data")), m.Get("id").Text()), parts, span)
	})
	if err != nil {
		return err
	}
	if err := r.newer(ctx, db); err != nil {
		return err
	}
	return r.end()
}

// newer keeps the rows of the table that later versions fill instead, for a
// session that has no others.
func (r *reader) newer(ctx context.Context, db *sqlitefile.DB) error {
	if r.rows > 0 {
		return nil
	}
	return walk.Each(db.Rows(ctx, "session_message", "session_id", r.conv.ID, "seq"), func(row loose.Value) error {
		r.to.Count("row of session_message", transcript.OnlyKept, 1)
		_, err := r.to.Keep("session_message "+row.Get("id").Text(), row)
		return err
	})
}
