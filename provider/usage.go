package provider

import (
	"encoding/json"
	"math"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// The functions in this file are the one place that knows how providers count.
// They read a usage object and return it in Coppice's terms: Input is what was
// neither read from a cache nor written to one, Output includes the reasoning.
// They return nil for anything that is not an object.

// AnthropicUsage reads the usage of Anthropic's Messages, also as Claude Code
// keeps it. The input does not include what the cache served; the output
// includes the thinking.
func AnthropicUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	return &session.Usage{
		Input: c.n("input_tokens"), Output: c.n("output_tokens"),
		CacheRead: c.n("cache_read_input_tokens"), CacheWrite: c.n("cache_creation_input_tokens"),
		CacheWriteHour: c.n("cache_creation", "ephemeral_1h_input_tokens"),
		Reasoning:      c.n("output_tokens_details", "thinking_tokens"),
	}
}

// BedrockUsage reads the usage of Bedrock's Converse, which counts as
// Anthropic does.
func BedrockUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	return &session.Usage{
		Input: c.n("inputTokens"), Output: c.n("outputTokens"),
		CacheRead: c.n("cacheReadInputTokens"), CacheWrite: c.n("cacheWriteInputTokens"),
	}
}

// OpenAIChatUsage reads the usage of Chat Completions and of the many services
// that speak it. The prompt includes what the cache served; the completion
// includes the reasoning. Some services also say what it cost.
func OpenAIChatUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	u := &session.Usage{
		Output:    c.n("completion_tokens"),
		CacheRead: c.n("prompt_tokens_details", "cached_tokens"), CacheWrite: c.n("prompt_tokens_details", "cache_write_tokens"),
		Reasoning: c.n("completion_tokens_details", "reasoning_tokens"),
	}
	if u.CacheRead == 0 { // DeepSeek's name for it
		u.CacheRead = c.n("prompt_cache_hit_tokens")
	}
	u.Input = rest(c.n("prompt_tokens"), u.CacheRead, u.CacheWrite)
	u.CostMicroUSD = c.microUSD("cost")
	return u
}

// OpenAIResponsesUsage reads the usage of Responses, which counts as Chat
// Completions does, under other names.
func OpenAIResponsesUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	u := &session.Usage{
		Output:    c.n("output_tokens"),
		CacheRead: c.n("input_tokens_details", "cached_tokens"), CacheWrite: c.n("input_tokens_details", "cache_write_tokens"),
		Reasoning: c.n("output_tokens_details", "reasoning_tokens"),
	}
	u.Input = rest(c.n("input_tokens"), u.CacheRead, u.CacheWrite)
	return u
}

// CodexUsage reads a token count of Codex: the input includes what the cache
// served and took, the output includes the reasoning.
func CodexUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	u := &session.Usage{
		Output:    c.n("output_tokens"),
		CacheRead: c.n("cached_input_tokens"), CacheWrite: c.n("cache_write_input_tokens"),
		Reasoning: c.n("reasoning_output_tokens"),
	}
	u.Input = rest(c.n("input_tokens"), u.CacheRead, u.CacheWrite)
	return u
}

// GeminiUsage reads the usageMetadata of Gemini. The prompt includes what the
// cache served; the candidates do not include the thoughts. What tools put into the
// prompt is counted separately. Programs that ask another provider and keep its counts
// under these names, as Qwen Code does, may have the thoughts in the candidates: the
// total shows which.
func GeminiUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	either := func(camel, snake string) int {
		if n := c.n(camel); n != 0 {
			return n
		}
		return c.n(snake)
	}
	u := &session.Usage{
		CacheRead: either("cachedContentTokenCount", "cached_content_token_count"),
		Reasoning: either("thoughtsTokenCount", "thoughts_token_count"),
	}
	prompt, tools := either("promptTokenCount", "prompt_token_count"), either("toolUsePromptTokenCount", "tool_use_prompt_token_count")
	u.Input = rest(prompt, u.CacheRead) + tools
	u.Output = either("candidatesTokenCount", "candidates_token_count")
	if total := either("totalTokenCount", "total_token_count"); total == 0 || total != prompt+tools+u.Output {
		u.Output += u.Reasoning
	}
	return u
}

// GeminiCLIUsage reads the tokens that Gemini CLI keeps of a message: the
// counters of Gemini under shorter names.
func GeminiCLIUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	u := &session.Usage{CacheRead: c.n("cached"), Reasoning: c.n("thoughts")}
	u.Input = rest(c.n("input"), u.CacheRead) + c.n("tool")
	u.Output = c.n("output") + u.Reasoning
	return u
}

// PiUsage reads the usage that pi keeps, which counts as Coppice does.
func PiUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	return &session.Usage{
		Input: c.n("input"), Output: c.n("output"), CacheRead: c.n("cacheRead"), CacheWrite: c.n("cacheWrite"),
		CostMicroUSD: c.microUSD("cost", "total"),
	}
}

// OpencodeUsage reads the tokens that opencode keeps: the output does not
// include the reasoning.
func OpencodeUsage(raw []byte) *session.Usage {
	c, ok := countersOf(raw)
	if !ok {
		return nil
	}
	u := &session.Usage{
		Input: c.n("input"), CacheRead: c.n("cache", "read"), CacheWrite: c.n("cache", "write"), Reasoning: c.n("reasoning"),
	}
	u.Output = c.n("output") + u.Reasoning
	return u
}

// rest returns what remains of a count that includes others. A provider that
// contradicts itself gives nothing, not less than nothing.
func rest(n int, included ...int) int {
	for _, i := range included {
		n -= i
	}
	return max(n, 0)
}

// counters are the numbers of a usage object.
type counters map[string]json.RawMessage

func countersOf(raw []byte) (counters, bool) {
	c := counters{}
	err := rawjson.Object(raw, func(key, value []byte) error {
		c[string(key)] = value
		return nil
	})
	return c, err == nil
}

// at returns the value at the end of a path of members, or nil.
func (c counters) at(path ...string) json.RawMessage {
	for len(path) > 1 {
		inner, ok := countersOf(c[path[0]])
		if !ok {
			return nil
		}
		c, path = inner, path[1:]
	}
	return c[path[0]]
}

// n returns a count, or 0 if there is none or it makes no sense.
func (c counters) n(path ...string) int {
	f := c.number(path...)
	if f > math.MaxInt32 {
		return 0
	}
	return int(f)
}

// microUSD returns an amount of dollars in millionths.
func (c counters) microUSD(path ...string) int {
	return session.MicroUSD(c.number(path...))
}

func (c counters) number(path ...string) float64 {
	var f float64
	if json.Unmarshal(c.at(path...), &f) != nil || f < 0 {
		return 0
	}
	return f
}
