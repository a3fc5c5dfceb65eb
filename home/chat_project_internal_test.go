package home

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A server of .mcp.json may have headers, and variables with a default. What the person is
// shown has no value of either: it may be a key.
func TestServersOfAProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `{"mcpServers": {
		"far": {"type": "http", "url": "https://${HOST:-tools.example.com}/mcp", "headers": {"authorization": "Bearer ${TOKEN}"}},
		"near": {"command": "serve", "args": ["--port", "${PORT:-80}"], "env": {"PATH": "evil", "KEY": "${TOKEN}"}}
	}}`
	if err := os.WriteFile(filepath.Join(dir, serversFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TOKEN": "a-key", "PORT": "8080"}
	p, err := readProject(dir, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	far, near := p.servers[0], p.servers[1]
	if far.URL != "https://tools.example.com/mcp" || far.Header.Get("Authorization") != "Bearer a-key" {
		t.Errorf("far is %+v", far)
	}
	if !slices.Equal(near.Command, []string{"serve", "--port", "8080"}) || len(near.Header) > 0 || near.Dir != dir {
		t.Errorf("near is %+v", near)
	}
	if shown := strings.Join(p.Says, "\n"); strings.Contains(shown, "a-key") || !strings.Contains(shown, "far: https://") || !strings.Contains(shown, "KEY=${TOKEN}, PATH=evil") {
		t.Errorf("it says:\n%s", shown)
	}
}

// A link in a project must not lead out of it: what it leads to would be sent to a provider.
func TestALinkOutOfAProjectIsNotRead(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "key")
	for name, text := range map[string]string{outside: "a key", filepath.Join(dir, "CLAUDE.md"): "notes"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "AGENTS.md")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	c := &Chat{dir: dir, project: (*Project)(nil).with(notesIn([]string{dir}, ""), nil)}
	if notes := c.projectNotes(); notes != "" {
		t.Errorf("the directory is not trusted, but the model got:\n%s", notes)
	}
	c.project.Trusted = true
	if notes := c.projectNotes(); strings.Contains(notes, "a key") || !strings.Contains(notes, "leads out of the project") || !strings.Contains(notes, "\n\nnotes") {
		t.Errorf("the model is told:\n%s", notes)
	}
	if err := os.WriteFile(filepath.Join(dir, projectFile), []byte("system = 'AGENTS.md'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := readProject(dir, os.Getenv); err == nil || !strings.Contains(err.Error(), "leads out of the project") {
		t.Errorf("the project is %+v, %v", p, err)
	}
}
