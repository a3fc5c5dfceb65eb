package agent

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// A message is written to the log when it is complete, but people read it as it arrives.
// So while an answer takes longer than Options.Draft, its text is saved every so often,
// in entries outside the conversation. If the program dies, the next one turns them into
// an incomplete message.

// dataText is the data member of a session.CustomDraft entry: the text that arrived
// since the previous draft.
const dataText = "text"

// errEnded explains an answer that survives only as drafts.
var errEnded = errors.New("the program ended")

// draft collects an answer that is arriving.
type draft struct {
	text  strings.Builder // what no entry has yet
	saved time.Time
}

// save writes down what has arrived, if it is time to.
func (t *turn) save(d *draft, e provider.Event) {
	if e.Type != provider.EventText || t.opts.Draft < 0 {
		return
	}
	d.text.WriteString(e.Text)
	if time.Since(d.saved) < t.opts.Draft {
		return
	}
	d.saved = time.Now()
	_, err := t.append(session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{
		CustomType: session.CustomDraft, Data: map[string]any{dataText: d.text.String()},
	}})
	if err != nil {
		// The next draft tries again, and the answer itself may still get through.
		t.publish(Event{Type: Error, Err: err})
		return
	}
	d.text.Reset()
}

// Draft returns the text of an answer that was cut short when the program died, or "".
// The next turn turns it into an incomplete message.
func (a *Agent) Draft() (string, error) {
	t := &turn{Agent: a, s: a.log}
	text, _, err := t.draftsUpTo(a.log.LeafID())
	return text, err
}

// adoptDraft turns the drafts at the end of the log, if there are any, into a message:
// the program died while an answer was arriving.
func (t *turn) adoptDraft() error {
	text, askedAt, err := t.draftsUpTo(t.s.LeafID())
	if err != nil || text == "" {
		return err
	}
	c, err := t.s.Context(session.ContextOptions{Leaf: askedAt, Shared: true})
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
	_, err = t.append(message(kept))
	return err
}

// draftsUpTo returns the text of the drafts that a path ends with, and the entry before
// them, at which the model was asked.
func (t *turn) draftsUpTo(id string) (text, askedAt string, _ error) {
	var pieces []string
	for id != "" {
		found, err := t.s.Peek(id)
		if err != nil {
			return "", "", err
		}
		e := &found[0]
		if e.Custom == nil || e.Custom.CustomType != session.CustomDraft {
			break
		}
		piece, _ := e.Custom.Data[dataText].(string)
		pieces = append(pieces, piece)
		id = parentOf(e)
	}
	slices.Reverse(pieces)
	return strings.Join(pieces, ""), id, nil
}
