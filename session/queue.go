package session

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// CustomQueued has what a user said while a model was at work. It becomes a message when the
// agent gets to it, or it is taken back.
const CustomQueued = "coppice.queued"

// metaQueued is the member of a message's metadata that names the entry in which the message
// was queued.
const metaQueued = CustomQueued

// Queued is what a user said while a model was at work.
type Queued struct {
	ID      string    `json:"id"` // the entry that has it
	Content []Content `json:"content"`
	// After says that it waits for the end of the turn, and not only for the next step.
	After bool `json:"after,omitempty"`
	// Session is the conversation in which it was said: see Session.ID. A copy of it has another
	// name, and nothing waits there.
	Session string `json:"session,omitempty"`
	// Signed is the proof that an agent wrote it: see package agent.
	Signed string `json:"signed,omitempty"`
}

// Entry returns the entry that has it, without an id.
func (q *Queued) Entry() (Entry, error) {
	data := map[string]any{"content": nil, "session": q.Session}
	text, err := json.Marshal(q.Content)
	if err == nil {
		var content any
		err = json.Unmarshal(text, &content)
		data["content"] = content
	}
	if q.After {
		data["after"] = true
	}
	return Custom(CustomQueued, data), err
}

// Message returns the message that it becomes.
func (q *Queued) Message() Entry {
	return Entry{Type: TypeMessage, Message: &MessageEntry{Role: RoleUser, Content: q.Content, Metadata: map[string]any{metaQueued: q.ID}}}
}

// NewTakenBack returns an entry which says that the given entries are no longer queued.
func NewTakenBack(ids ...string) Entry {
	list := make([]any, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return Custom(CustomQueued, map[string]any{"taken_back": list})
}

// Queued returns what the user said in an entry of type CustomQueued. ok is false for any
// other entry.
func (e *Entry) Queued() (q Queued, ok bool) {
	if e.Custom == nil || e.Custom.CustomType != CustomQueued || e.Custom.Data["content"] == nil {
		return q, false
	}
	text, err := json.Marshal(e.Custom.Data)
	if err == nil {
		err = json.Unmarshal(text, &q)
	}
	q.ID = e.ID
	return q, err == nil
}

// Unqueued returns the entries of type CustomQueued that no longer wait because of this entry:
// it is the message that one of them became, or says that they were taken back.
func (e *Entry) Unqueued() []string {
	switch {
	case e.Custom != nil && e.Custom.CustomType == CustomQueued:
		return e.Custom.strings("taken_back")
	case e.Message != nil:
		if id, ok := e.Message.Metadata[metaQueued].(string); ok {
			return []string{id}
		}
	}
	return nil
}

// StopQueued is the stop reason of the message that readers are shown instead of what is
// queued.
const StopQueued = "queued"

// Waiting returns the message that readers are shown in place of what is queued. ok is
// false for an entry that has nothing queued.
func (e Entry) Waiting() (_ Entry, ok bool) {
	q, ok := e.Queued()
	if !ok {
		return e, false
	}
	e.Type, e.Custom = TypeMessage, nil
	e.Message = &MessageEntry{Role: RoleUser, Content: q.Content, StopReason: StopQueued}
	return e, true
}

// EndsWait reports whether this entry shows readers that what an earlier entry queued no
// longer waits: it has become a message, was taken back, or the user has said something else
// since.
func (e *Entry) EndsWait(queuedID string) bool {
	return e.overtakes() || slices.Contains(e.Unqueued(), queuedID)
}

// overtakes reports whether the user said something in this entry that was not queued. It
// comes after all that was.
func (e *Entry) overtakes() bool {
	return e.BeginsTurn() && !e.IsInjected() && e.Message.Metadata[metaQueued] == nil
}

// ShowUnsaid returns a path for readers, in which an unfinished answer and what is queued are
// messages: see Drafted and Waiting.
func ShowUnsaid(path []Entry) []Entry {
	shown := showDrafts(path)
	var waiting []int
	for i := range path {
		e := &path[i]
		waiting = slices.DeleteFunc(waiting, func(at int) bool { return e.EndsWait(path[at].ID) })
		if _, ok := e.Queued(); ok {
			waiting = append(waiting, i)
		}
	}
	if len(waiting) > 0 {
		shown = slices.Clone(shown)
	}
	for _, at := range waiting {
		shown[at], _ = path[at].Waiting()
	}
	return shown
}

// queueCache is what Queued knows. The zero value knows nothing.
type queueCache struct {
	mu   sync.Mutex
	tree *tree     // whose nodes were looked at; nil: none
	end  store.Pos // of the last one
	list []Queued
}

// Queued returns the queued messages, on whatever branch, the oldest first. It reads the log
// backwards, no further than it must, and after that only new lines.
func (s *Session) Queued() ([]Queued, error) {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.mu.RLock()
	closed, tree, end := s.closed, s.tree, s.tree.end
	var fresh []node
	for _, n := range slices.Backward(tree.nodes) {
		if q.tree != tree || n.pos < q.end {
			break
		}
		if n.kind == kindCustom || n.kind == kindMessage && n.speaker <= speakerUser {
			fresh = append(fresh, n)
		}
	}
	s.mu.RUnlock()
	if closed {
		return nil, s.errClosed("read")
	}
	var entries []*Entry
	var err error
	list := q.list
	if q.tree == tree {
		slices.Reverse(fresh)
		entries, err = s.entriesAt(s.context(), fresh)
	} else {
		entries, err = s.findQueued(s.context(), end)
		list = nil
	}
	if err != nil {
		return nil, err
	}
	q.tree, q.end, q.list = tree, end, s.updateQueue(list, entries)
	return slices.Clone(q.list), nil
}

// updateQueue brings a list up to date with entries that are in the order of the log.
func (s *Session) updateQueue(list []Queued, entries []*Entry) []Queued {
	for _, e := range entries {
		if e == nil {
			continue
		}
		gone := e.Unqueued() // an overtaken message is not gone: the agent has not used it yet
		list = slices.DeleteFunc(list, func(q Queued) bool { return slices.Contains(gone, q.ID) })
		if q, ok := e.Queued(); ok && (q.Session == s.name || q.Session == s.SessionOf(e.ID)) {
			list = append(list, q)
		}
	}
	return list
}

// findQueued reads the entries of the queue, from the end of the log back to the
// last prompt but one. An agent writes a prompt together with all that is queued, and the
// note that a model is asked. Only what another program queues at that moment is missed, and
// found with the next one.
func (s *Session) findQueued(ctx context.Context, end store.Pos) ([]*Entry, error) {
	var found []*Entry
	prompts, afterAsking := 0, false
	for line, err := range s.log.Backward(ctx, end) {
		if err != nil {
			return nil, err
		}
		h, ok := rawjson.ScanHead(line.Data)
		if t := EntryType(h.Type); !ok || line.Cut || t != TypeCustom && t != TypeMessage {
			afterAsking = false
			continue
		}
		if n := newHeadLine(line, h); n.kind == kindMessage && n.speaker > speakerUser {
			afterAsking = false
			continue
		}
		if !afterAsking && !bytes.Contains(line.Data, []byte(CustomQueued)) && !bytes.Contains(line.Data, []byte(CustomAsking)) {
			continue // most lines: a session may never have had a queue
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil {
			continue
		}
		if len(e.Unqueued()) > 0 || e.Custom != nil && e.Custom.CustomType == CustomQueued {
			found = append(found, e)
		}
		if afterAsking && e.overtakes() {
			if prompts++; prompts == 2 {
				break
			}
		}
		afterAsking = e.Custom != nil && e.Custom.CustomType == CustomAsking
	}
	slices.Reverse(found)
	return found, nil
}
