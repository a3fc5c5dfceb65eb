package main

import (
	"path/filepath"
	"runtime"
	"slices"
)

// program is a real program, at the one version that is asked, or the machine's own.
type program struct {
	name    string // ours, which the table prints
	pkg     string // npm's; "" if the machine has the program, see scripts/deps.sh
	version string
	file    string // what is executed, below node_modules or in PATH
}

// node is what runs programs in JavaScript. Some need a newer one than the machine has.
const node = "node"

// programs are those that are asked, the most important first, because that is the order
// in which they are installed. The table in docs/formats.md has the same versions: a test
// compares them.
var programs = []program{
	{node, "node-" + platform(), "24.21.0", "node-" + platform() + "/bin/node"},
	{"claude", "@anthropic-ai/claude-agent-sdk", "0.3.325", "@anthropic-ai/claude-agent-sdk-" + platform() + "/claude"},
	{"codex", "@openai/codex", "0.166.0", "@openai/codex/bin/codex.js"},
	{"gemini", "@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js"},
	{"pi", "@earendil-works/pi-coding-agent", "0.87.1", "@earendil-works/pi-coding-agent/dist/bundle/cli.js"},
	{"ccusage", "@ccusage/ccusage-" + platform(), "20.0.24", "@ccusage/ccusage-" + platform() + "/bin/ccusage"},
	{"opencode", "opencode-" + platform(), "1.18.33", "opencode-" + platform() + "/bin/opencode"},
	{"qwen", "@qwen-code/qwen-code", "0.15.10", "@qwen-code/qwen-code/cli.js"},
	{"copilot", "@github/copilot", "1.0.102", "@github/copilot/npm-loader.js"},
	{"kimi", "@moonshot-ai/kimi-code", "2.1.0", "@moonshot-ai/kimi-code/dist/main.mjs"},
	{"mcp-conformance", "@modelcontextprotocol/conformance", "0.2.0-alpha.12", "@modelcontextprotocol/conformance/dist/index.js"},
	{"mcp-client", "@modelcontextprotocol/client", "2.4.0", "@modelcontextprotocol/client/dist/index.mjs"},
	{"redocly", "@redocly/cli", "2.73.0", "@redocly/cli/bin/cli.js"},
	{"openapi-typescript", "openapi-typescript", "7.13.0", "openapi-typescript/bin/cli.js"},
	{"curl", "", "any", "curl"},
	{"netcat", "", "any", "nc.openbsd"},
	{"cline", "@cline/cli-" + platform(), "3.0.65", "@cline/cli-" + platform() + "/bin/cline"},
}

func programNamed(name string) *program {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &programs[i]
}

// platform is this machine, as packages for one platform are named.
func platform() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

// isScript reports whether the program needs node.
func (p *program) isScript() bool { return p.pkg != "" && filepath.Ext(p.file) != "" }

// modules is the directory of the program's packages.
func (p *program) modules(cache string) string {
	return filepath.Join(cache, p.name+"-"+p.version, "node_modules")
}

// command is how the program is started, without its own arguments.
func (p *program) command(cache string) []string {
	if p.pkg == "" {
		return []string{p.file}
	}
	own := filepath.Join(p.modules(cache), filepath.FromSlash(p.file))
	if p.isScript() {
		return append(programNamed(node).command(cache), own)
	}
	return []string{own}
}
