package index

import (
	"context"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// withBelow is the condition that a column is a tag or one below it, as forge/parser is below
// forge.
func withBelow(column, tag string) (cond string, args []any) {
	tag = strings.TrimSuffix(tag, "/")
	return "(" + column + " = ? OR " + column + " >= ? AND " + column + " < ?)", []any{bounded(tag), tag + "/", afterPrefix(tag + "/")}
}

// hasBelow reports whether there are tags below a tag. If there are none, a list of the tag
// can be read in its order.
func hasBelow(ctx context.Context, db room.Tables, tag string) (bool, error) {
	tag = strings.TrimSuffix(tag, "/")
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag >= ? AND tag < ? LIMIT 1) few`, tag+"/", afterPrefix(tag+"/")).Scan(&n)
	return n > 0, err
}
