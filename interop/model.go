package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// model is a language model on loopback. It speaks the dialects of the providers,
// records every request, and answers each with a text of its own. After willCall, it calls
// the tool once in every conversation that offers it.
//
// It reads and writes the dialects on its own, not with package provider: what is wrong
// there must not look right here.
type model struct {
	URL string // without a slash at the end

	server *http.Server
	mu     sync.Mutex // guards what follows
	tool   *toolCall
	n      int       // how many requests there were: every answer is another one
	asked  []request // since requests was called
	others []string  // what else was requested: method and path
}

// toolCall is a call that the model makes.
type toolCall struct {
	Name string
	Args map[string]any
}

// request is what a program sent to the model, and what the model said.
type request struct {
	Dialect string
	Path    string
	Body    []byte
	Facts   []fact
	Tools   []string // the names of those on offer
	Reply   string
}

// reply is what the model says, in no dialect yet.
type reply struct {
	n      int
	model  any // as the request named it
	text   string
	call   *toolCall
	stream bool
}

func (r *reply) callID() string { return fmt.Sprintf("call_loopback%04d", r.n) }

// args are the arguments of the call as JSON text.
func (r *reply) args() string { return mustJSON(r.call.Args) }

// dialect is how a provider's requests are read and answered.
type dialect struct {
	name  string
	path  string // a part of the paths that speak it
	facts func(body []byte) ([]fact, error)
	tools func(body []byte) []string // the names of those on offer
	write func(w *answer, r *reply)
}

var dialects = []dialect{
	{"anthropic", "/messages", anthropicFacts, anthropicTools, writeAnthropic},
	{"responses", "/responses", responsesFacts, openAITools, writeResponses},
	{"chat", "/chat/completions", chatFacts, openAITools, writeChat},
	{"gemini", "enerateContent", geminiFacts, geminiTools, writeGemini},
}

func newModel() (*model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &model{URL: "http://" + l.Addr().String()}
	m.server = &http.Server{Handler: m}
	go m.server.Serve(l) //nolint:errcheck // it ends when the server is closed
	return m, nil
}

func (m *model) close() { m.server.Close() }

// willCall makes the model call a tool; nil makes it talk only.
func (m *model) willCall(c *toolCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tool = c
}

// requests returns what was asked since the last time.
func (m *model) requests() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = nil
	return asked
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := &answer{w: w}
	for _, d := range dialects {
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, d.path) && !strings.Contains(r.URL.Path, "count") {
			m.answer(a, d, r.URL.Path, body)
			return
		}
	}
	m.mu.Lock()
	m.others = append(m.others, r.Method+" "+r.URL.String())
	m.mu.Unlock()
	path := strings.ToLower(r.URL.Path)
	switch {
	case r.Method == http.MethodConnect && "http://"+r.Host != m.URL: // we are no way out
		http.Error(w, "there is no network here", http.StatusForbidden)
	case r.Method == http.MethodConnect:
		m.tunnel(w)
	case strings.Contains(path, "count"):
		a.object(map[string]any{"input_tokens": 10, "totalTokens": 10})
	case strings.HasSuffix(path, "models"):
		a.object(map[string]any{"object": "list", "data": []any{map[string]any{"id": modelName, "object": "model"}}, "models": []any{}})
	default:
		http.Error(w, `{"error":{"message":"no such thing"}}`, http.StatusNotFound)
	}
}

// tunnel serves the model to a program that takes the proxy even to loopback.
func (m *model) tunnel(w http.ResponseWriter) {
	near, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return // the program is gone
	}
	defer near.Close()
	far, err := net.Dial("tcp", strings.TrimPrefix(m.URL, "http://"))
	if err != nil {
		return
	}
	defer far.Close()
	io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n") //nolint:errcheck // see object
	go io.Copy(far, near)                           //nolint:errcheck // it ends with the connection
	io.Copy(near, far)                              //nolint:errcheck // it ends with the connection
}

// modelName is what programs call the model when they need a name.
const modelName = "loopback-model"

func (m *model) answer(a *answer, d dialect, path string, body []byte) {
	facts, err := d.facts(body)
	if err != nil {
		http.Error(a.w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked struct {
		Model  any
		Stream bool
	}
	_ = json.Unmarshal(body, &asked) // the facts were read, so it is JSON
	m.mu.Lock()
	m.n++
	r := &reply{n: m.n, model: asked.Model, stream: asked.Stream || strings.Contains(path, "stream")}
	r.text = fmt.Sprintf("loopback says %s-%04d", d.name, r.n)
	if m.tool != nil && offers(d.tools(body), m.tool.Name) && !called(facts, m.tool) {
		r.call = m.tool
	}
	m.asked = append(m.asked, request{Dialect: d.name, Path: path, Body: body, Facts: facts, Tools: d.tools(body), Reply: r.text})
	m.mu.Unlock()
	d.write(a, r)
}

func offers(tools []string, name string) bool {
	for _, t := range tools {
		if t == name {
			return true
		}
	}
	return false
}

// called reports whether a request holds the call.
func called(facts []fact, c *toolCall) bool {
	for _, f := range facts {
		if f.Kind == factCall && f.Name == c.Name && f.Args == canonical([]byte(mustJSON(c.Args))) {
			return true
		}
	}
	return false
}

func readBody(r *http.Request) ([]byte, error) {
	var from io.Reader = r.Body
	switch r.Header.Get("Content-Encoding") {
	case "zstd":
		z, err := zstd.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = z
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		from = z
	}
	return io.ReadAll(from)
}

// answer writes a response: one object, or events.
type answer struct{ w http.ResponseWriter }

func (a *answer) object(v any) {
	a.w.Header().Set("Content-Type", "application/json")
	io.WriteString(a.w, mustJSON(v)) //nolint:errcheck // who went away needs no answer
}

func (a *answer) events() {
	a.w.Header().Set("Content-Type", "text/event-stream")
}

// event sends an event with a name, or without one.
func (a *answer) event(name string, v any) {
	if name != "" {
		fmt.Fprintf(a.w, "event: %s\n", name)
	}
	fmt.Fprintf(a.w, "data: %s\n\n", mustJSON(v))
}

// mustJSON encodes what is known to be encodable.
func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
