package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
)

// Whatever is accepted as an entry can be written, reads back as the same, and
// keeps what this version does not know.
func FuzzEntry(f *testing.F) {
	const base = `"id":"e","parent_id":"p","timestamp":"2024-01-01T10:00:01.000Z",`
	for _, seed := range []string{
		messageLine("a", "", "user", "hi"),
		messageLine("a", "b", "tool", "\u2028\x00<&>"),
		`{"type":"message",` + base + `"role":"user","content":"flat","x":{"b":1.0,"a":[1e400]}}`,
		`{"type":"message",` + base + `"message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"n","input":{"z":1,"a":12345678901234567890}}},{"type":"thinking","thinking":{"content":"t","signature":"s"}},{"type":"odd","x":1},5,null,"s"],"usage":{"input":1,"x":2},"tokens":0,"metadata":{}}}`,
		`{"type":"message",` + base + `"message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"image","image":{"source":null}}]}}]}}`,
		`{"type":"compaction",` + base + `"compaction":{"summary":"s","first_kept_entry_id":"k","tokens_before":1,"state":{"model":"m","x":[]}}}`,
		`{"type":"label",` + base + `"target_id":"t","label":null}`,
		`{"type":"thinking_level_change",` + base + `"thinking_level_change":{"thinking_level":"high"}}`,
		`{"type":"custom",` + base + `"custom":{"custom_type":"c","data":[1]}}`,
		`{"type":"context_edit",` + base + `"context_edit":{"target_id":"t","replacement":null}}`,
		`{"type":"merge",` + base + `"merge":{"from_id":"f","entry_ids":["a",null,1]}}`,
		`{"type":"unknown",` + base + `"unknown":{"a":1},"message":null}`,
		`{"type":"message","id":"e","timestamp":"0001-01-01T00:00:00Z","timestamp":"2024-01-01T00:00:00Z","message":null,"message":{}}`,
		`{"type":"message","id":5,"id":"x","parent_id":{},"timestamp":17}`,
		`{"type":"leaf","id":"l","parent_id":null,"leaf":{"from_id":7}}`,
		"\xef\xbb\xbf {\"\\u0074ype\":\"revert\",\"target_id\":\"\\ud800\"}\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var e session.Entry
		if e.UnmarshalJSON(line) != nil {
			return
		}
		once := mustGet(e.MarshalJSON())(t)
		if !json.Valid(once) || bytes.ContainsAny(once, "\n") {
			t.Fatalf("%q was written as %q", line, once)
		}
		var again session.Entry
		mustDo(t, again.UnmarshalJSON(once))
		twice := mustGet(again.MarshalJSON())(t)
		if diff := cmp.Diff(string(once), string(twice)); diff != "" {
			t.Fatalf("%q: written a second time (-first +second):\n%s", line, diff)
		}
		if again.Type != e.Type || again.ID != e.ID || !again.Timestamp.Equal(e.Timestamp) || (again.ParentID == nil) != (e.ParentID == nil) {
			t.Fatalf("%q was read back as %q", line, twice)
		}
		// What was unknown stands in the new line with its very bytes, but for
		// newlines between tokens.
		for _, field := range e.Extra {
			if bytes.IndexByte(field.Value, '\n') < 0 && !bytes.Contains(once, field.Value) {
				t.Errorf("%q lost its unknown member %s = %s: %q", line, field.Name, field.Value, once)
			}
		}
	})
}

// Whatever stands in a session file: loading it does not panic or hang and
// writes nothing; if it loads, it can be appended to, and then still tells all
// that it did before.
func FuzzLoad(f *testing.F) {
	a, b, c := messageLine("a", "", "user", "one"), messageLine("b", "a", "assistant", "two"), messageLine("c", "b", "user", "three")
	join := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	compaction := `{"type":"compaction","id":"k","parent_id":"c","timestamp":"2024-01-01T10:00:02.000Z","compaction":{"summary":"s","first_kept_entry_id":"b","tokens_before":1,"state":{}}}`
	for _, seed := range []string{
		"", "\n", headerLine, join(headerLine), join(headerLine, a, b, c), join(a, headerLine, b), join(headerLine, a, b, c, a, b), join(headerLine, a, "garbage", c),
		join(headerLine, a, b, c, compaction, `{"type":"revert","id":"r","parent_id":"k","revert":{"target_id":"k"}}`),
		join(headerLine, a, b, `{"type":"leaf","id":"l","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","leaf":{"from_id":"b"}}`, c),
		join(headerLine, messageLine("a", "b", "user", "x"), messageLine("b", "a", "user", "x")),
		join(headerLine, a, b[:50], b, c[:len(c)-9]+a), headerLine + "\n" + a + "\n" + b, headerLine + "\n" + a + "\n" + b[:20],
		join("\xef\xbb\xbf"+headerLine+"\r", a+"\r", strings.Repeat("\x00", 20), b),
		join(headerLine, a, `{"type":"label","id":"x","parent_id":"","label":{"target_id":"a","label":"l"}}`, `{"type":"session_info","id":"y","name":"n"}`),
		join(headerLine, a, b, `{"type":"merge","id":"m","parent_id":"a","merge":{"from_id":"b","entry_ids":["b","z"]}}`, `{"type":"context_edit","id":"e","parent_id":"m","context_edit":{"target_id":"a"}}`),
		join(`{"type":"session","id":"s","version":2}`, a),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		mustDo(t, os.WriteFile(path, data, 0o600))
		mgr := session.NewManager(filepath.Dir(path))
		mgr.Config = quick(filepath.Dir(path))
		loaded, err := mgr.Load(path)
		if err != nil {
			if !bytes.Equal(readBytes(t, path), data) {
				t.Fatalf("a session that could not be loaded was changed")
			}
			return
		}
		defer loaded.Close()
		s := scribe{loaded, t}
		before := fuzzRead(t, s)
		full := loadScribe(t, path)
		mustGet(full.GetTree())(t)
		if full.LeafID() != s.LeafID() {
			t.Fatalf("leaf %q from the end of the log, %q from all of it", s.LeafID(), full.LeafID())
		}
		if diff := cmp.Diff(tell(t, full.at("")), tell(t, s.at(""))); diff != "" {
			t.Fatalf("context (-all +end):\n%s", diff)
		}
		if !bytes.Equal(readBytes(t, path), data) {
			t.Fatal("reading changed the file")
		}
		id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("appended")})
		if errors.Is(err, session.ErrConflict) { // a last line that only lacked its line end
			mustGet(s.Refresh())(t)
			id, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("appended")})
		}
		mustDo(t, err)
		after := loadScribe(t, path)
		ids := fuzzRead(t, after)
		for _, want := range append(before, id) {
			if !slices.Contains(ids, want) {
				t.Errorf("entry %q is gone; there are %q", want, ids)
			}
		}
		if after.LeafID() != id {
			t.Errorf("leaf %q, want %q", after.LeafID(), id)
		}
		whole := data[:bytes.LastIndexByte(data, '\n')+1]
		if !bytes.HasPrefix(readBytes(t, path), whole) {
			t.Error("whole lines have changed")
		}
	})
}

// fuzzRead reads a session in every way and returns the ids of its entries.
func fuzzRead(t *testing.T, s scribe) []string {
	t.Helper()
	checkPairs(t, mustGet(s.GetContext())(t))
	tree := entryIDs(flatten(mustGet(s.GetTree())(t)))
	var ids []string
	for e, err := range s.Entries() {
		mustDo(t, err)
		ids = append(ids, e.ID)
		if e.Type != session.TypeLeaf && !slices.Contains(tree, e.ID) {
			t.Errorf("entry %q is not in the tree %q", e.ID, tree)
		}
	}
	s.problems()
	mustGet(s.Labels())(t)
	mustGet(s.Name())(t)
	for _, leaf := range mustGet(s.Leaves())(t) {
		mustGet(s.PathTo(leaf))(t)
	}
	_, _ = s.PlanCompaction(1, one)
	return ids
}
