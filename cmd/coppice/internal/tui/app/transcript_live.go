package app

import (
	"context"
	"maps"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
)

// tailRows is how many of the last rows a new entry may change: it replaces the drafts of an
// answer with the answer.
const tailRows = 8

// arrivals has something in it when an entry was appended.
type arrivals chan struct{}

// arrived is the message that something was appended.
type arrived struct{ arrivals }

// grown is the end of the path after that.
type grown struct {
	arrivals
	path   int
	result *home.RowsResult
	err    error
}

// rewritten is the message that the session was rewritten, for example by a redaction.
type rewritten struct{}

// follow watches the session for as long as the room is there, or until it is rewritten.
func (b *base) follow(session string) tea.Cmd {
	news := make(arrivals, 1)
	watch := b.call(func(ctx context.Context) tea.Msg {
		defer close(news)
		// The last entry tells us that the watch has begun: the path is read once more then, and
		// nothing is missed in between.
		_, err := b.Home.Entries.Follow(ctx, home.FollowRequest{Session: session, Last: 1}, func(home.Arrival) error {
			select {
			case news <- struct{}{}:
			default: // they are not looked at one by one
			}
			return nil
		})
		switch {
		case home.KindOf(err) == home.KindConflict:
			return rewritten{}
		case err != nil:
			return err
		}
		return nil
	})
	return tea.Batch(watch, b.await(news))
}

// await waits for the next arrival.
func (b *base) await(news arrivals) tea.Cmd {
	return b.call(func(ctx context.Context) tea.Msg {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-news:
			if !open {
				return nil
			}
			return arrived{news}
		}
	})
}

// refresh reads the end of the path again.
func (r *transcript) refresh(news arrivals) tea.Cmd {
	path, q := r.path, r.request(max(r.pages.total-tailRows, 0))
	return r.call(func(ctx context.Context) tea.Msg {
		result, err := r.Home.Entries.Rows(ctx, q)
		return grown{news, path, result, err}
	})
}

// grow shows what was appended. One who is at the end stays there, and everybody else where they
// are.
func (r *transcript) grow(g grown) tea.Cmd {
	switch {
	case g.err != nil:
		return r.failIn(r, g.err)
	case g.path != r.path || !r.known:
		return nil
	}
	atEnd := r.atEnd()
	if r.pages.total > 0 && !r.continuesPath(g.result) {
		if atEnd && r.via == "" {
			return r.reopen("", false)
		}
		return r.reopen(r.entry(), false)
	}
	more := g.result.Total - r.pages.total
	r.leaf, r.pages.total = g.result.Leaf, g.result.Total
	maps.DeleteFunc(r.pages.rows, func(i int, _ *home.Row) bool { return i >= g.result.Total })
	r.tail = nil
	r.remember(g.result)
	r.list.SetCount(g.result.Total)
	r.put(g.result)
	if atEnd {
		r.list.Last()
	} else {
		r.fresh += max(more, 0)
	}
	return nil
}

func (r *transcript) atEnd() bool {
	return r.list.AtEnd() && r.last() >= r.pages.total-1
}

// continuesPath reports whether the end of a path is that of the one that is shown, or of a longer
// one.
func (r *transcript) continuesPath(now *home.RowsResult) bool {
	for i := range now.Rows {
		if row := &now.Rows[i]; r.tail[row.Index] == row.Entry.ID {
			return true
		}
	}
	return false
}
