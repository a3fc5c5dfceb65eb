package index

import (
	"cmp"
	"context"
	"database/sql"
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
	Messages int64     // with text, thinking, or a tool's call or output
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
		// The first part of a message stands for the message.
		rows, err := db.QueryContext(ctx, `SELECT (d.id >> ?) / 900, d.part = 0, d.kind = ?, ifnull(r.name, ''), ifnull(m.name, ''), ifnull(t.name, ''), count(*)
			FROM docs d JOIN names r ON r.id = d.role LEFT JOIN names m ON m.id = d.model LEFT JOIN names t ON t.id = d.tool
			WHERE `+where+` AND (d.part = 0 OR d.kind = ?2) GROUP BY 1, 2, 3, d.role, d.model, d.tool`,
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

// where is the condition on documents. Its parameters come after the first two.
func (o *StatsOptions) where(ctx context.Context, db *database) (string, []any, error) {
	from, to := int64(0), int64(1)<<62
	if !o.Since.IsZero() {
		from = docID(o.Since.UnixMilli()+999, 0)
	}
	if !o.Until.IsZero() {
		to = docID(o.Until.UnixMilli()+999, 0)
	}
	// What a session was given by the one before it was said there.
	where, args := `d.id >= ?3 AND d.id < ?4 AND d.carried = 0`, []any{from, to}
	if o.Session == "" {
		return where, args, nil
	}
	row, err := conversationOf(ctx, db, o.Session)
	if err != nil {
		return "", nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT id FROM sessions WHERE id = ?1 OR chain = ?1 AND chain <> 0`, row)
	if err != nil {
		return "", nil, err
	}
	ids, err := scanColumn[int64](rows)
	facets := make([]string, len(ids))
	for i, id := range ids {
		facets[i] = quote(facet('s', id))
	}
	return where + ` AND d.id IN (SELECT rowid FROM fts WHERE fts MATCH ?5)`, append(args, strings.Join(facets, " OR ")), err
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
