package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// searchFilters are the filters that can be typed, as on the command line.
var searchFilters = index.Filters()

const (
	pageSize     = 100
	foundAtATime = 30 // a screen of them: each takes a while to locate
	// searchAfter is how long a search waits for the next letter. The one that was typed is on the
	// screen by then, and fast typing begins no searches that nobody waits for.
	searchAfter = 25 * time.Millisecond
	// maxGrouped is how many sessions are grouped by project: all of them would have to be read.
	maxGrouped = 1000
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

// asList returns the list that a text asks for, if it has only filters of whole sessions.
func asList(text string, now time.Time) (r home.ListRequest, ok bool) {
	err := r.NarrowBy(text, now)
	return r, err == nil
}

// load reads what the list shows: again, if the question is the same.
func (s *sessions) load() tea.Cmd {
	q := s.question()
	first, last := 0, 0
	if s.shelf.question == q {
		first, last = s.list.Window()
	}
	r, ok := asList(q.text, s.Now())
	r.Roots, r.Nonempty, r.Limit = true, !q.withEmpty, pageSize
	r.Sort, r.Reverse = q.order.by, q.order.reverse
	not := false
	r.Pinned = &not
	fresh := &shelf{question: q, request: r}
	switch {
	case !ok:
		n := foundAtATime
		if s.shelf.question == q {
			n = max(len(s.shelf.fixed), n)
		}
		return s.callOnly(&s.asked, func(ctx context.Context) tea.Msg {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(searchAfter):
			}
			return fresh.search(ctx, s.Home, q.text, n)
		})
	case q.byProject:
		return s.callOnly(&s.asked, func(ctx context.Context) tea.Msg { return fresh.group(ctx, s.Home) })
	}
	pages, asIs := s.shelf.pagesOf(first, max(last, first)), !s.drawn
	return s.callOnly(&s.asked, func(ctx context.Context) tea.Msg { return fresh.read(ctx, s.Home, pages, asIs) })
}

// askSize asks how many sessions there are. All of them have to be looked at for that, so it is
// asked only if the list has changed.
func (s *sessions) askSize() tea.Cmd {
	of := s.shelf
	if of.known {
		return nil
	}
	r := of.request
	r.Limit, r.Total = 1, true
	return s.callOnly(&s.sizes, func(ctx context.Context) tea.Msg {
		found, err := s.Home.Sessions.List(ctx, r)
		if err != nil {
			return nil // the list says what is wrong
		}
		return shelfTotal{of, *found.Total}
	})
}

// discover says once how much there is to import. It comes after the list: many files may have to
// be looked at.
func (a *App) discover() tea.Cmd {
	if !a.Discover {
		return nil
	}
	a.Discover = false
	return func() tea.Msg {
		found, err := a.Home.Transfer.Programs(a.ctx)
		if err != nil {
			return nil // it was not asked for
		}
		news := 0
		for _, p := range found.Programs {
			news += p.New
		}
		return onward(func() tea.Cmd {
			if news > 0 && a.notice == "" {
				a.say("other agents have " + render.Counted(news, "conversation", "conversations") +
					" on this machine, new or changed; :import --all brings them in")
			}
			return nil
		})
	}
}

// loadPage reads a page of the list.
func (s *sessions) loadPage(page int) tea.Cmd {
	of := s.shelf
	if of.isSearch {
		return s.call(func(ctx context.Context) tea.Msg { return of.searchMore(ctx, s.Home, page) })
	}
	r := of.pageRequest(page)
	return s.call(func(ctx context.Context) tea.Msg { return of.readPage(ctx, s.Home, r) })
}

// shelfTotal is how many sessions a list has.
type shelfTotal struct {
	of    *shelf
	total int
}

// shelfChildren are the sessions that came from one.
type shelfChildren struct {
	of    string
	found []home.SessionInfo
}

func (s *sessions) loadChildren(id string) tea.Cmd {
	return s.call(func(ctx context.Context) tea.Msg {
		found, err := s.Home.Sessions.List(ctx, home.ListRequest{Parent: id, Limit: maxGrouped})
		if err != nil {
			return err
		}
		return shelfChildren{id, found.Sessions}
	})
}

// shelfCosts are what sessions cost, by their ids.
type shelfCosts map[string]sessionCost

// sessionCost is what a session cost until some time.
type sessionCost struct {
	updated time.Time
	cost    *home.Usage
}

// costsDue is the message that it is time to ask for costs.
type costsDue struct{}

// costsAfter is how long it takes until costs are asked for, so that scrolling through many pages
// asks for few.
const costsAfter = 100 * time.Millisecond

// askCosts asks in a moment what the sessions on the screen cost. That comes after they are shown:
// it may have to be added up first.
func (s *sessions) askCosts() tea.Cmd {
	if s.costs.busy() || len(s.shelf.unpriced(s.list.Window())) == 0 {
		return nil
	}
	return s.callOnly(&s.costs, func(ctx context.Context) tea.Msg {
		select {
		case <-ctx.Done():
		case <-time.After(costsAfter):
		}
		return costsDue{}
	})
}

func (s *sessions) readCosts() tea.Cmd {
	requests := s.shelf.unpriced(s.list.Window())
	return s.callOnly(&s.costs, func(ctx context.Context) tea.Msg {
		costs := make(shelfCosts)
		for _, r := range requests {
			r.Cost = true
			found, err := s.Home.Sessions.List(ctx, r)
			if err != nil {
				return err
			}
			for i := range found.Sessions {
				info := &found.Sessions[i]
				costs[info.ID] = sessionCost{info.Updated, info.Cost}
			}
		}
		return costs
	})
}

// read reads the pinned sessions, and the pages that are on the screen. If only subagents pass the
// filters, it lists those.
func (f *shelf) read(ctx context.Context, h *home.Home, pages []int, asIs bool) tea.Msg {
	msg := f.readRoots(ctx, h, pages, asIs)
	if msg == tea.Msg(f) && f.count() == 0 && f.question.text != "" && !f.request.All {
		f.request.Roots, f.request.All, f.known = false, true, false
		return f.readRoots(ctx, h, pages, asIs)
	}
	return msg
}

func (f *shelf) readRoots(ctx context.Context, h *home.Home, pages []int, asIs bool) tea.Msg {
	r := f.pinnedRequest()
	r.AsIs = asIs
	pinned, err := h.Sessions.List(ctx, r)
	if err != nil {
		return f.failed(err)
	}
	for i := range pinned.Sessions {
		f.fixed = append(f.fixed, sessionRow{SessionInfo: pinned.Sessions[i], group: "pinned"})
	}
	for _, page := range pages {
		r := f.pageRequest(page)
		r.AsIs = asIs
		found := f.readPage(ctx, h, r)
		if err, ok := found.(error); ok {
			if home.KindOf(err) == home.KindInvalid && page > 0 {
				continue // there are fewer pages now
			}
			return f.failed(err)
		}
		f.add(found.(*shelfPage))
	}
	return f
}

// pinnedRequest returns the request for the pinned sessions.
func (f *shelf) pinnedRequest() home.ListRequest {
	r, is := f.request, true
	r.Pinned = &is
	return r
}

// groupRequest returns the request for the sessions that are grouped.
func (f *shelf) groupRequest() home.ListRequest {
	r := f.request
	r.Pinned, r.Limit = nil, maxGrouped
	return r
}

// pageRequest returns the request for a page.
func (f *shelf) pageRequest(page int) home.ListRequest {
	r := f.request
	r.Page = page + 1
	return r
}

func (f *shelf) readPage(ctx context.Context, h *home.Home, r home.ListRequest) tea.Msg {
	found, err := h.Sessions.List(ctx, r)
	if err != nil {
		return err
	}
	return &shelfPage{of: f, n: r.Page - 1, sessions: found.Sessions, more: found.Next != "", unknown: found.Unknown}
}

// group reads the latest sessions, and puts those of a project together: the project with the
// latest session first.
func (f *shelf) group(ctx context.Context, h *home.Home) tea.Msg {
	found, err := h.Sessions.List(ctx, f.groupRequest())
	if err != nil {
		return f.failed(err)
	}
	dirs := make([]string, len(found.Sessions))
	for i := range found.Sessions {
		dirs[i] = found.Sessions[i].CWD
	}
	names := render.ShortDirs(dirs)
	place := make(map[string]int)
	for i := range found.Sessions {
		info := found.Sessions[i]
		group := "no project"
		if info.CWD != "" {
			group = names.Shown(info.CWD)
		}
		if info.Pinned {
			group = "pinned"
		}
		if _, ok := place[group]; !ok {
			place[group] = len(place)
		}
		f.fixed = append(f.fixed, sessionRow{SessionInfo: info, group: group})
	}
	if _, ok := place["pinned"]; ok {
		place["pinned"] = -1
	}
	slices.SortStableFunc(f.fixed, func(a, b sessionRow) int { return place[a.group] - place[b.group] })
	f.cut = found.Next != ""
	f.nothing = f.wordsFor(found.Unknown)
	f.known = true
	return f
}

// search finds sessions by what was said in them.
func (f *shelf) search(ctx context.Context, h *home.Home, text string, n int) tea.Msg {
	f.isSearch, f.known = true, true
	found, err := h.Search.Find(ctx, home.FindRequest{Query: text, BySession: true, Limit: n})
	if err != nil {
		return f.failed(err)
	}
	f.addHits(found)
	f.nothing = f.wordsFor(found.Unknown)
	for _, words := range found.DidYouMean {
		f.nothing = append(f.nothing, "did you mean: "+words)
	}
	for _, name := range found.NotFilters {
		f.nothing = append(f.nothing, name+": is not a filter; there are "+strings.Join(searchFilters, ", "))
	}
	return f
}

// searchMore continues a search after so many sessions.
func (f *shelf) searchMore(ctx context.Context, h *home.Home, after int) tea.Msg {
	found, err := h.Search.Find(ctx, home.FindRequest{Query: f.question.text, BySession: true, Limit: foundAtATime, Offset: after})
	if err != nil {
		return err
	}
	return &shelfPage{of: f, n: after, hits: found}
}

func (f *shelf) addHits(found *home.FindResult) {
	for i := range found.Hits {
		hit := &found.Hits[i]
		f.fixed = append(f.fixed, sessionRow{hit: hit, SessionInfo: home.SessionInfo{
			ID: hit.Session, Title: hit.Title, CWD: hit.CWD, Agent: hit.Agent, Project: hit.Project, Updated: hit.Updated,
		}})
	}
	f.total = found.Matches
	f.cut, f.across = found.Bounded, found.Across
}

// failed returns the message for a list that cannot be shown. A query that is still being typed
// may make no sense yet, so the room shows that in place of the list.
func (f *shelf) failed(err error) tea.Msg {
	if errors.Is(err, context.Canceled) || !errors.Is(err, session.ErrInvalid) && home.KindOf(err) != home.KindInvalid {
		return err
	}
	f.nothing, f.known = []string{err.Error()}, true
	return f
}

// wordsFor says why nothing was found.
func (f *shelf) wordsFor(unknown []home.UnknownFilter) (words []string) {
	for _, u := range unknown {
		line := "no session has " + u.Filter + ":" + u.Value
		switch {
		case len(u.DidYouMean) > 0:
			line += "; did you mean " + strings.Join(u.DidYouMean, ", ")
		case len(u.Known) > 0:
			line += "; there are " + strings.Join(u.Known, ", ")
		}
		words = append(words, line)
	}
	return words
}
