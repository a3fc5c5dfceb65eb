package opencode

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// reader reads the messages of one session.
type reader struct {
	to   transcript.Sink
	info loose.Value
	conv transcript.Conversation
	rows int // messages read from a database

	last   string            // the record that the next one follows
	leaf   string            // the last one before what was taken back
	parted bool              // what follows was taken back
	cut    string            // the first message that a compaction under way keeps
	first  map[string]string // the first piece of each message
	open   bool              // a compaction is under way: the next summary belongs to it
}

func (r *reader) begin() error {
	r.conv, r.first = conversation(r.info), make(map[string]string)
	return r.to.Begin(r.conv)
}

// end sets the session's leaf: before the messages that were taken back, if there are any.
func (r *reader) end() error {
	if !r.parted || r.leaf == "" {
		return nil
	}
	r.conv.Leaf = r.leaf
	return r.to.Begin(r.conv)
}

// message adds the entries of a message: its text and calls, then the answers of tools,
// in turns as the parts have them.
func (r *reader) message(m loose.Value, parts []loose.Value, span transcript.Span) error {
	id := m.Get("id").Text()
	if id == r.info.Get("revert", "messageID").Text() && id != "" {
		r.parted, r.leaf = true, r.last
	}
	r.to.Count(m.Get("role").Text()+" message", "message", 1)
	if m.Get("summary").Bool() && r.open {
		return r.compaction(m, parts, span)
	}
	s := splitter{id: id, to: r.to}
	for _, part := range parts {
		r.compacting(part)
		s.add(part)
	}
	s.flush()
	s.addUsage(m)
	for i, p := range s.pieces {
		record := transcript.Record{
			ID: fmt.Sprintf("%s/%d", id, i+1), Entry: r.entry(m, p), From: []transcript.Span{span},
		}
		if i == len(s.pieces)-1 {
			record.ID = id // what follows the message follows its last piece
		}
		if i == 0 {
			r.first[id] = record.ID
		}
		if err := r.add(record); err != nil {
			return err
		}
	}
	return nil
}

// add adds a record that follows the last one: opencode's messages are a list.
func (r *reader) add(record transcript.Record) error {
	record.Parent = cmp.Or(r.last, transcript.Root)
	r.last = record.ID
	return r.to.Add(record)
}

// compacting recognises the part that asks for a compaction.
func (r *reader) compacting(part loose.Value) {
	if part.Get("type").Text() == "compaction" {
		r.open, r.cut = true, r.first[part.Get("tail_start_id").Text()]
	}
}

// compaction reads a message that summarises the ones before.
func (r *reader) compaction(m loose.Value, parts []loose.Value, span transcript.Span) error {
	var texts []string
	for _, part := range parts {
		if part.Get("type").Text() == "text" {
			texts = append(texts, part.Get("text").Text())
		}
	}
	e := session.Compaction(strings.Join(texts, "\n"), r.cut, 0)
	e.Timestamp = at(m)
	r.open, r.cut = false, ""
	return r.add(transcript.Record{ID: m.Get("id").Text(), Entry: e, From: []transcript.Span{span}})
}

func at(m loose.Value) time.Time { return m.Get("time", "created").Time(time.UTC) }

// entry turns a piece of a message into a message of its own: opencode keeps calls and their
// results in one message.
func (r *reader) entry(m loose.Value, p piece) session.Entry {
	out := &session.MessageEntry{Role: m.Get("role").Text(), Content: p.content}
	switch {
	case p.result:
		out.Role = session.RoleTool
	case out.Role == session.RoleAssistant:
		answer(out, m, p)
	}
	if p.injected {
		out.Metadata = map[string]any{session.MetaInjected: true}
	}
	return session.Entry{Type: session.TypeMessage, Timestamp: at(m), Message: out}
}

// answer sets which model answered, and what that cost. Each step of a message is a response.
func answer(out *session.MessageEntry, m loose.Value, p piece) {
	out.Provider, out.Model = m.Get("providerID").Text(), m.Get("modelID").Text()
	if out.Model == "" {
		out.Provider, out.Model = m.Get("model", "providerID").Text(), m.Get("model", "modelID").Text()
	}
	out.ResponseID, out.StopReason, out.Usage = fmt.Sprintf("%s/%d", m.Get("id").Text(), p.step), cmp.Or(p.reason, m.Get("finish").Text()), p.usage
	if failed := m.Get("error"); failed.IsObject() {
		out.Metadata = map[string]any{"error": failed.Any()}
		out.StopReason = cmp.Or(out.StopReason, "error")
	}
}

// usageOf reads what a step or a message cost, or nil if it does not say.
func usageOf(v loose.Value) *session.Usage {
	tokens := v.Get("tokens")
	if !tokens.IsObject() {
		return nil
	}
	usage := provider.OpencodeUsage(tokens)
	cost := v.Get("cost")
	if cost.IsObject() {
		cost = cost.Get("usd")
	}
	if usage != nil {
		usage.CostMicroUSD = session.MicroUSD(cost.Number())
	}
	return usage
}
