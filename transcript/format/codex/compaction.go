package codex

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/window"
)

// # Compactions
//
// A compaction of Codex has the whole history that the model is sent from there on:
// some messages as they were, mostly those of the user, and the summary, as a text or
// encrypted. Our compactions keep a stretch of the path right before them, and all
// system messages. Where that gives Codex's history, the compaction is just that.
// Otherwise it keeps nothing, the messages are added after it once more, and the system
// messages that Codex dropped are edited out of the context.

// summaryPrefix begins the summaries that Codex makes itself. They come last in the
// history.
const summaryPrefix = "Another language model started to solve this problem and produced a summary of its thinking process. " +
	"You also have access to the state of the tools that were used by that language model. " +
	"Use this to build on the work that has already been done and avoid duplicating work. " +
	"Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:\n"

// pathMessage is a message on the current path.
type pathMessage struct {
	id       string
	key      uint64 // of what the item says
	begins   bool   // a turn
	hiddenAt int    // how long the path was when a compaction dropped it; 0 means that it counts
}

// addToPath adds a message to the path.
func (r *reader) addToPath(id string, e *session.Entry, parts []string) {
	if e.Message.Role == session.RoleSystem {
		r.systems = append(r.systems, len(r.path))
	}
	r.path = append(r.path, pathMessage{id: id, key: keyOf(parts), begins: e.BeginsTurn()})
}

// cutPath takes back all but the first n messages of the path, and the messages that compactions
// among the others dropped. Like everything here, it takes time in proportion to what
// changes.
func (r *reader) cutPath(n int) {
	for len(r.hidden) > 0 && r.path[r.hidden[len(r.hidden)-1]].hiddenAt > n {
		at := r.hidden[len(r.hidden)-1]
		r.hidden = r.hidden[:len(r.hidden)-1]
		r.path[at].hiddenAt = 0
		r.systems = append(r.systems, at)
	}
	slices.Sort(r.systems)
	for len(r.systems) > 0 && r.systems[len(r.systems)-1] >= n {
		r.systems = r.systems[:len(r.systems)-1]
	}
	for len(r.asked) > 0 && r.asked[len(r.asked)-1].at >= n {
		r.askedSize -= len(r.asked[len(r.asked)-1].text)
		r.asked = r.asked[:len(r.asked)-1]
	}
	r.path = r.path[:min(n, len(r.path))]
}

func keyOf(parts []string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// compacted reads a compaction.
func (r *reader) compacted(l line) error {
	if err := r.flush(); err != nil {
		return err
	}
	summary := l.payload.Get("message").Text()
	history, isOwn := r.historyOf(l.payload)
	said := []string{summary}
	for _, item := range history {
		said = append(said, fingerprint(item)...)
	}
	first, repeated, dropped := r.arrange(history, summary)
	length := len(r.path)
	r.add(session.Compaction(summary, first, r.usage.context), &l, said...)
	for _, at := range dropped {
		r.path[at].hiddenAt = length + 1
		r.add(session.ContextEdit(r.path[at].id), &l, r.path[at].id)
	}
	r.hidden = append(r.hidden, dropped...)
	r.systems = slices.DeleteFunc(r.systems, func(at int) bool { return r.path[at].hiddenAt > 0 })
	r.asked, r.askedSize = nil, 0
	for _, item := range repeated {
		if err := r.repeat(item, &l); err != nil {
			return err
		}
	}
	if isOwn {
		r.ask(summary) // unlike one in a history, it counts as the user's
	}
	r.to.Count("compacted line", "compaction", 1)
	return r.flush()
}

// historyOf returns the history that replaces the path, and whether the compaction does not
// give it: older versions have only a summary.
func (r *reader) historyOf(v loose.Value) (history []loose.Value, isOwn bool) {
	if h := v.Get("replacement_history"); h.IsArray() {
		return slices.Collect(h.Items()), false
	}
	return r.ownHistory(), true
}

// arrange finds out how to express that a history replaces the path: the first entry
// that is kept, or else the items that are repeated, and the messages of the path to
// drop.
func (r *reader) arrange(history []loose.Value, summary string) (first string, repeated []loose.Value, dropped []int) {
	at := summaryAt(history, summary)
	onPath := make(map[uint64]bool)
	for _, i := range r.systems {
		onPath[r.path[i].key] = true
	}
	system := make(map[uint64]bool) // the system messages of the path that are in the history
	var rest []loose.Value
	for i, item := range history {
		switch key := keyOf(fingerprint(item)); {
		case i == at:
			continue
		case onPath[key]:
			system[key] = true
		default:
			rest = append(rest, item)
		}
		repeated = append(repeated, item)
	}
	from := len(r.path)
	if len(rest) <= len(history)-at-1 { // none of them comes before the summary
		if from = r.tail(rest); from < len(r.path) {
			first = r.path[from].id
		}
	}
	if first != "" || len(rest) == 0 {
		repeated = nil
	} else {
		clear(system) // they are repeated with the rest
	}
	for _, i := range r.systems {
		if i < from && !system[r.path[i].key] {
			dropped = append(dropped, i)
		}
	}
	return first, repeated, dropped
}

// summaryAt returns the place of the summary in a history, or -1. A text before it may
// announce it. Messages may say the same as the summary: then it is the one that an
// export wrote, or else the last.
func summaryAt(history []loose.Value, summary string) int {
	found := -1
	for i, item := range slices.Backward(history) {
		lead, ok := strings.CutSuffix(session.TextOf(textBlocks(item.Get("content"))), summary)
		if !ok || summary == "" || item.Get("role").Text() != session.RoleUser {
			continue
		}
		if lead == session.CompactionLead || found < 0 && (lead == "" || strings.HasSuffix(lead, "\n") || strings.HasSuffix(lead, ": ")) {
			found = i
		}
	}
	return found
}

// tail returns where on the path the given items begin, if they are all the messages from
// there on. Otherwise it returns the end of the path. If it is in the middle of a turn, the
// first item must be the message that began the turn: it is kept with the rest.
func (r *reader) tail(items []loose.Value) int {
	end := len(r.path)
	matches := func(items []loose.Value) bool {
		from := end - len(items)
		return from >= 0 && !slices.ContainsFunc(items, func(item loose.Value) bool {
			from++
			return r.path[from-1].key != keyOf(fingerprint(item))
		})
	}
	switch n := len(items); {
	case n == 0:
	case matches(items) && r.path[end-n].begins:
		return end - n
	case n > 1 && matches(items[1:]):
		from := end - n + 1
		for i := from - 1; i >= 0; i-- {
			if r.path[i].begins {
				if r.path[i].key == keyOf(fingerprint(items[0])) {
					return from
				}
				break
			}
		}
	}
	return end
}

// repeat adds a message of a history that replaces the path.
func (r *reader) repeat(item loose.Value, l *line) error {
	if !item.Has("type") && !item.Has("role") {
		return nil // not an item
	}
	entries, err := r.decode(item, item.Get("type").Text())
	if err != nil {
		r.to.Count("item that cannot be read", "kept as bytes", 1)
		return nil
	}
	for _, e := range entries {
		setMetadata(e.Message, session.MetaInjected, session.RepeatedByCompaction)
		if e.Message.Role == session.RoleAssistant {
			if err := r.answered(e, l, fingerprint(item)...); err != nil {
				return err
			}
			continue
		}
		r.answer = ""
		r.markFailure(e.Message)
		if e.Message.Role == session.RoleUser && !isInjected(e.Message.Content) {
			r.ask(session.TextOf(e.Message.Content))
		}
		r.add(e, l, fingerprint(item)...)
	}
	return nil
}

// maxAsked is how much of the user's text Codex keeps if a compaction does not say,
// in bytes: 20,000 tokens by its estimate.
const maxAsked = 4 * 20_000

// asked is a message of the user.
type asked struct {
	at   int // its place on the path
	text string
}

// ask remembers a message of the user, if a compaction may need it.
func (r *reader) ask(text string) {
	if text == "" || strings.HasPrefix(text, summaryPrefix) {
		return
	}
	r.asked = append(r.asked, asked{len(r.path), text})
	if r.askedSize += len(text); r.askedSize <= 2*maxAsked {
		return
	}
	size := 0
	for i, a := range slices.Backward(r.asked) {
		if size += len(a.text); size > maxAsked {
			r.asked, r.askedSize = slices.Delete(r.asked, 0, i), size
			return
		}
	}
}

// ownHistory returns the history that Codex builds for a compaction without one: the
// last messages of the user.
func (r *reader) ownHistory() []loose.Value {
	var items []loose.Value
	left := maxAsked
	for _, a := range slices.Backward(r.asked) {
		text := a.text
		if len(text) > left {
			text = shorten(text, left)
		}
		items = append(items, loose.Value(textItem(session.RoleUser, text)))
		if left -= (len(a.text) + 3) / 4 * 4; left <= 0 {
			break
		}
	}
	slices.Reverse(items)
	return items
}

// shorten leaves out the middle of a text, as Codex does.
func shorten(text string, size int) string {
	head, tail := window.Ends(text, size/2, size-size/2)
	return fmt.Sprintf("%s…%d tokens truncated…%s", head, (len(text)-size+3)/4, tail)
}
