package mcp

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
)

// defaultLimit is how many hits or sessions an answer has, if there is room.
const defaultLimit = 20

type searchRequest struct {
	Query     string `json:"query" jsonschema:"what to search for"`
	Session   string `json:"session,omitempty" jsonschema:"only in this session, by its id"`
	Directory string `json:"directory,omitempty" jsonschema:"only in sessions about this directory or one below it; an absolute path"`
	Project   string `json:"project,omitempty" jsonschema:"only in sessions about a directory of this name"`
	Agent     string `json:"agent,omitempty" jsonschema:"only in sessions held in this program, such as claude-code, codex or gemini-cli"`
	Since     string `json:"since,omitempty" jsonschema:"only what was said since then: a day such as 2026-03-14, or an age such as 7d"`
	Until     string `json:"until,omitempty" jsonschema:"only what was said before then"`
	Newest    bool   `json:"newest,omitempty" jsonschema:"newest first, instead of best first"`
	listed
}

// page are the fields of every request for a part of something.
type page struct {
	Cursor    string `json:"cursor,omitempty" jsonschema:"from the previous answer, to continue there; keep the other arguments"`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema:"the longest answer, from 500 to 20000 tokens; 5000 by default"`
}

// listed are the fields of every request for a list.
type listed struct {
	Limit int `json:"limit,omitempty" jsonschema:"how many hits or sessions at most; 20 by default"`
	page
}

// begin returns an empty answer and where to continue.
func (l *listed) begin() (*answer, cursor, error) {
	if l.Limit < 0 {
		return nil, cursor{}, callError(fmt.Sprintf("limit is %d; it must be 1 or more", l.Limit))
	}
	l.Limit = cmp.Or(l.Limit, defaultLimit)
	return l.page.begin()
}

// begin returns an empty answer and where to continue.
func (p *page) begin() (*answer, cursor, error) {
	c, err := readCursor(p.Cursor)
	if err != nil {
		return nil, c, err
	}
	a, err := newAnswer(p.MaxTokens)
	return a, c, err
}

func (f *face) search(ctx context.Context, r searchRequest) (*answer, error) {
	a, at, err := r.begin()
	if err != nil {
		return nil, err
	}
	find := home.FindRequest{
		Query: r.Query, Session: r.Session, CWD: r.Directory, Project: r.Project, Agent: r.Agent,
		Newest: r.Newest, Limit: r.Limit, Offset: at.Skip,
	}
	now := time.Now()
	if find.Since, err = home.ParseTime("since", r.Since, now); err != nil {
		return nil, err
	}
	if find.Until, err = home.ParseTime("until", r.Until, now); err != nil {
		return nil, err
	}
	found, err := f.home.Search.Find(ctx, find)
	if err != nil {
		return nil, err
	}
	if len(found.Hits) == 0 {
		return nothingFound(a, found, at.Skip), nil
	}
	shown := a.addHits(found.Hits)
	a.head = fmt.Sprintf("Hits %d to %d of %s.", at.Skip+1, at.Skip+shown, ofMatches(found))
	if found.Across {
		a.head += " No text has all of the query; these sessions have it in several texts."
	}
	a.addHint("To read around a hit: read_session with its session, and its entry as at.")
	if next := at.Skip + shown; next < found.Matches {
		a.addHint("%s: the same search with cursor %s", render.Counted(found.Matches-next, "more hit", "more hits"), cursor{Skip: next})
	}
	return a, nil
}

func ofMatches(r *home.FindResult) string {
	if r.Bounded {
		return fmt.Sprintf("the newest %d; there are older ones (narrow the search, for example with until)", r.Matches)
	}
	return fmt.Sprint(r.Matches)
}

// nothingFound suggests what the user may have meant.
func nothingFound(a *answer, r *home.FindResult, skipped int) *answer {
	a.head = "Nothing found."
	if r.Bounded {
		a.head = "Nothing found among the newest texts; to search older ones would take long. Narrow the search, for example with until."
	}
	if skipped > 0 {
		a.head = "No more hits."
		return a
	}
	for _, query := range r.DidYouMean {
		a.add("did you mean: " + query)
	}
	for _, u := range r.Unknown {
		a.add(u.Text(nil))
	}
	a.addHint("Try fewer or other words, or list the sessions with recent_sessions.")
	return a
}

// addHits adds as many of the hits as there is room for, and returns how many. Those of a
// session come together, below what they have in common; the sessions are in the order of
// their first hits.
func (a *answer) addHits(hits []home.Hit) (shown int) {
	var groups [][]string
	of := make(map[string]int)
	for i := range hits {
		h := &hits[i]
		text := hitText(h)
		n, ok := of[h.Session]
		if !ok {
			text = "# " + sessionText(h.Name(), h.Agent, h.CWD, h.Title, h.Updated) + "\n" + text
		}
		if !a.add(text) {
			break
		}
		if !ok {
			n = len(groups)
			of[h.Session], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], a.blocks[i])
		shown++
	}
	a.blocks = slices.Concat(groups...)
	return shown
}

// sessionText returns what an answer says of a session before anything else.
func sessionText(id, agent, dir, title string, updated time.Time, more ...string) string {
	facts := append([]string{"session " + id, agent, dir, when(updated)}, more...)
	facts = slices.DeleteFunc(facts, func(fact string) bool { return fact == "" })
	return render.OneLine(strings.Join(facts, " · "), 0) + "\n  title: " + titleText(title)
}

// hitText returns a hit as text: where it is, and what it says.
func hitText(h *home.Hit) string {
	facts := []string{"entry " + render.ShortID(h.Entry), strings.TrimSpace(cmp.Or(h.Tool, h.Role) + " " + h.Kind), when(h.Time)}
	if !h.Live {
		facts = append(facts, "on a branch that was left")
	}
	return "- " + render.OneLine(strings.Join(facts, " · "), 0) + "\n  " + render.OneLine(h.Snippet, 0)
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func titleText(title string) string { return cmp.Or(render.OneLine(title, 100), render.Untitled) }

type recentRequest struct {
	Directory string `json:"directory,omitempty" jsonschema:"only sessions about this directory or one below it; an absolute path"`
	Project   string `json:"project,omitempty" jsonschema:"only sessions about a directory of this name"`
	Agent     string `json:"agent,omitempty" jsonschema:"only sessions held in this program, such as claude-code, codex or gemini-cli"`
	Tag       string `json:"tag,omitempty" jsonschema:"only sessions with this tag"`
	Since     string `json:"since,omitempty" jsonschema:"only sessions in which something was said since then: a day such as 2026-03-14, or an age such as 7d"`
	listed
}

func (f *face) recent(ctx context.Context, r recentRequest) (*answer, error) {
	a, at, err := r.begin()
	if err != nil {
		return nil, err
	}
	list := home.ListRequest{CWD: r.Directory, Project: r.Project, Agent: r.Agent, Limit: r.Limit, After: at.After}
	if r.Tag != "" {
		list.Tags = []string{r.Tag}
	}
	if list.Since, err = home.ParseTime("since", r.Since, time.Now()); err != nil {
		return nil, err
	}
	found, err := f.home.Sessions.List(ctx, list)
	if err != nil {
		return nil, err
	}
	sessions := found.Sessions[min(at.Skip, len(found.Sessions)):]
	shown := 0
	for i := range sessions {
		if !a.add(listText(&sessions[i])) {
			break
		}
		shown++
	}
	a.head = render.Counted(shown, "session", "sessions") + ", the latest first."
	if shown == 0 {
		a.head = "No sessions."
		for _, u := range found.Unknown {
			a.add(u.Text(nil))
		}
		return a, nil
	}
	a.addHint("read_session reads one, from its end or around an entry.")
	switch {
	case shown < len(sessions):
		a.addHint("More: the same call with cursor %s", cursor{After: at.After, Skip: at.Skip + shown})
	case found.Next != "":
		a.addHint("More: the same call with cursor %s", cursor{After: found.Next})
	}
	return a, nil
}

// listText returns a session as an item of a list.
func listText(s *home.SessionInfo) string {
	more := []string{render.Counted(s.Messages, "message", "messages")}
	if s.Branches > 1 {
		more = append(more, fmt.Sprintf("%d branches", s.Branches))
	}
	if len(s.Tags) > 0 {
		more = append(more, "tags "+strings.Join(s.Tags, ", "))
	}
	return "- " + sessionText(s.ID, s.Agent, s.CWD, s.Title, s.Updated, more...)
}

type fileRequest struct {
	Path      string `json:"path" jsonschema:"the file, relative or absolute, as a tool would be given it"`
	Directory string `json:"directory,omitempty" jsonschema:"only in sessions about this directory or one below it; an absolute path"`
	Since     string `json:"since,omitempty" jsonschema:"only calls since then: a day such as 2026-03-14, or an age such as 7d"`
	listed
}

func (f *face) withFile(ctx context.Context, r fileRequest) (*answer, error) {
	a, at, err := r.begin()
	if err != nil {
		return nil, err
	}
	since, err := home.ParseTime("since", r.Since, time.Now())
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(r.Path) == "" {
		return nil, callError("path is empty; it must name a file")
	}
	find := home.FindRequest{
		Kinds: []string{string(index.KindCall)}, CWD: r.Directory, Since: since, Newest: true, BySession: true, Limit: r.Limit, Offset: at.Skip,
	}
	var found *home.FindResult
	var name string
	for _, name = range namesOf(r.Path) {
		find.Query = `"` + name + `"`
		if found, err = f.home.Search.Find(ctx, find); err != nil {
			return nil, err
		}
		if found.Matches > 0 {
			break
		}
	}
	if found.Matches > 0 && len(found.Hits) == 0 {
		a.head = "No more sessions."
		return a, nil
	}
	if len(found.Hits) == 0 {
		a.head = "No session called a tool with that file. search finds where it was only mentioned."
		return a, nil
	}
	shown := 0
	for i := range found.Hits {
		if !a.add(fileUseText(&found.Hits[i])) {
			break
		}
		shown++
	}
	a.head = fmt.Sprintf("%s called a tool with %q, the latest first.", render.Counted(found.Matches, "session", "sessions"), name)
	a.addHint("To read what was done: read_session with a session, and its entry as at.")
	if next := at.Skip + shown; next < found.Matches {
		a.addHint("%s: the same call with cursor %s", render.Counted(found.Matches-next, "more session", "more sessions"), cursor{Skip: next})
	}
	if found.Bounded {
		a.addHint("There are older calls: directory or since narrow the search.")
	}
	return a, nil
}

// namesOf returns the ways in which a call may name a file, the most exact first: a tool may
// have got an absolute path, or one that is relative to another directory.
func namesOf(file string) []string {
	file = path.Clean(strings.ReplaceAll(strings.ReplaceAll(file, `"`, ""), `\`, "/"))
	names := []string{strings.TrimPrefix(file, "/")}
	dir, base := path.Split(file)
	if parent := path.Base(dir); parent != "." && parent != "/" && parent != ".." {
		names = append(names, parent+"/"+base)
	}
	return append(names, base)
}

// fileUseText returns a session that called tools with a file as text, with the last call.
func fileUseText(h *home.Hit) string {
	calls := render.Counted(h.Hits, "call", "calls") + " of " + strings.Join(h.Tools, ", ")
	return "- " + sessionText(h.Name(), h.Agent, h.CWD, h.Title, h.Time, calls, "the last in entry "+render.ShortID(h.Entry)) +
		"\n  " + render.OneLine(h.Snippet, 200)
}
