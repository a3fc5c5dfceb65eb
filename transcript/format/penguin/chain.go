package penguin

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// A session of Penguin that continues another begins with copies of messages, then has a message
// that says which session it continues, and then its own messages. Copies may have ids of their
// own. Ours have those of the originals, which are in the file of the session before, and instead
// of the message there is a marker.

// part is a session of a chain, as one of its files has it.
type part struct {
	previous string        // the session that it continues, or ""
	original string        // the first known session of the chain
	messages []loose.Value // all of them
	ids      []string      // what each is called as an entry
	marker   int           // which of them says what the session continues; -1: none
}

// previousIn is the session that a session continues, or "".
func previousIn(v loose.Value) string { return v.Get("metadata", "continued_from").Text() }

// partOf returns a session with the ids of its messages. Those that were copied are looked up in
// the sessions before it, whose files are beside its own. after are the sessions that come after
// it.
func partOf(f *transcript.File, id, previous string, v loose.Value, after ...string) *part {
	p := &part{previous: previous, original: cmp.Or(previous, id), messages: slices.Collect(v.Get("messages").Items()), marker: -1}
	var copies map[int]string
	if previous != "" {
		p.marker = slices.IndexFunc(p.messages, isTransition)
		if after = append(after, id); !slices.Contains(after, previous) {
			copies = p.copiesFrom(f, after)
		}
	}
	seen := make(map[string]bool)
	for i, m := range p.messages {
		own := cmp.Or(copies[i], m.Get("id").Text())
		if own == "" || seen[own] {
			own = transcript.HashID(name, id, string(m))
		}
		seen[own] = true
		p.ids = append(p.ids, own)
	}
	return p
}

// copiesFrom returns the ids of the originals of the messages before the marker. If several say the
// same, the last ones were copied: those of a turn that was not over.
func (p *part) copiesFrom(f *transcript.File, after []string) map[int]string {
	v := fileOf(f, p.previous)
	if v == nil {
		return nil
	}
	from := partOf(f, p.previous, previousIn(v), v, after...)
	p.original = from.original
	originals := make(map[string][]string)
	for i, m := range from.messages {
		originals[contentKey(m)] = append(originals[contentKey(m)], from.ids[i])
	}
	copies := make(map[int]string)
	for i := p.marker - 1; i >= 0; i-- {
		key := contentKey(p.messages[i])
		if left := originals[key]; len(left) > 0 {
			copies[i], originals[key] = left[len(left)-1], left[:len(left)-1]
		}
	}
	return copies
}

// fileOf reads the file of another session beside this one, or its backup.
func fileOf(f *transcript.File, id string) loose.Value {
	if v := records.Beside(f, id+".json"); v != nil {
		return v
	}
	return records.Beside(f, id+".json.bak")
}

// contentKey is equal for two messages of the same role, category and content.
func contentKey(m loose.Value) string {
	text, _ := json.Marshal([]any{m.Get("category").Any(), loose.Value(chatMessage(m)).Any()}) // it was JSON
	return string(text)
}

// isTransition reports whether a message says which session this one continues.
func isTransition(m loose.Value) bool {
	return boundary.IsMarker(&session.Entry{Message: &session.MessageEntry{
		Role: m.Get("role").Text(), Metadata: m.Get("metadata").Map(),
	}})
}

// markerIn turns the message that says which session this one continues into a marker.
func (p *part) markerIn(message *session.Entry, m loose.Value) session.Entry {
	c := boundary.MarkerIn(message)
	c.Session = transcript.SessionID(name, p.previous)
	c.Original = transcript.SessionID(name, cmp.Or(c.Original, p.original))
	e := session.Entry{Type: session.TypeContinues, Timestamp: message.Timestamp, Continues: c}
	e.Extra = residue.Keep(nil, name, residue.Of(loose.Value(transition(&e)), m))
	return e
}

// transition returns a marker as a message of Penguin's.
func transition(marker *session.Entry) json.RawMessage {
	message := boundary.MarkerMessage(marker)
	return encode(&message)[0]
}
