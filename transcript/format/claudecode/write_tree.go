package claudecode

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// # How a tree is written
//
// The program's files are trees, and so every branch of a session is written. Four
// things of the program decide how:
//
//   - It continues from the last line of the file that no other line follows. So the
//     live path is written last, and what follows the session's leaf is left out: the
//     program would continue from there.
//   - It takes all results of a call on the path into the path, and all lines with the
//     message id of a reply. So no other branch begins with them.
//   - It cuts the file at its last compaction, on whatever branch that is. So only the
//     live path has any, and other branches have the summaries.
//   - It makes branches only where a prompt was edited; that is how readers distinguish
//     branches from parallel calls. A branch that begins with something else is written
//     as if the prompt before it had been given again.

// entryNode is an entry that has lines.
type entryNode struct {
	e      *session.Entry
	rows   []row
	up     *entryNode // that it follows
	next   *entryNode // the first that follows it; on the live path the one of that path
	live   bool       // on the path to the session's leaf
	prompt bool
	past   bool // it follows the session's leaf

	uuids []string // of its lines, once they are written
	after string   // the line that they follow
}

// tree writes the entries of a session.
func (w *scribe) tree() {
	nodes := w.nodes(w.Script)
	var live *entryNode // the session's leaf
	for _, n := range nodes {
		if n.live {
			live = n
		}
	}
	if live == nil {
		return // the program would continue from another branch
	}
	if first := firstOf(live); !first.prompt {
		w.upTo(first) // an entry without a prompt can only be the first root
	}
	left := 0
	for _, n := range nodes {
		if !n.live && (n.past || !w.branchTo(n)) {
			left++
		}
	}
	w.upTo(live)
	if left > 0 {
		w.Lose("", "branches", fmt.Sprintf("the program could not tell them apart: %d messages of others are left out", left))
	}
}

func firstOf(n *entryNode) *entryNode {
	for n.up != nil {
		n = n.up
	}
	return n
}

// upTo writes an entry of the live path and those before it.
func (w *scribe) upTo(n *entryNode) {
	var list []*entryNode
	for ; n != nil && n.uuids == nil; n = n.up {
		list = append(list, n)
	}
	for _, n := range slices.Backward(list) {
		after := ""
		if n.up != nil {
			after = n.up.last()
		}
		w.put(n, after)
	}
}

// begins reports whether a reader takes an entry without a parent for the start of a
// conversation, wherever it is in the file. Readers do so for messages in the user's name:
// after a clear, a command comes first and not a prompt.
func (n *entryNode) begins() bool {
	return n.rows[0].typ == "user" && (n.e.Message == nil || !hasResult(n.e.Message.Content)) ||
		n.e.Message != nil && n.e.Message.Metadata[metaLocal] == true
}

func hasResult(content []session.Content) bool {
	return slices.ContainsFunc(content, func(c session.Content) bool { return c.ToolResult != nil })
}

func (n *entryNode) last() string { return n.uuids[len(n.uuids)-1] }

// branchTo writes an entry that is not on the live path. It returns false if there is no
// place for the entry.
func (w *scribe) branchTo(n *entryNode) bool {
	if n.up == nil {
		if !n.begins() && w.Data.Len() > 0 {
			return false
		}
		w.put(n, "")
		return true
	}
	if n.up.live {
		w.upTo(n.up)
	}
	if n.up.uuids == nil {
		return false // it was left out itself
	}
	after := n.up.last()
	if n.up.next != n && !(n.prompt && n.up.next.prompt) {
		var ok bool
		if after, ok = w.again(n); !ok {
			return false
		}
	}
	w.put(n, after)
	return true
}

// again writes the entries before a branch once more, from the last prompt on. It
// returns their last line.
func (w *scribe) again(n *entryNode) (after string, ok bool) {
	var list []*entryNode
	for up := n.up; up != nil; up = up.up {
		list = append(list, up)
		if up.prompt {
			break
		}
	}
	first := list[len(list)-1]
	if !first.prompt {
		return "", false
	}
	after = first.after
	for _, copied := range slices.Backward(list) {
		of := " for " + n.e.ID
		rows := copied.rows
		if reply := w.replies[copied.e.ID]; reply != nil {
			rows = w.rows(copied.e, reply.again(of))
		}
		if rows[0].isBoundary() { // only the live path has them: see compaction
			rows = rows[1:]
		}
		for i, d := range rows {
			id := w.uuid(copied.e, &d, i, of)
			w.line(copied.e, d, id, after)
			after = id
		}
	}
	return after, true
}

// put writes the lines of an entry.
func (w *scribe) put(n *entryNode, after string) {
	n.after = after
	for i := range n.rows {
		n.uuids = append(n.uuids, w.uuid(n.e, &n.rows[i], i, ""))
	}
	if n.rows[0].isBoundary() {
		w.keep(n)
	}
	for i, d := range n.rows {
		if i == 0 && d.message != nil {
			d.more = slices.Concat(d.more, w.forkedFrom(n.e))
		}
		w.line(n.e, d, n.uuids[i], after)
		after = n.uuids[i]
	}
}

// nodes returns the entries that have lines, in the order of the log.
func (w *scribe) nodes(s *transcript.Script) []*entryNode {
	live, leaf := w.live, ""
	for i := range s.Path {
		live[s.Path[i].ID] = true
		leaf = s.Path[i].ID
	}
	for i := range s.All {
		w.entries[s.All[i].ID] = &s.All[i]
	}
	w.noteEdits(s)
	w.pass(w.chainTo(leaf), true)
	for _, id := range ends(s.All, live) {
		w.pass(w.chainTo(id), false)
	}
	undone, interrupted := session.RevertedIn(s.Path), w.interrupted(s)
	past := make(map[string]bool)
	var nodes []*entryNode
	for i := range s.All {
		e := &s.All[i]
		var up *entryNode
		if e.ParentID != nil {
			up = w.nodeOf[*e.ParentID]
			past[e.ID] = past[*e.ParentID] || *e.ParentID == leaf
		}
		w.nodeOf[e.ID] = up
		if !live[e.ID] && !hasLines(e) || undone[e.ID] {
			continue
		}
		n := &entryNode{e: e, up: up, live: live[e.ID], prompt: isPrompt(e), past: past[e.ID]}
		if n.rows = w.rows(e, w.replies[e.ID]); len(n.rows) == 0 {
			continue
		}
		if n.live {
			n.rows = append(n.rows, interrupted[e.ID]...)
		}
		if up != nil && (up.next == nil || n.live) {
			up.next = n
		}
		w.nodeOf[e.ID] = n
		nodes = append(nodes, n)
	}
	return nodes
}

// noteEdits finds the edits whose loss shows. What a compaction has replaced is not
// sent again, and neither are the instructions of another program.
func (w *scribe) noteEdits(s *transcript.Script) {
	for target, edit := range s.Context.Edited {
		if e := w.entries[target]; e == nil || e.Message == nil || e.Message.Role != session.RoleSystem {
			w.edits[edit] = true
		}
	}
}

// interrupted returns the results of calls that have none, by the entry of the call. The
// program leaves such a call out if something follows it. It does the same with its own
// calls, so we leave those alone.
func (w *scribe) interrupted(s *transcript.Script) map[string][]row {
	if w.own {
		return nil
	}
	results := make(map[string][]row)
	for i := range s.Context.Entries {
		e := &s.Context.Entries[i]
		if !strings.HasPrefix(e.ID, session.InterruptedPrefix) || e.ParentID == nil || w.entries[*e.ParentID] == nil {
			continue
		}
		call := e.Message.Content[0].ToolResult
		for c, id := range w.callsOf(*e.ParentID) {
			if c.ToolUse.ID == call.ToolUseID {
				text := messageOf("user", residue.List([]json.RawMessage{w.result(e, call, id)}))
				results[*e.ParentID] = append(results[*e.ParentID], row{"user", nil, text})
			}
		}
	}
	return results
}

// callsOf yields the calls of an entry and their ids.
func (w *scribe) callsOf(entry string) iter.Seq2[*session.Content, string] {
	return func(yield func(*session.Content, string) bool) {
		m := w.entries[entry].Message
		for i := range m.Content {
			if c := &m.Content[i]; c.ToolUse != nil && !yield(c, w.calls[c]) {
				return
			}
		}
	}
}

// hasLines reports whether an entry may have lines.
func hasLines(e *session.Entry) bool {
	return e.Message != nil || e.Compaction != nil || e.BranchSummary != nil || e.Merge != nil
}

// isPrompt reports whether an entry is what a reader takes for a prompt.
func isPrompt(e *session.Entry) bool {
	return e.Message != nil && e.Message.Role == session.RoleUser && !isMeta(e.Message) && !isNotice(e.Message) && e.Message.Metadata[metaQueued] == nil && injected(firstText(e.Message.Content)) == "" &&
		!hasResult(e.Message.Content)
}

// chainTo returns the entries up to one.
func (w *scribe) chainTo(id string) []*session.Entry {
	var chain []*session.Entry
	for e := w.entries[id]; e != nil; e = w.parentOf(e) {
		chain = append(chain, e)
	}
	slices.Reverse(chain)
	return chain
}

// ends returns the last entries of the branches that are not the live one.
func ends(all []session.Entry, live map[string]bool) []string {
	followed := make(map[string]bool)
	var ids []string
	for i := range slices.Backward(all) {
		e := &all[i]
		if live[e.ID] || !followed[e.ID] && !hasLines(e) {
			continue
		}
		if !followed[e.ID] {
			ids = append(ids, e.ID)
		}
		if e.ParentID != nil {
			followed[*e.ParentID] = true
		}
	}
	slices.Reverse(ids)
	return ids
}

// pass finds the replies of a conversation, and the ids of its calls, for the
// entries that have none yet. Both depend only on what comes before: what two
// branches share has the same in both.
func (w *scribe) pass(chain []*session.Entry, live bool) {
	var replies transcript.Replies
	var ids anthropic.ToolIDs
	var last *answer
	for _, e := range chain {
		continues := replies.Continues(e)
		if e.Message == nil {
			continue
		}
		w.name(e.Message.Content, &ids)
		if e.Message.Role != session.RoleAssistant {
			continue
		}
		if have := w.replies[e.ID]; have != nil {
			last = have
			continue
		}
		if !continues || last.live != live {
			last = w.newAnswer(e, live)
		}
		last.usage = last.usage.Plus(e.Message.Usage)
		w.replies[e.ID] = last
	}
}

// name gives the calls and results of a message their ids.
func (w *scribe) name(content []session.Content, ids *anthropic.ToolIDs) {
	for i := range content {
		switch c := &content[i]; {
		case c.ToolUse != nil:
			w.calls[c] = ids.Call(c.ToolUse.ID)
		case c.ToolResult != nil:
			w.calls[c] = ids.Result(c.ToolResult.ToolUseID)
		}
	}
}

// keep adds to a compaction the lines that it keeps; the program sends them after the
// summary.
func (w *scribe) keep(n *entryNode) {
	c := n.e.Compaction
	meta := object("trigger", "manual", "preTokens", c.TokensBefore)
	if c.FirstKeptEntryID != "" && c.FirstKeptEntryID != n.e.ID {
		if kept := w.keptLines(n); kept != nil {
			meta.SetObject("preservedMessages", object("anchorUuid", n.last(), "uuids", kept))
		} else {
			w.Lose(n.e.ID, "messages kept by a compaction", "they are not in what is written")
		}
	}
	n.rows[0].more.SetObject("compactMetadata", meta)
}

// keptLines returns the lines that a compaction keeps. Other compactions are not among
// them: this one replaces them.
func (w *scribe) keptLines(n *entryNode) []string {
	var lists [][]string
	for e := w.parentOf(n.e); e != nil; e = w.parentOf(e) {
		if up := w.nodeOf[e.ID]; up != nil && up.e == e && e.Compaction == nil {
			lists = append(lists, up.uuids)
		}
		if e.ID == n.e.Compaction.FirstKeptEntryID {
			slices.Reverse(lists)
			return slices.Concat(lists...)
		}
	}
	return nil
}

func (w *scribe) parentOf(e *session.Entry) *session.Entry {
	if e.ParentID == nil {
		return nil
	}
	return w.entries[*e.ParentID]
}

// forkedFrom is the member that says which line of another session a line is a
// copy of.
func (w *scribe) forkedFrom(e *session.Entry) residue.Object {
	if e.Message == nil || w.fork == "" {
		return nil
	}
	of, _ := e.Message.Metadata[metaCopyOf].(string)
	if of == "" {
		return nil
	}
	return object("forkedFrom", object("sessionId", w.fork, "messageUuid", of).JSON())
}
