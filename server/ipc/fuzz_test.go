package ipc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/ipc"
)

// fuzz sends anything to a server. It must come to an end, and whatever it says must be a message
// of the one dialect or the other. At least one line that is not a request must be answered.
func fuzz(f *testing.F, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := home.Open(t.Context(), "mem:", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		var out bytes.Buffer
		if err := ipc.New(h, &ipc.Options{MaxLine: 4096}).ServeStream(bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			checkMessage(t, line)
		}
		if first, _, _ := bytes.Cut(bytes.TrimSpace(in), []byte("\n")); len(first) > 0 && !json.Valid(first) && out.Len() == 0 {
			t.Errorf("%q is not answered", first)
		}
	})
}

func checkMessage(t *testing.T, line string) {
	t.Helper()
	var one struct {
		Type    string
		JSONRPC string
		ID      json.RawMessage
		Method  string
	}
	if strings.HasPrefix(line, "[") {
		var all []json.RawMessage
		if err := json.Unmarshal([]byte(line), &all); err != nil || len(all) == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		for _, part := range all {
			checkMessage(t, string(part))
		}
		return
	}
	if err := json.Unmarshal([]byte(line), &one); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if tagged, rpc := one.Type != "", one.JSONRPC == "2.0" && (one.Method != "" || one.ID != nil); tagged == rpc {
		t.Errorf("%q is a message of neither dialect", line)
	}
}

func FuzzTagged(f *testing.F) {
	fuzz(f,
		"{\"type\":\"session_create\",\"title\":\"a\"}\n{\"type\":\"session_save\"}\n{\"type\":\"session_export\",\"format\":\"markdown\"}\n",
		`{"type":"session_list","limit":3}`,
		`{"type":"session_load","session_id":"last"}`,
		"{\"type\":\"session_create\"}\n{\"type\":\"session_delete\",\"session_id\":\"last\"}",
		"{\"type\":\"initialize\",\"demo_mode\":true}\n{\"type\":\"query\",\"query\":\"say hello\"}\n{\"type\":\"tool_approve\",\"tool_id\":\"x\",\"approved\":true}",
		`{"type":null}`, `{"type":"error"}`, "{\"type\":\"\xff\"}", `{"type":"session_load","session_id":{}}`,
		`{"type":"session_create","title":"`+strings.Repeat("x", 5000)+`"}`,
	)
}

func FuzzRPC(f *testing.F) {
	fuzz(f,
		`{"jsonrpc":"2.0","id":1,"method":"sessions.list","params":{"limit":3}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"sessions.create"},{"jsonrpc":"2.0","id":1,"method":"sessions.tags"},7,{}]`,
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"entries.follow\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":\"a\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sessions.create\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"entries.path\",\"params\":{\"session\":\"last\"}}",
		`{"jsonrpc":"2.0","id":null,"method":"search.find","params":{"query":"a OR ("}}`,
		`{"jsonrpc":"2.0","id":1,"result":5}`, `{"jsonrpc":2}`, `[]`, `[[]]`, `[`, `{"jsonrpc":"2.0","id":1e400,"method":"x"}`,
		strings.Repeat("[", 4000),
	)
}
