package claudecode

import (
	"bytes"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// thread is one conversation of a file: the session's own, or that of a subagent whose
// lines are between its lines.
type thread struct {
	index  int32 // in the reader's list
	conv   transcript.Conversation
	nodes  []node           // its records
	newest string           // the id of the last of them
	odd    map[int32]string // the ids of those that have no UUID
	tails  []int32          // the last record of each branch
	cuts   map[int32]int32  // the last compaction of a branch
	now    int32            // the branch of the last record
	reply  *reply           // that may not be complete
	held   []transcript.Record
	served map[string]string // the request ids of replies, by message id
}

// node is the part of a record that the tree needs. Most lines have one, and a file may
// have millions of lines, so it has no pointers. Its id is that of the thread.
type node struct {
	id       key
	branch   int32
	prompted int32 // 1 + the record that a prompt was put after when it followed this one
}

// target is where a line's uuid leads. There is one for each line of a file, which
// may have millions.
type target struct{ thread, node int32 }

// reply is a reply of the model while its lines come in.
type reply struct {
	rec       transcript.Record
	msg       *session.MessageEntry
	messageID string
	requestID string
	usage     []byte
}

// id returns the id of a record.
func (t *thread) id(at int32) string {
	if at == t.last() {
		return t.newest
	}
	if id, ok := t.odd[at]; ok {
		return id
	}
	text := t.nodes[at].id.text()
	return string(text[:])
}

// add adds a record with an id.
func (t *thread) add(id string, n node) {
	var room [36]byte
	n.id = keyOf(append(room[:0], id...))
	if text := n.id.text(); string(text[:]) != id {
		if t.odd == nil {
			t.odd = make(map[int32]string)
		}
		t.odd[int32(len(t.nodes))] = id
	}
	t.nodes, t.newest = append(t.nodes, n), id
}

// addNode finds what a record follows, makes a node for it, and sets its parent. A record
// follows the last one of its branch: lines with earlier parents only mean that things
// happened at the same time. Only a second prompt after the same record means that the
// user went back. A prompt without a parent means that the conversation began again:
// its first prompt was edited, or it was cleared. A record that follows something from
// before a compaction came too late for it, and was not sent to the model afterwards.
func (t *thread) addNode(rec *transcript.Record, parent int32, prompt bool) {
	switch {
	case len(t.nodes) == 0 || parent == nothing && rec.Entry.Message != nil && rec.Entry.Message.Role == session.RoleUser:
		t.branchOff(rec, transcript.Root)
		return
	case parent >= 0 && prompt && t.nodes[parent].prompted > 0:
		t.branchOff(rec, t.id(t.nodes[parent].prompted-1))
		return
	case parent >= 0 && parent < t.cuts[t.nodes[parent].branch]:
		t.branchOff(rec, t.id(parent))
		return
	}
	branch := t.now
	if parent >= 0 {
		branch = t.nodes[parent].branch
	}
	tail := t.tails[branch]
	rec.Parent = t.id(tail)
	if prompt {
		t.nodes[tail].prompted = tail + 1
		if parent >= 0 {
			t.nodes[parent].prompted = tail + 1
		}
	}
	t.now = branch
	t.tails[branch] = int32(len(t.nodes))
	t.add(rec.ID, node{branch: branch})
}

// branchOff lets a record begin a branch after the record parent.
func (t *thread) branchOff(rec *transcript.Record, parent string) {
	rec.Parent = parent
	t.now = int32(len(t.tails))
	t.tails = append(t.tails, int32(len(t.nodes)))
	t.add(rec.ID, node{branch: t.now})
}

// cut records that the last record is a compaction.
func (t *thread) cut() {
	if t.cuts == nil {
		t.cuts = make(map[int32]int32)
	}
	t.cuts[t.now] = t.last()
}

// last returns the node of the record that was added last.
func (t *thread) last() int32 { return int32(len(t.nodes)) - 1 }

// isOpen reports whether the reply has calls without results.
func (r *reply) isOpen(results []transcript.Record) bool {
	answered := make(map[string]bool)
	for i := range results {
		if m := results[i].Entry.Message; m != nil {
			for _, c := range m.Content {
				if c.ToolResult != nil {
					answered[c.ToolResult.ToolUseID] = true
				}
			}
		}
	}
	return slices.ContainsFunc(r.msg.Content, func(c session.Content) bool { return c.ToolUse != nil && !answered[c.ToolUse.ID] })
}

// merge adds a line of the reply that is open. Sometimes a line repeats what
// came before with more of it.
func (r *reply) merge(blocks []session.Content, l *line) {
	if extends(r.msg.Content, blocks) {
		r.msg.Content = blocks
	} else {
		r.msg.Content = append(r.msg.Content, blocks...)
	}
	r.addUsage(l)
}

// addUsage adds the usage of a line: it is that of the whole reply, and its output grows from
// line to line.
func (r *reply) addUsage(l *line) {
	if len(l.stopReason) > 0 {
		r.msg.StopReason = string(l.stopReason)
	}
	if len(l.usage) == 0 || bytes.Equal(l.usage, r.usage) {
		return
	}
	u := usage(l.usage)
	r.usage = append(r.usage[:0], l.usage...)
	switch have := r.msg.Usage; {
	case u == nil:
	case have == nil:
		r.msg.Usage = u
	default:
		have.Input = max(have.Input, u.Input)
		have.Output = max(have.Output, u.Output)
		have.CacheRead = max(have.CacheRead, u.CacheRead)
		have.CacheWrite = max(have.CacheWrite, u.CacheWrite)
		have.CacheWriteHour = max(have.CacheWriteHour, u.CacheWriteHour)
	}
}

// extends reports whether blocks repeat the ones before and add to them. A text that comes twice
// was said twice: the program sends both.
func extends(have, blocks []session.Content) bool {
	if len(have) == 0 || len(blocks) < len(have) {
		return false
	}
	if len(blocks) == 1 && have[0].Text != nil && blocks[0].Text != nil && have[0].Text.Content == blocks[0].Text.Content {
		return false
	}
	for i := range have {
		if !extendsBlock(&have[i], &blocks[i]) {
			return false
		}
	}
	return true
}

func extendsBlock(have, more *session.Content) bool {
	switch {
	case have.Type != more.Type:
		return false
	case have.Text != nil && more.Text != nil:
		return strings.HasPrefix(more.Text.Content, have.Text.Content)
	case have.ToolUse != nil && more.ToolUse != nil:
		return have.ToolUse.ID == more.ToolUse.ID
	case have.Thinking != nil && more.Thinking != nil:
		h, m := have.Thinking, more.Thinking
		return strings.HasPrefix(m.Content, h.Content) && (h.Signature == "" || h.Signature == m.Signature) && h.Redacted == m.Redacted
	}
	return have.Raw != nil && bytes.Equal(have.Raw, more.Raw)
}
