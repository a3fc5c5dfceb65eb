package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// CustomContinuedTo is the type of the custom entry that names a session's
// continuation. It has the data {"session": id, "of": the session's own id}. The
// first one counts, so that of several writers one is right; one that also has
// "instead_of" takes the place of the record that named that session.
const CustomContinuedTo = "coppice.continued_to"

// ContinuedTo returns the continuation of a session after an entry, if it was
// current before it. The entry may be any; of is the session's own id.
func ContinuedTo(e *Entry, of, current string) string {
	if e.Custom == nil || e.Custom.CustomType != CustomContinuedTo || e.Custom.Data["of"] != of {
		return current // or it came with history that was copied from another session
	}
	next, ok := e.Custom.Data["session"].(string)
	if ok && (current == "" || e.Custom.Data["instead_of"] == current) {
		return next
	}
	return current
}

// Continue starts the session that goes on where this one stops, carrying the
// given entries over (with new ids), and records in this one where it went. Each
// session has at most one continuation: if this one has been continued, Continue
// returns ErrExist.
//
// The record comes first and names a session that is then made with all that it
// carries, or not at all. So of several writers one makes the continuation,
// nobody sees it half filled, and what was cut short between the two steps is
// finished by the next Continue.
func (s *Session) Continue(carry ...Entry) (*Session, error) { return s.continueAs("", carry) }

// ContinueInstead is Continue for a session whose continuation was removed: it
// starts another one, under another id, so that the removed one can still be
// restored. lost is the id of the removed one.
func (s *Session) ContinueInstead(lost string, carry ...Entry) (*Session, error) {
	return s.continueAs(lost, carry)
}

func (s *Session) continueAs(lost string, carry []Entry) (*Session, error) {
	ctx := s.context()
	s.continuing.Lock()
	defer s.continuing.Unlock()
	blobs := heldBlobs{store: s.store}
	defer blobs.release()
	lines, err := s.carriedLines(ctx, &blobs, carry)
	if err != nil {
		return nil, err
	}
	id, err := s.recordContinuation(lost)
	if err != nil {
		return nil, err
	}
	h := Header{
		ID: id, ParentSession: s.name, Relation: RelationContinuation,
		Continuation: s.header.Continuation + 1, CWD: s.header.CWD,
	}
	next, err := create(ctx, s.store, h, &s.opts, store.Lines(lines...), s.log)
	if errors.Is(err, ErrExist) {
		return nil, &Error{Op: "continue", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("it continues in session %q", id)}
	}
	if err != nil {
		return nil, err
	}
	if s.owners != nil {
		s.owners.Add(1)
		next.owners = s.owners
	}
	return next, nil
}

// carriedLines are the lines with which a continuation begins.
func (s *Session) carriedLines(ctx context.Context, blobs *heldBlobs, carry []Entry) ([][]byte, error) {
	fresh := slices.Clone(carry)
	for i := range fresh {
		fresh[i].ID = ""
	}
	return s.firstLines(ctx, blobs, fresh)
}

// recordContinuation returns the id of the continuation that the log names, and
// first makes it name one if it does not. Of two writers that do so at once, the
// one whose record comes first is right. A record of lost does not count.
func (s *Session) recordContinuation(lost string) (string, error) {
	id, at, err := continuation(s.context(), s.log, s.name, s.strange)
	if err == nil && id != "" {
		err = s.checkSeen(at)
	}
	if err != nil || id != lost {
		return id, err
	}
	data := map[string]any{"session": s.opts.NewID(TypeSession), "of": s.name}
	if lost != "" {
		data["instead_of"] = lost
	}
	if _, err := s.AppendCustomEntry(CustomContinuedTo, data); err != nil {
		return "", err
	}
	return s.Continuation()
}

// checkSeen reports a conflict if a writer that wants to have seen everything
// has not seen what stands at a position.
func (s *Session) checkSeen(at store.Pos) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.OnConflict != ReportAll || at < s.tree.end {
		return nil
	}
	if err := s.absorb(s.context()); err != nil {
		return err
	}
	return &ConflictError{Leaf: s.tree.leaf, Theirs: s.tree.logLeaf, Err: &Error{Op: "continue", Name: s.name, Kind: ErrConflict}}
}

// Continuation returns the id of the session that continues this one, or "".
func (s *Session) Continuation() (string, error) {
	id, _, err := continuation(s.context(), s.log, s.name, s.strange)
	return id, err
}

// continuation looks for the record of a session's continuation that counts, and
// returns where it stands. If none names the session, one does that names it by
// the strange id that its header has.
func continuation(ctx context.Context, log store.Log, of, strange string) (id string, at store.Pos, err error) {
	other, otherAt := "", store.Pos(0)
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return "", 0, err
		}
		if !bytes.Contains(line.Data, []byte(CustomContinuedTo)) {
			continue
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil {
			continue
		}
		if next := ContinuedTo(e, of, id); next != id {
			id, at = next, line.Pos
		}
		if next := ContinuedTo(e, strange, other); next != other && strange != "" {
			other, otherAt = next, line.Pos
		}
	}
	if id == "" {
		return other, otherAt, nil
	}
	return id, at, nil
}

// Chain returns the ids of a session and of all the sessions it continues and is
// continued by, the original first: see FindChain, which also says which of them
// are missing.
func Chain(ctx context.Context, st store.Store, id string) ([]string, error) {
	c, err := FindChain(ctx, st, id, nil)
	return c.Links, err
}
