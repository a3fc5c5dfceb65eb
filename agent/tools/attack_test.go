package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/provider"
)

func call(name string, input json.RawMessage) agent.Call {
	return agent.Call{ID: "c1", Name: name, Input: input}
}

// A path that looks as if it were in the working directory never leads out of it, and
// one that was approved by its name leads nowhere else.
func TestLinksLeadNowhere(t *testing.T) {
	b := newBench(t, tools.Options{})
	secret := b.file("../outside/secret", "theirs")
	b.file("a", "x")
	b.link(secret, "absolute")
	b.link("../outside/secret", "relative")
	b.link("../outside", "dir")
	b.link("../outside/new", "dangling")
	b.link("loop", "loop")
	b.file("deep/x", "")
	b.link("../../outside/secret", "deep/up")
	b.link("deep/../../outside/secret", "winding")
	b.link(".", "../outside/self")
	b.link("outside/secret", "../beside")
	b.link("nowhere", "../lost")
	outside := filepath.Dir(secret)
	for _, path := range []string{
		"absolute", "relative", "dir/secret", "dir/new", "dangling", "loop", "deep/up", "winding", "dir/../a/../dir/secret",
		filepath.Join(outside, "self/secret"), filepath.Join(outside, "self/new"), "../beside", "../lost",
		"/proc/self/cwd/x", "/proc/self/root/" + secret,
	} {
		for _, c := range []agent.Call{
			call("read", args("path", path)),
			call("write", args("path", path, "content", "ours")),
			call("edit", args("path", path, "old_string", "theirs", "new_string", "ours")),
		} {
			if r := b.runIn(t.Context(), c.Name, c.Input); !r.IsError || strings.Contains(r.Text, "theirs") {
				t.Errorf("%s %s: %q", c.Name, path, r.Text)
			}
		}
	}
	if b.content("../outside/secret") != "theirs" || b.exists("../outside/new") || b.exists("../nowhere") {
		t.Error("something outside was written")
	}
	entries, err := os.ReadDir(outside)
	if b.must(err); len(entries) != 2 {
		t.Errorf("something outside was made: %v", entries)
	}
	b.fails("name that path if you need it", "read", "path", "absolute")
	b.fails(secret, "read", "path", "../beside")
}

// Links that stay in the working directory work, and stay links.
func TestLinksInsideAreFollowed(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	target := b.file("a/b/file", "one")
	b.link("a/b/file", "relative")
	b.link(target, "absolute")
	b.link("a/b", "dir")
	b.link("../file", "a/b/up") // a/file
	b.link("a/new", "dangling")
	for _, path := range []string{"relative", "absolute", "dir/file", filepath.Join(b.dir, "relative")} {
		if got := b.run("read", "path", path); got != "one" {
			t.Errorf("%s: %q", path, got)
		}
		b.run("edit", "path", path, "old_string", "one", "new_string", "two")
		b.run("write", "path", path, "content", "one")
		if info, err := os.Lstat(target); err != nil || !info.Mode().IsRegular() || b.content("a/b/file") != "one" {
			t.Errorf("%s: %v", path, err)
		}
	}
	b.run("write", "path", "dir/up", "content", "up")
	b.run("write", "path", "dangling", "content", "new")
	if b.content("a/file") != "up" || b.content("a/new") != "new" {
		t.Error("written elsewhere")
	}
	for _, link := range []string{"relative", "absolute", "dangling", "dir"} {
		if info, err := os.Lstat(filepath.Join(b.dir, link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", link, err)
		}
	}
}

// The working directory may itself be reached by a link, as /tmp is on a Mac.
func TestWorkingDirectoryBehindALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.Mkdir(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	b := newBench(t, tools.Options{Dir: link})
	b.file("a", "x")
	for _, path := range []string{"a", filepath.Join(link, "a"), filepath.Join(real, "a")} {
		if ask, _ := b.asks("read", args("path", path)); ask || b.run("read", "path", path) != "x" {
			t.Errorf("%s: asks %v", path, ask)
		}
	}
}

// rules returns the rules of a directory that has a few files.
func rules(t *testing.T, allow, deny []string) (*bench, *tools.Rules) {
	t.Helper()
	b := newBench(t, tools.Options{})
	b.file("docs/a.md", "")
	b.file("secret/key", "")
	r, err := tools.NewRules(b.dir, allow, deny)
	b.must(err)
	return b, r
}

func TestCommandsThatARuleAllows(t *testing.T) {
	t.Parallel()
	_, r := rules(t, []string{
		"bash(go test *)", "bash(git status)", "bash(cat docs/*)", "bash(ls src/**)", "bash(echo 'a b' \"*\")", "bash(head *)", "bash(make * -n)", "bash(grep ?x)", "bash(* --version)",
	}, nil)
	for command, want := range map[string]bool{
		"go test ./...":                        true,
		"go  test\t./...  ":                    true,
		"go test":                              true,
		"go test -run 'TestA|TestB; x' ./...":  true,
		`go test -run "a b"`:                   true,
		"go test ./... && git status":          true,
		"go test ./... 2>&1 | head -20":        true,
		"git status; git status || git status": true,
		"go test ./a*":                         true,
		"'go' test":                            true,
		"go 'te'st":                            true,
		"git commit -m 'x' && git status":      false,
		"git status -x":                        false,
		"cat docs/a.md":                        true,
		"cat docs/../secret/key":               false,
		"cat docs/b/a.md":                      false,
		"cat docs/.env":                        false,
		"cat docs/*":                           false, // the shell may make more of it
		"cat docs/a.md docs/b.md":              false,
		"ls src/a/b":                           true,
		"ls src/../..":                         false,
		"ls src/./a":                           false,
		"ls srcs":                              false,
		"echo 'a b' '*'":                       true,
		"echo 'a b' x":                         false,
		"make all -n":                          true,
		"make all x -n":                        false,
		"make -n":                              false,
		"grep ax":                              true,
		"grep x":                               false,
		"":                                     false,
		" ":                                    false,
		"gotest ./...":                         false,
		"go testify":                           false,
		"go build":                             false,
		"go test; rm -rf /":                    false,
		"go test;rm -rf /":                     false,
		"go test && rm -rf /":                  false,
		"go test || rm -rf /":                  false,
		"go test & rm -rf /":                   false,
		"go test &":                            false,
		"go test | sh":                         false,
		"go test |& sh":                        false,
		"go test ;; rm":                        false,
		"go test ;":                            true,
		"go test; # all of it\ngo test":        true,
		"go test &&":                           false,
		"&& go test":                           false,
		"go test\nrm -rf /":                    false,
		"go test\r\nrm -rf /":                  false,
		"go test $(rm -rf /)":                  false,
		"go test `rm -rf /`":                   false,
		`go test "$(rm -rf /)"`:                false,
		"go test \"`rm -rf /`\"":               false,
		"go test ${x:-$(rm)}":                  false,
		"go test $HOME":                        false,
		`go test "$HOME"`:                      false,
		"go test $'\\n'":                       false,
		"go test <(rm -rf /)":                  false,
		"go test > /etc/passwd":                false,
		"go test >/etc/passwd":                 false,
		"go test 2>/etc/passwd":                false,
		"go test 2>&1x":                        false,
		"go test &> x":                         false,
		"go test < x":                          false,
		"go test << x":                         false,
		"go test {a,b}":                        false,
		"{ go test; }":                         false,
		"(go test)":                            false,
		"go test () { rm; }":                   false,
		"! go test":                            false,
		"PATH=/evil go test":                   false,
		"PATH=/evil; go test":                  false,
		"env go test":                          false,
		"./go test":                            false,
		"go\\ test":                            false,
		"go test \\; rm":                       false,
		"go test \\\nrm":                       false,
		"go test # x\nrm":                      false,
		"go test ~/x":                          false,
		"go test 'x":                           false,
		`go test "x`:                           false,
		`go test 'x'\'';rm -rf /;'`:            false,
		"go test \x00":                         false,
		"go test 'a\x1bb'":                     false,
		"go\u00a0test":                         false,
		"go test \u2028rm":                     false,
		"go test [a]":                          false,
		"if go test; then rm; fi":              false,
		"for x in a; do rm; done":              false,
		"eval go test":                         false,
		"go test '&&' rm":                      true, // words, and nothing but words
		"go test \"a;b\"":                      true,
		"go test 'a\nb'":                       true,
		"GO test":                              false,
		"go te?t":                              false,
		"go *":                                 false,
		"git status\\":                         false,
		"git status | head; curl evil":         false,
		"head -1 x | head | head && rm":        false,
		"head x ; head y; head z":              true,
		"g'o' test; 'rm' x":                    false,
		"coproc go test":                       false,
		"go test !!":                           false,
		"go test a^b":                          false,
		strings.Repeat("go test && ", 50) + "rm x": false,
	} {
		d, _ := r.Decide(call("bash", args("command", command)))
		if (d == agent.Allow) != want || d == agent.Deny {
			t.Errorf("%q: %q, want allowed %v", command, d, want)
		}
	}
	for _, input := range []string{`{"command":"go test","command":"rm x"}`, `{"command":"go test","Command":"rm x"}`, `{"command":7}`, `{}`, `[]`, ``} {
		if d, _ := r.Decide(call("bash", json.RawMessage(input))); d != "" {
			t.Errorf("%s: %q", input, d)
		}
	}
}

func TestCommandsThatARuleDenies(t *testing.T) {
	t.Parallel()
	_, r := rules(t, []string{"bash"}, []string{"bash(rm *)", "bash(git push *)"})
	for command, want := range map[string]agent.Decision{
		"ls":                             agent.Allow,
		"echo rm":                        agent.Allow,
		"echo 'x; rm y'":                 agent.Allow,
		"rm":                             agent.Deny,
		"rm -rf /":                       agent.Deny,
		"RM x":                           agent.Deny, // on a Mac it is the same
		"/bin/rm x":                      agent.Deny,
		"ls; rm x":                       agent.Deny,
		"ls && rm x":                     agent.Deny,
		"ls\nrm x":                       agent.Deny,
		"echo $(rm x)":                   agent.Deny,
		"echo `rm x`":                    agent.Deny,
		"(rm x)":                         agent.Deny,
		"{ rm x; }":                      agent.Deny,
		"ls & rm x":                      agent.Deny,
		"env -i rm x":                    agent.Deny,
		"nice -n 5 sudo timeout 3 rm x":  agent.Deny,
		"sh -c 'cd /; bash -c \"rm x\"'": agent.Deny,
		"find . -exec rm {} +":           agent.Deny,
		"echo x | xargs rm":              agent.Deny,
		"f() { rm x; }; f":               agent.Deny,
		"for f in *; do rm $f; done":     agent.Deny,
		"time rm x":                      agent.Deny,
		"cat <<E\n$(rm x)\nE":            agent.Deny,
		"&& rm x":                        "", // it cannot be read, so it asks
		"git -C . push":                  "",
		"linux64 rm x":                   "",
		"tar c --to-command='/bin/rm x'": "",
		"awk 'BEGIN{system(\"rm x\")}'":  "",
		"docker run --rm x":              agent.Allow,
		`\rm x > y`:                      agent.Deny,
		"'rm' x > y":                     agent.Deny,
		"git status && git push --force": agent.Deny,
		"git pull":                       agent.Allow,
	} {
		if d, rule := r.Decide(call("bash", args("command", command))); d != want || rule == "" && want != "" {
			t.Errorf("%q: %q by %q, want %q", command, d, rule, want)
		}
	}
}

// A line that may run what is denied is not allowed by a rule for all commands.
func TestCommandsThatMayRunWhatARuleDeniesAsk(t *testing.T) {
	t.Parallel()
	doubtful := []string{
		"X=1 touch p", "if true; then touch p; fi", "to\\\nuch p", "t=touch; $t p", "$(echo touch) p", "env touch p", "/usr/bin/env touch p", "ENV touch p",
		"bash -c 'touch p'", "sh -c 'touch p'", "echo 'touch p' | sh", "echo p | xargs touch", "nohup touch p", "sudo touch p", "exec touch p",
		"eval 'tou' 'ch p'", "time touch p", "command touch p", "timeout 5 touch p", "find . -exec touch p ';'", "find . -name x -execdir touch p +",
		"/bin/tou?h p", "trap 'touch p' EXIT", ". ./x", "echo $(date) > x", "ls; env touch p", "git ?ush", ";",
		"at now -f x", "unshare touch p", "git -C . push", "gdb -ex 'shell touch p'", "socat EXEC:touch -", strings.Repeat("(", 50_000),
	}
	b, r := rules(t, []string{"bash"}, []string{"bash(touch *)", "bash(git push *)"})
	b = newBench(t, tools.Options{Dir: b.dir, Rules: r})
	for _, command := range doubtful {
		input := args("command", command)
		if d, rule := r.Decide(call("bash", input)); d == agent.Allow {
			t.Errorf("%q: allowed by %q", command, rule)
		}
		if ask, reason := b.asks("bash", input); ask && !strings.Contains(reason, "denies") {
			t.Errorf("%q: the reason is %q", command, reason)
		}
	}
	for _, command := range []string{"ls *.go", "git pull", "find . -name x", "go test ./... 2>&1 | head", "echo 'env touch p'"} {
		if d, _ := r.Decide(call("bash", args("command", command))); d != agent.Allow {
			t.Errorf("%q: %q", command, d)
		}
	}
	b.must(r.Allow("bash(env GOOS=windows go vet *)")) // who says it exactly means it
	if d, _ := r.Decide(call("bash", args("command", "env GOOS=windows go vet ./..."))); d != agent.Allow {
		t.Errorf("by a pattern: %q", d)
	}
	for _, deny := range [][]string{nil, {"write"}, {"write(docs/**)"}} { // no other rule makes a difference
		_, r := rules(t, []string{"bash"}, deny)
		for _, command := range doubtful {
			if d, _ := r.Decide(call("bash", args("command", command))); d != agent.Allow {
				t.Errorf("%q without a rule about commands: %q", command, d)
			}
		}
	}
}

func TestPathsThatRulesAllowAndDeny(t *testing.T) {
	t.Parallel()
	b, r := rules(t,
		[]string{"write(docs/**)", "edit", "write(/opt/x/*)", "write(.github/**)", "write(src/*.go)", "read(/usr/**)"},
		[]string{"write(docs/private/**)", "read(secret/**)", "edit(**/*.key)", "read(/usr/secret/*)"})
	b.link("../secret", "docs/link")
	b.link("secret", "alias")
	b.file("docs/private/x", "")
	b.link("private", "docs/pub")
	for _, tt := range []struct {
		tool, path string
		want       agent.Decision
	}{
		{"write", "docs/a.md", agent.Allow},
		{"write", "docs/b/c/new.md", agent.Allow},
		{"write", "./docs//a.md", agent.Allow},
		{"write", filepath.Join(b.dir, "docs/a.md"), agent.Allow},
		{"write", "docs/../x", ""},
		{"write", "docs", agent.Allow}, // it will not work
		{"write", "docsx/a", ""},
		{"write", "a.md", ""},
		{"write", "Docs/a.md", ""},
		{"write", "docs/.hidden", ""},
		{"write", "docs/.git/hooks/x", ""},
		{"write", "docs/link/key", ""}, // it leads to secret
		{"write", "docs/private/x", agent.Deny},
		{"write", "docs/PRIVATE/x", agent.Deny},
		{"write", "docs/private/.x", agent.Deny},
		{"write", "docs/pub/x", agent.Deny}, // by another name
		{"write", "src/a.go", agent.Allow},
		{"write", "src/b/a.go", ""},
		{"write", "src/a.go.sh", ""},
		{"write", ".github/workflows/x.yml", agent.Allow},
		{"write", ".git/config", ""},
		{"write", "/opt/x/y", agent.Allow},
		{"write", "/opt/x/../y", ""},
		{"write", "/opt/x/y/z", ""},
		{"write", "opt/x/y", ""},
		{"edit", "any/file", agent.Allow},
		{"edit", ".env", ""},
		{"edit", "a/.git/config", ""},
		{"edit", "../x", ""}, // outside it must be said in full
		{"edit", "/etc/passwd", ""},
		{"edit", "a/b.KEY", agent.Deny},
		{"edit", "b.key", agent.Deny},
		{"edit", ".ssh/.key", agent.Deny},
		{"read", "secret/key", agent.Deny},
		{"read", "alias/key", agent.Deny},
		{"read", "secret/sub/.key", agent.Deny},
		{"read", "docs/a.md", ""},
		{"read", "/usr/include/x.h", agent.Allow},
		{"read", "/usr/secret/x", agent.Deny},
		{"read", "/etc/passwd", ""},
	} {
		if d, _ := r.Decide(call(tt.tool, at(tt.tool, tt.path))); d != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.path, d, tt.want)
		}
	}
	if d, _ := r.Decide(call("write", json.RawMessage(`{"path":"docs/a.md","path":"x"}`))); d != "" {
		t.Errorf("two paths: %q", d)
	}
}

func TestRulesForToolsOfOthers(t *testing.T) {
	t.Parallel()
	_, r := rules(t, []string{"github_*", "weather"}, []string{"*_delete", "files_drop"})
	for name, want := range map[string]agent.Decision{
		"github_list": agent.Allow, "weather": agent.Allow, "weathers": "", "github": "",
		"github_delete": agent.Deny, "FILES_DROP": agent.Deny, "files_list": "", "read": "",
	} {
		if d, _ := r.Decide(call(name, json.RawMessage(`{}`))); d != want {
			t.Errorf("%s: %q, want %q", name, d, want)
		}
	}
}

// A new name does not get a tool around a rule that denies it, nor under one that allows
// the tool whose name it had.
func TestRulesForToolsThatAreRenamed(t *testing.T) {
	t.Parallel()
	_, r := rules(t, []string{"git_list"}, []string{"git_delete"})
	ran := 0
	named := func(name string) agent.Tool {
		return agent.Tool{Tool: provider.Tool{Name: name}, Ask: agent.AskAlways, Run: func(context.Context, agent.Call) (agent.Result, error) {
			ran++
			return agent.Result{}, nil
		}}
	}
	list := r.Apply(named("git_list"), named("git_delete"))
	for i, want := range []struct{ asks, runs bool }{{true, true}, {false, false}} {
		c := agent.Call{Name: list[i].Name + "_2", Input: json.RawMessage(`{}`)}
		before := ran
		ask, _ := list[i].Ask(c)
		result, err := list[i].Run(t.Context(), c)
		if ask != want.asks || (ran > before) != want.runs || result.IsError == want.runs || err != nil {
			t.Errorf("%s: asks %v, ran %v, %+v, %v", c.Name, ask, ran > before, result, err)
		}
	}
}

// Tools that obey rules do not ask for what is allowed, and refuse what is denied even
// if nobody would have been asked.
func TestToolsObeyRules(t *testing.T) {
	t.Parallel()
	b, r := rules(t, []string{"write(docs/**)"}, []string{"read(secret/**)", "bash(rm *)"})
	b = newBench(t, tools.Options{Dir: b.dir, Rules: r})
	for path, want := range map[string]bool{"docs/a": false, "a": true, "docs/../../a": true} {
		if ask, _ := b.asks("write", args("path", path, "content", "")); ask != want {
			t.Errorf("write %s asks: %v", path, ask)
		}
	}
	b.run("write", "path", "docs/a", "content", "x")
	b.fails("does not allow", "read", "path", "secret/key")
	b.fails("does not allow", "bash", "command", "rm docs/a")
	if ask, _ := b.asks("bash", args("command", "rm docs/a")); ask || !b.exists("docs/a") {
		t.Errorf("a denied command asks: %v", ask)
	}
	if ask, _ := b.asks("bash", args("command", "go test ./x")); !ask {
		t.Error("a command does not ask")
	}
	b.must(r.Allow("bash(go test *)"))
	if ask, _ := b.asks("bash", args("command", "go test ./x")); ask {
		t.Error("a command asks that was allowed since")
	}
	if err := r.Allow("bash(go test"); err == nil {
		t.Error("an open parenthesis")
	}
	var none *tools.Rules
	_, why := none.RulesFor(call("x", nil))
	if d, _ := none.Decide(call("bash", args("command", "x"))); d != "" || len(none.Apply(agent.Tool{})) != 1 || why == nil {
		t.Error("no rules say something")
	}
}

func TestBadRulesAreExplained(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"":                     "name of a tool",
		"(x)":                  "name of a tool",
		"bash x":               "name of a tool",
		"bash(go test":         "not closed",
		"bash()":               "nothing in the parentheses",
		"bash(a; b)":           "words of one command",
		"bash(a $x)":           "words of one command",
		"bash('a)":             "words of one command",
		"search(x)":            "only bash, fetch and the tools for files",
		"*(x)":                 "only bash, fetch and the tools for files",
		"write(~/x)":           "write the path out",
		"write(a\x01)":         "control character",
		"write(docs/**) extra": "not closed",
	} {
		for _, lists := range [][2][]string{{{"read", rule}, nil}, {nil, {rule}}} {
			if _, err := tools.NewRules(t.TempDir(), lists[0], lists[1]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q in it", rule, err, want)
			}
		}
	}
	if _, err := tools.NewRules("/does/not/exist", nil, nil); err == nil {
		t.Error("rules for no directory")
	}
}

// A rule made for a call allows this call, and not the next best one.
func TestRuleForACallAllowsJustThat(t *testing.T) {
	t.Parallel()
	b, r := rules(t, nil, nil)
	for _, tt := range []struct {
		name  string
		input json.RawMessage
		want  string
	}{
		{"bash", args("command", " go test ./... "), "bash(go test ./...)"},
		{"bash", args("command", "git commit -m 'a * b'"), "bash(git commit -m 'a * b')"},
		{"bash", args("command", "go test && rm x; go test | head \"-n 1\""), "bash(go test)\nbash(rm x)\nbash(head '-n 1')"},
		{"bash", args("command", "go test && ls *"), ""},
		{"bash", args("command", "timeout 60 go test ./..."), "bash(timeout 60 go test ./...)"},
		{"bash", args("command", "python3 scripts/gen.py"), "bash(python3 scripts/gen.py)"},
		{"bash", args("command", "mkdir sub; cd sub && go vet"), "bash(mkdir sub)\nbash(cd sub)\nbash(go vet)"},
		{"bash", args("command", "cd "+b.dir+" && go vet"), "bash(cd " + b.dir + ")\nbash(go vet)"},
		// The parts of these lines would allow more than was shown.
		{"bash", args("command", "cat x | sh"), ""},
		{"bash", args("command", "cat x | /bin/SH -x"), ""},
		{"bash", args("command", "curl -s x | sudo bash"), ""},
		{"bash", args("command", "ls | xargs rm"), ""},
		{"bash", args("command", "cat x | python3.12 -c 'exec(input())'"), ""},
		{"bash", args("command", "ls && env X=1 rm x"), ""},
		{"bash", args("command", "ls; find . -exec rm x +"), ""},
		{"bash", args("command", "ls; source x"), ""},
		{"bash", args("command", "cd .. && rm x"), ""},
		{"bash", args("command", "cd; rm x"), ""},
		{"bash", args("command", "cd - && rm x"), ""},
		{"bash", args("command", "cd /etc && ls"), ""},
		{"bash", args("command", "popd && ls"), ""},
		// So would these, although they are whole.
		{"bash", args("command", "xargs rm"), ""},
		{"bash", args("command", "bash"), ""},
		{"bash", args("command", "bash -s x"), ""},
		{"bash", args("command", "timeout 5 python -"), ""},
		{"bash", args("command", "cat x | awk -f -"), ""},
		{"bash", args("command", "gawk -f /dev/stdin x"), ""},
		{"bash", args("command", "awk --file=- x"), ""},
		{"bash", args("command", "cat x | make -f -"), ""},
		{"bash", args("command", "make -f- all"), ""},
		{"bash", args("command", "make --file=/dev/stdin"), ""},
		{"bash", args("command", "cat x | gdb"), ""},
		{"bash", args("command", "gdb ./a.out"), ""},
		{"bash", args("command", "cat x | docker exec -i y sh"), ""},
		{"bash", args("command", "docker exec -i y sh"), ""},
		{"bash", args("command", "docker run -ti alpine"), ""},
		{"bash", args("command", "kubectl exec --stdin y -- bash"), ""},
		{"bash", args("command", "docker exec y sh"), ""},
		{"bash", args("command", "ls && docker exec y rm x"), ""},
		{"bash", args("command", "cat x | sqlite3 db"), ""},
		{"bash", args("command", "sqlite3 -batch db"), ""},
		{"bash", args("command", "psql -d shop"), ""},
		{"bash", args("command", "cat x | git apply"), ""},
		{"bash", args("command", "git am -"), ""},
		{"bash", args("command", "patch -p1"), ""},
		{"bash", args("command", "kubectl apply -f -"), ""},
		{"bash", args("command", "ed y"), ""},
		{"bash", args("command", "R --no-save"), ""},
		// These take nothing from their input.
		{"bash", args("command", "make test"), "bash(make test)"},
		{"bash", args("command", "make -s -C sub test"), "bash(make -s -C sub test)"},
		{"bash", args("command", "ls | awk '{print $1}'"), "bash(ls)\nbash(awk '{print $1}')"},
		{"bash", args("command", "sqlite3 db 'select 1'"), "bash(sqlite3 db 'select 1')"},
		{"bash", args("command", "psql -c 'select 1'"), "bash(psql -c 'select 1')"},
		{"bash", args("command", "gdb -batch -ex run ./a.out"), "bash(gdb -batch -ex run ./a.out)"},
		{"bash", args("command", "git apply x.patch"), "bash(git apply x.patch)"},
		{"bash", args("command", "docker build -t x ."), "bash(docker build -t x .)"},
		{"bash", args("command", "docker exec y ls"), "bash(docker exec y ls)"},
		{"fetch", args("url", "http://localhost:8080/"), ""},
		{"fetch", args("url", "http://10.0.0.1/"), ""},
		{"bash", args("command", "ls *"), ""},
		{"bash", args("command", "echo $x"), ""},
		{"bash", json.RawMessage(`[]`), ""},
		{"write", at("write", "docs/a.md"), "write(docs/a.md)"},
		{"write", at("write", filepath.Join(b.dir, ".git/config")), "write(.git/config)"},
		{"write", at("write", "a*"), ""},
		{"write", at("write", ""), ""},
		{"read", args("path", "/usr/x"), "read(/usr/x)"},
		{"weather", args("city", "x"), "weather"},
	} {
		list, why := r.RulesFor(call(tt.name, tt.input))
		if got := strings.Join(list, "\n"); got != tt.want || (why == nil) != (got != "") {
			t.Errorf("%s %s: %q, %v, want %q", tt.name, tt.input, got, why, tt.want)
		}
		if len(list) == 0 {
			continue
		}
		fresh, err := tools.NewRules(b.dir, list, nil)
		b.must(err)
		if d, _ := fresh.Decide(call(tt.name, tt.input)); d != agent.Allow {
			t.Errorf("%s does not allow %s", list, tt.input)
		}
	}
}
