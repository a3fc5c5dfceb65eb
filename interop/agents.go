package main

import "slices"

// agent is how a program is set up on a machine, and how it holds a conversation there.
type agent struct {
	env   []string          // beside the machine's; MODEL_URL stands for the model
	files map[string]string // below the home directory, likewise
	makes made
	// resume are the arguments that resume a conversation, by its id or its file, with a
	// prompt. It is nil if Coppice writes no files for the program.
	resume func(id, file, prompt string) []string
	// searches is what the program calls the tool search of our MCP server.
	searches string
}

var agents = map[string]agent{
	"claude": {
		env: []string{
			"ANTHROPIC_BASE_URL=MODEL_URL", "ANTHROPIC_API_KEY=sk-ant-loopback",
			"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"IS_SANDBOX=1",             // or it refuses to run tools as root
			"ENABLE_TOOL_SEARCH=false", // or the model has to look for the tools of MCP servers first
		},
		makes: made{
			format: "claude-code",
			tool:   toolCall{"Bash", object{"command": "cat note.txt", "description": "Read the note"}},
			args:   []string{"-p", "--dangerously-skip-permissions", "PROMPT"},
		},
		resume:   func(id, _, prompt string) []string { return []string{"-p", "--resume", id, prompt} },
		searches: "mcp__coppice__search",
	},
	"codex": {
		env: []string{"OPENAI_API_KEY=sk-loopback"},
		files: map[string]string{".codex/config.toml": `model = "loopback-model"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "MODEL_URL/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`},
		makes: made{
			format: "codex",
			tool:   toolCall{"exec_command", object{"cmd": "cat note.txt"}},
			args:   append(slices.Clone(codexExec), "PROMPT"),
		},
		resume:   func(id, _, prompt string) []string { return append(slices.Clone(codexExec), "resume", id, prompt) },
		searches: "mcp__coppice/search",
	},
	"gemini": {
		env: []string{
			"GEMINI_API_KEY=loopback", "GOOGLE_GEMINI_BASE_URL=MODEL_URL", "GEMINI_TELEMETRY_ENABLED=false",
			"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_SANDBOX=false", "GEMINI_CLI_TRUST_WORKSPACE=true",
		},
		// An address of one's own rules out the API key, unless it is chosen here.
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},
			"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`},
		makes: made{
			format: "gemini-cli",
			tool:   toolCall{"run_shell_command", object{"command": "cat note.txt"}},
			args:   append(slices.Clone(geminiModel), "--approval-mode", "yolo", "-p", "PROMPT"),
		},
		resume: func(id, _, prompt string) []string {
			return append(slices.Clone(geminiModel), "--resume", id, "-p", prompt)
		},
		searches: "mcp_coppice_search",
	},
	"pi": {
		env: []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"},
		files: map[string]string{".pi/agent/models.json": `{"providers":{"loopback":{
			"baseUrl":"MODEL_URL/v1","api":"openai-completions","apiKey":"loopback","models":[{
				"id":"loopback-model","name":"loopback","reasoning":false,"input":["text","image"],"contextWindow":200000,"maxTokens":8000,
				"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}}]}}}`},
		makes: made{
			format: "pi",
			tool:   toolCall{"bash", object{"command": "cat note.txt"}},
			args:   append([]string{"-p", "PROMPT"}, piModel...),
		},
		resume: func(_, file, prompt string) []string {
			return append([]string{"--session", file, "-p", prompt}, piModel...)
		},
	},
	"opencode": {
		env: []string{
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		},
		files: map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"share":"disabled",
			"model":"loopback/loopback-model","small_model":"loopback/loopback-model",
			"provider":{"loopback":{"npm":"@ai-sdk/openai-compatible","name":"loopback",
				"options":{"baseURL":"MODEL_URL/v1","apiKey":"loopback"},
				"models":{"loopback-model":{"name":"loopback","attachment":true,"tool_call":true,
					"limit":{"context":200000,"output":8000},"modalities":{"input":["text","image"],"output":["text"]}}}}}}`},
		makes: made{
			format: "opencode",
			tool:   toolCall{"bash", object{"command": "cat note.txt", "description": "Read the note"}},
			args:   []string{"run", "PROMPT"},
		},
		resume: func(id, _, prompt string) []string {
			return []string{"run", "--model", "loopback/" + modelName, "--session", id, prompt}
		},
		searches: "coppice_search",
	},
	"qwen": {
		env: []string{
			"OPENAI_API_KEY=loopback", "OPENAI_BASE_URL=MODEL_URL/v1", "OPENAI_MODEL=" + modelName,
			"QWEN_TELEMETRY_ENABLED=false", "QWEN_CODE_NO_RELAUNCH=true",
		},
		makes: made{
			format: "qwen",
			tool:   toolCall{"run_shell_command", object{"command": "cat note.txt", "is_background": false}},
			args:   []string{"--auth-type", "openai", "--approval-mode", "yolo", "-p", "PROMPT"},
		},
	},
	"copilot": {
		env: []string{
			"COPILOT_PROVIDER_BASE_URL=MODEL_URL/v1", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_API_KEY=loopback",
			"COPILOT_MODEL=" + modelName, "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
		},
		makes: made{
			format: "copilot-cli",
			tool:   toolCall{"bash", object{"command": "cat note.txt", "description": "Read the note"}},
			args:   []string{"-p", "PROMPT", "--allow-all-tools"},
		},
		searches: "coppice-search",
	},
	"kimi": {
		files: map[string]string{".kimi-code/config.toml": `default_model = "loopback"
[models.loopback]
provider = "loopback"
model = "loopback-model"
max_context_size = 200000
[providers.loopback]
type = "openai"
base_url = "MODEL_URL/v1"
api_key = "loopback"
`},
		makes: made{
			format: "kimi",
			tool:   toolCall{"Bash", object{"command": "cat note.txt"}},
			args:   []string{"-p", "PROMPT"},
		},
		searches: "mcp__coppice__search",
	},
	"cline": {
		env: []string{"CLINE_TELEMETRY_DISABLED=1"},
		files: map[string]string{".cline/data/settings/providers.json": `{"version":1,"lastUsedProvider":"openai-compatible","modes":{},
			"providers":{"openai-compatible":{"updatedAt":"2026-01-01T00:00:00.000Z","tokenSource":"manual",
				"settings":{"provider":"openai-compatible","apiKey":"loopback","model":"loopback-model","baseUrl":"MODEL_URL/v1"}}}}`},
		makes: made{
			format: "cline",
			tool:   toolCall{"run_commands", object{"commands": []string{"cat note.txt"}}},
			args:   []string{"-P", "openai-compatible", "-m", modelName, "PROMPT"},
		},
	},
}

var (
	codexExec = []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
	// Left to choose a model, Gemini CLI asks one which one to ask, and repeats that for
	// minutes when the answer is not of the right form.
	geminiModel = []string{"--model", "gemini-2.5-flash"}
	piModel     = []string{"--provider", "loopback", "--model", modelName}
)

// setUp gives the program its configuration.
func (g *guest) setUp() error {
	a := agents[g.program.name]
	g.env = a.env
	for path, text := range a.files {
		if err := g.write(path, text); err != nil {
			return err
		}
	}
	return nil
}

// visitMaker lets the program hold a conversation, which must import right.
func visitMaker(g *guest) {
	g.ask("makes a session that imports", func() error {
		if err := g.setUp(); err != nil {
			return err
		}
		_, err := g.makesOne()
		return err
	})
}
