package sdk_test

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

var anthropicSDK = official{
	dialect: "anthropic", decode: anthropic.Decode,
	read: func(body []byte) (*answer, error) {
		var m sdk.Message
		err := json.Unmarshal(body, &m)
		return anthropicAnswer(&m), err
	},
	open: func(s *providertest.Server, request []byte) (chat, error) {
		c := newAnthropicChat(s)
		return c, json.Unmarshal(request, &c.params)
	},
	start: func(s *providertest.Server, prompt string) (chat, error) {
		c := newAnthropicChat(s)
		c.params = sdk.MessageNewParams{
			Model: model, MaxTokens: 2000, Thinking: sdk.ThinkingConfigParamOfEnabled(1024),
			System: []sdk.TextBlockParam{{Text: "Be brief."}},
			Tools: []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
				Name: "read", Description: sdk.String("Reads a file."),
				InputSchema: sdk.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}, Required: []string{"path"}},
			}}},
		}
		c.say(prompt)
		return c, nil
	},
	failed: func(err error) (int, string) {
		var e *sdk.Error
		if !errors.As(err, &e) {
			return 0, ""
		}
		return e.StatusCode, string(e.Type()) + " " + e.RawJSON()
	},
	allowed: []difference{
		// The API says that a string is short for this list.
		{"a text is a list of one block", func(r map[string]any) bool {
			blocks := asBlocks(r, "system")
			for _, m := range objects(r, "messages") {
				blocks = asBlocks(m, "content") || blocks
				for _, block := range objects(m, "content") {
					blocks = block["type"] == "tool_result" && asBlocks(block, "content") || blocks
				}
			}
			return blocks
		}},
		{"large numbers are rounded", func(r map[string]any) bool { return round(r, "messages", "content", "input") }},
	},
	example: `{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5",
		"content":[
			{"type":"thinking","thinking":"The user wants the weather. I have a tool.","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk="},
			{"type":"text","text":"I'll check — moment…"},
			{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"get_weather","input":{"location":"Zürich","days":[1,2.5,null]}},
			{"type":"tool_use","id":"toolu_01B","name":"now","input":{}}],
		"stop_reason":"tool_use","stop_sequence":null,
		"usage":{"input_tokens":25,"cache_creation_input_tokens":188,"cache_read_input_tokens":3001,"output_tokens":65,
			"cache_creation":{"ephemeral_5m_input_tokens":188,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}`,
}

type anthropicChat struct {
	client sdk.Client
	params sdk.MessageNewParams
}

func newAnthropicChat(s *providertest.Server) *anthropicChat {
	return &anthropicChat{client: sdk.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey(key), option.WithMaxRetries(0), option.WithHTTPClient(s.Client()))}
}

func (c *anthropicChat) ask() (*answer, error) {
	stream := c.client.Messages.NewStreaming(context.Background(), c.params)
	defer stream.Close()
	var m sdk.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	c.params.Messages = append(c.params.Messages, m.ToParam())
	return anthropicAnswer(&m), nil
}

func (c *anthropicChat) say(text string) {
	c.params.Messages = append(c.params.Messages, sdk.NewUserMessage(sdk.NewTextBlock(text)))
}

func (c *anthropicChat) result(results ...result) {
	var blocks []sdk.ContentBlockParamUnion
	for _, r := range results {
		blocks = append(blocks, sdk.NewToolResultBlock(r.call.ID, r.text, r.bad))
	}
	c.params.Messages = append(c.params.Messages, sdk.NewUserMessage(blocks...))
}

func anthropicAnswer(m *sdk.Message) *answer {
	a := &answer{ID: m.ID, Model: string(m.Model), Stop: string(m.StopReason)} // our words are Anthropic's
	a.Usage = session.Usage{
		Input: int(m.Usage.InputTokens), Output: int(m.Usage.OutputTokens),
		CacheRead: int(m.Usage.CacheReadInputTokens), CacheWrite: int(m.Usage.CacheCreationInputTokens),
		Reasoning: int(m.Usage.OutputTokensDetails.ThinkingTokens),
	}
	for _, block := range m.Content {
		switch b := block.AsAny().(type) {
		case sdk.ThinkingBlock:
			a.Thinking += b.Thinking
			a.Signature += b.Signature
		case sdk.TextBlock:
			a.Text += b.Text
		case sdk.ToolUseBlock:
			a.Calls = append(a.Calls, call{b.ID, b.Name, canonical(b.Input)})
		}
	}
	return a
}

// asBlocks makes a list of blocks of a text.
func asBlocks(o map[string]any, name string) bool {
	text, ok := o[name].(string)
	if ok {
		o[name] = []any{map[string]any{"type": "text", "text": text}}
	}
	return ok
}
