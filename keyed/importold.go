package keyed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// oldSession is a session of picoclaw's.
type oldSession struct {
	oldHead
	file       string
	messages   []oldMessage
	meta       json.RawMessage // the .meta.json, or nil
	unreadable []int           // the numbers of the lines that make no sense
	broken     string          // why nothing can be read, or ""
}

type oldMessage struct {
	Message
	at time.Time // zero if unknown
}

// readMessages reads the messages. It leaves out those that make no sense, and thoughts that
// picoclaw wrote down while a model was still thinking, and adjusts Skip accordingly.
func (s *oldSession) readMessages() {
	skip := s.Skip
	s.Skip = 0
	for i, raw := range s.Messages {
		m, err := readOldMessage(raw)
		switch {
		case err != nil:
			s.unreadable = append(s.unreadable, i+1)
			continue
		case m.onlyThoughts():
			continue
		}
		if i < skip {
			s.Skip++
		}
		s.messages = append(s.messages, m)
	}
}

func readOldMessage(raw json.RawMessage) (oldMessage, error) {
	var m oldMessage
	if err := json.Unmarshal(raw, &m.Message); err != nil {
		return m, err
	}
	if m.Role == "" {
		return m, errors.New("a message without a role")
	}
	for i, f := range m.Extra {
		var at oldTime
		if f.Name == "created_at" && at.UnmarshalJSON(f.Value) == nil && !at.IsZero() {
			m.at = at.Time
			m.Extra = slices.Delete(m.Extra, i, i+1)
			break
		}
	}
	if len(m.Extra) == 0 {
		m.Extra = nil
	}
	return m, nil
}

func (m *oldMessage) onlyThoughts() bool {
	return m.Role == session.RoleAssistant && m.ReasoningContent != "" &&
		m.Content == "" && len(m.ToolCalls) == 0 && len(m.Extra) == 0
}

// importOld creates a session from the files that picoclaw left for the key. It returns
// ErrNotExist if there is nothing. The old files stay as they are.
func (c *chat) importOld(ctx context.Context, st store.Store) error {
	old, err := c.manager.old.find(c.key, c.id)
	if err != nil {
		return err
	}
	if old == nil {
		return &session.Error{Op: "open", Name: c.id, Kind: session.ErrNotExist}
	}
	if old.broken != "" {
		c.refuse(fmt.Errorf("old session file %s, which stays where it is: %w: %s", old.file, session.ErrCorrupt, old.broken))
	}
	err = c.compose(ctx, old, st)
	if errors.Is(err, session.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return fmt.Errorf("old session file %s: %w", old.file, err)
	}
	c.manager.opts.Logger.Info("took over old session", "file", old.file, "session", c.id,
		"messages", len(old.messages), "unreadable", len(old.unreadable))
	c.noteOld(old.file)
	return nil
}

// noteOld retires the old files of the key. If the note is lost, nothing else is, but the
// files would bring the session back after it was removed. So the next open tries again.
func (c *chat) noteOld(file string) {
	if err := c.manager.old.note(c.id, file); err != nil {
		c.manager.opts.Logger.Warn("note that an old session was taken over", "file", file, "error", err)
	}
}

// retireOld retires the old files of an existing session, in case a crash came before the
// note, or an older version imported them.
func (c *chat) retireOld() {
	old := c.manager.old
	if !old.mayHave(c.key) {
		return
	}
	if _, err := old.retire(c.key, c.id); err != nil {
		c.manager.opts.Logger.Warn("note that an old session was taken over", "session", c.id, "error", err)
	}
}

// compose writes the session to memory and copies it to a store from there, all or nothing: a
// crash must not leave half a conversation, which would then count.
func (c *chat) compose(ctx context.Context, old *oldSession, to store.Store) error {
	header := session.Header{ID: c.id, Key: c.key, CreatedAt: old.begin(c.manager.opts.Now)}
	s, err := session.Create(ctx, memory.New(nil), header, &session.Options{Now: c.manager.opts.Now})
	if err != nil {
		return err
	}
	defer s.Close()
	entries, err := old.entries(header.CreatedAt)
	if err != nil {
		return err
	}
	// Grafted, because oddities (unknown roles, results without a call) must stay as they
	// are.
	if err := s.Graft(entries...); err != nil {
		return err
	}
	if _, err := s.AppendAll(old.ending(entries, header.CreatedAt)...); err != nil {
		return err
	}
	header = s.Header()
	made, err := s.Fork(ctx, to, &session.ForkOptions{Header: &header})
	if err != nil {
		return err
	}
	return made.Close()
}

// begin returns when the session began.
func (s *oldSession) begin(now func() time.Time) time.Time {
	if at := cmp.Or(s.Created.Time, s.CreatedAt.Time); !at.IsZero() {
		return at.UTC()
	}
	for _, m := range s.messages {
		if !m.at.IsZero() {
			return m.at.UTC()
		}
	}
	return now().UTC()
}

// entries returns the messages as entries, one after the other. If the time of one is
// unknown, it gets the time of the message before.
func (s *oldSession) entries(begin time.Time) ([]session.Entry, error) {
	entries := make([]session.Entry, 0, len(s.messages))
	at := begin
	var last *string
	for _, m := range s.messages {
		if !m.at.IsZero() {
			at = m.at.UTC()
		}
		e, err := entryOf(m.Message, at)
		if err != nil {
			return nil, err
		}
		e.ID, e.ParentID = session.NewID(), last
		last = &e.ID
		entries = append(entries, e)
	}
	return entries, nil
}

// ending returns what comes after the messages: the summary with its cut, and a note about
// the source.
func (s *oldSession) ending(entries []session.Entry, begin time.Time) []session.Entry {
	at := begin
	if len(entries) > 0 {
		at = entries[len(entries)-1].Timestamp
	}
	if updated := cmp.Or(s.Updated.Time, s.UpdatedAt.Time); updated.After(at) {
		at = updated.UTC()
	}
	var v view
	for _, e := range entries {
		v = v.after(e)
	}
	var end []session.Entry
	if from := v.wholeFrom(s.Skip); from > 0 || s.Summary != "" {
		_, end = rewrite(at, &s.Summary, func(view) (int, bool, []session.Entry) { return from, false, nil }).plan(v)
	}
	note := &session.CustomEntry{CustomType: session.CustomKeyed, Data: s.note()}
	return append(end, session.Entry{Type: session.TypeCustom, Timestamp: at, Custom: note})
}

// wholeFrom returns where a history can begin that should begin at an item: at a legal cut.
// If it would begin with results whose call is gone, which happened in picoclaw, it begins
// after those.
func (v view) wholeFrom(at int) int {
	from := v.cutAt(at)
	var pairs session.Pairs
	for i := range v.items {
		added := pairs.Add(&v.items[i].entry)
		if i == from && len(added.Refs) > 0 && !added.Refs[0].Call && added.Refs[0].Pair == session.NoPair {
			from++
		}
	}
	return from
}

// note returns what is known about the file.
func (s *oldSession) note() map[string]any {
	note := map[string]any{"format": "picoclaw", "file": s.file, "messages": len(s.messages)}
	if s.meta != nil {
		note["meta"] = s.meta
	}
	if len(s.unreadable) > 0 {
		note["unreadable"] = s.unreadable
	}
	if s.broken != "" {
		note["broken"] = s.broken
	}
	return note
}
