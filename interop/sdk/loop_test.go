package sdk_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// steps are the answers of a model that calls tools twice, two at a time at first.
func steps(dialect string) []session.MessageEntry {
	first := []session.Content{
		thought("Two files.", "c2lnbmF0dXJl"), session.Text("I look — at both."),
		session.ToolUseJSON("call_a", "read", []byte(`{"path":"a.txt"}`)), session.ToolUseJSON("call_b", "read", []byte(`{"path":"ö.txt","n":[1,null]}`)),
	}
	if dialect == "openai-chat" {
		first = first[1:] // the SDK has no place for it
	}
	return []session.MessageEntry{
		said(first...),
		said(session.ToolUseJSON("call_c", "read", []byte(`{"path":"c.txt"}`))),
		said(session.Text("They are alike.")),
		said(session.Text("You are welcome.")),
	}
}

// run is a tool that works, but for one file.
func run(c call) result {
	if c.ID == "call_b" {
		return result{c, "no such file", true}
	}
	return result{c, "contents of " + c.Input, false}
}

// TestLoopOfTheSDK: a conversation that the SDK had, with its own types and a loop of
// calls, is read from its last request and continued by our client.
func TestLoopOfTheSDK(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		s := talk(t, steps(o.dialect)...)
		theirs, err := o.start(s, "compare them")
		if err != nil {
			t.Fatal(err)
		}
		for {
			a, err := theirs.ask()
			if err != nil {
				requests := s.Requests()
				_, words := o.failed(err)
				t.Fatalf("%v %s\n%s", err, words, requests[len(requests)-1].Body)
			}
			if len(a.Calls) == 0 {
				break
			}
			var all []result
			for _, c := range a.Calls {
				all = append(all, run(c))
			}
			theirs.result(all...)
		}
		last := s.Requests()[2]
		body, err := o.decode(last.Body)
		if err != nil {
			t.Fatal(err)
		}
		request := &provider.Request{Entries: body.Entries, NoCache: true}
		for _, f := range body.Fields {
			if f.Name == "thinking" { // or what was thought is not sent
				request.Fields = append(request.Fields, f)
			}
		}
		if _, err := provider.Respond(t.Context(), connect(t, s, o.dialect), request, nil); err != nil {
			t.Fatalf("our client goes on: %v", err)
		}
		sameConversation(t, last, s.Requests()[3])
	})
}

// TestLoopOfOurs: a conversation that our client had is read by the SDK from our last
// request, and continued.
func TestLoopOfOurs(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		s := talk(t, steps(o.dialect)...)
		c := connect(t, s, o.dialect)
		request := conversations["tools"](t, o)
		request.Entries = []session.Entry{system("Be brief."), user("compare them")}
		request.NoCache = true
		for {
			response, err := provider.Respond(t.Context(), c, request, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(response.Calls()) == 0 {
				break
			}
			request.Entries = append(request.Entries, session.Entry{ID: "a", Type: session.TypeMessage, Message: response.Message})
			for _, use := range response.Calls() {
				input, err := use.InputJSON()
				if err != nil {
					t.Fatal(err)
				}
				r := run(call{use.ID, use.Name, canonical(input)})
				request.Entries = append(request.Entries, results(session.ToolResult(use.ID, r.text, r.bad)))
			}
		}
		last := s.Requests()[2]
		theirs, err := o.open(s, last.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.ask(); err != nil {
			t.Fatalf("the SDK asks the same: %v", err)
		}
		sameConversation(t, s.Requests()[3], last)
		theirs.say("thanks")
		if a, err := theirs.ask(); err != nil || a.Text == "" {
			t.Fatalf("the SDK goes on: %+v, %v", a, err)
		}
		entries := s.Requests()[4].Entries
		if n := len(s.Requests()[3].Entries); len(entries) != n+2 || entries[n+1].Message.Content[0].Text.Content != "thanks" {
			t.Errorf("%d entries became %d", n, len(entries))
		}
	})
}

// sameConversation fails the test if two requests do not say the same.
func sameConversation(t *testing.T, sdk, our *providertest.Request) {
	t.Helper()
	want, got := told(t, sdk.Entries), told(t, our.Entries)
	if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) || len(want) < 6 {
		t.Errorf("the SDK sent %+v\n%s\nwe sent %+v\n%s", want, sdk.Body, got, our.Body)
	}
}

// told is what a conversation says.
func told(t *testing.T, entries []session.Entry) []string {
	t.Helper()
	var all []string
	for _, e := range entries {
		a := ours(t, e.Message)
		text := fmt.Sprintf("%s: %q %q %q %v", e.Message.Role, a.Thinking, a.Signature, a.Text, a.Calls)
		if e.Message.Role != session.RoleTool {
			all = append(all, text)
		}
		for _, c := range e.Message.Content {
			if r := c.ToolResult; r != nil {
				all = append(all, fmt.Sprintf("result: %s %q %v", r.ToolUseID, r.Content, r.IsError))
			}
		}
	}
	return all
}
