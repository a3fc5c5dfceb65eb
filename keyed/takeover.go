package keyed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// CustomImport is the type of the custom entry that says where the messages
// before it come from.
const CustomImport = "coppice.keyed.import"

// oldSession is a session of picoclaw's.
type oldSession struct {
	file             string
	messages         []oldMessage
	skip             int // so many messages are no longer part of the history
	summary          string
	created, updated time.Time
	meta             json.RawMessage // the .meta.json, or nil
	unreadable       []int           // the numbers of the lines that make no sense
	broken           string          // why nothing can be read, or ""
}

type oldMessage struct {
	Message
	at time.Time // zero if it is not known
}

// oldTime is a time that may be missing or of another type.
type oldTime struct{ time.Time }

func (t *oldTime) UnmarshalJSON(data []byte) error {
	var parsed time.Time
	if json.Unmarshal(data, &parsed) == nil {
		t.Time = parsed
	}
	return nil // a time that makes no sense is no reason to lose what was said
}

// parseWhole reads a session that is one JSON object. It returns nil if the
// session is another key's.
func parseWhole(file, name, key string, data []byte) *oldSession {
	var whole struct {
		Key      string            `json:"key"`
		Messages []json.RawMessage `json:"messages"`
		Summary  string            `json:"summary"`
		Created  oldTime           `json:"created"`
		Updated  oldTime           `json:"updated"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		if name != key && !bytes.Contains(data, quoted(key)) {
			return nil
		}
		return &oldSession{file: file, broken: err.Error()}
	}
	if whole.Key != key {
		return nil
	}
	s := &oldSession{file: file, summary: whole.Summary, created: whole.Created.Time, updated: whole.Updated.Time}
	s.add(whole.Messages)
	return s
}

// quoted is a key as it stands in a file.
func quoted(key string) []byte {
	text, err := json.Marshal(key)
	if err != nil {
		return nil // a string has no such error
	}
	return text
}

// parseLines reads a session that has a message a line.
func parseLines(file string, data []byte, meta oldMeta, metaText []byte) *oldSession {
	s := &oldSession{file: file, skip: meta.Skip, summary: meta.Summary, created: meta.Created.Time, updated: meta.Updated.Time}
	if json.Valid(metaText) {
		s.meta = metaText
	}
	var lines []json.RawMessage
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 { // skip does not count the empty ones
			lines = append(lines, line)
		}
	}
	s.add(lines)
	return s
}

// add reads messages. Those that make no sense, and the thoughts that picoclaw
// wrote down while a model was still thinking, are left out; skip is then the
// number of those that are left.
func (s *oldSession) add(raws []json.RawMessage) {
	skip := min(max(0, s.skip), len(raws))
	s.skip = 0
	for i, raw := range raws {
		m, err := readOldMessage(raw)
		switch {
		case err != nil:
			s.unreadable = append(s.unreadable, i+1)
			continue
		case m.onlyThoughts():
			continue
		}
		if i < skip {
			s.skip++
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

// takeOver makes a session of what picoclaw has left of the key. It returns
// ErrNotExist if that is nothing. The old files stay as they are.
func (c *chat) takeOver(ctx context.Context, st store.Store) error {
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
	lines, err := c.compose(ctx, old)
	if err != nil {
		return fmt.Errorf("old session file %s: %w", old.file, err)
	}
	// All of it or nothing: a crash leaves no half of a conversation.
	log, err := st.Create(ctx, c.id, lines)
	if errors.Is(err, session.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	c.manager.opts.Logger.Info("took over old session", "file", old.file, "session", c.id,
		"messages", len(old.messages), "unreadable", len(old.unreadable))
	c.noteOld(old.file)
	return log.Close()
}

// noteOld makes the old files of the key retired. Without the note nothing is
// lost: they would bring the session back if it were removed. Whoever opens it
// next tries again.
func (c *chat) noteOld(file string) {
	if err := c.manager.old.note(c.id, file); err != nil {
		c.manager.opts.Logger.Warn("note that an old session was taken over", "file", file, "error", err)
	}
}

// retireOld makes the old files of a session that exists retired, in case a
// crash came between the two or an older version has taken them over.
func (c *chat) retireOld() {
	old := c.manager.old
	if !old.mayHave(c.key) {
		return
	}
	if _, err := old.retire(c.key, c.id); err != nil {
		c.manager.opts.Logger.Warn("note that an old session was taken over", "session", c.id, "error", err)
	}
}

// compose writes the session in memory and returns its lines.
func (c *chat) compose(ctx context.Context, old *oldSession) (iter.Seq2[[]byte, error], error) {
	const inLine = -1 // no blobs: they would have to be copied too
	inMemory := memory.New(nil)
	header := session.Header{ID: c.id, Key: c.key, CreatedAt: old.begin(c.manager.opts.Now)}
	s, err := session.Create(ctx, inMemory, header, &session.Options{BlobThreshold: inLine, Now: c.manager.opts.Now})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	entries, err := old.entries(header.CreatedAt)
	if err != nil {
		return nil, err
	}
	// Grafted, because what is odd about them (their roles, results without a
	// call) stays as it is.
	if err := s.Graft(entries...); err != nil {
		return nil, err
	}
	if _, err := s.AppendAll(old.ending(entries, header.CreatedAt)...); err != nil {
		return nil, err
	}
	log, err := inMemory.Open(ctx, c.id)
	if err != nil {
		return nil, err
	}
	return func(yield func([]byte, error) bool) {
		for line, err := range log.Forward(ctx, 0) {
			if !yield(line.Data, err) {
				return
			}
		}
	}, nil
}

// begin returns when the session began.
func (s *oldSession) begin(now func() time.Time) time.Time {
	if !s.created.IsZero() {
		return s.created.UTC()
	}
	for _, m := range s.messages {
		if !m.at.IsZero() {
			return m.at.UTC()
		}
	}
	return now().UTC()
}

// entries returns the messages as entries, one after the other. One whose time is
// not known has that of the one before.
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

// ending returns what comes after the messages: the summary and what it stands
// for, and a note of where all this comes from.
func (s *oldSession) ending(entries []session.Entry, begin time.Time) []session.Entry {
	at := begin
	if len(entries) > 0 {
		at = entries[len(entries)-1].Timestamp
	}
	if s.updated.After(at) {
		at = s.updated.UTC()
	}
	var v view
	for _, e := range entries {
		v = v.after(e)
	}
	var end []session.Entry
	if from := v.wholeFrom(s.skip); from > 0 || s.summary != "" {
		r := &rewrite{at: at}
		end = r.compaction(v, s.summary, from, from == len(v.items), nil)
	}
	note := &session.CustomEntry{CustomType: CustomImport, Data: s.note()}
	return append(end, session.Entry{Type: session.TypeCustom, Timestamp: at, Custom: note})
}

// wholeFrom returns where a history may begin that should begin at an item: at a
// legal cut; and if it would begin with results whose call is gone, which happened
// in picoclaw, after those.
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

// note is what is known of the file.
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
