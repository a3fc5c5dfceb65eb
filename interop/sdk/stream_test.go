package sdk_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// TestExample: what the providers document means the same to both.
func TestExample(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		theirs, err := o.read([]byte(o.example))
		if err != nil {
			t.Fatal(err)
		}
		body, err := o.decode([]byte(o.example))
		if err != nil || body.Kind != provider.KindResponse || len(body.Entries) != 1 {
			t.Fatalf("we read %+v, %v", body, err)
		}
		same(t, "the documented response", theirs, ours(t, body.Entries[0].Message))
		if len(theirs.Calls) != 2 || theirs.Text == "" || theirs.Usage.Output == 0 || theirs.Stop == "" {
			t.Errorf("the example does not say enough: %+v", theirs)
		}
	})
}

// TestResponses: whole responses that we write mean to the SDK what they mean to us.
func TestResponses(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		for _, name := range slices.Sorted(maps.Keys(answers)) {
			t.Run(name, func(t *testing.T) {
				m := answers[name]
				m.ResponseID, m.Model = "resp_1", model
				body, _, err := providertest.Response(o.dialect, session.Entry{Type: session.TypeMessage, Message: &m})
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := o.read(body)
				if err != nil {
					t.Fatalf("the SDK cannot read %s: %v", body, err)
				}
				decoded, err := o.decode(body)
				if err != nil {
					t.Fatal(err)
				}
				same(t, string(body), theirs, ours(t, decoded.Entries[0].Message))
			})
		}
	})
}

// TestStreams: the same conversation with the same server, streamed to the SDK and to
// our client, ends in the same message.
func TestStreams(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		for _, name := range slices.Sorted(maps.Keys(answers)) {
			t.Run(name, func(t *testing.T) {
				s := talk(t, answers[name])
				c := connect(t, s, o.dialect)
				request := conversations["tools"](t, o)
				response, err := provider.Respond(t.Context(), c, request, nil)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := o.open(s, s.Requests()[0].Body)
				if err != nil {
					t.Fatal(err)
				}
				got, err := theirs.ask()
				if err != nil {
					t.Fatal(err)
				}
				same(t, "the answer", got, ours(t, response.Message))
				want := answers[name]
				if text := ours(t, &want).Text; got.Text != text {
					t.Errorf("the server said %q, and both heard %q", text, got.Text)
				}
			})
		}
	})
}

// answers are what a model says.
var answers = map[string]session.MessageEntry{
	"a text":   said(session.Text("Hello.")),
	"unicode":  said(session.Text(odd + odd)),
	"two":      said(session.Text("One. "), session.Text("Two.")),
	"thoughts": said(thought("Well — 🌱. Hm.\n\nYes.", "c2lnbmF0dXJl"), session.Text("Yes.")),
	"calls": said(session.Text("I look."), session.ToolUseJSON("call_a", "read", []byte(`{"path":"a.txt","n":[1,2.5,null,{"x":"<ö>"}]}`)),
		session.ToolUseJSON("call_b", "now", []byte(`{}`))),
	"only a call": said(session.ToolUseJSON("call_a", "read", quoteArgs(odd))),
	"thoughts and calls": said(thought("The file tells.", "c2lnbmF0dXJl"), session.Text("I look."),
		session.ToolUseJSON("call_a", "read", []byte(`{"path":"a.txt"}`))),
	"cut off": {Role: session.RoleAssistant, Content: []session.Content{session.Text("Once upon")}, StopReason: provider.StopMaxTokens},
	"refused": {Role: session.RoleAssistant, Content: []session.Content{session.Text("I had")}, StopReason: provider.StopRefusal},
	"counted": {
		Role: session.RoleAssistant, Content: []session.Content{session.Text("Hello.")},
		Usage: &session.Usage{Input: 11, Output: 50, CacheRead: 1000, Reasoning: 20},
	},
}

func said(blocks ...session.Content) session.MessageEntry {
	return session.MessageEntry{Role: session.RoleAssistant, Content: blocks}
}

func thought(text, signature string) session.Content {
	return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: text, Signature: signature}}
}
