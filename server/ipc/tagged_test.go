package ipc_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// variant is a message of the tagged protocol: its members and their Rust types.
type variant map[string]string

var (
	rustVariant = regexp.MustCompile(`(?m)^    (\w+)(?: \{ (.*) \})?,$`)
	rustMember  = regexp.MustCompile(`(\w+): ([\w<>]+)`)
	capital     = regexp.MustCompile(`[A-Z]`)
)

// rust reads a declaration of testdata/messages.rs: the messages of an enum by their tags, or
// the members of a struct under "".
func rust(t *testing.T, name string) map[string]variant {
	t.Helper()
	text, err := os.ReadFile("testdata/messages.rs")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(text), " "+name+" {\n")
	body, _, closed := strings.Cut(body, "\n}")
	if !ok || !closed {
		t.Fatalf("there is no %s", name)
	}
	members := func(text string) variant {
		all := make(variant)
		for _, m := range rustMember.FindAllStringSubmatch(text, -1) {
			all[m[1]] = m[2]
		}
		return all
	}
	if strings.Contains(string(text), "struct "+name) {
		return map[string]variant{"": members(body)}
	}
	all := make(map[string]variant)
	for _, v := range rustVariant.FindAllStringSubmatch(body+"\n", -1) {
		tag := strings.TrimPrefix(capital.ReplaceAllStringFunc(v[1], func(s string) string { return "_" + strings.ToLower(s) }), "_")
		all[tag] = members(v[2])
	}
	return all
}

// check complains about members that a Rust program would refuse or miss.
func (v variant) check(t *testing.T, message object, info variant) {
	t.Helper()
	have := slices.Sorted(maps.Keys(message))
	have = slices.DeleteFunc(have, func(name string) bool { return name == "type" })
	if want := slices.Sorted(maps.Keys(v)); !slices.Equal(have, want) {
		t.Errorf("members of %v: %v, want %v", message["type"], have, want)
	}
	for name, kind := range v {
		value := message[name]
		if inner, ok := strings.CutPrefix(kind, "Option<"); ok {
			if kind = strings.TrimSuffix(inner, ">"); value == nil {
				continue
			}
		}
		ok := false
		switch kind {
		case "String":
			_, ok = value.(string)
		case "bool":
			_, ok = value.(bool)
		case "usize":
			n, isNumber := value.(float64)
			ok = isNumber && n >= 0 && n == float64(uint64(n))
		case "Vec<SessionInfo>":
			var list []any
			list, ok = value.([]any)
			for _, one := range list {
				info.check(t, one.(object), nil)
			}
		}
		if !ok {
			t.Errorf("%v.%s is %v, which is not a %s", message["type"], name, value, kind)
		}
	}
}

// TestTaggedMessages has a terminal say everything that it can, with and without what is
// optional, and checks each answer.
func TestTaggedMessages(t *testing.T) {
	t.Parallel()
	requests, answers, info := rust(t, "Request"), rust(t, "Answer"), rust(t, "SessionInfo")[""]
	if len(requests) != 9 || len(answers) != 6 || len(info) != 6 {
		t.Fatalf("%d requests, %d answers and %d members were read", len(requests), len(answers), len(info))
	}
	replies := map[string]string{
		"session_create": "session_created", "session_save": "session_saved", "session_load": "session_loaded",
		"session_list": "session_list_result", "session_delete": "session_deleted", "session_export": "session_exported",
		"initialize": "initialized", "query": "stream_token", "tool_approve": "error",
	}
	for tag, members := range requests {
		for _, full := range []bool{true, false} {
			t.Run(tag, func(t *testing.T) {
				t.Parallel()
				c := begin(t)
				id := c.create()
				request := object{"type": tag}
				for name, kind := range members {
					if optional := strings.HasPrefix(kind, "Option<"); optional && !full {
						request[name] = nil
						continue
					}
					switch name {
					case "session_id":
						request[name] = id
					case "format":
						request[name] = "markdown"
					case "limit":
						request[name] = 10
					case "demo_mode", "approved":
						request[name] = full
					default:
						request[name] = "words"
					}
				}
				line, err := json.Marshal(request)
				if err != nil {
					t.Fatal(err)
				}
				answer := c.ask(string(line))
				if answer["type"] != replies[tag] {
					t.Fatalf("%s is answered with %v", line, answer)
				}
				if tag == "tool_approve" && (answer["kind"] != "not_found" || answer["request"] != tag) {
					t.Errorf("a call that no one has made: %v", answer)
				}
				if answers[replies[tag]] == nil {
					return // the terminal's own document does not say what the answer is
				}
				answers[replies[tag]].check(t, answer, info)
			})
		}
	}
}

// TestSessionFlow is the life of a session as a terminal sees it: what was said is there after
// it was created, saved, and loaded on another connection.
func TestSessionFlow(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, path := serve(t, h, nil)
	c := dial(t, path)
	if saved := c.ask(`{"type":"session_save"}`); saved["success"] != false {
		t.Errorf("nothing to save: %v", saved)
	}
	if none := c.ask(`{"type":"session_export","format":"markdown"}`); none["type"] != "error" || none["field"] != "session_id" {
		t.Errorf("nothing to export: %v", none)
	}
	id := c.ask(`{"type":"session_create","title":"Debug authentication"}`)["session_id"].(string)
	for _, text := range []string{"Why does it fail? # not a heading", "The key has expired."} {
		answer := c.ask(`{"jsonrpc":"2.0","id":1,"method":"entries.append","params":{"session":"` + id + `","message":{"role":"user","content":[{"type":"text","text":"` + text + `"}]}}}`)
		if answer["error"] != nil {
			t.Fatal(answer)
		}
	}
	if saved := c.ask(`{"type":"session_save"}`); saved["success"] != true {
		t.Errorf("saved: %v", saved)
	}

	other := dial(t, path)
	loaded := other.ask(`{"type":"session_load","session_id":"` + id + `"}`)
	if loaded["session_id"] != id || loaded["message_count"] != 2.0 {
		t.Errorf("loaded: %v", loaded)
	}
	exported, _ := other.ask(`{"type":"session_export","format":"markdown"}`)["content"].(string)
	for _, part := range []string{"# Debug authentication", id, "Why does it fail? # not a heading", "The key has expired."} {
		if !strings.Contains(exported, part) {
			t.Errorf("the export has no %q:\n%s", part, exported)
		}
	}
	list, _ := other.ask(`{"type":"session_list"}`)["sessions"].([]any)
	if len(list) != 1 {
		t.Fatalf("listed: %v", list)
	}
	info := list[0].(object)
	if info["session_id"] != id || info["title"] != "Debug authentication" || info["message_count"] != 2.0 {
		t.Errorf("listed: %v", info)
	}
	for _, name := range []string{"created_at", "updated_at"} {
		if _, err := time.Parse(time.RFC3339, info[name].(string)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if deleted := other.ask(`{"type":"session_delete","session_id":"` + id + `"}`); deleted["success"] != true {
		t.Errorf("deleted: %v", deleted)
	}
	if saved := other.ask(`{"type":"session_save"}`); saved["success"] != false {
		t.Errorf("a session that was deleted is still the present one: %v", saved)
	}
	for _, gone := range []string{id, "nothing"} {
		if deleted := c.ask(`{"type":"session_delete","session_id":"` + gone + `"}`); deleted["type"] != "session_deleted" || deleted["success"] != true {
			t.Errorf("%s, which is not there: %v", gone, deleted)
		}
	}
	if saved := c.ask(`{"type":"session_save"}`); saved["success"] != false {
		t.Errorf("a session that another client deleted is still the present one: %v", saved)
	}
	if gone := c.ask(`{"type":"session_load","session_id":"` + id + `"}`); gone["kind"] != "not_found" {
		t.Errorf("loaded after it was deleted: %v", gone)
	}
}

// A terminal says how many messages it restored: those that it shows, without other branches. A list
// counts all of them, as every list does.
func TestMessagesOfOtherBranches(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, path := serve(t, h, nil)
	c := dial(t, path)
	id := c.create()
	say := func(text, after string) string {
		params := message(id, text)
		if after != "" {
			params["parent"] = after
		}
		answer := c.call(1, "entries.append", params)
		if answer["error"] != nil {
			t.Fatal(answer)
		}
		return answer["result"].(object)["entry"].(string)
	}
	root := say("How do I cut hazel?", "")
	say("In winter?", say("And when?", root))
	say("With which saw?", root)
	if loaded := c.ask(`{"type":"session_load","session_id":"` + id + `"}`); loaded["message_count"] != 2.0 {
		t.Errorf("two of four messages are on the path: %v", loaded)
	}
	listed := c.ask(`{"type":"session_list"}`)["sessions"].([]any)[0].(object)
	info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
	if err != nil || info.Messages != 4 || listed["message_count"] != 4.0 {
		t.Errorf("a list has %v messages, coppice ls %+v, and there are four on both branches: %v", listed["message_count"], info, err)
	}
}

// TestTaggedErrors: what is wrong is said in the words of the protocol, and the connection goes on.
func TestTaggedErrors(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.create() // so that the connection speaks this dialect
	for line, want := range map[string]object{
		`{"type":"session_explode"}`:                                   {"kind": "invalid", "field": "type", "request": "session_explode"},
		`{"type":7}`:                                                   {"kind": "invalid", "field": "type"},
		`{"type":"session_load"}`:                                      {"kind": "invalid", "field": "session_id", "request": "session_load"},
		`{"type":"session_load","session_id":7}`:                       {"kind": "invalid", "field": "session_id"},
		`{"type":"session_load","session_id":"../../etc/passwd"}`:      {"kind": "not_found"},
		`{"type":"session_load","session_id":"..\\windows\\system32"}`: {"kind": "not_found"},
		`{"type":"session_delete"}`:                                    {"kind": "invalid", "field": "session_id", "request": "session_delete"},
		`{"type":"tool_approve","approved":true}`:                      {"kind": "invalid", "field": "tool_id", "message": "tool_id must say which call is meant"},
		`{"type":"session_list","limit":-1}`:                           {"kind": "invalid", "field": "limit"},
		`{"type":"session_list","limit":"ten"}`:                        {"kind": "invalid", "field": "limit"},
		`{"type":"session_export","format":"pdf"}`:                     {"kind": "invalid", "field": "format"},
		`{"type":"session_list"`:                                       {"kind": "invalid"},
		`{"kind":"session_list"}`:                                      {"kind": "invalid"},
		"{\"type\":\"session_create\",\"title\":\"\xff\"}":             {"kind": "invalid"},
		`"session_list"`:                                               {"kind": "invalid"},
	} {
		answer := c.ask(line)
		if answer["type"] != "error" || answer["message"] == "" {
			t.Errorf("%s: %v", line, answer)
		}
		for name, value := range want {
			if answer[name] != value {
				t.Errorf("%s: %s is %v, want %v: %v", line, name, answer[name], value, answer["message"])
			}
		}
		for name := range answer {
			if !slices.Contains([]string{"type", "request", "kind", "message", "field", "hint"}, name) {
				t.Errorf("%s: the error has %s, which is not documented: %v", line, name, answer)
			}
		}
	}
	for what, line := range map[string]string{
		"a member that is not known": `{"type":"session_list","newer":true}`,
		"a limit of any size":        `{"type":"session_list","limit":9223372036854775807}`,
	} {
		if list := c.ask(line); list["type"] != "session_list_result" {
			t.Errorf("%s: %v", what, list)
		}
	}
}
