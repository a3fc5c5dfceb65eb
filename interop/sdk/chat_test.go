package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

var chatSDK = official{
	dialect: "openai-chat", decode: openai.DecodeChat,
	read: func(body []byte) (*answer, error) {
		var c sdk.ChatCompletion
		if err := json.Unmarshal(body, &c); err != nil {
			return nil, err
		}
		return chatAnswer(&c, unknownText(c.Choices[0].Message.JSON.ExtraFields, "reasoning_content")), nil
	},
	open: func(s *providertest.Server, request []byte) (chat, error) {
		c := &chatChat{client: newOpenAI(s)}
		return c, json.Unmarshal(request, &c.params)
	},
	start: func(s *providertest.Server, prompt string) (chat, error) {
		c := &chatChat{client: newOpenAI(s)}
		c.params = sdk.ChatCompletionNewParams{
			Model:         model,
			Messages:      []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("Be brief.")},
			StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
			Tools: []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(sdk.FunctionDefinitionParam{
				Name: "read", Description: sdk.String("Reads a file."), Parameters: schemaOfRead(),
			})},
		}
		c.say(prompt)
		return c, nil
	},
	failed: openaiFailed,
	allowed: []difference{
		{"no content, where it would be null", func(r map[string]any) bool {
			null := false
			for _, m := range objects(r, "messages") {
				if v, ok := m["content"]; ok && v == nil && m["tool_calls"] != nil {
					delete(m, "content")
					null = true
				}
			}
			return null
		}},
	},
	example: `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"gpt-5.1-2025-11-13",
		"choices":[{"index":0,"message":{"role":"assistant","content":"Let me look — moment…","refusal":null,"annotations":[],
			"tool_calls":[
				{"id":"call_abc123","type":"function","function":{"name":"get_weather","arguments":"{\n\"location\": \"Zürich\", \"days\": [1, 2.5, null]\n}"}},
				{"id":"call_abc124","type":"function","function":{"name":"now","arguments":"{}"}}]},
			"logprobs":null,"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":2019,"completion_tokens":110,"total_tokens":2129,
			"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},
			"completion_tokens_details":{"reasoning_tokens":64,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},
		"service_tier":"default","system_fingerprint":"fp_1"}`,
}

func newOpenAI(s *providertest.Server) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey(key), option.WithMaxRetries(0), option.WithHTTPClient(s.Client()))
}

func schemaOfRead() map[string]any {
	return map[string]any{
		"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"},
	}
}

func openaiFailed(err error) (int, string) {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return 0, ""
	}
	return e.StatusCode, e.Code + " " + e.Type + " " + e.Message
}

type chatChat struct {
	client sdk.Client
	params sdk.ChatCompletionNewParams
}

func (c *chatChat) ask() (*answer, error) {
	stream := c.client.Chat.Completions.NewStreaming(context.Background(), c.params)
	defer stream.Close()
	var all sdk.ChatCompletionAccumulator
	thinking := ""
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			return nil, fmt.Errorf("the SDK refuses the chunk %s", chunk.RawJSON())
		}
		for _, choice := range chunk.Choices {
			thinking += unknownText(choice.Delta.JSON.ExtraFields, "reasoning_content")
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	c.params.Messages = append(c.params.Messages, all.Choices[0].Message.ToParam())
	return chatAnswer(&all.ChatCompletion, thinking), nil
}

// unknownText returns a text that the SDK has no field for: OpenAI does not tell
// what its models think, other servers do.
func unknownText(fields map[string]respjson.Field, name string) string {
	var text string
	_ = json.Unmarshal([]byte(fields[name].Raw()), &text) // it is "" if there is none
	return text
}

func (c *chatChat) say(text string) {
	c.params.Messages = append(c.params.Messages, sdk.UserMessage(text))
}

func (c *chatChat) result(results ...result) {
	for _, r := range results {
		c.params.Messages = append(c.params.Messages, sdk.ToolMessage(r.text, r.call.ID))
	}
}

func chatAnswer(c *sdk.ChatCompletion, thinking string) *answer {
	choice := c.Choices[0]
	a := &answer{ID: c.ID, Model: c.Model, Text: choice.Message.Content + choice.Message.Refusal, Thinking: thinking}
	a.Stop = map[string]string{
		"stop": provider.StopEndTurn, "length": provider.StopMaxTokens, "tool_calls": provider.StopToolUse,
		"content_filter": provider.StopRefusal,
	}[choice.FinishReason]
	u := c.Usage
	a.Usage = session.Usage{
		Input: int(u.PromptTokens - u.PromptTokensDetails.CachedTokens), CacheRead: int(u.PromptTokensDetails.CachedTokens),
		Output: int(u.CompletionTokens), Reasoning: int(u.CompletionTokensDetails.ReasoningTokens),
	}
	for _, one := range choice.Message.ToolCalls {
		a.Calls = append(a.Calls, call{one.ID, one.Function.Name, canonical([]byte(one.Function.Arguments))})
	}
	return a
}
