package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent/tools"
)

// garden is a directory with files of all kinds.
func garden(t *testing.T, allow, deny []string) *bench {
	t.Helper()
	b := newBench(t, tools.Options{})
	r, err := tools.NewRules(b.dir, allow, deny)
	b.must(err)
	b = newBench(t, tools.Options{Dir: b.dir, Rules: r})
	for name, content := range map[string]string{
		".gitignore": "node_modules/\n*.log\n!keep.log\n/top.txt\nsub/gen\n# a comment\n\n", ".git/config": "bean", ".env": "bean=1\n",
		"a.go": "package a\n\nvar bean = 1\nvar Bean = 2\n", "top.txt": "bean\n", "x.log": "bean\n", "keep.log": "a bean\n", "bin": "bean\x00",
		"sub/b.go": "// bean\r\n", "sub/top.txt": "beans\n", "sub/gen/c.go": "bean\n", "sub/.gitignore": "*.tmp\n", "sub/d.tmp": "bean\n", "sub/e.ts": "bean\n",
		"node_modules/m/index.js": "bean\n", "sub/node_modules": "bean as a file\n",
	} {
		b.file(name, content)
	}
	b.link("..", "sub/up")
	b.link("../..", "sub/out")
	b.link("a.go", "link.go")
	return b
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	b := garden(t, nil, nil)
	var seen []string
	b.must(tools.Browse(t.Context(), b.dir, func(name string) bool {
		seen = append(seen, name)
		return true
	}))
	if got, want := strings.Join(seen, " "), ".env .gitignore a.go bin keep.log sub/ sub/.gitignore sub/b.go sub/e.ts sub/node_modules sub/top.txt"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	seen = nil
	b.must(tools.Browse(t.Context(), b.dir, func(name string) bool {
		seen = append(seen, name)
		return false
	}))
	if got := strings.Join(seen, " "); got != ".env .gitignore a.go bin keep.log sub/" {
		t.Error(got)
	}
	if tools.Browse(t.Context(), filepath.Join(b.dir, "none"), func(string) bool { return true }) == nil {
		t.Error("there is no such directory")
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	b := garden(t, nil, nil)
	const left = "[files that may hold secrets were not searched, such as .env: name one to ask for it]"
	all := "a.go:3:var bean = 1\nkeep.log:1:a bean\nsub/b.go:1:// bean\nsub/e.ts:1:bean\nsub/node_modules:1:bean as a file\nsub/top.txt:1:beans\n" + left
	for _, tt := range []struct {
		args []any
		want string
	}{
		{[]any{"pattern", "bean"}, all},
		{[]any{"pattern", "^var bean", "ignore_case", true}, "a.go:3:var bean = 1\na.go:4:var Bean = 2\n" + left},
		{[]any{"pattern", "bean", "path", "sub", "glob", "*.{go,ts}"}, "sub/b.go:1:// bean\nsub/e.ts:1:bean\n"},
		{[]any{"pattern", "bean", "path", "a.go", "glob", "*.ts"}, "a.go:3:var bean = 1\n"},
		{[]any{"pattern", "bean", "path", "top.txt"}, "top.txt:1:bean\n"}, // who names it wants it
		{[]any{"pattern", "bean", "path", b.dir + "/sub", "glob", "**/*.ts"}, "sub/e.ts:1:bean\n"},
		{[]any{"pattern", "turnip"}, "[no line matches]\n" + left},
		{[]any{"pattern", "bean", "path", ".env"}, ".env:1:bean=1\n"},
		{[]any{"pattern", "bean", "limit", 2}, "a.go:3:var bean = 1\nkeep.log:1:a bean\n[there are more than these 2 lines: narrow the search]"},
	} {
		if got := b.run("grep", tt.args...); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
	}
	b.fails("not a regular expression", "grep", "pattern", "(")
	b.fails("leads out", "grep", "pattern", "x", "path", "sub/out")
	b.fails("does not exist", "grep", "pattern", "x", "path", "none")
	if ask, reason := b.asks("grep", args("pattern", "x", "path", "/etc")); !ask || !strings.Contains(reason, "outside") {
		t.Errorf("outside: %v, %q", ask, reason)
	}
	b.file("long", strings.Repeat("x", 2000)+"\n")
	if got := b.run("grep", "pattern", "x+", "path", "long"); len(got) > 600 || !strings.HasSuffix(got, "…\n") {
		t.Errorf("%d bytes", len(got))
	}
}

// What a rule keeps from being read is not found either.
func TestGrepObeysRulesAboutReading(t *testing.T) {
	t.Parallel()
	b := garden(t, nil, []string{"read(**/.env)", "read(sub/**)", "read(" + filepath.ToSlash(filepath.Dir(t.TempDir())) + "/**)"})
	if got := b.run("grep", "pattern", "bean"); got != "a.go:3:var bean = 1\nkeep.log:1:a bean\n" {
		t.Errorf("%q", got)
	}
	if got := b.run("glob", "pattern", "**/*.{ts,env,go}"); got != "a.go\n" {
		t.Errorf("%q", got)
	}
	outside := t.TempDir()
	b.must(os.WriteFile(filepath.Join(outside, "f"), []byte("bean\n"), 0o600))
	if got := b.run("grep", "pattern", "bean", "path", outside); got != "[no line matches]" {
		t.Errorf("%q", got)
	}
}

func TestGlobAndLs(t *testing.T) {
	t.Parallel()
	b := garden(t, nil, nil)
	for pattern, want := range map[string]string{
		"*.go":         "a.go\nsub/b.go\n",
		"**/*.go":      "a.go\nsub/b.go\n",
		"./*/*.go":     "sub/b.go\n",
		"sub/[a-b].go": "sub/b.go\n",
		".*":           ".env\n.gitignore\nsub/.gitignore\n",
		"*.rs":         "[no file has such a name]",
	} {
		if got := b.run("glob", "pattern", pattern); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	if got := b.run("glob", "pattern", "*.go", "path", "sub"); got != "sub/b.go\n" {
		t.Errorf("%q", got)
	}
	b.fails("empty", "glob", "pattern", " ")
	if got := b.run("ls", "path", "sub"); got != ".gitignore\nb.go\nd.tmp\ne.ts\ngen/\nnode_modules\nout\ntop.txt\nup\n" {
		t.Errorf("%q", got)
	}
	if got := b.run("ls"); !strings.HasPrefix(got, ".env\n.git/\n") {
		t.Errorf("%q", got)
	}
	b.fails("not a directory", "ls", "path", "a.go")
	b = newBench(t, tools.Options{Dir: b.dir, MaxOutput: 16})
	if got := b.run("glob", "pattern", "*"); got != ".env\n.gitignore\n[there are more than these 2 lines: narrow the search]" {
		t.Errorf("%q", got)
	}
}
