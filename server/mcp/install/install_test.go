package install_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/server/mcp/install"
	"github.com/coppice-dev/coppice/session"
)

var ours = install.Entry{Name: "coppice", Command: "/usr/local/bin/coppice", Args: []string{"mcp", "--import"}}

// machine is a user's machine on which a program has a file.
func machine(t *testing.T, program, text string) (install.Machine, *install.Program, string) {
	t.Helper()
	m := install.Machine{Home: t.TempDir(), Getenv: func(string) string { return "" }, OS: "linux"}
	p := install.Named(program)
	if p == nil {
		t.Fatalf("there is no program %s", program)
	}
	c, err := p.Add(m, ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return m, p, c.Path
}

// written makes a change and returns the text of the file.
func written(t *testing.T, c *install.Change, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An entry comes into the files of real programs, in whatever state they are, without a change
// of any other byte; it is brought up to date, and taken out again.
func TestFilesKeepEveryOtherByte(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			program := name
			if install.Named(program) == nil {
				program = name[:strings.LastIndex(name, "-")]
			}
			keepsEveryByte(t, program, string(data))
		})
	}
}

func keepsEveryByte(t *testing.T, program, before string) {
	m, p, _ := machine(t, program, before)
	c, err := p.Add(m, ours)
	added := written(t, c, err)
	if !isIn(before, added) {
		t.Errorf("something else changed:\n%s", cmp.Diff(before, added))
	}
	if !p.Has(m, "coppice") || p.Has(m, "other") {
		t.Error("what is there is not known")
	}
	if backup, err := os.ReadFile(c.Backup); err != nil || string(backup) != before {
		t.Errorf("the backup is %q, %v", backup, err)
	}
	if again, err := p.Add(m, ours); err != nil || !again.IsNothing() {
		t.Errorf("adding again changes something: %v", err)
	}
	moved := ours
	moved.Command = "/opt/coppice"
	c, err = p.Add(m, moved)
	if text := written(t, c, err); !strings.Contains(text, "/opt/coppice") || strings.Contains(text, ours.Command) {
		t.Errorf("it was not brought up to date:\n%s", text)
	}
	c, err = p.Remove(m, "coppice")
	if diff := cmp.Diff(before, written(t, c, err)); diff != "" {
		t.Errorf("the file is not what it was (-before +after):\n%s\nwith the entry:\n%s", diff, added)
	}
	if _, err := p.Remove(m, "coppice"); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("removing again: %v", err)
	}
}

// isIn reports whether all bytes of a text are in another, in order.
func isIn(text, in string) bool {
	for i := range len(in) {
		if text != "" && in[i] == text[0] {
			text = text[1:]
		}
	}
	return text == ""
}

// Every program gets an entry of its own shape, where it looks for it.
func TestEntriesHaveTheShapeOfTheProgram(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		".claude.json": `{
  "mcpServers": {
    "coppice": {
      "type": "stdio",
      "command": "/usr/local/bin/coppice",
      "args": [
        "mcp",
        "--import"
      ]
    }
  }
}
`,
		".codex/config.toml": "[mcp_servers.coppice]\ncommand = \"/usr/local/bin/coppice\"\nargs = [\"mcp\", \"--import\"]\n",
		".config/opencode/opencode.jsonc": `{
  "mcp": {
    "coppice": {
      "type": "local",
      "command": [
        "/usr/local/bin/coppice",
        "mcp",
        "--import"
      ]
    }
  }
}
`,
	}
	m := install.Machine{Home: t.TempDir(), Getenv: func(string) string { return "" }, OS: "linux"}
	for _, p := range install.Programs() {
		c, err := p.Add(m, ours)
		text := written(t, c, err)
		path, err := filepath.Rel(m.Home, c.Path)
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := want[filepath.ToSlash(path)]; ok && want != text {
			t.Errorf("%s: %s", path, cmp.Diff(want, text))
		}
		delete(want, filepath.ToSlash(path))
		if c.Backup != "" {
			t.Errorf("%s has a backup of a file that was not there", p.Name)
		}
		if info, err := os.Stat(c.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for path := range want {
		t.Errorf("%s was not written", path)
	}
	env := map[string]string{"CODEX_HOME": t.TempDir()}
	m.Getenv = func(name string) string { return env[name] }
	if c, err := install.Named("codex").Add(m, ours); err != nil || filepath.Dir(c.Path) != env["CODEX_HOME"] {
		t.Errorf("the directory that a variable names does not count: %v %v", c, err)
	}
}

// Where there was no file, uninstalling leaves none, and none of the directories that were made
// for it. What others put there meanwhile stays.
func TestUninstallLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	updated := ours
	updated.Args = []string{"mcp", "--read-only"}
	for _, p := range install.Programs() {
		m := install.Machine{Home: t.TempDir(), Getenv: func(string) string { return "" }, OS: "linux"}
		add := func(entries ...install.Entry) string {
			t.Helper()
			for _, e := range entries {
				c, err := p.Add(m, e)
				written(t, c, err)
			}
			return p.Path(m)
		}
		uninstall := func(deletes bool) {
			t.Helper()
			c, err := p.Remove(m, ours.Name)
			if err != nil || c.Delete != deletes {
				t.Fatalf("%s: %+v, %v", p.Name, c, err)
			}
			if err := c.Write(); err != nil {
				t.Fatal(err)
			}
		}
		left := func() (all []string) {
			t.Helper()
			err := filepath.WalkDir(m.Home, func(path string, _ fs.DirEntry, err error) error {
				if rel, _ := filepath.Rel(m.Home, path); rel != "." {
					all = append(all, filepath.ToSlash(rel))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		for _, entries := range [][]install.Entry{{ours}, {ours, updated}} {
			add(entries...)
			uninstall(true)
			if all := left(); all != nil {
				t.Errorf("%s leaves %q", p.Name, all)
			}
		}
		// A directory that was there stays, and so does one with something in it.
		dir := filepath.Dir(p.Path(m))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		had := left()
		add(ours)
		uninstall(true)
		if diff := cmp.Diff(had, left()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", p.Name, diff)
		}
		if dir != m.Home {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			path := add(ours)
			other := filepath.Join(filepath.Dir(path), "history")
			if err := os.WriteFile(other, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			uninstall(true)
			if all := left(); len(all) == 0 || filepath.Base(all[len(all)-1]) != "history" || slices.Contains(all, filepath.Base(path)) {
				t.Errorf("%s: what another program wrote is gone, or ours is not: %q", p.Name, all)
			}
		}
		// What a person added stays.
		path := add(ours)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		comment := map[bool]string{true: "# mine\n", false: "/* mine */"}[p.Name == "codex"]
		if err := os.WriteFile(path, append([]byte(comment), text...), 0o600); err != nil {
			t.Fatal(err)
		}
		uninstall(false)
		if text, err := os.ReadFile(path); err != nil || !bytes.Contains(text, []byte("mine")) || bytes.Contains(text, []byte("coppice")) {
			t.Errorf("%s: the file is %q, %v", p.Name, text, err)
		}
		for _, path := range left() {
			if strings.HasSuffix(path, ".made-by-coppice") {
				t.Errorf("%s leaves %s", p.Name, path)
			}
		}
	}
}

// What a person added to our entry stays when it is brought up to date.
func TestUpdateKeepsWhatAPersonAdded(t *testing.T) {
	t.Parallel()
	for program, text := range map[string]string{
		"gemini-cli": `{"mcpServers": {"coppice": {"command": "/old/coppice", "args": ["mcp"], "trust": true /* mine */}}}`,
		"codex":      "[mcp_servers.coppice]\ncommand = '/old/coppice' # mine\nargs = [\"mcp\"]\nstartup_timeout_sec = 30 # mine\n\n[mcp_servers.coppice.env]\nA = \"b\"\n\n[tui]\n",
	} {
		m, p, _ := machine(t, program, text)
		c, err := p.Add(m, ours)
		got := written(t, c, err)
		for _, want := range []string{"mine", "--import", ours.Command} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in\n%s", program, want, got)
			}
		}
		c, err = p.Remove(m, "coppice")
		if got := written(t, c, err); strings.Contains(got, "coppice") || program == "codex" && !strings.Contains(got, "[tui]") {
			t.Errorf("%s: it was not taken out:\n%s", program, got)
		}
	}
}

// What is not ours, or cannot be understood, is left alone.
func TestStrangeFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ program, text string }{
		"another program's":         {"cursor", `{"mcpServers": {"coppice": {"command": "npx", "args": ["coppice-other"]}}}`},
		"an address":                {"cursor", `{"mcpServers": {"coppice": {"url": "https://example.com"}}}`},
		"another program's in TOML": {"codex", "[mcp_servers.coppice]\ncommand = \"npx\"\n"},
		"not JSON":                  {"cursor", `{"mcpServers": {`},
		"a list":                    {"cursor", `[]`},
		"null":                      {"cursor", `null`},
		"no object":                 {"cursor", `{"mcpServers": []}`},
		"not TOML":                  {"codex", "= 1\n"},
		"an inline table":           {"codex", "mcp_servers = { coppice = { command = \"/x/coppice\", args = [\"mcp\"] } }\n"},
		"an inline table of others": {"codex", "mcp_servers = { other = { command = \"x\" } }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, p, path := machine(t, c.program, c.text)
			if change, err := p.Add(m, ours); err == nil {
				t.Errorf("it would become:\n%s", change.After)
			} else if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
			if change, err := p.Remove(m, "coppice"); err == nil {
				t.Errorf("without it, it would become:\n%s", change.After)
			}
		})
	}
}

func TestLinksAreFollowed(t *testing.T) {
	t.Parallel()
	m, p, path := machine(t, "claude-code", "{}\n")
	real := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := errors.Join(os.Rename(path, real), os.Symlink(real, path)); err != nil {
		t.Skip("there are no links here:", err)
	}
	c, err := p.Add(m, ours)
	written(t, c, err)
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if text, err := os.ReadFile(real); err != nil || !bytes.Contains(text, []byte("coppice")) {
		t.Errorf("the file behind the link is %q, %v", text, err)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the file is %v now", info.Mode())
		}
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Add(m, ours); err == nil {
		t.Error("a link to nowhere was written to")
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m, p, path := machine(t, "claude-code", "{}")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Add(m, ours); err == nil {
		t.Error("a directory was read as a file")
	}
}

// A program that wrote to the file since it was read does not lose what it wrote.
func TestChangeMeanwhile(t *testing.T) {
	t.Parallel()
	m, p, path := machine(t, "claude-code", "{}")
	c, err := p.Add(m, ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(); !errors.Is(err, session.ErrConflict) {
		t.Errorf("the error is %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != `{"a":1}` {
		t.Errorf("the file is %s", text)
	}
}

// Whatever a file is, what is made of it holds the entry and can be undone, or nothing is made.
func FuzzAdd(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, program := range []string{"claude-code", "codex"} {
			m, p, _ := machine(t, program, string(data))
			c, err := p.Add(m, ours)
			if err != nil || c.IsNothing() {
				continue
			}
			written(t, c, nil)
			if again, err := p.Add(m, ours); err != nil || !again.IsNothing() {
				t.Fatalf("%q is not complete: %v", c.After, err)
			}
			if _, err := p.Remove(m, ours.Name); err != nil {
				t.Fatalf("%q: %v", c.After, err)
			}
		}
	})
}

// Whatever a file looks like, uninstalling gives back its bytes, also after the entry was brought
// up to date. If a person edited it meanwhile, the edit stays, and what was there before.
func TestUninstallGivesBackEveryByte(t *testing.T) {
	t.Parallel()
	for _, p := range install.Programs() {
		files := filesOf(p.Name)
		if p.Name != "claude-code" && p.Name != "codex" { // the same format
			files = files[len(files)-4:]
		}
		for _, before := range files {
			m, p, path := machine(t, p.Name, before)
			check := func(step, want, got string) {
				t.Helper()
				if want != got {
					t.Errorf("%s, %s: %q became %q", p.Name, step, want, got)
				}
			}
			c, err := p.Add(m, ours)
			if err != nil {
				t.Errorf("%s: %q: %v", p.Name, before, err)
				continue
			}
			written(t, c, nil)
			c, err = p.Remove(m, ours.Name)
			check("removed", before, written(t, c, err))
			c, err = p.Add(m, ours)
			written(t, c, err)
			moved := ours
			moved.Args = []string{"--dir", "/x", "mcp"}
			c, err = p.Add(m, moved)
			added := written(t, c, err)
			c, err = p.Remove(m, ours.Name)
			check("brought up to date and removed", before, written(t, c, err))
			comment := map[bool]string{true: "# mine\n", false: "/* mine */"}[p.Name == "codex"]
			if strings.HasPrefix(before, "\ufeff") {
				continue // which only the start of a file may have
			}
			c, err = p.Add(m, moved)
			written(t, c, err)
			if err := os.WriteFile(path, []byte(comment+added), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err = p.Remove(m, ours.Name)
			check("edited and removed", comment+before, written(t, c, err))
		}
	}
}

// filesOf are files as people write them for a program.
func filesOf(program string) []string {
	if program == "codex" {
		return []string{
			"", "\n", "# only a comment", "# only a comment\n", "model = \"x\"", "model = \"x\"\n", "model = \"x\"\n\n\n",
			"model = \"x\"\r\n", "[tui]\nx = 1 # mine\n", "[mcp_servers]\n", "[mcp_servers.other]\ncommand = \"x\" # mine\n\n# the end\n",
			"[mcp_servers.other]\ncommand = \"x\"\n\n[mcp_servers.other.env]\nA = \"b\"",
		}
	}
	key := "mcpServers"
	if program == "opencode" {
		key = "mcp"
	}
	files := []string{
		"{}", "{}\n", "{ }", "{\n}\n", "{\r\n}\r\n", "\ufeff{}", "{/* nothing yet */}", "{\n  // nothing yet\n}\n", "{} // the end\n",
		`{"a": 1}`, `{"a": 1,}`, "{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  // two\n}\n", "{\n\t\"a\": 1\n}",
	}
	for i, servers := range []string{
		"{}", "{}", "{}", "{}", "{ }", "{\n  }", "{ // mine\n  }", "{\n    // mine\n  }", "{/* mine */}", `{"o": {"command": "x"}}`, `{"o": {"command": "x"} /* mine */}`,
		"{\n    \"o\": {\"command\": \"x\"} // mine\n  }", "{\n    \"o\": {\"command\": \"x\"}, // mine\n    // and this\n  }",
		"{\n    /* first */ \"o\": {\n      \"command\": \"x\" // c\n    }\n    /* last */\n  }", "{\r\n    \"o\": {}\r\n  }",
	} {
		files = append(files, []string{
			`{"` + key + `": ` + servers + `}`, "{\n  \"" + key + "\": " + servers + "\n}\n",
			"{\n  \"" + key + "\": " + servers + ", // mine\n  \"z\": [1, 2,],\n}\n",
			"{\n  \"z\": 1, /* mine */ \"" + key + "\": " + servers + " // end\n}",
		}[i%4])
	}
	return files
}
