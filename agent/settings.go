package agent

import (
	"cmp"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// recorded caches which settings the log says are in force. The zero value knows
// nothing.
type recorded struct {
	known                     bool
	provider, model, thinking string
	tools                     string // the entry that has the tools
	toolsSum                  string
}

// note records an entry that was written.
func (r *recorded) note(e *session.Entry) {
	switch {
	case e.ModelChange != nil:
		r.provider, r.model = e.ModelChange.Provider, e.ModelChange.ModelID
	case e.ThinkingLevel != nil:
		r.thinking = e.ThinkingLevel.ThinkingLevel
	}
}

// settings returns what must be in the log before the next request: new instructions,
// another model, another thinking level.
func (k *Keeper) settings() ([]session.Entry, error) {
	c, err := k.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	if err := k.recall(c); err != nil {
		return nil, err
	}
	var entries []session.Entry
	info := k.opts.Model
	if r := &k.recorded; info.Model != "" && (r.provider != info.Provider || r.model != info.Model) {
		entries = append(entries, session.ModelChange(info.Provider, info.Model))
	}
	if level := k.opts.Thinking; level != "" && level != k.recorded.thinking {
		entries = append(entries, session.ThinkingLevel(level))
	}
	return append(entries, instructions(c, k.opts.System)...), nil
}

// recordSettings writes what settings returns to the log.
func (k *Keeper) recordSettings() error {
	changed, err := k.settings()
	if err == nil && len(changed) > 0 {
		_, err = k.append(changed...)
	}
	return err
}

// recall finds out which settings are in force, if the agent does not know.
func (k *Keeper) recall(c *session.Context) error {
	if k.recorded.known {
		return nil
	}
	k.recorded.known = true
	k.recorded.provider, k.recorded.model, k.recorded.thinking = c.Provider, c.Model, c.ThinkingLevel
	// Answers name their model too, some by another name than the request used.
	last, err := k.lastRecord(func(e *session.Entry) bool {
		return e.ModelChange != nil || e.Message != nil && e.Message.Role == session.RoleAssistant
	})
	if last != nil {
		k.recorded.provider, k.recorded.model = last.Provider, last.Model
	}
	return err
}

// instructions returns the entries that make a text the instructions of a conversation:
// none if it already is. Earlier instructions stay in the log but leave the context.
func instructions(c *session.Context, text string) []session.Entry {
	if text == "" {
		return nil
	}
	var entries []session.Entry
	sent := false
	for i := range c.Entries {
		e := &c.Entries[i]
		switch {
		case !session.IsPrompt(e):
		case session.TextOf(e.Message.Content) == text && !sent:
			sent = true
		default:
			entries = append(entries, session.ContextEdit(e.ID))
		}
	}
	if !sent {
		entries = append(entries, message(&session.MessageEntry{
			Role: session.RoleSystem, Content: []session.Content{session.Text(text)},
			Metadata: map[string]any{session.MetaType: session.PromptType},
		}))
	}
	return entries
}

// thinking returns the level for a request: the one that is set, or else the one in force.
func thinking(set string, c *session.Context) string {
	return cmp.Or(set, provider.KnownThinking(c.ThinkingLevel))
}
