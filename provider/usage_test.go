package provider_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestUsage: whatever a provider includes in what, the numbers mean the same
// afterwards. In each case 100 tokens were new, 20 were read from the cache, 30
// were written to it where that is counted, and 50 came out, 10 of them thought.
func TestUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		read func([]byte) *session.Usage
		raw  string
		want session.Usage
	}{
		{
			"Anthropic", provider.AnthropicUsage,
			`{"input_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":30,"output_tokens":50,"service_tier":"standard"}`,
			session.Usage{Input: 100, CacheRead: 20, CacheWrite: 30, Output: 50},
		},
		{
			"Anthropic, one hour", provider.AnthropicUsage,
			`{"input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":50}`,
			session.Usage{Input: 100, CacheWrite: 30, CacheWriteHour: 20, Output: 50},
		},
		{
			"Bedrock", provider.BedrockUsage,
			`{"inputTokens":100,"cacheReadInputTokens":20,"cacheWriteInputTokens":30,"outputTokens":50,"totalTokens":200}`,
			session.Usage{Input: 100, CacheRead: 20, CacheWrite: 30, Output: 50},
		},
		{
			"Chat Completions", provider.OpenAIChatUsage,
			`{"prompt_tokens":120,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":10},"cost":0.0123456}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10, CostMicroUSD: 12346},
		},
		{
			"DeepSeek", provider.OpenAIChatUsage,
			`{"prompt_tokens":120,"completion_tokens":50,"prompt_cache_hit_tokens":20,"prompt_cache_miss_tokens":100}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50},
		},
		{
			"OpenRouter", provider.OpenAIChatUsage,
			`{"prompt_tokens":150,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":30}}`,
			session.Usage{Input: 100, CacheRead: 20, CacheWrite: 30, Output: 50},
		},
		{
			"Responses", provider.OpenAIResponsesUsage,
			`{"input_tokens":120,"input_tokens_details":{"cached_tokens":20},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":10}}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10},
		},
		{
			"Codex", provider.CodexUsage,
			`{"input_tokens":150,"cached_input_tokens":20,"cache_write_input_tokens":30,"output_tokens":50,"reasoning_output_tokens":10,"total_tokens":200}`,
			session.Usage{Input: 100, CacheRead: 20, CacheWrite: 30, Output: 50, Reasoning: 10},
		},
		{
			"Gemini", provider.GeminiUsage,
			`{"promptTokenCount":110,"toolUsePromptTokenCount":10,"cachedContentTokenCount":20,"candidatesTokenCount":40,"thoughtsTokenCount":10,"totalTokenCount":170}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10},
		},
		{
			"Gemini in Python", provider.GeminiUsage,
			`{"prompt_token_count":120,"cached_content_token_count":20,"candidates_token_count":40,"thoughts_token_count":10}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10},
		},
		{
			"Qwen Code, with OpenAI's counts", provider.GeminiUsage,
			`{"promptTokenCount":120,"candidatesTokenCount":50,"thoughtsTokenCount":10,"totalTokenCount":170,"cachedContentTokenCount":20}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10},
		},
		{
			"Gemini CLI", provider.GeminiCLIUsage,
			`{"input":120,"output":40,"cached":20,"thoughts":10,"tool":0,"total":170}`,
			session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10},
		},
		{
			"pi", provider.PiUsage,
			`{"input":100,"output":50,"cacheRead":20,"cacheWrite":30,"cost":{"total":0.5}}`,
			session.Usage{Input: 100, CacheRead: 20, CacheWrite: 30, Output: 50, CostMicroUSD: 500000},
		},
		{
			"opencode", provider.OpencodeUsage,
			`{"input":100,"output":40,"reasoning":10,"cache":{"read":20,"write":30}}`,
			session.Usage{Input: 100, CacheRead: 20, CacheWrite: 30, Output: 50, Reasoning: 10},
		},
		{
			"more cached than sent", provider.OpenAIChatUsage,
			`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":20}}`,
			session.Usage{CacheRead: 20},
		},
		{
			"numbers that make no sense", provider.AnthropicUsage,
			`{"input_tokens":-5,"output_tokens":1e300,"cache_read_input_tokens":"7","cache_creation_input_tokens":2.0}`,
			session.Usage{CacheWrite: 2},
		},
		{"a cost that makes no sense", provider.OpenAIChatUsage, `{"cost":1e12}`, session.Usage{}},
		{"details that are none", provider.OpenAIResponsesUsage, `{"input_tokens":5,"input_tokens_details":null}`, session.Usage{Input: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(&tt.want, tt.read([]byte(tt.raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, none := range []string{"", "null", "7", "[]"} {
				if got := tt.read([]byte(none)); got != nil {
					t.Errorf("%q gives %+v", none, got)
				}
			}
		})
	}
}
