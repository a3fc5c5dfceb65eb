package home

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index"
)

// FindRequest says what to search for. Every filter can also be written into the
// query, as in "retry role:tool since:7d"; both must hold.
type FindRequest struct {
	Query   string    `json:"query"`             // words, "phrases" and filters: see docs/index.md
	Kinds   []string  `json:"kinds,omitempty"`   // of the texts: text, thinking, call, output, summary, title, tag, label, draft or note
	Roles   []string  `json:"roles,omitempty"`   // of those who said it: user, assistant, system, tool
	Tools   []string  `json:"tools,omitempty"`   // in calls and results of these
	Models  []string  `json:"models,omitempty"`  // said by these
	Tags    []string  `json:"tags,omitempty"`    // in sessions that have all of these
	CWD     string    `json:"cwd,omitempty"`     // in sessions about this directory or one below it
	Agent   string    `json:"agent,omitempty"`   // in sessions that were held in this program
	Project string    `json:"project,omitempty"` // in sessions about a directory of this name
	File    string    `json:"file,omitempty"`    // in sessions whose tools touched a file of this name, or whose path ends so
	Session string    `json:"session,omitempty"` // in this conversation, as a person names it: see Resolve
	Since   time.Time `json:"since,omitzero"`    // said at or after this time
	Until   time.Time `json:"until,omitzero"`    // said before this time
	Typing  bool      `json:"typing,omitempty"`  // the query is still being typed: its last word may be the beginning of a longer one
	Live    bool      `json:"live,omitempty"`    // not on abandoned branches
	Newest  bool      `json:"newest,omitempty"`  // newest first, instead of best first

	// BySession finds one hit of each conversation, the first. The limit, the offset and the
	// matches are then about conversations.
	BySession bool `json:"by_session,omitempty"`

	Limit  int `json:"limit,omitempty"`  // how many hits; 0 means 20, and -1 all
	Offset int `json:"offset,omitempty"` // how many of the first hits to skip
}

// Hit is a piece of text that matches.
type Hit struct {
	Session    string    `json:"session"`        // the conversation
	Link       string    `json:"link,omitempty"` // the session that has the entry, if it is another one of the conversation
	Title      string    `json:"title"`
	CWD        string    `json:"cwd,omitempty"`
	Agent      string    `json:"agent"`             // the program in which the conversation was held
	Project    string    `json:"project,omitempty"` // the name of the directory it is about
	Updated    time.Time `json:"updated"`           // when something was last said in it
	Entry      string    `json:"entry"`
	Kind       string    `json:"kind"`
	Role       string    `json:"role,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	Model      string    `json:"model,omitempty"`
	Time       time.Time `json:"time"`
	Live       bool      `json:"live"` // it is on the path to the leaf
	Leaf       string    `json:"leaf"` // the end of its branch
	Score      float64   `json:"score"`
	Snippet    string    `json:"snippet"`
	Highlights [][2]int  `json:"highlights"`      // what matched in the snippet: from, to, in bytes
	Also       []string  `json:"also"`            // other sessions that have the same entry
	Hits       int       `json:"hits,omitempty"`  // of a search by session: how many the conversation has
	Tools      []string  `json:"tools,omitempty"` // of a search by session: the tools of those
}

// Name returns what to open for a hit: the session that has it.
func (h *Hit) Name() string {
	if h.Link != "" {
		return h.Link
	}
	return h.Session
}

// FindResult is the answer to a search.
type FindResult struct {
	Hits    []Hit `json:"hits"`
	Matches int   `json:"matches"` // how many were ranked; what a fork repeats counts once
	Bounded bool  `json:"bounded"` // only a part was looked at, the newest: there may be more, which are older
	// Across is set if no text has all that was asked for: then each conversation has it in
	// several texts, and these are the hits.
	Across bool `json:"across,omitempty"`
	// DidYouMean has queries that the user may have meant, if nothing was found.
	DidYouMean []string `json:"did_you_mean,omitempty"`
	// Unknown has the filters whose values no session has, if nothing was found.
	Unknown []UnknownFilter `json:"unknown,omitempty"`
	// NotFilters has the names of words that look like filters but are not, if nothing was
	// found.
	NotFilters []string `json:"not_filters,omitempty"`
}

// Find searches all messages, thoughts, calls and results.
func (s *Search) Find(ctx context.Context, r FindRequest) (*FindResult, error) {
	return call(ctx, s.home, "search.find", r, s.find)
}

func (s *Search) find(ctx context.Context, r FindRequest) (*FindResult, error) {
	r.CWD, r.File = absolutePaths(ctx, r.CWD, r.File)
	o := index.SearchOptions{
		BySession: r.BySession, Query: r.Query, Elsewhere: isConfined(ctx), Roles: r.Roles, Tools: r.Tools, Models: r.Models, Tags: r.Tags, CWD: r.CWD, Agent: r.Agent, Project: r.Project, File: r.File,
		Since: r.Since, Until: r.Until, Limit: r.Limit, Offset: r.Offset,
	}
	if err := cmp.Or(allOrMore("limit", r.Limit), notNegative("offset", r.Offset)); err != nil {
		return nil, err
	}
	if r.Limit < 0 {
		o.Limit = math.MaxInt32
	}
	for _, kind := range r.Kinds {
		o.Kinds = append(o.Kinds, index.Kind(kind))
	}
	if r.Live {
		o.Branch = index.LiveBranch
	}
	if r.Newest {
		o.Order = index.ByTime
	}
	ctx = s.home.catchUpOnce(ctx)
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	if r.Session != "" {
		found, err := s.home.indexed(ctx, r.Session)
		if err != nil {
			return nil, err
		}
		o.Session = found.ID
	}
	if r.Typing {
		o.Query = index.Typed(r.Query)
	}
	results, err := ix.Search(ctx, o)
	if err != nil {
		return nil, err
	}
	if begun, ok := strings.CutSuffix(o.Query, "*"); ok && len(results.Hits) == 0 && len(results.DidYouMean) == 0 {
		// The beginning of a word is not misspelt, but it may be the whole word.
		o.Query, o.Limit = begun, 1
		if whole, err := ix.Search(ctx, o); err == nil {
			results.DidYouMean = whole.DidYouMean
		}
	}
	found := &FindResult{Hits: make([]Hit, len(results.Hits)), Matches: results.Matches, Bounded: results.Bounded, Across: results.Across, DidYouMean: results.DidYouMean, Unknown: results.Unknown, NotFilters: results.NotFilters}
	for i := range results.Hits {
		found.Hits[i] = newHit(&results.Hits[i])
	}
	return found, nil
}

func newHit(h *index.Hit) Hit {
	link := h.Name
	if link == h.Session {
		link = ""
	}
	ranges := make([][2]int, 0, len(h.Highlights))
	for _, r := range h.Highlights {
		ranges = append(ranges, [2]int{r.Start, r.End})
	}
	return Hit{
		Session: h.Session, Link: link, Title: h.Title, CWD: h.CWD, Agent: h.Agent, Project: index.ProjectOf(h.CWD), Updated: h.Updated.UTC(),
		Entry: h.Entry, Kind: string(h.Kind), Role: h.Role, Tool: h.Tool,
		Model: h.Model, Time: h.Time.UTC(), Live: h.Live, Leaf: h.Leaf, Score: h.Score,
		Snippet: h.Snippet, Highlights: ranges, Also: orEmpty(h.Also), Hits: h.Hits, Tools: h.Tools,
	}
}
