package opencode

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
)

// known are the ids of the parts that opencode has of messages, by message, and there
// by what tells parts of one message apart. `opencode import` passes over parts whose
// ids it has, and adds others even to a message that it has: a message that came from
// there must be written with the same ids.
type known map[string]map[string][]string

// parts reads what opencode has of a session. A database that cannot be read has
// nothing.
func parts(ctx context.Context, env transcript.Env, id string) known {
	found, err := readKnown(ctx, database(env), id)
	if err != nil {
		return nil
	}
	return found
}

// database is where opencode keeps its sessions.
func database(env transcript.Env) string {
	if env.Getenv != nil {
		if db := env.Getenv("OPENCODE_DB"); filepath.IsAbs(db) {
			return db
		}
	}
	return filepath.Join(env.Dir("XDG_DATA_HOME", ".local/share"), "opencode", "opencode.db")
}

func readKnown(ctx context.Context, path, id string) (found known, err error) {
	f, err := transcript.OpenFile(path)
	if err != nil {
		return nil, err
	}
	if !sqlitefile.Is(f) {
		return nil, fs.ErrInvalid
	}
	db, err := sqlitefile.Open(ctx, f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	found = make(known)
	for row, err := range db.Rows(ctx, "part", "session_id", id, "id") {
		if err != nil {
			return nil, err
		}
		message := row.Get("message_id").Text()
		if found[message] == nil {
			found[message] = make(map[string][]string)
		}
		data := sqlitefile.JSON(row.Get("data"))
		key := data.Get("type").Text() + data.Get("callID").Text()
		found[message][key] = append(found[message][key], row.Get("id").Text())
	}
	return found, nil
}

// take returns the id of the next part of a kind, or "".
func (k known) take(message, key string) string {
	list := k[message][key]
	if len(list) == 0 {
		return ""
	}
	k[message][key] = list[1:]
	return list[0]
}
