package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Memo remembers how the beginning of a conversation was written, so that a request costs
// what it adds to the one before. It is for the requests of one conversation to one model,
// one after another. Entries that it has seen must not change. The zero value remembers
// nothing.
//
// It relies on how all formats are made: a message is written without a look at what comes
// before the prompt of its turn, except that the ids of calls must differ. So it has only
// the end of a conversation written, with the system messages and a prompt before it, and
// puts that after what it remembers. What it remembers grows only where the end was written
// twice, with more and with less before it, and was the same. If anything is in doubt, it
// has the whole conversation written.
type Memo struct {
	key     string          // what the form of a message depends on
	entries []session.Entry // of the request before
	turn    int             // where its turn begins

	// Formats treat the present turn in another way. So what is known between base and tip
	// is forgotten when the next turn begins.
	base, tip  memoMark
	head       []byte // of the body, up to the first message
	past, this []byte // head and messages up to base; messages from there to tip
	calls      map[string]int
	notes      []Note // about entries before tip
}

// memoMark is a place in a conversation: before a message of the model, when no call waits
// for its result.
type memoMark struct {
	entry  int       // its number; 0 if nothing is remembered
	prompt int       // the entry that is written before it
	lead   int       // how many messages that gives, with the system messages
	notes  int       // how many are about messages before it
	sum    hash.Hash // of the body up to here
}

// The end of a conversation that is always written: its last messages may be marked. The
// mark is moved when so many more have come.
const (
	memoEnd  = 8
	memoStep = 24
)

// Encode returns what encode returns for a request. The body may be in pieces.
func (m *Memo) Encode(r *Request, encode func(*Request) (*Encoded, error)) (*Encoded, error) {
	m.matchPrevious(r)
	if !m.isIndependent() {
		m.reset()
	}
	written, err := encode(m.window(r, m.tip))
	if err != nil {
		return nil, err
	}
	body, ok := splitBody(written.Body)
	if !ok || len(body.list) < m.tip.lead {
		m.reset()
		return encode(r)
	}
	if !bytes.Equal(body.head, m.head) && m.tip.entry > m.base.entry {
		// Something was switched on or off, which may concern all of the turn.
		m.forgetTurn()
		return m.Encode(r, encode)
	}
	m.setHead(body.head)
	end := body.from(m.tip.lead)
	notes := m.notesOf(written.Notes)
	encoded := &Encoded{Before: [][]byte{m.past, m.this}, Body: end, Notes: slices.Concat(m.notes, notes)}
	sum := cloneHash(m.tip.sum)
	sum.Write(end)
	encoded.sum = hex.EncodeToString(sum.Sum(nil))
	m.advance(r, body.list[m.tip.lead:], notes, encode)
	return encoded, nil
}

// reset forgets the written messages.
func (m *Memo) reset() {
	*m = Memo{key: m.key, entries: m.entries, turn: m.turn, calls: make(map[string]int)}
}

// matchPrevious compares a request with the one before, and forgets what does not hold for it.
func (m *Memo) matchPrevious(r *Request) {
	key := fmt.Sprintf("%q %t %t %q %q", r.Thinking, r.NoCache, len(r.Tools) > 0, r.Fields, r.Without)
	if key != m.key || !m.continues(r.Entries) {
		m.key, m.entries, m.turn = key, nil, 0
		m.reset()
	}
	for i := len(m.entries); i < len(r.Entries); i++ {
		if beginsTurn(&r.Entries[i]) {
			m.turn = i
			m.forgetTurn()
		}
	}
	m.entries = r.Entries
}

// forgetTurn forgets the messages of the present turn.
func (m *Memo) forgetTurn() {
	m.tip, m.this, m.notes = m.base, nil, m.notes[:m.base.notes:m.base.notes]
}

// continues reports whether entries begin with those of the request before.
func (m *Memo) continues(entries []session.Entry) bool {
	n := len(m.entries)
	if n == 0 || len(entries) < n {
		return n == 0
	}
	if &entries[0] == &m.entries[0] {
		return true // they have only grown
	}
	for i := range n {
		a, b := &entries[i], &m.entries[i]
		if a.ID != b.ID || a.Message != b.Message || a.Compaction != b.Compaction || a.BranchSummary != b.BranchSummary || a.Merge != b.Merge {
			return false
		}
	}
	return true
}

// beginsTurn reports whether formats may take an entry for the beginning of a turn.
func beginsTurn(e *session.Entry) bool {
	if e.Message == nil || e.BeginsTurn() {
		return true
	}
	return e.Message.Role == session.RoleSystem
}

// isIndependent reports whether the calls after the tip can be written without a look at
// those before: no id is used again, and each result is for a call among them.
func (m *Memo) isIndependent() bool {
	if m.tip.entry == 0 {
		return true
	}
	own := make(map[string]bool)
	isUsed := func(id string) bool {
		n, used := m.calls[id]
		return used && n < m.tip.entry
	}
	for i := range m.entries[m.tip.entry:] {
		message := m.entries[m.tip.entry+i].Message
		if message == nil {
			return false
		}
		for j := range message.Content {
			switch c := &message.Content[j]; {
			case c.ToolUse != nil:
				id := c.ToolUse.ID
				counted := strings.TrimRight(id, "0123456789") // as in an id that was made to differ
				if own[id] || isUsed(id) || isUsed(strings.TrimSuffix(counted, "-")) {
					return false
				}
				own[id] = true
			case c.ToolResult != nil && !own[c.ToolResult.ToolUseID]:
				return false
			}
		}
	}
	return true
}

// window returns a request with the end of a conversation: what comes after a mark, with
// the system messages and a prompt before it.
func (m *Memo) window(r *Request, at memoMark) *Request {
	if at.entry == 0 {
		return r
	}
	part := *r
	part.Entries = slices.Concat(m.systemAndPrompt(at.prompt), r.Entries[at.entry:])
	return &part
}

// systemAndPrompt returns the system messages at the beginning, and a prompt.
func (m *Memo) systemAndPrompt(prompt int) []session.Entry {
	n := 0
	for n < prompt && m.entries[n].Message != nil && m.entries[n].Message.Role == session.RoleSystem {
		n++
	}
	return append(slices.Clone(m.entries[:n]), m.entries[prompt])
}

// setHead sets what the body begins with.
func (m *Memo) setHead(head []byte) {
	if m.base.sum != nil && bytes.Equal(head, m.head) {
		return
	}
	m.past = slices.Concat(head, m.past[len(m.head):])
	m.head = m.past[:len(head):len(head)]
	m.base.sum = sha256.New()
	m.base.sum.Write(m.past)
	m.tip.sum = cloneHash(m.base.sum)
	m.tip.sum.Write(m.this)
}

func cloneHash(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // sha256 can be cloned
	}
	return c
}

// notesOf returns the notes that are not about remembered messages.
func (m *Memo) notesOf(notes []Note) []Note {
	if m.tip.entry == 0 {
		return notes
	}
	old := m.entries[m.tip.prompt].ID
	known := make(map[Note]bool, len(m.notes))
	for _, n := range m.notes {
		known[n] = true
	}
	return slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.Entry == old || known[n] })
}

// advance moves the marks towards the end, over messages that were just written.
func (m *Memo) advance(r *Request, list []json.RawMessage, notes []Note, encode func(*Request) (*Encoded, error)) {
	if len(m.entries)-m.tip.entry < memoEnd+memoStep {
		return
	}
	var past, this memoMark
	for at := range m.cuts() {
		if at.entry <= m.turn {
			past = at
		} else {
			this = at
		}
	}
	for _, at := range []memoMark{past, this} {
		if at.entry == 0 {
			continue
		}
		rest, ok := m.rest(r, &at, list, encode)
		if !ok {
			return
		}
		moved := list[:len(list)-rest]
		m.remember(at, moved, notes)
		list = list[len(moved):]
	}
}

// cuts yields the places after the tip to which it can be moved.
func (m *Memo) cuts() func(yield func(memoMark) bool) {
	return func(yield func(memoMark) bool) {
		var calls session.OpenCalls[bool]
		open, prompt := 0, m.tip.prompt
		for i := m.tip.entry; i < len(m.entries)-memoEnd; i++ {
			e := &m.entries[i]
			if e.Message == nil {
				continue
			}
			isCut := e.Message.Role == session.RoleAssistant && open == 0 && i > m.tip.entry && m.entries[prompt].BeginsTurn() &&
				m.entries[i-1].Message != nil && m.entries[i-1].Message.Role != session.RoleAssistant
			if isCut && !yield(memoMark{entry: i, prompt: prompt}) {
				return
			}
			if e.BeginsTurn() {
				prompt = i
			}
			for j := range e.Message.Content {
				if c := &e.Message.Content[j]; c.ToolUse != nil {
					calls.Call(c.ToolUse.ID, true)
					open++
				} else if c.ToolResult != nil {
					if _, ok := calls.Result(c.ToolResult.ToolUseID); ok {
						open--
					}
				}
			}
		}
	}
}

// rest returns how many messages of a list come after a mark. ok is false if they are not
// the same when they are written with less before them, or if those before the mark have
// something that only the last messages of a request have.
func (m *Memo) rest(r *Request, at *memoMark, list []json.RawMessage, encode func(*Request) (*Encoded, error)) (n int, ok bool) {
	write := func(r *Request) []json.RawMessage {
		written, err := encode(r)
		if err != nil {
			return nil
		}
		body, _ := splitBody(written.Body)
		return body.list
	}
	part := *r
	part.Entries = m.systemAndPrompt(at.prompt)
	at.lead = len(write(&part))
	end := write(m.window(r, *at))
	if n = len(end) - at.lead; n <= 0 || n >= len(list) {
		return 0, false
	}
	same := func(a, b []json.RawMessage) bool {
		return slices.EqualFunc(a, b, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	}
	unmarked := *m.window(r, m.tip)
	unmarked.NoCache = true
	all := write(&unmarked)
	all = all[min(len(all), m.tip.lead):]
	before := len(list) - n
	return n, same(list[before:], end[at.lead:]) && len(all) == len(list) && same(list[:before], all[:before])
}

// remember adds messages to the memo, and moves the tip behind them.
func (m *Memo) remember(at memoMark, moved []json.RawMessage, notes []Note) {
	at.sum = cloneHash(m.tip.sum)
	for _, message := range moved {
		piece := append(slices.Clip(message), ',')
		at.sum.Write(piece)
		if at.entry <= m.turn {
			m.past = append(m.past, piece...)
		} else {
			m.this = append(m.this, piece...)
		}
	}
	in := make(map[string]bool)
	for i := m.tip.entry; i < at.entry; i++ {
		e := &m.entries[i]
		in[e.ID] = true
		for j := range contentOf(e) {
			if c := &e.Message.Content[j]; c.ToolUse != nil {
				m.calls[c.ToolUse.ID] = i
			}
		}
	}
	for _, n := range notes {
		if in[n.Entry] {
			m.notes = append(m.notes, n)
		}
	}
	at.notes = len(m.notes)
	m.tip = at
	if at.entry <= m.turn {
		m.base = at
	}
}

// splitRequest is a body in parts: what comes before the messages, and each of them.
type splitRequest struct {
	body []byte
	head []byte
	list []json.RawMessage
}

// lists are the names that formats have for the list of messages.
var lists = []string{"messages", "contents", "input", "entries"}

// splitBody takes a body apart. ok is false if it has no list of messages, or white space.
func splitBody(body []byte) (s splitRequest, ok bool) {
	s.body = body
	at := 1
	for _, f := range rawjson.MembersOf(body) {
		at += len(rawjson.Quote(f.Name)) + 1
		if slices.Contains(lists, f.Name) {
			if s.list, ok = rawjson.Elements(f.Value); !ok || at+len(f.Value) > len(body) || !bytes.Equal(body[at:at+len(f.Value)], f.Value) {
				return s, false
			}
			s.head = body[: at+1 : at+1]
			return s, true
		}
		at += len(f.Value) + 1
	}
	return s, false
}

// from returns the body from one of its messages on.
func (s *splitRequest) from(n int) []byte {
	at := len(s.head)
	for _, message := range s.list[:n] {
		at += len(message) + 1
	}
	return s.body[min(at, len(s.body)):]
}

func contentOf(e *session.Entry) []session.Content {
	if e.Message == nil {
		return nil
	}
	return e.Message.Content
}
