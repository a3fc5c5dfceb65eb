package opencode

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// known are the ids of opencode's parts, by message and then by a key that distinguishes the
// parts of a message. `opencode import` skips parts whose ids it has, and adds others even to
// a message that it has: a message that came from opencode must be written with the same ids.
type known map[string]map[string][]string

// parts reads opencode's parts of a session. It returns none if the database cannot be read.
func parts(ctx context.Context, env transcript.Env, id string) known {
	found, err := readKnown(ctx, database(env), id)
	if err != nil {
		return nil
	}
	return found
}

// database returns the path of opencode's database.
func database(env transcript.Env) string {
	if env.Getenv != nil {
		if db := env.Getenv("OPENCODE_DB"); filepath.IsAbs(db) {
			return db
		}
	}
	return filepath.Join(place.Data(env), "opencode", "opencode.db")
}

func readKnown(ctx context.Context, path, id string) (known, error) {
	f, err := transcript.OpenFile(path)
	if err != nil {
		return nil, err
	}
	if !sqlitefile.Is(f) {
		return nil, fs.ErrInvalid
	}
	found := make(known)
	return found, sqlitefile.Read(ctx, f, func(db *sqlitefile.DB) error {
		return walk.Each(db.Rows(ctx, "part", "session_id", id, "id"), func(row loose.Value) error {
			message := row.Get("message_id").Text()
			if found[message] == nil {
				found[message] = make(map[string][]string)
			}
			data := sqlitefile.JSON(row.Get("data"))
			key := data.Get("type").Text() + data.Get("callID").Text()
			found[message][key] = append(found[message][key], row.Get("id").Text())
			return nil
		})
	})
}

// pop returns and removes the id of the next part with a key, or "".
func (k known) pop(message, key string) string {
	list := k[message][key]
	if len(list) == 0 {
		return ""
	}
	k[message][key] = list[1:]
	return list[0]
}
