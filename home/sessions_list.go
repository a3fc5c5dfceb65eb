package home

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// SessionInfo is what a list says about a conversation: a session, or several that
// continue each other, in which case the counts cover all of them.
type SessionInfo struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"` // of its log in the store: the id, unless the file was renamed
	Key          string    `json:"key,omitempty"`
	Title        string    `json:"title"` // its name, or else what the user said first; never shortened
	Named        bool      `json:"named"` // a user gave it that name
	Tags         []string  `json:"tags"`
	CWD          string    `json:"cwd,omitempty"`
	Agent        string    `json:"agent"`             // the program in which it was held
	Project      string    `json:"project,omitempty"` // the name of the directory it is about
	Created      time.Time `json:"created"`
	Updated      time.Time `json:"updated"` // when something was last said
	Messages     int       `json:"messages"`
	Entries      int       `json:"entries"`
	Branches     int       `json:"branches"`
	Tokens       int64     `json:"tokens,omitempty"`         // not in JSON if they were not counted; those of subagents are not included
	TokensFrom   string    `json:"tokens_from,omitempty"`    // who counted them: "reported" or "recorded"
	Context      int64     `json:"context_tokens,omitempty"` // at its leaf, when the provider last said so
	Size         int64     `json:"size"`                     // in bytes, in the store
	Models       []Count   `json:"models"`
	Tools        []Count   `json:"tools"`
	Parent       string    `json:"parent,omitempty"`
	Relation     string    `json:"relation,omitempty"` // to the parent: fork, continuation, recovery or subagent
	Continuation int       `json:"continuation_index,omitempty"`
	ContinuedTo  string    `json:"continued_to,omitempty"`
	Links        int       `json:"links"`                  // how many sessions the conversation has
	Missing      []string  `json:"missing"`                // those of them that are not there
	Conversation string    `json:"conversation,omitempty"` // for one of several sessions: the conversation's id
	Subagents    int       `json:"subagents"`              // how many sessions its tool calls started
	Forks        int       `json:"forks"`                  // how many were forked from it, or recovered
	Cost         *Usage    `json:"cost,omitempty"`         // if the list was asked for it
	Pinned       bool      `json:"pinned"`
	Archived     bool      `json:"archived"`
	Leaf         string    `json:"leaf"`
	Problems     int       `json:"problems"` // faults found while reading it
}

// Count is how often something occurs: Name is what, Count (an int64) how often.
type Count = index.Count

func sessionInfo(s *index.Session) SessionInfo {
	return SessionInfo{
		ID: s.ID, Name: s.Name, Key: s.Key, Title: s.Title, Named: s.Named, Tags: orEmpty(s.Tags), CWD: s.CWD, Agent: s.Agent, Project: s.Project,
		Created: s.Created.UTC(), Updated: s.Updated.UTC(), Messages: s.Messages, Entries: s.Entries,
		Branches: s.Branches, Tokens: s.Tokens, TokensFrom: tokensFrom(s.Tokens, s.Reported), Context: s.Context, Size: s.Size,
		Models: orEmpty(s.Models), Tools: orEmpty(s.Tools),
		Parent: s.Parent, Relation: s.Relation, Continuation: s.Continuation, ContinuedTo: s.ContinuedTo,
		Links: max(s.Links, 1), Missing: orEmpty(s.Missing), Conversation: s.Conversation, Subagents: s.Subagents, Forks: s.Forks,
		Pinned: s.Pinned, Archived: s.Archived, Leaf: s.Leaf, Problems: s.Problems,
	}
}

// orEmpty turns a nil list into an empty one, so that JSON never has null in its place.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return slices.Clone(list)
}

// ListRequest says which conversations to list, and in which order. The zero value
// lists the 50 most recently active ones.
type ListRequest struct {
	Sort    string `json:"sort,omitempty"`    // by updated, created, title, messages, tokens or size; "" is updated
	Reverse bool   `json:"reverse,omitempty"` // earliest and smallest first, and titles from Z to A
	Limit   int    `json:"limit,omitempty"`   // how many; 0 means 50, and -1 all
	Page    int    `json:"page,omitempty"`    // which page of that many; 1 is the first, and 0 means 1
	After   string `json:"after,omitempty"`   // the next of the page before: continues there, even if the beginning has changed since

	Links bool `json:"links,omitempty"` // list sessions that continue each other one by one
	All   bool `json:"all,omitempty"`   // include subagents
	Roots bool `json:"roots,omitempty"` // leave out forks whose parent is there, too
	Cost  bool `json:"cost,omitempty"`  // say what each cost
	Total bool `json:"total,omitempty"` // say how many there are on all pages

	// Filters. The zero value of each lets everything pass.

	Filter   string    `json:"filter,omitempty"`   // filters in the form of a search: agent:codex since:7d
	Nonempty bool      `json:"nonempty,omitempty"` // only those with messages
	Tags     []string  `json:"tags,omitempty"`     // only those that have all of these
	CWD      string    `json:"cwd,omitempty"`      // only those about this directory or one below it
	Agent    string    `json:"agent,omitempty"`    // only those that were held in this program
	Project  string    `json:"project,omitempty"`  // only those about a directory of this name, or whose path ends so
	File     string    `json:"file,omitempty"`     // only those whose tools touched a file of this name, or whose path ends so
	Key      string    `json:"key,omitempty"`      // only the one that has this key
	Parent   string    `json:"parent,omitempty"`   // only those that came from this session, as a person names it
	Relation string    `json:"relation,omitempty"` // only those that have this relation to their parent
	Pinned   *bool     `json:"pinned,omitempty"`   // only those that are pinned, or only those that are not
	Archived *bool     `json:"archived,omitempty"` // only those that are archived, or only those that are not
	Since    time.Time `json:"since,omitzero"`     // only those with a message at or after this time
	Until    time.Time `json:"until,omitzero"`     // only those without messages since this time
}

// Narrow adds a filter in the form of a search: agent:codex, project:NAME, tag:NAME, file:NAME,
// cwd:DIR, since:7d, until:2026-03, or by the other names that index.FilterOf knows. Anything
// else is session.ErrInvalid, including filters of a search that are about single texts, such as
// kind:output.
func (r *ListRequest) Narrow(filter string, now time.Time) error {
	name, value, ok := strings.Cut(filter, ":")
	if !ok || value == "" {
		return session.Invalidf("%q is not a filter; there are agent:NAME, project:NAME, tag:NAME, file:NAME, cwd:DIR, since:TIME and until:TIME", filter)
	}
	kind, _ := index.FilterOf(name, value)
	switch kind {
	case "agent":
		r.Agent = value
	case "project":
		r.Project = value
	case "tag":
		r.Tags = append(slices.Clip(r.Tags), value)
	case "file":
		r.File = value
	case "cwd":
		r.CWD = value
	case "since", "until":
		at, err := ParseTime(kind, value, now)
		if err != nil {
			return err
		}
		if kind == "since" {
			r.Since = at
		} else {
			r.Until = at
		}
	default:
		return session.Invalidf("%s: is not a filter of a list; there are agent, project, tag, file, cwd, since and until", name)
	}
	return nil
}

// NarrowBy adds the filters of a text, one after the other. A value may have spaces if it is in
// quotes: project:"two words".
func (r *ListRequest) NarrowBy(text string, now time.Time) error {
	quoted := false
	for _, filter := range strings.FieldsFunc(text, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return c == ' ' && !quoted
	}) {
		if name, value, ok := strings.Cut(filter, `:"`); ok {
			filter = name + ":" + strings.TrimSuffix(value, `"`)
		}
		if err := r.Narrow(filter, now); err != nil {
			return err
		}
	}
	return nil
}

// ListResult is a page of a list.
type ListResult struct {
	Sessions []SessionInfo `json:"sessions"`
	Next     string        `json:"next,omitempty"`  // for After; "" at the end
	Total    *int          `json:"total,omitempty"` // of all pages, if that was asked for
	// Unknown has the filters whose values no session has, if the list is empty.
	Unknown []UnknownFilter `json:"unknown,omitempty"`
}

// UnknownFilter is a filter value that no session has. Filter and Value are what was asked
// for, DidYouMean has the values that may have been meant, and Known some that there are if
// none is near.
type UnknownFilter = index.Unknown

const defaultLimit = 50

// sorts are the orders of a list. The greatest comes first, except among titles.
var sorts = []index.Sort{index.ByUpdated, index.ByCreated, index.ByTitle, index.ByMessages, index.ByTokens, index.BySize}

// relations are the possible relations of a session to its parent.
var relations = []string{session.RelationFork, session.RelationContinuation, session.RelationRecovery, session.RelationSubagent}

func (r *ListRequest) options() (o index.ListOptions, err error) {
	if r.Sort == "" {
		r.Sort = string(index.ByUpdated)
	}
	desc := r.Sort != string(index.ByTitle)
	if err := allOrMore("limit", r.Limit); err != nil {
		return o, err
	}
	switch {
	case !slices.Contains(sorts, index.Sort(r.Sort)):
		return o, wrong("sort", "{sort} is %q; it must be one of %s", r.Sort, strings.Join(asTexts(sorts), ", "))
	case r.Relation != "" && !slices.Contains(relations, r.Relation):
		return o, wrong("relation", "{relation} is %q; it must be one of %s", r.Relation, strings.Join(relations, ", "))
	case r.Page < 0:
		return o, wrong("page", "{page} is %d; the first page is 1", r.Page)
	case r.Page > 1 && r.Limit < 0:
		return o, wrong("page", "{page} is %d, but without a limit there is only page 1", r.Page)
	case r.Page > 1 && r.After != "":
		return o, exclude("page", "after")
	}
	offset := 0
	if r.Page > 1 {
		size := cmp.Or(r.Limit, defaultLimit)
		offset = min(r.Page-1, math.MaxInt/size) * size
	}
	return index.ListOptions{
		Sort: index.Sort(r.Sort), Desc: desc != r.Reverse, Limit: r.Limit, Offset: offset, After: r.After,
		// A conversation as a whole continues nothing; only its sessions do.
		Links: r.Links || r.Relation == session.RelationContinuation,
		Fold:  !r.All && r.Parent == "" && r.Relation == "",
		Roots: r.Roots, Nonempty: r.Nonempty,
		Tags: r.Tags, CWD: r.CWD, Agent: r.Agent, Project: r.Project, File: r.File, Key: r.Key, Parent: r.Parent, Relation: r.Relation,
		Pinned: r.Pinned, Archived: r.Archived, Since: r.Since, Until: r.Until,
	}, nil
}

// List lists conversations.
func (s *Sessions) List(ctx context.Context, r ListRequest) (*ListResult, error) {
	return call(ctx, s.home, "sessions.list", r, s.list)
}

func (s *Sessions) list(ctx context.Context, r ListRequest) (*ListResult, error) {
	if err := r.NarrowBy(r.Filter, time.Now()); err != nil {
		return nil, err
	}
	r.CWD, r.File = absolutePaths(ctx, r.CWD, r.File)
	o, err := r.options()
	if err != nil {
		return nil, err
	}
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	if r.Parent != "" {
		// If the parent no longer exists, use the name unresolved: its children
		// still have it.
		parent, err := s.home.indexed(ctx, r.Parent)
		switch {
		case err == nil:
			o.Parent = parent.ID
		case !errors.Is(err, session.ErrNotExist):
			return nil, err
		}
	}
	list, next, err := ix.List(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && r.Page > 1 {
		if err := pageBeyondEnd(ctx, ix, o, &r); err != nil {
			return nil, err
		}
	}
	result := &ListResult{Sessions: make([]SessionInfo, len(list)), Next: next}
	for i := range list {
		result.Sessions[i] = sessionInfo(&list[i])
	}
	if r.Cost {
		if err := addCosts(ctx, ix, result.Sessions, func(s *SessionInfo) *SessionInfo { return s }); err != nil {
			return nil, err
		}
	}
	if r.Total {
		total, err := ix.Count(ctx, o)
		if err != nil {
			return nil, err
		}
		result.Total = &total
	}
	if len(list) == 0 {
		result.Unknown, err = ix.UnknownFilters(ctx, o)
	}
	return result, err
}

// addCosts adds its cost to each conversation of a list.
func addCosts[T any](ctx context.Context, ix *index.Index, list []T, info func(*T) *SessionInfo) error {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = info(&list[i]).ID
	}
	costs, err := ix.Spent(ctx, ids)
	for i := range list {
		cost := costs[ids[i]]
		info(&list[i]).Cost = &cost
	}
	return err
}

// usageOf returns what a conversation cost.
func usageOf(ctx context.Context, ix *index.Index, id string) (*Usage, error) {
	stats, err := ix.Stats(ctx, index.StatsOptions{Session: id})
	if err != nil {
		return nil, err
	}
	return &stats.Total, nil
}

// pageBeyondEnd returns the error for a page after the last one. It is nil if there is nothing to
// list at all.
func pageBeyondEnd(ctx context.Context, ix *index.Index, o index.ListOptions, r *ListRequest) error {
	// There is something at every offset below some number, and nothing from there on: search
	// for that number.
	count, end := 0, o.Offset
	size := cmp.Or(r.Limit, defaultLimit)
	for o.Limit = 1; count < end; {
		o.Offset = count + (end-count)/2
		one, _, err := ix.List(ctx, o)
		if err != nil {
			return err
		}
		if len(one) > 0 {
			count = o.Offset + 1
		} else {
			end = o.Offset
		}
	}
	switch pages := count/size + min(count%size, 1); pages {
	case 0:
		return nil
	case 1:
		return wrong("page", "{page} is %d, but there is only one page", r.Page)
	default:
		return wrong("page", "{page} is %d, but there are only %d pages", r.Page, pages)
	}
}

// Get returns what a list says about the conversation that a person named by any of its
// sessions, even by one that is missing.
func (s *Sessions) Get(ctx context.Context, r SessionRequest) (*SessionInfo, error) {
	return call(ctx, s.home, "sessions.get", r, s.get)
}

func (s *Sessions) get(ctx context.Context, r SessionRequest) (*SessionInfo, error) {
	found, err := s.home.indexed(s.home.catchUpOnce(ctx), r.Session)
	if err != nil {
		return nil, err
	}
	info := sessionInfo(found)
	return &info, nil
}

// indexed finds the conversation that a person named in the index.
func (h *Home) indexed(ctx context.Context, given string) (*index.Session, error) {
	ix, err := h.index(ctx)
	if err != nil {
		return nil, err
	}
	name, err := h.resolveConversation(ctx, given)
	if err != nil {
		return nil, err
	}
	found, err := ix.Conversation(ctx, name)
	if errors.Is(err, session.ErrNotExist) {
		return nil, &session.Error{
			Op: "find session", Name: name, Kind: session.ErrNotExist,
			Err: errors.New("it cannot be read"), Hint: "check the session",
		}
	}
	return &found, err
}

// FilterValuesRequest names a filter of a list or a search, such as agent or tag.
type FilterValuesRequest struct {
	Filter string `json:"filter"` // agent, project, tag, file, cwd, model or tool; another one has no values
}

// FilterValuesResult has the values of a filter.
type FilterValuesResult struct {
	Values []string `json:"values"`
}

// FilterValues returns the values that sessions have for a filter, such as agent or tag,
// the most frequent first.
func (s *Sessions) FilterValues(ctx context.Context, r FilterValuesRequest) (*FilterValuesResult, error) {
	return call(ctx, s.home, "sessions.filter_values", r, s.filterValues)
}

func (s *Sessions) filterValues(ctx context.Context, r FilterValuesRequest) (*FilterValuesResult, error) {
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	values, err := ix.FilterValues(ctx, r.Filter)
	return &FilterValuesResult{orEmpty(values)}, err
}

// SuggestRequest has what a user has begun to type.
type SuggestRequest struct {
	Begin string `json:"begin,omitempty"` // of an id or a short name
	Words string `json:"words,omitempty"` // part of the title, the project or the id; Begin is not used
	Limit int    `json:"limit,omitempty"` // how many; 0 means 100
}

// Suggestions are conversations that a user may mean.
type Suggestions struct {
	Sessions []SessionInfo `json:"sessions"`
}

// Suggest returns the conversations whose ids or short names begin with what was typed, or
// those of the latest 1,000 that have the words, most recently active first.
func (s *Sessions) Suggest(ctx context.Context, r SuggestRequest) (*Suggestions, error) {
	return call(ctx, s.home, "sessions.suggest", r, s.suggest)
}

func (s *Sessions) suggest(ctx context.Context, r SuggestRequest) (*Suggestions, error) {
	if err := notNegative("limit", r.Limit); err != nil {
		return nil, err
	}
	r.Limit = cmp.Or(r.Limit, 100)
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	var found []index.Session
	if r.Words != "" {
		if found, _, err = ix.List(ctx, index.ListOptions{Desc: true, Limit: maxNear, Fold: true}); err != nil {
			return nil, err
		}
		words := strings.ToLower(r.Words)
		found = slices.DeleteFunc(found, func(s index.Session) bool {
			return !strings.Contains(strings.ToLower(s.Title+"\n"+s.Project+"\n"+s.Name), words)
		})
	} else if r.Begin == "" {
		found, _, err = ix.List(ctx, index.ListOptions{Desc: true, Limit: r.Limit, Fold: true})
	} else {
		found, err = ix.Find(ctx, r.Begin)
		slices.SortStableFunc(found, func(a, b index.Session) int { return b.Updated.Compare(a.Updated) })
	}
	list := []SessionInfo{}
	for i := range found {
		// For a conversation with several sessions, the first is enough.
		if id := found[i].Conversation; id == "" || id == found[i].ID {
			list = append(list, sessionInfo(&found[i]))
		}
	}
	return &Suggestions{list[:min(len(list), r.Limit)]}, err
}
