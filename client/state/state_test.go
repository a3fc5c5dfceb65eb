package state_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/client/state"
)

func ExampleState() {
	var s state.State
	s.StartSession("hazel")
	s.IncrementMessageCount()
	s.IncrementMessageCount()
	fmt.Println(s.SessionID, s.IsRestored, s.MessageCount)
	s.RestoreSession("willow", 14)
	fmt.Printf("Restored session with %d messages\n", s.MessageCount)
	s.Clear()
	text, _ := json.Marshal(&s)
	fmt.Println(string(text))
	// Output:
	// hazel false 2
	// Restored session with 14 messages
	// {"is_restored":false,"message_count":0}
}

// TestList: a list takes the place of the one before, and survives a change of session.
func TestList(t *testing.T) {
	t.Parallel()
	var s state.State
	for _, text := range []string{
		`[{"session_id":"gone","title":"x","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","message_count":1,"total_tokens":2}]`,
		`[{"session_id":"old","title":null,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-02T00:00:00Z","message_count":1,"total_tokens":2},
		  {"session_id":"new","title":"Trees","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-03T00:00:00.5Z","message_count":3,"total_tokens":4}]`,
	} {
		var list []state.SessionInfo
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		s.Remember(list)
	}
	s.Clear()
	all := s.Sessions()
	if len(all) != 2 || all[0].SessionID != "new" || *all[0].Title != "Trees" || all[1].Title != nil {
		t.Errorf("%+v", all)
	}
	if info, ok := s.Info("new"); !ok || info.MessageCount != 3 {
		t.Errorf("%+v", info)
	}
	if _, ok := s.Info("gone"); ok {
		t.Error("a session that is not in the last list is still known")
	}
}
