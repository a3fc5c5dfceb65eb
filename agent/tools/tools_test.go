package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

func TestMain(m *testing.M) { leak.Main(m) }

// bench is a working directory with tools in it.
type bench struct {
	t     *testing.T
	dir   string // has a directory beside it that is not to be touched
	tools map[string]agent.Tool
}

func newBench(t *testing.T, o tools.Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: o.Dir, tools: make(map[string]agent.Tool)}
	if b.dir == "" {
		real, err := filepath.EvalSymlinks(t.TempDir())
		b.must(err)
		b.dir = filepath.Join(real, "work")
		b.must(os.MkdirAll(b.dir, 0o755))
		o.Dir = b.dir
	}
	list, err := tools.New(o)
	b.must(err)
	for _, tool := range list {
		b.tools[tool.Name] = tool
	}
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// file writes a file by its path from the working directory.
func (b *bench) file(name, content string) string {
	b.t.Helper()
	full := filepath.Join(b.dir, name)
	b.must(os.MkdirAll(filepath.Dir(full), 0o755))
	b.must(os.WriteFile(full, []byte(content), 0o644))
	return full
}

func (b *bench) content(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	b.must(err)
	return string(content)
}

func (b *bench) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(b.dir, name))
	return err == nil
}

func (b *bench) link(target, name string) {
	b.t.Helper()
	if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
		b.t.Skip(err)
	}
}

// args is the arguments of a call, as pairs.
func args(pairs ...any) json.RawMessage {
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

// at is the arguments of a call of a tool that names a file.
func at(tool, path string) json.RawMessage {
	switch tool {
	case "write":
		return args("path", path, "content", "x")
	case "edit":
		return args("path", path, "old_string", "x", "new_string", "y")
	}
	return args("path", path)
}

func (b *bench) runIn(ctx context.Context, name string, input json.RawMessage) agent.Result {
	b.t.Helper()
	c := agent.Call{ID: "c1", Name: name, Input: input}
	if ask := b.tools[name].Ask; ask != nil {
		ask(c) // as an agent does before every call
	}
	r, err := b.tools[name].Run(ctx, c)
	b.must(err)
	return r
}

// run calls a tool, which must succeed, and returns its text.
func (b *bench) run(name string, pairs ...any) string {
	b.t.Helper()
	r := b.runIn(b.t.Context(), name, args(pairs...))
	if r.IsError {
		b.t.Fatalf("%s %s: %s", name, args(pairs...), r.Text)
	}
	return r.Text
}

// fails calls a tool, which must tell the model what it says here.
func (b *bench) fails(want, name string, pairs ...any) {
	b.t.Helper()
	r := b.runIn(b.t.Context(), name, args(pairs...))
	if !r.IsError || !strings.Contains(r.Text, want) {
		b.t.Errorf("%s %s: error %v, %q, want %q in it", name, args(pairs...), r.IsError, r.Text, want)
	}
}

func (b *bench) asks(name string, input json.RawMessage) (bool, string) {
	if ask := b.tools[name].Ask; ask != nil {
		return ask(agent.Call{Name: name, Input: input})
	}
	return false, ""
}

func nothing(context.Context, string, int) ([]tools.Hit, error) { return nil, nil }

func TestEveryToolIsFitForEveryProvider(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{Search: nothing})
	r := provider.Request{Entries: []session.Entry{{}}}
	for _, name := range tools.Names() {
		tool := b.tools[name]
		r.Tools = append(r.Tools, tool.Tool)
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		b.must(json.Unmarshal(tool.Schema, &schema))
		for _, required := range schema.Required {
			if schema.Properties[required] == nil {
				t.Errorf("%s requires %s and does not have it", name, required)
			}
		}
		if schema.Type != "object" || len(schema.Required) == 0 && name != tools.Ls || tool.Description == "" || tool.Run == nil {
			t.Errorf("%s is incomplete: %s", name, tool.Schema)
		}
		changes := name == tools.Write || name == tools.Edit || name == tools.Bash
		if tool.Repeatable == changes || tool.Alone != changes {
			t.Errorf("%s: repeatable %v, alone %v", name, tool.Repeatable, tool.Alone)
		}
	}
	b.must(r.Check())
}

func TestNewMakesWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := []struct {
		o    tools.Options
		want string // the names, or a part of the error
	}{
		{tools.Options{Dir: dir}, "read write edit bash grep glob ls fetch task"},
		{tools.Options{Dir: dir, Search: nothing}, "read write edit bash grep glob ls fetch search task"},
		{tools.Options{Dir: dir, Names: []string{"bash", "read", "bash"}}, "bash read"},
		{tools.Options{Dir: dir, Names: []string{"rm"}}, `no tool "rm"`},
		{tools.Options{Dir: dir, Names: []string{"search"}}, "no sessions"},
		{tools.Options{Dir: filepath.Join(dir, "none")}, "working directory"},
		{tools.Options{Dir: os.Args[0]}, "not a directory"},
	}
	for _, tt := range tests {
		list, err := tools.New(tt.o)
		var names []string
		for _, tool := range list {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %q, %v, want %q", tt.o.Names, got, err, tt.want)
		}
	}
}

// What is wrong with a call is told to the model, and asks nobody.
func TestBadArgumentsAreExplained(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{Search: nothing, MaxTimeout: time.Minute})
	b.file("a", "text\n")
	tests := []struct{ tool, input, want string }{
		{"read", `{}`, `missing properties: ["path"]`},
		{"read", `{"path":null}`, `missing properties: ["path"]`},
		{"read", `{"path":" "}`, `"path" is empty`},
		{"read", `{"path":7}`, `path: type: 7 has type "integer", want "string"`},
		{"read", `{"path":"a\u0000b"}`, `NUL`},
		{"read", `{"path":"a","path":"b"}`, `twice`},
		{"read", `{"path":"a","Path":"/etc/passwd"}`, `unexpected additional properties ["Path"]; the arguments are path, offset, limit`},
		{"read", `{"path":"a","content":"x"}`, `additional properties ["content"]`},
		{"read", `{"path":"a","offset":-1}`, `"offset" must be a whole number from 1`},
		{"read", `{"path":"a","offset":1.5}`, `offset: type: 1.5`},
		{"read", `{"path":"a","limit":"9"}`, `limit: type: 9 has type "string"`},
		{"read", `{"path":"a"`, `not a JSON object`},
		{"read", `["a"]`, `not a JSON object`},
		{"read", `{"path":"~/a"}`, `write the path out`},
		{"write", `{"path":"b"}`, `missing properties: ["content"]`},
		{"write", `{"content":"x"}`, `missing properties: ["path"]`},
		{"write", `{"path":"b","content":1}`, `content: type: 1 has type "integer"`},
		{"write", `{"path":"b","content":"","x":1}`, `["x"]`},
		{"edit", `{"path":"a","old_string":"","new_string":"x"}`, `old_string is empty`},
		{"edit", `{"path":"a","old_string":"x","new_string":"x"}`, `the same`},
		{"edit", `{"path":"a","old_string":"x\ufffd","new_string":"x"}`, `not UTF-8`},
		{"edit", `{"path":"a","old_string":"x","new_string":"y","replace_all":"yes"}`, `replace_all: type: yes has type "string", want "boolean"`},
		{"edit", `{}`, `"old_string"`},
		{"edit", `{"paths":[]}`, `["paths"]; the arguments are path, old_string`},
		{"bash", `{"command":""}`, `"command" is empty`},
		{"bash", `{"command":"true","timeout":61}`, `from 1 to 60`},
		{"bash", `{"cmd":"true"}`, `the arguments are command, timeout`},
		{"search", `{"query":""}`, `"query" is empty`},
		{"search", `{"query":"x","limit":1000}`, `"limit"`},
		{"search", `[]`, `not a JSON object`},
	}
	for _, tt := range tests {
		r := b.runIn(t.Context(), tt.tool, json.RawMessage(tt.input))
		if !r.IsError || !strings.Contains(r.Text, tt.want) {
			t.Errorf("%s %s: error %v, %q, want %q in it", tt.tool, tt.input, r.IsError, r.Text, tt.want)
		}
	}
	if ask, _ := b.asks("bash", json.RawMessage(`{"command":""}`)); ask {
		t.Error("a call that cannot run asks")
	}
	if b.exists("b") || b.content("a") != "text\n" {
		t.Error("a bad call wrote")
	}
}

func TestWhatAsks(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{Search: nothing})
	tests := []struct {
		tool, path string
		asks       bool
		reason     string
	}{
		{"read", "a", false, ""},
		{"read", "docs/../a", false, ""},
		{"read", filepath.Join(b.dir, "a"), false, ""},
		{"read", ".", false, ""},
		{"read", "../a", true, "outside"},
		{"read", "docs/../../a", true, "outside"},
		{"read", b.dir + "er/a", true, "outside"}, // as a name it begins the same
		{"read", filepath.Dir(b.dir), true, "outside"},
		{"write", "a", true, ""},
		{"write", "../a", true, "outside of the working directory: " + filepath.ToSlash(filepath.Join(filepath.Dir(b.dir), "a"))},
		{"write", "docs/notes/" + strings.Repeat("./", 40) + "../../Makefile", true, "writes Makefile"},
		{"write", filepath.Join(b.dir, "a"), true, "writes a"},
		{"edit", "a", true, ""},
		{"edit", "docs/../a", true, "a"},
		{"edit", filepath.Join(b.dir, "../a"), true, "outside"},
	}
	for _, tt := range tests {
		ask, reason := b.asks(tt.tool, at(tt.tool, tt.path))
		if ask != tt.asks || !strings.Contains(reason, tt.reason) || tt.reason == "" && reason != "" {
			t.Errorf("%s %s: %v, %q, want %v, %q", tt.tool, tt.path, ask, reason, tt.asks, tt.reason)
		}
	}
	b.file(".git/config", "")
	b.link(".git", "docs")
	if ask, reason := b.asks("write", at("write", "docs/config")); !ask || !strings.Contains(reason, ".git/config") {
		t.Errorf("a path with a link in it: %v, %q", ask, reason)
	}
	if ask, _ := b.asks("bash", args("command", "true")); !ask {
		t.Error("a command does not ask")
	}
	if ask, _ := b.asks("search", args("query", "x")); ask {
		t.Error("a search asks")
	}
}

func TestCallsTellTheirFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for name, tool := range b.tools {
		if tool.Files == nil {
			continue
		}
		read, changed := tool.Files(at(name, "./docs/../a.md"))
		if name == "read" {
			read, changed = changed, read
		}
		if name == "grep" || name == "glob" || name == "ls" { // they name no single file
			changed = append(changed, "a.md")
		}
		if len(read) > 0 || !slices.Equal(changed, []string{"a.md"}) {
			t.Errorf("%s: %q, %q", name, read, changed)
		}
		if read, changed := tool.Files(json.RawMessage(`{}`)); len(read)+len(changed) > 0 {
			t.Errorf("%s without a path: %q, %q", name, read, changed)
		}
	}
}

func TestSearchShowsPassagesWithTheirSession(t *testing.T) {
	t.Parallel()
	var asked string
	hits := []tools.Hit{
		{Session: "s1", Title: "Boats", Entry: "e1", Role: "user", Text: " a sloop \n", Time: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)},
		{Session: "s2", Text: strings.Repeat("x", 900)},
		{Session: "s3", Text: strings.Repeat("y", 900)},
	}
	b := newBench(t, tools.Options{MaxOutput: 1000, Search: func(_ context.Context, query string, limit int) ([]tools.Hit, error) {
		asked = query
		switch query {
		case "bad":
			return nil, errors.New("write it otherwise")
		case "none":
			return nil, nil
		}
		return hits[:min(limit, len(hits))], nil
	}})
	text := b.run("search", "query", "boat", "limit", 1)
	for _, want := range []string{"session s1", "Boats", "entry e1", "user", "2025-01-02 03:04", "a sloop"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if asked != "boat" || strings.Contains(text, "s2") {
		t.Errorf("asked %q, got %q", asked, text)
	}
	if text := b.run("search", "query", "boat"); !strings.Contains(text, "1 more left out") || len(text) > 1200 {
		t.Errorf("too much: %q", text)
	}
	if text := b.run("search", "query", "none"); !strings.Contains(text, "nothing found") {
		t.Error(text)
	}
	if _, err := b.tools["search"].Run(t.Context(), agent.Call{Input: args("query", "bad")}); err == nil || !strings.Contains(err.Error(), "otherwise") {
		t.Error(err)
	}
}
