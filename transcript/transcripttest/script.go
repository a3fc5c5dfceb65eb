package transcripttest

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
)

// Now is the time at which the scripts that Script returns are written.
func Now() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }

// Script returns a conversation in the form that a writer gets: its records went through the
// log of a real session.
func Script(ctx context.Context, c *transcript.CollectedConversation) (*transcript.Script, error) {
	created := c.Created
	if created.IsZero() && len(c.Records) > 0 {
		created = c.Records[0].Entry.Timestamp
	}
	h := session.Header{Type: session.TypeSession, ID: "coppice-session", Version: session.Version, CreatedAt: created, CWD: c.CWD, Relation: c.Relation}
	script, err := ScriptOf(ctx, h, Entries(c))
	if err != nil {
		return nil, err
	}
	script.NativeID, script.Name, script.Facts = c.ID, c.Title, c.Extra
	return script, nil
}

// Entries returns the records as entries with ids and parents.
func Entries(c *transcript.CollectedConversation) []session.Entry {
	var entries []session.Entry
	ids := make(map[string]string)
	last := ""
	for i := range c.Records {
		r := &c.Records[i]
		e := r.Entry
		if e.ID = r.ID; e.ID == "" {
			e.ID = transcript.HashID(c.ID, strconv.Itoa(i))
		}
		parent := r.Parent
		if known, ok := ids[parent]; ok {
			parent = known
		}
		if parent == "" {
			parent = last
		}
		if parent != "" && parent != transcript.Root {
			e.ParentID = &parent
		}
		for _, alias := range r.Aliases {
			ids[alias] = e.ID
		}
		last = e.ID
		entries = append(entries, e)
	}
	return entries
}

// ScriptOf returns entries, which have ids and parents, in the form that a writer gets.
func ScriptOf(ctx context.Context, h session.Header, entries []session.Entry) (*transcript.Script, error) {
	st := memory.New(nil)
	lines := func(yield func([]byte, error) bool) {
		if !yield(json.Marshal(h)) {
			return
		}
		for _, e := range entries {
			if !yield(json.Marshal(e)) {
				return
			}
		}
	}
	log, err := st.Create(ctx, h.ID, lines)
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	s, err := session.Open(ctx, st, h.ID, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return scriptOf(s)
}

func scriptOf(s *session.Session) (*transcript.Script, error) {
	script := &transcript.Script{Header: s.Header(), Leaf: s.LeafID(), Now: Now()}
	var err error
	if script.Path, err = s.Forward(""); err != nil {
		return nil, err
	}
	if script.Context, err = s.Context(session.ContextOptions{}); err != nil {
		return nil, err
	}
	for e, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		script.All = append(script.All, e)
	}
	script.Name, err = s.Name()
	return script, err
}
