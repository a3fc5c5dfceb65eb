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
	By           StatsBy        // what the days are divided by; "" is nothing
}

// StatsBy is what the usage of a day is divided by.
type StatsBy string

// The ways to divide a day.
const (
	PartModel StatsBy = "model"
	PartDir   StatsBy = "dir"
	PartAgent StatsBy = "agent"
)

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

// where returns the condition for the requested documents of the table m. Its parameters come
// after the first two.
func (o *StatsOptions) where(ctx context.Context, db room.Tables) (cond string, args []any, err error) {
	from, to := int64(0), int64(1)<<62
	if !o.Since.IsZero() {
		from = docID(o.Since.UnixMilli()+999, 0)
	}
	if !o.Until.IsZero() {
		to = docID(o.Until.UnixMilli()+999, 0)
	}
	cond, args = `m.id >= ?3 AND m.id < ?4 AND m.elsewhere = 0`, []any{from, to}
	if o.Session == "" {
		return cond, args, nil
	}
	ids, err := o.sessions(ctx, db)
	facets := make([]string, len(ids))
	for i, id := range ids {
		facets[i] = quote(facet('s', id))
	}
	return cond + ` AND m.id IN (SELECT rowid FROM fts WHERE fts MATCH ?5)`, append(args, anyFacet(facets)), err
}

// sessions returns the sessions of the requested conversation.
func (o *StatsOptions) sessions(ctx context.Context, db room.Tables) ([]int64, error) {
	row, err := conversationOf(ctx, db, o.Session)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT id FROM sessions WHERE id = ?1 OR chain = ?1 AND chain <> 0`, row)
	if err != nil {
		return nil, err
	}
	return scanColumn[int64](rows)
}
