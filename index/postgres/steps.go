package postgres

import (
	"context"
	"time"

	"github.com/coppice-dev/coppice/index/room"
)

// # The newest matches
//
// The server finds all texts that match at once. With frequent words that is most of the table. So they
// are looked for in the newest era, then in the two before, in the four before these, and so on,
// until there are enough of them. Where a step takes long, the next one is shorter again. So the
// clock decides how they are found, but not which.
//
// Into each text that has the words of a phrase, the server has to look. So a phrase is looked for in
// the newest lookedInto texts only.

const (
	maxEras   = 32 // of a step; index_found knows it, too
	quickStep = 8 * time.Millisecond
	slowStep  = 30 * time.Millisecond

	lookedInto = 20_000
)

// inSteps is read for the newest matches of a query.
func (c *conn) inSteps(ctx context.Context, text string, args []any, m room.Match) (*answer, error) {
	bounds := args[len(args)-3:]
	low, high := m.From, bounds[1].(int64)
	last, err := c.lastLookedInto(ctx, m, high)
	if err != nil {
		return nil, err
	}
	isPart := last > low
	low = max(low, last)
	all, some, eras := &answer{}, &answer{}, int64(1)
	for len(all.rows) < m.Newest {
		if len(some.rows) == 0 { // there may be no texts at all for a long time
			newest, err := c.newest(ctx, low, high)
			if err != nil {
				return nil, err
			}
			if newest == nil {
				break
			}
			high = *newest
		}
		start := time.Now()
		first := max(low, (high>>eraShift-eras+1)<<eraShift)
		bounds[0], bounds[1], bounds[2] = first, high, int64(m.Newest-len(all.rows))
		var err error
		if some, err = c.read(ctx, text, args); err != nil {
			return nil, err
		}
		all.columns, all.rows = some.columns, append(all.rows, some.rows...)
		if high = first - 1; high < low {
			break
		}
		switch took := time.Since(start); {
		case took < quickStep:
			eras = min(2*eras, maxEras)
		case took > slowStep:
			eras = max(eras/2, 1)
		}
	}
	if isPart && len(all.rows) < m.Newest && m.Partly != nil {
		*m.Partly = true
	}
	return all, nil
}

// lastLookedInto returns the id of the last text that is looked into, or 0 if there is no such limit.
func (c *conn) lastLookedInto(ctx context.Context, m room.Match, high int64) (int64, error) {
	if !hasPhrase(m.Query) {
		return 0, nil
	}
	all, err := c.read(ctx, c.base.SQL(`SELECT id FROM coppice.index_texts WHERE tenant = $1 AND id BETWEEN $2 AND $3 ORDER BY id DESC OFFSET $4 LIMIT 1`),
		[]any{c.base.Tenant(), m.From, high, c.lookedInto - 1})
	if err != nil || len(all.rows) == 0 {
		return 0, err
	}
	return all.rows[0][0].(int64), nil
}

// newest returns the id of the newest text in a range, or nil.
func (c *conn) newest(ctx context.Context, low, high int64) (*int64, error) {
	all, err := c.read(ctx, c.base.SQL(`SELECT max(id) FROM coppice.index_texts WHERE tenant = $1 AND id BETWEEN $2 AND $3`),
		[]any{c.base.Tenant(), low, high})
	if err != nil || all.rows[0][0] == nil {
		return nil, err
	}
	newest := all.rows[0][0].(int64)
	return &newest, nil
}
