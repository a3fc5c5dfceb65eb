package index

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index/room"
)

// The functions of this file answer from the rows themselves what Stats answers from
// sums that are kept up to date. Tests compare the two.

// By is what usage is added up by.
type By string

// What usage is added up by. Days and hours are those of UsageOptions.Location.
const (
	ByNothing By = ""        // one sum
	ByDay     By = "day"     // "2026-11-15"
	ByHour    By = "hour"    // of the day: "00" to "23"
	ByModel   By = "model"   // the model's name
	BySession By = "session" // the conversation's id: that of the session, or of its chain
	ByTool    By = "tool"    // the first tool that the response called; "" if none
)

// UsageOptions says which responses to add up, and how.
type UsageOptions struct {
	By       By
	Location *time.Location // Default: UTC.

	// Filters; the zero value of each lets everything pass.
	Since, Until time.Time
	Session      string // the conversation that the session of this id is part of
	Model        string
	Tool         string
}

// Usage adds up what responses cost, sorted by Key.
func (ix *Index) Usage(ctx context.Context, o UsageOptions) ([]Usage, error) {
	query, args, err := o.sql()
	if err != nil {
		return nil, ix.fail("usage", err)
	}
	var sums []Usage
	err = ix.read(ctx, "usage", func(db room.Tables) error {
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		sums, err = ix.sumUsage(rows, o)
		return err
	})
	return sums, err
}

// sql asks for sums by key, by the quarter of an hour (which all time zones are
// made of) if times matter, and by what decides the price.
func (o *UsageOptions) sql() (string, []any, error) {
	keys := map[By]string{
		ByNothing: "''", ByDay: "u.time / 900000", ByHour: "u.time / 900000",
		ByModel: "coalesce(m.name, '')", BySession: "coalesce(c.sid, s.sid)", ByTool: "coalesce(t.name, '')",
	}
	key, ok := keys[o.By]
	if !ok {
		return "", nil, fmt.Errorf("cannot group usage by %q", o.By)
	}
	where, args := []string{"u.counted = 1", "(u.recorded = 0 OR s.billed = 0)"}, []any{}
	filter := func(set bool, cond string, arg any) {
		if set {
			where, args = append(where, cond), append(args, arg)
		}
	}
	filter(!o.Since.IsZero(), "u.time >= ?", o.Since.UnixMilli())
	filter(!o.Until.IsZero(), "u.time < ?", o.Until.UnixMilli())
	if o.Session != "" { // of a chain any session's id will do
		where = append(where, `(s.sid = ? OR s.chain <> 0 AND s.chain IN (
			SELECT CASE x.part WHEN 2 THEN x.id ELSE x.chain END FROM sessions x WHERE x.sid = ? AND (x.chain <> 0 OR x.part = 2)))`)
		args = append(args, o.Session, o.Session)
	}
	filter(o.Model != "", "m.name = ?", o.Model)
	filter(o.Tool != "", "t.name = ?", o.Tool)
	return `SELECT ` + key + `, coalesce(m.name, ''), coalesce(p.name, ''), u.cost > 0, sum(CASE WHEN u.recorded = 0 THEN 1 ELSE 0 END), sum(u.input), sum(u.cache_read),
			sum(u.cache_write), sum(u.output), sum(u.reasoning), sum(u.cache_hour), sum(u.cost), sum(u.recorded)
		FROM sessions s JOIN usage u ON ` + usageOfSession + ` LEFT JOIN sessions c ON c.id = s.chain AND s.chain <> 0 LEFT JOIN names m ON m.id = u.model
			LEFT JOIN names p ON p.id = u.provider LEFT JOIN names t ON t.id = u.tool
		WHERE ` + strings.Join(where, " AND ") + ` GROUP BY 1, 2, 3, 4`, args, nil
}

func (ix *Index) sumUsage(rows *sql.Rows, o UsageOptions) ([]Usage, error) {
	sums := make(map[string]*Usage)
	for rows.Next() {
		var u Usage
		var key any
		var model, provider string
		var recorded bool
		if err := rows.Scan(&key, &model, &provider, &recorded, &u.Responses, &u.Input, &u.CacheRead,
			&u.CacheWrite, &u.Output, &u.Reasoning, &u.CacheHour, &u.CostMicroUSD, &u.Recorded); err != nil {
			return nil, err
		}
		if !recorded && u.Responses > 0 {
			cost, ok := ix.opts.Prices.Cost(provider, model, u)
			if u.CostMicroUSD = cost; !ok {
				u.Unpriced = u.Responses
			}
		}
		u.Key = o.keyOf(key)
		if sum, ok := sums[u.Key]; ok {
			sum.Add(u)
		} else {
			sums[u.Key] = &u
		}
	}
	var list []Usage
	for _, u := range sums {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b Usage) int { return cmp.Compare(a.Key, b.Key) })
	return list, rows.Err()
}

// keyOf turns a key of the database into one for people.
func (o *UsageOptions) keyOf(key any) string {
	quarter, ok := key.(int64)
	if !ok {
		s, _ := key.(string)
		return s
	}
	loc := o.Location
	if loc == nil {
		loc = time.UTC
	}
	t := time.UnixMilli(quarter * 900_000).In(loc)
	if o.By == ByHour {
		return t.Format("15")
	}
	return t.Format(time.DateOnly)
}

// Activity counts messages. It reads a row for each, which takes about a second
// for a million.
func (ix *Index) Activity(ctx context.Context, o StatsOptions) (*Activity, error) {
	a := &Activity{}
	err := ix.read(ctx, "activity", func(db room.Tables) error {
		*a = Activity{} // it may be asked twice
		where, args, err := o.where(ctx, db)
		if err != nil {
			return err
		}
		silent := `CASE WHEN m.time > 0 THEN m.time / 1000 ELSE 0 END << CAST(?1 AS int) >= ?3 AND CASE WHEN m.time > 0 THEN m.time / 1000 ELSE 0 END << CAST(?1 AS int) < ?4 AND m.elsewhere = 0`
		if o.Session != "" {
			ids, err := o.sessions(ctx, db)
			if err != nil {
				return err
			}
			silent += ` AND m.session IN (SELECT value FROM json_each(?6))`
			args = append(args, marshal(ids))
		}
		// The first part of a message stands for the message; those that have none are
		// in silent.
		rows, err := db.QueryContext(ctx, `SELECT a.quarter, a.first, a.call, coalesce(r.name, ''), coalesce(n.name, ''), coalesce(t.name, ''), count(*) FROM (
				SELECT (m.id >> CAST(?1 AS int)) / 900 AS quarter, CASE WHEN m.part = 0 THEN 1 ELSE 0 END AS first, CASE WHEN m.kind = ?2 THEN 1 ELSE 0 END AS call, m.role, m.model, m.tool
				FROM docs m WHERE `+where+` AND (m.part = 0 OR m.kind = ?2) AND m.kind IN (`+messageKinds+`)
				UNION ALL
				SELECT m.time / 900000, 1, 0, m.role, m.model, 0 FROM silent m WHERE `+silent+`) a
			LEFT JOIN names r ON r.id = a.role LEFT JOIN names n ON n.id = a.model LEFT JOIN names t ON t.id = a.tool
			GROUP BY 1, 2, 3, 4, 5, 6`,
			append([]any{docSeqBits, kindNumber(KindCall)}, args...)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return a.fill(rows, o.location())
	})
	return a, err
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

// Agents returns the programs in which sessions were held, with the number of
// conversations of each, the most frequent first.
func (ix *Index) Agents(ctx context.Context) ([]Count, error) {
	return ix.countSessions(ctx, "agents", `SELECT n.name, count(*) FROM sessions s INDEXED BY by_updated
		JOIN names n ON n.id = s.maker WHERE s.part IN (0, 2) GROUP BY n.name`)
}

// Projects returns the projects that sessions are about, with the number of
// conversations of each, the most frequent first.
func (ix *Index) Projects(ctx context.Context) ([]Count, error) {
	dirs, err := ix.countSessions(ctx, "projects", `SELECT n.name, count(*) FROM sessions s INDEXED BY by_updated
		JOIN names n ON n.id = s.dir WHERE s.part IN (0, 2) GROUP BY n.name`)
	counts := make(map[string]int64)
	for _, dir := range dirs {
		counts[ProjectOf(dir.Name)] += dir.Count
	}
	return sortCounts(counts), err
}

func (ix *Index) countSessions(ctx context.Context, op, query string) ([]Count, error) {
	counts := make(map[string]int64)
	err := ix.read(ctx, op, func(db room.Tables) error {
		clear(counts) // it may be asked twice
		return scanCounts(ctx, db, counts, query)
	})
	return sortCounts(counts), err
}
