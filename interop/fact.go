package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// The kinds of facts.
const (
	factText     = "text"
	factThinking = "thinking"
	factImage    = "image"
	factCall     = "call"
	factResult   = "result"
)

// fact is one thing that a conversation says, in no format: what programs are asked
// about must not depend on how they write it down.
type fact struct {
	Kind string
	Role string
	Text string // of a text, a thought or a result
	ID   string // of a call, and of the call that a result answers
	Name string // of a call
	Args string // of a call, as canonical JSON

	any bool // of a result that is wanted: whatever it says will do
}

func (f fact) String() string {
	switch f.Kind {
	case factCall:
		return fmt.Sprintf("the call %s(%s)", f.Name, f.Args)
	case factResult:
		return fmt.Sprintf("the result %q of %s", short(f.Text), f.ID)
	case factImage:
		return "the image"
	}
	return fmt.Sprintf("the %s %q", f.Kind, short(f.Text))
}

func short(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

// canonical is JSON in a form in which equal values are equal texts. What is not JSON
// stays as it is.
func canonical(text []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return string(text)
	}
	return mustJSON(v)
}

// factsOf returns what the entries of a context say. Thoughts are left out: they belong
// to the model that had them, and other models are not sent them. So are instructions: they
// belong to the program that gave them, and every other one has its own.
func factsOf(entries []session.Entry) []fact {
	var facts []fact
	for i := range entries {
		e := &entries[i]
		if e.Message == nil {
			if text := e.Summary(); text != "" {
				facts = append(facts, fact{Kind: factText, Text: text})
			}
			continue
		}
		if e.Message.Role == session.RoleSystem {
			continue
		}
		made := strings.HasPrefix(e.ID, session.InterruptedPrefix)
		for _, b := range e.Message.Content {
			facts = append(facts, factsOfBlock(e.Message.Role, b, made)...)
		}
	}
	return facts
}

func factsOfBlock(role string, b session.Content, made bool) []fact {
	switch {
	case b.Text != nil && b.Text.Content != "":
		return []fact{{Kind: factText, Role: role, Text: b.Text.Content}}
	case b.Image != nil:
		return []fact{{Kind: factImage, Role: role}}
	case b.ToolUse != nil:
		return []fact{{Kind: factCall, Role: role, ID: b.ToolUse.ID, Name: b.ToolUse.Name, Args: canonical([]byte(mustJSON(b.ToolUse.Input)))}}
	case b.ToolResult != nil:
		return []fact{{Kind: factResult, Role: role, ID: b.ToolResult.ToolUseID, Text: b.ToolResult.Content, any: made}}
	}
	return nil
}

// compare returns what is wrong with what a program has of a conversation: every fact
// must be there, once, in order. A program may say more: where it is, what day it is.
func compare(want, got []fact) (wrong []string) {
	c := comparison{got: got, calls: make(map[string]int)}
	last, lastFact := -1, fact{}
	var open []fact // results, which must come before the next fact of another kind
	settle := func(before int) {
		for _, r := range open {
			wrong = append(wrong, c.result(r, before)...)
		}
		open = nil
	}
	for _, w := range want {
		if w.Kind == factResult {
			open = append(open, w)
			continue
		}
		at, n := c.find(w, last)
		switch {
		case n == 0:
			wrong = append(wrong, fmt.Sprintf("%v is missing", w))
			continue
		case n > 1 && w.Kind != factImage:
			wrong = append(wrong, fmt.Sprintf("%v is there %d times", w, n))
		case at <= last && !(at == last && w.Kind == factText):
			wrong = append(wrong, fmt.Sprintf("%v comes before %v", w, lastFact))
		}
		settle(at)
		if w.Kind == factCall {
			c.calls[w.ID] = at
		}
		last, lastFact = at, w
	}
	settle(len(got))
	return wrong
}

// comparison is the state of compare.
type comparison struct {
	got   []fact
	calls map[string]int // where the calls are, by the id that they have in Coppice
}

// find returns where a fact is, preferably after a place, and how often it is there.
func (c *comparison) find(w fact, after int) (at, n int) {
	at = -1
	for i, g := range c.got {
		if !g.holds(w) {
			continue
		}
		n++
		if at < 0 || at <= after && i > after {
			at = i
		}
	}
	return at, n
}

// holds reports whether a program's fact says what is wanted.
func (f fact) holds(w fact) bool {
	if f.Kind != w.Kind {
		return false
	}
	switch f.Kind {
	case factText:
		return strings.Contains(f.Text, strings.TrimSpace(w.Text)) && (w.Role == "" || sameSide(f.Role, w.Role))
	case factCall:
		return f.Name == w.Name && f.Args == w.Args
	}
	return true
}

// sameSide reports whether two roles are the same side of the conversation.
func sameSide(a, b string) bool {
	answers := func(role string) bool { return role == "assistant" || role == "model" }
	return answers(a) == answers(b)
}

// result checks the result of a call. There must be one, after its call and before a
// place.
func (c *comparison) result(w fact, before int) []string {
	call, ok := c.calls[w.ID]
	if !ok {
		return nil // the call is missing, and that was said
	}
	n := 0
	var wrong []string
	for i, g := range c.got {
		if g.Kind != factResult || g.ID != c.got[call].ID {
			continue
		}
		n++
		switch {
		case !w.any && !strings.Contains(g.Text, strings.TrimSpace(w.Text)):
			wrong = append(wrong, fmt.Sprintf("%v is %q", w, short(g.Text)))
		case i < call || i > before:
			wrong = append(wrong, fmt.Sprintf("%v is not with its call", w))
		}
	}
	if n != 1 {
		wrong = append(wrong, fmt.Sprintf("%v is there %d times", w, n))
	}
	return wrong
}

// unpaired returns the calls without a result and the results without a call, which no
// provider accepts in a request.
func unpaired(sent []fact) (wrong []string) {
	calls, results := make(map[string]int), make(map[string]int)
	for _, g := range sent {
		switch g.Kind {
		case factCall:
			calls[g.ID]++
		case factResult:
			results[g.ID]++
		}
	}
	for _, g := range sent {
		switch {
		case g.Kind == factCall && calls[g.ID] > 1:
			wrong = append(wrong, fmt.Sprintf("the id of %v is used %d times", g, calls[g.ID]))
		case g.Kind == factCall && results[g.ID] == 0:
			wrong = append(wrong, fmt.Sprintf("%v has no result", g))
		case g.Kind == factResult && calls[g.ID] == 0:
			wrong = append(wrong, fmt.Sprintf("%v has no call", g))
		}
	}
	return wrong
}
