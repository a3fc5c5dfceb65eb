package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// The steps of an append, whichever method starts it:
//
//	put                    one call, from beginning to end
//	  makeReady            before the lock: Options.Clean, checkForm, limits, blobs
//	  checkInLog           before the lock: checks that need to read the log
//	  write                under the lock, without waiting for the disk
//	    encode             assign, which gives the entry its id, parent and time; then its line
//	    Start              the store appends the lines
//	    resolveConflict    if another writer was faster: read its entries, try again
//	    addBatch           add the entries to the tree
//	  commit               after the lock: wait for the disk
//
// The order matters. Cleaning comes first, so that no secret reaches a blob. Blobs come
// before the line that names them, so that a crash leaves at worst a blob that nothing
// names, never a line whose content is missing. And an entry is added to the tree only when
// its line is in the log.
//
// checkForm, checkInLog and assign are explained in validate.go.

// AppendEntry adds an entry of any type as a child of the leaf, and moves the leaf to it. It
// returns the entry's id. Message, Label, Compaction and the like make entries. ParentID must
// be nil: to append anywhere but at the leaf, use Update with Tx.Branch. An empty ID and a zero
// Timestamp are filled in. Without an error, the entry is as durable as the store promises.
func (s *Session) AppendEntry(entry Entry) (string, error) {
	one := singles.Get().(*single)
	one.entry[0] = entry
	return s.putSingle(one)
}

// AppendAll adds entries one after the other, with one write and one sync. If there is a
// conflict or an error, it adds none. It returns their ids.
func (s *Session) AppendAll(entries ...Entry) ([]string, error) {
	return s.put(&writing{op: "append", entries: slices.Clone(entries)})
}

// putSingle writes the entry of a single and returns its id.
func (s *Session) putSingle(one *single) (string, error) {
	one.op = cmp.Or(kinds[one.entry[0].Type.kind()].verb, "append")
	one.entries, one.alone = one.entry[:], true
	_, err := s.put(&one.writing)
	id := one.entry[0].ID
	*one = single{} // the pool must not keep the caller's content in memory
	singles.Put(one)
	if err != nil {
		return "", err
	}
	return id, nil
}

// single is a writing of one entry, as most are. Nothing refers to it after put has
// returned, so its memory can be pooled.
type single struct {
	writing
	entry   [1]Entry
	message MessageEntry // for AppendMessage
}

var singles = sync.Pool{New: func() any { return new(single) }}

// AppendMessage appends a message.
func (s *Session) AppendMessage(role MessageRole, content []Content) (string, error) {
	if s.opts.Clean != nil { // it may keep a pointer to the message, so that must not be pooled
		return s.AppendEntry(Message(role, content...))
	}
	one := singles.Get().(*single)
	one.message.Role, one.message.Content = role, content
	one.entry[0].Type, one.entry[0].Message = TypeMessage, &one.message
	return s.putSingle(one)
}

// writing is one call that writes entries.
type writing struct {
	op      string // for errors
	entries []Entry
	graft   bool   // the entries bring their own ids, parents and times: see Graft
	ownIDs  bool   // we made the ids, so errors do not name them: no caller has seen them
	alone   bool   // part of a single: the list of ids is not needed
	begins  bool   // a new session begins with them, so one of them may be its marker
	parent  string // of the single entry
	tx      *Tx    // whose entries these are, or nil

	// Some entries can only be checked against earlier entries, which may have to be read
	// from the disk. That happens before the lock is taken, so the result is valid only
	// as long as the leaf is still checkedLeaf.
	checked     bool
	checkedLeaf string
}

// put writes entries: it completes and checks them, moves large content into blobs, and
// appends them. It returns their ids.
func (s *Session) put(w *writing) ([]string, error) {
	blobs := heldBlobs{store: s.store}
	defer blobs.release() // only after the lines that name them are in the log
	ids, commit, err := s.start(w, &blobs)
	if err == nil {
		err = s.await(commit)
	}
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// start is put without waiting for the disk. The caller must await the function that it
// returns, and hold the blobs until then.
func (s *Session) start(w *writing, blobs *heldBlobs) ([]string, func() error, error) {
	ctx := s.context()
	if err := s.makeReady(ctx, blobs, w); err != nil {
		return nil, nil, err
	}
	for {
		if err := s.checkInLog(ctx, w); err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		ids, commit, err := s.write(ctx, w)
		s.mu.Unlock()
		if err != errLeafMoved || w.tx != nil {
			return ids, commit, err
		}
	}
}

// await waits until the lines are on the disk. It is called without mu, so others can write in the
// meantime, and one sync covers them all. If it fails, nobody knows which lines are on the disk, and
// the kernel will not say: a second sync would succeed. So this session accepts no more appends.
func (s *Session) await(commit func() error) error {
	err := commit()
	if err != nil {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
	}
	return err
}

// errLeafMoved means that the leaf has moved since it was read without the lock, so the checks of
// checkInLog, or the state that a Tx was built on, are out of date. It is never returned to a caller.
var errLeafMoved = errors.New("the leaf has moved")

// makeReady cleans, checks and measures entries, and only then puts their large content
// into blobs. So an entry that is refused leaves nothing behind. The blobs must be held
// until the entries are appended.
func (s *Session) makeReady(ctx context.Context, blobs *heldBlobs, w *writing) error {
	m := mover{ctx: ctx, store: s.store, threshold: s.opts.BlobThreshold}
	for i := range w.entries {
		if err := s.clean(w, i); err != nil {
			return err
		}
		err := checkForm(&w.entries[i], w.isGraft(i))
		if err == nil && !w.begins && !w.isGraft(i) {
			err = checkMarker(&w.entries[i])
		}
		if err == nil {
			err = w.checkParent(i)
		}
		if err != nil {
			return s.refuse(w, i, ErrInvalid, err)
		}
		m.move(i, &w.entries[i])
	}
	if err := s.admit(w.entries, &m); err != nil {
		return err
	}
	return m.put(blobs)
}

// Clean changes an entry as an append would: see Options.Clean.
func (s *Session) Clean(e *Entry) error {
	if s.opts.Clean == nil {
		return nil
	}
	return s.opts.Clean(e)
}

// clean calls Options.Clean.
func (s *Session) clean(w *writing, i int) error {
	if s.opts.Clean == nil {
		return nil
	}
	e := &w.entries[i]
	before, _ := e.payloadType()
	if err := s.opts.Clean(e); err != nil {
		return s.refuse(w, i, nil, fmt.Errorf("cleaning the entry: %w", err))
	}
	if after, _ := e.payloadType(); after != before {
		return s.refuse(w, i, ErrInvalid, errors.New("cleaning the entry changed the type of its payload"))
	}
	return nil
}

// write puts entries into the log and the tree without waiting for the disk. It is called
// with mu held for writing. The caller must call the function it returns, without mu, to
// wait for the disk.
func (s *Session) write(ctx context.Context, w *writing) ([]string, func() error, error) {
	if err := s.checkOpen(w.op); err != nil {
		return nil, nil, err
	}
	if w.tx != nil && !w.tx.isCurrent() || w.tx == nil && w.checked && s.tree.leaf != w.checkedLeaf {
		return nil, nil, errLeafMoved
	}
	batch, err := s.encode(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	if len(batch.lines) == 0 {
		return nil, func() error { return nil }, nil
	}
	for {
		if err := s.checkRoom(ctx, batch.size); err != nil {
			return nil, nil, err
		}
		at, known := s.tree.end, len(s.tree.nodes)
		end, commit, err := s.log.Start(ctx, at, batch.lines...)
		if err == nil {
			if err := s.addBatch(ctx, batch, at, end); err != nil {
				s.failed = errUnread("append", s.name, err, commit())
				return nil, nil, s.failed
			}
			s.weight.add(batch.size, at, end)
			return batch.ids, commit, nil
		}
		if w.tx != nil && w.tx.again && errors.Is(err, ErrConflict) {
			return nil, nil, errLeafMoved
		}
		if err := s.resolveConflict(ctx, batch, err, known); err != nil {
			return nil, nil, err
		}
	}
}

// errUnread is the error of an append whose lines are in the log, but could not be read back,
// and that their commit ended with, if it failed. Whatever the reason is, the append was not
// refused. So the error matches ErrUnknown and not its causes, of which some mean that nothing
// was written.
func errUnread(op, name string, unread, commit error) error {
	return &Error{
		Op: op, Name: name, Kind: ErrUnknown, Err: fmt.Errorf("it was written and could not be read back: %v", errors.Join(unread, commit)),
		Hint: "load the session again to see whether it is there",
	}
}

// checkOpen returns an error if the session cannot be appended to.
func (s *Session) checkOpen(op string) error {
	if s.closed {
		return s.errClosed(op)
	}
	if s.failed != nil {
		return &Error{
			Op: op, Name: s.name, Kind: ErrClosed, Err: fmt.Errorf("an earlier append failed: %w", s.failed),
			Hint: "load the session again to see whether it was written",
		}
	}
	return nil
}

// resolveConflict handles an append that the store refused. If another writer was faster, it reads
// that writer's entries, and returns nil if the append may be tried again, or errLeafMoved if it must
// follow the entries with which that writer began the session.
func (s *Session) resolveConflict(ctx context.Context, b *batch, err error, known int) error {
	if errors.Is(err, ErrUnknown) {
		s.failed = err
	}
	if !errors.Is(err, ErrConflict) {
		return err
	}
	at := s.tree.end
	if err := s.absorb(ctx); err != nil {
		return err
	}
	if s.tree.end == at {
		return s.errShorter()
	}
	for _, id := range b.ids {
		if _, taken := s.tree.at(id); taken {
			return &Error{Op: "append", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("another program wrote entry %q", id)}
		}
	}
	if s.mustReport(known) {
		s.apart = true
		return &ConflictError{Leaf: s.tree.leaf, Theirs: s.tree.logLeaf, Err: err}
	}
	if known == 0 && s.opts.OnConflict == ReportConflict {
		s.tree.leaf = s.tree.logLeaf // or the session would have two roots
		return errLeafMoved
	}
	return nil
}

// errShorter is the error for a conflict after which there is nothing new to read: the log
// got shorter, so entries that we have read are gone.
func (s *Session) errShorter() error {
	return &Error{
		Op: "append", Name: s.name, Kind: ErrReplaced,
		Err:  fmt.Errorf("it is shorter than when it was read: it ended at byte %d", s.tree.end),
		Hint: "another program shortened it: open it again",
	}
}

// mustReport reports whether the append must fail because of the entries of other writers, which are
// the nodes from an index on.
func (s *Session) mustReport(known int) bool {
	switch s.opts.OnConflict {
	case GrowBranch:
		return false
	case ReportAll:
		return true
	}
	return !s.tree.onlyRemarksSince(known)
}

// encode checks entries against the tree, fills in what is missing (in the entries
// themselves), and encodes them. The batch it returns is the session's own and holds
// until the next encode; that is enough, because a Log does not keep the lines it is
// given.
func (s *Session) encode(ctx context.Context, w *writing) (*batch, error) {
	b := &s.batch
	b.reset(len(w.entries), w.startLeaf(s.tree.leaf), w.alone)
	for i := range w.entries {
		e := &w.entries[i]
		if err := s.assign(ctx, w, b, i); err != nil {
			return nil, err
		}
		err := s.checkInLast(b, e)
		if err != nil {
			return nil, err
		}
		begin := len(b.text)
		if b.text, err = appendEntry(b.text, e); err != nil {
			return nil, s.refuse(w, i, nil, err)
		}
		line := b.text[begin:]
		if len(line) > deepLine && !rawjson.Valid(line) {
			return nil, s.refuse(w, i, ErrInvalid, errors.New("the entry is nested too deeply to be read again"))
		}
		b.add(e, int64(len(line)))
		if w.isGraft(i) && e.Type == TypeLeaf {
			if b.leaf, err = s.leafAfter(ctx, b, b.leaf); err != nil {
				return nil, err
			}
		}
	}
	if w.alone {
		b.own = b.ids
	}
	if w.graft {
		b.cut(keptGraft)
	} else {
		b.cut(keptText)
	}
	return b, nil
}

// deepLine is the length from which a line is checked for its nesting. Readers drop values
// nested deeper than 10,000 levels, and each level takes at least two bytes.
const deepLine = 20_000

// addBatch adds a batch, written from at to end, to the tree.
func (s *Session) addBatch(ctx context.Context, b *batch, at, end store.Pos) error {
	b.heads[0].pos = at
	if len(b.heads) > 1 {
		if err := s.findLines(ctx, b, at); err != nil {
			return err
		}
	}
	for i := range b.heads {
		b.heads[i].id = s.tree.ids.copy(b.heads[i].id)
		s.tree.addEntry(b.heads[i])
	}
	s.tree.end, s.tree.leaf, s.tree.logLeaf, s.apart = end, b.leaf, b.leaf, false
	s.tree.inBeginning = false // if the session has no marker, its first new entry ends its beginning
	s.linked.advance(b, at, end)
	return nil
}

// findLines finds where the lines of a batch begin; after the first, only the store knows.
// It ignores cancellation, because the lines are in the log already and must be
// in the tree, too. (It is a separate function because its loop would cost every append an
// allocation.)
func (s *Session) findLines(ctx context.Context, b *batch, at store.Pos) error {
	i := 0
	for line, err := range s.log.Forward(context.WithoutCancel(ctx), at) {
		if err != nil {
			return err
		}
		b.heads[i].pos = line.Pos
		if i++; i == len(b.heads) {
			break
		}
	}
	return nil
}
