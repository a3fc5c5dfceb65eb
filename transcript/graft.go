package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// flush writes the queued entries. Remarks come before the records, so that the last line of
// the log is a record and the leaf; but a session begins with a record.
func (t *target) flush() error {
	if t.w.im.DryRun || len(t.queue) == 0 && (len(t.remarks) == 0 || t.s == nil || t.s.LeafID() == "") {
		return nil // remarks wait until the session has a record
	}
	if t.s == nil {
		if err := t.create(); err != nil {
			return err
		}
	}
	on, first := t.s.LeafID(), 0
	if on == "" && len(t.queue) > 0 {
		on, first = t.queue[0].ID, 1
	}
	for i := range t.remarks {
		t.remarks[i].Timestamp = t.when()
		if on != "" {
			t.remarks[i].ParentID = &on
		}
	}
	entries := slices.Concat(t.queue[:first], t.remarks, t.queue[first:])
	t.moved = true // unless the last line is where the conversation ends
	if err := t.graft(entries); err != nil {
		return err
	}
	t.queue, t.remarks = t.queue[:0], nil
	clear(t.queued)
	return nil
}

func isRemark(e *session.Entry) bool {
	return e.Custom != nil && (e.Custom.CustomType == CustomImport || e.Custom.CustomType == CustomFidelity)
}

// create makes the session, or opens the one that another importer made in the
// meantime.
func (t *target) create() error {
	c := &t.conv
	h := session.Header{ID: t.id, CWD: c.CWD, Key: t.w.format.Name + ":" + c.ID, CreatedAt: c.Created, Relation: c.Relation}
	if h.CreatedAt.IsZero() {
		h.CreatedAt = t.queue[0].Timestamp
	}
	if c.Parent != "" {
		h.ParentSession = SessionID(t.w.format.Name, c.Parent)
	}
	if c.Relation == session.RelationContinuation {
		h.Continuation = max(1, c.Continuation)
	}
	from := session.Origin{Format: t.w.format.Name, ID: c.ID, Path: t.w.file.Path, ParentCall: c.ParentCall}
	if len(c.Extra) > 0 {
		facts, err := json.Marshal(c.Extra)
		if err != nil {
			return err
		}
		from.Facts = facts
	}
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	h.Extra = session.Fields{{Name: session.OriginField, Value: t.w.cleanJSON(raw)}}
	if h.CWD != "" {
		if raw, err := json.Marshal(h.CWD); err == nil {
			_ = json.Unmarshal(t.w.cleanJSON(raw), &h.CWD) // JSON stays JSON
		}
	}
	st := t.w.im.Store
	if t.w.batch != nil {
		t.stage = newStage(st)
		st = t.stage
	}
	t.s, err = session.Create(t.w.ctx, st, h, t.options())
	if errors.Is(err, session.ErrExist) {
		t.s, err = session.Open(t.w.ctx, t.w.im.Store, t.id, t.options())
		return err
	}
	t.created = err == nil
	return err
}

// graft appends entries, without those that another importer has already added.
func (t *target) graft(entries []session.Entry) error {
	return session.Retry(func() error {
		err := t.s.Graft(entries...)
		switch {
		case err == nil || len(entries) == 0:
			return nil
		case isFull(err): // no smaller record would help
			return err
		case errors.Is(err, session.ErrExist):
			return fmt.Errorf("session %s: another importer got there first: %w", t.id, session.ErrConflict)
		case len(entries) > 1 && (errors.Is(err, session.ErrTooLarge) || errors.Is(err, session.ErrInvalid)):
			for i := range entries {
				if err := t.graft(entries[i : i+1]); err != nil {
					return err
				}
			}
			return nil
		case errors.Is(err, session.ErrTooLarge) || errors.Is(err, session.ErrInvalid):
			if isStub(&entries[0]) {
				return err
			}
			fit, err := t.fit(entries[0], err)
			if err != nil {
				return err
			}
			return t.graft([]session.Entry{fit})
		default:
			return err
		}
	}, func() (err error) {
		if _, err = t.s.Refresh(); err == nil {
			entries, err = t.missing(entries)
		}
		return err
	})
}

// isFull reports whether the session has reached its maximum size.
func isFull(err error) bool {
	limit, ok := errors.AsType[*store.LimitError](err)
	return ok && limit.Limit == store.MaxSession
}

func (t *target) missing(entries []session.Entry) ([]session.Entry, error) {
	var rest []session.Entry
	for i := range entries {
		has, err := t.s.Has(entries[i].ID)
		if err != nil {
			return nil, err
		}
		if !has {
			rest = append(rest, entries[i])
		}
	}
	return rest, nil
}

// customUnwritable replaces a record that a session cannot hold.
const customUnwritable = "coppice.unwritable"

func isStub(e *session.Entry) bool { return e.Custom != nil && e.Custom.CustomType == customUnwritable }

// fit returns what can be written instead of an entry that was refused: the
// compaction with another cut, if it would have separated a tool call from its
// result, or else a stub.
func (t *target) fit(e session.Entry, why error) (session.Entry, error) {
	if _, isCut := errors.AsType[*session.CutError](why); isCut && e.ParentID != nil {
		path, err := t.s.Forward(*e.ParentID)
		if err != nil {
			return e, err
		}
		if moved, ok := session.MoveCut(path, e); ok && moved.Compaction.FirstKeptEntryID != e.Compaction.FirstKeptEntryID {
			t.tally.count("compaction between a call and its result", "compaction that keeps both", 1)
			return moved, nil
		}
	}
	return t.stub(&e, why), nil
}

// stub returns an entry in place of one that cannot be written, so that what follows it
// has a parent. The bytes are kept.
func (t *target) stub(e *session.Entry, why error) session.Entry {
	t.tally.problem(Problem{Reason: fmt.Sprintf("record %s is only kept as bytes: %v", e.ID, why)})
	s := session.Entry{Type: session.TypeCustom, ID: e.ID, ParentID: e.ParentID, Timestamp: e.Timestamp}
	s.Custom = &session.CustomEntry{CustomType: customUnwritable, Data: map[string]any{"type": string(e.Type), "reason": why.Error()}}
	for _, f := range e.Extra {
		if f.Name == sourceField {
			s.Extra = session.Fields{f}
		}
	}
	return s
}

// finish records the name, the tags and what became of the source, and moves the leaf
// to where the conversation ends.
func (t *target) finish() error {
	if t.w.im.DryRun {
		return nil
	}
	// If nothing of the session is written yet, the remarks come before its last
	// record, which then is the leaf without a move.
	whole := t.s == nil && len(t.queue) > 1
	if whole {
		if t.conv.Title != "" {
			t.remarks = append(t.remarks, t.title())
		}
		t.addFidelity()
	}
	if err := t.flush(); err != nil || t.s == nil {
		return err
	}
	if !whole {
		if err := t.name(); err != nil {
			return err
		}
	}
	if t.created && len(t.conv.Tags) > 0 {
		if _, err := t.s.AppendEntry(session.Tags(t.conv.Tags...)); err != nil {
			return err
		}
	}
	if !t.moved {
		return nil
	}
	if t.added > 0 && !whole {
		t.addFidelity()
		if err := t.flush(); err != nil {
			return err
		}
	}
	return t.moveLeaf()
}

func (t *target) addFidelity() {
	t.remark("fidelity-"+HashID(t.id, t.last, t.w.im.now().String())[:18], t.fidelity())
}

func (t *target) fidelity() *session.CustomEntry {
	data := map[string]any{"format": t.w.format.Name, "path": t.w.file.Path, "new": t.added, "known": t.known}
	if t.again > 0 {
		data["revised"] = t.again
	}
	counts := make(map[string]any)
	for _, f := range t.tally.fidelity() {
		became, _ := counts[f.What].(map[string]any)
		if became == nil {
			became = make(map[string]any)
			counts[f.What] = became
		}
		became[f.Became] = f.N
	}
	if len(counts) > 0 {
		data["became"] = counts
	}
	if t.tally.n > 0 {
		var list []any
		for _, p := range t.tally.problems {
			list = append(list, map[string]any{"pos": p.Pos &^ keptSpace, "line": p.Line, "reason": p.Reason})
		}
		data["problem_count"], data["problems"] = t.tally.n, list
	}
	return &session.CustomEntry{CustomType: CustomFidelity, Data: data}
}

// name gives the session the conversation's title, unless the user renamed it here.
func (t *target) name() error {
	if t.conv.Title == "" {
		return nil
	}
	now, err := t.s.Name()
	if err != nil || now == t.conv.Title {
		return err
	}
	if now != "" {
		if ours, err := t.s.Has(t.titleID(now)); !ours || err != nil {
			return err
		}
	}
	e := t.title()
	if on := t.s.LeafID(); on != "" {
		e.ParentID = &on
	}
	e.Timestamp = t.when()
	t.moved = true
	if has, err := t.s.Has(e.ID); has || err != nil { // it had this name before
		e.ID += "~" + HashID(t.w.im.now().String())[:8]
	}
	return t.graft([]session.Entry{e})
}

// title is the entry that names the session, without a parent and a time.
func (t *target) title() session.Entry {
	return session.Entry{Type: session.TypeSessionInfo, ID: t.titleID(t.conv.Title), SessionInfo: &session.SessionInfoEntry{Name: t.conv.Title}}
}

func (t *target) titleID(title string) string { return "title-" + HashID(t.id, title)[:18] }

// moveLeaf makes sure that the session ends where the conversation does.
func (t *target) moveLeaf() error {
	want := t.last
	if want == "" {
		want = t.base
	}
	if t.leaf != "" {
		if id := t.entryID(t.leaf); id != "" {
			if has, err := t.s.Has(id); err != nil {
				return err
			} else if has {
				want = id
			}
		}
	}
	stale, err := t.isStale(want)
	if err != nil {
		return err
	}
	if stale {
		want = t.base
	}
	if want == "" || t.s.LeafID() == want {
		return nil
	}
	return t.s.Branch(want)
}

func (t *target) close() error {
	if t.s == nil {
		return nil
	}
	err := t.s.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err == nil && t.stage != nil && t.w.ctx.Err() == nil {
		err = t.stage.add(t.w.ctx, t.w.batch, t.id)
	}
	return err
}

func (t *target) report() SessionReport {
	written := t.added
	if !t.w.im.DryRun {
		written -= len(t.queue) // which could not be written
	}
	return SessionReport{
		ID: t.id, Key: t.w.format.Name + ":" + t.conv.ID, Title: t.conv.Title, Created: t.created || t.w.im.DryRun && t.s == nil && t.added > 0,
		New: written, Known: t.known, Revised: t.again,
		Fidelity: t.tally.fidelity(), Problems: t.tally.problems, ProblemCount: t.tally.n,
	}
}
