package transcript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// # What an export keeps
//
// A writer lists what its format cannot hold. compare makes sure that the list is
// complete: it compares what was read back with what a model would be sent, text by
// text, call by call and result by result.
//
// Formats differ in how they cut a conversation into messages. Some join replies, some have
// one text in each message, some put the calls after the text or the pictures beside it, and
// most have ids of their own. None of that changes the conversation, so we do not compare
// message by message. We compare the order of the texts with their speakers, the order of the
// calls with their arguments, the answer that each call got, and between which calls a user
// spoke. Each of them is walked once, so comparing takes time in proportion to the
// conversation.

// compare returns what a written conversation lacks beyond the losses that its writer
// listed. It is an error if a text, a call or a result is missing, changed, or added.
// Smaller things, such as a tool's name, are losses.
func compare(s *Script, out *Output, read []session.Entry) ([]Loss, error) {
	got := inventoryOf(read)
	want := inventoryOf(s.Context.Entries)
	losses, err := want.lossesIn(got, out.Losses)
	if err == nil {
		return losses, nil
	}
	if losesShape(s, out) { // all messages were written, but not what shortens them
		whole := slices.DeleteFunc(slices.Clone(s.Path), func(e session.Entry) bool { return shapes(&e) })
		if losses, err = inventoryOf(whole).lossesIn(got, slices.Concat(out.Losses, edited(s))); err == nil {
			return losses, nil
		}
	}
	for _, more := range [][]Loss{append(keptBefore(s), edited(s)...), cutElsewhere(s)} {
		if losses, err := want.lossesIn(got, slices.Concat(out.Losses, more)); err == nil && len(more) > 0 {
			return append(more, losses...), nil
		}
	}
	return nil, err
}

// edited returns the loss of the edits of a context: the edited messages are written in
// their original form.
func edited(s *Script) []Loss {
	var losses []Loss
	for _, id := range slices.Sorted(maps.Keys(s.Context.Edited)) {
		losses = append(losses, Loss{EntryID: id, What: "edit", Why: "everything is sent there as it was"})
	}
	return losses
}

// cutElsewhere returns the loss of the exact place where a compaction cuts. In a format
// that marks it differently, the prompt of the cut turn may be sent again.
func cutElsewhere(s *Script) []Loss {
	if s.Context.Compaction == "" {
		return nil
	}
	return []Loss{{EntryID: s.Context.Compaction, What: "where a compaction cuts", Why: "the prompt before it is sent again there"}}
}

// keptBefore returns the loss of the messages that a compaction keeps: they are written
// before the summary, where the program ignores them.
func keptBefore(s *Script) []Loss {
	var losses []Loss
	if s.Context.Compaction == "" {
		return nil
	}
	before := make(map[string]bool)
	for i := range s.Path {
		if s.Path[i].ID == s.Context.Compaction {
			break
		}
		before[s.Path[i].ID] = true
	}
	for i := range s.Context.Entries {
		if id := s.Context.Entries[i].ID; before[strings.TrimSuffix(id, "/results")] {
			losses = append(losses, Loss{EntryID: id, What: "message kept by a compaction", Why: "nothing before a summary is sent there"})
		}
	}
	return losses
}

// losesShape reports whether a writer said that it lost what decides which messages
// count: a compaction, an edit, or content of another branch.
func losesShape(s *Script, out *Output) bool {
	lost := make(map[string]bool)
	for _, l := range out.Losses {
		lost[l.EntryID] = true
	}
	for i := range s.Path {
		if e := &s.Path[i]; lost[e.ID] && shapes(e) {
			return true
		}
	}
	return false
}

// shapes reports whether an entry decides which messages count.
func shapes(e *session.Entry) bool {
	return e.Compaction != nil || e.BranchSummary != nil || e.Merge != nil || e.ContextEdit != nil || e.Revert != nil
}

// passage is a text or a medium that was sent or shown.
type passage struct {
	entry string // that contains it
	role  string
	text  string
	calls int // before it
	// summary: the text replaces others. Formats without summaries put words around it.
	summary bool
	// shown: an entry begins here, or something was shown. Where that is lost, a text
	// may replace it.
	shown bool
}

// answeredCall is a call and its answer.
type answeredCall struct {
	entry, name string
	input       json.RawMessage
	result      *session.ToolResultContent // nil if there is none
	answer      string                     // the entry that the result is in
	made        bool                       // the result was made up: there was none
	shared      bool                       // another call has the same id, so that either may have the result
}

// inventory lists the content of a conversation.
type inventory struct {
	words []passage // of users and models
	// asides are instructions, which many formats keep beside the messages, and
	// messages of roles that not every format has.
	asides   []passage
	thoughts []passage
	media    []passage // pictures, recordings and files, those in results too
	calls    []answeredCall

	// odd are messages that other formats cannot express: calls that no model made or
	// that have no id, and blocks that no reader understood.
	odd   map[string]bool
	ids   map[string]int          // the last call of each id
	open  session.OpenCalls[int]  // their indexes in calls
	early map[string]answeredCall // results that come before their calls
}

func inventoryOf(entries []session.Entry) *inventory {
	h := &inventory{odd: make(map[string]bool), ids: make(map[string]int), early: make(map[string]answeredCall)}
	for i := range entries {
		e := &entries[i]
		h.words = append(h.words, passage{entry: e.ID, shown: true})
		switch {
		case e.Message != nil:
			h.odd[e.ID] = len(e.Message.Content) == 0
			for j := range e.Message.Content {
				h.add(e, &e.Message.Content[j])
			}
		case e.Compaction != nil:
			h.addText(&h.words, passage{entry: e.ID, role: session.RoleUser, text: e.Compaction.Summary, summary: true})
		case e.BranchSummary != nil:
			h.addText(&h.words, passage{entry: e.ID, role: session.RoleUser, text: e.BranchSummary.Summary, summary: true})
		case e.Merge != nil:
			h.addText(&h.words, passage{entry: e.ID, role: session.RoleUser, text: e.Merge.Summary, summary: true})
		}
	}
	return h
}

func (h *inventory) addText(list *[]passage, p passage) {
	if p.text = plain(p.text); p.text != "" {
		p.calls = len(h.calls)
		*list = append(*list, p)
	}
}

func (h *inventory) add(e *session.Entry, c *session.Content) {
	p := passage{entry: e.ID, role: e.Message.Role}
	switch {
	case c.Text != nil:
		p.text = c.Text.Content
		if p.role != session.RoleUser && p.role != session.RoleAssistant {
			h.addText(&h.asides, p)
			return
		}
		h.addText(&h.words, p)
	case c.Thinking != nil:
		p.text = c.Thinking.Content
		h.addText(&h.thoughts, p)
	case c.ToolUse != nil:
		h.odd[e.ID] = h.odd[e.ID] || e.Message.Role != session.RoleAssistant || c.ToolUse.ID == ""
		h.call(e, c.ToolUse)
	case c.ToolResult != nil:
		h.answer(e, c.ToolResult)
	default:
		h.odd[e.ID] = h.odd[e.ID] || c.Raw != nil
		h.show(e, c)
	}
}

func (h *inventory) call(e *session.Entry, t *session.ToolUseContent) {
	input, _ := t.InputJSON() // no format keeps arguments that are not JSON
	call := answeredCall{entry: e.ID, name: t.Name, input: input}
	if early, ok := h.early[t.ID]; ok {
		call.result, call.answer = early.result, early.answer
		delete(h.early, t.ID)
	} else {
		h.open.Call(t.ID, len(h.calls))
	}
	if other, ok := h.ids[t.ID]; ok {
		call.shared, h.calls[other].shared = true, true
	}
	h.ids[t.ID] = len(h.calls)
	h.calls = append(h.calls, call)
}

// answer gives a result to its call. A result without a call is never sent to a model,
// and does not count.
func (h *inventory) answer(e *session.Entry, r *session.ToolResultContent) {
	for i := range r.Parts {
		h.show(e, &r.Parts[i])
	}
	at, ok := h.open.Result(r.ToolUseID)
	if !ok {
		h.early[r.ToolUseID] = answeredCall{result: r, answer: e.ID}
		return
	}
	h.calls[at].result, h.calls[at].answer = r, e.ID
	h.calls[at].made = strings.HasPrefix(e.ID, session.InterruptedPrefix)
}

// show takes a picture, a recording or a file into account.
func (h *inventory) show(e *session.Entry, c *session.Content) {
	if key := mediaKey(c); key != "" {
		h.addText(&h.media, passage{entry: e.ID, text: key})
		h.words = append(h.words, passage{entry: e.ID, shown: true})
	}
}

// mediaKey identifies what is shown. It is "" for anything else.
func mediaKey(c *session.Content) string {
	from := c.Source()
	if from == nil {
		return ""
	}
	return string(c.Type) + " " + from.MediaType + " " + from.Data
}

func plain(text string) string { return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")) }
