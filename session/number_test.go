package session_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// TestMapsKeepLargeIntegers: what a line says of a number is what a reader of the
// decoded map sees, and what is written when the map is changed.
func TestMapsKeepLargeIntegers(t *testing.T) {
	const chat = "123456789012345678"
	lines := map[string]string{
		"input":    `{"type":"message","id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"1","name":"send","input":{"chat":` + chat + `,"n":1}}}]}}`,
		"metadata": `{"type":"message","id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":[],"metadata":{"chat":` + chat + `,"n":1}}}`,
		"custom":   `{"type":"custom","id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:00Z","custom":{"custom_type":"x","data":{"chat":` + chat + `,"n":1}}}`,
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			var e session.Entry
			if err := e.UnmarshalJSON([]byte(line)); err != nil {
				t.Fatal(err)
			}
			m := mapOf(&e)
			if got := fmt.Sprint(m["chat"]); got != chat {
				t.Errorf("the number is read as %s, want %s", got, chat)
			}
			if _, ok := m["n"].(float64); !ok {
				t.Errorf("an ordinary number is a %T, want float64", m["n"])
			}
			m["new"] = true
			text, err := e.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var again session.Entry
			if err := again.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(mapOf(&again)["chat"]); got != chat || mapOf(&again)["new"] != true {
				t.Errorf("it is written as %s", text)
			}
		})
	}
}

func mapOf(e *session.Entry) map[string]any {
	switch {
	case e.Custom != nil:
		return e.Custom.Data
	case len(e.Message.Content) > 0:
		return e.Message.Content[0].ToolUse.Input
	}
	return e.Message.Metadata
}
