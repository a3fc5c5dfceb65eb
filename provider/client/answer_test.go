package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// TestAnswerThatIsNoStream: a server that does not stream is understood, errors included.
func TestAnswerThatIsNoStream(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"anthropic":   `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`,
		"openai":      `{"id":"r","object":"response","status":"completed","model":"x","output":[{"type":"message","id":"i","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}}`,
		"openai-chat": `{"id":"c","object":"chat.completion","model":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`,
		"google":      `[{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4}}]`,
	}
	each(t, func(t *testing.T, dialect string) {
		body := ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, body)
		}))
		defer s.Close()
		c := connect(t, s, dialect, func(o *client.Options) { o.Retries = -1 })
		body = "\n" + whole[dialect]
		var text strings.Builder
		response, err := provider.Respond(t.Context(), c, ask("go"), func(e provider.Event) { text.WriteString(e.Text) })
		if err != nil {
			t.Fatal(err)
		}
		m := response.Message
		if session.TextOf(m.Content) != "Hello" || text.String() != "Hello" || m.StopReason != provider.StopEndTurn || m.Usage == nil || m.Usage.Output != 1 || response.Partial {
			t.Errorf("the events say %q, the message is %+v", &text, m)
		}
		for answer, want := range map[string]struct {
			kind error
			says string
		}{
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`: {provider.ErrUnavailable, "Overloaded"},
			`{"error":"no such model"}`:     {provider.ErrUnavailable, "no such model"},
			`{"detail":"Not Found"}`:        {provider.ErrBroken, "Not Found"},
			whole[dialect][:40]:             {provider.ErrBroken, ""},
			`{"error":null,"detail":"odd"}`: {provider.ErrBroken, "odd"},
		} {
			body = answer
			if response, err := provider.Respond(t.Context(), c, ask("go"), nil); !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) || response != nil {
				t.Errorf("%s: %v, %v, want %v", answer, response, err, want)
			}
		}
	})
}

// TestEndWithoutAReason: a server that marks its answer as ended has ended it.
func TestEndWithoutAReason(t *testing.T) {
	t.Parallel()
	call := `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"now","arguments":"{}"}}]}}]}`
	for name, tt := range map[string]struct {
		events []string
		want   error
		stop   string
	}{
		"text":    {[]string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}`, "[DONE]"}, nil, provider.StopEndTurn},
		"a call":  {[]string{call, "[DONE]"}, nil, provider.StopToolUse},
		"pings":   {[]string{"ping", `"ping"`, call, "keep-alive", "[DONE]"}, nil, provider.StopToolUse},
		"no mark": {[]string{call}, provider.ErrBroken, provider.StopFailed},
		"nothing": {[]string{"[DONE]"}, provider.ErrBroken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := providertest.New(t, func(*providertest.Request) providertest.Answer {
				return providertest.Answer{Events: func([]string) []string {
					var lines []string
					for _, e := range tt.events {
						lines = append(lines, "data: "+e+"\n\n")
					}
					return lines
				}}
			})
			var kinds []provider.EventType
			c := connect(t, s.Server, "openai-chat", func(o *client.Options) { o.Retries = -1 })
			response, err := provider.Respond(t.Context(), c, ask("go"), func(e provider.Event) { kinds = append(kinds, e.Type) })
			if !errors.Is(err, tt.want) || response != nil && response.Message.StopReason != tt.stop || response == nil && tt.stop != "" {
				t.Fatalf("%+v, %v, want %q, %v", response, err, tt.stop, tt.want)
			}
			if whole := tt.stop == provider.StopToolUse; slices.Contains(kinds, provider.EventCallEnd) != whole || len(response.Calls()) > 0 != whole {
				t.Errorf("the events are %v", kinds)
			}
		})
	}
}

// TestErrorThatDoesNotEnd: the body of an error has a time limit too.
func TestErrorThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "count_tokens") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, "half of it")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer s.Close()
	defer close(over)
	c := connect(t, s, "anthropic", func(o *client.Options) { o.Silence, o.Retries = 20*time.Millisecond, -1 })
	if _, err := provider.Respond(t.Context(), c, ask("go"), nil); !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "half of it") {
		t.Errorf("the error is %v", err)
	}
	if _, err := c.CountTokens(t.Context(), ask("go")); !errors.Is(err, provider.ErrBroken) || !strings.Contains(err.Error(), "nothing more came") {
		t.Errorf("the count: %v", err)
	}
}

// TestRetryAfter: a wait of any size is kept, or the error says how long it is.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, says := range map[string]string{
		"0": "", "-5": "", "NaN": "", "x": "", "0.001": "", "Wed, 21 Oct 2015 07:28:00 GMT": "",
		"3600": "wait 1h:", "90.4": "wait 1m30s:", "5400": "wait 1h30m:", "172800": "wait 2 days:", "inf": " days:", "1e300": " days:", "1e400": " days:",
		"1e18": " days:", "99999999999": " days:", "Wed, 21 Oct 2099 07:28:00 GMT": " days:",
	} {
		n := 0
		s := providertest.New(t, func(*providertest.Request) providertest.Answer {
			if n++; n > 1 {
				return providertest.Answer{}
			}
			return providertest.Answer{Status: 429, Header: http.Header{"Retry-After": {value}}, Body: `{"error":{"message":"slow down"}}`}
		})
		_, err := provider.Respond(t.Context(), connect(t, s.Server, "anthropic"), ask("go"), nil)
		if says == "" && (err != nil || n != 2) {
			t.Errorf("%s: %d requests, %v", value, n, err)
		}
		if says == "" {
			continue
		}
		var e *provider.Error
		if n != 1 || !errors.As(err, &e) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "slow down") || !strings.HasPrefix(e.Hint, "try again at 2") {
			t.Errorf("%s: %d requests, %v, %+v", value, n, err, e)
		}
	}
}

// TestOnce: a caller that retries by itself gets one request each time. One that does not
// learns what the failed attempts cost.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(*providertest.Request) providertest.Answer {
		return providertest.Answer{Cut: 1, Message: session.MessageEntry{Usage: &session.Usage{Input: 1000}}}
	})
	c := connect(t, s.Server, "anthropic", func(o *client.Options) { o.Retries = 2 })
	once := ask("go")
	once.Once = true
	response, err := provider.Respond(t.Context(), c, once, nil)
	if n := len(s.Requests()); !errors.Is(err, provider.ErrBroken) || n != 1 || response == nil || response.Message.Usage.Input != 1000 || response.Kept(err, false) != nil {
		t.Errorf("%d requests, %+v, %v", n, response, err)
	}
	cost := 0
	response, err = provider.Respond(t.Context(), c, ask("go"), func(e provider.Event) {
		if e.Retry != nil {
			cost += e.Retry.Usage.Input
		}
	})
	if n := len(s.Requests()); err == nil || n != 4 || cost+response.Message.Usage.Input != 3000 {
		t.Errorf("%d more requests of 1000 tokens cost %d and %+v", n-1, cost, response)
	}
}
