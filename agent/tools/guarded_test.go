package tools_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
)

// The rule about files that may hold secrets: what asks, and what does not.
var (
	guarded = []string{
		".ssh/id_rsa", ".ssh", "a/.ssh/config", ".env", ".env.local", ".ENV", "sub/.env.production", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".aws/credentials",
		".git/config", ".bash_history", ".config/gh/hosts.yml", ".docker/config.json", ".kube/config", "./.env", "a/../.env", ".envrc", ".mcp.json", ".claude/settings.json",
		"id_rsa", "keys/ID_ED25519", "server.pem", "tls/server.key", "cert.p12", "credentials.json", "config/secrets.yml", "terraform.tfstate", "prod.tfvars",
		"kubeconfig", "vault.kdbx", "app/master.key", "service-account-prod.json", "prod.env",
	}
	open = []string{
		".", "a.go", "docs/a.md", ".gitignore", "sub/.gitignore", ".github/workflows/ci.yml", ".editorconfig", ".golangci.yml", ".prettierrc.json", ".eslintrc", ".dockerignore",
		".nvmrc", ".python-version", ".gitattributes", ".env.example", ".pre-commit-config.yaml", ".coppice.toml", ".clang-format",
		"id_rsa.pub", "secrets/x.go", "credentials.go", "internal/credentials/x.go", "secrets_test.go", "keys.go", "key.md", "environment", "a..b", "..a/../x",
	}
)

// A call that reads what may hold secrets asks first, by whatever tool and wherever the working
// directory is.
func TestReadingSecretsAsks(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for tool, more := range map[string][]any{"read": nil, "ls": nil, "grep": {"pattern", "x"}, "glob": {"pattern", "*"}} {
		for want, names := range map[bool][]string{true: guarded, false: open} {
			for _, name := range names {
				asks, reason := b.tools[tool].Ask(call(tool, args(append([]any{"path", name}, more...)...)))
				if asks != want || asks && !strings.Contains(reason, strings.TrimPrefix(filepath.Clean(name), "./")) {
					t.Errorf("%s %s: asks: %v, %q", tool, name, asks, reason)
				}
			}
		}
	}
	b.file(".ssh/id_rsa", "bean\n")
	b.link(".ssh/id_rsa", "notes.txt")
	b.link(".ssh", "dir")
	for _, name := range []string{"notes.txt", "dir/id_rsa", "dir"} {
		if asks, reason := b.tools["read"].Ask(call("read", args("path", name))); !asks || !strings.Contains(reason, ".ssh") {
			t.Errorf("%s leads to a key by a link, but: %v, %q", name, asks, reason)
		}
	}
}

// A link that appears after the question leads nowhere.
func TestSecretsBehindLateLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	b.file(".ssh/id_rsa", "bean\n")
	b.file("notes/x", "harmless\n")
	for tool, more := range map[string][]any{"read": nil, "grep": {"pattern", "bean"}} {
		c := call(tool, args(append([]any{"path", "notes/x"}, more...)...))
		if asks, _ := b.tools[tool].Ask(c); asks {
			t.Fatal("it asks about a harmless file")
		}
		b.must(os.Remove(filepath.Join(b.dir, "notes/x")))
		b.link("../.ssh/id_rsa", "notes/x")
		if r, err := b.tools[tool].Run(t.Context(), c); err != nil || !r.IsError || strings.Contains(r.Text, "bean") {
			t.Errorf("%s: %+v, %v", tool, r, err)
		}
		b.must(os.Remove(filepath.Join(b.dir, "notes/x")))
		b.file("notes/x", "harmless\n")
	}
}

// A search leaves out what nobody was asked about, and says so; in a directory that was asked
// about, it leaves out nothing.
func TestGrepLeavesOutSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for _, name := range slices.Concat(guarded, []string{"a.go", ".github/x.yml"}) {
		if name != ".ssh" && name == filepath.Clean(name) && name != ".ENV" {
			b.file(name, "bean\n")
		}
	}
	got := b.run("grep", "pattern", "bean")
	if !strings.HasPrefix(got, ".github/x.yml:1:bean\na.go:1:bean\n[files that may hold secrets were not searched") {
		t.Errorf("%s", got)
	}
	if got := b.run("grep", "pattern", "bean", "path", ".ssh"); got != ".ssh/id_rsa:1:bean\n" {
		t.Errorf("%s", got)
	}
	if got := b.run("glob", "pattern", "id_rsa"); got != ".ssh/id_rsa\nid_rsa\n" { // names are no secrets
		t.Errorf("%s", got)
	}
}

// A rule that allows reaches such a file only if it names it, or files of its kind.
func TestRulesReachSecretsByName(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	for rule, want := range map[string]map[string]bool{
		"read":              {"server.pem": false, "a/id_rsa": false, ".env": false, "a.go": true},
		"read(**)":          {"server.pem": false, "a/id_rsa": false, ".env": false, "a.go": true},
		"read(*)":           {"server.pem": false, "a.go": true},
		"read(a/*)":         {"a/id_rsa": false, "a/b": true},
		"read(**/*.pem)":    {"server.pem": true, "a/b.pem": true, "b.key": false},
		"read(a/id_rsa)":    {"a/id_rsa": true},
		"read(.ssh/id_rsa)": {".ssh/id_rsa": true, ".ssh/config": false},
	} {
		rules, err := tools.NewRules(b.dir, []string{rule}, nil)
		b.must(err)
		for name, allowed := range want {
			if d, _ := rules.Decide(call("read", args("path", name))); (d == agent.Allow) != allowed {
				t.Errorf("%s, %s: %q", rule, name, d)
			}
		}
	}
	rules, err := tools.NewRules(b.dir, nil, nil)
	b.must(err)
	for _, name := range guarded {
		c := call("read", args("path", name))
		made, err := rules.RulesFor(c)
		b.must(err)
		alone, err := tools.NewRules(b.dir, made, nil)
		b.must(err)
		if d, _ := alone.Decide(c); d != agent.Allow {
			t.Errorf("always %s is %q, which does not allow it", name, made)
		}
	}
}
