package provider_test

import (
	"fmt"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/openai"
)

// A conversation with one provider goes on with another.
func Example() {
	body, err := openai.DecodeChat([]byte(`{"model":"gpt-5","messages":[
		{"role":"system","content":"be brief"},
		{"role":"user","content":"weather?"},
		{"role":"assistant","content":null,"reasoning_content":"a tool","tool_calls":[
			{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"sunny"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := anthropic.Encode(body.Entries)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(messages.Request(nil)))
	for _, note := range messages.Notes {
		fmt.Println(note)
	}
	// Output:
	// {"system":"be brief","messages":[{"role":"user","content":"weather?"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"weather","input":{"city":"Paris"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"sunny"}]}]}
	// thinking of another provider is left out
}
