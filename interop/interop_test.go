package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestCompareFindsWhatIsWrong(t *testing.T) {
	user := func(s string) fact { return fact{Kind: factText, Role: "user", Text: s} }
	call := func(id, cmd string) fact {
		return fact{Kind: factCall, Role: "assistant", ID: id, Name: "run", Args: `{"cmd":"` + cmd + `"}`}
	}
	result := func(id, s string) fact { return fact{Kind: factResult, ID: id, Text: s} }
	want := []fact{user("hello"), call("1", "a"), call("2", "b"), result("1", "A"), result("2", "B"), user("bye")}
	tests := []struct {
		name string
		got  []fact
		says string // "" if nothing is wrong
	}{
		{"the same", want, ""},
		{"other ids", []fact{user("hello"), call("x", "a"), call("y", "b"), result("x", "A"), result("y", "B"), user("bye")}, ""},
		{"more around it", []fact{user("today is Monday"), user("well, hello"), call("1", "a"), call("2", "b"), result("2", "B"), result("1", "took 3 s: A"), user("bye")}, ""},
		{"a text is missing", []fact{call("1", "a"), call("2", "b"), result("1", "A"), result("2", "B"), user("bye")}, "hello"},
		{"a text twice", append([]fact{user("hello")}, want...), "2 times"},
		{"the wrong side", []fact{{Kind: factText, Role: "model", Text: "hello"}, call("1", "a"), call("2", "b"), result("1", "A"), result("2", "B"), user("bye")}, "hello"},
		{"a call is missing", []fact{user("hello"), call("1", "a"), result("1", "A"), user("bye")}, "call run"},
		{"other arguments", []fact{user("hello"), call("1", "a"), call("2", "c"), result("1", "A"), result("2", "B"), user("bye")}, "call run"},
		{"a result is missing", []fact{user("hello"), call("1", "a"), call("2", "b"), result("1", "A"), user("bye")}, "0 times"},
		{"results are swapped", []fact{user("hello"), call("1", "a"), call("2", "b"), result("1", "B"), result("2", "A"), user("bye")}, `"B"`},
		{"a result comes late", []fact{user("hello"), call("1", "a"), call("2", "b"), result("1", "A"), user("bye"), result("2", "B")}, "not with its call"},
		{"another order", []fact{user("bye"), user("hello"), call("1", "a"), call("2", "b"), result("1", "A"), result("2", "B")}, "comes before"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(compare(want, test.got), "\n")
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("compare says %q, want %q", got, test.says)
			}
		})
	}
}

func TestUnpairedCallsAndResults(t *testing.T) {
	facts := []fact{{Kind: factCall, ID: "1"}, {Kind: factCall, ID: "2"}, {Kind: factResult, ID: "2"}, {Kind: factResult, ID: "3"}}
	if got := unpaired(facts); len(got) != 2 {
		t.Errorf("%q, want two complaints", got)
	}
}

// TestModelSpeaksEveryDialect: the model calls its tool if a request offers it, and talks
// once the call is answered. What it was sent comes out as facts.
func TestModelSpeaksEveryDialect(t *testing.T) {
	first := map[string]string{
		"/v1/messages":                     `{"tools":[{"name":"look"}],"messages":[{"role":"user","content":"hi"}]`,
		"/v1/responses":                    `{"tools":[{"type":"function","name":"look"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]`,
		"/v1/chat/completions":             `{"tools":[{"type":"function","function":{"name":"look"}}],"messages":[{"role":"user","content":"hi"}]`,
		"/v1beta/models/m:generateContent": `{"tools":[{"functionDeclarations":[{"name":"look"}]}],"contents":[{"role":"user","parts":[{"text":"hi"}]}]`,
	}
	second := map[string]string{
		"/v1/messages":                     `{"tools":[{"name":"look"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"look","input":{"at":"it"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"seen"}]}]}]`,
		"/v1/responses":                    `{"tools":[{"type":"function","name":"look"}],"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"1","name":"look","arguments":"{\"at\":\"it\"}"},{"type":"function_call_output","call_id":"1","output":"seen"}]`,
		"/v1/chat/completions":             `{"tools":[{"type":"function","function":{"name":"look"}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{\"at\":\"it\"}"}}]},{"role":"tool","tool_call_id":"1","content":"seen"}]`,
		"/v1beta/models/m:generateContent": `{"tools":[{"functionDeclarations":[{"name":"look"}]}],"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"look","args":{"at":"it"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"look","response":{"output":"seen"}}}]}]`,
	}
	for path := range first {
		for _, end := range []string{`}`, `,"stream":true}`} {
			t.Run(path+end, func(t *testing.T) {
				m, err := newModel()
				if err != nil {
					t.Fatal(err)
				}
				defer m.close()
				m.willCall(&toolCall{"look", object{"at": "it"}})
				if got := post(t, m.URL+path, first[path]+end); !strings.Contains(got, `"look"`) {
					t.Errorf("no call in %s", got)
				}
				if got := post(t, m.URL+path, second[path]+end); strings.Contains(got, `"look"`) || !strings.Contains(got, "loopback says") {
					t.Errorf("not only a text in %s", got)
				}
				asked := m.requests()
				want := []fact{{Kind: factText, Role: "user", Text: "hi"}, {Kind: factCall, ID: "c", Name: "look", Args: `{"at":"it"}`}, {Kind: factResult, ID: "c", Text: "seen"}}
				if len(asked) != 2 {
					t.Fatalf("%d requests", len(asked))
				}
				if wrong := append(compare(want, asked[1].Facts), unpaired(asked[1].Facts)...); len(wrong) > 0 {
					t.Errorf("%q in %+v", wrong, asked[1].Facts)
				}
			})
		}
	}
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, r.Status, err)
	}
	return string(got)
}

// TestFixtureHasWhatItClaims: a conversation without the hard parts would pass anywhere.
func TestFixtureHasWhatItClaims(t *testing.T) {
	m, err := newMachine(t.Context(), t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	g := &guest{machine: m}
	f, err := writeFixture(t.Context(), m.home.Store(), m.project())
	if err != nil {
		t.Fatal(err)
	}
	facts, err := g.facts(f.id)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, f := range facts {
		count[f.Kind]++
		if f.any {
			count["interrupted"]++
		}
	}
	if count[factCall] != 4 || count[factResult] != 4 || count[factImage] != 1 || count["interrupted"] != 1 {
		t.Errorf("%v", count)
	}
	if wrong := compare(facts, facts); len(wrong) > 0 {
		t.Errorf("something is there twice: %q", wrong)
	}
	for _, gone := range f.gone {
		if strings.Contains(fmt.Sprint(facts), gone) {
			t.Errorf("%q is in the context", gone)
		}
	}
}

// TestNotAsked: a program that is not there is reported and does not fail the run; a wrong
// answer does.
func TestNotAsked(t *testing.T) {
	p := &plan{Dir: t.TempDir(), Missing: map[string]string{"codex": "npm is not installed"}}
	var all [][]row
	for i, v := range visits {
		if v.program == "codex" {
			all = append(all, p.visit(t.Context(), i))
		}
	}
	var out bytes.Buffer
	if err := report(&out, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"codex", "npm is not installed", "0 passed, 0 failed, 1 not asked\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	g := &guest{program: programNamed("codex")}
	g.ask("this", func() error { return nil })
	g.ask("that", func() error { return errors.New("it said no") })
	out.Reset()
	if err := report(&out, append(all, g.rows)); !errors.Is(err, errWrong) {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"it said no", "1 passed, 1 failed, 1 not asked\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestInstalledProgramsAreNotDownloaded(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	in := &installer{cache: t.TempDir(), talk: t.Logf}
	p := programNamed(node)
	if err := in.install(t.Context(), p); err == nil {
		t.Error("installed without npm")
	}
	file := p.command(in.cache)[0]
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := in.install(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// TestVersionsInTheDocumentation: docs/formats.md lists the versions that are asked, and
// docs/mcp.md and docs/server.md those that are only asked about the servers.
func TestVersionsInTheDocumentation(t *testing.T) {
	for _, p := range programs {
		page := "docs/formats.md"
		if strings.HasPrefix(p.name, "mcp-") {
			page = "docs/mcp.md"
		}
		if p.name == "redocly" || p.name == "openapi-typescript" || p.name == "curl" {
			page = "docs/server.md"
		}
		if p.name == "netcat" {
			continue // docs/ipc.md has it, of any version
		}
		doc, err := os.ReadFile("../" + page)
		if err != nil {
			t.Fatal(err)
		}
		if p.name != node && !strings.Contains(string(doc), "| "+p.version+" |") {
			t.Errorf("%s has no %s %s", page, p.name, p.version)
		}
	}
}

// TestSuiteComplaints: a scenario that counts and fails is told, and one that is missing.
func TestSuiteComplaints(t *testing.T) {
	out := "=== SUMMARY ===\n✓ a: 2 passed, 0 failed\n✗ b: 1 passed, 1 failed\n✗ c: 0 passed, 3 failed\n\nNot scored for X: 1\n  ✗ c (extension)\n"
	for _, test := range []struct {
		out           string
		scored, wrong int
	}{{out, 2, 1}, {out, 3, 2}, {strings.ReplaceAll(out, "✗ b", "✓ b"), 2, 0}, {"crashed", 0, 1}} {
		if got := suiteComplaints(test.out, nil, test.scored); len(got) != test.wrong {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// TestToolsCanAskWithoutAToken: a tool that asks the client while it runs gets its answer at the
// address for clients that cannot send the token. It does so, too, if all that sends a call
// learns only after the tool has asked that the call was sent.
func TestToolsCanAskWithoutAToken(t *testing.T) {
	m, err := newMachine(t.Context(), t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	_, open, stop, err := m.serveMCP(suiteTools)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	asked, ask := context.WithCancel(t.Context())
	defer ask()
	slow := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return callConn{c, asked.Done()}, err
	}}
	defer slow.CloseIdleConnections()
	usual := http.DefaultTransport
	http.DefaultTransport = slow
	defer func() { http.DefaultTransport = usual }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			ask()
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	})
	c, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: open}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "test_elicitation"})
	if err != nil || r.IsError || asked.Err() == nil {
		t.Errorf("%+v %v", r, err)
	}
}

// callConn tells that a call was sent when asked is closed.
type callConn struct {
	net.Conn
	asked <-chan struct{}
}

func (c callConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.Contains(p, []byte(`"method":"tools/call"`)) {
		<-c.asked
	}
	return n, err
}

func TestNothingOfTheUserReachesAProgram(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	t.Setenv("CLAUDE_CONFIG_DIR", "/real")
	m, err := newMachine(t.Context(), t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	env := strings.Join(m.environ(nil), "\n")
	if strings.Contains(env, "secret") || strings.Contains(env, "/real") || !strings.Contains(env, "HOME="+m.user()) {
		t.Error(env)
	}
}
