package cli

import (
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
	Measured      measuredJSON    `json:"measured"`
	Compaction    string          `json:"compaction,omitempty"`
	LeftOut       []leftOutJSON   `json:"left_out"`
	Window        *windowJSON     `json:"window,omitempty"`
	Entries       []session.Entry `json:"entries"`
}

// measuredJSON is the size of all of a context as a window counts it.
type measuredJSON struct {
	Tokens  int         `json:"tokens"`
	Counter string      `json:"counter"`
	Counts  []countJSON `json:"counts"`
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
	whole, err := measured(c)
	if err != nil {
		return err
	}
	out := contextJSON{
		Session: o.ID(), Conversation: conversation, Leaf: c.Leaf, Provider: c.Provider, Model: c.Model, ThinkingLevel: c.ThinkingLevel,
		Tokens: c.Tokens, Uncounted: c.Uncounted,
		Measured:   measuredJSON{whole.Report.Tokens, whole.Report.Counter, countsJSON(&whole.Report)},
		Compaction: c.Compaction, LeftOut: left, Window: windowReport(view), Entries: shown(c, view),
	}
	if out.Entries == nil {
		out.Entries = []session.Entry{}
	}
	return a.printJSON(out)
}

// leftOutWords are what a session leaves out of a context, with what neverSent means.
func leftOutWords(left []session.LeftOut) []leftOutJSON {
	list := make([]leftOutJSON, len(left))
	for i, l := range left {
		list[i] = leftOutJSON{Reason: string(l.Reason), EntryID: l.EntryID, Count: l.Count, Detail: l.Detail}
		if l.Reason == session.LeftOutNeverSent {
			list[i].Detail = "settings, names, labels, edits, reverts, extensions' data"
		}
	}
	return list
}
