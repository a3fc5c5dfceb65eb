package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index/room"
)

// adding is a Stats under construction. A ledger has tens of thousands of rows, and each
// counts in several sums, so the keys of the sums are found once: for a ledger what its
// session belongs to, for a quarter of an hour its day, and for a row its price.
type adding struct {
	ix       *Index
	o        StatsOptions
	names    map[int64]string
	from, to int64 // quarters

	priceOf  map[priceKey]int
	prices   []pricing
	total    sums
	quarters map[int64]*quarter
	days     map[string]*day
	sessions, dirs,
	agents map[string]*sums
	sheet *sheet   // the current one
	of    [3]*sums // of its session, project and agent

	activity             Activity
	roles, models, tools map[int64]int64 // by name
	failed               map[int64]int64
	took                 map[timeKey]int64 // milliseconds
}

// priceKey is what decides the price of a response.
type priceKey struct {
	provider, model int64
	priced          bool
}

// pricing is a price, as far as it is known.
type pricing struct {
	priceKey
	price Price
	known bool
}

// sums is what responses cost, by their price. It is short.
type sums []sum

type sum struct {
	price int // its place in adding.prices
	Usage
}

func (s *sums) add(price int, u *Usage) {
	for i := range *s {
		if (*s)[i].price == price {
			(*s)[i].Usage.Add(*u)
			return
		}
	}
	*s = append(*s, sum{price, *u})
}

// timeKey is what decides whose time it was.
type timeKey struct {
	role int64
	tool bool
}

// quarter is a quarter of an hour.
type quarter struct {
	day           *day
	hour, weekday int
}

type day struct {
	spent    sums
	parts    map[string]*sums // if the days are divided
	messages int64
}

func newAdding(ix *Index, o StatsOptions) *adding {
	a := &adding{
		ix: ix, o: o, from: -1 << 62, to: 1 << 62, names: make(map[int64]string), priceOf: make(map[priceKey]int),
		quarters: make(map[int64]*quarter), days: make(map[string]*day),
		sessions: make(map[string]*sums), dirs: make(map[string]*sums), agents: make(map[string]*sums),
		roles: make(map[int64]int64), models: make(map[int64]int64), tools: make(map[int64]int64),
		failed: make(map[int64]int64), took: make(map[timeKey]int64),
	}
	if !o.Since.IsZero() {
		a.from = o.Since.UnixMilli() / quarterMillis
	}
	if !o.Until.IsZero() {
		a.to = o.Until.UnixMilli() / quarterMillis
	}
	return a
}

// read adds up the requested ledgers.
func (a *adding) read(ctx context.Context, db room.Tables) error {
	if err := a.readNames(ctx, db); err != nil {
		return err
	}
	if a.o.Session == "" {
		return a.readWhere(ctx, db, `1 = 1`)
	}
	row, err := conversationOf(ctx, db, a.o.Session)
	if err != nil {
		return err
	}
	return a.readOf(ctx, db, row)
}

// readOf adds up the ledgers of a conversation.
func (a *adding) readOf(ctx context.Context, db room.Tables, row int64) error {
	return a.readWhere(ctx, db, `l.session IN (SELECT id FROM sessions WHERE id = ?1 OR chain = ?1 AND chain <> 0)`, row)
}

func (a *adding) readWhere(ctx context.Context, db room.Tables, where string, args ...any) error {
	rows, err := db.QueryContext(ctx, `SELECT l.data FROM ledgers l WHERE `+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var data sql.RawBytes
		if err := rows.Scan(&data); err != nil {
			return err
		}
		if err := decodeSheet(data, a.spent, a.said); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (a *adding) readNames(ctx context.Context, db room.Tables) error {
	rows, err := db.QueryContext(ctx, `SELECT id, name FROM names`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		a.names[id] = name
	}
	return rows.Err()
}

// sumsOf returns the sums of a key.
func sumsOf(by map[string]*sums, key string) *sums {
	s := by[key]
	if s == nil {
		s = &sums{}
		by[key] = s
	}
	return s
}

// quarter returns the n-th quarter of an hour.
func (a *adding) quarter(n int64) *quarter {
	q := a.quarters[n]
	if q != nil {
		return q
	}
	t := time.Unix(n*quarterMillis/1000, 0).In(a.o.location())
	date := t.Format(time.DateOnly)
	if a.days[date] == nil {
		a.days[date] = &day{}
	}
	q = &quarter{a.days[date], t.Hour(), int(t.Weekday())}
	a.quarters[n] = q
	return q
}

func (a *adding) spent(s *sheet, r *spentRow) {
	if r.quarter < a.from || r.quarter >= a.to {
		return
	}
	if s != a.sheet {
		a.sheet = s
		a.of = [3]*sums{
			sumsOf(a.sessions, s.id),
			sumsOf(a.dirs, a.names[s.dir]),
			sumsOf(a.agents, a.names[s.agent]),
		}
	}
	u := Usage{
		Responses: r.sums[0], Input: r.sums[1], CacheRead: r.sums[2], CacheWrite: r.sums[3], Output: r.sums[4],
		Reasoning: r.sums[5], CacheHour: r.sums[6], CostMicroUSD: r.sums[7], Recorded: r.sums[8],
	}
	key := priceKey{r.provider, r.model, r.priced != 0}
	price, ok := a.priceOf[key]
	if !ok {
		price = a.newPrice(key)
	}
	a.total.add(price, &u)
	day := a.quarter(r.quarter).day
	day.spent.add(price, &u)
	if by := a.partOf(s, r); by >= 0 {
		if day.parts == nil {
			day.parts = make(map[string]*sums)
		}
		sumsOf(day.parts, a.names[by]).add(price, &u)
	}
	for _, s := range a.of {
		s.add(price, &u)
	}
}

// partOf returns the name that a row of a ledger counts for in the parts of its day, or -1.
func (a *adding) partOf(s *sheet, r *spentRow) int64 {
	switch a.o.By {
	case PartModel:
		return r.model
	case PartDir:
		return s.dir
	case PartAgent:
		return s.agent
	}
	return -1
}

func (a *adding) newPrice(key priceKey) int {
	n, p := len(a.prices), pricing{priceKey: key}
	p.price, p.known = a.ix.opts.Prices.Price(a.names[key.provider], a.names[key.model])
	a.priceOf[key], a.prices = n, append(a.prices, p)
	return n
}

func (a *adding) said(r *saidRow) {
	if r.quarter < a.from || r.quarter >= a.to {
		return
	}
	if r.calls > 0 {
		a.tools[r.tool] += r.calls
	}
	if r.failed > 0 {
		a.failed[r.tool] += r.failed
	}
	if r.took > 0 {
		a.took[timeKey{r.role, r.tool != 0}] += r.took
	}
	if r.messages == 0 {
		return
	}
	q := a.quarter(r.quarter)
	q.day.messages += r.messages
	a.activity.Messages += r.messages
	a.activity.Hours[q.hour] += r.messages
	a.activity.Weekdays[q.weekday] += r.messages
	a.roles[r.role] += r.messages
	if r.model != 0 {
		a.models[r.model] += r.messages
	}
}

func (a *adding) stats() *Stats {
	s := &Stats{
		Models: a.byModel(), Sessions: a.sorted(a.sessions), Dirs: a.sorted(a.dirs), Agents: a.sorted(a.agents),
		Total: a.price("", a.total), Activity: a.activity, Days: []Usage{},
	}
	c := &s.Activity
	c.Roles, c.Models, c.Tools = a.named(a.roles), a.named(a.models), a.named(a.tools)
	for date, d := range a.days {
		if len(d.spent) > 0 {
			s.Days = append(s.Days, a.price(date, d.spent))
		}
		for key, part := range d.parts {
			s.Parts = append(s.Parts, DayPart{date, a.price(key, *part)})
		}
		if d.messages > 0 {
			c.Days = append(c.Days, Count{date, d.messages})
		}
	}
	s.Failed = a.named(a.failed)
	for key, millis := range a.took {
		s.Times = append(s.Times, Elapsed{a.names[key.role], key.tool, millis})
	}
	slices.SortFunc(s.Times, func(x, y Elapsed) int {
		return cmp.Or(cmp.Compare(x.Role, y.Role), cmp.Compare(x.Millis, y.Millis))
	})
	sortUsage(s.Days)
	slices.SortFunc(s.Parts, func(x, y DayPart) int { return cmp.Or(cmp.Compare(x.Day, y.Day), cmp.Compare(x.Key, y.Key)) })
	slices.SortFunc(c.Days, func(x, y Count) int { return cmp.Compare(x.Name, y.Name) })
	return s
}

// named turns counts by a name's number into counts by the name.
func (a *adding) named(by map[int64]int64) []Count {
	counts := make(map[string]int64, len(by))
	for id, n := range by {
		counts[a.names[id]] += n
	}
	return sortCounts(counts)
}

func (a *adding) byModel() []Usage {
	by := make(map[string]*sums)
	for i := range a.total {
		s := &a.total[i]
		sumsOf(by, a.names[a.prices[s.price].model]).add(s.price, &s.Usage)
	}
	return a.sorted(by)
}

// sorted adds up what responses of several prices cost, by key.
func (a *adding) sorted(by map[string]*sums) []Usage {
	list := make([]Usage, 0, len(by))
	for key, s := range by {
		list = append(list, a.price(key, *s))
	}
	sortUsage(list)
	return list
}

func sortUsage(list []Usage) {
	slices.SortFunc(list, func(x, y Usage) int { return cmp.Compare(x.Key, y.Key) })
}

// price adds up what responses of several prices cost.
func (a *adding) price(key string, all sums) Usage {
	total := Usage{Key: key}
	for i := range all {
		u, p := all[i].Usage, &a.prices[all[i].price]
		switch {
		case p.priced || u.Responses == 0: // as recorded
		case p.known:
			u.CostMicroUSD = p.price.cost(u)
		default:
			u.CostMicroUSD, u.Unpriced = 0, u.Responses
		}
		total.Add(u)
	}
	return total
}
