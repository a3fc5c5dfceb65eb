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
	Limit     int    `json:"limit,omitempty" jsonschema:"the maximum number of hits; 20 by default"`
	page
}

// page are the fields of every request for a part of something.
type page struct {
	Cursor    string `json:"cursor,omitempty" jsonschema:"from the previous answer, to continue there; keep the other arguments"`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema:"the longest answer, from 500 to 20000 tokens; 5000 by default"`
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
		Newest: r.Newest, Limit: cmp.Or(r.Limit, defaultLimit), Offset: at.Skip,
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
	shown := 0
	for i := range found.Hits {
		if !a.add(hitText(&found.Hits[i])) {
			break
		}
		shown++
	}
	a.head = fmt.Sprintf("Hits %d to %d of %s.", at.Skip+1, at.Skip+shown, ofMatches(found))
	a.advise("To read around a hit: read_session with its session, and its entry as at.")
	if next := at.Skip + shown; next < found.Matches {
		a.advise("%d more hits: the same search with cursor %s", found.Matches-next, cursor{Skip: next})
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
	if skipped > 0 {
		a.head = "No more hits."
		return a
	}
	for _, query := range r.DidYouMean {
		a.add("did you mean: " + query)
	}
	for _, u := range r.Unknown {
		a.add(unknownText(u))
	}
	a.advise("Try fewer or other words, or list the sessions with recent_sessions.")
	return a
}

func unknownText(u home.UnknownFilter) string {
	text := fmt.Sprintf("no session has %s:%s", u.Filter, u.Value)
	if near := slices.Concat(u.DidYouMean, u.Known); len(near) > 0 {
		text += "; there is " + strings.Join(near, ", ")
	}
	return text
}

// hitText returns a hit as text: where it is, and what it says.
func hitText(h *home.Hit) string {
	facts := []string{"session " + h.Name(), "entry " + render.ShortID(h.Entry), strings.TrimSpace(cmp.Or(h.Tool, h.Role) + " " + h.Kind), when(h.Time)}
	if !h.Live {
		facts = append(facts, "on a branch that was left")
	}
	return "- " + strings.Join(facts, " · ") + "\n  title: " + titleText(h.Title) + "\n  " + render.OneLine(h.Snippet, 0)
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func titleText(title string) string { return cmp.Or(render.OneLine(title, 100), render.Untitled) }

type recentRequest struct {
	Directory string `json:"directory,omitempty" jsonschema:"only sessions about this directory or one below it; an absolute path"`
	Project   string `json:"project,omitempty" jsonschema:"only sessions about a directory of this name"`
	Agent     string `json:"agent,omitempty" jsonschema:"only sessions held in this program, such as claude-code, codex or gemini-cli"`
	Tag       string `json:"tag,omitempty" jsonschema:"only sessions with this tag"`
	Since     string `json:"since,omitempty" jsonschema:"only sessions in which something was said since then: a day such as 2026-03-14, or an age such as 7d"`
	Limit     int    `json:"limit,omitempty" jsonschema:"at most so many sessions; 20 by default"`
	page
}

func (f *face) recent(ctx context.Context, r recentRequest) (*answer, error) {
	a, at, err := r.begin()
	if err != nil {
		return nil, err
	}
	list := home.ListRequest{CWD: r.Directory, Project: r.Project, Agent: r.Agent, Limit: cmp.Or(r.Limit, defaultLimit), After: at.After}
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
		if !a.add(sessionText(&sessions[i])) {
			break
		}
		shown++
	}
	a.head = render.Counted(shown, "session", "sessions") + ", the latest first."
	if shown == 0 {
		a.head = "No sessions."
		for _, u := range found.Unknown {
			a.add(unknownText(u))
		}
		return a, nil
	}
	a.advise("read_session reads one, from its end or around an entry.")
	switch {
	case shown < len(sessions):
		a.advise("More: the same call with cursor %s", cursor{After: at.After, Skip: at.Skip + shown})
	case found.Next != "":
		a.advise("More: the same call with cursor %s", cursor{After: found.Next})
	}
	return a, nil
}

// sessionText returns a session as a line of a list.
func sessionText(s *home.SessionInfo) string {
	facts := []string{"session " + s.ID, s.Agent}
	if s.Project != "" {
		facts = append(facts, "project "+s.Project)
	}
	facts = append(facts, when(s.Updated), render.Counted(s.Messages, "message", "messages"))
	if s.Branches > 1 {
		facts = append(facts, fmt.Sprintf("%d branches", s.Branches))
	}
	if len(s.Tags) > 0 {
		facts = append(facts, "tags "+strings.Join(s.Tags, ", "))
	}
	return "- " + render.OneLine(strings.Join(facts, " · "), 0) + "\n  title: " + titleText(s.Title)
}

type fileRequest struct {
	Path      string `json:"path" jsonschema:"the file, relative or absolute, as a tool would be given it"`
	Directory string `json:"directory,omitempty" jsonschema:"only in sessions about this directory or one below it; an absolute path"`
	Since     string `json:"since,omitempty" jsonschema:"only calls since then: a day such as 2026-03-14, or an age such as 7d"`
	Limit     int    `json:"limit,omitempty" jsonschema:"at most so many sessions; 20 by default"`
	page
}

// maxCalls is how many of the latest calls with a file are inspected.
const maxCalls = 500

func (f *face) withFile(ctx context.Context, r fileRequest) (*answer, error) {
	a, at, err := r.begin()
	if err != nil {
		return nil, err
	}
	since, err := home.ParseTime("since", r.Since, time.Now())
	if err != nil {
		return nil, err
	}
	if r.Limit < 0 {
		return nil, mistake(fmt.Sprintf("limit is %d; it must not be negative", r.Limit))
	}
	var found *home.FindResult
	var name string
	for _, name = range namesOf(r.Path) {
		found, err = f.home.Search.Find(ctx, home.FindRequest{
			Query: `"` + name + `"`, Kinds: []string{string(index.KindCall)}, CWD: r.Directory, Since: since, Newest: true, Limit: maxCalls,
		})
		if err != nil {
			return nil, err
		}
		if len(found.Hits) > 0 {
			break
		}
	}
	if found == nil || len(found.Hits) == 0 {
		a.head = "No session called a tool with that file. search finds where it was only mentioned."
		return a, nil
	}
	touched := touchedBy(found.Hits)
	shown := 0
	for _, t := range touched[min(at.Skip, len(touched)):] {
		if shown == cmp.Or(r.Limit, defaultLimit) || !a.add(t.text()) {
			break
		}
		shown++
	}
	a.head = fmt.Sprintf("%s called a tool with %q, the latest first.", render.Counted(len(touched), "session", "sessions"), name)
	a.advise("To read what was done: read_session with a session, and its entry as at.")
	if next := at.Skip + shown; next < len(touched) {
		a.advise("%d more sessions: the same call with cursor %s", len(touched)-next, cursor{Skip: next})
	}
	if found.Matches > len(found.Hits) || found.Bounded {
		a.advise("There are older calls: directory or since narrow the search.")
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

// touch is a session that called tools with a file.
type touch struct {
	last  *home.Hit
	calls int
	tools []string
}

func touchedBy(hits []home.Hit) (all []*touch) {
	in := make(map[string]*touch)
	for i := range hits {
		h := &hits[i]
		t := in[h.Session]
		if t == nil {
			t = &touch{last: h}
			in[h.Session] = t
			all = append(all, t)
		}
		t.calls++
		if !slices.Contains(t.tools, h.Tool) {
			t.tools = append(t.tools, h.Tool)
		}
	}
	return all
}

func (t *touch) text() string {
	facts := []string{
		"session " + t.last.Name(), render.Counted(t.calls, "call", "calls") + " of " + strings.Join(t.tools, ", "),
		"the last in entry " + render.ShortID(t.last.Entry), when(t.last.Time),
	}
	return "- " + render.OneLine(strings.Join(facts, " · "), 0) + "\n  title: " + titleText(t.last.Title) + "\n  " + render.OneLine(t.last.Snippet, 200)
}
