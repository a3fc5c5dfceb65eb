package codex

import (
	"context"
	"path"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// # What a thread inherits
//
// A fork of a newer Codex has nothing of its original: it names the lines of the
// original's file that come before its own. These are read as if they were in the fork,
// so that it continues where it branched off. A forked subagent has a copy of its
// parent's context; that is part of what the subagent knows, but the parent paid for
// it.

// injectedByFork marks the messages that a subagent inherits from its parent.
const injectedByFork = "fork"

// maxBases is how many threads may continue one another. More can only be a circle.
const maxBases = 100

// base is the beginning of a thread that is in another one's file.
type base struct {
	file   *transcript.File
	end    int // the ordinal of the first line that does not belong to it
	reader *reader
}

// findBase finds the file with the beginning of a thread, and the thread that it came from.
func (r *reader) findBase(v loose.Value) {
	thread := v.Get("history_base", "thread_id").Text()
	if thread == "" || r.bases >= maxBases {
		return
	}
	f := r.rollout(thread)
	if f == nil {
		return
	}
	b := &base{file: f, end: v.Get("history_base", "end_ordinal_exclusive").Int()}
	b.reader = newReader(f, inheritSink{r.to})
	b.reader.around, b.reader.bases = r.around, r.bases+1
	head := lineOf(jsonl.Object{Value: jsonl.First(f)})
	if head.kind != kindMeta || b.reader.meta(head) != nil {
		return
	}
	r.base = b
}

// inherit reads the beginning of the thread, and continues from its end.
func (r *reader) inherit() error {
	if r.base == nil {
		return nil
	}
	from := r.base.reader
	from.origin, from.isCopy = r.origin, r.conv.Relation == session.RelationSubagent
	for o, err := range jsonl.Objects(context.Background(), r.base.file, from.to) {
		if err != nil {
			return err
		}
		l := lineOf(o)
		if l.ordinal.IsNumber() && l.ordinal.Int() >= r.base.end {
			break
		}
		if l.kind == kindMeta {
			continue // it was read to find the base
		}
		if err := from.addLine(l); err != nil {
			return err
		}
	}
	if err := from.finish(); err != nil {
		return err
	}
	r.current, r.last, r.used, r.turns, r.path, r.asked = from.current, from.last, from.used, from.turns, from.path, from.asked
	r.systems, r.hidden, r.askedSize = from.systems, from.hidden, from.askedSize
	r.model, r.effort, r.usage, r.failed, r.unanswered = from.model, from.effort, from.usage, from.failed, from.unanswered
	r.worlds = from.worlds
	return nil
}

// inheritSink passes on the records of another thread's file.
type inheritSink struct{ to transcript.Sink }

func (s inheritSink) Begin(transcript.Conversation) error { return nil }

func (s inheritSink) Add(r transcript.Record) error {
	r.From = nil // the places are in the other file
	return s.to.Add(r)
}

func (s inheritSink) Keep(string, []byte) (transcript.Span, error) { return transcript.Span{}, nil }

func (s inheritSink) Count(string, string, int) {}

func (s inheritSink) Problem(transcript.Problem) {}

// rollout returns the file of a thread, or nil if there is none. Rollouts are in
// directories by day, sessions/2026/02/01, and a thread's id contains the time at which
// it began.
func (r *reader) rollout(thread string) *transcript.File {
	if f := rolloutIn(r.around, ".", thread); f != nil {
		return f
	}
	at, ok := uuidTime(thread)
	if !ok {
		return nil
	}
	all := r.around.Above(3)
	for _, days := range []int{0, -1, 1} { // the days are the user's, not UTC's
		if f := rolloutIn(all, at.AddDate(0, 0, days).Format("2006/01/02"), thread); f != nil {
			return f
		}
	}
	return nil
}

// rolloutIn returns the file of a thread in a directory, given as seen from a file.
func rolloutIn(f *transcript.File, dir, thread string) *transcript.File {
	entries, err := f.Around(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "rollout-") || !strings.Contains(e.Name(), thread) {
			continue
		}
		data, err := f.Beside(path.Join(dir, e.Name()))
		if err != nil {
			return nil
		}
		return transcript.FileOf(e.Name(), data)
	}
	return nil
}

// replay reads a line that a subagent inherits from its parent. Messages belong to the
// subagent too; events and costs only to the parent.
func (r *reader) replay(l line) error {
	r.isCopy = true
	defer func() { r.isCopy = false }()
	switch kind := l.payload.Get("type").Text(); {
	case l.isItem():
		return r.item(l)
	case l.kind == kindContext:
		return r.context(l)
	case l.kind == kindCompacted:
		return r.compacted(l)
	case l.kind == kindEvent && kind == "thread_rolled_back":
		return r.event(l)
	case l.kind == kindEvent && kind == "token_count":
		info := l.payload.Get("info")
		r.usage.next(info.Get("total_token_usage"), info.Get("last_token_usage"))
	}
	r.to.Count("line that repeats the parent's", "the parent's session", 1)
	return nil
}
