package index

import (
	"context"
	"strings"
)

// tagsBelow returns, for each tag, the tags that count as it: itself and those below
// it, as forge/parser is below forge. A filter asks for them by name, because a range
// of names could not be read in the order of a list.
func tagsBelow(ctx context.Context, db *database, tags []string) (map[string][]any, error) {
	below := make(map[string][]any, len(tags))
	for _, tag := range tags {
		below[tag] = []any{tag}
		rows, err := db.QueryContext(ctx, `SELECT DISTINCT tag FROM tags WHERE tag >= ? AND tag < ?`, tag+"/", afterPrefix(tag+"/"))
		if err != nil {
			return nil, err
		}
		found, err := scanColumn[string](rows)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			below[tag] = append(below[tag], name)
		}
	}
	return below, nil
}

// marks is a list of n question marks.
func marks(n int) string { return strings.TrimPrefix(strings.Repeat(", ?", n), ", ") }
