package main

import (
	"encoding/json"
	"io"
	"strings"
)

// openAIParts reads content, which is a text or a list of parts.
func openAIParts(role string, content json.RawMessage) []fact {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []fact{{Kind: factText, Role: role, Text: text}}
	}
	var parts []struct{ Type, Text string }
	_ = json.Unmarshal(content, &parts) // null, beside a call
	var facts []fact
	for _, p := range parts {
		switch {
		case strings.Contains(p.Type, "image"):
			facts = append(facts, fact{Kind: factImage, Role: role})
		case strings.HasSuffix(p.Type, "text"):
			facts = append(facts, fact{Kind: factText, Role: role, Text: p.Text})
		}
	}
	return facts
}

// openAIResult is the result of a call: its text, then its images.
func openAIResult(id string, content json.RawMessage) []fact {
	result := fact{Kind: factResult, Role: "tool", ID: id}
	var images []fact
	for _, part := range openAIParts("tool", content) {
		if part.Kind == factText {
			result.Text += part.Text
		} else {
			images = append(images, part)
		}
	}
	return append([]fact{result}, images...)
}

func responsesFacts(body []byte) ([]fact, error) {
	var r struct{ Input json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	var items []struct {
		Type, Role, Name, Arguments string
		Namespace                   string
		Input                       string
		CallID                      string `json:"call_id"`
		Content, Output, Summary    json.RawMessage
	}
	if json.Unmarshal(r.Input, &items) != nil {
		return openAIParts("user", r.Input), nil
	}
	var facts []fact
	for _, item := range items {
		switch item.Type {
		case "message", "":
			facts = append(facts, openAIParts(item.Role, item.Content)...)
		case "function_call":
			facts = append(facts, fact{Kind: factCall, Role: "assistant", ID: item.CallID, Name: inNamespace(item.Namespace, item.Name), Args: canonical([]byte(item.Arguments))})
		case "custom_tool_call":
			facts = append(facts, fact{Kind: factCall, Role: "assistant", ID: item.CallID, Name: item.Name, Args: canonical([]byte(item.Input))})
		case "function_call_output", "custom_tool_call_output":
			facts = append(facts, openAIResult(item.CallID, item.Output)...)
		case "reasoning":
			facts = append(facts, fact{Kind: factThinking, Role: "assistant", Text: string(item.Summary)})
		}
	}
	return facts, nil
}

func chatFacts(body []byte) ([]fact, error) {
	var r struct {
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	var facts []fact
	for _, m := range r.Messages {
		switch m.Role {
		case "system", "developer":
			continue
		case "tool":
			facts = append(facts, openAIResult(m.ToolCallID, m.Content)...)
			continue
		}
		facts = append(facts, openAIParts(m.Role, m.Content)...)
		for _, c := range m.ToolCalls {
			facts = append(facts, fact{Kind: factCall, Role: m.Role, ID: c.ID, Name: c.Function.Name, Args: canonical([]byte(c.Function.Arguments))})
		}
	}
	return facts, nil
}

// openAITools reads the tools of both of OpenAI's dialects.
func openAITools(body []byte) []string {
	var r struct {
		Tools []struct {
			Name     string
			Function struct{ Name string }
			Tools    []struct{ Name string } // of a namespace
		}
	}
	_ = json.Unmarshal(body, &r)
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name+t.Function.Name) // one of them is empty
		for _, below := range t.Tools {
			names = append(names, inNamespace(t.Name, below.Name))
		}
	}
	return names
}

// inNamespace is the name of a tool here, if it is one of several with a name of their own.
func inNamespace(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func writeResponses(a *answer, r *reply) {
	items := []object{{
		"type": "message", "id": "msg_" + r.callID(), "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": r.text, "annotations": []any{}}},
	}}
	if r.call != nil {
		call := object{
			"type": "function_call", "id": "fc_" + r.callID(), "call_id": r.callID(),
			"name": r.call.Name, "arguments": r.args(), "status": "completed",
		}
		if namespace, name, ok := strings.Cut(r.call.Name, "/"); ok {
			call["namespace"], call["name"] = namespace, name
		}
		items = append(items, call)
	}
	response := object{
		"id": "resp_" + r.callID(), "object": "response", "status": "completed", "model": r.model, "output": items,
		"usage": object{
			"input_tokens": 23, "input_tokens_details": object{"cached_tokens": 5},
			"output_tokens": 29, "output_tokens_details": object{"reasoning_tokens": 3}, "total_tokens": 52,
		},
	}
	if !r.stream {
		a.object(response)
		return
	}
	n := 0
	send := func(name string, e object) {
		e["type"], e["sequence_number"] = name, n
		n++
		a.event(name, e)
	}
	a.events()
	send("response.created", object{"response": object{"id": response["id"], "object": "response", "status": "in_progress", "model": r.model, "output": []any{}}})
	for i, item := range items {
		send("response.output_item.added", object{"output_index": i, "item": item})
		if item["type"] == "message" {
			send("response.output_text.delta", object{"output_index": i, "item_id": item["id"], "content_index": 0, "delta": r.text})
		}
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	send("response.completed", object{"response": response})
}

func writeChat(a *answer, r *reply) {
	message, finish := object{"role": "assistant", "content": r.text}, "stop"
	if r.call != nil {
		message["tool_calls"] = []object{{
			"index": 0, "id": r.callID(), "type": "function",
			"function": object{"name": r.call.Name, "arguments": r.args()},
		}}
		finish = "tool_calls"
	}
	usage := object{
		"prompt_tokens": 23, "completion_tokens": 29, "total_tokens": 52,
		"prompt_tokens_details": object{"cached_tokens": 5}, "completion_tokens_details": object{"reasoning_tokens": 3},
	}
	whole := func(kind string, choices []object) object {
		return object{"id": "chatcmpl-" + r.callID(), "object": kind, "created": 1767225600, "model": r.model, "choices": choices}
	}
	if !r.stream {
		o := whole("chat.completion", []object{{"index": 0, "message": message, "finish_reason": finish}})
		o["usage"] = usage
		a.object(o)
		return
	}
	const chunk = "chat.completion.chunk"
	a.events()
	a.event("", whole(chunk, []object{{"index": 0, "delta": message, "finish_reason": nil}}))
	a.event("", whole(chunk, []object{{"index": 0, "delta": object{}, "finish_reason": finish}}))
	last := whole(chunk, []object{})
	last["usage"] = usage
	a.event("", last)
	io.WriteString(a.w, "data: [DONE]\n\n") //nolint:errcheck // see object
}
