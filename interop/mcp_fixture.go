//lint:file-ignore SA1019 the suite asks for what is deprecated, too

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// suiteTools adds what the MCP conformance suite wants to call: tools, resources and prompts
// with names and answers that it knows. What is tested is the server around them.
func suiteTools(s *sdk.Server) {
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {&sdk.TextContent{Text: "This is a simple text response for testing."}},
		"test_image_content":          {&sdk.ImageContent{Data: suitePNG, MIMEType: "image/png"}},
		"test_audio_content":          {&sdk.AudioContent{Data: suiteWAV, MIMEType: "audio/wav"}},
		"test_embedded_resource":      {embedded("test://embedded-resource")},
		"test_multiple_content_types": {&sdk.TextContent{Text: "text"}, &sdk.ImageContent{Data: suitePNG, MIMEType: "image/png"}, embedded("test://embedded-in-multiple")},
		"test_streaming_elicitation":  {&sdk.TextContent{Text: "no requests"}},
	} {
		suiteTool(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	suiteTool(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("this tool intentionally returns an error for testing")
	})
	suiteTool(s, "test_tool_with_progress", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := r.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return suiteText("%v", token), nil
	})
	suiteTool(s, "test_missing_capability", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
			return suiteText("sampling is there"), nil
		}
		needed := sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "sampling is needed", Data: json.RawMessage(mustJSON(needed))}
	})
	suiteSchemas(s)
	suiteLogs(s)
	suiteInputs(s)
	suiteRequests(s)
	suiteResources(s)
	suitePrompts(s)
}

var (
	suitePNG, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	suiteWAV, _ = base64.StdEncoding.DecodeString("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func suiteTool(s *sdk.Server, name string, call func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "For the conformance suite"}, func(ctx context.Context, r *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
		result, err := call(ctx, r)
		return result, nil, err
	})
}

func suiteText(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func embedded(uri string) sdk.Content {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
}

// suiteSchemas adds tools whose schemas must be listed as they are.
func suiteSchemas(s *sdk.Server) {
	for name, schema := range map[string]string{
		"json_schema_2020_12_tool": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
			"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
			"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
				"phone":{"type":"string"},"email":{"type":"string"}},
			"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
			"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
			"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`,
		"test_x_mcp_header": `{"type":"object","properties":{
			"region":{"type":"string","description":"mirrored","x-mcp-header":"Region"},"level":{"type":"integer","description":"not mirrored"}}}`,
	} {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "For the conformance suite", InputSchema: json.RawMessage(schema)},
			func(_ context.Context, _ *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, any, error) {
				return suiteText("called with %v", in), nil, nil
			})
	}
}

// suiteLogs adds tools that log. Loggers are deprecated, and older clients have them.
func suiteLogs(s *sdk.Server) {
	for name, lines := range map[string]int{"test_tool_with_logging": 3, "test_logging_tool": 1} {
		suiteTool(s, name, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			for i := range lines {
				if err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: fmt.Sprint("line ", i)}); err != nil {
					return nil, err
				}
			}
			return suiteText("logged"), nil
		})
	}
}

// suiteRequests adds tools that ask the client while they run, as the older protocol has it.
func suiteRequests(s *sdk.Server) {
	suiteTool(s, "test_sampling", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		got, err := r.Session.CreateMessage(ctx, samples("Test prompt for sampling"))
		if err != nil {
			return nil, err
		}
		text, _ := got.Content.(*sdk.TextContent)
		return suiteText("LLM response: %v", text), nil
	})
	for name, properties := range map[string]string{
		"test_elicitation": `{"username":{"type":"string"},"email":{"type":"string"}}`,
		"test_elicitation_sep1034_defaults": `{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
			"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
			"verified":{"type":"boolean","default":true}}`,
		"test_elicitation_sep1330_enums": `{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["One","Two","Three"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]}}}`,
	} {
		suiteTool(s, name, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Tell me", RequestedSchema: json.RawMessage(`{"type":"object","properties":` + properties + `}`)})
			if err != nil {
				return nil, err
			}
			return suiteText("Elicitation completed: action=%s, content=%v", got.Action, got.Content), nil
		})
	}
}

// suiteInputs adds tools that ask the client for something first.
func suiteInputs(s *sdk.Server) {
	suiteAsks(s, "test_input_required_result_elicitation", "", func(in sdk.InputResponseMap) string {
		if name := accepted(in, "user_name", "name"); name != "" {
			return "Hello, " + name + "!"
		}
		return ""
	}, sdk.InputRequestMap{"user_name": elicits("name", "string")})
	suiteAsks(s, "test_input_required_result_sampling", "", func(in sdk.InputResponseMap) string { return sampled(in, "capital_question") },
		sdk.InputRequestMap{"capital_question": samples("What is the capital of France?")})
	suiteAsks(s, "test_input_required_result_list_roots", "", func(in sdk.InputResponseMap) string { return roots(in, "client_roots") },
		sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
	suiteAsks(s, "test_input_required_result_multiple_inputs", "multiple", func(in sdk.InputResponseMap) string {
		name, greeting, where := accepted(in, "user_name", "name"), sampled(in, "greeting"), roots(in, "client_roots")
		if name == "" || greeting == "" || where == "" {
			return ""
		}
		return greeting + " " + name + " " + where
	}, sdk.InputRequestMap{"user_name": elicits("name", "string"), "greeting": samples("Generate a greeting"), "client_roots": &sdk.ListRootsParams{}})
	for _, name := range []string{"test_input_required_result_request_state", "test_input_required_result_tampered_state"} {
		suiteAsks(s, name, "state", func(in sdk.InputResponseMap) string {
			if accepted(in, "confirm", "ok") == "" {
				return ""
			}
			return "state-ok"
		}, sdk.InputRequestMap{"confirm": elicits("ok", "boolean")})
	}
	suiteTool(s, "test_input_required_result_multi_round", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		name, again := strings.CutPrefix(r.Params.RequestState, "2:")
		switch {
		case again:
			return suiteText("%s likes %s", name, accepted(r.Params.InputResponses, "step2", "color")), nil
		case r.Params.RequestState == "1":
			return &sdk.CallToolResult{
				InputRequests: sdk.InputRequestMap{"step2": elicits("color", "string")},
				RequestState:  "2:" + accepted(r.Params.InputResponses, "step1", "name"),
			}, nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"step1": elicits("name", "string")}, RequestState: "1"}, nil
	})
	suiteTool(s, "test_input_required_result_capabilities", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		c, asks := r.ClientCapabilities(), sdk.InputRequestMap{}
		if c != nil && c.Elicitation != nil {
			asks["user_name"] = elicits("name", "string")
		}
		if c != nil && c.Sampling != nil {
			asks["greeting"] = samples("Generate a greeting")
		}
		if len(r.Params.InputResponses) > 0 || len(asks) == 0 {
			return suiteText("done"), nil
		}
		return &sdk.CallToolResult{InputRequests: asks}, nil
	})
}

// suiteAsks adds a tool that asks until there is an answer. A state must come back as it was.
func suiteAsks(s *sdk.Server, name, state string, answer func(sdk.InputResponseMap) string, asks sdk.InputRequestMap) {
	suiteTool(s, name, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if got := r.Params.RequestState; got != "" && got != state {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "that state is not ours"}
		}
		if text := answer(r.Params.InputResponses); text != "" {
			return suiteText("%s", text), nil
		}
		return &sdk.CallToolResult{InputRequests: asks, RequestState: state}, nil
	})
}

func elicits(field, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: "Which " + field + "?", RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{field: {Type: kind}}, Required: []string{field},
	}}
}

func samples(prompt string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: prompt}}}, MaxTokens: 100}
}

func accepted(in sdk.InputResponseMap, key, field string) string {
	got, ok := in[key].(*sdk.ElicitResult)
	if !ok || got.Action != "accept" || got.Content[field] == nil {
		return ""
	}
	return fmt.Sprint(got.Content[field])
}

func sampled(in sdk.InputResponseMap, key string) string {
	got, ok := in[key].(*sdk.CreateMessageWithToolsResult)
	if !ok || len(got.Content) == 0 {
		return ""
	}
	text, _ := got.Content[0].(*sdk.TextContent)
	return "heard: " + text.Text
}

func roots(in sdk.InputResponseMap, key string) string {
	got, ok := in[key].(*sdk.ListRootsResult)
	if !ok {
		return ""
	}
	text := fmt.Sprint(len(got.Roots), " roots")
	for _, r := range got.Roots {
		text += " " + r.URI
	}
	return text
}

func suiteResources(s *sdk.Server) {
	read := func(c sdk.ResourceContents) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			c.URI = r.Params.URI
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
		}
	}
	s.AddResource(&sdk.Resource{URI: "test://static-text", Name: "static-text", Description: "Text", MIMEType: "text/plain"},
		read(sdk.ResourceContents{MIMEType: "text/plain", Text: "This is the content of the static text resource."}))
	s.AddResource(&sdk.Resource{URI: "test://static-binary", Name: "static-binary", Description: "An image", MIMEType: "image/png"},
		read(sdk.ResourceContents{MIMEType: "image/png", Blob: suitePNG}))
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "A template", MIMEType: "application/json"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
				URI: r.Params.URI, MIMEType: "application/json", Text: mustJSON(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id}),
			}}}, nil
		})
}

func suitePrompts(s *sdk.Server) {
	say := func(content ...sdk.Content) *sdk.GetPromptResult {
		r := &sdk.GetPromptResult{Description: "For the conformance suite"}
		for _, c := range content {
			r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return r
	}
	text := func(format string, args ...any) sdk.Content {
		return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
	}
	add := func(name string, get func(*sdk.GetPromptParams) *sdk.GetPromptResult, arguments ...string) {
		p := &sdk.Prompt{Name: name, Title: name, Description: "For the conformance suite"}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return get(r.Params), nil
		})
	}
	add("test_simple_prompt", func(*sdk.GetPromptParams) *sdk.GetPromptResult {
		return say(text("This is a simple prompt for testing."))
	})
	add("test_prompt_with_arguments", func(p *sdk.GetPromptParams) *sdk.GetPromptResult {
		return say(text("Prompt with arguments: arg1='%s', arg2='%s'", p.Arguments["arg1"], p.Arguments["arg2"]))
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(p *sdk.GetPromptParams) *sdk.GetPromptResult {
		return say(embedded(p.Arguments["resourceUri"]), text("Please process the embedded resource above."))
	}, "resourceUri")
	add("test_prompt_with_image", func(*sdk.GetPromptParams) *sdk.GetPromptResult {
		return say(&sdk.ImageContent{Data: suitePNG, MIMEType: "image/png"}, text("Please analyze the image above."))
	})
	add("test_input_required_result_prompt", func(p *sdk.GetPromptParams) *sdk.GetPromptResult {
		if got := accepted(p.InputResponses, "user_context", "context"); got != "" {
			return say(text("Context: %s", got))
		}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": elicits("context", "string")}}
	})
}
