package session_test

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
)

// A known member that has the wrong kind of value is written once, as it was read,
// and read again as the same.
func TestWrongKindsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	const lead = `"id":"e","parent_id":"p","timestamp":"2024-01-01T10:00:01.000Z"`
	lines := map[string]string{
		"parent":    `{"type":"message","id":"e","parent_id":%s,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"user","content":[]}}`,
		"timestamp": `{"type":"message","id":"e","parent_id":null,"timestamp":%s,"message":{"role":"user","content":[]}}`,
		"state":     `{"type":"compaction",` + lead + `,"compaction":{"summary":"s","first_kept_entry_id":"k","tokens_before":7,"state":{"model":"m","kept":%s}}}`,
		"flat":      `{"type":"message",` + lead + `,"message":%s,"role":"user","content":"text"}`,
		"flat role": `{"type":"message",` + lead + `,"role":%s,"content":"text"}`,
		"level":     `{"type":"thinking_level",` + lead + `,"thinking_level":%s}`,
		"older":     `{"type":"thinking_level_change",` + lead + `,"thinking_level":%s}`,
	}
	for name, payload := range payloadTypes() {
		for _, member := range membersOf(payload) {
			lines[name+"."+member] = fmt.Sprintf(`{"type":%q,%s,%q:{%q:%%s}}`, name, lead, name, member)
		}
		lines[name] = fmt.Sprintf(`{"type":%q,%s,%q:%%s}`, name, lead, name)
	}
	for _, member := range membersOf(reflect.TypeFor[session.Usage]()) {
		lines["usage."+member] = `{"type":"message",` + lead + `,"message":{"role":"user","content":[],"usage":{"` + member + `":%s}}}`
	}
	for name, block := range blockTypes() {
		for _, member := range membersOf(block) {
			lines[name+"."+member] = `{"type":"message",` + lead + `,"message":{"role":"user","content":[{"type":"` + name + `","` + name + `":{` + with(member) + `:%s}}]}}`
		}
	}
	for _, member := range membersOf(reflect.TypeFor[session.Source]()) {
		lines["source."+member] = `{"type":"message",` + lead + `,"message":{"role":"user","content":[{"type":"image","image":{"source":{` + with(member) + `:%s}}}]}}`
	}
	for name, form := range lines {
		for _, value := range []string{`5`, `-5`, `1.5`, `"str"`, `null`, `[1]`, `{"a":1}`, `true`} {
			line := fmt.Sprintf(form, value)
			var e, again session.Entry
			mustDo(t, json.Unmarshal([]byte(line), &e))
			written := encode(t, e)
			if twice := repeatedMember(t, written); twice != "" {
				t.Errorf("%s: %q is there twice when %s is written as %s", name, twice, line, written)
			}
			mustDo(t, json.Unmarshal([]byte(written), &again))
			same := cmpopts.IgnoreUnexported(session.MessageEntry{}, session.CustomEntry{}, session.ToolUseContent{})
			if diff := cmp.Diff(e, again, same, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s is written as %s, and reads back differently:\n%s", name, line, written, diff)
			}
			if last := encode(t, again); last != written {
				t.Errorf("%s: %s is written as %s, and then as %s", name, line, written, last)
			}
		}
	}
}

// When a member is there twice, the first counts, even if it is empty. That must still
// hold after the entry has been written again.
func TestRepeatedMembersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const lead = `"id":"e","parent_id":"p","timestamp":"2024-01-01T10:00:01.000Z"`
	for name, line := range map[string]string{
		"payload":       `{"type":"message",` + lead + `,"message":{"role":"user","content":[{"type":"text","text":{"content":"said"}}]},"message":{}}`,
		"empty payload": `{"type":"compaction",` + lead + `,"compaction":{},"compaction":{"summary":"s"}}`,
		"role":          `{"type":"message",` + lead + `,"message":{"role":"","role":"user","content":[]}}`,
		"content":       `{"type":"message",` + lead + `,"message":{"role":"user","content":[],"content":[{"type":"text","text":{"content":"no"}}]}}`,
		"count":         `{"type":"compaction",` + lead + `,"compaction":{"summary":"s","tokens_before":0,"tokens_before":7}}`,
		"result":        `{"type":"message",` + lead + `,"message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"k","is_error":false,"is_error":true,"content":"c"}}]}}`,
	} {
		var e, again session.Entry
		mustDo(t, json.Unmarshal([]byte(line), &e))
		written := encode(t, e)
		mustDo(t, json.Unmarshal([]byte(written), &again))
		same := cmpopts.IgnoreUnexported(session.MessageEntry{}, session.CustomEntry{}, session.ToolUseContent{})
		if diff := cmp.Diff(e, again, same, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s is written as %s, and reads back differently:\n%s", name, line, written, diff)
		}
	}
}

// with returns the name of a member, after what it needs to mean anything.
func with(member string) string {
	if member == "size" {
		return `"blob":"sha256:00","size"`
	}
	return `"` + member + `"`
}

// payloadTypes returns the payloads of all types of entries, by name.
func payloadTypes() map[string]reflect.Type { return pointersOf(reflect.TypeFor[session.Entry]()) }

// blockTypes returns the members of all types of blocks, by name.
func blockTypes() map[string]reflect.Type { return pointersOf(reflect.TypeFor[session.Content]()) }

func pointersOf(union reflect.Type) map[string]reflect.Type {
	types := make(map[string]reflect.Type)
	for i := range union.NumField() {
		if f := union.Field(i); f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			types[name] = f.Type.Elem()
		}
	}
	return types
}

func membersOf(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// repeatedMember returns the name of a member that an object in the text has twice.
func repeatedMember(t *testing.T, text string) string {
	t.Helper()
	type level struct {
		seen   map[string]bool // nil in a list
		isName bool            // a name comes next
	}
	var levels []level
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return ""
		}
		mustDo(t, err)
		if len(levels) > 0 {
			if top := &levels[len(levels)-1]; top.seen != nil {
				name, isString := token.(string)
				if top.isName && isString && top.seen[name] {
					return name
				}
				if top.isName && isString {
					top.seen[name] = true
				}
				top.isName = !top.isName
			}
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{seen: make(map[string]bool), isName: true})
		case json.Delim('['):
			levels = append(levels, level{})
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
		}
	}
}

// Cleaning leaves the ids alone that entries have of one another, whatever they look
// like: they hold a session together.
func TestCleaningKeepsAllReferences(t *testing.T) {
	t.Parallel()
	const secret = "password=kX9mQ2vLw8Zr4T"
	met := 0
	for name := range payloadTypes() {
		members := make(map[string]any)
		for _, member := range membersOf(payloadTypes()[name]) {
			members[member] = secret
		}
		members["entry_ids"] = []string{secret, secret}
		payload := mustGet(json.Marshal(members))(t)
		var e session.Entry
		mustDo(t, json.Unmarshal(fmt.Appendf(nil, `{"type":%q,"id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z",%q:%s}`, name, name, payload), &e))
		found := mustGet(clean.Entry(&e))(t)
		e.EachRef(func(id *string) {
			met++
			if *id != secret {
				t.Errorf("%s: an id became %q; found: %v", name, *id, found)
			}
		})
		if s := e.Summary(); s == secret {
			t.Errorf("%s: the summary keeps the secret", name)
		}
	}
	if met < 9 {
		t.Errorf("met %d ids", met)
	}
}
