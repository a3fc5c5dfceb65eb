package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

func shared(t testing.TB, s scribe, leaf string) *session.Context {
	t.Helper()
	return mustGet(s.Context(session.ContextOptions{Leaf: leaf, Shared: true}))(t)
}

// Whoever shares a context sees what others get a copy of, after everything that
// can happen to a session, at every leaf, and however often it is asked for.
func TestSharedContextIsTheSame(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := wanderer{scribe: newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = 1000 }), rng: soak.Rand(t)}
			for range 60 {
				w.step()
				leaf := ""
				if w.rng.IntN(4) == 0 {
					leaf = w.anyEntry()
				}
				if w.rng.IntN(3) == 0 {
					mustGet(w.Context(session.ContextOptions{Leaf: leaf, Unpaired: true}))(t)
				}
				want := tell(t, w.again().at(leaf))
				for range 2 {
					if diff := cmp.Diff(want, tell(t, shared(t, w.scribe, leaf))); diff != "" {
						t.Fatalf("shared at %q (-loaded +shared):\n%s", leaf, diff)
					}
					if diff := cmp.Diff(want, tell(t, w.at(leaf))); diff != "" {
						t.Fatalf("a copy at %q (-loaded +copy):\n%s", leaf, diff)
					}
				}
			}
		})
	}
}

// richLog is a session in which everything that an entry can have is there.
func richLog(t testing.TB) string {
	const rest = `"timestamp":"2024-01-01T10:00:01.000Z"`
	return writeLog(
		t, headerLine,
		`{"type":"message","id":"a","parent_id":null,`+rest+`,"message":{"role":"user","content":[{"type":"text","text":{"content":"one","t":[1]},"c":[2]}],"m":[3]},"e":[4]}`,
		`{"type":"message","id":"b","parent_id":"a",`+rest+`,"message":{"role":"assistant","content":[{"type":"thinking","thinking":{"content":"hm","x":1}},{"type":"text","text":"two"},{"type":"tool_use","tool_use":{"id":"c1","name":"n","input":{"deep":[{"n":1}]}}},{"type":"odd","x":1}],"model":"m","tokens":5,"usage":{"input":3,"u":1},"metadata":{"k":{"l":[1]}}}}`,
		`{"type":"message","id":"c","parent_id":"b",`+rest+`,"message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c1","content":[{"type":"text","text":"p"},{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"aGk=","s":1}}}]}}]}}`,
		`{"type":"merge","id":"d","parent_id":"c",`+rest+`,"merge":{"from_id":"a","summary":"joined","entry_ids":["a"],"x":1}}`,
		`{"type":"context_edit","id":"f","parent_id":"d",`+rest+`,"context_edit":{"target_id":"a","replacement":[{"type":"text","text":"instead"}]}}`,
		`{"type":"message","id":"g","parent_id":"f",`+rest+`,"message":{"role":"user","content":"last"}}`)
}

// spoil changes everything that can be reached from a value and is not a string.
func spoil(v reflect.Value, seen map[any]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		spoil(v.Elem(), seen)
	case reflect.Interface:
		if !v.IsNil() {
			spoil(v.Elem(), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i), seen)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			spoil(v.MapIndex(key), seen)
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("spoiled")
		}
	default:
		if v.CanSet() {
			v.SetZero()
		}
	}
}

// What was handed out as a copy can be changed, however deep, and neither the
// session nor any other context changes.
func TestACopyOfAContextIsTheCallers(t *testing.T) {
	t.Parallel()
	s := loadScribe(t, richLog(t))
	first := shared(t, s, "")
	want := tell(t, first)
	if !strings.Contains(want, "instead") || !strings.Contains(want, `"u":1`) {
		t.Fatalf("the session lacks what the test is about:\n%s", want)
	}
	c, entries := s.at(""), mustGet(s.GetContext())(t)
	path := mustGet(s.Forward(""))(t)
	for _, v := range []any{c, entries, path} {
		spoil(reflect.ValueOf(v), make(map[any]bool))
	}
	c.Entries = append(c.Entries[:1], c.Entries[2:]...)
	for _, got := range []*session.Context{first, shared(t, s, ""), s.at(""), s.again().at("")} {
		if diff := cmp.Diff(want, tell(t, got)); diff != "" {
			t.Errorf("a caller changed it (-before +after):\n%s", diff)
		}
	}
	if path := mustGet(s.Forward(""))(t); encode(t, path[0]) != encode(t, mustGet(s.again().Forward(""))(t)[0]) {
		t.Error("a caller changed the path")
	}
}

// Those who share a context do not get in each other's way when they append to
// what they were given.
func TestSharedContextsCanBeAppendedTo(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.compact("before", "")
	s.user("two")
	want := tell(t, shared(t, s, ""))
	var done sync.WaitGroup
	for i := range 4 {
		done.Go(func() {
			c := shared(t, s, "")
			c.Entries = append(c.Entries, session.Entry{ID: fmt.Sprint(i)})
			c.Fingerprints = append(c.Fingerprints, session.Fingerprint{byte(i)})
			c.Problems = append(c.Problems, session.Problem{EntryID: fmt.Sprint(i)})
			c.Leaf = fmt.Sprint(i)
			if got := c.Entries[len(c.Entries)-1].ID; got != fmt.Sprint(i) {
				t.Errorf("%d appended, %s is there", i, got)
			}
		})
	}
	done.Wait()
	if diff := cmp.Diff(want, tell(t, shared(t, s, ""))); diff != "" {
		t.Errorf("shared (-before +after):\n%s", diff)
	}
}

// An entry whose line comes late is seen by those who asked before it came.
func TestLateParentIsSeen(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), messageLine("c", "b", "user", "three"))
	s := loadScribe(t, path)
	before := len(shared(t, s, "c").Entries)
	f := mustGet(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	mustGet(f.WriteString(messageLine("b", "a", "user", "two") + "\n"))(t)
	mustDo(t, f.Close())
	mustGet(s.Refresh())(t)
	if after := len(shared(t, s, "c").Entries); before != 2 || after != 3 {
		t.Errorf("%d entries before the parent came, %d after, want 2 and 3", before, after)
	}
}

// A blob that was missing is looked for again.
func TestRestoredBlobIsSeen(t *testing.T) {
	t.Parallel()
	s := newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = 10 })
	s.call("c")
	s.message(session.RoleTool, session.ToolResult("c", strings.Repeat("long output ", 10), false))
	want := tell(t, s.at(""))
	blob := blobFiles(t, filepath.Dir(s.File()))[0]
	again := s.again()
	data := readBytes(t, blob)
	mustDo(t, os.Remove(blob))
	if c := shared(t, again, ""); len(c.Problems) != 1 {
		t.Fatalf("problems %v, want the missing blob", c.Problems)
	}
	mustDo(t, os.WriteFile(blob, data, 0o600))
	if diff := cmp.Diff(want, tell(t, shared(t, again, ""))); diff != "" {
		t.Errorf("after the blob came back (-want +got):\n%s", diff)
	}
}

// A long path is read in pieces, by several at once; it comes out in order, with
// what is large and without what is damaged, and so it does when it is asked for
// again after it has grown or another branch was read.
func TestLongPathsAreReadInOrder(t *testing.T) {
	t.Parallel()
	lines := []string{headerLine}
	var want []string
	parent := ""
	for i := range 3000 {
		id, text := fmt.Sprintf("e%04d", i), fmt.Sprint("text ", i)
		line := messageLine(id, parent, "user", text)
		switch i {
		case 700, 2999:
			text = strings.Repeat("large ", 50_000)
			line = messageLine(id, parent, "user", text)
		case 1500:
			line = strings.TrimSuffix(line, "}") + `,"x":nul}`
			text = ""
		}
		lines = append(lines, line)
		if parent = id; text != "" {
			want = append(want, text)
		}
	}
	s := loadScribe(t, writeLog(t, lines...))
	check := func(leaf string, want []string) {
		t.Helper()
		c := shared(t, s, leaf)
		for i := range c.Entries {
			if got := session.TextOf(c.Entries[i].Message.Content); i >= len(want) || got != want[i] {
				t.Fatalf("entry %d (%s) is not in its place", i, c.Entries[i].ID)
			}
		}
		if len(c.Entries) != len(want) {
			t.Fatalf("%d entries, want %d", len(c.Entries), len(want))
		}
	}
	check("", want)
	s.user("one more")
	want = append(want, "one more")
	check("", want)
	check("e0600", want[:601])
	check("", want)
	again := loadScribe(t, s.File())
	if diff := cmp.Diff(mustGet(json.Marshal(s.at("").Fingerprints))(t), mustGet(json.Marshal(again.at("").Fingerprints))(t)); diff != "" {
		t.Error("the fingerprints differ from those of a session that was just loaded")
	}
}
