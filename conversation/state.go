package conversation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Session is a conversation, or one link of a chain of sessions, at the moment it was asked
// for. It is a value: its methods return new ones. To store what was added to it, call
// Sessions.SaveSession.
type Session struct {
	ID         string
	Messages   []Message
	CreatedAt  time.Time
	LastActive time.Time
	Metadata   map[string]any

	// Extra are members of a session read from JSON that this version does not know.
	Extra session.Fields
}

// The members of Session.Metadata that the package sets.
const (
	MetaContinuedFrom     = "continued_from"     // the id of the previous session
	MetaContinuedTo       = "continued_to"       // the id of the next session
	MetaContinuationIndex = "continuation_index" // the number of continuations since the original
	MetaRecoveredFrom     = "recovered_from"     // the id of the session that could not be read
	MetaTitle             = "title"
	MetaDirectory         = "directory"
	MetaMessageCount      = "message_count"
	MetaTokenCount        = "token_count"
)

// NewSession returns an empty session with an id. No store has it yet.
func NewSession() Session {
	now := time.Now().UTC()
	return Session{ID: newID(), CreatedAt: now, LastActive: now, Metadata: map[string]any{}}
}

// AddMessage returns a session with one more message. Missing fields of the message
// (id, time, category) are filled in.
func (s Session) AddMessage(m Message) Session {
	now := time.Now().UTC()
	s.Messages = append(slices.Clip(s.Messages), m.Clone().withDefaults(now))
	s.Metadata = cloneMap(s.Metadata)
	s.LastActive = now
	return s
}

// MessageCount returns the number of messages.
func (s Session) MessageCount() int { return len(s.Messages) }

// TotalTokens returns the tokens of all messages. Those without a count are estimated.
func (s Session) TotalTokens() int {
	total := 0
	for i := range s.Messages {
		total += s.Messages[i].tokens()
	}
	return total
}

// MessagesByCategory returns the messages of a category, in their order.
func (s Session) MessagesByCategory(c Category) []Message {
	var found []Message
	for _, m := range s.Messages {
		if m.Category == c {
			found = append(found, m)
		}
	}
	return found
}

// Clone returns a copy that shares nothing changeable with the session.
func (s Session) Clone() Session {
	messages := make([]Message, len(s.Messages))
	for i, m := range s.Messages {
		messages[i] = m.Clone()
	}
	s.Messages = messages
	s.Metadata = cloneMap(s.Metadata)
	s.Extra = cloneFields(s.Extra)
	return s
}

// Validate returns what is wrong with a session, or nil. The error matches
// session.ErrInvalid.
func (s Session) Validate() error {
	var faults []error
	if err := store.CheckName(s.ID); err != nil {
		faults = append(faults, err)
	}
	if s.CreatedAt.IsZero() || s.LastActive.IsZero() {
		faults = append(faults, errors.New("it has no time"))
	}
	seen := make(map[string]bool)
	for i, m := range s.Messages {
		if err := m.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("message %d: %w", i, err))
		}
		if seen[m.ID] {
			faults = append(faults, fmt.Errorf("message %d: the id %.80q is taken by an earlier one", i, m.ID))
		}
		seen[m.ID] = true
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("session %.80q: %w: %w", s.ID, session.ErrInvalid, errors.Join(faults...))
}

// Dict returns the session as a map that JSON can write: the inverse of
// SessionFromDict.
func (s Session) Dict() (map[string]any, error) { return dict(s) }

// SessionFromDict reads and validates what Dict wrote.
func SessionFromDict(d map[string]any) (Session, error) {
	var s Session
	err := fromDict(d, &s)
	return s, err
}
