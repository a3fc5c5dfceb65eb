package session_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
)

// Lines in canonical form come out as they went in, byte for byte, with
// whatever this version does not know at every level.
func TestCanonicalLinesRoundTrip(t *testing.T) {
	t.Parallel()
	const base = `,"id":"e","parent_id":"p","timestamp":"2024-01-01T10:00:01.000Z",`
	const more = `,"x_new":{"b":[1.50,{}],"a":12345678901234567890}`
	for name, line := range map[string]string{
		"message":         `{"type":"message"` + base + `"message":{"role":"user","content":[]}}`,
		"message, all":    `{"type":"message"` + base + `"message":{"role":"assistant","content":[],"model":"m","provider":"p","category":"DIALOG","tokens":0,"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"cache_write_1h":3,"reasoning":5,"cost_micro_usd":6` + more + `},"stop_reason":"end","response_id":"r","metadata":{"z":1e2,"a":null}` + more + `}` + more + `}`,
		"root":            `{"type":"message","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.123456789Z","message":{"role":"user","content":[]}}`,
		"model_change":    `{"type":"model_change"` + base + `"model_change":{"provider":"p","model_id":"m"` + more + `}` + more + `}`,
		"thinking_level":  `{"type":"thinking_level"` + base + `"thinking_level":{"thinking_level":"high"` + more + `}` + more + `}`,
		"label":           `{"type":"label"` + base + `"label":{"target_id":"t","label":"l"` + more + `}` + more + `}`,
		"label, removed":  `{"type":"label"` + base + `"label":{"target_id":"t"}}`,
		"session_info":    `{"type":"session_info"` + base + `"session_info":{"name":"n"` + more + `}` + more + `}`,
		"compaction":      `{"type":"compaction"` + base + `"compaction":{"summary":"s","first_kept_entry_id":"k","tokens_before":7,"state":{"provider":"p","model":"m","thinking_level":"t"` + more + `}` + more + `}` + more + `}`,
		"branch_summary":  `{"type":"branch_summary"` + base + `"branch_summary":{"summary":"s","from_id":"f"` + more + `}` + more + `}`,
		"custom":          `{"type":"custom"` + base + `"custom":{"custom_type":"c","data":{"z":0.1,"a":12345678901234567890,"m":{"y":[],"x":"\u00e9"}}` + more + `}` + more + `}`,
		"leaf":            `{"type":"leaf"` + base + `"leaf":{"from_id":"f"` + more + `}` + more + `}`,
		"context_edit":    `{"type":"context_edit"` + base + `"context_edit":{"target_id":"t","replacement":[{"type":"text","text":{"content":"c"}}]` + more + `}` + more + `}`,
		"context_edit 0":  `{"type":"context_edit"` + base + `"context_edit":{"target_id":"t","replacement":null}}`,
		"revert":          `{"type":"revert"` + base + `"revert":{"target_id":"t"` + more + `}` + more + `}`,
		"merge":           `{"type":"merge"` + base + `"merge":{"from_id":"f","summary":"s","entry_ids":["a","b"]` + more + `}` + more + `}`,
		"unknown":         `{"type":"hologram"` + base + `"hologram":{"z":1,"a":[2.0]},"message":{"role":5}}`,
		"unknown, empty":  `{"type":"nothing","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z"}`,
		"timestamp kept":  `{"type":"message","id":"e","parent_id":null,"timestamp":"once upon a time","message":{"role":"user","content":[]}}`,
		"timestamp of pi": `{"type":"message","id":"e","parent_id":null,"timestamp":1704103201000,"message":{"role":"user","content":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e session.Entry
			mustDo(t, json.Unmarshal([]byte(line), &e))
			if diff := cmp.Diff(line, encode(t, e)); diff != "" {
				t.Errorf("(-in +out):\n%s", diff)
			}
		})
	}
}

func TestContentRoundTrips(t *testing.T) {
	t.Parallel()
	const more = `,"x_new":{"b":1.50,"a":[12345678901234567890]}`
	const source = `"source":{"type":"base64","media_type":"m/t","data":"AAAA"` + more + `}`
	for name, block := range map[string]string{
		"text":                `{"type":"text","text":{"content":"c"` + more + `}` + more + `}`,
		"image":               `{"type":"image","image":{` + source + more + `}` + more + `}`,
		"image, url":          `{"type":"image","image":{"source":{"type":"url","media_type":"","data":"http://x/y.png"}}}`,
		"image, no source":    `{"type":"image","image":{"source":null}}`,
		"image, blob":         `{"type":"image","image":{"source":{"type":"base64","media_type":"m/t","blob":"sha256:00","size":5}}}`,
		"audio":               `{"type":"audio","audio":{` + source + more + `}` + more + `}`,
		"file":                `{"type":"file","file":{"name":"n",` + source + more + `}` + more + `}`,
		"tool_use":            `{"type":"tool_use","tool_use":{"id":"i","name":"n","input":{"z":12345678901234567890,"a":0.1,"m":{"y":1,"x":2}}` + more + `}` + more + `}`,
		"tool_use, no input":  `{"type":"tool_use","tool_use":{"id":"i","name":"n","input":null}}`,
		"tool_result":         `{"type":"tool_result","tool_result":{"tool_use_id":"i","is_error":true,"content":"c"` + more + `}` + more + `}`,
		"tool_result, blob":   `{"type":"tool_result","tool_result":{"tool_use_id":"i","is_error":false,"blob":"sha256:00","size":9}}`,
		"tool_result, parts":  `{"type":"tool_result","tool_result":{"tool_use_id":"i","is_error":false,"content":"c","parts":[{"type":"text","text":{"content":"c"}},{"type":"image","image":{` + source + `}},{"type":"odd"}]}}`,
		"thinking":            `{"type":"thinking","thinking":{"content":"c","signature":"s","redacted":"r"` + more + `}` + more + `}`,
		"unknown block":       `{"z":1,"type":"hologram","a":{"y":1.0,"x":12345678901234567890}}`,
		"payload of a kind":   `{"type":"text","text":{"content":"c"},"image":{"source":5}}`,
		"not an object":       `[1,{"z":2}]`,
		"a number":            `12345678901234567890`,
		"text without it":     `{"type":"text","body":"c"}`,
		"text that is number": `{"type":"text","text":5}`,
		"no type":             `{"text":{"content":"c"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c session.Content
			mustDo(t, json.Unmarshal([]byte(block), &c))
			if diff := cmp.Diff(block, string(mustGet(c.MarshalJSON())(t))); diff != "" {
				t.Errorf("(-in +out):\n%s", diff)
			}
			// And inside a log, through an append and a reload.
			s := newScribe(t)
			id := s.message(session.RoleUser, c)
			if e := mustGet(s.again().Entry(id))(t); !strings.Contains(encode(t, e), block) && !strings.Contains(name, "blob") {
				t.Errorf("read back as %s, want %s in it", encode(t, e), block)
			}
		})
	}
}

// A name that is known with a value that is not what it promises: kept, not
// guessed, and the entry around it is read.
func TestWrongKindsAreKept(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"role":5`, `"tokens":1.5`, `"tokens":"7"`, `"usage":[1]`, `"content":5`, `"metadata":[]`, `"model":{}`,
		`"tokens":123456789012345678901234567890`,
	} {
		line := `{"type":"message","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","message":{` + member + `}}`
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(line), &e))
		if !strings.Contains(encode(t, e), member) {
			t.Errorf("%s became %s", member, encode(t, e))
		}
		if e.Message.Tokens != nil {
			t.Errorf("%s: tokens %d", member, *e.Message.Tokens)
		}
	}
	for _, line := range []string{
		`{"type":"compaction","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","compaction":{"state":5,"tokens_before":"many"}}`,
		`{"type":"merge","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","merge":{"from_id":"f","entry_ids":[1,2]}}`,
		`{"type":"merge","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","merge":{"from_id":"f","entry_ids":{"a":1}}}`,
		`{"type":"custom","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","custom":{"custom_type":"c","data":[1,2]}}`,
		`{"type":"context_edit","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","context_edit":{"target_id":"t","replacement":5}}`,
	} {
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(line), &e))
		var before, after map[string]map[string]any
		_ = json.Unmarshal([]byte(line), &before)
		_ = json.Unmarshal([]byte(encode(t, e)), &after) // of two members of a name, the last counts
		for key, value := range before[string(e.Type)] {
			if diff := cmp.Diff(value, after[string(e.Type)][key]); diff != "" {
				t.Errorf("%s: %s\n%s", line, key, diff)
			}
		}
	}
}

// Numbers that no float64 holds survive, also 1e400, which Go cannot decode.
func TestNumbersSurviveAppendingAgain(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`{"z":12345678901234567890,"a":0.1,"b":1.10}`, `{"n":1e400}`, `{"n":-0.0,"m":1E5}`, `{"b":1,"b":2}`, `{ "spaced" : [ 1 , 2 ] }`,
	} {
		line := `{"type":"message","id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"n","input":` + input + `}}],"metadata":` + input + `}}`
		path := writeLog(t, headerLine, line)
		s := loadScribe(t, path)
		e := mustGet(s.GetContext())(t)[0]
		e.ID = ""
		id := s.add(e)
		written := encode(t, mustGet(s.again().Entry(id))(t))
		if strings.Count(written, input) != 2 {
			t.Errorf("%s was written again as %s", input, written)
		}
		if strings.Count(written, `"input"`) != 1 {
			t.Errorf("%s: input occurs twice in %s", input, written)
		}
	}
}

// Of a member that tells the tree and occurs twice, the first counts, as for the
// scanner that reads only the heads of lines; the second is kept.
func TestFirstOfARepeatedMemberCounts(t *testing.T) {
	t.Parallel()
	const rest = `"parent_id":"a","parent_id":"z","timestamp":"2024-01-01T10:00:01.000Z","timestamp":"2025-01-01T10:00:01.000Z","message":{"role":"user","content":"hi"}}`
	for line, want := range map[string]string{
		`{"type":"message","id":"b","type":"custom","id":"c",` + rest: "b",
		`{"type":"message","id":5,"type":"custom","id":"c",` + rest:   "",
	} {
		var e session.Entry
		mustDo(t, e.UnmarshalJSON([]byte(line)))
		if e.ID != want || e.Type != session.TypeMessage || *e.ParentID != "a" || e.Timestamp.Year() != 2024 || e.Message == nil {
			t.Errorf("%s was read as %s", line, encode(t, e))
		}
		if again := encode(t, e); !strings.Contains(again, `"id":"c"`) || !strings.Contains(again, `"parent_id":"z"`) {
			t.Errorf("%s lost a member: %s", line, again)
		}
	}
	var h session.Header
	mustDo(t, h.UnmarshalJSON([]byte(`{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:01.000Z","cwd":"/a","id":"other","cwd":"/b"}`)))
	if h.ID != "s" || h.CWD != "/a" || !strings.Contains(string(mustGet(h.MarshalJSON())(t)), `"id":"other"`) {
		t.Errorf("the header was read as %+v", h)
	}
}

// A changed map is written as it is now.
func TestChangedInputIsWritten(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	id := s.message(session.RoleAssistant, session.ToolUse("c", "n", map[string]any{"b": 1, "a": []any{true, nil, "x"}}))
	e := mustGet(s.Entry(id))(t)
	e.ID = ""
	e.Message.Content[0].ToolUse.Input["b"] = 2
	id = s.add(e)
	if line := encode(t, mustGet(s.again().Entry(id))(t)); !strings.Contains(line, `"input":{"a":[true,null,"x"],"b":2}`) {
		t.Error(line)
	}
	// What was handed out is a copy, however deep.
	mustGet(s.Entry(id))(t).Message.Content[0].ToolUse.Input["a"].([]any)[0] = "changed"
	if line := encode(t, mustGet(s.Entry(id))(t)); strings.Contains(line, "changed") {
		t.Errorf("a caller changed the session: %s", line)
	}
}

func TestInputThatIsNotJSON(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	before := s.user("hello")
	for name, c := range map[string]session.Content{
		"channel":     session.ToolUse("c", "n", map[string]any{"f": make(chan int)}),
		"NaN":         session.ToolUse("c", "n", map[string]any{"f": math.NaN()}),
		"raw":         {Type: "odd", Raw: json.RawMessage(`{"broken`)},
		"extra":       {Type: "text", Text: &session.TextContent{Extra: session.Fields{{Name: "x", Value: json.RawMessage(`}`)}}}},
		"empty extra": {Type: "text", Text: &session.TextContent{}, Extra: session.Fields{{Name: "x"}}},
	} {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{c}); err == nil {
			t.Errorf("%s was appended", name)
		}
	}
	if s.LeafID() != before || len(s.again().ids()) != 1 {
		t.Error("a refused entry left something behind")
	}
}

// What can be written must be readable: a value nested so deep that no reader
// takes it is refused, not acknowledged and lost.
func TestDeepValuesAreReadableOrRefused(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for _, depth := range []int{100, 9_000, 9_995, 9_996, 9_997, 9_998, 9_999, 10_000, 20_000} {
		var deep any = "bottom"
		for range depth {
			deep = []any{deep}
		}
		for name, write := range map[string]func() (string, error){
			"custom": func() (string, error) { return s.AppendCustomEntry("deep", map[string]any{"d": deep}) },
			"input": func() (string, error) {
				return s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "n", map[string]any{"d": deep})})
			},
			"raw": func() (string, error) {
				raw := strings.Repeat("[", depth) + strings.Repeat("]", depth)
				return s.AppendMessage(session.RoleUser, []session.Content{{Type: "odd", Raw: json.RawMessage(`{"type":"odd","d":` + raw + `}`)}})
			},
		} {
			id, err := write()
			if err != nil {
				if depth <= 9_000 {
					t.Errorf("%s, depth %d: %v", name, depth, err)
				}
				continue
			}
			if _, err := s.again().Entry(id); err != nil {
				t.Errorf("%s, depth %d was acknowledged and cannot be read: %v", name, depth, err)
			}
		}
	}
	if kinds := s.problemKinds(); len(kinds) > 1 { // the calls were interrupted
		t.Errorf("problems %q", kinds)
	}
}

// Newlines between the tokens of raw JSON would tear a line in two.
func TestRawNewlinesStayOnOneLine(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	id := s.message(session.RoleUser, session.Content{Type: "odd", Raw: json.RawMessage("{\n  \"type\": \"odd\",\n  \"n\": 1.50\n}")})
	s.user("after")
	again := s.again()
	if got := encode(t, mustGet(again.Entry(id))(t)); !strings.Contains(got, `{"type":"odd","n":1.50}`) {
		t.Error(got)
	}
	if len(again.ids()) != 2 {
		t.Errorf("%d entries", len(again.ids()))
	}
}

func TestContentForms(t *testing.T) {
	t.Parallel()
	const base = `"id":"e","parent_id":null,"timestamp":"2024-01-01T10:00:01Z",`
	for name, test := range map[string]struct{ line, want string }{
		"bare string":          {`{"type":"message",` + base + `"message":{"role":"user","content":"hi"}}`, "user: hi"},
		"text as string":       {`{"type":"message",` + base + `"message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`, "user: hi"},
		"strings in the list":  {`{"type":"message",` + base + `"message":{"role":"user","content":["hi","ho"]}}`, "user: hi, ho"},
		"content null":         {`{"type":"message",` + base + `"message":{"role":"user","content":null}}`, "user: "},
		"no content":           {`{"type":"message",` + base + `"message":{"role":"user"}}`, "user: "},
		"result as array":      {`{"type":"message",` + base + `"message":{"role":"user","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"image","image":{"source":null}},{"type":"text","text":{"content":"b"}}]}}]}}`, "user: c = a\nb"},
		"flat message":         {`{"type":"message",` + base + `"role":"user","content":"hi"}`, "user: hi"},
		"payload not first":    {`{"message":{"content":"hi","role":"user"},"timestamp":"2024-01-01T10:00:01Z","parent_id":null,"id":"e","type":"message"}`, "user: hi"},
		"escaped keys":         {`{"ty\u0070e":"message",` + base + `"mess\u0061ge":{"role":"user","content":"hi"}}`, "user: hi"},
		"white space":          {"  { \"type\" : \"message\" ,\t" + base + ` "message" : { "role" : "user" , "content" : [ "hi" ] } }  ` + "\r", "user: hi"},
		"byte order mark":      {"\xef\xbb\xbf" + `{"type":"message",` + base + `"message":{"role":"user","content":"hi"}}`, "user: hi"},
		"payload null":         {`{"type":"message",` + base + `"message":null,"role":"user","content":"hi"}`, "user: hi"},
		"numbers as the error": {`{"type":"message",` + base + `"message":{"role":"user","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":null,"content":"x"}}]}}`, "user: c = x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := loadScribe(t, writeLog(t, headerLine, test.line))
			e := mustGet(s.Entry("e"))(t)
			if diff := cmp.Diff([]string{test.want}, view([]session.Entry{e})); diff != "" {
				t.Error(diff)
			}
			// Encoding is a fixed point after the first time.
			var again session.Entry
			mustDo(t, json.Unmarshal([]byte(encode(t, e)), &again))
			if diff := cmp.Diff(encode(t, e), encode(t, again)); diff != "" {
				t.Errorf("encoded again:\n%s", diff)
			}
		})
	}
}

// The lines in the usage example have their payloads beside id and type.
func TestFlatLines(t *testing.T) {
	t.Parallel()
	const base = `"id":"e","parent_id":"p","timestamp":"2024-01-01T10:00:01.000Z",`
	const nested = `,"id":"e","parent_id":"p","timestamp":"2024-01-01T10:00:01.000Z",`
	for flat, want := range map[string]string{
		`{"type":"message",` + base + `"role":"user","content":"hi","model":"m","x":1}`:                                                    `{"type":"message"` + nested + `"message":{"role":"user","content":[{"type":"text","text":{"content":"hi"}}],"model":"m"},"x":1}`,
		`{"type":"model_change",` + base + `"provider":"p","model_id":"m","x":1}`:                                                          `{"type":"model_change"` + nested + `"model_change":{"provider":"p","model_id":"m"},"x":1}`,
		`{"type":"thinking_level",` + base + `"thinking_level":"high"}`:                                                                    `{"type":"thinking_level"` + nested + `"thinking_level":{"thinking_level":"high"}}`,
		`{"type":"thinking_level_change",` + base + `"thinking_level":"high"}`:                                                             `{"type":"thinking_level"` + nested + `"thinking_level":{"thinking_level":"high"}}`,
		`{"type":"thinking_level_change",` + base + `"thinking_level":{"thinking_level":"high"}}`:                                          `{"type":"thinking_level"` + nested + `"thinking_level":{"thinking_level":"high"}}`,
		`{"type":"thinking_level_change",` + base + `"thinking_level_change":{"thinking_level":"high"}}`:                                   `{"type":"thinking_level"` + nested + `"thinking_level":{"thinking_level":"high"}}`,
		`{"type":"label","id":"e","parent_id":"p","target_id":"t","label":"first-greeting","timestamp":"2024-01-01T10:00:01.000Z"}`:        `{"type":"label"` + nested + `"label":{"target_id":"t","label":"first-greeting"}}`,
		`{"type":"label",` + base + `"target_id":"t","label":null}`:                                                                        `{"type":"label"` + nested + `"label":{"target_id":"t"}}`,
		`{"type":"session_info",` + base + `"name":"n"}`:                                                                                   `{"type":"session_info"` + nested + `"session_info":{"name":"n"}}`,
		`{"type":"compaction",` + base + `"summary":"s","first_kept_entry_id":"k","tokens_before":1500}`:                                   `{"type":"compaction"` + nested + `"compaction":{"summary":"s","first_kept_entry_id":"k","tokens_before":1500}}`,
		`{"type":"branch_summary",` + base + `"summary":"s","from_id":"f"}`:                                                                `{"type":"branch_summary"` + nested + `"branch_summary":{"summary":"s","from_id":"f"}}`,
		`{"type":"custom",` + base + `"custom_type":"c","data":{"b":1,"a":2}}`:                                                             `{"type":"custom"` + nested + `"custom":{"custom_type":"c","data":{"b":1,"a":2}}}`,
		`{"type":"leaf",` + base + `"from_id":"f"}`:                                                                                        `{"type":"leaf"` + nested + `"leaf":{"from_id":"f"}}`,
		`{"type":"context_edit",` + base + `"target_id":"t","replacement":[]}`:                                                             `{"type":"context_edit"` + nested + `"context_edit":{"target_id":"t","replacement":[]}}`,
		`{"type":"revert",` + base + `"target_id":"t"}`:                                                                                    `{"type":"revert"` + nested + `"revert":{"target_id":"t"}}`,
		`{"type":"merge",` + base + `"from_id":"f","entry_ids":["a"],"x":[]}`:                                                              `{"type":"merge"` + nested + `"merge":{"from_id":"f","entry_ids":["a"]},"x":[]}`,
		`{"type":"message",` + base + `"message":{"role":"user","content":[]},"role":"not the payload's"}`:                                 `{"type":"message"` + nested + `"message":{"role":"user","content":[]},"role":"not the payload's"}`,
		`{"type":"message",` + base + `"timestamp":"second","id":"second","message":{"role":"user","content":[]},"parent_id":"p2"}`:        `{"type":"message"` + nested + `"message":{"role":"user","content":[]},"timestamp":"second","id":"second","parent_id":"p2"}`,
		`{"type":"message","id":"e","parent_id":"p","timestamp":"2024-01-01T12:00:01+02:00","message":{"role":"user","content":[],"y":2}}`: `{"type":"message"` + nested + `"message":{"role":"user","content":[],"y":2}}`,
	} {
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(flat), &e))
		if diff := cmp.Diff(want, encode(t, e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flat, diff)
		}
	}
}

// The scanner that reads the first bytes of a line and the decoder that reads
// all of it must agree on which of two members of a name counts.
func TestFirstOfTwoLeadingMembersCounts(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "first"),
		`{"type":"message","id":"b","parent_id":5,"timestamp":"2024-01-01T10:00:02.000Z","parent_id":"a","message":{"role":"user","content":"second"}}`,
		`{"id":"c","type":7,"type":"label","parent_id":"b","target_id":"a","label":"x"}`)
	s := loadScribe(t, path)
	for _, n := range flatten(mustGet(s.GetTree())(t)) {
		parents := mustGet(s.Forward(n.ID))(t)
		var parent *string
		if len(parents) > 1 {
			parent = &parents[len(parents)-2].ID
		}
		if diff := cmp.Diff(parent, n.ParentID); diff != "" {
			t.Errorf("entry %s: the tree and the entry disagree on its parent:\n%s", n.ID, diff)
		}
	}
	if labels := mustGet(s.Labels())(t); len(labels) != 0 {
		t.Errorf("the tree took the entry for no label, yet there is one: %v", labels)
	}
	if e := mustGet(s.Entry("c"))(t); e.Label != nil {
		t.Errorf("decoded as a label: %s", encode(t, e))
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	local := time.Date(2024, 6, 1, 12, 0, 0, 500_000_000, time.Local)
	for form, want := range map[string]time.Time{
		"2024-06-01T12:00:00Z":                {},
		"2024-06-01T12:00:00.5":               local,
		"2024-06-01 12:00:00.5":               local,
		"2024-06-01T12:00:00.500000":          local,
		"2024-06-01T14:00:00.123456789+02:00": time.Date(2024, 6, 1, 12, 0, 0, 123456789, time.UTC),
	} {
		if want.IsZero() {
			want = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
		}
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(`{"type":"x","id":"e","timestamp":"`+form+`"}`), &e))
		if !e.Timestamp.Equal(want) || e.Timestamp.Location() != time.UTC {
			t.Errorf("%s was read as %v, want %v", form, e.Timestamp, want)
		}
	}
	// Those that cannot be written back in RFC 3339 stay what they were.
	for _, odd := range []string{`"yesterday"`, `""`, `null`, `17`, `{"s":1}`, `"9999-12-31T23:59:59-23:59"`, `"0000-01-01T00:00:00+10:00"`} {
		line := `{"type":"x","id":"e","parent_id":null,"timestamp":` + odd + `,"z":1}`
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(line), &e))
		if diff := cmp.Diff(line, encode(t, e)); diff != "" {
			t.Errorf("timestamp %s:\n%s", odd, diff)
		}
	}
	// Our own: UTC and at least milliseconds, whatever zone the clock is in.
	s := newScribe(t, func(c *session.Config) {
		c.Options.Now = func() time.Time { return time.Date(2024, 6, 1, 14, 0, 0, 0, time.FixedZone("", 7200)) }
	})
	s.user("x")
	for _, line := range strings.Split(strings.TrimSpace(string(readBytes(t, s.File()))), "\n") {
		if !strings.Contains(line, `"timestamp":"2024-06-01T12:00:00.000Z"`) {
			t.Error(line)
		}
	}
}

func TestTokensUnsetIsNotZero(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	zero := 0
	s.add(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: "user", Tokens: &zero}})
	s.user("unknown")
	entries := mustGet(s.again().GetContext())(t)
	if got := entries[0].Message.Tokens; got == nil || *got != 0 {
		t.Errorf("tokens 0 became %v", got)
	}
	if got := entries[1].Message.Tokens; got != nil {
		t.Errorf("tokens that were never set are %d", *got)
	}
	if c := s.at(""); c.Tokens != 0 || c.Uncounted != 1 {
		t.Errorf("%d tokens, %d uncounted", c.Tokens, c.Uncounted)
	}
}

// Every line that is written begins with type, id, parent_id, timestamp.
func TestWrittenOrder(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("u")
	a := s.say("a")
	mustGet(s.AppendModelChange("p", "m"))(t)
	mustGet(s.AppendThinkingLevelChange("high"))(t)
	mustGet(s.AppendSessionInfo("n"))(t)
	mustGet(s.AppendCustomEntry("c", nil))(t)
	mustGet(s.SetLabel(u, "l"))(t)
	mustGet(s.AppendEntry(session.ContextEdit(a)))(t)
	c := s.compact("s", a)
	mustGet(s.AppendEntry(session.Revert(c)))(t)
	left := s.LeafID()
	mustGet(s.BranchWithSummary(u, "b"))(t)
	mustGet(s.AppendEntry(session.Merge(left, "m")))(t)
	s.branch(a)
	mustDo(t, s.Append(session.Entry{Type: "unknown", Extra: session.Fields{{Name: "x", Value: json.RawMessage("1")}}}))
	seen := make(map[session.EntryType]bool)
	for i, line := range strings.Split(strings.TrimSpace(string(readBytes(t, s.File()))), "\n") {
		want := []string{`{"type":"`, `","id":"`, `,"parent_id":`, `,"timestamp":"`}
		if i == 0 {
			want = []string{`{"type":"session","id":"`, `","version":1,`, `"timestamp":"`}
		}
		at := 0
		for j, member := range want {
			next := strings.Index(line[at:], member)
			if next < 0 || j == 0 && next != 0 || strings.Contains(line[at:at+next], "{") {
				t.Errorf("line %d: %s not where it should be in %s", i, member, line)
				break
			}
			at += next + len(member)
		}
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(line), &e))
		seen[e.Type] = true
	}
	if len(seen) != 14 {
		t.Errorf("the session has %d types of lines: %v", len(seen), seen)
	}
}

// The example files of the design load, show what they say, and come out as
// they went in (but for milliseconds).
func TestExampleFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines []string
		sees  []string
	}{
		"simple": {
			[]string{
				`{"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z"}`,
				`{"type":"message","id":"msg-1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello"}}]}}`,
				`{"type":"message","id":"msg-2","parent_id":"msg-1","timestamp":"2024-01-01T10:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Hi there!"}}]}}`,
			},
			[]string{"user: Hello", "assistant: Hi there!"},
		},
		"tools": {
			[]string{
				`{"type":"session","id":"sess-456","version":1,"timestamp":"2024-02-01T12:00:00Z"}`,
				`{"type":"message","id":"m-1","parent_id":null,"timestamp":"2024-02-01T12:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Read main.go"}}]}}`,
				`{"type":"message","id":"m-2","parent_id":"m-1","timestamp":"2024-02-01T12:00:02Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"call_abc","name":"read_file","input":{"path":"main.go"}}}]}}`,
				`{"type":"message","id":"m-3","parent_id":"m-2","timestamp":"2024-02-01T12:00:03Z","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"call_abc","content":"package main..."}}]}}`,
			},
			[]string{"user: Read main.go", "assistant: call call_abc", "tool: call_abc = package main..."},
		},
		"usage": {
			[]string{
				`{"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/path/to/project"}`,
				`{"type":"message","id":"msg-1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello, Agent!"}}]}}`,
				`{"type":"message","id":"msg-2","parent_id":"msg-1","timestamp":"2024-01-01T10:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Hello! How can I help?"}}]}}`,
				`{"type":"message","id":"msg-3","parent_id":"msg-1","timestamp":"2024-01-01T10:00:03Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Actually, tell me a joke."}}]}}`,
				`{"type":"label","id":"lbl-1","parent_id":"msg-3","target_id":"msg-1","label":"first-greeting","timestamp":"2024-01-01T10:00:04Z"}`,
				`{"type":"compaction","id":"comp-1","parent_id":"lbl-1","summary":"User greeted and then asked for a joke.","first_kept_entry_id":"msg-3","tokens_before":1500,"timestamp":"2024-01-01T10:00:05Z"}`,
			},
			[]string{"summary: User greeted and then asked for a joke.", "user: Actually, tell me a joke."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeLog(t, test.lines...)
			s := loadScribe(t, path)
			s.sees(test.sees...)
			var h session.Header
			mustDo(t, json.Unmarshal([]byte(test.lines[0]), &h))
			if diff := cmp.Diff(asAny(t, test.lines[0]), asAny(t, string(mustGet(h.MarshalJSON())(t)))); diff != "" {
				t.Errorf("header:\n%s", diff)
			}
			for i, line := range test.lines[1:] {
				var e session.Entry
				mustDo(t, json.Unmarshal([]byte(line), &e))
				if strings.Contains(line, `"`+string(e.Type)+`":{`) { // nested
					want := asAny(t, strings.Replace(line, `"content":"package main..."`, `"is_error":false,"content":"package main..."`, 1))
					if diff := cmp.Diff(want, asAny(t, encode(t, e))); diff != "" {
						t.Errorf("line %d:\n%s", i+2, diff)
					}
				}
			}
			survives(t, path)
		})
	}
}

// asAny decodes JSON and makes its times comparable.
func asAny(t testing.TB, text string) any {
	t.Helper()
	var v map[string]any
	mustDo(t, json.Unmarshal([]byte(text), &v))
	if s, ok := v["timestamp"].(string); ok {
		v["timestamp"] = mustGet(time.Parse(time.RFC3339, s))(t).UTC()
	}
	return v
}

func TestHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"type":"session","id":"s","version":1,"parent_session":"p","timestamp":"2024-01-01T10:00:00.000Z","relation":"fork","continuation_index":2,"cwd":"/x","key":"k","x_new":{"b":1.50,"a":2}}`,
		`{"type":"session","id":"s","version":1,"timestamp":"long ago","x":[]}`,
	} {
		var h session.Header
		mustDo(t, json.Unmarshal([]byte(line), &h))
		if diff := cmp.Diff(line, string(mustGet(h.MarshalJSON())(t))); diff != "" {
			t.Errorf("(-in +out):\n%s", diff)
		}
	}
	// A caller cannot change the session through it.
	path := writeLog(t, `{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00.000Z","x":"abc"}`)
	s := loadScribe(t, path)
	s.Header().Extra[0].Value[1] = 'X'
	if got := string(s.Header().Extra[0].Value); got != `"abc"` {
		t.Errorf("header changed to %s", got)
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `x`, `[]`, `{`, `{"type":"message"`, `{"a":1}{`, `{"a":01}`, "{\"a\":\"\x00\"}"} {
		var e session.Entry
		if err := e.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q was decoded as an entry", text)
		}
		var h session.Header
		if err := h.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q was decoded as a header", text)
		}
	}
	var c session.Content
	if err := c.UnmarshalJSON([]byte(`{"type":`)); err == nil {
		t.Error("half a block was decoded")
	}
}

// Entries are values: nothing that is handed out leads back into the session,
// whatever its type.
func TestHandedOutEntriesAreCopies(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	tokens := 5
	extra := func() session.Fields { return session.Fields{{Name: "x", Value: json.RawMessage(`"abc"`)}} }
	u := s.add(session.Entry{Type: session.TypeMessage, Extra: extra(), Message: &session.MessageEntry{
		Role: "user", Extra: extra(), Tokens: &tokens, Usage: &session.Usage{Input: 1, Extra: extra()}, Metadata: map[string]any{"k": map[string]any{"d": []any{"v"}}},
		Content: []session.Content{
			{Type: "text", Text: &session.TextContent{Content: "abc", Extra: extra()}, Extra: extra()},
			{Type: "image", Image: &session.ImageContent{Source: &session.Source{Type: "base64", Data: "AAAA", Extra: extra()}, Extra: extra()}},
			{Type: "audio", Audio: &session.AudioContent{Source: &session.Source{Type: "base64", Data: "AAAA", Extra: extra()}, Extra: extra()}},
			{Type: "file", File: &session.FileContent{Name: "abc", Source: &session.Source{Type: "base64", Data: "AAAA", Extra: extra()}, Extra: extra()}},
			{Type: "file", File: &session.FileContent{Name: "without a source"}},
			{Type: "thinking", Thinking: &session.ThinkingContent{Content: "abc", Extra: extra()}},
			{Type: "tool_use", ToolUse: &session.ToolUseContent{ID: "c", Input: map[string]any{"a": []any{"v"}}, Extra: extra()}},
			{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "c", Content: "abc", Parts: []session.Content{session.Text("abc")}, Extra: extra()}},
			{Type: "odd", Raw: json.RawMessage(`{"type":"odd","k":"abc"}`)},
		},
	}})
	s.add(session.Entry{Type: session.TypeModelChange, ModelChange: &session.ModelChangeEntry{Provider: "abc", Extra: extra()}})
	s.add(session.Entry{Type: session.TypeThinkingLevel, ThinkingLevel: &session.ThinkingLevelEntry{ThinkingLevel: "abc", Extra: extra()}})
	s.add(session.Entry{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: u, Label: "abc", Extra: extra()}})
	s.add(session.Entry{Type: session.TypeSessionInfo, SessionInfo: &session.SessionInfoEntry{Name: "abc", Extra: extra()}})
	s.add(session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "abc", Data: map[string]any{"k": []any{"v"}}, Extra: extra()}})
	s.add(session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: u, Replacement: []session.Content{session.Text("abc")}, Extra: extra()}})
	s.add(session.Entry{Type: session.TypeRevert, Revert: &session.RevertEntry{TargetID: s.LeafID(), Extra: extra()}})
	s.add(session.Entry{Type: session.TypeBranchSummary, BranchSummary: &session.BranchSummaryEntry{Summary: "abc", Extra: extra()}})
	graft := func(e session.Entry) { // what only other programs write
		leaf := s.LeafID()
		e.ID, e.ParentID, e.Timestamp = "from elsewhere: "+string(e.Type), &leaf, time.Now()
		mustDo(t, s.Graft(e))
	}
	graft(session.Entry{Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: u, EntryIDs: []string{u}, Extra: extra()}})
	graft(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "abc", FirstKeptEntryID: "abc", State: &session.State{Model: "abc", Extra: extra()}, Extra: extra()}})
	s.add(session.Entry{Type: session.TypeLeaf, ParentID: &u, Leaf: &session.LeafEntry{FromID: s.LeafID(), Extra: extra()}})

	before := make(map[string]string)
	for e, err := range s.Entries() {
		mustDo(t, err)
		before[e.ID] = encode(t, e)
	}
	for e, err := range s.Entries() {
		mustDo(t, err)
		scribble(&e)
		if encode(t, e) == before[e.ID] {
			t.Errorf("the test did not change %s", before[e.ID])
		}
	}
	for _, e := range flatten(mustGet(s.GetTree())(t)) {
		scribble(&e)
	}
	for _, e := range mustGet(s.GetContext())(t) {
		scribble(&e)
	}
	for e, err := range s.Entries() {
		mustDo(t, err)
		if diff := cmp.Diff(before[e.ID], encode(t, e)); diff != "" {
			t.Errorf("a caller changed the session:\n%s", diff)
		}
	}
}

// scribble changes everything in an entry that can be reached through pointers.
func scribble(e *session.Entry) {
	smear := func(fields session.Fields) {
		for i := range fields {
			copy(fields[i].Value, `"XYZ"`[:min(5, len(fields[i].Value))])
		}
	}
	smear(e.Extra)
	if e.ParentID != nil {
		*e.ParentID = "XYZ"
	}
	switch {
	case e.Message != nil:
		e.Message.Role = "XYZ"
		smear(e.Message.Extra)
		if e.Message.Tokens != nil {
			*e.Message.Tokens = 99
			e.Message.Usage.Input = 99
			smear(e.Message.Usage.Extra)
			e.Message.Metadata["k"].(map[string]any)["d"].([]any)[0] = "XYZ"
		}
		for i := range e.Message.Content {
			scribbleBlock(&e.Message.Content[i], smear)
		}
	case e.ModelChange != nil:
		e.ModelChange.Provider = "XYZ"
		smear(e.ModelChange.Extra)
	case e.ThinkingLevel != nil:
		e.ThinkingLevel.ThinkingLevel = "XYZ"
		smear(e.ThinkingLevel.Extra)
	case e.Label != nil:
		e.Label.Label = "XYZ"
		smear(e.Label.Extra)
	case e.SessionInfo != nil:
		e.SessionInfo.Name = "XYZ"
		smear(e.SessionInfo.Extra)
	case e.Custom != nil:
		e.Custom.Data["k"].([]any)[0] = "XYZ"
		smear(e.Custom.Extra)
	case e.ContextEdit != nil:
		e.ContextEdit.Replacement[0].Text.Content = "XYZ"
		smear(e.ContextEdit.Extra)
	case e.Revert != nil:
		e.Revert.TargetID = "XYZ"
		smear(e.Revert.Extra)
	case e.BranchSummary != nil:
		e.BranchSummary.Summary = "XYZ"
		smear(e.BranchSummary.Extra)
	case e.Merge != nil:
		e.Merge.EntryIDs[0] = "XYZ"
		smear(e.Merge.Extra)
	case e.Compaction != nil:
		e.Compaction.Summary, e.Compaction.State.Model = "XYZ", "XYZ"
		smear(e.Compaction.Extra)
		smear(e.Compaction.State.Extra)
	case e.Leaf != nil:
		e.Leaf.FromID = "XYZ"
		smear(e.Leaf.Extra)
	}
}

func scribbleBlock(c *session.Content, smear func(session.Fields)) {
	smear(c.Extra)
	source := func(s *session.Source) {
		if s != nil {
			s.Data = "XYZ"
			smear(s.Extra)
		}
	}
	switch {
	case c.Raw != nil:
		copy(c.Raw[len(c.Raw)-5:], "XYZ")
	case c.Text != nil:
		c.Text.Content = "XYZ"
		smear(c.Text.Extra)
	case c.Image != nil:
		source(c.Image.Source)
		smear(c.Image.Extra)
	case c.Audio != nil:
		source(c.Audio.Source)
		smear(c.Audio.Extra)
	case c.File != nil:
		source(c.File.Source)
		smear(c.File.Extra)
	case c.Thinking != nil:
		c.Thinking.Content = "XYZ"
		smear(c.Thinking.Extra)
	case c.ToolUse != nil:
		c.ToolUse.Input["a"].([]any)[0] = "XYZ"
		smear(c.ToolUse.Extra)
	case c.ToolResult != nil:
		c.ToolResult.Parts[0].Text.Content = "XYZ"
		smear(c.ToolResult.Extra)
	}
}
