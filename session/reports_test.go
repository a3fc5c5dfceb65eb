package session_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// biller writes a conversation in which some messages have counts, and responses
// reports, each different from all others. Things are changed and taken back, and
// results come late or for no call.
type biller struct {
	scribe
	count  int
	open   []string // calls without a result
	edited map[string]bool
}

func (b *biller) step(t *rapid.T) {
	b.count++
	text := fmt.Sprint("text ", b.count)
	switch rapid.IntRange(0, 15).Draw(t, "step") {
	case 0, 1:
		b.put(t, session.RoleUser, session.Text(text))
	case 2, 3:
		b.respond(t, "", session.Text(text))
	case 4, 5:
		b.call(t, "")
	case 6: // a response in two messages
		response := fmt.Sprint("r", b.count)
		b.call(t, response)
		b.count++
		b.call(t, response)
	case 7, 8, 9:
		b.answer(t)
	case 10:
		b.answerNobody(t)
	case 11:
		b.edit(t)
	case 12:
		if plan, err := b.PlanCompaction(session.PlanOptions{KeepTokens: rapid.IntRange(0, 8).Draw(t, "keep"), Count: one}); err == nil {
			b.compact(text, plan.FirstKept)
		}
	case 13:
		b.merge(t)
	case 14, 15:
		b.takeBack(t)
	}
}

// put appends a message, perhaps with a count of its own.
func (b *biller) put(t *rapid.T, role session.MessageRole, content ...session.Content) {
	b.add(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: content, Tokens: b.tokens(t)}})
}

func (b *biller) tokens(t *rapid.T) *int {
	if !rapid.Bool().Draw(t, "counted") {
		return nil
	}
	n := b.count
	return &n
}

// respond appends a response, perhaps with a report.
func (b *biller) respond(t *rapid.T, response string, content ...session.Content) {
	m := &session.MessageEntry{Role: session.RoleAssistant, Content: content, ResponseID: response, Tokens: b.tokens(t)}
	if rapid.Bool().Draw(t, "reported") {
		m.Usage = &session.Usage{Input: 1000 * b.count, Output: 100}
	}
	b.add(session.Entry{Type: session.TypeMessage, Message: m})
}

func (b *biller) call(t *rapid.T, response string) {
	var ids []string
	for i := range rapid.IntRange(1, 2).Draw(t, "calls") {
		ids = append(ids, fmt.Sprint("c", b.count, "-", i))
	}
	b.respond(t, response, calls(ids...)...)
	b.open = append(b.open, ids...)
}

// answer answers one or two of the calls that wait, in any order.
func (b *biller) answer(t *rapid.T) {
	var ids []string
	for range rapid.IntRange(1, 2).Draw(t, "answers") {
		if len(b.open) > 0 {
			at := rapid.IntRange(0, len(b.open)-1).Draw(t, "answered")
			ids = append(ids, b.open[at])
			b.open = slices.Delete(b.open, at, at+1)
		}
	}
	if len(ids) > 0 {
		b.put(t, session.RoleTool, results(ids...)...)
	}
}

// answerNobody brings a result of no call, perhaps beside one that is right, as
// other programs write it.
func (b *biller) answerNobody(t *rapid.T) {
	content := results("nobody")
	if rapid.Bool().Draw(t, "beside another") && len(b.open) > 0 {
		content = append(content, results(b.open[0])...)
		b.open = b.open[1:]
	}
	leaf := b.LeafID()
	if leaf == "" {
		return
	}
	e := session.Entry{Type: session.TypeMessage, ID: session.NewID(), ParentID: &leaf, Timestamp: time.Unix(1, 0), Message: &session.MessageEntry{Role: session.RoleTool, Content: content, Tokens: b.tokens(t)}}
	mustDo(b.t, b.Graft(e))
}

// edit changes a message that nobody changed before.
func (b *biller) edit(t *rapid.T) {
	onPath := entryIDs(mustGet(b.Forward(""))(b.t))
	if in := b.at("").Compaction; in != "" { // what a cut keeps from before it is left alone
		onPath = onPath[slices.Index(onPath, mustGet(b.Entry(in))(b.t).Compaction.FirstKeptEntryID):]
	}
	sent := slices.DeleteFunc(mustGet(b.GetContext())(b.t), func(e session.Entry) bool {
		return e.Message == nil || !slices.Contains(onPath, e.ID) || b.edited[e.ID]
	})
	if len(sent) == 0 {
		return
	}
	target := rapid.SampledFrom(sent).Draw(t, "edited").ID
	b.edited[target] = true
	replacement := []session.Content{session.Text(fmt.Sprint("edited ", b.count))}
	if rapid.Bool().Draw(t, "clears") {
		replacement = nil
	}
	mustGet(b.AppendEntry(session.ContextEdit(target, replacement...)))(b.t)
}

func (b *biller) merge(t *rapid.T) {
	leaf := b.LeafID()
	if leaf == "" {
		return
	}
	b.respond(t, "", session.Text(fmt.Sprint("aside ", b.count)))
	picked := b.LeafID()
	b.branch(leaf)
	mustGet(b.AppendEntry(session.Merge(picked, "", picked)))(b.t)
}

// takeBack takes back the last change that is in force, or the last revert.
func (b *biller) takeBack(t *rapid.T) {
	path := mustGet(b.Forward(""))(b.t)
	redo := rapid.Bool().Draw(t, "redo")
	reverted := make(map[string]bool)
	for _, e := range slices.Backward(path) {
		switch {
		case reverted[e.ID]:
		case e.Revert != nil && redo, e.ContextEdit != nil, e.Compaction != nil, e.Merge != nil:
			mustGet(b.AppendEntry(session.Revert(e.ID)))(b.t)
			return
		case e.Revert != nil:
			reverted[e.Revert.TargetID] = true
		}
	}
}

// counted is the size of a context, found out by building the context of every
// response again.
func (b *biller) counted(t *rapid.T, c *session.Context) (tokens, uncounted int) {
	path := mustGet(b.Forward(c.Leaf))(b.t)
	begin := len(c.Entries)
	for i := range slices.Backward(c.Entries) {
		if first := b.firstOf(path, c, i); first >= 0 && b.sawSame(path, c, c.Entries[first].ID, first) {
			tokens, begin = c.Entries[i].Message.Usage.Context(), i+1
			break
		}
		if i == 0 {
			begin = 0
		}
	}
	for _, e := range c.Entries[min(begin, len(c.Entries)):] {
		n := -1
		if has, _ := b.Has(e.ID); has && e.Message != nil {
			stored := mustGet(b.Entry(e.ID))(b.t)
			if stored.Message.Tokens != nil && slices.Equal(view([]session.Entry{stored}), view([]session.Entry{e})) {
				n = *stored.Message.Tokens
			}
		}
		if n >= 0 {
			tokens += n
		} else {
			uncounted++
		}
	}
	return tokens, uncounted
}

// firstOf returns where the response begins whose report the entry at an index has,
// or -1 if it has none, is not in its place, or something of it was changed.
func (b *biller) firstOf(path []session.Entry, c *session.Context, i int) int {
	e := &c.Entries[i]
	onPath := slices.ContainsFunc(path, func(p session.Entry) bool { return p.ID == e.ID })
	if e.Message == nil || e.Message.Usage == nil || !onPath || c.Edited[e.ID] != "" {
		return -1
	}
	for _, p := range path {
		if p.Message != nil && p.Message.ResponseID != "" && p.Message.ResponseID == e.Message.ResponseID && p.ID != e.ID {
			if c.Edited[p.ID] != "" {
				return -1
			}
			if at := slices.IndexFunc(c.Entries, func(x session.Entry) bool { return x.ID == p.ID }); at >= 0 {
				return min(i, at)
			}
		}
	}
	return i
}

// sawSame reports whether the response that begins with an entry was asked for with
// what stands before it now.
func (b *biller) sawSame(path []session.Entry, c *session.Context, id string, at int) bool {
	n := slices.IndexFunc(path, func(p session.Entry) bool { return p.ID == id })
	if n == 0 {
		return at == 0
	}
	then := b.at(path[n-1].ID)
	return len(then.Entries) == at && (at == 0 || then.Fingerprints[at-1] == c.Fingerprints[at-1])
}

// What was reported and recorded is used where it is the size of what is sent, and
// nowhere else.
func TestCountsAreOfWhatIsSent(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(rt *rapid.T) {
		s := mustGet(session.Create(t.Context(), memory.New(nil), session.Header{}, nil))(t)
		defer s.Close()
		b := &biller{scribe: scribe{s, t}, edited: make(map[string]bool)}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			b.step(rt)
			b.at("") // the next one is made of it if it can be
		}
		c := b.at("")
		tokens, uncounted := b.counted(rt, c)
		if c.Tokens != tokens || c.Uncounted != uncounted {
			rt.Fatalf("%d tokens and %d uncounted, want %d and %d\npath: %s\ncontext: %s", c.Tokens, c.Uncounted, tokens, uncounted,
				encodeAll(t, mustGet(b.Forward(""))(t)), encodeAll(t, c.Entries))
		}
	})
}

func encodeAll(t *testing.T, entries []session.Entry) (all string) {
	for _, e := range entries {
		all += "\n" + encode(t, e)
	}
	return all
}
