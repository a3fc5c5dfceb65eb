package codex

import (
	"strings"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// line is a line of a rollout, whatever the era.
type line struct {
	kind    string      // of the envelope
	payload loose.Value // what is in it
	time    time.Time
	ordinal loose.Value // of a paginated rollout
	from    []transcript.Span
}

// lineOf converts a line of any era to one form.
func lineOf(o jsonl.Object) line {
	l := line{kind: o.Get("type").Text(), payload: o.Get("payload"), ordinal: o.Get("ordinal"), from: []transcript.Span{o.Span}}
	l.time = timeOf(o.Value)
	if l.payload.IsObject() {
		if l.time.IsZero() {
			l.time = timeOf(l.payload)
		}
		return l
	}
	l.payload = o.Value
	switch {
	case envelopes[l.kind] || isStream(l.kind):
	case o.Has("record_type"):
		l.kind = "state"
	case l.kind == "" && isBareHeader(o.Value):
		l.kind = kindMeta
	case l.kind != "" || o.Has("role"):
		l.kind = kindItem
	}
	return l
}

func timeOf(v loose.Value) time.Time {
	for _, member := range []string{"timestamp", "created_at"} {
		if t := v.Get(member).Time(time.UTC); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// isStream recognises the lines of "codex exec --json".
func isStream(kind string) bool {
	return strings.HasPrefix(kind, "thread.") || strings.HasPrefix(kind, "turn.") || strings.HasPrefix(kind, "item.")
}

// isItem reports whether a line holds an item of the conversation, so that its
// events only repeat it.
func (l *line) isItem() bool {
	kind := l.payload.Get("type").Text()
	return l.kind == kindItem && kind != "ghost_snapshot" && kind != "token_count"
}
