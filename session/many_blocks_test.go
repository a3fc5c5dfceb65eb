package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// TestALineDoesNotDecideHowMuchMemoryItTakes: the shortest blocks there are, and more of
// them than a message can have. The line takes a few times its size, and survives.
func TestALineDoesNotDecideHowMuchMemoryItTakes(t *testing.T) {
	const n = 500_000
	many := "[" + strings.Repeat("{},", n-1) + "{}]"
	result := func(member, list string) string {
		return `{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":false,` + member + `:` + list + `}}`
	}
	message := func(content string) string {
		return `{"type":"message","id":"a","parent_id":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"tool","content":` + content + `}}`
	}
	for name, line := range map[string]string{
		"content":     message(many),
		"parts":       message("[" + result(`"content"`, many) + "]"),
		"other parts": message("[" + result(`"content":"","parts"`, many) + "]"),
		"many results": message("[" + strings.Repeat(result(`"content":"","parts"`, many[:1+3*40_000]+"{}]")+",", 12) +
			result(`"content":"","parts"`, "[{}]") + "]"),
		"replacement": `{"type":"context_edit","id":"a","parent_id":"b","timestamp":"2026-01-02T03:04:05.000Z","context_edit":{"target_id":"b","replacement":` + many + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(line)) {
				t.Fatal("not JSON")
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var e session.Entry
			if err := e.UnmarshalJSON([]byte(line)); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			const floor = 64 << 20 // what as many blocks as there may be take while the list grows
			if used := after.TotalAlloc - before.TotalAlloc; used > 8*uint64(len(line))+floor {
				t.Errorf("%d bytes for a line of %d", used, len(line))
			}
			again, err := e.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if !sameBlocksIn(again, []byte(line)) {
				t.Errorf("it came back as %.300s… (%d bytes instead of %d)", again, len(again), len(line))
			}
		})
	}
}

// sameBlocksIn compares lines whose members may stand in another order.
func sameBlocksIn(a, b []byte) bool {
	return len(a) == len(b) && bytes.Count(a, []byte("{}")) == bytes.Count(b, []byte("{}"))
}

func TestTooManyBlocksAreNotWritten(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	blocks := make([]session.Content, session.MaxBlocks+1)
	for i := range blocks {
		blocks[i] = session.Text("x")
	}
	result := session.ToolResult("c", "", false)
	result.ToolResult.Parts = blocks
	for name, content := range map[string][]session.Content{"content": blocks, "parts": {result}} {
		if _, err := s.AppendMessage(session.RoleUser, content); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "more than 100000 blocks") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.AppendMessage(session.RoleUser, blocks[1:]); err != nil {
		t.Error(err)
	}
	if got, err := s.Entry(s.LeafID()); err != nil || len(got.Message.Content) != session.MaxBlocks {
		t.Errorf("as many as there may be: %v", err)
	}
}
