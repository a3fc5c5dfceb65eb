package index

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// StatsOptions says what to look at.
type StatsOptions struct {
	Since, Until time.Time
	Session      string         // the conversation that the session of this id or name is part of; "" is all
	Location     *time.Location // of days and hours. Default: UTC.
}

// Activity is what was said when, by whom, and with which tools.
type Activity struct {
	Messages int64     // as Session.Messages counts them, of all conversations that are asked for
	Hours    [24]int64 // messages by the hour of the day
	Weekdays [7]int64  // messages by the day of the week, Sunday first
	Days     []Count   // messages by the day, in order; days without any are left out
	Roles    []Count   // messages by role, the most frequent first
	Models   []Count   // messages by the model that answered
	Tools    []Count   // calls by tool
}

// Activity counts messages. It reads a row for each, which takes about a second
// for a million.
func (ix *Index) Activity(ctx context.Context, o StatsOptions) (*Activity, error) {
	a := &Activity{}
	err := ix.read(ctx, "activity", func(db *database) error {
		*a = Activity{} // it may be asked twice
		where, args, err := o.where(ctx, db)
		if err != nil {
			return err
		}
		// The first part of a message stands for the message; those that have none are
		// in silent.
		rows, err := db.QueryContext(ctx, `SELECT a.quarter, a.first, a.call, ifnull(r.name, ''), ifnull(n.name, ''), ifnull(t.name, ''), count(*) FROM (
				SELECT (m.id >> ?1) / 900 AS quarter, m.part = 0 AS first, m.kind = ?2 AS call, m.role, m.model, m.tool
				FROM docs m WHERE `+where.docs+` AND (m.part = 0 OR m.kind = ?2) AND m.kind IN (`+messageKinds+`)
				UNION ALL
				SELECT m.time / 900000, 1, 0, m.role, m.model, 0 FROM silent m WHERE `+where.silent+`) a
			LEFT JOIN names r ON r.id = a.role LEFT JOIN names n ON n.id = a.model LEFT JOIN names t ON t.id = a.tool
			GROUP BY 1, 2, 3, a.role, a.model, a.tool`,
			append([]any{docSeqBits, kindNumber(KindCall)}, args...)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return a.fill(rows, o.location())
	})
	return a, err
}

func (o *StatsOptions) location() *time.Location {
	if o.Location == nil {
		return time.UTC
	}
	return o.Location
}

// messageKinds are the kinds of documents that are parts of messages.
var messageKinds = fmt.Sprintf("%d, %d, %d, %d", kindNumber(KindText), kindNumber(KindThinking), kindNumber(KindCall), kindNumber(KindOutput))

// statsWhere are the conditions on the documents, and on the messages without any, that
// are asked for. In both the table is m.
type statsWhere struct{ docs, silent string }

// where returns the conditions. Their parameters come after the first two.
func (o *StatsOptions) where(ctx context.Context, db *database) (statsWhere, []any, error) {
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
	return where, append(args, strings.Join(facets, " OR "), row), err
}

func (a *Activity) fill(rows *sql.Rows, loc *time.Location) error {
	days, roles, models, tools := map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}
	for rows.Next() {
		var quarter, n int64
		var first, isCall bool
		var role, model, tool string
		if err := rows.Scan(&quarter, &first, &isCall, &role, &model, &tool, &n); err != nil {
			return err
		}
		if isCall {
			tools[tool] += n
		}
		if !first {
			continue
		}
		t := time.Unix(quarter*900, 0).In(loc)
		a.Messages += n
		a.Hours[t.Hour()] += n
		a.Weekdays[t.Weekday()] += n
		days[t.Format(time.DateOnly)] += n
		roles[role] += n
		if model != "" {
			models[model] += n
		}
	}
	a.Days, a.Roles, a.Models, a.Tools = sortCounts(days), sortCounts(roles), sortCounts(models), sortCounts(tools)
	slices.SortFunc(a.Days, func(x, y Count) int { return cmp.Compare(x.Name, y.Name) })
	return rows.Err()
}
