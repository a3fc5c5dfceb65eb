// Package providertest is a model on this machine that speaks the dialects of
// Anthropic, OpenAI and Google over HTTP, for tests of clients and agents. It says
// what the test tells it to, and refuses the requests that the real ones refuse.
package providertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// Request is what a client sent.
type Request struct {
	Dialect string // as client.Options.Provider has it
	Path    string
	Header  http.Header
	Body    []byte
	// Entries are the conversation in it.
	Entries []session.Entry
	// Context ends when the client hangs up.
	Context context.Context
}

// Answer is what the server does with a request. The zero value says "ok".
type Answer struct {
	// Message is what the model says.
	Message session.MessageEntry
	// Status and Body are given instead, if Status is not 0.
	Status int
	Body   string
	Header http.Header
	// Events replaces the events of the stream.
	Events func(events []string) []string
	// Before is called before each event is sent, and may wait.
	Before func(event int)
	// Cut breaks the connection off after so many events, if it is more than 0.
	Cut int
}

// Server is a model on loopback.
type Server struct {
	*httptest.Server
	answer func(*Request) Answer

	mu       sync.Mutex
	requests []*Request
	refusals []string
	signed   map[string]string // what this server thought, by its signature
}

// New starts a server that ends with the test.
func New(t testing.TB, answer func(*Request) Answer) *Server {
	t.Helper()
	s := &Server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Requests returns what was asked so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// Refusals returns the words with which requests were refused so far.
func (s *Server) Refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refusals...)
}

// dialect is how one provider is spoken.
type dialect struct {
	decode func([]byte) (*provider.Body, error)
	check  func([]byte) []provider.Fault
	encode func([]session.Entry) (*provider.Messages, error) // as it would be in a request
	list   string                                            // the messages of a request
	format string                                            // under which residues are kept
	// response adds an answer to a response, and events streams a response.
	response func(*rawjson.Members, *answer)
	events   func(rawjson.Members) []string
}

// reasoning is what most servers that speak Chat Completions call thinking.
const reasoning = "reasoning_content"

var dialects = map[string]dialect{
	"anthropic": {anthropic.Decode, anthropic.Check, anthropic.EncodeVerbatim, "messages", wire.Anthropic, anthropicResponse, anthropicEvents},
	"openai":    {openai.DecodeResponses, openai.CheckResponses, openai.EncodeResponsesVerbatim, "input", wire.Responses, responsesResponse, responsesEvents},
	"openai-chat": {openai.DecodeChat, openai.CheckChat, func(entries []session.Entry) (*provider.Messages, error) {
		return openai.EncodeChatVerbatim(entries, &openai.ChatOptions{Reasoning: reasoning})
	}, "messages", wire.Chat, chatResponse, chatEvents},
	"google": {google.Decode, google.Check, google.EncodeVerbatim, "contents", wire.Google, googleResponse, googleEvents},
}

// dialectOf tells who is asked by the path of the request.
func dialectOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return "anthropic"
	case strings.HasSuffix(path, "/responses"):
		return "openai"
	case strings.HasSuffix(path, "/chat/completions"):
		return "openai-chat"
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return "google"
	}
	return ""
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	if s.count(w, r.URL.Path, body) {
		return
	}
	name := dialectOf(r.URL.Path)
	d, ok := dialects[name]
	if !ok {
		http.Error(w, `{"error":{"message":"no such path"}}`, http.StatusNotFound)
		return
	}
	request := &Request{Dialect: name, Path: r.URL.Path, Header: r.Header, Body: body, Context: r.Context()}
	decoded, err := d.decode(body)
	faults := d.check(body)
	if err == nil {
		request.Entries = decoded.Entries
	}
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	why := s.refused(name, r.URL.Path, body)
	if why == nil && (err != nil || len(faults) > 0) {
		why = refuse("%v %v", err, faults)
	}
	if why != nil {
		s.mu.Lock()
		s.refusals = append(s.refusals, why.what)
		s.mu.Unlock()
		status, text := why.body(name)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
		return
	}
	s.respond(w, d, request, s.answer(request))
}

// count answers a request to count tokens: there is one in every four bytes.
func (s *Server) count(w http.ResponseWriter, path string, body []byte) bool {
	member := map[bool]string{
		strings.HasSuffix(path, "/count_tokens") || strings.HasSuffix(path, "/input_tokens"): "input_tokens",
		strings.HasSuffix(path, ":countTokens"):                                              "totalTokens",
	}[true]
	if member == "" {
		return false
	}
	fmt.Fprintf(w, `{"%s":%d}`, member, len(body)/4)
	return true
}

func (s *Server) respond(w http.ResponseWriter, d dialect, r *Request, a Answer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if a.Status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body)
		return
	}
	if a.Message.Role == "" {
		a.Message.Role = session.RoleAssistant
	}
	if len(a.Message.Content) == 0 {
		a.Message.Content = []session.Content{session.Text("ok")}
	}
	a.Message.Content = s.asked(r, a.Message.Content)
	body, _, err := Response(r.Dialect, defaults(&a.Message, d.format))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	events := d.events(rawjson.MembersOf(body))
	if a.Events != nil {
		events = a.Events(events)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for i, event := range events {
		if a.Before != nil {
			a.Before(i)
		}
		if a.Cut > 0 && i == a.Cut {
			panic(http.ErrAbortHandler) // which breaks the connection off
		}
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
}

// asked returns the blocks of an answer as they are in an answer to a request: reasoning comes
// encrypted only if that was asked for. The server remembers what it signs.
func (s *Server) asked(r *Request, content []session.Content) []session.Content {
	content = slices.Clone(content)
	call := slices.IndexFunc(content, func(c session.Content) bool { return c.ToolUse != nil })
	if call >= 0 && r.Dialect == "google" && is(`/models/gemini-[34]`, r.Path) { // which signs the first
		signed := wire.Residue{Envelope: wire.Object{{Name: "thoughtSignature", Value: wire.Quote("c2lnbmVk")}}}
		signed.Keep(&content[call].Extra, wire.Google)
	}
	for i := range content {
		t := content[i].Thinking
		if t == nil {
			continue
		}
		if r.Dialect == "openai" && !strings.Contains(string(rawjson.MembersOf(r.Body).Get("include")), "reasoning.encrypted_content") {
			plain := *t
			plain.Signature, content[i].Thinking = "", &plain
		}
		if t.Signature != "" {
			s.mu.Lock()
			if s.signed == nil {
				s.signed = make(map[string]string)
			}
			s.signed[t.Signature] = t.Content
			s.mu.Unlock()
		}
	}
	return content
}

// pieces cuts a text into a few pieces, between characters.
func pieces(text string) []string {
	const most = 5
	runes := []rune(text)
	var list []string
	size := max(1, (len(runes)+most-1)/most)
	for len(runes) > 0 {
		n := min(size, len(runes))
		list = append(list, string(runes[:n]))
		runes = runes[n:]
	}
	return list
}

// number makes ids that differ.
func number(prefix string, n int) string { return prefix + strconv.Itoa(n) }
