package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// pollEvery is how often follow --all looks for sessions that changed. Looking
// costs one stat a session; a watch for each would cost a file handle.
const pollEvery = 300 * time.Millisecond

// seen is how far a session has been read.
type seen struct {
	pos      store.Pos
	size     int64
	modified time.Time
}

// followAll follows every session of the store.
func (w *watcher) followAll(ctx context.Context, last int) error {
	known := make(map[string]seen)
	var latest []store.Stat
	for stat, err := range w.store.List(ctx) {
		if err != nil && stat.Name == "" {
			return err
		}
		end, err := w.endOf(ctx, stat.Name)
		if err != nil {
			w.sayError(err) // the others can be followed
			continue
		}
		known[stat.Name] = seen{end, stat.Size, stat.Modified}
		latest = append(latest, stat)
	}
	w.setShort(known)
	if err := w.tellLast(ctx, latest, known, last); err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.poll(ctx, known); err != nil {
			return err
		}
	}
}

func (w *watcher) endOf(ctx context.Context, name string) (store.Pos, error) {
	log, err := w.store.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	end, err := log.End(ctx)
	return end, errors.Join(err, log.Close())
}

// poll prints what is new since the last time.
func (w *watcher) poll(ctx context.Context, known map[string]seen) error {
	for stat, err := range w.store.List(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && stat.Name == "" {
			return err
		}
		was, old := known[stat.Name]
		if old && was.size == stat.Size && was.modified.Equal(stat.Modified) {
			continue
		}
		now := seen{was.pos, stat.Size, stat.Modified}
		if !old {
			delete(w.short, stat.Name)
		}
		now.pos, err = w.tellFrom(ctx, stat.Name, was.pos)
		if err != nil && !errors.Is(err, session.ErrNotExist) { // removed since it was listed
			return err
		}
		known[stat.Name] = now
	}
	return nil
}

// tellFrom prints the entries of a log from a position on, and returns its end.
func (w *watcher) tellFrom(ctx context.Context, name string, from store.Pos) (end store.Pos, err error) {
	log, err := w.store.Open(ctx, name)
	if err != nil {
		return from, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end = from
	for line, err := range log.Forward(ctx, from) {
		if err == nil {
			err = w.tellLine(ctx, name, line)
		}
		if err != nil {
			return end, err
		}
		end = line.Next
	}
	return end, nil
}

// tellLast prints the last entries of all sessions together.
func (w *watcher) tellLast(ctx context.Context, stats []store.Stat, known map[string]seen, n int) error {
	slices.SortFunc(stats, func(a, b store.Stat) int { return b.Modified.Compare(a.Modified) })
	var found []arrival
	for _, stat := range stats[:min(n, len(stats))] { // the last n entries are in the n latest sessions
		log, err := w.store.Open(ctx, stat.Name)
		if err != nil {
			return err
		}
		some, err := w.lastOf(ctx, log, stat.Name, known[stat.Name].pos, n)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		found = append(found, some...)
	}
	slices.SortStableFunc(found, func(a, b arrival) int { return a.entry.Timestamp.Compare(b.entry.Timestamp) })
	for _, one := range found[max(len(found)-n, 0):] {
		if err := w.tell(one); err != nil {
			return err
		}
	}
	return nil
}

// setShort decides how sessions are named.
func (w *watcher) setShort(known map[string]seen) {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	w.short = shortIDs(names)
}

// shortOf is how a session is named. One that began later has its whole name, so
// that no name changes its meaning while it is on the screen.
func (w *watcher) shortOf(name string) string {
	return cmp.Or(w.short[name], oneLine(name, 0))
}

// pad fills text up to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
