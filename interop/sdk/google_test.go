package sdk_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

var googleSDK = official{
	dialect: "google", decode: google.Decode,
	read: func(body []byte) (*answer, error) {
		var r genai.GenerateContentResponse
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err
		}
		return googleAnswer([]*genai.GenerateContentResponse{&r}), nil
	},
	open: func(s *providertest.Server, request []byte) (chat, error) {
		c, err := newGoogleChat(s)
		if err != nil {
			return nil, err
		}
		// The members of generationConfig stand in the SDK's config itself.
		var body struct {
			Contents         []*genai.Content `json:"contents"`
			GenerationConfig json.RawMessage  `json:"generationConfig"`
		}
		if err := json.Unmarshal(request, &body); err != nil {
			return nil, err
		}
		c.contents = body.Contents
		if body.GenerationConfig != nil {
			if err := json.Unmarshal(body.GenerationConfig, c.config); err != nil {
				return nil, err
			}
		}
		return c, json.Unmarshal(request, c.config)
	},
	start: func(s *providertest.Server, prompt string) (chat, error) {
		c, err := newGoogleChat(s)
		if err != nil {
			return nil, err
		}
		c.config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: "Be brief."}}}
		c.config.Tools = []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "read", Description: "Reads a file.", ParametersJsonSchema: schemaOfRead(),
		}}}}
		c.say(prompt)
		return c, nil
	},
	failed: func(err error) (int, string) {
		var e genai.APIError
		if !errors.As(err, &e) {
			return 0, ""
		}
		return e.Code, e.Status + " " + e.Message
	},
	allowed: []difference{
		{"no arguments, where there is nothing in them", func(r map[string]any) bool {
			empty := false
			for _, call := range objects(r, "contents", "parts", "functionCall") {
				if args, ok := call["args"].(map[string]any); ok && len(args) == 0 {
					delete(call, "args")
					empty = true
				}
			}
			return empty
		}},
		{"an empty generationConfig", func(r map[string]any) bool {
			if r["generationConfig"] != nil {
				return false
			}
			r["generationConfig"] = map[string]any{}
			return true
		}},
		{"a system prompt with the role of the user", func(r map[string]any) bool {
			prompt, ok := r["systemInstruction"].(map[string]any)
			if ok {
				prompt["role"] = "user"
			}
			return ok
		}},
		{"large numbers are rounded", func(r map[string]any) bool { return round(r, "contents", "parts", "functionCall", "args") }},
	},
	example: `{"responseId":"mAitaLmkHPPlz7IPvtfUqQ4","modelVersion":"gemini-2.5-flash",
		"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[
			{"text":"The weather is asked for.","thought":true},
			{"text":"Let me look — moment…"},
			{"functionCall":{"id":"fc1","name":"get_weather","args":{"location":"Zürich","days":[1,2.5,null]}},"thoughtSignature":"CiQB0e2Kb3cQ"},
			{"functionCall":{"id":"fc2","name":"now","args":{}}}]}}],
		"usageMetadata":{"promptTokenCount":2019,"cachedContentTokenCount":1920,"candidatesTokenCount":46,"thoughtsTokenCount":64,"totalTokenCount":2129,
			"promptTokensDetails":[{"modality":"TEXT","tokenCount":2019}]}}`,
}

type googleChat struct {
	client   *genai.Client
	contents []*genai.Content
	config   *genai.GenerateContentConfig
}

func newGoogleChat(s *providertest.Server) (*googleChat, error) {
	once := int32(1)
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: s.Client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: s.URL, RetryOptions: &genai.HTTPRetryOptions{Attempts: &once}},
	})
	return &googleChat{client: client, config: &genai.GenerateContentConfig{}}, err
}

func (c *googleChat) ask() (*answer, error) {
	var chunks []*genai.GenerateContentResponse
	for chunk, err := range c.client.Models.GenerateContentStream(context.Background(), model, c.contents, c.config) {
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, chunk)
		// What the provider says in several parts is sent back as it came.
		for _, part := range chunk.Candidates[0].Content.Parts {
			c.add(genai.RoleModel, part)
		}
	}
	return googleAnswer(chunks), nil
}

func (c *googleChat) add(role string, part *genai.Part) {
	if n := len(c.contents); n > 0 && c.contents[n-1].Role == role {
		c.contents[n-1].Parts = append(c.contents[n-1].Parts, part)
		return
	}
	c.contents = append(c.contents, &genai.Content{Role: role, Parts: []*genai.Part{part}})
}

func (c *googleChat) say(text string) { c.add(genai.RoleUser, genai.NewPartFromText(text)) }

func (c *googleChat) result(results ...result) {
	for _, r := range results {
		member := "output"
		if r.bad {
			member = "error"
		}
		part := genai.NewPartFromFunctionResponse(r.call.Name, map[string]any{member: r.text})
		part.FunctionResponse.ID = r.call.ID
		c.add(genai.RoleUser, part)
	}
}

func googleAnswer(chunks []*genai.GenerateContentResponse) *answer {
	a := &answer{}
	for _, chunk := range chunks {
		a.ID, a.Model = chunk.ResponseID, chunk.ModelVersion
		if u := chunk.UsageMetadata; u != nil {
			a.Usage = session.Usage{
				Input:     int(u.PromptTokenCount - u.CachedContentTokenCount + u.ToolUsePromptTokenCount),
				CacheRead: int(u.CachedContentTokenCount),
				Output:    int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount),
			}
		}
		candidate := chunk.Candidates[0]
		for _, part := range candidate.Content.Parts {
			switch {
			case part.FunctionCall != nil:
				args, _ := json.Marshal(part.FunctionCall.Args) // it was JSON before
				if len(part.FunctionCall.Args) == 0 {
					args = []byte("{}")
				}
				a.Calls = append(a.Calls, call{part.FunctionCall.ID, part.FunctionCall.Name, canonical(args)})
			case part.Thought:
				a.Thinking += part.Text
				a.Signature += base64.StdEncoding.EncodeToString(part.ThoughtSignature)
			default:
				a.Text += part.Text
			}
		}
		if candidate.FinishReason != "" {
			a.Stop = map[genai.FinishReason]string{
				genai.FinishReasonStop: provider.StopEndTurn, genai.FinishReasonMaxTokens: provider.StopMaxTokens,
				genai.FinishReasonSafety: provider.StopRefusal,
			}[candidate.FinishReason]
		}
	}
	return a
}
