package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
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
		`{"type":"message",` + base + `"message":{"content":[{"type":"text","text":"a","type":"image"},{"type":"text","text":"a","type":"image"x`,
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
	f.Fuzz(checkAnyFile)
}

// checkAnyFile is what must hold of any bytes in a session file.
func checkAnyFile(t *testing.T, data []byte) {
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
	mustDo(t, err)
	after := loadScribe(t, path)
	ids := fuzzRead(t, after)
	for _, want := range append(before, id) {
		if !slices.Contains(ids, want) {
			t.Errorf("entry %q is gone; there are %d", want, len(ids))
		}
	}
	if after.LeafID() != id {
		t.Errorf("leaf %q, want %q", after.LeafID(), id)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if !bytes.HasPrefix(readBytes(t, path), whole) {
		t.Error("whole lines have changed")
	}
}

// Real sessions, damaged in all the ways that disks, editors and other writers
// know, several at once.
func TestLoadOfMauledSessions(t *testing.T) {
	t.Parallel()
	for n := range soak.N(4) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			rng := soak.Rand(t)
			w := wanderer{scribe: newScribe(t), rng: rng}
			for range 10 + rng.IntN(100) {
				w.step()
			}
			lines := bytes.SplitAfter(readBytes(t, w.File()), []byte("\n"))
			lines = lines[:len(lines)-1]
			for range 12 {
				checkAnyFile(t, maul(rng, lines))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// maul returns a session's bytes after a few accidents.
func maul(rng *rand.Rand, original [][]byte) []byte {
	lines := make([][]byte, len(original))
	for i := range original {
		lines[i] = bytes.Clone(original[i])
	}
	for range 1 + rng.IntN(5) {
		i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
		line := lines[i]
		cut := 0
		if len(line) > 1 {
			cut = rng.IntN(len(line) - 1)
		}
		switch rng.IntN(11) {
		case 0: // lost
			lines = slices.Delete(lines, i, i+1)
		case 1: // repeated elsewhere
			lines = slices.Insert(lines, j, bytes.Clone(line))
		case 2: // repeated at the end, with what followed it
			lines = append(lines, lines[i:min(len(lines), i+1+rng.IntN(3))]...)
		case 3: // out of order
			lines[i], lines[j] = lines[j], lines[i]
		case 4: // torn
			lines[i] = append(line[:cut:cut], '\n')
		case 5: // torn, and the next one joined to it
			lines[i] = line[:cut:cut]
		case 6: // a lost block
			clear(line[cut:max(cut, len(line)-1)])
		case 7: // a flipped bit
			if line[cut] ^= 1 << rng.IntN(7); line[cut] == '\n' {
				line[cut] = 'x'
			}
		case 8: // another writer's noise
			lines = slices.Insert(lines, i, []byte(pick(rng, "\n", "noise\n", "{}\n", "[1]\n", "\r\n", `{"type":"x","id":"y"}`+"\n")))
		case 9: // another parent
			if k := bytes.Index(line, []byte(`"parent_id":"`)); k >= 0 {
				if other := bytes.Index(lines[j], []byte(`"id":"`)); other >= 0 && len(lines[j]) > other+42 && len(line) > k+49 {
					copy(line[k+13:k+49], lines[j][other+6:other+42])
				}
			}
		case 10: // cut off
			lines = lines[:i+1]
			lines[i] = line[:cut]
		}
		if len(lines) == 0 {
			break
		}
	}
	return bytes.Join(lines, nil)
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
		// A gap may have been a leaf entry, which is not shown either.
		if e.Type != session.TypeLeaf && e.Type != session.TypeGap && !slices.Contains(tree, e.ID) {
			t.Errorf("entry %q is not in the tree of %d", e.ID, len(tree))
		}
	}
	s.problems()
	mustGet(s.Labels())(t)
	mustGet(s.Name())(t)
	for _, leaf := range mustGet(s.Leaves())(t) {
		mustGet(s.Forward(leaf))(t)
	}
	_, _ = s.PlanCompaction(session.PlanOptions{KeepTokens: 1, Count: one})
	return ids
}
