package sdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

const (
	key   = "no-key-at-all"
	model = "test-model"
)

// official is an SDK, and the dialect that it speaks.
type official struct {
	dialect string // as client.Options.Provider has it
	// decode is our reading of the dialect.
	decode func(body []byte) (*provider.Body, error)
	// read has the SDK read a whole response.
	read func(body []byte) (*answer, error)
	// open has the SDK read a request of ours into its own types.
	open func(s *providertest.Server, request []byte) (chat, error)
	// start begins a conversation with the SDK's own functions. The model may call
	// the tool "read".
	start func(s *providertest.Server, prompt string) (chat, error)
	// failed tells what the SDK knows about an error: the status of HTTP, and the
	// provider's words for it, anywhere.
	failed func(err error) (status int, words string)
	// example is a response as the provider documents it, with thoughts and calls.
	example string
	// allowed are the differences between a request of ours and what the SDK sends
	// after it has read it. There are no others.
	allowed []difference
}

// chat is a conversation that an SDK has.
type chat interface {
	// ask sends the conversation so far, streams the answer and adds it.
	ask() (*answer, error)
	// say adds a message of the user's.
	say(text string)
	// result adds what the calls of the last answer returned.
	result(results ...result)
}

type result struct {
	call call
	text string
	bad  bool
}

// answer is what a model said, as an SDK or a client of ours understood it.
type answer struct {
	ID, Model string
	Thinking  string
	Signature string // of the thinking
	Text      string
	Calls     []call
	Stop      string // in our words
	Usage     session.Usage
}

type call struct {
	ID, Name string
	Input    string // canonical JSON
}

// difference is a change that an SDK makes to what it reads.
type difference struct {
	what string
	// apply makes the change, and reports whether there was anything to change.
	apply func(request map[string]any) bool
}

var sdks = []official{anthropicSDK, chatSDK, responsesSDK, googleSDK}

// each runs a test with every SDK.
func each(t *testing.T, test func(t *testing.T, o *official)) {
	t.Helper()
	for i := range sdks {
		t.Run(sdks[i].dialect, func(t *testing.T) { test(t, &sdks[i]) })
	}
}

// connect returns our client of a server.
func connect(t *testing.T, s *providertest.Server, dialect string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{
		Provider: dialect, Model: model, BaseURL: base(s, dialect), Key: client.StaticKey(key),
		HTTP: s.Client(), Retries: -1, Timeouts: client.Timeouts{Retry: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// base is where our client finds a server. The SDKs of Anthropic and of Google add
// the version themselves, and our client of Google does not.
func base(s *providertest.Server, dialect string) string {
	if dialect == "google" {
		return s.URL + "/v1beta"
	}
	return s.URL
}

// talk returns a server that gives answers in turn, the last one for ever.
func talk(t *testing.T, answers ...session.MessageEntry) *providertest.Server {
	t.Helper()
	next := 0
	return providertest.New(t, func(*providertest.Request) providertest.Answer {
		if len(answers) == 0 {
			return providertest.Answer{}
		}
		a := answers[min(next, len(answers)-1)]
		next++
		return providertest.Answer{Message: a}
	})
}

// ours is a message of ours as an answer.
func ours(t *testing.T, m *session.MessageEntry) *answer {
	t.Helper()
	a := &answer{ID: m.ResponseID, Model: m.Model, Stop: m.StopReason}
	if m.Usage != nil {
		a.Usage = session.Usage{
			Input: m.Usage.Input, Output: m.Usage.Output, CacheRead: m.Usage.CacheRead,
			CacheWrite: m.Usage.CacheWrite, Reasoning: m.Usage.Reasoning,
		}
	}
	for _, c := range m.Content {
		switch {
		case c.Thinking != nil:
			a.Thinking += c.Thinking.Content
			a.Signature += c.Thinking.Signature
		case c.Text != nil:
			a.Text += c.Text.Content
		case c.ToolUse != nil:
			input, err := c.ToolUse.InputJSON()
			if err != nil {
				t.Fatal(err)
			}
			a.Calls = append(a.Calls, call{c.ToolUse.ID, c.ToolUse.Name, canonical(input)})
		}
	}
	return a
}

// canonical returns JSON with sorted members and without white space, so that equal
// values are equal texts.
func canonical(raw []byte) string {
	v, err := parse(raw)
	if err != nil {
		return fmt.Sprintf("%s is no JSON: %v", raw, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// parse reads JSON. Numbers keep their exact value, in one spelling.
func parse(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v, exact), nil
}

// numbers replaces the numbers of a value.
func numbers(v any, replace func(json.Number) json.Number) any {
	switch v := v.(type) {
	case json.Number:
		return replace(v)
	case []any:
		for i := range v {
			v[i] = numbers(v[i], replace)
		}
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name], replace)
		}
	}
	return v
}

func exact(n json.Number) json.Number {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		f, _ := n.Float64() // fractions are floats everywhere
		text, _ := json.Marshal(f)
		return json.Number(text)
	}
	return json.Number(r.Num().String())
}

// round makes floats of the numbers at a path, as an SDK does that keeps the
// arguments of a call in a map. It reports whether one of them changed.
func round(request map[string]any, path ...string) bool {
	changed := false
	for _, o := range objects(request, path...) {
		numbers(o, func(n json.Number) json.Number {
			f, _ := n.Float64() // it is a number
			text, _ := json.Marshal(f)
			rounded := exact(json.Number(text))
			changed = changed || rounded != n
			return rounded
		})
	}
	return changed
}

// object parses a JSON object.
func object(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	v, err := parse(raw)
	o, ok := v.(map[string]any)
	if err != nil || !ok {
		t.Fatalf("%s is no object: %v", raw, err)
	}
	return o
}

// same fails the test if two answers differ.
func same(t *testing.T, what string, sdk, our *answer) {
	t.Helper()
	if diff := cmp.Diff(sdk, our, cmp.AllowUnexported(answer{})); diff != "" {
		t.Errorf("%s (-SDK +ours):\n%s", what, diff)
	}
}

func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // a string cannot fail
	return raw
}

// objects returns the objects at a path of members. A list on the way stands for all
// of its elements.
func objects(v any, path ...string) []map[string]any {
	switch v := v.(type) {
	case []any:
		var all []map[string]any
		for _, element := range v {
			all = append(all, objects(element, path...)...)
		}
		return all
	case map[string]any:
		if len(path) == 0 {
			return []map[string]any{v}
		}
		return objects(v[path[0]], path[1:]...)
	}
	return nil
}

// diff lists where two values differ.
func diff(at string, ours, theirs any) []string {
	var all []string
	switch a := ours.(type) {
	case map[string]any:
		if b, ok := theirs.(map[string]any); ok {
			names := maps.Clone(a)
			maps.Copy(names, b)
			for name := range names {
				all = append(all, diff(at+"."+name, member(a, name), member(b, name))...)
			}
			return all
		}
	case []any:
		if b, ok := theirs.([]any); ok && len(a) == len(b) {
			for i := range a {
				all = append(all, diff(fmt.Sprint(at, "[", i, "]"), a[i], b[i])...)
			}
			return all
		}
	}
	if a, b := show(ours), show(theirs); a != b {
		all = append(all, fmt.Sprintf("%s: we have %.300s, the SDK has %.300s", at, a, b))
	}
	return all
}

// absent is what an object has under a name that it does not have.
type absent struct{}

func member(o map[string]any, name string) any {
	if v, ok := o[name]; ok {
		return v
	}
	return absent{}
}

func show(v any) string {
	if v == (absent{}) {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
