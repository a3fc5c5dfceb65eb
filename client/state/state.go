// Package state is what a client of the tagged protocol remembers between messages: which
// session it is in, whether that was restored, and how many messages it has. docs/ipc.md
// describes the protocol, and examples/terminal is a client.
//
//	var s state.State
//	s.RestoreSession(loaded.SessionID, loaded.MessageCount)
//	fmt.Printf("Restored session with %d messages\n", s.MessageCount)
package state

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// State is what a client remembers. The zero value has no session. It is for one goroutine.
type State struct {
	SessionID    string `json:"session_id,omitempty"` // "" means that there is none
	IsRestored   bool   `json:"is_restored"`          // the session is older than the client
	MessageCount int    `json:"message_count"`

	known map[string]SessionInfo
}

// SessionInfo is what a list says about a session.
type SessionInfo struct {
	SessionID    string    `json:"session_id"`
	Title        *string   `json:"title"` // nil if it has none
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	MessageCount int       `json:"message_count"` // on all branches; RestoreSession has those of one
	TotalTokens  int       `json:"total_tokens"`
}

// StartSession records that a new session began.
func (s *State) StartSession(id string) { s.setSession(id, false, 0) }

// RestoreSession records that the client continues a session with that many messages.
func (s *State) RestoreSession(id string, messages int) { s.setSession(id, true, messages) }

// IncrementMessageCount records a message.
func (s *State) IncrementMessageCount() { s.MessageCount++ }

// Clear records that the client is in no session. It keeps the list of sessions.
func (s *State) Clear() { s.setSession("", false, 0) }

func (s *State) setSession(id string, restored bool, messages int) {
	s.SessionID, s.IsRestored, s.MessageCount = id, restored, messages
}

// Remember replaces what is known about sessions with a whole list.
func (s *State) Remember(list []SessionInfo) {
	s.known = make(map[string]SessionInfo, len(list))
	for _, info := range list {
		s.known[info.SessionID] = info
	}
}

// Info returns what the last list said about a session.
func (s *State) Info(id string) (info SessionInfo, ok bool) {
	info, ok = s.known[id]
	return info, ok
}

// Sessions returns the last list, the most recently active session first.
func (s *State) Sessions() []SessionInfo {
	return slices.SortedFunc(maps.Values(s.known), func(a, b SessionInfo) int {
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.SessionID, b.SessionID)
	})
}
