package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

var responsesSDK = official{
	dialect: "openai", decode: openai.DecodeResponses,
	read: func(body []byte) (*answer, error) {
		var r responses.Response
		err := json.Unmarshal(body, &r)
		return responsesAnswer(&r), err
	},
	open: func(s *providertest.Server, request []byte) (chat, error) {
		c := &responsesChat{client: newOpenAI(s)}
		return c, json.Unmarshal(request, &c.params)
	},
	start: func(s *providertest.Server, prompt string) (chat, error) {
		c := &responsesChat{client: newOpenAI(s)}
		tool := responses.ToolParamOfFunction("read", schemaOfRead(), false)
		tool.OfFunction.Description = sdk.String("Reads a file.")
		c.params = responses.ResponseNewParams{
			Model: model, Instructions: sdk.String("Be brief."), Store: sdk.Bool(false),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
			Tools:   []responses.ToolUnionParam{tool},
		}
		c.say(prompt)
		return c, nil
	},
	failed: openaiFailed,
	allowed: []difference{
		// The SDK takes every message for one of the short form, which has neither.
		{"a message without its id and status", func(r map[string]any) bool {
			cut := false
			for _, item := range objects(r, "input") {
				if item["type"] == "message" && item["id"] != nil {
					delete(item, "id")
					delete(item, "status")
					cut = true
				}
			}
			return cut
		}},
	},
	example: `{"id":"resp_67ccd3a9da748190baa7f1570fe91ac604becb25c45c1d41","object":"response","created_at":1741476777,"status":"completed",
		"completed_at":1741476778,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"gpt-5.1-2025-11-13",
		"output":[
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"The weather is asked for."}],"encrypted_content":"gAAAAABo"},
			{"type":"message","id":"msg_67ccd3acc8d48190a77525dc6de64b4104becb25c45c1d41","status":"completed","role":"assistant",
				"content":[{"type":"output_text","text":"Let me look — moment…","annotations":[]}]},
			{"type":"function_call","id":"fc_1","call_id":"call_unLAR8MvFNptuiZK6K6HCy5k","name":"get_weather","arguments":"{\"location\":\"Zürich\",\"days\":[1,2.5,null]}","status":"completed"},
			{"type":"function_call","id":"fc_2","call_id":"call_2","name":"now","arguments":"{}","status":"completed"}],
		"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"low","summary":"auto"},"store":false,"temperature":1,
		"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,"truncation":"disabled",
		"usage":{"input_tokens":2328,"input_tokens_details":{"cached_tokens":2048},"output_tokens":152,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":2480},
		"user":null,"metadata":{}}`,
}

type responsesChat struct {
	client sdk.Client
	params responses.ResponseNewParams
}

var errNoEnd = errors.New("the stream did not end with a response")

func (c *responsesChat) ask() (*answer, error) {
	stream := c.client.Responses.NewStreaming(context.Background(), c.params)
	defer stream.Close()
	var whole *responses.Response
	text, thinking := "", "" // as they arrive
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			thinking += e.Delta
		case responses.ResponseCompletedEvent:
			whole = &e.Response
		case responses.ResponseIncompleteEvent:
			whole = &e.Response
		case responses.ResponseErrorEvent: // the stream itself has no error then
			return nil, errors.New(e.Code + ": " + e.Message)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errNoEnd
	}
	a := responsesAnswer(whole)
	if a.Text != text || a.Thinking != thinking {
		return nil, errors.New("the deltas are not what the response has: " + text + "; " + thinking)
	}
	for _, item := range whole.Output {
		c.params.Input.OfInputItemList = append(c.params.Input.OfInputItemList, sentBack(item))
	}
	return a, nil
}

// sentBack returns an item of an answer as one of the next request.
func sentBack(item responses.ResponseOutputItemUnion) (back responses.ResponseInputItemUnionParam) {
	switch i := item.AsAny().(type) {
	case responses.ResponseOutputMessage:
		p := i.ToParam()
		back.OfOutputMessage = &p
	case responses.ResponseReasoningItem:
		p := i.ToParam()
		back.OfReasoning = &p
	case responses.ResponseFunctionToolCall:
		p := i.ToParam()
		back.OfFunctionCall = &p
	}
	return back
}

func (c *responsesChat) say(text string) {
	c.params.Input.OfInputItemList = append(c.params.Input.OfInputItemList, responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser))
}

func (c *responsesChat) result(results ...result) {
	for _, r := range results {
		item := responses.ResponseInputItemParamOfFunctionCallOutput(r.text)
		item.OfFunctionCallOutput.CallID = sdk.String(r.call.ID)
		c.params.Input.OfInputItemList = append(c.params.Input.OfInputItemList, item)
	}
}

func responsesAnswer(r *responses.Response) *answer {
	a := &answer{ID: r.ID, Model: r.Model, Text: r.OutputText(), Stop: provider.StopEndTurn}
	u := r.Usage
	a.Usage = session.Usage{
		Input: int(u.InputTokens - u.InputTokensDetails.CachedTokens), CacheRead: int(u.InputTokensDetails.CachedTokens),
		Output: int(u.OutputTokens), Reasoning: int(u.OutputTokensDetails.ReasoningTokens),
	}
	for _, item := range r.Output {
		switch i := item.AsAny().(type) {
		case responses.ResponseReasoningItem:
			var summary []string
			for _, s := range i.Summary {
				summary = append(summary, s.Text)
			}
			a.Thinking += strings.Join(summary, "\n\n")
			a.Signature += i.EncryptedContent
		case responses.ResponseFunctionToolCall:
			a.Calls = append(a.Calls, call{i.CallID, i.Name, canonical([]byte(i.Arguments))})
			a.Stop = provider.StopToolUse
		}
	}
	if r.Status == responses.ResponseStatusIncomplete {
		a.Stop = map[string]string{
			"max_output_tokens": provider.StopMaxTokens, "content_filter": provider.StopRefusal,
		}[string(r.IncompleteDetails.Reason)]
	}
	return a
}
