package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

func TestMain(m *testing.M) { leak.Main(m) }

// each runs a test with every dialect.
func each(t *testing.T, test func(t *testing.T, dialect string)) {
	t.Helper()
	for _, dialect := range client.Providers() {
		t.Run(dialect, func(t *testing.T) { test(t, dialect) })
	}
}

const secret = "sk-test-8b1f0c2d9e7a4c55b6d3" // of nobody

// connect returns a client of a server.
func connect(t *testing.T, s *httptest.Server, dialect string, change ...func(*client.Options)) *client.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o := client.Options{
		Provider: dialect, Model: "test-model", BaseURL: s.URL + "/base/", Key: client.StaticKey(secret),
		HTTP: &http.Client{Transport: transport}, Timeouts: client.Timeouts{Retry: time.Millisecond},
	}
	for _, f := range change {
		f(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func user(text string) session.Entry {
	return session.Entry{ID: "u", Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text(text)},
	}}
}

func ask(text string) *provider.Request {
	return &provider.Request{
		Entries: []session.Entry{user(text)}, Thinking: provider.ThinkingLow,
		Tools: []provider.Tool{{Name: "read", Description: "Reads a file.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "now"}},
	}
}

// answer is a message with everything: thoughts, text, two calls.
func answer() session.MessageEntry {
	thought := session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "The file tells. Read it.", Signature: "c2lnbmF0dXJl"}}
	return session.MessageEntry{Role: session.RoleAssistant, Provider: "anthropic", Content: []session.Content{
		thought, session.Text("I shall look — wäit."),
		session.ToolUseJSON("call_a", "read", []byte(`{"path":"a.txt","n":12345678901234567}`)),
		session.ToolUseJSON("call_b", "now", []byte(`{}`)),
	}}
}

// told is what a message says, without what differs between providers.
type told struct{ Thoughts, Text, Calls string }

func tell(m *session.MessageEntry) told {
	var out told
	for _, c := range m.Content {
		switch {
		case c.Thinking != nil:
			out.Thoughts += c.Thinking.Content
		case c.Text != nil:
			out.Text += c.Text.Content
		case c.ToolUse != nil:
			input, err := c.ToolUse.InputJSON()
			out.Calls += fmt.Sprintf("%s(%s, %v) ", c.ToolUse.Name, input, err)
		}
	}
	return out
}

// overheard is what the events tell.
func overheard(events []provider.Event) told {
	var out told
	open := map[int]string{}
	for _, e := range events {
		switch e.Type {
		case provider.EventThinking:
			out.Thoughts += e.Text
		case provider.EventText:
			out.Text += e.Text
		case provider.EventCallStart:
			open[e.Block] = e.Call.Name + "("
		case provider.EventCallDelta:
			open[e.Block] += e.Text
		case provider.EventCallEnd:
			if e.Call.Name+"(" != open[e.Block][:len(e.Call.Name)+1] {
				out.Calls += "another call ends: "
			}
			out.Calls += open[e.Block] + ", <nil>) "
		}
	}
	return out
}

func TestStream(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		s := providertest.New(t, func(*providertest.Request) providertest.Answer {
			return providertest.Answer{Message: answer()}
		})
		var events []provider.Event
		c := connect(t, s.Server, dialect)
		response, err := provider.Respond(t.Context(), c, ask("what is in it?"), func(e provider.Event) { events = append(events, e) })
		if err != nil {
			t.Fatal(err)
		}
		want := answer()
		if diff := cmp.Diff(tell(&want), tell(response.Message)); diff != "" {
			t.Errorf("the message (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(tell(&want), overheard(events)); diff != "" {
			t.Errorf("the events (-want +got):\n%s", diff)
		}
		m := response.Message
		if m.Usage == nil || m.Usage.Input != 10 || m.Usage.Output != 5 || m.ResponseID == "" || m.Model == "" || m.Provider != c.Info().Provider {
			t.Errorf("the message says of itself %+v, usage %+v", m, m.Usage)
		}
		if response.Partial || len(response.Calls()) != 2 || dialect != "google" && m.StopReason != provider.StopToolUse {
			t.Errorf("partial %v, %d calls, stopped by %q", response.Partial, len(response.Calls()), m.StopReason)
		}
		request := s.Requests()[0]
		encoded, err := c.Encode(ask("what is in it?"))
		if err != nil || string(encoded.Body) != string(request.Body) {
			t.Errorf("Encode gives %s, %v, but %s was sent", encoded.Body, err, request.Body)
		}
		if !strings.Contains(fmt.Sprint(request.Header), secret) || strings.Contains(request.Path+string(request.Body), secret) {
			t.Errorf("the key belongs into a header: %s %v", request.Path, request.Header)
		}
	})
}

// TestToolLoop: what was answered, with the results of its calls, is accepted as the
// next request, and begins with the bytes of the first.
func TestToolLoop(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
			if len(r.Entries) > 1 {
				return providertest.Answer{}
			}
			return providertest.Answer{Message: answer()}
		})
		c := connect(t, s.Server, dialect)
		request := ask("go")
		for range 3 {
			response, err := provider.Respond(t.Context(), c, request, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Entries = append(request.Entries, session.Entry{ID: "a", Type: session.TypeMessage, Message: response.Message})
			for i, call := range response.Calls() {
				result := session.ToolResult(call.ID, fmt.Sprint("result ", i), false)
				request.Entries = append(request.Entries, session.Entry{ID: "r", Type: session.TypeMessage, Message: &session.MessageEntry{
					Role: session.RoleTool, Content: []session.Content{result},
				}})
			}
			if len(response.Calls()) == 0 {
				request.Entries = append(request.Entries, user("and now?"))
			}
		}
		last := s.Requests()[2]
		for _, text := range []string{"result 0", "result 1", "a.txt", "and now?"} {
			if strings.Count(string(last.Body), text) != 1 {
				t.Errorf("%q is not once in %s", text, last.Body)
			}
		}
	})
}

// TestCutAtEveryEvent: whatever was yielded before the connection broke is in the
// partial message, nothing is asked again, and a log with it is still accepted.
func TestCutAtEveryEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		cut := 0
		s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
			if len(r.Entries) > 1 {
				return providertest.Answer{}
			}
			return providertest.Answer{Message: answer(), Cut: cut}
		})
		c := connect(t, s.Server, dialect, func(o *client.Options) { o.Retries = -1 })
		partial := 0
		for cut = 1; ; cut++ {
			var events []provider.Event
			response, err := provider.Respond(t.Context(), c, ask("go"), func(e provider.Event) { events = append(events, e) })
			if err == nil {
				break
			}
			if !errors.Is(err, provider.ErrBroken) {
				t.Fatalf("cut after %d events: %v, want ErrBroken", cut, err)
			}
			if response == nil {
				if said := overheard(events); said != (told{}) {
					t.Fatalf("cut after %d events: %+v was yielded, and nothing is kept", cut, said)
				}
				continue
			}
			partial++
			if !response.Partial || response.Message.StopReason != provider.StopFailed || response.Calls() != nil {
				t.Fatalf("cut after %d events: partial %v, stopped by %q", cut, response.Partial, response.Message.StopReason)
			}
			was, heard := tell(response.Message), overheard(events)
			if was.Text != heard.Text || was.Thoughts != heard.Thoughts {
				t.Fatalf("cut after %d events: %+v was yielded, and %+v is kept", cut, heard, was)
			}
			goOn(t, c, response, cut)
		}
		if partial < 5 {
			t.Errorf("only %d partial messages in %d cuts", partial, cut)
		}
	})
}

// goOn asks again in a session that has a partial answer.
func goOn(t *testing.T, c *client.Client, response *provider.Response, cut int) {
	t.Helper()
	s, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, m := range []session.Entry{user("go"), {Type: session.TypeMessage, Message: response.Message}, user("go on")} {
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m.Message}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Respond(t.Context(), c, &provider.Request{Entries: all.Entries}, nil); err != nil {
		t.Fatalf("after a cut at %d, the next request: %v", cut, err)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]providertest.Answer{
		"limited":      {Status: 429, Body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, Header: http.Header{"Retry-After-Ms": {"20"}}},
		"overloaded":   {Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"server":       {Status: 500, Body: `oops`},
		"gateway":      {Status: 502, Body: `<html>Bad Gateway</html>`},
		"empty":        {Status: 503},
		"ends at once": {Events: func([]string) []string { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, dialect string) {
				n := 0
				s := providertest.New(t, func(*providertest.Request) providertest.Answer {
					if n++; n <= 2 {
						return fail
					}
					return providertest.Answer{}
				})
				var retries []*provider.Retry
				_, err := provider.Respond(t.Context(), connect(t, s.Server, dialect), ask("go"), func(e provider.Event) {
					if e.Retry != nil {
						retries = append(retries, e.Retry)
					}
				})
				if err != nil || len(retries) != 2 || retries[1].Attempt != 3 {
					t.Fatalf("retries %v, error %v", retries, err)
				}
				if fail.Header != nil && retries[0].After < 20*time.Millisecond {
					t.Errorf("it waited for %s, and the server asked for 20ms", retries[0].After)
				}
			})
		})
	}
}

// TestNoRetry: what fails for good fails at once, with its kind.
func TestNoRetry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fail providertest.Answer
		want error
	}{
		"anthropic overflow":      {providertest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`}, provider.ErrOverflow},
		"anthropic sum":           {providertest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 190000 + 20000 > 200000"}}`}, provider.ErrOverflow},
		"anthropic bytes":         {providertest.Answer{Status: 413, Body: `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`}, provider.ErrOverflow},
		"openai overflow":         {providertest.Answer{Status: 400, Body: `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`}, provider.ErrOverflow},
		"responses overflow":      {providertest.Answer{Status: 400, Body: `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}`}, provider.ErrOverflow},
		"google overflow":         {providertest.Answer{Status: 400, Body: `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`}, provider.ErrOverflow},
		"llama.cpp overflow":      {providertest.Answer{Status: 400, Body: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`}, provider.ErrOverflow},
		"limit that names tokens": {providertest.Answer{Status: 429, Body: `{"error":{"message":"Rate limit reached: context window tokens per min","code":"insufficient_quota"}}`}, provider.ErrLimited},
		"a wait too long":         {providertest.Answer{Status: 429, Header: http.Header{"Retry-After": {"3600"}}}, provider.ErrLimited},
		"a bad key":               {providertest.Answer{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + secret + `"}}`}, provider.ErrDenied},
		"a bad request":           {providertest.Answer{Status: 400, Body: `{"error":{"message":"no such parameter"}}`}, session.ErrInvalid},
		"a bad model":             {providertest.Answer{Status: 404, Body: `{"error":"model 'x' not found"}`}, session.ErrInvalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, dialect string) {
				s := providertest.New(t, func(*providertest.Request) providertest.Answer { return tt.fail })
				response, err := provider.Respond(t.Context(), connect(t, s.Server, dialect), ask("go"), nil)
				if !errors.Is(err, tt.want) || response != nil || len(s.Requests()) != 1 {
					t.Errorf("%d requests, response %v, error %v, want %v", len(s.Requests()), response, err, tt.want)
				}
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
					t.Errorf("the error has the key: %v", err)
				}
			})
		})
	}
}

// TestStreamError: a provider may fail amid its answer.
func TestStreamError(t *testing.T) {
	t.Parallel()
	errorsOf := map[string]string{
		"anthropic":   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		"openai":      "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"sorry\"}}}\n\n",
		"openai-chat": "data: {\"error\":{\"message\":\"sorry\",\"type\":\"server_error\"}}\n\n",
		"google":      "data: {\"error\":{\"code\":503,\"message\":\"sorry\",\"status\":\"UNAVAILABLE\"}}\n\n",
	}
	each(t, func(t *testing.T, dialect string) {
		at := 0
		s := providertest.New(t, func(*providertest.Request) providertest.Answer {
			return providertest.Answer{Message: answer(), Events: func(events []string) []string {
				return slices.Insert(events[:len(events)-3:len(events)-3], min(at, len(events)-3), errorsOf[dialect])
			}}
		})
		c := connect(t, s.Server, dialect, func(o *client.Options) { o.Retries = 1 })
		if _, err := provider.Respond(t.Context(), c, ask("go"), nil); !errors.Is(err, provider.ErrUnavailable) || len(s.Requests()) != 2 {
			t.Errorf("before anything was said: %v after %d requests, want 2", err, len(s.Requests()))
		}
		at = 100
		response, err := provider.Respond(t.Context(), c, ask("go"), nil)
		if !errors.Is(err, provider.ErrUnavailable) || response == nil || !response.Partial || len(s.Requests()) != 3 {
			t.Errorf("after something was said: %v, %v, after %d requests, want one more", response, err, len(s.Requests())-2)
		}
	})
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"not JSON":     "data: {\"type\":\n\n",
		"not an event": "<html>\n\n",
		"a torn end":   "data: {\"type\":\"mess",
		"binary":       "data: \x00\xff\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, dialect string) {
				s := providertest.New(t, func(*providertest.Request) providertest.Answer {
					return providertest.Answer{Events: func([]string) []string { return []string{broken} }}
				})
				c := connect(t, s.Server, dialect, func(o *client.Options) { o.Retries = -1 })
				if response, err := provider.Respond(t.Context(), c, ask("go"), nil); !errors.Is(err, provider.ErrBroken) || response != nil {
					t.Errorf("%v, %v, want ErrBroken", response, err)
				}
			})
		})
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
			return providertest.Answer{Message: answer(), Before: func(event int) {
				if event == 6 {
					<-r.Context.Done()
				}
			}}
		})
		c := connect(t, s.Server, dialect, func(o *client.Options) { o.Silence = 50 * time.Millisecond })
		response, err := provider.Respond(t.Context(), c, ask("go"), nil)
		// A machine that stalls may cut it off before anything was said.
		if !errors.Is(err, provider.ErrBroken) || response != nil && response.Message.StopReason != provider.StopFailed {
			t.Errorf("%v, %v, want ErrBroken", response, err)
		}
	})
}

func TestFirstByte(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
		<-r.Context.Done()
		return providertest.Answer{}
	})
	c := connect(t, s.Server, "anthropic", func(o *client.Options) { o.FirstByte, o.Retries = 20*time.Millisecond, 1 })
	retries := 0
	_, err := provider.Respond(t.Context(), c, ask("go"), func(e provider.Event) {
		if e.Type == provider.EventRetry {
			retries++
		}
	})
	if !errors.Is(err, provider.ErrUnavailable) || retries != 1 {
		t.Errorf("%v after %d retries, want ErrUnavailable after 1", err, retries)
	}
}

// TestSlowReader: a caller may take its time over what it got.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(*providertest.Request) providertest.Answer { return providertest.Answer{Message: answer()} })
	c := connect(t, s.Server, "anthropic", func(o *client.Options) { o.Silence = 10 * time.Second })
	_, err := provider.Respond(t.Context(), c, ask("go"), func(provider.Event) { time.Sleep(time.Millisecond) })
	if err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
			return providertest.Answer{Message: answer(), Before: func(event int) {
				if event == 6 {
					<-r.Context.Done()
				}
			}}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := 0
		response, err := provider.Respond(ctx, connect(t, s.Server, dialect), ask("go"), func(e provider.Event) {
			if seen++; seen == 3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || response == nil || response.Message.StopReason != provider.StopCancelled {
			t.Errorf("%+v, %v, want a partial answer and Canceled", response, err)
		}
		<-s.Requests()[0].Context.Done()
	})
}

// TestLeave: a caller that stops early ends the request.
func TestLeave(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
		return providertest.Answer{Message: answer(), Before: func(event int) {
			if event == 8 {
				<-r.Context.Done()
			}
		}}
	})
	for range connect(t, s.Server, "anthropic").Stream(t.Context(), ask("go")) {
		break
	}
	<-s.Requests()[0].Context.Done()
}

func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		size := 1 << 20
		if dialect == "anthropic" {
			size *= 4
		}
		large := strings.Repeat("0123456789abcdef", size/16)
		s := providertest.New(t, func(*providertest.Request) providertest.Answer {
			return providertest.Answer{Message: session.MessageEntry{Content: []session.Content{session.Text(large)}}}
		})
		response, err := provider.Respond(t.Context(), connect(t, s.Server, dialect), ask("go"), nil)
		if err != nil || session.TextOf(response.Message.Content) != large {
			t.Errorf("a large answer came as another: %v", err)
		}
	})
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, nil)
	each(t, func(t *testing.T, dialect string) {
		n, err := connect(t, s.Server, dialect).CountTokens(t.Context(), ask("how long am I?"))
		if dialect == "openai-chat" {
			if !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%d, %v, want ErrInvalid", n, err)
			}
		} else if err != nil || n < 20 {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// TestCountTokensAsksNothingElse: a request to count has nothing that says how to
// answer. OpenAI and Anthropic refuse it there.
func TestCountTokensAsksNothingElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, dialect string) {
		var body []byte
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			fmt.Fprint(w, `{"input_tokens":7,"totalTokens":7}`)
		}))
		defer s.Close()
		request, warm := ask("how long am I?"), 0.5
		request.Session, request.MaxTokens, request.Temperature = "s-1", 100, &warm
		request.Fields = session.Fields{{Name: "top_p", Value: []byte("0.5")}, {Name: "metadata", Value: []byte("{}")}}
		n, err := connect(t, s, dialect).CountTokens(t.Context(), request)
		if dialect == "openai-chat" || dialect == "google" { // which takes whole requests
			return
		}
		if err != nil || n != 7 || !strings.Contains(string(body), "how long am I?") || !strings.Contains(string(body), `"tools"`) {
			t.Errorf("%d, %v, %s", n, err, body)
		}
		for _, name := range []string{"stream", "store", "include", "prompt_cache_key", "max_tokens", "max_output_tokens", "temperature", "top_p", "metadata"} {
			if strings.Contains(string(body), `"`+name+`"`) {
				t.Errorf("%s is in %s", name, body)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(*providertest.Request) providertest.Answer { return providertest.Answer{} })
	for name, tt := range map[string]struct {
		key  client.KeyFunc
		want error
	}{
		"a command":          {client.CommandKey("echo; echo " + secret + "; echo more"), nil},
		"a command fails":    {client.CommandKey("echo " + secret + "; exit 3"), provider.ErrDenied},
		"a silent command":   {client.CommandKey("true"), provider.ErrDenied},
		"a key of two lines": {client.StaticKey(secret + "\nX-Evil: 1"), provider.ErrDenied},
		"none":               {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, s.Server, "openai-chat", func(o *client.Options) { o.Key = tt.key })
			_, err := provider.Respond(t.Context(), c, ask("go"), nil)
			if !errors.Is(err, tt.want) {
				t.Fatalf("the error is %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error has the key: %v", err)
			}
			if err != nil {
				return
			}
			all := s.Requests()
			sent := fmt.Sprint(all[len(all)-1].Header["Authorization"])
			if want := map[string]string{"a command": "[Bearer " + secret + "]", "none": "[]"}[name]; sent != want {
				t.Errorf("the header is %s, want %s", sent, want)
			}
		})
	}
}

// TestKeyCommandComplains: the error says why a password manager would not print the key.
func TestKeyCommandComplains(t *testing.T) {
	t.Parallel()
	_, err := client.CommandKey("echo " + secret + "; echo first >&2; echo the vault is locked >&2; exit 3")(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the vault is locked") || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
}

// A command that prints the key where it should complain does not put it into the error.
func TestKeyCommandComplainsWithTheKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{secret, "k-4711-local", strings.Repeat("quietkey", 3)} {
		_, err := client.CommandKey("echo no agent, the key is " + key + " >&2; exit 3")(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no agent, the key is") || strings.Contains(err.Error(), key) {
			t.Errorf("the error is %v", err)
		}
	}
}

// A server that speaks like OpenAI is not recorded as OpenAI.
func TestNameOfAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"": "openai", "https://api.openai.com/v1": "openai", "https://api.openai.com/v1/": "openai",
		"http://localhost:11434/v1": "openai-chat", "https://api.openai.com.corp.io/v1": "openai-chat",
	} {
		c, err := client.New(client.Options{Provider: "openai-chat", Model: "m", BaseURL: base})
		if err != nil || c.Info().Provider != want {
			t.Errorf("%q: %v, %v", base, c.Info(), err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]client.Options{
		"no provider":       {Model: "m"},
		"unknown provider":  {Provider: "x", Model: "m"},
		"no model":          {Provider: "openai"},
		"no host":           {Provider: "openai", Model: "m", BaseURL: "localhost:1"},
		"a key in the URL":  {Provider: "openai", Model: "m", BaseURL: "http://h/v1?key=k"},
		"a user in the URL": {Provider: "openai", Model: "m", BaseURL: "http://u:p@h/v1"},
	} {
		if _, err := client.New(o); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// TestRefusedRequests: what cannot be sent is refused before anybody is asked.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, nil)
	each(t, func(t *testing.T, dialect string) {
		c := connect(t, s.Server, dialect)
		for name, r := range map[string]*provider.Request{
			"nil":             nil,
			"nothing":         {},
			"a bad name":      {Entries: ask("x").Entries, Tools: []provider.Tool{{Name: "a b"}}},
			"two of one name": {Entries: ask("x").Entries, Tools: []provider.Tool{{Name: "a"}, {Name: "a"}}},
			"a bad schema":    {Entries: ask("x").Entries, Tools: []provider.Tool{{Name: "a", Schema: []byte("[]")}}},
			"a bad level":     {Entries: ask("x").Entries, Thinking: "hard"},
		} {
			if _, err := provider.Respond(t.Context(), c, r, nil); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", name, err)
			}
		}
	})
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
