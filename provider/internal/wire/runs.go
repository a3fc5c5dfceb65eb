package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// Run is a message that is about to be sent. In a log, a model's message may be split
// into several, because the program that wrote it kept each call separately. To a
// provider that is one message, and its results follow it.
type Run struct {
	Message Object
	Model   bool
	Calls   bool // it calls tools
	Results bool // it brings results
	Thinks  bool // it may end with thinking

	// grown are lists of the message that other lists were added to. They are written at the
	// end: writing a list after each addition would take quadratic time.
	grown []grownList
}

type grownList struct {
	name     string
	elements []json.RawMessage
}

// Extend appends elements to a list of the message, or to a text that is there instead: see
// Blocks.
func (r *Run) Extend(list string, more []json.RawMessage) {
	for i := range r.grown {
		if g := &r.grown[i]; g.name == list {
			g.elements = append(g.elements, more...)
			return
		}
	}
	r.grown = append(r.grown, grownList{list, append(Blocks(r.Message.Get(list)), more...)})
}

// Elements returns a list of the message with everything that was added.
func (r *Run) Elements(list string) []json.RawMessage {
	for _, g := range r.grown {
		if g.name == list {
			return g.elements
		}
	}
	elements, _ := Elements(r.Message.Get(list))
	return elements
}

// SetElements replaces a list of the message.
func (r *Run) SetElements(list string, elements []json.RawMessage) {
	r.grown = slices.DeleteFunc(r.grown, func(g grownList) bool { return g.name == list })
	r.Message.Put(list, List(elements))
}

// json returns the message with everything that was added.
func (r *Run) json() json.RawMessage {
	for _, g := range r.grown {
		r.Message.Put(g.name, List(g.elements))
	}
	return r.Message.JSON()
}

// RunOf returns a message made from messages of a log.
func RunOf(message Object, parts []Message) Run {
	r := Run{Message: message, Model: parts[0].Role == session.RoleAssistant}
	for _, m := range parts {
		r.Thinks = r.Thinks || r.Model && endsThinking(m.Content)
		for i := range m.Content {
			r.Calls = r.Calls || m.Content[i].ToolUse != nil && r.Model
			r.Results = r.Results || m.Content[i].ToolResult != nil
		}
	}
	return r
}

// endsThinking reports whether blocks may end with thinking once they are written: the
// encoder may leave out some blocks, but never calls or texts that are not blank.
func endsThinking(blocks []session.Content) bool {
	for i := len(blocks) - 1; i >= 0; i-- {
		switch c := &blocks[i]; {
		case c.Thinking != nil:
			return true
		case c.ToolUse != nil, c.Text != nil && !IsBlank(c.Text.Content):
			return false
		}
	}
	return false
}

// Runs collects messages in order, and joins those that a provider would refuse as two.
type Runs struct {
	List []Run
	// Verbatim keeps messages as they are, even if the provider would refuse them.
	Verbatim bool
	// ModelsTurns says that the provider refuses a model's message with calls right after
	// another.
	ModelsTurns bool
	// IsThought recognises a block of thinking. Thinking is left out if nothing that the
	// model said or did follows it, because the provider would refuse it.
	IsThought func(block Object) bool

	blocks string // the member that has the blocks of a message
}

// Last returns the last message, or nil.
func (r *Runs) Last() *Run {
	if len(r.List) == 0 {
		return nil
	}
	return &r.List[len(r.List)-1]
}

// Encode adds the messages of a list, those that belong together as one. encode returns nil if
// nothing is left of them.
func (r *Runs) Encode(list []Message, format, blocks string, encode func([]Message) (Object, error)) error {
	for _, parts := range Joined(list, format) {
		message, err := encode(parts)
		if err != nil {
			return fmt.Errorf("%s: entry %s: %w", format, parts[0].Entry, err)
		}
		if message != nil {
			r.Add(RunOf(message, parts), blocks)
		}
	}
	return nil
}

// Joins reports whether a message must be joined to the last.
func (r *Runs) Joins(next Run) bool {
	last := r.Last()
	if last == nil || r.Verbatim || last.Model != next.Model {
		return false
	}
	return r.ModelsTurns && last.Model || last.Calls || last.Results && next.Results
}

// Add adds a message, or appends its blocks to those of the last message, if the two
// must be joined.
func (r *Runs) Add(next Run, list string) {
	r.blocks = list
	if !next.Model {
		r.dropThoughts()
	}
	if !r.Joins(next) {
		r.List = append(r.List, next)
		return
	}
	last := r.Last()
	last.Extend(list, Blocks(next.Message.Get(list)))
	last.Join(next)
}

// dropThoughts leaves out the thinking that the model's last messages end with.
func (r *Runs) dropThoughts() {
	for !r.Verbatim && r.IsThought != nil && len(r.List) > 0 && r.Last().Thinks {
		last := r.Last()
		last.Thinks = false
		had := last.Elements(r.blocks)
		n := len(had)
		for n > 0 && r.IsThought(Members(had[n-1])) {
			n--
		}
		switch {
		case n == 0 && len(had) > 0:
			r.List = r.List[:len(r.List)-1]
		case n < len(had):
			last.SetElements(r.blocks, had[:n])
		}
	}
}

// Join makes a message part of this one. Members that only the other had are kept.
func (r *Run) Join(next Run) {
	for _, f := range next.Message {
		if !r.Message.Has(f.Name) {
			r.Message.Put(f.Name, f.Value)
		}
	}
	r.Calls, r.Results, r.Thinks = r.Calls || next.Calls, r.Results || next.Results, next.Thinks || r.Thinks
}

// Blocks returns a content as blocks. A string, which some formats accept in place
// of a list, is a text.
func Blocks(raw json.RawMessage) []json.RawMessage {
	if list, ok := Elements(raw); ok {
		return list
	}
	var o Object
	o.SetStr("type", "text")
	o.Put("text", raw)
	return []json.RawMessage{o.JSON()}
}

// JSON returns the messages as a list.
func (r *Runs) JSON() json.RawMessage {
	r.dropThoughts()
	list := make([]json.RawMessage, len(r.List))
	for i := range r.List {
		list[i] = r.List[i].json()
	}
	return List(list)
}
