package postgres

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// together combines appends of one program that would otherwise compete. While few statements are
// under way, an append is sent at once. Otherwise it waits, and when a statement is answered, the
// first waiting append sends the lines of all of them: many logs in one statement, with one round
// trip and one commit. So no append waits for others to join it, and the more a program appends, the
// less each append costs the server.
//
// Such a statement is only an attempt. It skips logs that another transaction has locked, so that no
// append waits for a lock on another log, and there can be no deadlock. If the server refuses one of
// the lines, none is added. Whatever was not added is then sent alone, as if there had been no
// attempt, and gets its errors there.
type together struct {
	store *Store
	turns int // how many statements may be under way

	mu      sync.Mutex
	under   []*turn // whose statements are under way, the oldest first
	waiting []*addition
}

// turn is the right to send a statement.
type turn struct{ _ byte } // not empty, so that each has an address of its own

// addition is a line that waits to be appended. What is below woken is set before that is closed.
type addition struct {
	log  *log
	sent *sent

	woken chan struct{}
	turn  *turn // if it is to send all that wait; nil if another has sent it
	added bool
	err   error // of the statement that it was sent in
}

const (
	// maxTurns is how many statements may be under way, if there are twice as many connections.
	// That many commits can share a flush on the server; more only cost it context switches.
	maxTurns = 8
	// togetherLine is how long a line may be: all others in its statement wait for it, too.
	togetherLine = 16 << 10
	// togetherCount is how many lines a statement has at most.
	togetherCount = 256
	// togetherWait is how long an append waits for those that are under way. They may take
	// seconds if their logs are locked or the server is away.
	togetherWait = 50 * time.Millisecond
)

// appendTogether locks the logs that are free and end where they should, moves their ends, and
// inserts the lines. It finds the locked rows again by their ctid and partition: joined by key, a
// planner without statistics would compare every row with every other. If a log changed after the
// statement began, the ctid is that of a version which the statement does not see, and the log is
// skipped. The subqueries around the arrays hide their lengths from the planner, which would
// otherwise plan each statement again.
const appendTogether = `WITH free AS (
		SELECT l.part, l.place, w.log, w.life, w.pos, w.tail, w.data
		FROM unnest((SELECT $2::bytea[]), (SELECT $3::bigint[]), (SELECT $4::bigint[]), (SELECT $5::bigint[]), (SELECT $6::bytea[])) w (log, life, pos, tail, data),
		LATERAL (SELECT tableoid AS part, ctid AS place FROM coppice.logs
			WHERE tenant = $1 AND log = w.log AND slot = 0 AND life = w.life AND tail = w.pos FOR UPDATE SKIP LOCKED) l
	), head AS (
		UPDATE coppice.logs l SET tail = free.tail, modified = now(), marked = true
		FROM free WHERE l.ctid = free.place AND l.tableoid = free.part RETURNING free.log, free.life, free.pos, free.data
	)
	INSERT INTO coppice.lines (tenant, log, life, pos, data)
	SELECT $1, log, life, pos, data FROM head RETURNING log`

func newTogether(s *Store, connections int32) *together {
	return &together{store: s, turns: max(1, min(maxTurns, int(connections)/2))}
}

// append appends a line and returns how many rows were added. alone is the statement for a line by
// itself.
func (g *together) append(ctx context.Context, a *addition, alone func(context.Context) (int64, error)) (int64, error) {
	g.mu.Lock()
	if len(g.under) < g.turns {
		t := new(turn)
		g.under = append(g.under, t)
		g.mu.Unlock()
		defer g.pass(t)
		return alone(ctx)
	}
	a.woken = make(chan struct{})
	g.waiting = append(g.waiting, a)
	g.mu.Unlock()
	if g.await(a); a.turn != nil {
		others := g.take(a)
		if len(others) == 0 {
			defer g.pass(a.turn)
			return alone(ctx)
		}
		all := others
		if a.sent.give() {
			all = append(all, a)
		}
		g.send(all)
		for _, other := range others {
			close(other.woken)
		}
		runtime.Gosched() // those who were just answered may have more
		g.pass(a.turn)
	}
	switch {
	case a.added:
		return 1, nil
	case judge(a.err) == lost:
		return 0, a.err
	}
	return alone(ctx)
}

// await waits until the addition has its turn, or was sent by another. After togetherWait it takes
// over the oldest turn.
func (g *together) await(a *addition) {
	timer := time.NewTimer(togetherWait)
	defer timer.Stop()
	select {
	case <-a.woken:
		return
	case <-timer.C:
	}
	g.mu.Lock()
	if i := slices.Index(g.waiting, a); i >= 0 {
		if len(g.under) == g.turns {
			g.under = slices.Delete(g.under, 0, 1)
		}
		g.give(i)
	}
	g.mu.Unlock()
	<-a.woken
}

// give gives a turn to the addition that waits at i. The caller holds the mutex.
func (g *together) give(i int) {
	a := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	a.turn = new(turn)
	g.under = append(g.under, a.turn)
	close(a.woken)
}

// pass ends a turn that was not taken away.
func (g *together) pass(t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.under, t)
	if i < 0 {
		return
	}
	g.under = slices.Delete(g.under, i, i+1)
	if len(g.waiting) > 0 {
		g.give(0)
	}
}

// take returns the additions that the statement of the first one can carry, too: one of each log.
func (g *together) take(first *addition) []*addition {
	g.mu.Lock()
	defer g.mu.Unlock()
	var others []*addition
	logs := map[string]bool{string(first.log.key.log): true}
	left := g.waiting[:0]
	for _, a := range g.waiting {
		switch key := string(a.log.key.log); {
		case logs[key] || len(others) == togetherCount-1:
			left = append(left, a)
		case !a.sent.give(): // its caller no longer waits
			close(a.woken)
		default:
			logs[key] = true
			others = append(others, a)
		}
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	return others
}

// send sends the lines of all in one statement and notes what became of each.
func (g *together) send(all []*addition) {
	s, byLog := g.store, make(map[string]*addition, len(all))
	logs, lines := make([][]byte, len(all)), make([][]byte, len(all))
	lives, ats, ends := make([]int64, len(all)), make([]int64, len(all)), make([]int64, len(all))
	for i, a := range all {
		logs[i], lives[i], ats[i], ends[i], lines[i] = a.log.key.log, a.log.life, a.sent.at, a.sent.end, a.sent.lines[0]
		byLog[string(a.log.key.log)] = a
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, s.sql(appendTogether), s.tenant, logs, lives, ats, ends, lines)
	var added [][]byte
	if err == nil {
		added, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	}
	for _, log := range added {
		byLog[string(log)].added = err == nil
	}
	for _, a := range all {
		a.err = err
		if !a.added {
			a.sent.answered(0, err)
		}
	}
}
