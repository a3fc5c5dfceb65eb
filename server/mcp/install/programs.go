package install

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
)

// Machine is where the files of agents are.
type Machine struct {
	Home   string // the user's directory
	Getenv func(string) string
	OS     string // as runtime.GOOS
}

// Program is an agent that can be given a server.
type Program struct {
	Name  string // as commands have it: "claude-code"
	Title string // as people say it: "Claude Code"

	format format
	file   func(Machine) string
	shape  func(Entry) []field // of an entry
}

// Path returns the file that the program reads.
func (p *Program) Path(m Machine) string { return p.file(m) }

// field is a member of an entry.
type field struct {
	key   string
	value any
}

// format is how a file is written.
type format interface {
	// read returns the entries of a text, by name.
	read(text []byte) (map[string]any, error)
	add(text []byte, name string, entry []field) ([]byte, error)
	// update changes the members command and args of an entry, and leaves the others.
	update(text []byte, name string, entry []field) ([]byte, error)
	remove(text []byte, name string) ([]byte, error)
	// isWithout reports whether an edited text says what the old one did, but for an entry.
	isWithout(text, edited []byte, name string) bool
}

// Programs lists the agents, the most used first.
func Programs() []*Program {
	servers := jsonFile{"mcpServers"}
	return []*Program{
		{"claude-code", "Claude Code", servers, in("CLAUDE_CONFIG_DIR", "", ".claude.json"), stdio("stdio")},
		{"codex", "Codex", tomlFile{"mcp_servers"}, in("CODEX_HOME", ".codex", "config.toml"), stdio("")},
		{"gemini-cli", "Gemini CLI", servers, in("", ".gemini", "settings.json"), stdio("")},
		{"opencode", "opencode", jsonFile{"mcp"}, opencodeFile, list},
		{"cursor", "Cursor", servers, in("", ".cursor", "mcp.json"), stdio("")},
		{"copilot-cli", "Copilot CLI", servers, in("COPILOT_HOME", ".copilot", "mcp-config.json"), copilot},
		{"qwen", "Qwen Code", servers, in("", ".qwen", "settings.json"), stdio("")},
		{"kimi", "Kimi Code", servers, in("KIMI_CODE_HOME", ".kimi-code", "mcp.json"), stdio("")},
		{"windsurf", "Windsurf", servers, in("", ".codeium/windsurf", "mcp_config.json"), stdio("")},
		{"claude-desktop", "Claude Desktop", servers, claudeDesktopFile, stdio("")},
	}
}

// Named returns the program with a name, or nil.
func Named(name string) *Program {
	all := Programs()
	if i := slices.IndexFunc(all, func(p *Program) bool { return p.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// in returns a file in the directory that a variable names, or else in one below the user's
// home.
func in(variable, dir, name string) func(Machine) string {
	return func(m Machine) string {
		own := ""
		if variable != "" {
			own = m.Getenv(variable)
		}
		return filepath.Join(cmp.Or(own, filepath.Join(m.Home, filepath.FromSlash(dir))), name)
	}
}

// opencodeFile returns the one of opencode's files that exists. opencode reads them all.
func opencodeFile(m Machine) string {
	dir := filepath.Join(cmp.Or(m.Getenv("XDG_CONFIG_HOME"), filepath.Join(m.Home, ".config")), "opencode")
	for _, name := range []string{"opencode.jsonc", "opencode.json"} {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return filepath.Join(dir, "opencode.jsonc")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func claudeDesktopFile(m Machine) string {
	const name = "claude_desktop_config.json"
	switch m.OS {
	case "darwin":
		return filepath.Join(m.Home, "Library", "Application Support", "Claude", name)
	case "windows":
		return filepath.Join(cmp.Or(m.Getenv("APPDATA"), filepath.Join(m.Home, "AppData", "Roaming")), "Claude", name)
	}
	return filepath.Join(cmp.Or(m.Getenv("XDG_CONFIG_HOME"), filepath.Join(m.Home, ".config")), "Claude", name)
}

// stdio is an entry of most programs. Some name the transport.
func stdio(transport string) func(Entry) []field {
	return func(e Entry) []field {
		fields := []field{{"command", e.Command}, {"args", e.Args}}
		if transport != "" {
			fields = append([]field{{"type", transport}}, fields...)
		}
		return fields
	}
}

// list is an entry of opencode.
func list(e Entry) []field {
	return []field{{"type", "local"}, {"command", append([]string{e.Command}, e.Args...)}}
}

// copilot is an entry of Copilot CLI, which wants to know the tools that it may use.
func copilot(e Entry) []field {
	return append(stdio("local")(e), field{"tools", []string{"*"}})
}
