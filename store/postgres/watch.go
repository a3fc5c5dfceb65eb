package postgres

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// hub wakes those who watch a log, and those who watch all logs of the store. It detects changes in
// three ways: this program's own appends, at once; notifications from other programs; and a poll of
// all watched logs twice a second. The poll alone would be enough for watched logs, so nothing is
// lost where notifications do not arrive, such as behind a connection pool. Those who watch the
// store rely on notifications, and list the logs themselves if there are none.
//
// An append does not notify anyone itself: NOTIFY in a transaction takes a lock that is global to
// the server. Instead, each program collects its changes and announces them every few milliseconds.
type hub struct {
	store  *Store
	config *pgx.ConnConfig

	changes atomic.Int64 // how often this program has changed a log

	mu           sync.Mutex
	watched      map[string]*watched  // by the log's key
	storeWatches map[*storeWatch]bool // those who watch all logs of the store
	listening    context.Context      // of the connection on which notifications arrive; nil if none do
	unannounced  map[string]bool      // logs to announce to other programs; nil if announce does not run
	stop         func()               // ends poll and listen; nil if there are no watchers
	wg           sync.WaitGroup
}

// watched is a log that someone watches.
type watched struct {
	watchers   int
	changed    chan struct{} // closed and replaced at each change
	life, tail int64         // at the last poll
}

const (
	// The first change is announced after announceFirst, and further ones at intervals of up to
	// announceLast: a notification costs the server as much as an append.
	announceFirst = 5 * time.Millisecond
	announceLast  = 20 * time.Millisecond
	pollEvery     = 500 * time.Millisecond
	// maxAnnounced is how many logs a notification names. It must be shorter than 8,000 bytes.
	maxAnnounced = 200
)

func newHub(s *Store, config *pgx.ConnConfig) *hub {
	return &hub{store: s, config: config, watched: make(map[string]*watched), storeWatches: make(map[*storeWatch]bool)}
}

// channel is the name that the programs on one store notify and listen under.
func (h *hub) channel() string { return "coppice_" + h.store.schema }

// watch returns a function that returns a channel, which is closed at the next change of a log.
func (h *hub) watch(k key) (wake func() <-chan struct{}, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watched[string(k.log)]
	if w == nil {
		w = &watched{changed: make(chan struct{})}
		h.watched[string(k.log)] = w
	}
	w.watchers++
	h.start()
	wake = func() <-chan struct{} {
		h.mu.Lock()
		defer h.mu.Unlock()
		return w.changed
	}
	return wake, func() { h.leave(k, w) }
}

// start starts poll and listen, if they do not run. The caller holds the mutex.
func (h *hub) start() {
	if h.stop == nil && !closed(h.store.done) {
		ctx, cancel := context.WithCancel(context.Background())
		h.stop = cancel
		h.wg.Go(func() { h.poll(ctx) })
		h.wg.Go(func() { h.listen(ctx) })
	}
}

// stopIfUnwatched stops poll and listen if there are no watchers any more. The caller holds the
// mutex.
func (h *hub) stopIfUnwatched() {
	if len(h.watched) == 0 && len(h.storeWatches) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// leave ends one watch.
func (h *hub) leave(k key, w *watched) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.watchers--; w.watchers == 0 {
		delete(h.watched, string(k.log))
	}
	h.stopIfUnwatched()
}

// wake wakes those who watch a log. The caller holds the mutex.
func (h *hub) wake(log string) {
	if w := h.watched[log]; w != nil {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// changed notes that this program has changed a log.
func (h *hub) changed(k key) {
	h.changes.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake(string(k.log))
	if closed(h.store.done) {
		return
	}
	if h.unannounced == nil {
		h.unannounced = make(map[string]bool)
		h.wg.Go(h.announce)
	}
	h.unannounced[string(k.log)] = true
}

// announce notifies other programs of the logs that this one has changed, until no more change. If
// it cannot, the others find the changes by polling.
func (h *hub) announce() {
	for pause := announceFirst; ; pause = min(2*pause, announceLast) {
		select {
		case <-time.After(pause):
		case <-h.store.done: // other programs still need the last changes
		}
		h.mu.Lock()
		logs := make([]string, 0, len(h.unannounced))
		for log := range h.unannounced {
			logs = append(logs, hex.EncodeToString([]byte(log)))
		}
		clear(h.unannounced)
		if len(logs) == 0 {
			h.unannounced = nil
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		for len(logs) > 0 {
			n := min(maxAnnounced, len(logs))
			_ = h.notify(ctx, logs[:n])
			logs = logs[n:]
		}
		cancel()
	}
}

// notify sends a notification. It need not survive a crash, and so no disk has to be waited for.
func (h *hub) notify(ctx context.Context, logs []string) error {
	_, err := h.store.pool.Exec(ctx, `SELECT pg_notify($1, $2), set_config('synchronous_commit', 'off', true)`, h.channel(), strings.Join(logs, " "))
	return err
}

// listen wakes watchers of logs that other programs have changed, until ctx is done.
func (h *hub) listen(ctx context.Context) {
	for ctx.Err() == nil {
		h.listenOnce(ctx)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// listenOnce listens on a connection of its own until that ends.
func (h *hub) listenOnce(ctx context.Context) {
	conn, err := pgx.ConnectConfig(ctx, h.config.Copy())
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// Behind a pool that shares connections (PgBouncer), the connection that listens would soon
	// be used by other programs. Its process in the server is then another than at the beginning.
	var number uint32
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&number); err != nil {
		return
	}
	if number != conn.PgConn().PID() {
		_ = conn.Close(ctx)
		<-ctx.Done()
		return
	}
	if _, err := conn.Exec(ctx, `LISTEN `+h.channel()); err != nil {
		return
	}
	// Only a notification that arrives shows that they do.
	if err := h.notify(ctx, nil); err != nil {
		return
	}
	defer h.notificationsEnd(ctx)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		h.notificationsArrive(ctx)
		var logs [][]byte
		for _, digits := range strings.Fields(n.Payload) {
			if log, err := hex.DecodeString(digits); err == nil {
				logs = append(logs, log)
			}
		}
		h.mu.Lock()
		for _, log := range logs {
			h.wake(string(log))
		}
		h.mu.Unlock()
		h.wakeStoreWatches(ctx, logs)
	}
}

// poll compares all watched logs with what they were, again and again, until ctx is done.
func (h *hub) poll(ctx context.Context) {
	for {
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return
		}
		h.mu.Lock()
		logs := make([][]byte, 0, len(h.watched))
		for log := range h.watched {
			logs = append(logs, []byte(log))
		}
		h.mu.Unlock()
		if len(logs) == 0 {
			continue
		}
		if found, err := h.heads(ctx, logs); err == nil {
			h.compare(logs, found)
		}
	}
}

// heads returns the rows of those of the logs that exist.
func (h *hub) heads(ctx context.Context, logs [][]byte) (map[string]head, error) {
	s := h.store
	rows, err := s.pool.Query(ctx, s.sql(`SELECT log, life, tail FROM coppice.logs WHERE tenant = $1 AND log = ANY ($2) AND slot = 0`), s.tenant, logs)
	if err != nil {
		return nil, err
	}
	found := make(map[string]head)
	var log []byte
	var at head
	_, err = pgx.ForEachRow(rows, []any{&log, &at.life, &at.tail}, func() error {
		found[string(log)] = at
		return nil
	})
	return found, err
}

// compare wakes the watchers of logs that have changed since the last poll.
func (h *hub) compare(logs [][]byte, found map[string]head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, log := range logs {
		w, at := h.watched[string(log)], found[string(log)]
		if w != nil && (w.life != at.life || w.tail != at.tail) {
			w.life, w.tail = at.life, at.tail
			h.wake(string(log))
		}
	}
}

// close ends everything. The store is closed already, so that nothing new begins.
func (h *hub) close() {
	h.mu.Lock()
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	for e := range h.storeWatches {
		e.TellAll() // they find that the store is closed
	}
	h.mu.Unlock()
	h.wg.Wait()
}
