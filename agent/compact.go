package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Why a conversation is compacted.
const (
	reasonWindow   = "window"   // the window is nearly full
	reasonOverflow = "overflow" // the provider said that the conversation is too long
	reasonAsked    = "asked"
)

// window returns the size of the window, or 0 if it is not known.
func (c *Compaction) window(info provider.Info) int {
	if c.Window > 0 {
		return c.Window
	}
	return info.Window
}

// share returns how many tokens of a window something may take: asked, or usual if that is 0,
// but at most a part of the window.
func share(asked, usual, window, part int) int {
	if asked > 0 {
		return asked
	}
	if window > 0 {
		return min(usual, window/part)
	}
	return usual
}

// reserve returns how much of the window stays free: at most half of it, because the
// rest must hold a conversation.
func (c *Compaction) reserve(size int) int {
	n := share(c.Reserve, window.DefaultReserve, size, 4)
	if size > 0 {
		n = min(n, size/2)
	}
	return n
}

// keep returns how many tokens of a conversation stay as they are: at most half of the room
// for it, because a compaction that keeps everything gains nothing. full is the size of a
// conversation that the provider found too long, so that its window is smaller than that, or
// that a person wants shortened.
func (c *Compaction) keep(size, full int) int {
	n := share(c.Keep, window.DefaultKeep, size, 4)
	if size > 0 {
		n = min(n, (size-c.reserve(size))/2)
	}
	if full > 0 {
		n = min(n, full/4)
	}
	return n
}

// backoff keeps an agent from compacting again and again without success. After each
// compaction the conversation must grow by a share of the window before the next one is
// worthwhile: by an eighth, and by more each time one failed or did not make enough room.
type backoff struct {
	until    int // tokens
	failures int
}

func (b *backoff) wait(tokens, window int, failed bool) {
	b.failures++
	if !failed {
		b.failures = 1
	}
	b.until = tokens + window*min(1<<b.failures, 8)/16
}

// usableTokens returns how many tokens of a window a conversation may fill. The rest is for the
// answer.
func (k *Keeper) usableTokens(window int) int {
	return window - max(k.opts.Compaction.reserve(window), min(k.opts.MaxTokens, window/2))
}

// tokens returns the size of a context for the model that is asked.
func (k *Keeper) tokens(c *session.Context) (int, error) {
	return k.count.tokens(c, k.opts.Model, k.opts.Tools)
}

// isFull reports whether a conversation should be compacted before it is sent.
func (k *Keeper) isFull(c *session.Context) (bool, error) {
	window := k.opts.Compaction.window(k.opts.Model)
	if k.opts.Compaction.Off || k.opts.Compaction.Model == nil || window == 0 {
		return false, nil
	}
	tokens, err := k.tokens(c)
	room := k.usableTokens(window)
	if err == nil && tokens > room/2 { // it may matter
		tokens = k.count.countExactly(c, k.opts.Tools, tokens)
	}
	if err != nil || tokens <= room {
		return false, err
	}
	if _, fixed := k.count.fixed(c, k.opts.Model, k.opts.Tools); fixed >= room {
		return false, invalid("the instructions and tools have about %d tokens, and there is room for %d: the window has %d, and the rest is for the answer; "+
			"shorten them, or set the window if the model's is larger", fixed, room, window)
	}
	return tokens >= k.backoff.until, nil
}

// compact replaces the beginning of the conversation by a summary. A failure changes
// nothing, but the log records what the attempt cost.
func (k *Keeper) compact(reason, instructions string) (*Compacted, error) {
	k.publish(Event{Type: CompactionStart})
	done, err := k.compactNow(reason, cmp.Or(instructions, k.opts.Compaction.Instructions))
	k.publish(Event{Type: CompactionEnd, Compacted: done, Err: err})
	return done, err
}

// overflowRecovery records what a step did about a conversation that the provider found too long.
// Each measure is tried once: after both, the conversation cannot get shorter.
type overflowRecovery struct{ compacted, shortened bool }

// recoverOverflow shortens a conversation that the provider found too long: by a compaction and,
// if that fails or is not enough, by shortening the longest tool results. It reports
// whether it is shorter now.
func (t *turn) recoverOverflow(done *overflowRecovery) (bool, error) {
	var failed error
	if !done.compacted {
		done.compacted = true
		if _, failed = t.compact(reasonOverflow, ""); failed == nil {
			return true, nil
		}
		if failed = fmt.Errorf("compacting: %w", failed); t.ctx.Err() != nil {
			return false, failed
		}
	}
	done.shortened = true
	n, err := t.shortenResults()
	return n > 0, errors.Join(failed, err)
}

// shortenResults shortens the longest tool results in the context until it is half as
// long, or certain to fit the window: a token has at least one byte. The log keeps them
// whole. It returns how many were shortened.
func (t *turn) shortenResults() (int, error) {
	c, err := t.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return 0, err
	}
	bytes := 0
	for i := range c.Entries {
		if text, err := c.Entries[i].MarshalJSON(); err == nil {
			bytes += len(text)
		}
	}
	aim := bytes / 2
	if window := t.opts.Compaction.window(t.opts.Model.Info()); window > 0 {
		aim = min(aim, t.usableTokens(window))
	}
	edits := window.ShortenResults(c, bytes-aim)
	if len(edits) == 0 {
		return 0, nil
	}
	if _, err := t.append(edits...); err != nil {
		return 0, err
	}
	t.count.forget()
	t.publish(Event{Type: Error, Err: errShortened})
	if t.opts.Logger != nil {
		t.opts.Logger.Warn(errShortened.Error(), "results", len(edits))
	}
	return len(edits), nil
}

// errShortened says why the model no longer sees all of a result.
var errShortened = errors.New("the conversation is too long for the model; its longest tool results are sent without their middle from now on")

func (k *Keeper) compactNow(reason, instructions string) (*Compacted, error) {
	window := k.opts.Compaction.window(k.opts.Model)
	c, err := k.s.Context(session.ContextOptions{})
	if err != nil {
		return nil, err
	}
	before, err := k.tokens(c)
	if err != nil {
		return nil, err
	}
	plan, err := k.planCompaction(c, before, reason)
	if err != nil {
		k.backoff.wait(before, window, true)
		return nil, err
	}
	model, options := k.summariser(instructions)
	made, err := summary.Compaction(k.ctx, model, plan, options)
	k.billSummary(made)
	if err != nil {
		k.backoff.wait(before, window, true)
		return nil, k.paid(made, err)
	}
	done := &Compacted{FirstKept: plan.FirstKept, TokensBefore: before, Reason: reason}
	if err := k.write(func() (err error) { done.Entry, err = made.Append(k.s, plan); return err }); err != nil {
		return nil, err
	}
	k.count.forget()
	if c, err = k.s.Context(session.ContextOptions{Shared: true}); err != nil {
		return nil, err
	}
	after, err := k.tokens(c)
	if err != nil {
		return nil, err
	}
	done.TokensAfter = k.count.scaled(after)
	k.backoff.wait(done.TokensAfter, window, window > 0 && done.TokensAfter > k.usableTokens(window))
	return done, nil
}

// planCompaction decides what a compaction leaves out of a context with this many tokens.
//
// Entries are weighed by their share of those tokens, so that the plan uses the same number
// as the decision to compact. A provider that found the conversation too long may have meant
// bytes: many pictures are few tokens. Then the share of the bytes counts if it is greater.
func (k *Keeper) planCompaction(c *session.Context, tokens int, reason string) (*session.CompactionPlan, error) {
	overflow := reason == reasonOverflow
	var counted, bytes int
	counts, sizes := make([]int, len(c.Entries)), make([]int, len(c.Entries))
	for i := range c.Entries {
		counts[i] = k.count.entry(c.Entries[i], k.opts.Model)
		counted += counts[i]
		if text, err := c.Entries[i].MarshalJSON(); overflow && err == nil {
			sizes[i] = len(text)
			bytes += len(text)
		}
	}
	weights, all := make(map[string]int, len(c.Entries)), 0
	for i := range c.Entries {
		weight := counts[i]
		if tokens > counted && counted > 0 {
			weight = weight * tokens / counted
		}
		if bytes > 0 {
			weight = max(weight, sizes[i]*tokens/bytes)
		}
		weights[c.Entries[i].ID] = weight
		all += weight
	}
	if reason == reasonWindow { // otherwise keep only as little as makes it worthwhile
		all = 0
	}
	window := k.opts.Compaction.window(k.opts.Model)
	keep := k.opts.Compaction.keep(window, all)
	if !overflow && window > 0 {
		// That is for the end of the conversation. The system messages and tools come on top,
		// and half of the rest must become free.
		system, fixed := k.count.fixed(c, k.opts.Model, k.opts.Tools)
		keep = system + max(0, min(keep, (k.usableTokens(window)-fixed)/2))
	}
	return c.PlanCompaction(keep, func(e session.Entry) int { return weights[e.ID] })
}

// summariser returns the model that writes summaries, and how it does.
func (k *Keeper) summariser(instructions string) (provider.Model, summary.Options) {
	model, most := k.opts.Compaction.Model, k.opts.Compaction.MaxSummary
	if window := model.Info().Window; window > 0 {
		most = min(most, window/4) // a longer one leaves no room for the conversation
	}
	return model, summary.Options{MaxTokens: most, Instructions: instructions, Files: k.opts.Files, Counter: k.opts.Counter, Announce: func(e session.Entry) error {
		_, err := k.append(e)
		return err
	}}
}

// billSummary adds the requests for a summary to what the turn cost.
func (k *Keeper) billSummary(made *summary.Summary) {
	if made == nil {
		return
	}
	for i := range made.Log {
		if bill, ok := session.BillOf(&made.Log[i]); ok {
			k.bill(&bill.Usage)
		}
	}
}

// paid records what a failed summary cost, and returns why it failed.
func (k *Keeper) paid(made *summary.Summary, cause error) error {
	return errors.Join(cause, k.write(func() error { return made.Bill(k.s) }))
}

// files returns the files that a call reads and changes.
func (t *turn) files(call *session.ToolUseContent) (read, changed []string) {
	tool := t.tools[call.Name]
	if tool == nil || tool.Files == nil {
		return summary.KnownFiles(call)
	}
	if input, err := call.InputJSON(); err == nil {
		_ = t.guard("the tool", Call{ID: call.ID, Name: call.Name}, func() { read, changed = tool.Files(input) }) // a summary works without them
	}
	return read, changed
}

// Compact replaces the beginning of the conversation by a summary now. Instructions
// say what the summary should pay attention to; "" is the usual. It returns
// session.ErrNothingToCompact if there is nothing to leave out.
func (a *Agent) Compact(ctx context.Context, instructions string) (*Compacted, error) {
	var done *Compacted
	err := a.change(ctx, func(t *turn) (err error) {
		done, err = t.compact(reasonAsked, instructions)
		return err
	})
	return done, err
}

// Undo takes back the compaction in force. Without one it returns session.ErrNotExist. The
// conversation then stays as it is until it has grown, or the provider finds it too long.
func (a *Agent) Undo() error {
	return a.change(context.Background(), func(t *turn) error {
		if err := t.write(func() error {
			_, err := t.s.Undo()
			return err
		}); err != nil {
			return err
		}
		t.forget()
		c, err := t.s.Context(session.ContextOptions{Shared: true})
		if err != nil {
			return err
		}
		tokens, err := t.tokens(c)
		if err != nil {
			return err
		}
		t.backoff.wait(tokens, t.opts.Compaction.window(t.opts.Model.Info()), true)
		return nil
	})
}

// Branch goes back to an entry, so that the conversation continues from there. With
// summarise, the model first writes a summary of the branch that is left, and the
// conversation continues with it. Nothing changes if that fails.
func (a *Agent) Branch(ctx context.Context, entryID string, summarise bool) error {
	return a.change(ctx, func(t *turn) error { return t.branch(entryID, summarise) })
}

// branch goes back to an entry: see Agent.Branch.
func (k *Keeper) branch(entryID string, summarise bool) error {
	if !summarise {
		return k.moveTo(entryID)
	}
	left, err := summary.Abandoned(k.s, k.s.LeafID(), entryID)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return k.moveTo(entryID)
	}
	model, options := k.summariser("")
	made, err := summary.Branch(k.ctx, model, left, options)
	if err != nil {
		return k.paid(made, err)
	}
	k.forget()
	return k.write(func() error {
		_, err := made.AppendBranch(k.s, entryID)
		return err
	})
}
