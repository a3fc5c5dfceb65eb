package main

import "encoding/json"

// anthropicBlock is a block of Anthropic's Messages, as far as it matters here.
type anthropicBlock struct {
	Type      string
	Text      string
	Thinking  string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string `json:"tool_use_id"`
	Content   json.RawMessage
}

func anthropicFacts(body []byte) ([]fact, error) {
	var r struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	var facts []fact
	for _, m := range r.Messages {
		for _, b := range anthropicBlocks(m.Content) {
			facts = append(facts, b.facts(m.Role)...)
		}
	}
	return facts, nil
}

// anthropicBlocks reads content, which is a text or a list of blocks.
func anthropicBlocks(content json.RawMessage) []anthropicBlock {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}
	}
	var blocks []anthropicBlock
	_ = json.Unmarshal(content, &blocks) // what is neither says nothing
	return blocks
}

func (b *anthropicBlock) facts(role string) []fact {
	switch b.Type {
	case "text":
		return []fact{{Kind: factText, Role: role, Text: b.Text}}
	case "thinking":
		return []fact{{Kind: factThinking, Role: role, Text: b.Thinking}}
	case "image":
		return []fact{{Kind: factImage, Role: role}}
	case "tool_use":
		return []fact{{Kind: factCall, Role: role, ID: b.ID, Name: b.Name, Args: canonical(b.Input)}}
	case "tool_result":
		text, images := "", []fact(nil)
		for _, part := range anthropicBlocks(b.Content) {
			text += part.Text
			if part.Type == "image" {
				images = append(images, fact{Kind: factImage, Role: role})
			}
		}
		return append([]fact{{Kind: factResult, Role: role, ID: b.ToolUseID, Text: text}}, images...)
	}
	return nil
}

func anthropicTools(body []byte) []string {
	var r struct{ Tools []struct{ Name string } }
	_ = json.Unmarshal(body, &r)
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

type object = map[string]any

func writeAnthropic(a *answer, r *reply) {
	blocks := []object{{"type": "text", "text": r.text}}
	stop := "end_turn"
	if r.call != nil {
		blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + r.callID(), "name": r.call.Name, "input": r.call.Args})
		stop = "tool_use"
	}
	usage := object{"input_tokens": 11, "output_tokens": 23, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7}
	message := object{
		"id": "msg_" + r.callID(), "type": "message", "role": "assistant", "model": r.model,
		"content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
	if !r.stream {
		a.object(message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	a.events()
	a.event("message_start", object{"type": "message_start", "message": message})
	for i, b := range blocks {
		delta := object{"type": "text_delta", "text": r.text}
		if b["type"] == "tool_use" {
			b["input"] = object{}
			delta = object{"type": "input_json_delta", "partial_json": r.args()}
		} else {
			b["text"] = ""
		}
		a.event("content_block_start", object{"type": "content_block_start", "index": i, "content_block": b})
		a.event("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta})
		a.event("content_block_stop", object{"type": "content_block_stop", "index": i})
	}
	a.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	a.event("message_stop", object{"type": "message_stop"})
}
