package copilot

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
)

// endsCalls are the events after which an earlier API call yields no message any more.
var endsCalls = map[string]bool{
	"user.message": true, "assistant.turn_end": true, "session.compaction_complete": true, "session.shutdown": true,
}

// noteBill keeps what an API call cost until its message comes.
func (r *reader) noteBill(t *thread, o jsonl.Object) {
	usage := o.Get("data", "usage")
	call := cmp.Or(usage.Get("apiCallId").Text(), o.Get("id").Text())
	if u := blocks.Usage(usage); u != nil {
		r.bills[call] = bill{event: o, thread: t, usage: u}
	}
}

// addCost adds to a message what its API call cost.
func (r *reader) addCost(m *session.MessageEntry) {
	if b, ok := r.bills[m.ResponseID]; ok {
		m.Usage = b.usage
		delete(r.bills, m.ResponseID)
	}
}

// addOtherCosts adds the cost of a thread's API calls that yielded no message, such as those for
// a summary.
func (r *reader) addOtherCosts(t *thread) error {
	var calls []string
	for call, b := range r.bills {
		if b.thread == t {
			calls = append(calls, call)
		}
	}
	slices.SortFunc(calls, func(a, b string) int { return int(r.bills[a].event.No - r.bills[b].event.No) })
	for _, call := range calls {
		b := r.bills[call]
		delete(r.bills, call)
		e := session.Entry{
			Type: session.TypeCustom, Timestamp: b.event.Get("timestamp").Time(time.UTC),
			Custom: session.NewUsage("github-copilot", b.event.Get("data", "usage", "model").Text(), call, *b.usage),
		}
		rec := transcript.Record{ID: b.event.Get("id").Text() + ":usage", Parent: t.last, Entry: e, From: []transcript.Span{b.event.Span}}
		if err := r.add(t, rec); err != nil {
			return err
		}
	}
	return nil
}
