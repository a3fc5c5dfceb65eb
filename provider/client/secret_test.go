package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
)

// odd is a key that no rule about secrets knows.
const odd = "gwtok-4711-veryprivate"

// TestRedirect: the key does not go to another host, whatever client a caller brings.
func TestRedirect(t *testing.T) {
	t.Parallel()
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/here") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		to := elsewhere.URL
		if r.Header.Get("Stay") != "" {
			to = "/here"
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	called := 0
	for name, brought := range map[string]*http.Client{
		"none":        nil,
		"a plain one": {Transport: transport},
		"one that follows everything": {Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			called++
			return nil
		}},
	} {
		each(t, func(t *testing.T, dialect string) {
			c := connect(t, s, dialect, func(o *client.Options) { o.HTTP, o.Retries = brought, -1 })
			_, err := provider.Respond(t.Context(), c, ask("go"), nil)
			if err == nil || !strings.Contains(err.Error(), "it redirects to") || asked || called > 0 {
				t.Errorf("%s: the error is %v, and the other host was asked: %v", name, err, asked)
			}
		})
	}
	c := connect(t, s, "anthropic", func(o *client.Options) {
		o.HTTP = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { called++; return nil }}
		o.Header, o.Retries = http.Header{"Stay": {"yes"}}, -1
	})
	if _, err := provider.Respond(t.Context(), c, ask("go"), nil); err == nil || !strings.Contains(err.Error(), "418") || called != 1 {
		t.Errorf("within the host: %v, and the caller's own check was asked %d times", err, called)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestNoKeyInErrors: whatever a server does with the key, no error and no event has it.
func TestNoKeyInErrors(t *testing.T) {
	t.Parallel()
	beyond := strings.Repeat("x", 495) // the text of an error ends soon after it
	wrong := `{"type":"error","error":{"type":"invalid_request_error","code":"KEY","message":"no KEY"}}`
	for name, answer := range map[string]func(w http.ResponseWriter, key string){
		"a status": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, strings.ReplaceAll(wrong, "KEY", key))
		},
		"only a code": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, `{"error":{"code":"`+key+`"}}`)
		},
		"escaped": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, `{"error":{"message":"`+strings.ReplaceAll(key, "-", `\u002d`)+`"}}`)
		},
		"at the end of what is shown": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, beyond+key)
		},
		"an error as JSON": func(w http.ResponseWriter, key string) {
			_, _ = io.WriteString(w, strings.ReplaceAll(wrong, "KEY", key))
		},
		"JSON of another kind": func(w http.ResponseWriter, key string) { _, _ = fmt.Fprintf(w, `{"key":%q}`, key) },
		"an error in a stream": func(w http.ResponseWriter, key string) {
			_, _ = io.WriteString(w, "event: error\ndata: "+strings.ReplaceAll(wrong, "KEY", key)+"\n\n")
		},
		"an event that is torn": func(w http.ResponseWriter, key string) { _, _ = fmt.Fprintf(w, "data: {%s\n\n", key) },
		"the host of a redirect": func(w http.ResponseWriter, key string) {
			w.Header().Set("Location", "http://"+key+".example.com/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"no HTTP": func(w http.ResponseWriter, key string) {
			connection, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, key+"\r\n\r\n")
				_ = connection.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				key := r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				if mine := r.Header.Get("X-Gateway-Token"); mine != "" {
					key = mine
				}
				answer(w, key)
			}))
			defer s.Close()
			each(t, func(t *testing.T, dialect string) {
				for _, header := range []http.Header{nil, {"X-Gateway-Token": {odd}}} {
					c := connect(t, s, dialect, func(o *client.Options) { o.Key, o.Retries, o.Header = client.StaticKey(odd), 1, header })
					var all strings.Builder
					_, err := provider.Respond(t.Context(), c, ask("go"), func(e provider.Event) { fmt.Fprintf(&all, "%v %+v\n", e, e.Retry) })
					if err == nil {
						t.Fatal("there is no error")
					}
					_, uncounted := c.CountTokens(t.Context(), ask("go"))
					if fmt.Fprintf(&all, "%v %+v %v %+v", err, err, uncounted, uncounted); strings.Contains(all.String(), odd[:10]) {
						t.Errorf("the key is in %s", all.String())
					}
				}
			})
		})
	}
}

// A header that is no secret may be in an error: it says what is wrong.
func TestHeaderInErrors(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
		return providertest.Answer{Status: 400, Body: `{"error":{"message":"no beta ` + r.Header.Get("Anthropic-Beta") + `"}}`}
	})
	c := connect(t, s.Server, "anthropic", func(o *client.Options) { o.Header = http.Header{"Anthropic-Beta": {"thinking-2025-05-14"}} })
	if _, err := provider.Respond(t.Context(), c, ask("go"), nil); err == nil || !strings.Contains(err.Error(), "no beta thinking-2025-05-14") {
		t.Errorf("the error is %v", err)
	}
}
