package keyed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
)

// wantRefused checks an error of Save or Close about a message.
func wantRefused(t testing.TB, err error) {
	t.Helper()
	var refused *keyed.RefusedError
	if !errors.As(err, &refused) || refused.Err == nil {
		t.Errorf("%v, want a RefusedError", err)
	}
	if errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v matches os.ErrInvalid, though the key is valid", err)
	}
}

func TestUnknownRolesAreRefused(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"", "critic", "User", "bashExecution", "developer"} {
		t.Run(role, func(t *testing.T) {
			everywhere(t, func(t *testing.T, m manager) {
				m.talk("u1")
				bad := keyed.Message{Role: role, Content: "x"}
				if err := m.Add(key, bad); !errors.Is(err, session.ErrInvalid) || !errors.Is(err, os.ErrInvalid) {
					t.Errorf("Add: %v, want ErrInvalid", err)
				}
				if err := m.Replace(key, []keyed.Message{message("u2"), bad}); !errors.Is(err, session.ErrInvalid) {
					t.Errorf("Replace: %v, want ErrInvalid", err)
				}
				m.save(key) // those two were told
				m.AddMessage(key, role, "x")
				wantRefused(t, m.Save(key))
				m.AddFullMessage(key, bad)
				wantRefused(t, m.Save(key))
				m.SetHistory(key, []keyed.Message{bad})
				wantRefused(t, m.Save(key))
				m.save(key)
				m.sees("u1")
				m.hasAll("u1")
			})
		})
	}
	m := inDir(t, t.TempDir())
	for _, role := range []string{"user", "assistant", "system", "tool"} {
		if err := m.Add(key, keyed.Message{Role: role, Content: "x"}); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// TestSaveOfAValidKeyIsNeverErrInvalid: os.ErrInvalid means the key, whatever is
// wrong with a message.
func TestSaveOfAValidKeyIsNeverErrInvalid(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		for name, bad := range map[string]keyed.Message{
			"arguments": {Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "c", Arguments: map[string]any{"f": func() {}}}}},
			"extra":     {Role: "user", Extra: session.Fields{{Name: "x", Value: json.RawMessage("{")}}},
			"number":    {Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "c", Arguments: map[string]any{"n": json.Number("0x1")}}}},
		} {
			if err := m.Add(key, bad); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s: Add: %v, want ErrInvalid", name, err)
			}
			m.AddFullMessage(key, bad)
			wantRefused(t, m.Save(key))
			m.SetHistory(key, []keyed.Message{bad})
			wantRefused(t, m.Save(key))
		}
		m.save(key)
		m.sees()
	})
}

// TestKeyedKeepsLargeIntegers: in memory, in the log, in a message's JSON and
// from an old file.
func TestKeyedKeepsLargeIntegers(t *testing.T) {
	t.Parallel()
	const chat = "123456789012345678"
	check := func(t *testing.T, where string, m manager) {
		t.Helper()
		history := m.GetHistory(key)
		if len(history) == 0 || len(history[0].ToolCalls) == 0 {
			t.Fatalf("%s: history %+v", where, history)
		}
		arguments := history[0].ToolCalls[0].Arguments
		if got := fmt.Sprint(arguments["chat_id"]); got != chat {
			t.Errorf("%s: the argument is %s, want %s", where, got, chat)
		}
		if _, ok := arguments["small"].(float64); !ok {
			t.Errorf("%s: an ordinary number is a %T, want float64", where, arguments["small"])
		}
		text, err := json.Marshal(history[0])
		if err != nil || !strings.Contains(string(text), chat) {
			t.Errorf("%s: the JSON is %s, %v", where, text, err)
		}
	}
	arguments := map[string]any{"chat_id": int64(123456789012345678), "small": 7}
	call := keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "c1", Name: "send", Arguments: arguments}}}
	everywhere(t, func(t *testing.T, m manager) {
		m.AddFullMessage(key, call)
		check(t, "in memory", m)
		m.SetHistory(key, []keyed.Message{call, message("=c1"), message("u1")})
		check(t, "replaced", m)
	})
	dir := t.TempDir()
	m := inDir(t, dir)
	m.AddFullMessage(key, call)
	m.close()
	check(t, "in the log", inDir(t, dir))

	for name, text := range map[string]string{
		"an object": `{"chat_id":` + chat + `,"small":7}`,
		"a text":    `"{\"chat_id\":` + chat + `,\"small\":7}"`,
	} {
		old := `{"key":"telegram:123456","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"send","arguments":` + text + `}]}]}`
		dir := put(t, map[string]string{"telegram_123456.json": old})
		m := inDir(t, dir)
		check(t, "from an old file, "+name, m)
		m.AddFullMessage(key, message("=c1"))
		m.close()
		check(t, "taken over, "+name, inDir(t, dir))
	}
}

// What is missing from a call is an error that says so, and not a panic.
func TestNoFunctionIsRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		m.talk("u1")
		if _, err := m.Summarize(key, nil); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Summarize: %v, want ErrInvalid", err)
		}
	})
}
