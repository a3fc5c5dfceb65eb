package home

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// ContextRequest asks what would be sent to a model.
type ContextRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	// Leaf is the entry at which the path ends, as a person names it. Default: the
	// leaf.
	Leaf string `json:"leaf,omitempty"`
	// Window asks for the part of the context that fits a window. Default: all of it.
	Window *WindowRequest `json:"window,omitempty"`
	// Brief asks for a line about each entry instead of the entries.
	Brief bool `json:"brief,omitempty"`
}

// WindowRequest describes a model's window. Set Tokens, Bytes or both.
type WindowRequest struct {
	Tokens  int `json:"tokens,omitempty"`  // its size; 0 means no limit
	Reserve int `json:"reserve,omitempty"` // tokens kept free for the answer
	Bytes   int `json:"bytes,omitempty"`   // the largest request; 0 means no limit
	// Images is how many images stay, newest first; -1 means all. Default: 1.
	Images *int `json:"images,omitempty"`
	// Strict trims each category to its share even if there is room.
	Strict bool `json:"strict,omitempty"`
	// CutTo is the percentage to which a full window is cut, so that a growing conversation
	// is cut less often. Default: the window is filled.
	CutTo int `json:"cut_to,omitempty"`
	// Model is the model that will read it: a name, or provider/model. Default: the one in
	// force.
	Model string `json:"model,omitempty"`
	// Counter counts tokens: estimate, o200k or cl100k. Default: the model's.
	Counter string `json:"counter,omitempty"`
}

// ContextResult is what would be sent to a model.
type ContextResult struct {
	Session      string `json:"session"`
	Conversation string `json:"conversation,omitempty"` // if it has several sessions
	Leaf         string `json:"leaf"`
	// Provider, Model and ThinkingLevel are in force at the leaf.
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	ThinkingLevel string `json:"thinking_level,omitempty"`
	// Tokens is the reported or recorded size; Uncounted is how many entries have no
	// count.
	Tokens    int `json:"tokens"`
	Uncounted int `json:"uncounted"`
	// Measured is the size of the whole as a window counts it.
	Measured   Measured          `json:"measured"`
	Compaction string            `json:"compaction,omitempty"` // the one in force
	LeftOut    []session.LeftOut `json:"left_out"`             // what the path has and the context lacks or changes
	// Missing is what would be sent, too, if it could be read.
	Missing []MissingContent `json:"missing,omitempty"`
	Window  *window.Report   `json:"window,omitempty"` // if a window was asked for
	Entries []session.Entry  `json:"entries"`          // those of the window, if one was asked for
	Costs   []window.Cost    `json:"costs"`            // what each of Entries costs
	Lines   []ContextLine    `json:"lines,omitempty"`  // of a brief result, instead of Entries and Costs
	// Edited has the edit of each entry whose content an edit changed.
	Edited map[string]string `json:"edited,omitempty"`
}

// ContextLine is a line about an entry of a context.
type ContextLine struct {
	Entry string `json:"entry"`
	Kind  string `json:"kind"` // a word for what it is
	Gist  string `json:"gist"` // what it says, on one line
	window.Cost
	Category window.Category `json:"category"`
}

// Measured is the size of a context, counted entry by entry.
type Measured struct {
	Tokens  int                  `json:"tokens"`
	Room    int                  `json:"room,omitempty"` // the tokens that the model's window has, if that is known
	Counter string               `json:"counter"`        // which counter counted entries of unknown size
	Counts  []window.CountReport `json:"counts"`
	Entries int                  `json:"entries"`
	// Categories are the parts of it. Their tokens add up to Tokens.
	Categories []window.CategoryReport `json:"categories"`
}

// Context returns what would be sent to a model now, what is left out of the path and why,
// and what fits a window. It writes nothing.
func (e *Entries) Context(ctx context.Context, r ContextRequest) (*ContextResult, error) {
	return call(ctx, e.home, "entries.context", r, e.context)
}

func (e *Entries) context(ctx context.Context, r ContextRequest) (*ContextResult, error) {
	if err := r.Window.check(); err != nil {
		return nil, within("window", err)
	}
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session, Link: r.Link})
	if err != nil {
		return nil, err
	}
	result, err := contextOf(c, c.WithContext(ctx), r, e.home.settings)
	return result, errors.Join(err, c.Close())
}

func contextOf(c *Conversation, s *session.Session, r ContextRequest, settings *Settings) (*ContextResult, error) {
	leaf, err := s.LeafID(), error(nil)
	if r.Leaf != "" {
		if leaf, err = c.Resolve(r.Leaf); err != nil {
			return nil, err
		}
	}
	now, left, err := contextAt(s, leaf)
	if err != nil {
		return nil, err
	}
	whole, err := measured(now)
	if err != nil {
		return nil, err
	}
	result := &ContextResult{
		Session: c.ID(), Leaf: now.Leaf,
		Provider: now.Provider, Model: now.Model, ThinkingLevel: now.ThinkingLevel,
		Tokens: now.Tokens, Uncounted: now.Uncounted,
		Measured: Measured{
			Tokens: whole.Report.Tokens, Counter: whole.Report.Counter, Counts: orEmpty(whole.Report.Counts),
			Entries: len(now.Entries), Categories: orEmpty(whole.Report.Categories),
		},
		Compaction: now.Compaction, LeftOut: left, Missing: missingIn(now.Problems),
		Entries: orEmpty(now.Entries), Costs: orEmpty(whole.Costs), Edited: now.Edited,
	}
	if !c.isAlone() {
		result.Conversation = c.Chain.ID
	}
	result.Measured.Room = settings.family(now.Model).Window
	if r.Window != nil {
		view, err := r.Window.view(now)
		if err != nil {
			return nil, within("window", err)
		}
		result.Window, result.Entries, result.Costs = report(view), orEmpty(view.Entries), orEmpty(view.Costs)
	}
	if r.Brief {
		result.shorten()
	}
	return result, nil
}

// shorten replaces the entries with lines about them.
func (r *ContextResult) shorten() {
	r.Lines = make([]ContextLine, len(r.Entries))
	for i := range r.Entries {
		e := &r.Entries[i]
		r.Lines[i] = ContextLine{
			Entry: e.ID, Kind: render.Kind(e), Gist: render.Gist(e, maxLine), Cost: r.Costs[i], Category: window.CategoryOf(e),
		}
	}
	r.Entries, r.Costs = []session.Entry{}, []window.Cost{}
}

// maxLine is as many columns as a line about an entry has.
const maxLine = 200

// neverSent names the kinds of entries that are never sent to a model.
const neverSent = "settings, names, labels, edits, reverts, extensions' data"

// contextAt builds the context at a leaf, and lists what it leaves out of the path.
func contextAt(s *session.Session, leaf string) (*session.Context, []session.LeftOut, error) {
	if leaf == "" {
		return &session.Context{}, []session.LeftOut{}, nil
	}
	c, err := s.Context(session.ContextOptions{Leaf: leaf, Shared: true, LeftOut: true})
	if err != nil {
		return nil, nil, err
	}
	for i := range c.LeftOut {
		if c.LeftOut[i].Reason == session.LeftOutNeverSent {
			c.LeftOut[i].Detail = neverSent
		}
	}
	return c, append([]session.LeftOut{}, c.LeftOut...), nil
}

// report is a view's report with lists that JSON shows as lists.
func report(v *window.View) *window.Report {
	r := v.Report
	if r.Counts == nil {
		r.Counts = []window.CountReport{}
	}
	if r.Omissions == nil {
		r.Omissions = []window.Omission{}
	}
	return &r
}

// check returns what is wrong with a window. A nil window is always fine.
func (w *WindowRequest) check() error {
	if w == nil {
		return nil
	}
	switch {
	case w.Tokens == 0 && w.Bytes == 0:
		return wrong("tokens", "a window needs {tokens} or {bytes}")
	case w.Images != nil && *w.Images < -1:
		return wrong("images", "{images} is %d; it must be -1, for all of them, or more", *w.Images)
	case w.CutTo < 0 || w.CutTo > 100:
		return wrong("cut_to", "{cut_to} is %d; it must be from 1 to 100 (percent)", w.CutTo)
	}
	return cmp.Or(notNegative("tokens", w.Tokens), notNegative("reserve", w.Reserve), notNegative("bytes", w.Bytes))
}

// view returns the part of a context that fits the window.
func (w *WindowRequest) view(c *session.Context) (*window.View, error) {
	provider, model := c.Provider, c.Model
	if w.Model != "" {
		provider, model = splitModel(w.Model)
	}
	counter, err := counterNamed(w.Counter, provider, model)
	if err != nil {
		return nil, err
	}
	images := 1
	if w.Images != nil {
		images = *w.Images
	}
	switch images {
	case -1:
		images = window.AllImages
	case 0:
		images = window.NoImages
	}
	plan := window.Fill
	if w.CutTo > 0 {
		plan = window.Trim
	}
	return plan(c, window.Options{
		Budget:  window.Budget{Tokens: w.Tokens, Reserve: w.Reserve, Bytes: w.Bytes, Strict: w.Strict, CutTo: w.CutTo},
		Counter: counter, Provider: provider, Model: model, Images: images,
	})
}

// splitModel takes provider/model apart.
func splitModel(name string) (provider, model string) {
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		return "", name
	}
	return provider, model
}

// counters are the names of counters.
var counters = []string{"estimate", "o200k", "cl100k"}

// counterNamed returns the counter with a name or, without one, the best counter for a
// model.
func counterNamed(name, provider, model string) (window.Counter, error) {
	switch {
	case name == "" && parts.Counter != nil:
		return window.Chooser{Exact: []func(provider, model string) window.Counter{parts.Counter}}.Counter(provider, model), nil
	case name == "", name == "estimate":
		return window.Estimate(provider, model), nil
	case !slices.Contains(counters, name):
		return nil, wrong("counter", "{counter} is %q; it must be one of %s", name, strings.Join(counters, ", "))
	case parts.CounterNamed == nil:
		return nil, missingPart("count tokens", "exact counters")
	}
	return parts.CounterNamed(name)
}

// measured returns a whole context with what each entry costs. Context, Compact and windows
// all use this count.
func measured(c *session.Context) (*window.View, error) {
	counter, err := counterNamed("", c.Provider, c.Model)
	if err != nil {
		return nil, err
	}
	return measuredBy(c, counter)
}

func measuredBy(c *session.Context, counter window.Counter) (*window.View, error) {
	return window.Trim(c, window.Options{Counter: counter, Provider: c.Provider, Model: c.Model, Images: window.AllImages})
}
