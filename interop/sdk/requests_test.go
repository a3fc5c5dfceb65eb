package sdk_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestRequests: an SDK that reads a request of ours into its own types and sends it
// sends what we would have sent, but for the differences that are allowed, and the
// server has nothing against it.
func TestRequests(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		seen := make(map[string]bool)
		for _, name := range slices.Sorted(maps.Keys(conversations)) {
			t.Run(name, func(t *testing.T) {
				request := conversations[name](t, o)
				s := talk(t)
				encoded, err := connect(t, s, o.dialect).Encode(request)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := o.open(s, encoded.Body)
				if err != nil {
					t.Fatalf("the SDK cannot read %s: %v", encoded.Body, err)
				}
				if _, err := theirs.ask(); err != nil {
					t.Fatalf("%v\nours: %s\nthe SDK's: %s", err, encoded.Body, s.Requests()[0].Body)
				}
				want, got := object(t, encoded.Body), object(t, s.Requests()[0].Body)
				for _, d := range o.allowed {
					seen[d.what] = d.apply(want) || seen[d.what]
				}
				for _, d := range diff("", want, got) {
					t.Error(d)
				}
			})
		}
		for _, d := range o.allowed {
			if !seen[d.what] && !t.Failed() {
				t.Errorf("no conversation needs the difference %q", d.what)
			}
		}
	})
}

// conversations are requests, for the dialect of an SDK.
var conversations = map[string]func(t *testing.T, o *official) *provider.Request{
	"a prompt":        func(*testing.T, *official) *provider.Request { return ask(user("hello")) },
	"a system prompt": func(*testing.T, *official) *provider.Request { return ask(system("Be brief."), user("hello")) },
	"two system prompts": func(*testing.T, *official) *provider.Request {
		return ask(system("Be brief."), system("Be kind."), user("hello"))
	},
	"a system message amid": func(*testing.T, *official) *provider.Request {
		return ask(user("hello"), assistant(session.Text("Hi.")), system("Be brief."), user("why?"))
	},
	"turns": func(*testing.T, *official) *provider.Request {
		return ask(user("one"), assistant(session.Text("1")), user("two"), user("three"), assistant(session.Text("2"), session.Text("3")), user("four"))
	},
	"unicode": func(*testing.T, *official) *provider.Request {
		return ask(system(odd), user(odd), assistant(session.Text(odd), session.ToolUseJSON("c1", "read", quoteArgs(odd))), results(session.ToolResult("c1", odd, false)))
	},
	"white space": func(*testing.T, *official) *provider.Request {
		return ask(user(" padded\n"), assistant(session.Text(""), session.Text("\n\n"), session.Text("x\n")), user(""), user("y"), assistant(), user("z"))
	},
	"images": func(*testing.T, *official) *provider.Request {
		return ask(user("look", session.Image("image/png", pixel), source(session.ContentTypeImage, "url", "image/jpeg", "https://example.com/a.jpg"), session.Text("both")))
	},
	"only an image": func(*testing.T, *official) *provider.Request { return ask(user("", session.Image("image/png", pixel))) },
	"files": func(*testing.T, *official) *provider.Request {
		return ask(user("read them", source(session.ContentTypeFile, "base64", "application/pdf", "JVBERi0xLjQK"),
			source(session.ContentTypeFile, "text", "text/plain", "a plain text"), source(session.ContentTypeAudio, "base64", "audio/wav", "UklGRg==")))
	},
	"parallel calls": func(*testing.T, *official) *provider.Request {
		return ask(user("go"), assistant(session.Text("I look."),
			session.ToolUseJSON("c1", "read", []byte(`{"path":"a.txt","deep":{"list":[1,-2.5,1e-7,true,null,"x",{}],"empty":[]}}`)),
			session.ToolUseJSON("c2", "now", []byte(`{}`)), session.ToolUseJSON("c3", "now", nil)),
			results(session.ToolResult("c1", "1\n2\n", false)), results(session.ToolResult("c2", "no clock", true)), results(session.ToolResult("c3", "", false)))
	},
	"a result with an image": func(*testing.T, *official) *provider.Request {
		shot := session.ToolResult("c1", "a shot", false)
		shot.ToolResult.Parts = []session.Content{session.Text("a shot"), session.Image("image/png", pixel)}
		return ask(user("go"), assistant(session.ToolUseJSON("c1", "shoot", []byte(`{}`))), results(shot))
	},
	"a failed result with an image": func(*testing.T, *official) *provider.Request {
		shot := session.ToolResult("c1", "half a shot", true)
		shot.ToolResult.Parts = []session.Content{session.Text("half a shot"), session.Image("image/png", pixel)}
		return ask(user("go"), assistant(session.ToolUseJSON("c1", "shoot", []byte(`{}`))), results(shot), user("go on"))
	},
	"numbers": func(*testing.T, *official) *provider.Request {
		return ask(user("go"), assistant(session.ToolUseJSON("c1", "read", []byte(`{"small":9007199254740991,"float":0.1,"zero":-0.0,"exp":1.5e300}`))), results(session.ToolResult("c1", "ok", false)))
	},
	"large numbers": func(*testing.T, *official) *provider.Request {
		return ask(user("go"), assistant(session.ToolUseJSON("c1", "read", []byte(`{"n":12345678901234567,"list":[{"m":-98765432109876543210}]}`))), results(session.ToolResult("c1", "ok", false)))
	},
	"a call twice": func(*testing.T, *official) *provider.Request {
		return ask(user("go"), assistant(session.ToolUseJSON("c1", "now", []byte(`{}`))), results(session.ToolResult("c1", "1", false)),
			assistant(session.ToolUseJSON("c1", "now", []byte(`{}`))), results(session.ToolResult("c1", "2", false)), user("and?"))
	},
	"odd names": func(*testing.T, *official) *provider.Request {
		id := strings.Repeat("long", 30)
		return ask(user("go"), assistant(session.ToolUseJSON(id, "mcp.server/tool name", []byte(`{}`))), results(session.ToolResult(id, "1", false)))
	},
	"an answer with everything": func(t *testing.T, o *official) *provider.Request { return ask(exampleTurn(t, o)...) },
	"answers of all providers": func(t *testing.T, _ *official) *provider.Request {
		var all []session.Entry
		for i := range sdks {
			all = append(all, exampleTurn(t, &sdks[i])...)
			all = append(all, assistant(session.Text("Sunny.")))
		}
		return ask(append(all, user("thanks"))...)
	},
	"a redacted thought": func(*testing.T, *official) *provider.Request {
		hidden := thought("", "")
		hidden.Thinking.Redacted = "EmwKAhgBEgy3va3pzix"
		return ask(user("go"), session.Entry{ID: "a", Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleAssistant, Provider: "anthropic", Content: []session.Content{hidden, session.Text("Hi.")},
		}}, user("go on"))
	},
	"settings": func(*testing.T, *official) *provider.Request {
		r := ask(system("Be brief."), user("go"))
		heat := 0.3
		r.Temperature, r.MaxTokens, r.Session = &heat, 1234, "s-1"
		return r
	},
	"no cache": func(*testing.T, *official) *provider.Request {
		r := ask(system("Be brief."), user("go"))
		r.NoCache = true
		return r
	},
	"thinking off":     thinking(provider.ThinkingOff),
	"thinking minimal": thinking(provider.ThinkingMinimal),
	"thinking low":     thinking(provider.ThinkingLow),
	"thinking xhigh":   thinking(provider.ThinkingXHigh),
	"tools": func(*testing.T, *official) *provider.Request {
		r := ask(user("go"))
		r.Tools = []provider.Tool{
			{Name: "now"},
			{Name: "no_description", Schema: []byte(`{"type":"object","properties":{}}`)},
			{Name: "read", Description: "Reads a file — " + odd, Schema: []byte(`{"type":"object","title":"Read","description":"what to read","additionalProperties":false,
				"properties":{"path":{"type":"string","minLength":1,"pattern":"^[^\\u0000]+$"},"lines":{"type":"array","items":{"type":"integer","minimum":0},"maxItems":2},
					"mode":{"enum":["a","b",null],"default":null},"where":{"$ref":"#/$defs/place"},"either":{"anyOf":[{"type":"string"},{"type":"number","multipleOf":0.5}]}},
				"required":["path"],"$defs":{"place":{"type":"object","properties":{"x":{"const":1}},"required":[]}},"$schema":"https://json-schema.org/draft/2020-12/schema"}`)},
		}
		return r
	},
	"a long one": func(*testing.T, *official) *provider.Request {
		var all []session.Entry
		for i := range 60 {
			id := fmt.Sprint("c", i)
			all = append(all, user(fmt.Sprint("question ", i)), assistant(session.ToolUseJSON(id, "read", []byte(`{"path":"x"}`))),
				results(session.ToolResult(id, fmt.Sprint("result ", i), false)), assistant(session.Text(fmt.Sprint("answer ", i))))
		}
		return ask(append(all, user("done?"))...)
	},
}

const (
	pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	// odd has what JSON writers like to escape, or to lose.
	odd = "naïve 🌱 שלום \u202e \"quoted\" \\ </script> & <b> \t \u0001 \u007f \u2028 e\u0301 \ufeff 𝕏 \ufffd"
)

func quoteArgs(text string) []byte {
	return []byte(`{"text":` + string(quoted(text)) + `,` + string(quoted(text)) + `:1}`)
}

func ask(entries ...session.Entry) *provider.Request {
	return &provider.Request{Entries: entries}
}

func thinking(level string) func(*testing.T, *official) *provider.Request {
	return func(*testing.T, *official) *provider.Request {
		r := ask(user("think"))
		r.Thinking = level
		return r
	}
}

func message(id string, role session.MessageRole, blocks ...session.Content) session.Entry {
	return session.Entry{ID: id, Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: blocks}}
}

func system(text string) session.Entry { return message("s", session.RoleSystem, session.Text(text)) }

func user(text string, more ...session.Content) session.Entry {
	return message("u", session.RoleUser, append([]session.Content{session.Text(text)}, more...)...)
}

func assistant(blocks ...session.Content) session.Entry {
	return message("a", session.RoleAssistant, blocks...)
}

func results(blocks ...session.Content) session.Entry {
	return message("r", session.RoleTool, blocks...)
}

func source(kind session.ContentType, where, mediaType, data string) session.Content {
	s := &session.Source{Type: where, MediaType: mediaType, Data: data}
	c := session.Content{Type: kind}
	switch kind {
	case session.ContentTypeImage:
		c.Image = &session.ImageContent{Source: s}
	case session.ContentTypeAudio:
		c.Audio = &session.AudioContent{Source: s}
	default:
		c.File = &session.FileContent{Name: "a file", Source: s}
	}
	return c
}

// exampleTurn is a prompt, the answer that the provider documents, and the results
// of its calls.
func exampleTurn(t *testing.T, o *official) []session.Entry {
	t.Helper()
	body, err := o.decode([]byte(o.example))
	if err != nil {
		t.Fatal(err)
	}
	turn := append([]session.Entry{user("how is the weather?")}, body.Entries...)
	for _, c := range body.Entries[0].Message.Content {
		if c.ToolUse != nil {
			turn = append(turn, results(session.ToolResult(c.ToolUse.ID, "sun", false)))
		}
	}
	return turn
}
