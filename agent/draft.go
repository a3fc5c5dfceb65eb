package agent

import (
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// A message is written to the log when it is complete, but people read it as it arrives. So
// while an answer takes longer than Options.Draft, its text is saved again and again, in
// entries outside the conversation. Readers show them as an incomplete message until the
// answer is complete. If the program dies, the next turn turns them into that message.

// errEnded explains an answer that survives only as drafts.
var errEnded = errors.New("the program ended")

// draft collects an answer that is arriving. Text is saved when Options.Draft has passed
// since the last time, whether or not more of the answer comes.
type draft struct {
	mu    sync.Mutex
	text  []byte // the paragraph that is arriving
	saved string // what the log has of it
	last  time.Time
	timer *time.Timer // nil if everything that can be saved is
	ended bool
}

// addToDraft records the next piece of an answer, before people see it.
func (k *Keeper) addToDraft(text string) {
	if k.opts.Draft < 0 {
		return
	}
	d := k.arriving
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = append(d.text, text...)
	if d.timer != nil {
		return
	}
	if wait := k.opts.Draft - time.Since(d.last); wait > 0 {
		d.timer = time.AfterFunc(wait, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.timer = nil
			if !d.ended {
				k.save(d)
			}
		})
		return
	}
	k.save(d)
}

// end stops saving, and waits for a save that is under way.
func (d *draft) end() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// save writes down the text that arrived since the last save. It looks for secrets in the
// whole paragraph, because a secret may arrive in pieces.
func (k *Keeper) save(d *draft) {
	d.last = time.Now()
	text := finished(string(d.text))
	entry := session.NewDraft(text)
	err := k.s.Clean(&entry)
	now, _ := entry.DraftText()
	if fresh := now[common(d.saved, now):]; err == nil && fresh != "" {
		// Not by append: the loop may be writing something else just now.
		err = k.write(func() error {
			_, err := k.s.AppendAll(session.NewDraft(fresh))
			return err
		})
	}
	if err != nil {
		// The next draft tries again, and the answer itself may still get through.
		k.publish(Event{Type: Error, Err: err})
		return
	}
	d.saved = now
	// No secret contains an empty line, so earlier paragraphs need no second look.
	if i := strings.LastIndex(text, "\n\n"); i > 0 && strings.HasSuffix(now, text[i:]) {
		d.text, d.saved = d.text[i:], text[i:]
	}
}

// finished returns a text without its last word, if that may be the beginning of a secret:
// no secret must be in two drafts, where neither an append nor a later search would find
// it. A line of nothing but words has no secret in it.
func finished(text string) string {
	line := text[strings.LastIndexByte(text, '\n')+1:]
	word, length := 0, 0 // where the last word begins, and how long it is
	isProse := true
	for i, r := range line {
		switch {
		case r == ' ' || r == '\t' || r >= utf8.RuneSelf: // secrets are ASCII
			word, length = i+utf8.RuneLen(r), 0
			continue
		case 'a' <= r && r <= 'z' || strings.ContainsRune(",.;!?'()", r) || 'A' <= r && r <= 'Z' && length == 0:
		default:
			isProse = false
		}
		length++
		isProse = isProse && length <= maxWord
	}
	if isProse {
		return text
	}
	return text[:len(text)-len(line)+word]
}

// maxWord is how long a word of a language may be.
const maxWord = 24

// common returns the length of the common beginning of two texts.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

// Draft returns the text of an answer that was cut short when the program died, or "".
// The next turn turns it into an incomplete message.
func (a *Agent) Draft() (string, error) {
	text, _, err := session.DraftAt(a.keeper.s, a.keeper.s.LeafID())
	return text, err
}

// adoptDraft turns the drafts at the end of the log, if there are any, into a message:
// the program died while an answer was arriving.
func (k *Keeper) adoptDraft() error {
	text, askedAt, err := session.DraftAt(k.s, k.s.LeafID())
	if err != nil || text == "" {
		return err
	}
	c, err := k.s.Context(session.ContextOptions{Leaf: askedAt, Shared: true})
	if err != nil {
		return err
	}
	arrived := &provider.Response{Partial: true, Message: &session.MessageEntry{
		Role: session.RoleAssistant, Provider: c.Provider, Model: c.Model, Content: []session.Content{session.Text(text)},
	}}
	kept := arrived.Kept(errEnded, false)
	if kept == nil {
		return nil
	}
	_, err = k.append(message(kept))
	return err
}
