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
//
// A request whose caller has stopped waiting is left out of its statement when that is sent. Until
// then it stays in the list, where it costs nothing: see request.startSending.
type together struct {
	store    *Store
	maxTurns int // how many statements may be under way

	mu      sync.Mutex
	turns   []*turn // of the statements that are under way, the oldest first
	waiting []*waiter
}

// turn is the right to send a statement.
type turn struct{ _ byte } // not empty, so that each has an address of its own

// waiter is a request that waits for a turn, or for another request to carry it along. The fields
// below woken are set before that is closed.
type waiter struct {
	*request

	woken chan struct{}
	turn  *turn // the right to send all that wait; nil if another request has carried this one
	added bool
	err   error // of the statement that carried it
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
	return &together{store: s, maxTurns: max(1, min(maxTurns, int(connections)/2))}
}

// append sends a request once, and returns how many lines were added: together with others if it is
// the first attempt and it fits, else alone.
func (g *together) append(ctx context.Context, r *request) (int64, error) {
	if r.wasTogether || !r.isPlain() || len(r.lines[0]) > togetherLine || g.store.single {
		return r.sendAlone(ctx)
	}
	r.wasTogether = true
	w := &waiter{request: r}
	if !g.start(w) {
		g.await(w)
	}
	if w.turn != nil {
		others := g.collect(w)
		if len(others) == 0 {
			defer g.endTurn(w.turn)
			return r.sendAlone(ctx)
		}
		g.sendFor(w, others)
	}
	switch {
	case w.added:
		return 1, nil
	case classify(w.err) == lost:
		return 0, w.err
	}
	return r.sendAlone(ctx)
}

// start gives the request a turn, if one is free, or adds it to those that wait.
func (g *together) start(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turns) < g.maxTurns {
		w.turn = new(turn)
		g.turns = append(g.turns, w.turn)
		return true
	}
	w.woken = make(chan struct{})
	g.waiting = append(g.waiting, w)
	return false
}

// await waits until the request has a turn, or was carried along. After togetherWait it replaces
// the oldest turn.
func (g *together) await(w *waiter) {
	timer := time.NewTimer(togetherWait)
	defer timer.Stop()
	select {
	case <-w.woken:
		return
	case <-timer.C:
	}
	g.mu.Lock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		if len(g.turns) == g.maxTurns {
			g.turns = slices.Delete(g.turns, 0, 1)
		}
		g.giveTurn(i)
	}
	g.mu.Unlock()
	<-w.woken
}

// giveTurn gives a turn to the request that waits at i. The caller holds the mutex.
func (g *together) giveTurn(i int) {
	w := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	w.turn = new(turn)
	g.turns = append(g.turns, w.turn)
	close(w.woken)
}

// endTurn ends a turn, unless it was replaced, and gives one to the first that waits.
func (g *together) endTurn(t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.turns, t)
	if i < 0 {
		return
	}
	g.turns = slices.Delete(g.turns, i, i+1)
	if len(g.waiting) > 0 {
		g.giveTurn(0)
	}
}

// collect removes from the list, and returns, the requests that the statement of the first one can
// carry along: one of each log.
func (g *together) collect(first *waiter) []*waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return nil
	}
	var others []*waiter
	logs := map[string]bool{string(first.log.key.log): true}
	left := g.waiting[:0]
	for _, w := range g.waiting {
		if key := string(w.log.key.log); logs[key] || len(others) == togetherCount-1 {
			left = append(left, w)
		} else {
			logs[key] = true
			others = append(others, w)
		}
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	return others
}

// sendFor uses the turn of the first request to send all of them, and wakes the others.
func (g *together) sendFor(first *waiter, others []*waiter) {
	g.sendAll(append(others, first))
	for _, w := range others {
		close(w.woken)
	}
	runtime.Gosched() // the callers that were just answered may append more
	g.endTurn(first.turn)
}

// sendAll sends the lines of all requests in one statement, and records the result of each. It first
// waits for a connection: until there is one, the callers can abandon their requests.
func (g *together) sendAll(all []*waiter) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := g.store.pool.Acquire(ctx)
	if err != nil {
		return // nothing was sent: each gets its error alone
	}
	defer conn.Release()
	all = slices.DeleteFunc(slices.Clone(all), func(w *waiter) bool { return !w.startSending() })
	s, byLog := g.store, make(map[string]*waiter, len(all))
	logs, lines := make([][]byte, len(all)), make([][]byte, len(all))
	lives, ats, ends := make([]int64, len(all)), make([]int64, len(all)), make([]int64, len(all))
	for i, w := range all {
		logs[i], lives[i], ats[i], ends[i], lines[i] = w.log.key.log, w.log.life, w.at, w.end, w.lines[0]
		byLog[string(w.log.key.log)] = w
	}
	rows, err := conn.Query(ctx, s.sql(appendTogether), s.tenant, logs, lives, ats, ends, lines)
	var added [][]byte
	if err == nil {
		added, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	}
	for _, log := range added {
		byLog[string(log)].added = err == nil
	}
	for _, w := range all {
		w.err = err
		if !w.added {
			w.record(0, err)
		}
	}
}
