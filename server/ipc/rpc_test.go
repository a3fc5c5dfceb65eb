package ipc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"

	"github.com/coppice-dev/coppice/home"
)

// call returns a request.
func call(id any, method string, params any) string {
	line, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	return string(line)
}

// message is what somebody says, as params.
func message(session, text string) object {
	return object{"session": session, "message": object{"role": "user", "content": []object{{"type": "text", "text": text}}}}
}

// failure is what an error of JSON-RPC says.
type failure struct {
	Kind  home.Kind `json:"kind"`
	Field string    `json:"field"`
	Hint  string    `json:"hint"`
}

// TestEveryOperation asks for each operation of the home with another program's client. Without
// a request most of them say what is missing, in one of the documented ways.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	_, path := serve(t, newHome(t), nil)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := jrpc2.NewClient(channel.Line(conn, conn), &jrpc2.ClientOptions{OnNotify: func(*jrpc2.Request) {}})
	defer c.Close()
	kinds := documentedCodes(t)
	for _, op := range home.Operations() {
		params := object{}
		switch {
		case op.Name == "entries.follow":
			continue // it has no end
		case op.Reads:
			params["paths"], params["input"] = []string{"-"}, "nothing that anyone knows"
		}
		_, err := c.Call(t.Context(), op.Name, params)
		if err == nil {
			continue
		}
		e, ok := errors.AsType[*jrpc2.Error](err)
		if !ok {
			t.Fatalf("%s: %v", op.Name, err)
		}
		var why failure
		if err := json.Unmarshal(e.Data, &why); err != nil || kinds[why.Kind] != int(e.Code) || e.Message == "" {
			t.Errorf("%s: code %d, %q, %s", op.Name, e.Code, e.Message, e.Data)
		}
	}
}

// documentedCodes reads the table of docs/ipc.md.
func documentedCodes(t *testing.T) map[home.Kind]int {
	t.Helper()
	text, err := os.ReadFile("../../docs/ipc.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[home.Kind]int)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		code, err := strconv.Atoi(strings.Trim(cells[1], " `"))
		if err != nil {
			continue
		}
		codes[home.Kind(strings.Trim(cells[2], " `"))] = code
	}
	return codes
}

// TestEveryKindHasACode: a kind that is added to the home needs a code of its own.
func TestEveryKindHasACode(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../home/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []home.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Kind") && len(spec.Values) == 1 {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Error(err)
			}
			kinds = append(kinds, home.Kind(text))
		}
		return true
	})
	if len(kinds) < 15 {
		t.Fatalf("read only %v", kinds)
	}
	codes, used := documentedCodes(t), make(map[int]home.Kind)
	for _, kind := range kinds {
		code, ok := codes[kind]
		if other := used[code]; !ok || other != "" {
			t.Errorf("kind %s has code %d in docs/ipc.md, as %q has", kind, code, other)
		}
		used[code] = kind
	}
}

// TestRPCErrors: each mistake has its code, says what is wrong, and leaves the connection as it
// was.
func TestRPCErrors(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, test := range []struct {
		line  string
		code  float64
		kind  string
		field any
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.get","params":{"session":"none"}}`, -32002, "not_found", nil},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.get","params":{}}`, -32602, "invalid", "session"},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.get","params":{"session":5}}`, -32602, "invalid", "session"},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.list","params":{"limti":5}}`, -32602, "invalid", "limti"},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.list","params":[5]}`, -32602, "invalid", "params"},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.list","params":5}`, -32600, "invalid", nil},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.explode"}`, -32601, "invalid", nil},
		{`{"jsonrpc":"2.0","id":1}`, -32600, "invalid", nil},
		{`{"jsonrpc":"1.0","id":1,"method":"sessions.list"}`, -32600, "invalid", nil},
		{`{"jsonrpc":"2.0","id":{},"method":"sessions.list"}`, -32600, "invalid", nil},
		{`{"jsonrpc":"2.0","id":1,"method":"sessions.list","type":"session_list"}`, -32600, "invalid", nil},
		{`{"jsonrpc":"2.0","id":1,"method":"transfer.import","params":{"input":7}}`, -32602, "invalid", "input"},
		{`{"jsonrpc":"2.0","id":1`, -32700, "invalid", nil},
		{`[]`, -32600, "invalid", nil},
		{`[` + strings.Repeat(`1,`, 100) + `1]`, -32600, "invalid", nil},
		{"\xff\xfe", -32700, "invalid", nil},
		{`{}`, -32600, "invalid", nil},
		{`5`, -32600, "invalid", nil},
		{`"sessions.list"`, -32600, "invalid", nil},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, -32600, "invalid", nil},
	} {
		e, _ := c.ask(test.line)["error"].(object)
		data, _ := e["data"].(object)
		if e["code"] != test.code || data["kind"] != test.kind || data["field"] != test.field || e["message"] == "" {
			t.Errorf("%.80s: %v", test.line, e)
		}
		if text, _ := e["message"].(string); strings.Contains(text, "unmarshal") || strings.Contains(text, "Go value") {
			t.Errorf("%.80s: %s is about our program, not about the message", test.line, text)
		}
	}
	if answer := c.call("last", "sessions.list", nil); answer["id"] != "last" || answer["result"] == nil {
		t.Errorf("after all these: %v", answer)
	}
}

// Each item of a batch that is no request has an error of its own, beside the others' answers.
func TestBatchItemsThatAreNoRequests(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.say(`[5,{"jsonrpc":"2.0","id":1,"method":"sessions.tags"},"x",[1],{"id":7}]`)
	var answers []struct {
		ID     any
		Result any
		Error  struct{ Code int }
	}
	if err := json.Unmarshal([]byte(c.hear()), &answers); err != nil || len(answers) != 5 {
		t.Fatal(answers, err)
	}
	for i, a := range answers {
		if asked := i == 1; asked != (a.Result != nil) || asked == (a.Error.Code == -32600) {
			t.Errorf("item %d: %+v", i, a)
		}
	}
}

// TestEvents: what an operation sends comes before its result, in order, under its request's id.
func TestEvents(t *testing.T) {
	t.Parallel()
	c := begin(t)
	id := c.create()
	for i := range 5 {
		if e := c.call(i, "entries.append", message(id, fmt.Sprint("number ", i)))["error"]; e != nil {
			t.Fatal(e)
		}
	}
	c.say(call("read", "entries.path", object{"session": id}))
	var said []string
	for {
		answer := c.next()
		if answer["method"] == nil {
			result, _ := answer["result"].(object)
			if answer["id"] != "read" || result["events"] != float64(len(said)) {
				t.Errorf("after %d events: %v", len(said), answer)
			}
			break
		}
		params := answer["params"].(object)
		if answer["method"] != "entries.path.event" || params["id"] != "read" {
			t.Errorf("an event: %v", answer)
		}
		text, err := json.Marshal(params["event"])
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, string(text))
	}
	if len(said) != 5 || !strings.Contains(said[0], "number 0") || !strings.Contains(said[4], "number 4") {
		t.Errorf("heard %v", said)
	}
}

// TestBatch: a batch has one answer, in the order of its requests, without those that want none.
func TestBatch(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.say(`[` + call(1, "sessions.create", object{"title": "one"}) + `,{"jsonrpc":"2.0","method":"sessions.create","params":{"title":"two"}},7,` +
		call(2, "sessions.explode", nil) + `,` + call(3, "sessions.create", object{"title": "three"}) + `]`)
	var answers []struct {
		ID     any
		Result *home.CreateResult
		Error  *jrpc2.Error
	}
	if err := json.Unmarshal([]byte(c.hear()), &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) != 4 || answers[0].ID != 1.0 || answers[0].Result == nil || answers[1].Error == nil || answers[2].Error.Code != -32601 || answers[3].ID != 3.0 {
		t.Fatalf("%+v", answers)
	}
	if list := c.call(4, "sessions.list", nil)["result"].(object)["sessions"].([]any); len(list) != 3 {
		t.Errorf("the batch created %d sessions", len(list))
	}
}

// TestCancel: a request that is cancelled ends and is answered, and the connection answers
// others meanwhile.
func TestCancel(t *testing.T) {
	t.Parallel()
	c := begin(t)
	id := c.create()
	first := c.call(1, "entries.append", message(id, "hello"))["result"].(object)["entry"]
	c.say(call("watch", "entries.follow", object{"session": id, "after": first})) // so nothing is missed
	if again := c.call("watch", "sessions.list", nil); again["error"].(object)["code"] != -32600.0 {
		t.Errorf("an id that is in use: %v", again)
	}
	appended := c.ask(call(2, "entries.append", message(id, "hello")))
	event := c.next()
	if event["id"] == 2.0 { // they may come in either order
		appended, event = event, appended
	}
	if appended["result"] == nil || event["method"] != "entries.follow.event" {
		t.Errorf("appended: %v, event: %v", appended, event)
	}
	c.say(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"watch"}}`)
	if ended := c.next(); ended["id"] != "watch" || ended["result"].(object)["events"] != 1.0 {
		t.Errorf("ended: %v", ended)
	}
}

// TestTooManyStreams: those that may never end are refused when there are too many, so that the
// client can still cancel one.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for i := range 16 {
		c.say(call(i, "entries.follow", object{}))
	}
	refused := c.call(16, "entries.follow", object{})
	if refused["id"] != 16.0 || refused["error"].(object)["code"] != -32010.0 {
		t.Fatalf("the one too many: %v", refused)
	}
	c.say(call("stop", "$/cancelRequest", object{"id": 3}))
	ended := []any{c.answer()["id"], c.answer()["id"]}
	if !slices.Contains(ended, any("stop")) || !slices.Contains(ended, any(3.0)) {
		t.Errorf("cancelled: %v", ended)
	}
	c.say(call(17, "entries.follow", object{}))
	if answer := c.call(18, "sessions.list", nil); answer["id"] != 18.0 {
		t.Errorf("after one was cancelled: %v", answer)
	}
}

// TestNotices: what a person should know comes as a notification with the request's id.
func TestNotices(t *testing.T) {
	t.Parallel()
	_, path := serve(t, newHome(t, "COPPICE_REDACT=true"), nil)
	c := dial(t, path)
	id := c.create()
	c.say(call("say", "entries.append", message(id, "my key is sk-ant-api03-"+strings.Repeat("Ab3dE5gH", 11)+"AA")))
	notice := c.next()
	params, _ := notice["params"].(object)
	if notice["method"] != "notice" || params["notice"] != string(home.SecretRemoved) || params["id"] != "say" {
		t.Fatalf("%v", notice)
	}
	if answer := c.next(); answer["id"] != "say" {
		t.Errorf("%v", answer)
	}
}

// TestImportReads: what an operation reads beside its request comes as the member input.
func TestImportReads(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, path := serve(t, h, nil)
	c := dial(t, path)
	id := c.create()
	c.call(1, "entries.append", message(id, "A tree in the garden."))
	exported := c.ask(`{"type":"session_export","format":"jsonl"}`)["content"].(string)

	other := newHome(t)
	_, path = serve(t, other, nil)
	c = dial(t, path)
	c.say(call(1, "transfer.import", object{"paths": []string{"-"}, "input": exported}))
	for {
		answer := c.next()
		if answer["id"] != nil {
			if answer["error"] != nil {
				t.Fatal(answer)
			}
			break
		}
	}
	list, err := other.Sessions.List(context.Background(), home.ListRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].Messages != 1 {
		t.Errorf("imported: %+v, %v", list, err)
	}
}
