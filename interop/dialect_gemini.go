package main

import "encoding/json"

func geminiFacts(body []byte) ([]fact, error) {
	var r struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text         string
				Thought      bool
				InlineData   json.RawMessage
				FunctionCall *struct {
					ID, Name string
					Args     json.RawMessage
				}
				FunctionResponse *struct {
					ID, Name string
					Response json.RawMessage
					Parts    []struct{ InlineData json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	var facts []fact
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				facts = append(facts, fact{Kind: factCall, Role: c.Role, ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Args: canonical(p.FunctionCall.Args)})
			case p.FunctionResponse != nil:
				facts = append(facts, fact{Kind: factResult, Role: c.Role, ID: p.FunctionResponse.ID, Name: p.FunctionResponse.Name, Text: geminiOutput(p.FunctionResponse.Response)})
				for range p.FunctionResponse.Parts {
					facts = append(facts, fact{Kind: factImage, Role: c.Role})
				}
			case p.InlineData != nil:
				facts = append(facts, fact{Kind: factImage, Role: c.Role})
			case p.Thought:
				facts = append(facts, fact{Kind: factThinking, Role: c.Role, Text: p.Text})
			default:
				facts = append(facts, fact{Kind: factText, Role: c.Role, Text: p.Text})
			}
		}
	}
	return facts, nil
}

// geminiOutput is the text of a function's response: an object with one member, whose
// name depends on how it went.
func geminiOutput(response json.RawMessage) string {
	var named map[string]any
	_ = json.Unmarshal(response, &named)
	for _, name := range []string{"output", "error", "result", "content"} {
		if text, ok := named[name].(string); ok {
			return text
		}
	}
	return string(response)
}

func geminiTools(body []byte) []string {
	var r struct {
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	_ = json.Unmarshal(body, &r)
	var names []string
	for _, t := range r.Tools {
		for _, f := range t.FunctionDeclarations {
			names = append(names, f.Name)
		}
	}
	return names
}

func writeGemini(a *answer, r *reply) {
	parts := []object{{"text": r.text}}
	if r.call != nil {
		parts = append(parts, object{"functionCall": object{"name": r.call.Name, "args": r.call.Args}})
	}
	response := object{
		"candidates": []object{{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{
			"promptTokenCount": 23, "candidatesTokenCount": 29, "totalTokenCount": 55,
			"cachedContentTokenCount": 5, "thoughtsTokenCount": 3,
		},
		"modelVersion": modelName,
	}
	if !r.stream {
		a.object(response)
		return
	}
	a.events()
	a.event("", response)
}
