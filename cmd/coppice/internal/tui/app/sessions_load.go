package app

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
)

// searchFilters are the filters that can be typed, as on the command line.
var searchFilters = index.Filters()

const (
	foundAtATime = 30 // a screen of them: each takes a while to locate
	// searchAfter is how long a search waits for the next letter. The one that was typed is on the
	// screen by then, and fast typing begins no searches that nobody waits for.
	searchAfter = 25 * time.Millisecond
	// maxChildren is how many sessions are unfolded below one.
	maxChildren = 1000
)

// question is what the list answers.
type question struct {
	text                 string
	byProject, withEmpty bool
	order                order
}

func (s *sessions) question() question {
	return question{s.text(), s.byProject, s.withEmpty, s.order}
}

// text is what is searched for. While a filter is typed, the beginning of its value is not.
func (s *sessions) text() string {
	text := s.box.text()
	before, word := lastWord(text)
	name, value, _ := strings.Cut(word, ":")
	if known := s.values[name]; s.inBox && len(known) > 0 && !slices.Contains(known, value) {
		return strings.TrimSpace(before)
	}
	if text == s.given {
		return strings.TrimSpace(text)
	}
	return index.Typed(text)
}

// isList reports whether a text has only filters of whole sessions.
func isList(text string, now time.Time) bool {
	var r home.ListRequest
	return r.NarrowBy(text, now) == nil
}

// load reads what the list shows: again, if the question is the same.
func (s *sessions) load() tea.Cmd {
	q := s.question()
	first, last := 0, 0
	if s.shelf.question == q {
		first, last = s.shelf.window(s.list.Window())
	}
	fresh, asIs := newShelf(q, s.Now(), !isList(q.text, s.Now())), !s.drawn
	s.fresh = fresh
	return s.callOnly(&s.asked, func(ctx context.Context) tea.Msg {
		if fresh.isSearch {
			wait(ctx, searchAfter, nil)
		}
		return fresh.read(ctx, s.Home, first, last, asIs)
	})
}

// shelfTotal is how many sessions a list has.
type shelfTotal struct {
	of    *shelf
	total int
}

// askSize asks how many sessions there are. All of them have to be looked at for that, so it is
// asked only if the list has changed.
func (s *sessions) askSize() tea.Cmd {
	of := s.shelf
	if of.known {
		return nil
	}
	return s.callOnly(&s.sizes, func(ctx context.Context) tea.Msg {
		found, err := of.ask(ctx, s.Home, home.ShelfRequest{Limit: 1, Total: true})
		if err != nil {
			return nil // the list says what is wrong
		}
		return shelfTotal{of, found.total}
	})
}

// loadPage reads a page of the list.
func (s *sessions) loadPage(page int) tea.Cmd {
	of := s.shelf
	return s.call(func(ctx context.Context) tea.Msg {
		found, err := of.ask(ctx, s.Home, home.ShelfRequest{From: page * of.size, Limit: of.size})
		if err != nil {
			return err
		}
		return found
	})
}

// shelfChildren are the sessions that came from one.
type shelfChildren struct {
	of    string
	found []home.SessionInfo
}

func (s *sessions) loadChildren(id string) tea.Cmd {
	return s.call(func(ctx context.Context) tea.Msg {
		found, err := s.Home.Sessions.List(ctx, home.ListRequest{Parent: id, Limit: maxChildren})
		if err != nil {
			return err
		}
		return shelfChildren{id, found.Sessions}
	})
}

// shelfCosts are sessions whose costs were asked for.
type shelfCosts []*sessionRow

// costsDue is the message that it is time to ask for costs.
type costsDue struct{}

// costsAfter is how long it takes until costs are asked for, so that scrolling through many pages
// asks for few.
const costsAfter = 100 * time.Millisecond

// askCosts asks in a moment what the sessions on the screen cost. That comes after they are shown:
// it may have to be added up first.
func (s *sessions) askCosts() tea.Cmd {
	if s.costs.busy() || len(s.shelf.unpriced(s.shelf.window(s.list.Window()))) == 0 {
		return nil
	}
	return s.callOnly(&s.costs, func(ctx context.Context) tea.Msg {
		wait(ctx, costsAfter, nil)
		return costsDue{}
	})
}

// readCosts asks what the sessions on the screen cost, once for each of them. It asks by their
// places in the list. If those have changed since the list was read, it reads the list again.
func (s *sessions) readCosts() tea.Cmd {
	of := s.shelf
	first, last := of.window(s.list.Window())
	unpriced := of.unpriced(first, last)
	if s.costs.busy() || len(unpriced) == 0 {
		return nil
	}
	for _, row := range unpriced {
		row.costAsked = true
	}
	return s.callOnly(&s.costs, func(ctx context.Context) tea.Msg {
		found, err := of.ask(ctx, s.Home, home.ShelfRequest{From: first, Limit: last - first + 1, Cost: true})
		if err != nil {
			return err
		}
		var costs shelfCosts
		for i := range found.rows {
			costs = append(costs, &found.rows[i])
		}
		for _, row := range unpriced {
			if !slices.ContainsFunc(costs, func(c *sessionRow) bool { return c.ID == row.ID }) {
				s.changed()
			}
		}
		return costs
	})
}
