// Package offline is a built-in model. It needs no network and no key, and always gives
// the same answer to the same conversation: for demonstrations, for tests, and for a
// first try before anything is configured.
//
// It repeats what it hears, word by word, and can be asked for more. Each line of
// the last prompt that begins like this is obeyed:
//
//	think TEXT         thinks the text before it answers
//	say TEXT           answers with the text
//	call NAME {JSON}   calls a tool, if there is one of that name
//	repeat N TEXT      answers with the text N times
//	fail overflow      refuses the conversation as too long
//	fail limited       refuses to answer so soon
//	fail unavailable   is not there
//	fail broken        breaks off in the middle of its answer
//
// After the results of its calls it says what they were.
//
// Asked for a summary or a title (see package provider/digest), it answers with an
// extract: the first lines of the conversation. Then it obeys only the lines of the
// instructions that were given for the summary.
package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// Name is what messages call the provider and its model.
const (
	Name      = "offline"
	ModelName = "parrot"
)

// Model is the model. The zero value is ready.
type Model struct {
	// Window is how many tokens a request may have. A longer one is refused, to show
	// what an agent does about it. Default: 32,768.
	Window int
	// Delay is the time between two words.
	Delay time.Duration
}

const (
	defaultWindow = 32_768
	maxOutput     = 4096
	maxRepeats    = 100_000
)

// Info returns what is known about the model.
func (m *Model) Info() provider.Info {
	info := provider.Info{Provider: Name, Model: ModelName, Window: m.Window, MaxOutput: maxOutput}
	info.Retries = provider.Retries{Most: 1, First: 10 * time.Millisecond} // it fails in the same way again
	if info.Window <= 0 {
		info.Window = defaultWindow
	}
	return info
}

// Encode returns the request in the words of Chat Completions. With the key of its session two
// sessions that ask the same have two answers, which both count.
func (m *Model) Encode(r *provider.Request) (*provider.Encoded, error) {
	return openai.EncodeChatRequest(r, ModelName, provider.Family{CacheKey: 64}, nil)
}

// CountTokens returns the tokens of a request: there is one in every four bytes.
func (m *Model) CountTokens(_ context.Context, r *provider.Request) (int, error) {
	encoded, err := m.Encode(r)
	if err != nil {
		return 0, err
	}
	return tokens(len(encoded.Body)), nil
}

func tokens(bytes int) int { return (bytes + 3) / 4 }

// Stream answers.
func (m *Model) Stream(ctx context.Context, r *provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		encoded, err := m.Encode(r)
		if err != nil {
			yield(provider.Event{}, err)
			return
		}
		input := tokens(len(encoded.Body))
		if window := m.Info().Window; input > window {
			yield(provider.Event{}, refusal(provider.ErrOverflow, fmt.Sprintf("%d tokens do not fit a window of %d", input, window)))
			return
		}
		p := planOf(r, id(encoded.Body))
		if p.fail != nil && !p.failsMidway {
			yield(provider.Event{}, p.fail)
			return
		}
		s := answerer{ctx: ctx, delay: m.Delay, yield: yield, input: input, plan: p}
		s.run()
	}
}

func refusal(kind error, message string) error {
	return &provider.Error{Kind: kind, Provider: Name, Message: message}
}

// id names a response by its request.
func id(body []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(body) // cannot fail
	return fmt.Sprintf("offline_%016x", h.Sum64())
}

// plan lists what the model will think, call and say.
type plan struct {
	id          string
	thoughts    []string
	text        []string
	calls       []*session.ToolUseContent
	fail        error
	failsMidway bool // it fails in the middle
}

// planOf decides what to answer to a conversation.
func planOf(r *provider.Request, id string) plan {
	p := plan{id: id}
	if task, ok := digest.Read(r); ok {
		p.digestOf(task)
		return p
	}
	last := len(r.Entries) - 1
	for last >= 0 && r.Entries[last].Message != nil && r.Entries[last].Message.Role == session.RoleSystem {
		last--
	}
	if results := resultsAt(r.Entries[:last+1]); len(results) > 0 {
		p.text = results
		return p
	}
	if last < 0 || r.Entries[last].Message == nil {
		p.text = []string{"I am here."}
		return p
	}
	prompt := session.TextOf(r.Entries[last].Message.Content)
	heard := true
	for line := range strings.Lines(prompt) {
		heard = !p.follow(strings.TrimSpace(line), r.Tools) && heard
	}
	if heard {
		p.text = []string{"You said: " + strings.TrimSpace(prompt)}
	}
	return p
}

// resultsAt returns the answer to the results that a conversation ends with.
func resultsAt(entries []session.Entry) []string {
	names := make(map[string]string)
	var said []string
	for i := range entries {
		m := entries[i].Message
		if m == nil || m.Role != session.RoleTool && m.Role != session.RoleAssistant {
			said = nil
			continue
		}
		for _, c := range m.Content {
			switch {
			case c.ToolUse != nil:
				names[c.ToolUse.ID] = c.ToolUse.Name
			case c.ToolResult != nil:
				text := c.ToolResult.Content
				if text == "" {
					text = session.TextOf(c.ToolResult.Parts)
				}
				verb := "answered"
				if c.ToolResult.IsError {
					verb = "failed"
				}
				said = append(said, fmt.Sprintf("%s %s: %s", names[c.ToolResult.ToolUseID], verb, text))
			}
		}
		if m.Role == session.RoleAssistant {
			said = nil
		}
	}
	return said
}

// follow does what a line of a prompt asks for; false if it asks for nothing.
func (p *plan) follow(line string, tools []provider.Tool) bool {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(word) {
	case "think":
		p.thoughts = append(p.thoughts, rest)
	case "say":
		p.text = append(p.text, rest)
	case "repeat":
		count, text, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n > maxRepeats {
			return false
		}
		p.text = append(p.text, strings.TrimSpace(strings.Repeat(text+" ", n)))
	case "call":
		return p.call(rest, tools)
	case "fail":
		kind := failures[rest]
		if kind == nil {
			return false
		}
		p.fail, p.failsMidway = refusal(kind, "as you asked for"), errors.Is(kind, provider.ErrBroken)
	default:
		return false
	}
	return true
}

var failures = map[string]error{
	"overflow": provider.ErrOverflow, "limited": provider.ErrLimited,
	"unavailable": provider.ErrUnavailable, "broken": provider.ErrBroken,
}

// call plans a call, or says why there is none.
func (p *plan) call(rest string, tools []provider.Tool) bool {
	name, input, _ := strings.Cut(rest, " ")
	if name == "" {
		return false
	}
	if !slices.ContainsFunc(tools, func(t provider.Tool) bool { return t.Name == name }) {
		if !strings.HasPrefix(strings.TrimSpace(input), "{") {
			return false // just a word
		}
		p.text = append(p.text, "I have no tool "+name+".")
		return true
	}
	if input = strings.TrimSpace(input); input == "" {
		input = "{}"
	}
	raw := []byte(input)
	if !rawjson.Valid(raw) || rawjson.Kind(raw) != 'o' {
		p.text = append(p.text, "The input of "+name+" must be a JSON object.")
		return true
	}
	call := session.ToolUseJSON(p.id+"_"+strconv.Itoa(len(p.calls)+1), name, json.RawMessage(raw))
	p.calls = append(p.calls, call.ToolUse)
	return true
}

// answerer carries out a plan.
type answerer struct {
	ctx   context.Context
	delay time.Duration
	yield func(provider.Event, error) bool
	input int
	plan  plan

	content []session.Content // the answer so far
	output  int
}

func (s *answerer) run() {
	err := s.blocks()
	switch {
	case errors.Is(err, errLeft):
		return
	case err == nil:
		s.stop(provider.StopEndTurn, nil)
	case s.ctx.Err() != nil:
		s.stop(provider.StopCancelled, err)
	default:
		s.stop(provider.StopFailed, err)
	}
}

// errLeft: the caller wants no more.
var errLeft = errors.New("the caller stopped")

func (s *answerer) blocks() error {
	for _, thought := range s.plan.thoughts {
		err := s.words(provider.EventThinking, thought, func(text string) session.Content {
			return session.Thinking(text, "")
		})
		if err != nil {
			return err
		}
	}
	if text := strings.Join(s.plan.text, "\n"); text != "" {
		if s.plan.failsMidway {
			text = text[:len(text)/2]
		}
		if err := s.words(provider.EventText, text, session.Text); err != nil {
			return err
		}
	}
	if s.plan.failsMidway {
		return s.plan.fail
	}
	for _, call := range s.plan.calls {
		if err := s.call(call); err != nil {
			return err
		}
	}
	return nil
}

// words says a text word by word, as a block that grows.
func (s *answerer) words(kind provider.EventType, text string, block func(string) session.Content) error {
	at, said := len(s.content), 0
	for said < len(text) {
		next := said + strings.IndexAny(text[said+1:], " \n") + 1
		if next <= said {
			next = len(text)
		}
		if err := s.send(provider.Event{Type: kind, Block: at, Text: text[said:next]}); err != nil {
			return err
		}
		said = next
		s.content = append(s.content[:at], block(text[:said]))
	}
	s.output += tokens(len(text))
	return nil
}

func (s *answerer) call(call *session.ToolUseContent) error {
	block := len(s.content)
	input, err := call.InputJSON()
	if err != nil {
		return err
	}
	begun := &session.ToolUseContent{ID: call.ID, Name: call.Name}
	for _, e := range []provider.Event{
		{Type: provider.EventCallStart, Block: block, Call: begun},
		{Type: provider.EventCallDelta, Block: block, Text: string(input)},
		{Type: provider.EventCallEnd, Block: block, Call: call},
	} {
		if err := s.send(e); err != nil {
			return err
		}
	}
	s.content = append(s.content, session.Content{Type: session.ContentTypeToolUse, ToolUse: call})
	s.output += tokens(len(input))
	return nil
}

// send yields an event, after the time that a word takes.
func (s *answerer) send(e provider.Event) error {
	if s.delay > 0 {
		timer := time.NewTimer(s.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if !s.yield(e, nil) {
		return errLeft
	}
	return nil
}

// stop yields the end.
func (s *answerer) stop(reason string, cause error) {
	if cause != nil && len(s.content) == 0 {
		s.yield(provider.Event{}, cause)
		return
	}
	if reason == provider.StopEndTurn && len(s.plan.calls) > 0 {
		reason = provider.StopToolUse
	}
	usage := &session.Usage{Input: s.input, Output: s.output}
	if cause == nil && !s.yield(provider.Event{Type: provider.EventUsage, Usage: usage}, nil) {
		return
	}
	m := &session.MessageEntry{
		Role: session.RoleAssistant, Content: s.content, Provider: Name, Model: ModelName,
		ResponseID: s.plan.id, StopReason: reason, Usage: usage,
	}
	s.yield(provider.Event{Type: provider.EventStop, Response: &provider.Response{Message: m, Partial: cause != nil}}, cause)
}
