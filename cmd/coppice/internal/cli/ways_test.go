package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/client"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/server/ipc"
)

// way is a way to ask a home for an operation. It returns the events, the result, and the kind
// and the field of an error.
type way func(op string, request []byte) answered

type answered struct {
	Events []any
	Result any
	Kind   home.Kind
	Field  string
}

// byLibrary calls the operation in this process.
func byLibrary(t *testing.T, h *home.Home) way {
	return func(op string, text []byte) (a answered) {
		o := home.OperationNamed(op)
		request := reflect.New(o.Request).Interface()
		if err := json.Unmarshal(text, request); err != nil {
			t.Fatal(err)
		}
		if err := o.Receive(request); err != nil {
			t.Fatal(err)
		}
		result, err := o.Call(t.Context(), h, request, nil, func(event any) error {
			a.Events = append(a.Events, plainJSON(t, event))
			return nil
		})
		if result != nil {
			a.Result = plainJSON(t, result)
		}
		info := home.Describe(err)
		a.Kind, a.Field = info.Kind, info.Field
		return a
	}
}

func plainJSON(t *testing.T, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// serveHome starts a server for a home and returns its address.
func serveHome(t *testing.T, h *home.Home) string {
	s, err := server.New(server.Options{Home: h})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		_ = s.Close()
		web.Close()
	})
	return web.URL
}

// byHTTP sends plain requests.
func byHTTP(t *testing.T, h *home.Home) way {
	address := serveHome(t, h)
	return func(op string, text []byte) (a answered) {
		method, path, _ := strings.Cut(home.OperationNamed(op).Route, " ")
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllStringFunc(path, func(name string) string {
			value := fmt.Sprint(fields[strings.Trim(name, "{}")])
			delete(fields, strings.Trim(name, "{}"))
			return value
		})
		var body io.Reader
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodGet || method == http.MethodDelete {
			q := r.URL.Query()
			for name, value := range fields {
				q.Set(name, fmt.Sprint(value))
			}
			r.URL.RawQuery = q.Encode()
		} else {
			rest, _ := json.Marshal(fields)
			body = bytes.NewReader(rest)
			r.Body = io.NopCloser(body)
		}
		r.Header.Set("Accept", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var m struct {
				Event  any             `json:"event"`
				Result any             `json:"result"`
				Error  *server.Problem `json:"error"`
				server.Problem
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%s: %v in %s", op, err, lines.Bytes())
			}
			if m.Event != nil {
				a.Events = append(a.Events, m.Event)
			}
			if m.Result != nil {
				a.Result = m.Result
			}
			if m.Error != nil {
				a.Kind, a.Field = m.Error.Kind, m.Error.Field
			} else if m.Status != 0 { // it was refused before it began
				a.Kind, a.Field = m.Problem.Kind, m.Problem.Field
			}
		}
		return a
	}
}

// byClient asks the server through package client.
func byClient(t *testing.T, h *home.Home) way {
	away, err := client.Open(t.Context(), serveHome(t, h), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = away.Close() })
	return byLibrary(t, away)
}

// byRPC speaks JSON-RPC on a connection.
func byRPC(t *testing.T, h *home.Home) way {
	send, lines := connect(t, h)
	return func(op string, text []byte) (a answered) {
		send(`{"jsonrpc":"2.0","id":1,"method":"` + op + `","params":` + string(text) + `}`)
		for lines.Scan() {
			var m struct {
				Method string
				Params struct{ Event any }
				Result any
				Error  *struct {
					Data struct {
						Kind   home.Kind
						Field  string
						Result any
					}
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
			switch {
			case m.Method == op+".event":
				a.Events = append(a.Events, m.Params.Event)
			case m.Method != "":
			case m.Error != nil:
				a.Kind, a.Field, a.Result = m.Error.Data.Kind, m.Error.Data.Field, m.Error.Data.Result
				return a
			default:
				a.Result = m.Result
				return a
			}
		}
		t.Fatalf("%s: the connection ended: %v", op, lines.Err())
		return a
	}
}

// connect opens a connection to an IPC server.
func connect(t *testing.T, h *home.Home) (send func(line string), lines *bufio.Scanner) {
	s := ipc.New(h, nil)
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); _ = s.ServeStream(theirs, theirs) }()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
		_ = s.Shutdown(context.Background())
		<-done
	})
	lines = bufio.NewScanner(ours)
	lines.Buffer(nil, 1<<24)
	return func(line string) {
		if _, err := io.WriteString(ours, line+"\n"); err != nil {
			t.Error(err)
		}
	}, lines
}

// story is a life of a session, with the mistakes that people make. $name is what an earlier
// step returned.
var story = []struct{ op, request, keep string }{
	{"sessions.create", `{"title":"Otters","tags":["animals"],"key":"zoo:1"}`, "session:s"},
	{"sessions.create", `{"key":"zoo:1"}`, ""},
	{"entries.append", `{"session":"$s","message":{"role":"user","content":[{"type":"text","text":"How do otters sleep?"}]}}`, "entry:q"},
	{"entries.append", `{"session":"$s","at":"$q","once":"a1","message":{"role":"assistant","content":[{"type":"text","text":"Afloat, holding hands."}]}}`, "entry:a"},
	{"entries.append", `{"session":"$s","once":"a1","message":{"role":"assistant","content":[{"type":"text","text":"Afloat, holding hands."}]}}`, ""},
	{"entries.append", `{"session":"$s","at":"$q","message":{"role":"user","content":[{"type":"text","text":"too late"}]}}`, ""},
	{"entries.append", `{"session":"$s"}`, ""},
	{"entries.append", `{"session":"$s","message":{"role":"user","content":[{"type":"text","text":" \n"}]}}`, ""},
	{"entries.append", `{"session":"nothing","message":{"role":"user","content":[{"type":"text","text":"x"}]}}`, ""},
	{"entries.note", `{"session":"$s","text":"order it","by":"a keeper"}`, ""},
	{"entries.note", `{"session":"$s","text":" "}`, ""},
	{"entries.label", `{"session":"$s","entry":"$q","label":"question"}`, ""},
	{"entries.branch", `{"session":"$s","entry":"question","summary":"They float."}`, ""},
	{"entries.append", `{"session":"$s","message":{"role":"user","content":[{"type":"text","text":"And seals?"}]}}`, "entry:b"},
	{"entries.tree", `{"session":"$s"}`, ""},
	{"entries.picture", `{"session":"$s"}`, ""},
	{"entries.rows", `{"session":"$s","at":"$q","from":-1,"count":2}`, ""},
	{"entries.rows", `{"session":"$s","count":1001}`, ""},
	{"entries.seek", `{"session":"$s","text":"SEALS"}`, ""},
	{"entries.seek", `{"session":"$s"}`, ""},
	{"entries.outline", `{"session":"$s"}`, ""},
	{"entries.map", `{"session":"$s","fold":0}`, ""},
	{"entries.path", `{"session":"$s","last":2}`, ""},
	{"entries.path", `{"session":"$s","last":-1}`, ""},
	{"entries.context", `{"session":"$s","window":{"tokens":1000,"reserve":10}}`, ""},
	{"entries.compare", `{"session":"$s","a":"$a","b":"$b"}`, ""},
	{"entries.merge", `{"session":"$s","from":"$a","summary":"Otters float, seals do not."}`, ""},
	{"entries.compact", `{"session":"$s","summary":"All about sleep.","keep_tokens":5}`, ""},
	{"entries.revert", `{"session":"$s"}`, ""},
	{"sessions.tag", `{"session":"$s","add":["sleep"],"remove":["animals"]}`, ""},
	{"sessions.rename", `{"session":"$s","name":"Sleeping animals"}`, ""},
	{"sessions.pin", `{"session":"$s","pinned":true}`, ""},
	{"sessions.remove", `{"session":"$s"}`, ""},
	{"sessions.rate", `{"session":"$s","rating":"good"}`, ""},
	{"sessions.rate", `{"session":"$s","rating":"splendid"}`, ""},
	{"sessions.get", `{"session":"zoo:1"}`, ""},
	{"sessions.list", `{"limit":5}`, ""},
	{"sessions.list", `{"sort":"colour"}`, ""},
	{"sessions.shelf", `{"by_project":true,"cost":true,"now":"2026-03-14T10:00:00+01:00"}`, ""},
	{"sessions.fork", `{"session":"$s","at":"$q"}`, "session:f"},
	{"sessions.list", `{"relation":"fork"}`, ""},
	{"search.find", `{"query":"otters role:user"}`, ""},
	{"search.find", `{"query":"\"unclosed"}`, ""},
	{"search.stats", `{"session":"$s","time_zone":"UTC"}`, ""},
	{"transfer.export", `{"session":"$s","format":"md"}`, ""},
	{"transfer.export", `{"session":"$s","format":"papyrus"}`, ""},
	{"sessions.tags", `{}`, ""},
	{"sessions.filter_values", `{"filter":"tag"}`, ""},
	{"sessions.resolve", `{"session":"zoo:1"}`, ""},
	{"sessions.remove", `{"session":"$f"}`, ""},
	{"sessions.get", `{"session":"$f"}`, ""},
	{"upkeep.trash", `{}`, ""},
	{"upkeep.restore", `{"session":"$f"}`, ""},
	{"upkeep.check", `{}`, ""},
	{"upkeep.redact", `{"all":true}`, ""},
	{"turns.prompt", `{"session":"$s","text":"Hello?","provider":"parrot"}`, ""},
	{"turns.status", `{"session":"$s"}`, ""},
}

// TestAStoryIsTheSameEveryWay: whoever asks, and however, gets the same answers.
func TestAStoryIsTheSameEveryWay(t *testing.T) {
	t.Parallel()
	var want []answered
	for _, w := range []struct {
		name string
		open func(*testing.T, *home.Home) way
	}{{"library", byLibrary}, {"HTTP", byHTTP}, {"client", byClient}, {"JSON-RPC", byRPC}} {
		var got []answered
		ask := w.open(t, emptyHome(t))
		names := strings.NewReplacer()
		var known []string
		for _, step := range story {
			a := ask(step.op, []byte(names.Replace(step.request)))
			if field, name, ok := strings.Cut(step.keep, ":"); ok {
				result, _ := a.Result.(map[string]any)
				known = append(known, "$"+name, fmt.Sprint(result[field]))
				names = strings.NewReplacer(known...)
			}
			got = append(got, a)
		}
		got = withoutChance(t, readable(t, got))
		if want == nil {
			want = got
			continue
		}
		for i := range got {
			if diff := cmp.Diff(want[i], got[i]); diff != "" {
				t.Errorf("%s %s by %s (-library +%s):\n%s", story[i].op, story[i].request, w.name, w.name, diff)
			}
		}
	}
	answeredWell := 0
	for i := range want {
		if want[i].Kind == "" {
			answeredWell++
		}
	}
	if answeredWell < len(story)-16 {
		t.Errorf("only %d of %d steps went well", answeredWell, len(story))
	}
}

func emptyHome(t *testing.T) *home.Home {
	t.Helper()
	settings, err := home.LoadSettings(func(name string) string {
		if name == "HOME" {
			return t.TempDir()
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(t.Context(), filepath.Join(t.TempDir(), "sessions"), &home.Options{Create: true, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

var (
	anID    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aTime   = regexp.MustCompile(`(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?`)
	aMoment = regexp.MustCompile(`\d{8}T\d{6}\.\d+Z`)
	// The times in a log are shorter if they end with zeros, and so a log has another size, and
	// a text another age; and nobody takes as long as another.
	aSize  = regexp.MustCompile(`"(size|score|model_ms|tools_ms|person_ms)":[0-9.e-]+`)
	aShort = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
)

// readable puts what an export wrote in place of its pieces.
func readable(t *testing.T, all []answered) []answered {
	t.Helper()
	for i := range all {
		var document []byte
		for _, event := range all[i].Events {
			var p home.ExportPiece
			text, _ := json.Marshal(event)
			if json.Unmarshal(text, &p) == nil {
				document = append(document, p.Data...)
			}
		}
		if len(document) > 0 {
			all[i].Events = []any{string(document)}
		}
	}
	return all
}

// withoutChance replaces ids and times by what they are in every home: the first id is id1.
func withoutChance(t *testing.T, all []answered) (out []answered) {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]string)
	number := func(kind string) func(string) string {
		return func(id string) string {
			if seen[id] == "" {
				seen[id] = fmt.Sprint(kind, len(seen)+1)
			}
			return seen[id]
		}
	}
	s := anID.ReplaceAllStringFunc(string(text), number("id"))
	s = aTime.ReplaceAllString(aMoment.ReplaceAllString(s, "TIME"), "TIME")
	s = aSize.ReplaceAllString(s, `"$1":1`)
	s = aShort.ReplaceAllStringFunc(s, number("short"))
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSevenWaysToTheSameSessions asks one home the same questions in every way that there is,
// those with words of their own included.
func TestSevenWaysToTheSameSessions(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	ask := byLibrary(t, h)
	var ids []string
	for _, title := range []string{"Otters", "Seals", "Walruses"} {
		made := ask("sessions.create", []byte(`{"title":"`+title+`"}`)).Result.(map[string]any)
		ids = append(ids, made["session"].(string))
		ask("entries.append", []byte(`{"session":"`+ids[len(ids)-1]+`","message":{"role":"user","content":[{"type":"text","text":"How do they sleep, the `+strings.ToLower(title)+`?"}]}}`))
	}
	titles := []string{"Otters", "Seals", "Walruses"}
	check := func(name string, listed []string, document string, hit string) {
		t.Helper()
		slices.Sort(listed)
		if !slices.Equal(listed, titles) {
			t.Errorf("%s lists %q", name, listed)
		}
		if !strings.Contains(document, "How do they sleep, the seals?") {
			t.Errorf("%s reads %q", name, document)
		}
		if hit != ids[1] {
			t.Errorf("%s finds %q", name, hit)
		}
	}
	for name, ask := range map[string]way{
		"library": ask, "HTTP": byHTTP(t, h), "client": byClient(t, h), "JSON-RPC": byRPC(t, h),
	} {
		var listed []string
		for _, s := range ask("sessions.list", []byte(`{}`)).Result.(map[string]any)["sessions"].([]any) {
			listed = append(listed, s.(map[string]any)["title"].(string))
		}
		hits := ask("search.find", []byte(`{"query":"seals role:user"}`)).Result.(map[string]any)["hits"].([]any)
		var document []byte
		for _, piece := range ask("transfer.export", []byte(`{"session":"`+ids[1]+`","format":"md"}`)).Events {
			var p home.ExportPiece
			text, _ := json.Marshal(piece)
			if err := json.Unmarshal(text, &p); err != nil {
				t.Fatal(err)
			}
			document = append(document, p.Data...)
		}
		check(name, listed, string(document), hits[0].(map[string]any)["session"].(string))
	}

	run := func(args ...string) string {
		cmd := exec.Command("coppice", append([]string{"--dir", h.Dir()}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		return string(out)
	}
	var listed []string
	for line := range strings.Lines(run("ls", "--json")) {
		var s home.SessionInfo
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		listed = append(listed, s.Title)
	}
	var hit home.Hit
	if err := json.Unmarshal([]byte(run("search", "seals role:user", "--json")), &hit); err != nil {
		t.Fatal(err)
	}
	check("command line", listed, run("export", ids[1], "--format", "md"), hit.Session)

	send, lines := connect(t, h)
	tagged := func(request string, v any) {
		send(request)
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), v); err != nil {
			t.Fatal(err)
		}
	}
	var list struct {
		Sessions []struct {
			SessionID string `json:"session_id"`
			Title     string
		}
	}
	var exported struct{ Content string }
	tagged(`{"type":"session_list"}`, &list)
	tagged(`{"type":"session_export","session_id":"`+ids[1]+`","format":"markdown"}`, &exported)
	listed, found := nil, ""
	for _, s := range list.Sessions {
		listed = append(listed, s.Title)
		if s.Title == "Seals" {
			found = s.SessionID
		}
	}
	check("tagged IPC", listed, exported.Content, found)

	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: serveHome(t, h) + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tool := func(name string, arguments map[string]any) string {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
		if err != nil || result.IsError {
			t.Fatalf("%s: %v, %+v", name, err, result)
		}
		var text strings.Builder
		for _, c := range result.Content {
			if c, ok := c.(*sdk.TextContent); ok {
				text.WriteString(c.Text)
			}
		}
		return text.String()
	}
	listed = nil
	recent := tool("recent_sessions", map[string]any{})
	for _, title := range titles {
		if strings.Contains(recent, title) {
			listed = append(listed, title)
		}
	}
	found = ""
	if strings.Contains(tool("search", map[string]any{"query": "seals role:user"}), ids[1]) {
		found = ids[1]
	}
	check("MCP", listed, tool("read_session", map[string]any{"session": ids[1]}), found)
}
