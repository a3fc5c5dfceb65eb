package render

import (
	"strings"
	"unicode"
)

// AgentSign tells an agent apart from others at a glance: two letters, and one of some hues that every
// face has. The letters suffice where there are no colours.
type AgentSign struct {
	Sign string `json:"sign"`
	Hue  int    `json:"hue"` // from 0 to AgentHues-1
}

// AgentHues is how many hues there are.
const AgentHues = 8

// agentSigns has the agents whose sessions can be imported, and our own.
var agentSigns = map[string]AgentSign{
	"coppice": {"Co", 0}, "claude-code": {"CC", 1}, "codex": {"Cx", 2}, "gemini-cli": {"Ge", 3}, "opencode": {"Oc", 4}, "pi": {"Pi", 5},
	"aider": {"Ai", 6}, "goose": {"Go", 7}, "cursor": {"Cu", 3}, "crush": {"Cr", 5}, "amp": {"Am", 6}, "cline": {"Cl", 2}, "copilot": {"Cp", 4},
	"droid": {"Dr", 7}, "grok": {"Gk", 1}, "kimi": {"Ki", 5}, "qwen": {"Qw", 6}, "zed": {"Ze", 3}, "llm": {"LL", 4}, "chatgpt": {"GP", 2},
	"claude-ai": {"CA", 1}, "openagent": {"OA", 7}, "picoclaw": {"Pc", 6}, "penguin": {"Pe", 3},
	"anthropic": {"An", 1}, "openai": {"OC", 2}, "openai-responses": {"OR", 2}, "google": {"Gg", 3}, "bedrock": {"Be", 4}, "copilot-cli": {"Cp", 4},
}

// AgentSigns returns the table of signs. Do not change it.
func AgentSigns() map[string]AgentSign { return agentSigns }

// SignOf returns the sign of an agent. One that is not in the table has the first two letters of its
// name, and the last hue.
func SignOf(agent string) AgentSign {
	if sign, known := agentSigns[agent]; known {
		return sign
	}
	letters := strings.FieldsFunc(agent, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := []rune(strings.Join(letters, ""))
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	return AgentSign{OneLine(string(name[:min(len(name), 2)]), 2), AgentHues - 1}
}
