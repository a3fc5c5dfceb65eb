package cli

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// contextJSON is what context --json prints.
type contextJSON struct {
	Session       string          `json:"session"`
	Conversation  string          `json:"conversation,omitempty"` // if it goes on in several sessions
	Leaf          string          `json:"leaf"`
	Provider      string          `json:"provider,omitempty"`
	Model         string          `json:"model,omitempty"`
	ThinkingLevel string          `json:"thinking_level,omitempty"`
	Tokens        int             `json:"tokens"`
	Uncounted     int             `json:"uncounted"`
	Compaction    string          `json:"compaction,omitempty"`
	LeftOut       []leftOutJSON   `json:"left_out"`
	Window        *windowJSON     `json:"window,omitempty"`
	Entries       []session.Entry `json:"entries"`
}

// leftOutJSON is something that the path has and the context has not, or has
// otherwise.
type leftOutJSON struct {
	Reason  string `json:"reason"`
	EntryID string `json:"entry_id,omitempty"` // the entry that is the reason
	Count   int    `json:"count,omitempty"`    // how many entries it concerns
	Detail  string `json:"detail,omitempty"`
}

func (a *app) contextJSON(o opened, c *session.Context, left []leftOutJSON, view *window.View) error {
	conversation := ""
	if !isAlone(o.chain) {
		conversation = o.chain.ID
	}
	out := contextJSON{
		Session: o.ID(), Conversation: conversation, Leaf: c.Leaf, Provider: c.Provider, Model: c.Model, ThinkingLevel: c.ThinkingLevel,
		Tokens: c.Tokens, Uncounted: c.Uncounted, Compaction: c.Compaction, LeftOut: left, Window: windowReport(view), Entries: shown(c, view),
	}
	if out.LeftOut == nil {
		out.LeftOut = []leftOutJSON{}
	}
	if out.Entries == nil {
		out.Entries = []session.Entry{}
	}
	return a.printJSON(out)
}

// leftOut says what of a path a context does not have, and why.
func leftOut(c *session.Context, path []session.Entry) []leftOutJSON {
	var left []leftOutJSON
	if n := compactedAway(c, path); n > 0 {
		left = append(left, leftOutJSON{Reason: "replaced by the summary", EntryID: c.Compaction, Count: n})
	}
	left = append(left, editedIn(c, path)...)
	silent := 0
	for i := range path {
		if !speaks(&path[i]) {
			silent++
		}
	}
	if silent > 0 {
		left = append(left, leftOutJSON{Reason: "never sent", Count: silent, Detail: "settings, names, labels, edits, reverts, extensions' data"})
	}
	for _, p := range c.Problems {
		left = append(left, leftOutJSON{Reason: string(p.Kind), EntryID: p.EntryID, Detail: p.Detail})
	}
	return left
}

// speaks reports whether an entry is of a type that a model is sent.
func speaks(e *session.Entry) bool { return e.Type.IsSaid() }

// compactedAway counts what stands before the first kept entry and is not in the
// context all the same.
func compactedAway(c *session.Context, path []session.Entry) int {
	at := slices.IndexFunc(path, func(e session.Entry) bool { return e.ID == c.Compaction })
	if at < 0 {
		return 0
	}
	firstKept := path[at].Compaction.FirstKeptEntryID
	there := make(map[string]bool)
	for i := range c.Entries {
		there[c.Entries[i].ID] = true
	}
	n := 0
	for i := range path[:at] {
		if path[i].ID == firstKept {
			break
		}
		if speaks(&path[i]) && !there[path[i].ID] {
			n++
		}
	}
	return n
}

// editedIn tells the edits of the context in the order of the path.
func editedIn(c *session.Context, path []session.Entry) []leftOutJSON {
	if len(c.Edited) == 0 {
		return nil
	}
	var left []leftOutJSON
	places := make(map[string]int, len(path))
	for i := range path {
		places[path[i].ID] = i
	}
	for i := range path {
		edit := c.Edited[path[i].ID]
		if edit == "" {
			continue
		}
		reason := "replaced by an edit"
		at, ok := places[edit]
		if ok && path[at].ContextEdit != nil && path[at].ContextEdit.Replacement == nil {
			reason = "cleared by an edit"
		}
		left = append(left, leftOutJSON{Reason: reason, EntryID: path[i].ID})
	}
	return left
}
