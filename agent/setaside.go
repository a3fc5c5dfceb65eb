package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// The encoders know the rules of the providers, but not all of them. If a provider refuses a
// request because of an entry of the log, it would refuse every later one as well. So the
// agent looks for the entry, with requests that lack more and more of the newest ones, and
// sets it aside: the log keeps it, and the context has a note in its place.

const (
	// maxProbes is how many requests look for the entries at most.
	maxProbes = 32
	// maxSetAside is how many entries are set aside for one request at most.
	maxSetAside = 4
)

// isRefused reports whether a provider refused a request, perhaps because of an entry. The
// status does not say: providers and gateways use 400, 404, 413, 415, 422 and more for that.
func (t *turn) isRefused(cause error) bool {
	var known *provider.Error
	if !errors.As(cause, &known) {
		return false
	}
	if known.Status == http.StatusNotFound && (len(t.opts.Fallback) > 0 || strings.Contains(strings.ToLower(known.Code+known.Message), "model")) {
		return false // the model does not exist
	}
	return errors.Is(known.Kind, session.ErrInvalid) || known.Status == http.StatusRequestEntityTooLarge
}

// isSuspect reports whether an entry may have caused a failure although the failure says something
// else: a server that breaks over a request, or a gateway that filters them. The key has worked in
// this turn.
func (t *turn) isSuspect(cause error) bool {
	var known *provider.Error
	if !errors.As(cause, &known) || len(t.opts.Fallback) > 0 || t.ctx.Err() != nil {
		return false
	}
	return known.Status == http.StatusInternalServerError || known.Status == http.StatusForbidden && t.out.Steps > 1
}

// errSetAside lists the content that the model no longer sees.
type errSetAside struct {
	entries []string
	prompt  bool // what the user said last is among them
	cause   error
}

func (e *errSetAside) Error() string {
	if e.prompt {
		return fmt.Sprintf("the provider refused what was said last, so the model does not see it from now on; say it in another way: %v", e.cause)
	}
	return fmt.Sprintf("the provider refused the conversation because of entry %s, which is set aside from now on: %v", strings.Join(e.entries, ", "), e.cause)
}

func (e *errSetAside) Unwrap() error { return e.cause }

// errNotInLog explains a refusal that no entry of the conversation causes.
var errNotInLog = errors.New("the provider refuses the request whatever is left out, so the cause is not in the conversation: check the model, its settings and the tools")

// setAside finds the entries for which the provider refuses a request, and replaces them in
// the context by notes. If what the user said last is among them, there is nothing to answer,
// and the error says so. After any other error nothing has changed.
func (t *turn) setAside(r *request, cause error) error {
	left := maxProbes
	doubtful := t.isSuspect(cause)
	for _, without := range []func([]session.Content) []session.Content{withoutMedia, withoutContent} {
		p := newProbes(t, r, without, &left)
		p.doubtful = doubtful
		found, err := p.find()
		if err != nil {
			return errors.Join(cause, err)
		}
		if len(found) > 0 {
			return t.setAsideNow(p, found, cause)
		}
	}
	return errors.Join(cause, errNotInLog)
}

func (t *turn) setAsideNow(p *probes, found []int, cause error) error {
	all := p.request.Entries
	told := &errSetAside{cause: cause}
	var edits []session.Entry
	for _, i := range found {
		id := all[i].ID
		told.prompt = told.prompt || all[i].BeginsTurn() && !slices.ContainsFunc(all[i+1:], func(e session.Entry) bool { return e.BeginsTurn() })
		told.entries = append(told.entries, id)
		edits = append(edits, session.ContextEdit(id, p.replaced[i]...))
	}
	if _, err := t.append(edits...); err != nil {
		return errors.Join(cause, err)
	}
	t.count.forget()
	if told.prompt {
		return told
	}
	t.publish(Event{Type: Error, Err: told})
	if t.opts.Logger != nil {
		t.opts.Logger.Warn(told.Error())
	}
	return nil
}

// probes looks for the entries of a request that a provider refuses.
type probes struct {
	*turn
	request  *request
	replaced map[int][]session.Content // what takes the place of an entry's content
	suspects []int                     // the entries that can be replaced, newest first
	left     *int
	// doubtful: the failure does not say that the request was refused, so it may be over by
	// now.
	doubtful bool
}

func newProbes(t *turn, r *request, without func([]session.Content) []session.Content, left *int) *probes {
	p := &probes{turn: t, request: r, replaced: make(map[int][]session.Content), left: left}
	for i := len(r.Entries) - 1; i >= 0; i-- {
		e := &r.Entries[i]
		if e.Message == nil || e.Message.Role == session.RoleSystem || strings.HasPrefix(e.ID, session.InterruptedPrefix) {
			continue
		}
		if content := without(e.Message.Content); content != nil {
			p.replaced[i] = content
			p.suspects = append(p.suspects, i)
		}
	}
	return p
}

// find returns the entries without which the provider accepts the request. It returns none if
// the provider refuses it even without everything that can be replaced.
func (p *probes) find() (found []int, _ error) {
	if len(p.suspects) == 0 {
		return nil, nil
	}
	if ok, err := p.isTaken(p.suspects); !ok {
		return nil, err
	}
	if p.doubtful {
		if ok, err := p.isTaken(nil); ok || err != nil {
			return nil, err
		}
	}
	suspects := p.suspects
	for len(found) < maxSetAside {
		n, err := p.newest(found, suspects)
		if err != nil {
			return nil, err
		}
		found = append(found, suspects[n-1]) // the oldest that must go; all that are older may stay
		if n == 1 {
			return found, nil // it was the only one left when the provider accepted the request
		}
		if ok, err := p.isTaken(found); ok || err != nil {
			return found, err
		}
		suspects = suspects[:n-1]
	}
	return nil, fmt.Errorf("the provider refuses more than %d entries of the conversation", maxSetAside)
}

// newest returns the least number of suspects, newest first, that must go besides those
// already found. All of them together are known to be enough.
func (p *probes) newest(found, suspects []int) (int, error) {
	enough := func(n int) (bool, error) { return p.isTaken(slices.Concat(found, suspects[:n])) }
	low, high := 0, 1 // low is not enough
	for ; high < len(suspects); high *= 2 {
		ok, err := enough(high)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		low = high
	}
	high = min(high, len(suspects))
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := enough(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// isTaken reports whether the provider begins to answer the request without some entries. It
// does not wait for the answer.
func (p *probes) isTaken(without []int) (taken bool, _ error) {
	if *p.left--; *p.left < 0 {
		return false, fmt.Errorf("%d requests did not show for which entry the provider refuses the conversation", maxProbes)
	}
	r := p.request.Request
	r.Encoded, r.Memo, r.Entries = nil, nil, slices.Clone(r.Entries)
	for _, i := range without {
		m := *r.Entries[i].Message
		m.Content, m.Extra, r.Entries[i].Message = p.replaced[i], nil, &m
	}
	if err := p.announce(); err != nil {
		return false, err
	}
	record := p.newRecord()
	record.For = "probe"
	usage, err := p.try(&r)
	if err != nil {
		record.Error = err.Error()
	}
	entries := []session.Entry{record.entry()}
	if usage != nil {
		p.bill(usage)
		entries = append(entries, billEntry(&session.MessageEntry{Provider: record.Provider, Model: record.Model, Usage: usage}))
	}
	if _, err := p.append(entries...); err != nil {
		return false, err
	}
	if p.isRefused(err) || p.doubtful && p.isSuspect(err) {
		return false, nil
	}
	return err == nil, err
}

// try sends a request, and leaves the answer when it begins. It returns what is known of
// the cost by then.
func (p *probes) try(r *provider.Request) (*session.Usage, error) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	for e, err := range p.opts.Model.Stream(ctx, r) {
		if e.Type != provider.EventRetry {
			return e.Usage, err
		}
	}
	return nil, nil
}

const (
	refusedMedia   = "[something that is not text was here; the provider refused it]"
	refusedMessage = "[this message is left out, because the provider refused the conversation with it]"
)

// withoutMedia returns a content's texts, calls and text results. It returns nil if the
// content has nothing else to leave out.
func withoutMedia(blocks []session.Content) []session.Content {
	var kept []session.Content
	changed := false
	for _, c := range blocks {
		switch {
		case c.ToolResult != nil && slices.ContainsFunc(c.ToolResult.Parts, func(part session.Content) bool { return part.Text == nil }):
			changed = true
			kept = append(kept, session.ToolResult(c.ToolResult.ToolUseID, strings.TrimSpace(c.ToolResult.Content+"\n"+refusedMedia), c.ToolResult.IsError))
		case c.Text != nil, c.ToolUse != nil, c.ToolResult != nil:
			kept = append(kept, c)
		default:
			changed = true
			if c.Thinking == nil {
				kept = append(kept, session.Text(refusedMedia))
			}
		}
	}
	switch {
	case !changed:
		return nil
	case len(kept) == 0:
		return []session.Content{session.Text(refusedMessage)}
	}
	return kept
}

// withoutContent reduces a content to its calls without arguments, and to notes in place of
// its results.
func withoutContent(blocks []session.Content) []session.Content {
	var kept []session.Content
	for _, c := range blocks {
		switch {
		case c.ToolUse != nil:
			kept = append(kept, session.ToolUse(c.ToolUse.ID, c.ToolUse.Name, map[string]any{}))
		case c.ToolResult != nil:
			kept = append(kept, session.ToolResult(c.ToolResult.ToolUseID, refusedMessage, c.ToolResult.IsError))
		}
	}
	if !slices.ContainsFunc(kept, func(c session.Content) bool { return c.ToolResult != nil }) {
		kept = append([]session.Content{session.Text(refusedMessage)}, kept...)
	}
	return kept
}
