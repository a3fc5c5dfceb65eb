package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// TestCallsAsServersWriteThem: servers that speak Chat Completions write calls in their own ways.
// Each runs with its arguments, no answer is lost, and what is sent back is what the API wants.
func TestCallsAsServersWriteThem(t *testing.T) {
	t.Parallel()
	piece := func(delta, finish string) string {
		return `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	call := func(members string) string { return `{"tool_calls":[{` + members + `}]}` }
	last := `"tool_calls"`
	for name, c := range map[string]struct {
		pieces []string
		ran    string // what ran: names and arguments
		tried  int    // calls that got an error as their result
	}{
		"no arguments: null":    {[]string{piece(call(`"index":0,"id":"a","type":"function","function":{"name":"effect","arguments":null}`), last)}, `effect{}`, 0},
		"no arguments: missing": {[]string{piece(call(`"index":0,"id":"a","type":"function","function":{"name":"effect"}`), last)}, `effect{}`, 0},
		"no arguments: empty":   {[]string{piece(call(`"index":0,"id":"a","type":"function","function":{"name":"effect","arguments":""}`), last)}, `effect{}`, 0},
		"one index for two": {[]string{
			piece(call(`"index":0,"id":"a","function":{"name":"effect","arguments":"{\"a\":"}`), "null"), piece(call(`"index":0,"function":{"arguments":"1}"}`), "null"),
			piece(call(`"index":0,"id":"b","function":{"name":"effect","arguments":"{\"b\":1}"}`), last),
		}, `effect{"a":1} effect{"b":1}`, 0},
		"no index": {[]string{
			piece(call(`"id":"a","function":{"name":"effect","arguments":"{\"a\":"}`), "null"), piece(call(`"function":{"arguments":"1}"}`), "null"),
			piece(call(`"id":"b","function":{"name":"effect","arguments":"{}"}`), last),
		}, `effect{"a":1} effect{}`, 0},
		"an id for each piece": {[]string{
			piece(call(`"index":0,"id":"a","function":{"name":"effect","arguments":"{\"a\":"}`), "null"), piece(call(`"index":0,"id":"b","function":{"arguments":"1}"}`), last),
		}, `effect{"a":1}`, 0},
		"a name in pieces": {[]string{
			piece(call(`"index":0,"id":"a","function":{"name":"eff","arguments":""}`), "null"), piece(call(`"index":0,"function":{"name":"ect","arguments":"{}"}`), last),
		}, `effect{}`, 0},
		"a name again": {[]string{
			piece(call(`"index":0,"id":"a","function":{"name":"effect","arguments":"{"}`), "null"), piece(call(`"index":0,"id":"a","function":{"name":"effect","arguments":"}"}`), last),
		}, `effect{}`, 0},
		"the old form": {[]string{
			piece(`{"role":"assistant","content":null,"function_call":{"name":"effect","arguments":""}}`, "null"),
			piece(`{"function_call":{"arguments":"{\"a\":"}}`, "null"), piece(`{"function_call":{"arguments":"1}"}}`, "null"), piece(`{}`, `"function_call"`),
		}, `effect{"a":1}`, 0},
		"the old form, at once":          {[]string{piece(`{"function_call":{"name":"effect","arguments":"{\"a\":1}"}}`, `"function_call"`)}, `effect{"a":1}`, 0},
		"the old form, ended as usual":   {[]string{piece(`{"function_call":{"name":"effect","arguments":"{}"}}`, `"stop"`)}, `effect{}`, 0},
		"the old form, null":             {[]string{piece(`{"function_call":{"name":"effect","arguments":null}}`, `"function_call"`)}, `effect{}`, 0},
		"the old form, no arguments":     {[]string{piece(`{"function_call":{"name":"effect"}}`, `"function_call"`)}, `effect{}`, 0},
		"the old form, an object":        {[]string{piece(`{"function_call":{"name":"effect","arguments":{"a":1}}}`, `"function_call"`)}, `effect{"a":1}`, 0},
		"the old form, without a name":   {[]string{piece(`{"function_call":{"arguments":"{}"}}`, `"function_call"`)}, ``, 1},
		"the old form, null beside text": {[]string{piece(`{"content":"hm","function_call":null}`, "null"), piece(call(`"index":0,"id":"a","function":{"name":"effect","arguments":"{}"}`), last)}, `effect{}`, 0},
		"no id":                          {[]string{piece(call(`"index":0,"function":{"name":"effect","arguments":"{"}`), "null"), piece(call(`"index":0,"function":{"arguments":"}"}`), last)}, `effect{}`, 0},
		"no ids, and one that has one": {[]string{
			piece(call(`"index":0,"function":{"name":"effect","arguments":"{}"}`), "null"), piece(call(`"index":1,"id":"own","function":{"name":"effect","arguments":"{\"b\":1}"}`), "null"),
			piece(call(`"index":2,"function":{"name":"effect","arguments":"{\"c\":1}"}`), last),
		}, `effect{} effect{"b":1} effect{"c":1}`, 0},
		"no call at all": {[]string{piece(call(`"index":0,"id":"a","type":"function","function":null`), last)}, ``, 1},
		"no name":        {[]string{piece(call(`"index":0,"id":"a","type":"function","function":{"arguments":"{}"}`), last)}, ``, 1},
		"another type":   {[]string{piece(call(`"index":0,"id":"a","type":"hologram","hologram":{}`), last)}, ``, 1},
		"indexes that jump": {[]string{
			piece(call(`"index":7,"id":"a","function":{"name":"effect","arguments":"{}"}`), "null"), piece(call(`"index":2,"id":"b","function":{"name":"effect","arguments":"{\"b\":2}"}`), last),
		}, `effect{} effect{"b":2}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults []provider.Fault
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				faults = append(faults, openai.CheckChat(body)...)
				w.Header().Set("Content-Type", "text/event-stream")
				pieces := []string{piece(`{"role":"assistant","content":"done"}`, `"stop"`)}
				if requests++; requests == 1 {
					pieces = c.pieces
				}
				for _, data := range append(pieces, "[DONE]") {
					fmt.Fprintf(w, "data: %s\n\n", data)
				}
			}))
			defer server.Close()
			m, err := client.New(client.Options{Provider: "openai-chat", Model: "m", BaseURL: server.URL, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
			if err != nil {
				t.Fatal(err)
			}
			var ran []string
			effect := agent.Tool{Tool: provider.Tool{Name: "effect"}, Alone: true, Run: func(_ context.Context, call agent.Call) (agent.Result, error) {
				ran = append(ran, call.Name+string(call.Input))
				return agent.Result{Text: "ok"}, nil
			}}
			a := start(t, agent.Options{Model: m, Tools: []agent.Tool{effect}})
			news := a.Subscribe(1000)
			if out := send(t, a, "go"); out.Stop != provider.StopEndTurn || requests != 2 {
				t.Errorf("%+v after %d requests", out, requests)
			}
			send(t, a, "again")
			if got := strings.Join(ran, " "); got != c.ran {
				t.Errorf("%s ran, want %s", got, c.ran)
			}
			failed := 0
			for e := range news.Events(t.Context()) {
				if e.Type == agent.MessageEnd && e.Entry.Message != nil {
					failed += len(slices.DeleteFunc(slices.Clone(e.Entry.Message.Content), func(b session.Content) bool { return b.ToolResult == nil || !b.ToolResult.IsError }))
				}
				if e.Type == agent.TurnEnd {
					break
				}
			}
			if failed != c.tried {
				t.Errorf("%d calls failed, want %d", failed, c.tried)
			}
			begun, ended := make(map[int]string), ""
			stream := openai.NewChatStream()
			for _, data := range append(c.pieces, "[DONE]") {
				events, err := stream.Add([]byte(data))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					switch e.Type {
					case provider.EventCallStart:
						begun[e.Block] = e.Call.ID
					case provider.EventCallEnd:
						if ended += " " + e.Call.Name; begun[e.Block] != e.Call.ID {
							t.Errorf("block %d began as %q and ended as %q", e.Block, begun[e.Block], e.Call.ID)
						}
					}
				}
			}
			if c.tried == 0 && strings.Count(ended, " effect") != len(ran) {
				t.Errorf("the stream tells of the calls%s", ended)
			}
			if len(faults) > 0 {
				t.Errorf("it is refused: %v", faults)
			}
			check(t, a.Session())
		})
	}
}
