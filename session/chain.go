package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// CustomContinuedTo is the type of the custom entry that names a session's continuation.
// Its data is {"session": id, "of": the session's own id}. The first one counts, so that
// several writers agree on one. A record that also has "instead_of" replaces the record
// that named that session, which was lost. If the lost session comes back, it goes between
// the two: see Link.Replaced.
const CustomContinuedTo = "coppice.continued_to"

// ContinuedTo returns the continuation of a session after an entry, given the one before
// it. The entry may be of any type; of is the session's own id.
func ContinuedTo(e *Entry, of, current string) string {
	if e.Custom == nil || e.Custom.CustomType != CustomContinuedTo || e.Custom.Data["of"] != of {
		return current // a record with another "of" was copied from another session's history
	}
	next, ok := e.Custom.Data["session"].(string)
	if ok && (current == "" || e.Custom.Data["instead_of"] == current) {
		return next
	}
	return current
}

// Continue starts the session that continues where this one stops, and records in this one where
// it went. The new session begins with the carried entries: copies of entries of this one, which have
// an ID; then the marker, an entry of type TypeContinues, of which Continue fills in what is
// missing; then new entries, which have none. A copy is the same entry: only its parent differs, so
// that the session can be read by itself. Whatever reads both sessions counts it once.
//
// A session has at most one continuation: if this one has been continued, Continue returns
// ErrExist. If its continuation was removed, Continue starts another one under another id, so that
// the removed one can still be restored.
//
// A chain that OpenChain has opened continues in the new session: entries that are appended from then
// on go there, and Continue returns the chain itself. The conversation stays as it is,
// whatever is carried. If the chain was continued already, it continues there, but the error
// is still ErrExist.
//
// The order makes this safe. First the record is appended, which names the new session;
// then that session is created with all its entries, or not at all. Of several writers, the
// first to append a record decides the id, and only one of them can create that session. So
// there is one continuation, and it is never seen half filled. If a crash comes between the
// two steps, the next Continue finds the record and finishes.
func (s *Session) Continue(carry ...Entry) (*Session, error) {
	if chain, ok := s.log.(*chainLog); ok {
		return s, s.continueChain(chain, carry)
	}
	return s.continueIn(s, carry)
}

// continueIn is Continue for the last session of a conversation: the carried entries are copied from all
// of it.
func (s *Session) continueIn(conversation *Session, carry []Entry) (*Session, error) {
	ctx := s.context()
	s.continuing.Lock()
	defer s.continuing.Unlock()
	blobs := heldBlobs{store: s.store}
	defer blobs.release()
	lines, err := s.beginningOf(ctx, &blobs, conversation, carry)
	if err != nil {
		return nil, err
	}
	now, err := s.recordContinuation()
	if err != nil {
		return nil, err
	}
	id := now.to
	h := Header{
		ID: id, ParentSession: s.name, Relation: RelationContinuation,
		Continuation: s.header.Continuation + 1 + len(now.replaced), // leaves room for those that may come back
		CWD:          s.header.CWD,
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

// beginningOf returns the lines with which a continuation begins.
func (s *Session) beginningOf(ctx context.Context, blobs *heldBlobs, conversation *Session, carry []Entry) ([][]byte, error) {
	copies, marker, fresh, err := s.sortCarried(carry)
	if err != nil {
		return nil, err
	}
	if len(copies) > 0 { // the blobs that they name must stay
		if err := blobs.hold(ctx); err != nil {
			return nil, err
		}
	}
	next := newTree()
	next.extent = extentWhole
	lines, err := conversation.copiesOf(ctx, copies, next)
	if err != nil {
		return nil, err
	}
	if marker.Continues, err = s.completeMarker(ctx, conversation, marker.Continues); err != nil {
		return nil, err
	}
	next.leaf = next.logLeaf
	rest, err := s.firstLines(ctx, blobs, next, append([]Entry{marker}, fresh...))
	return append(lines, rest...), err
}

// sortCarried tells the copies, the marker and the new entries apart.
func (s *Session) sortCarried(carry []Entry) (copies []string, marker Entry, fresh []Entry, err error) {
	marker = Entry{Type: TypeContinues, Continues: &ContinuesEntry{}}
	marked := false
	for _, e := range carry {
		switch isMarker := e.Continues != nil; {
		case isMarker && marked:
			err = errors.New("there are two markers")
		case isMarker:
			marker, marked = e, true
		case e.ID != "" && (marked || len(fresh) > 0):
			err = fmt.Errorf("the copy %q comes after the marker or a new entry", e.ID)
		case e.ID != "":
			copies = append(copies, e.ID)
		default:
			if e.Type != TypeLeaf {
				e.ParentID = nil
			}
			fresh = append(fresh, e)
		}
		if err != nil {
			return nil, marker, nil, &Error{Op: "continue", Name: s.name, Kind: ErrInvalid, Err: err, Hint: "carry copies first, then the marker, then what is new"}
		}
	}
	marker.ID, marker.ParentID = "", nil
	return copies, marker, fresh, nil
}

// copiesOf returns the lines of entries as a continuation begins with them, each the child of the
// one before, and adds them to its tree.
func (s *Session) copiesOf(ctx context.Context, ids []string, next *tree) ([][]byte, error) {
	nodes, err := s.findAll("continue", ids)
	if err != nil {
		return nil, err
	}
	lines := make([][]byte, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if _, twice := next.at(n.id); twice {
			return nil, &Error{Op: "continue", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("entry %q is carried twice", n.id)}
		}
		if n.kind == kindGap || n.kind == kindLeaf {
			return nil, &Error{Op: "continue", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is of type %s, which cannot be carried", n.id, n.kind.entryType())}
		}
		if _, err := s.entryAt(ctx, n); err != nil {
			return nil, err
		}
		err := s.eachLine(ctx, nodes[i:i+1], never, func(_ int, line store.Line) error {
			lines = append(lines, withParent(line.Data, next.logLeaf))
			return nil
		})
		if err != nil {
			return nil, err
		}
		next.addEntry(headLine{id: n.id, parent: next.logLeaf, isRoot: next.logLeaf == "", kind: n.kind, speaker: n.speaker})
	}
	return lines, nil
}

// completeMarker fills in the members that a marker must have.
func (s *Session) completeMarker(ctx context.Context, conversation *Session, given *ContinuesEntry) (*ContinuesEntry, error) {
	m := *given
	m.Session = s.name
	if m.Original == "" && s.isContinuation() {
		var err error
		if m.Original, err = originalOf(ctx, s.log); err != nil {
			return nil, err
		}
	}
	m.Original = cmp.Or(m.Original, conversation.name)
	return &m, nil
}

// recordContinuation returns the session's continuation according to the log, and
// appends a record first if it names none, or one that is lost. If two writers do so at once,
// the record that comes first counts.
func (s *Session) recordContinuation() (continued, error) {
	ctx := s.context()
	now, err := s.continuation(ctx)
	if err == nil && now.to != "" {
		err = s.checkSeen(now.at)
	}
	if err != nil {
		return now, err
	}
	data := map[string]any{"session": s.opts.NewID(TypeSession), "of": s.name}
	if now.to != "" {
		if lost, err := s.isLost(ctx, now); !lost || err != nil {
			return now, err
		}
		data["instead_of"] = now.to
	}
	if _, err := s.AppendCustomEntry(CustomContinuedTo, data); err != nil {
		return now, err
	}
	return s.continuation(ctx)
}

// checkSeen returns a conflict if a writer that insists on having seen everything (see
// ReportAll) has not seen the lines at a position.
func (s *Session) checkSeen(at store.Pos) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.OnConflict != ReportAll || at < s.tree.end {
		return nil
	}
	if err := s.absorb(s.context()); err != nil {
		return err
	}
	s.apart = true
	return &ConflictError{Leaf: s.tree.leaf, Theirs: s.tree.logLeaf, Err: &Error{Op: "continue", Name: s.name, Kind: ErrConflict}}
}

// Continuation returns the id of the session that continues this one, or "". For a chain it is
// the session that continues the last one but is missing, or was missing when the chain was
// read.
func (s *Session) Continuation() (string, error) {
	if chain, ok := s.log.(*chainLog); ok {
		now, err := chain.continuation(s.context())
		return now.to, err
	}
	now, err := s.continuation(s.context())
	return now.to, err
}

// creationTime is how long a writer may take between naming a continuation and creating it.
const creationTime = time.Minute

// isLost reports whether the continuation that the log names was there and is gone. If it
// was named a moment ago and is not in the trash, it is most likely being created. A wrong
// guess does no harm: a session that comes back goes before the one that replaced it.
func (s *Session) isLost(ctx context.Context, now continued) (bool, error) {
	if store.CheckName(now.to) != nil {
		return true, nil // the name is not valid, so it cannot be created
	}
	log, err := s.store.Open(ctx, now.to)
	if err == nil { // a log may name a session that has nothing to do with it
		h, err := FindHeader(ctx, log)
		isOurs := h == nil || h.Relation == RelationContinuation && h.ParentSession == s.name
		return !isOurs, errors.Join(err, log.Close())
	}
	if !errors.Is(err, ErrNotExist) {
		return false, err
	}
	if s.opts.Now().Sub(now.named) > creationTime {
		return true, nil
	}
	trash, err := s.store.Trash().List(ctx)
	if errors.Is(err, errors.ErrUnsupported) { // another machine has it
		return false, nil
	}
	return slices.ContainsFunc(trash, func(t store.Trashed) bool { return t.Name == now.to }), err
}

// continued is the continuation of a session according to its log.
type continued struct {
	to       string
	at       store.Pos // where it says so
	named    time.Time // when
	replaced []string  // the sessions that it named before
}

func (c *continued) note(e *Entry, of string, at store.Pos) {
	next := ContinuedTo(e, of, c.to)
	if next == c.to {
		return
	}
	if c.to != "" {
		c.replaced = append(c.replaced, c.to)
	}
	c.to, c.at, c.named = next, at, e.Timestamp
}

func (s *Session) continuation(ctx context.Context) (continued, error) {
	return continued{}.read(ctx, s.log, s.linesWithCustoms(ctx), s.name)
}

// maxPicked is up to how many lines are read one by one; beyond that, reading the whole log
// is faster.
const maxPicked = 64

// linesWithCustoms yields the lines of custom entries, and possibly others. If the tree is
// in memory, it knows which lines those are; otherwise all lines are read.
func (s *Session) linesWithCustoms(ctx context.Context) iter.Seq2[store.Line, error] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.tree.isWhole() || len(s.tree.problems) > 0 { // some line may not be in the tree
		return s.log.Forward(ctx, 0)
	}
	var customs []store.Pos
	for i := range s.tree.nodes {
		if s.tree.nodes[i].kind == kindCustom {
			customs = append(customs, s.tree.nodes[i].pos)
		}
	}
	if len(customs) > maxPicked {
		return s.log.Forward(ctx, 0)
	}
	end := s.tree.end
	return func(yield func(store.Line, error) bool) {
		for line, err := range linesAt(ctx, s.log, customs) {
			if !yield(line, err) {
				return
			}
		}
		s.log.Forward(ctx, end)(yield) // lines that others wrote since
	}
}

// linesAt yields the lines of a log at some positions.
func linesAt(ctx context.Context, log store.Log, at []store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, pos := range at {
			for line, err := range log.Forward(ctx, pos) {
				if !yield(line, err) {
					return
				}
				break
			}
		}
	}
}

// read searches lines of a log for records of a session's continuation. It returns what they say
// together with the lines before them.
func (c continued) read(ctx context.Context, log store.Log, lines iter.Seq2[store.Line, error], of string) (continued, error) {
	for line, err := range lines {
		if err != nil {
			return continued{}, err
		}
		if !bytes.Contains(line.Data, []byte(CustomContinuedTo)) {
			continue
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil || e.ID == "" || ContinuedTo(e, of, c.to) == c.to {
			continue
		}
		repeated, err := hasBefore(ctx, log, e.ID, line.Pos)
		if err != nil {
			return continued{}, err
		}
		if !repeated {
			c.note(e, of, line.Pos)
		}
	}
	return c, nil
}

// hasBefore reports whether a log has an entry before a position with the id of one that is there.
// That one is whole and its type is known, so before it only such a line counts: see Rewritten.
func hasBefore(ctx context.Context, log store.Log, id string, end store.Pos) (bool, error) {
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return false, err
		}
		if line.Pos >= end {
			break
		}
		if h, ok := entryHead(line); ok && string(h.ID) == id && isWhole(line, h) {
			return true, nil
		}
	}
	return false, nil
}

// entryHead returns the first members of the entry on a line, if it is one that has an id.
func entryHead(line store.Line) (h rawjson.Head, ok bool) {
	h, ok = rawjson.ScanHead(line.Data)
	return h, ok && !line.Cut && len(h.ID) > 0 && string(h.Type) != string(TypeSession)
}

// Chain returns the ids of a session and of all the sessions it continues and is
// continued by, the original first: see FindChain, which also says which of them
// are missing.
func Chain(ctx context.Context, st store.Store, id string) ([]string, error) {
	c, err := FindChain(ctx, st, id, nil)
	return c.Links, err
}
