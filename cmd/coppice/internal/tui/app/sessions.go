package app

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
)

// sessions is the first room: all conversations, or those that a search finds.
type sessions struct {
	base
	list   *list.List
	shelf  *shelf
	fresh  *shelf           // the one that was asked for last
	width  int              // of the list
	rows   map[int][]string // that were drawn since the last message, as if they were not selected
	marked []string

	box    box
	given  string              // what was in it at first
	inBox  bool                // what is typed goes into the box
	values map[string][]string // of filters, to complete them

	byProject bool
	withEmpty bool
	order     order

	asked only // the search or the list
	sizes only // how many there are
	costs only
	round int           // of looking for what is new
	news  chan struct{} // has something in it when the home has changed
	drawn bool          // something was shown

	card cardPane
	pane
}

func newSessions(a *App) *sessions {
	s := &sessions{base: newBase(a), shelf: newShelf(question{}, time.Time{}, false), values: make(map[string][]string)}
	s.list = list.New(s.row)
	return s
}

// newSessionsFor shows the sessions that a search finds.
func newSessionsFor(a *App, search string) *sessions {
	s := newSessions(a)
	s.given = search
	s.box.set(search)
	return s
}

func (s *sessions) title() string { return "sessions" }

// selected returns the row of the selected session, or nil.
func (s *sessions) selected() *sessionRow { return s.shelf.row(s.list.Cursor()) }

func (s *sessions) session() string {
	if row := s.selected(); row != nil {
		return row.ID
	}
	return ""
}

// chosen returns the sessions that an action is about: the marked ones, or else the selected one.
func (s *sessions) chosen() []string {
	if len(s.marked) > 0 {
		return s.marked
	}
	if id := s.session(); id != "" {
		return []string{id}
	}
	return nil
}

func (s *sessions) typing() bool { return s.inBox }

// enter reads the list again. What is selected stays selected.
func (s *sessions) enter() tea.Cmd {
	s.round++
	s.card.forget()
	var listen tea.Cmd
	if s.news == nil {
		s.news = make(chan struct{}, 1)
		listen = s.listen()
	}
	return tea.Batch(s.load(), s.look(), s.checkMarks(), listen)
}

// marksGone are marked sessions that are not in the home any more.
type marksGone []string

// checkMarks looks for marked sessions that are gone: nothing can be done with them.
func (s *sessions) checkMarks() tea.Cmd {
	marked := s.marked
	if len(marked) == 0 {
		return nil
	}
	return s.call(func(ctx context.Context) tea.Msg { return marksGone(s.missing(ctx, marked)) })
}

// look looks for what is new when something has changed in the home, as long as the room is in
// front. Reading a page costs as much as what has changed, whatever the size of the home.
func (s *sessions) look() tea.Cmd {
	round := s.round
	return s.call(func(ctx context.Context) tea.Msg {
		wait(ctx, lookEvery, nil)
		wait(ctx, lookSeldom, s.news)
		return look(round)
	})
}

// listen notes that something has changed in the home, as long as the room is there.
func (s *sessions) listen() tea.Cmd {
	return s.call(func(ctx context.Context) tea.Msg {
		for ctx.Err() == nil {
			_ = s.Home.Changes(ctx, s.changed) // the list says what is wrong
			wait(ctx, lookEvery, nil)
			s.changed()
		}
		return nil
	})
}

func (s *sessions) changed() {
	select {
	case s.news <- struct{}{}:
	default: // it will be looked at anyway
	}
}

const (
	lookEvery  = 2 * time.Second
	lookSeldom = time.Minute
)

func wait(ctx context.Context, d time.Duration, news <-chan struct{}) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-news:
	case <-late.C:
	}
}

type look int

func (s *sessions) update(msg tea.Msg) tea.Cmd {
	s.rows = nil
	switch msg := msg.(type) {
	case look:
		if int(msg) != s.round || !s.shows(s) || s.ctx.Err() != nil {
			s.changed() // what ended this wait is for the one that began later
			return nil
		}
		if s.asked.busy() || s.sizes.busy() || s.card.asked.busy() {
			s.changed()
			return s.look() // asking again would begin from the beginning
		}
		return tea.Batch(s.load(), s.look(), s.checkMarks())
	case marksGone:
		s.marked = slices.DeleteFunc(slices.Clone(s.marked), func(id string) bool { return slices.Contains(msg, id) })
	case *shelf:
		if msg != s.fresh { // it was overtaken
			return nil
		}
		s.put(msg)
		if !s.drawn { // it may be old
			s.drawn = true
			return tea.Batch(s.moved(), s.load())
		}
		return tea.Batch(s.moved(), s.askSize())
	case *shelfRows:
		if msg.of == s.shelf {
			s.shelf.add(msg)
			s.list.SetCount(s.shelf.count())
		}
	case shelfTotal:
		if msg.of == s.shelf {
			s.shelf.total, s.shelf.known = msg.total, true
			s.list.SetCount(s.shelf.count())
		}
	case shelfChildren:
		s.shelf.unfold(msg.of, msg.found)
		s.list.SetCount(s.shelf.count())
	case costsDue:
		return s.readCosts()
	case shelfCosts:
		s.shelf.price(msg)
		return s.askCosts() // of what came since
	case filterValues:
		s.values[msg.filter] = msg.values
		s.suggest()
	case cardFound:
		s.card.put(msg)
		return nil
	case wantedNow:
		return s.readWanted(wanted(msg))
	case tea.KeyPressMsg, tea.PasteMsg:
		if s.inBox {
			return s.edit(msg)
		}
		return nil
	}
	return s.moved()
}

// put shows a list that was read. The selected session stays where it is on the screen.
func (s *sessions) put(found *shelf) {
	before, had := s.session(), s.list.Cursor()
	same := s.shelf.question == found.question
	if same {
		found.keep(s.shelf)
	}
	s.shelf = found
	s.list.SetCount(found.count())
	at := found.find(before)
	first, _ := s.list.Window()
	switch {
	case !same:
		s.list.First()
	case at < 0 || at == had:
	case first == 0:
		s.list.Select(at)
	default:
		s.list.Shift(at - had)
		s.list.SetCount(found.count())
	}
}

// moved asks for what the screen needs now: sessions that are not in memory, and the card.
func (s *sessions) moved() tea.Cmd {
	s.rows = nil
	var cmds []tea.Cmd
	for _, page := range s.shelf.want(s.shelf.window(s.list.Window())) {
		cmds = append(cmds, s.loadPage(page))
	}
	return tea.Batch(append(cmds, s.card.follow(s), s.showBeside(s, &s.pane, s.wanted()), s.askCosts())...)
}

func (s *sessions) keys() []key {
	row := s.selected()
	nothing := ""
	if row == nil {
		nothing = "nothing is selected"
	}
	var keys []key
	for _, k := range listKeys(s.list) {
		move := k.do
		k.do = func() tea.Cmd { move(); return s.moved() }
		if s.inBox && k.keys[0] == "up" && s.list.Cursor() <= 0 && len(s.searches.lines) > 0 {
			k.help, k.do = "an earlier search", s.recall
		}
		keys = append(keys, k)
	}
	open := key{keys: []string{"enter"}, help: "open", why: nothing, do: s.openSelected}
	if s.inBox && isList(s.text(), s.Now()) { // nothing was looked for in them
		open = key{keys: []string{"enter"}, help: "to the list", group: windows, do: s.leaveBox}
	}
	keys = append(keys, open)
	if s.inBox {
		return append(keys, key{keys: []string{"tab"}, help: "complete, or to the list", do: s.complete},
			key{keys: []string{"esc"}, help: "leave the search", do: s.clear})
	}
	if s.box.text() != s.given || len(s.marked) > 0 {
		keys = append(keys, key{keys: []string{"esc"}, help: s.escapes(), do: s.clear})
	}
	keys = append(keys, key{keys: []string{"/"}, help: "search", group: reading, do: s.search})
	fold := s.foldKey(row)
	if fold.why == "" {
		keys = append(keys, fold)
	}
	keys = append(keys,
		key{keys: []string{"t"}, help: "tree", group: windows, why: nothing, do: func() tea.Cmd { return s.open(newTree(s.App, row.ID, "")) }},
		key{keys: []string{"x"}, help: "context", group: windows, why: nothing, do: func() tea.Cmd { return s.open(newContext(s.App, row.ID, "")) }},
	)
	if s.hasCompanion() {
		keys = append(keys, key{keys: []string{"tab"}, help: "to the conversation", group: windows, why: nothing, do: s.openSelected})
	} else {
		keys = append(keys, key{keys: []string{"tab"}, help: "card", group: windows, why: nothing, do: s.openCard})
	}
	for _, k := range s.actions(s.chosen()) {
		if do := k.do; k.keys[0] == "delete" {
			k.do = func() tea.Cmd { s.marked = nil; return do() } // they are gone
		}
		keys = append(keys, k)
	}
	if fold.why != "" {
		keys = append(keys, fold)
	}
	return append(keys,
		key{keys: []string{"i"}, help: "card", group: windows, why: nothing, rare: !s.hasCompanion(), do: s.openCard},
		key{keys: []string{"m"}, help: "mark", group: acting, why: nothing, do: s.mark},
		key{keys: []string{"b"}, help: s.otherGroups(), do: s.regroup},
		key{keys: []string{"S"}, help: "sort", why: s.whyNotSort(), do: s.askSort},
		key{keys: []string{"e"}, help: s.otherEmpty(), do: s.switchEmpty},
		key{keys: []string{"$"}, help: "stats", group: windows, do: func() tea.Cmd { return s.open(newStats(s.App, "")) }},
		key{keys: []string{"d"}, help: "see the trash", group: windows, do: func() tea.Cmd { return s.open(newTrash(s.App)) }},
	)
}

func (s *sessions) escapes() string {
	if s.box.text() == s.given {
		return "clear marks"
	}
	return "leave the search"
}

// panesFrom implements guide.
func (s *sessions) panesFrom() int { return paneColumns }

// hasCompanion reports whether the conversation is beside the list.
func (s *sessions) hasCompanion() bool { return s.App.width >= paneColumns }

func (s *sessions) openCard() tea.Cmd { return s.open(newCard(s.App, s.session())) }

// wanted is what is read in the selected session.
func (s *sessions) wanted() wanted {
	row := s.selected()
	switch {
	case row == nil:
		return wanted{}
	case row.hit != nil:
		return wanted{row.hit.Name(), row.hit.Entry, matched(row.hit)}
	}
	return wanted{session: row.ID}
}

func (s *sessions) openSelected() tea.Cmd {
	s.inBox = false
	s.searches.add(s.box.text())
	w := s.wanted()
	if s.conversation == nil || s.want != w || s.pane.asked.busy() {
		s.begin(&s.pane, w)
	}
	return s.open(s.conversation)
}

// matched returns the first text in a hit that matched, so that the search can go on from there.
func matched(hit *home.Hit) string {
	if len(hit.Highlights) == 0 {
		return ""
	}
	h := hit.Highlights[0]
	return hit.Snippet[h[0]:h[1]]
}

// foldKey shows or hides what came from a session.
func (s *sessions) foldKey(row *sessionRow) key {
	k := key{keys: []string{"space"}, help: "unfold", group: reading}
	switch {
	case row == nil || row.Forks+row.Subagents == 0:
		k.why = "no fork or subagent came from it"
	case s.shelf.isOpen(row.ID):
		k.help = "fold"
		k.do = func() tea.Cmd {
			s.shelf.fold(row.ID)
			s.list.SetCount(s.shelf.count())
			return s.moved()
		}
	default:
		k.do = func() tea.Cmd { return s.loadChildren(row.ID) }
	}
	return k
}

func (s *sessions) mark() tea.Cmd {
	id := s.session()
	if at := slices.Index(s.marked, id); at >= 0 {
		s.marked = slices.Delete(slices.Clone(s.marked), at, at+1)
	} else {
		s.marked = append(slices.Clone(s.marked), id)
	}
	s.list.Move(1)
	return s.moved()
}

func (s *sessions) otherGroups() string {
	if s.byProject {
		return "by day"
	}
	return "by project"
}

func (s *sessions) regroup() tea.Cmd {
	s.byProject = !s.byProject
	return s.load()
}

func (s *sessions) otherEmpty() string {
	if s.withEmpty {
		return "hide empty ones"
	}
	return "show empty ones"
}

func (s *sessions) switchEmpty() tea.Cmd {
	s.withEmpty = !s.withEmpty
	return s.load()
}

func (s *sessions) wheel(x, y, rows int) tea.Cmd {
	s.list.Scroll(rows)
	return s.moved()
}

func (s *sessions) click(x, y int) tea.Cmd {
	if y == 0 {
		return s.search()
	}
	at := s.list.At(y - 1)
	if at < 0 || x >= s.width {
		return nil
	}
	if at == s.list.Cursor() && s.selected() != nil {
		return s.openSelected()
	}
	s.list.Select(at)
	return s.moved()
}

// search begins to type what to look for.
func (s *sessions) search() tea.Cmd {
	s.inBox = true
	s.searches.rewind()
	s.box.set(s.box.text())
	return nil
}

// clear goes back to all sessions.
func (s *sessions) clear() tea.Cmd {
	s.inBox = false
	s.searches.add(s.box.text())
	if s.box.text() == s.given {
		s.marked = nil
		return nil
	}
	s.box.set(s.given)
	return s.load()
}

// recall puts an earlier search into the box, and after the first one an empty one.
func (s *sessions) recall() tea.Cmd {
	s.box.set(s.searches.older())
	s.suggest()
	return s.load()
}

// edit types into the box. The list follows.
func (s *sessions) edit(msg tea.Msg) tea.Cmd {
	before := s.box.text()
	s.box.update(msg)
	if s.box.text() == before {
		return nil
	}
	s.suggest()
	return tea.Batch(s.load(), s.askValues())
}

// complete completes the filter that is typed, or else goes from the box to the list.
func (s *sessions) complete() tea.Cmd {
	if s.box.accept() {
		s.suggest()
		return tea.Batch(s.load(), s.askValues())
	}
	return s.leaveBox()
}

// leaveBox goes from the box to the list. What was typed is then complete.
func (s *sessions) leaveBox() tea.Cmd {
	s.inBox = false
	s.searches.add(s.box.text())
	if s.question() == s.shelf.question {
		return nil
	}
	return s.load()
}

// lastWord returns what is before the word that is typed, and that word.
func lastWord(text string) (before, word string) {
	at := strings.LastIndexByte(text, ' ') + 1
	return text[:at], text[at:]
}

// suggest offers the filters that the word in the box may become.
func (s *sessions) suggest() {
	before, word := lastWord(s.box.text())
	var offers []string
	if name, _, ok := strings.Cut(word, ":"); ok {
		for _, value := range s.values[name] {
			offers = append(offers, before+name+":"+value+" ")
		}
	} else if word != "" {
		for _, name := range searchFilters {
			offers = append(offers, before+name+":")
		}
	}
	s.box.suggest(offers)
}

// filterValues are the values of a filter.
type filterValues struct {
	filter string
	values []string
}

// askValues asks for the values of the filter that is typed.
func (s *sessions) askValues() tea.Cmd {
	_, word := lastWord(s.box.text())
	name, _, ok := strings.Cut(word, ":")
	if _, known := s.values[name]; !ok || known {
		return nil
	}
	s.values[name] = nil
	return s.call(func(ctx context.Context) tea.Msg {
		found, err := s.Home.Sessions.FilterValues(ctx, home.FilterValuesRequest{Filter: name})
		if err != nil {
			return err
		}
		return filterValues{name, found.Values}
	})
}
