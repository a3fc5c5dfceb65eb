package index

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/index/room"
)

// StatsOptions says what to count.
type StatsOptions struct {
	Since, Until time.Time
	Session      string         // the conversation of the session with this id or name; "" means all
	Location     *time.Location // of days and hours. Default: UTC.
}

// Activity counts what was said: when, by whom, and with which tools.
type Activity struct {
	Messages int64     // of all requested conversations, counted as in Session.Messages
	Hours    [24]int64 // messages by the hour of the day
	Weekdays [7]int64  // messages by the day of the week, Sunday first
	Days     []Count   // messages by the day, in order; days without any are left out
	Roles    []Count   // messages by role, the most frequent first
	Models   []Count   // messages by the model that answered
	Tools    []Count   // calls by tool
}

func (o *StatsOptions) location() *time.Location {
	if o.Location == nil {
		return time.UTC
	}
	return o.Location
}

// messageKinds are the kinds of documents that are parts of messages.
var messageKinds = fmt.Sprintf("%d, %d, %d, %d", kindNumber(KindText), kindNumber(KindThinking), kindNumber(KindCall), kindNumber(KindOutput))

// statsWhere are the conditions for the requested documents, and for messages without
// documents. In both the table is m.
type statsWhere struct{ docs, silent string }

// where returns the conditions. Their parameters come after the first two.
func (o *StatsOptions) where(ctx context.Context, db room.Tables) (statsWhere, []any, error) {
	from, to := int64(0), int64(1)<<62
	if !o.Since.IsZero() {
		from = docID(o.Since.UnixMilli()+999, 0)
	}
	if !o.Until.IsZero() {
		to = docID(o.Until.UnixMilli()+999, 0)
	}
	args := []any{from, to}
	where := statsWhere{
		docs:   `m.id >= ?3 AND m.id < ?4 AND ` + isCounted,
		silent: `max(m.time / 1000, 0) << ?1 >= ?3 AND max(m.time / 1000, 0) << ?1 < ?4 AND ` + isCounted,
	}
	if o.Session == "" {
		return where, args, nil
	}
	row, err := conversationOf(ctx, db, o.Session)
	if err != nil {
		return where, nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT id FROM sessions WHERE id = ?1 OR chain = ?1 AND chain <> 0`, row)
	if err != nil {
		return where, nil, err
	}
	ids, err := scanColumn[int64](rows)
	facets := make([]string, len(ids))
	for i, id := range ids {
		facets[i] = quote(facet('s', id))
	}
	where.docs += ` AND m.id IN (SELECT rowid FROM fts WHERE fts MATCH ?5)`
	where.silent += ` AND m.session IN (SELECT id FROM sessions WHERE id = ?6 OR chain = ?6 AND chain <> 0)`
	return where, append(args, anyFacet(facets), row), err
}
