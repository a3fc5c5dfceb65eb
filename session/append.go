package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// The way of an entry into the log, whichever method it comes by:
//
//	put            one call, from beginning to end
//	  makeReady    before the lock: Options.Clean, checkForm, limits, blobs
//	  judge        before the lock: what only the log can tell
//	  write        under the lock, without waiting for the disk
//	    encode     place, which gives it its id, parent and time; then its line
//	    Start      the store appends the lines
//	    meet       if another writer was faster: take in what that one wrote, try again
//	    take       the tree learns of them
//	  commit       after the lock: wait for the disk
//
// checkForm, judge and place are the door: see door.go.

// Append adds an entry as a child of the leaf, which then moves to it. The
// entry's Type and payload are the caller's; its parent is the leaf. An empty
// ID and a zero Timestamp are filled in. An entry that the typed methods would
// not write is refused here too: see Error. When Append returns nil, the entry
// is as durable as the store was told to make it.
func (s *Session) Append(entry Entry) error {
	_, err := s.appendOne("append", entry)
	return err
}

// AppendEntry is Append and returns the entry's id.
func (s *Session) AppendEntry(entry Entry) (string, error) { return s.appendOne("append", entry) }

// AppendAll adds entries one after the other, with one write and one sync: all
// of them or, if there is a conflict or an error, none. It returns their ids.
func (s *Session) AppendAll(entries ...Entry) ([]string, error) {
	return s.put(&writing{op: "append", entries: slices.Clone(entries)})
}

// appendOne appends an entry on behalf of an operation.
func (s *Session) appendOne(op string, entry Entry) (string, error) {
	one := singles.Get().(*single)
	one.entry[0] = entry
	return s.putSingle(op, one)
}

// putSingle writes the entry of a single, and returns its id.
func (s *Session) putSingle(op string, one *single) (string, error) {
	one.op, one.entries, one.alone = op, one.entry[:], true
	_, err := s.put(&one.writing)
	id := one.entry[0].ID
	*one = single{} // nothing of the caller's stays in memory
	singles.Put(one)
	if err != nil {
		return "", err
	}
	return id, nil
}

// single is a writing of one entry. Most are, and nobody holds on to one when put
// has returned: so their memory is used again.
type single struct {
	writing
	entry   [1]Entry
	message MessageEntry // of AppendMessage
}

var singles = sync.Pool{New: func() any { return new(single) }}

// AppendMessage appends a message.
func (s *Session) AppendMessage(role MessageRole, content []Content) (string, error) {
	if s.opts.Clean != nil { // which may hold on to the message
		return s.AppendEntry(Entry{Type: TypeMessage, Message: &MessageEntry{Role: role, Content: content}})
	}
	one := singles.Get().(*single)
	one.message.Role, one.message.Content = role, content
	one.entry[0].Type, one.entry[0].Message = TypeMessage, &one.message
	return s.putSingle("append", one)
}

// AppendThinkingLevelChange records how hard the model is to think from here on.
func (s *Session) AppendThinkingLevelChange(level string) (string, error) {
	return s.AppendEntry(Entry{Type: TypeThinkingLevel, ThinkingLevel: &ThinkingLevelEntry{ThinkingLevel: level}})
}

// AppendModelChange records which model answers from here on.
func (s *Session) AppendModelChange(provider, modelID string) (string, error) {
	return s.AppendEntry(Entry{Type: TypeModelChange, ModelChange: &ModelChangeEntry{Provider: provider, ModelID: modelID}})
}

// AppendSessionInfo gives the session a display name.
func (s *Session) AppendSessionInfo(name string) (string, error) {
	return s.AppendEntry(Entry{Type: TypeSessionInfo, SessionInfo: &SessionInfoEntry{Name: name}})
}

// AppendCustomEntry records an extension's data. The model never sees it.
func (s *Session) AppendCustomEntry(customType string, data map[string]any) (string, error) {
	return s.AppendEntry(Entry{Type: TypeCustom, Custom: &CustomEntry{CustomType: customType, Data: data}})
}

// writing is one call that writes entries.
type writing struct {
	op      string // for errors
	entries []Entry
	graft   bool   // they bring their ids, parents and times along: see Graft
	strict  bool   // the graft is our own, and is judged like everything else
	ownIDs  bool   // ids were made for them, which errors do not name: nobody knows them
	alone   bool   // it is a single's: nobody wants the list of its ids
	parent  string // of the entry that is alone
	// decide, if it is not nil, has the last word on the entries. It is called
	// under the lock, so that what it learns from the tree still holds when they
	// are written. It may empty them: then nothing is written.
	decide func(*tree, *writing) error

	// Some entries can only be judged by what stands before them in the log,
	// which is read before the lock is taken. The judgement holds for one leaf.
	judged     bool
	judgedLeaf string
}

// put writes entries: it completes them, checks them, moves what is large into
// blobs, and appends them. It returns their ids.
func (s *Session) put(w *writing) ([]string, error) {
	ctx := s.context()
	blobs := heldBlobs{store: s.store}
	defer blobs.release() // not before the lines are there that name them
	if err := s.makeReady(ctx, &blobs, w); err != nil {
		return nil, err
	}
	for {
		if err := s.judge(ctx, w); err != nil {
			return nil, err
		}
		s.mu.Lock()
		ids, commit, err := s.write(ctx, w)
		s.mu.Unlock()
		if err == errLeafMoved {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Others may write while we wait: their entries and ours share a sync.
		if err := commit(); err != nil {
			s.mu.Lock()
			s.failed = err
			s.mu.Unlock()
			return nil, err
		}
		return ids, nil
	}
}

// errLeafMoved says that what was judged must be judged again. It is always
// acted on, never returned to a caller.
var errLeafMoved = errors.New("the leaf has moved")

// makeReady does what has to be done to entries before they are chained and
// encoded: they are cleaned, checked, and measured, and only then is anything of
// them kept in blobs. So what is refused leaves nothing behind. The blobs must be
// held until the entries are appended.
func (s *Session) makeReady(ctx context.Context, blobs *heldBlobs, w *writing) error {
	m := mover{ctx: ctx, store: s.store, threshold: s.opts.BlobThreshold}
	for i := range w.entries {
		if err := s.clean(w, i); err != nil {
			return err
		}
		if err := checkForm(&w.entries[i], w.graft); err != nil {
			return s.refuse(w, i, ErrInvalid, err)
		}
		m.move(i, &w.entries[i])
	}
	if err := s.admit(w.entries, &m); err != nil {
		return err
	}
	return m.put(blobs)
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

// write puts entries into the log and the tree, without waiting for the disk. It
// is called with mu held for writing.
func (s *Session) write(ctx context.Context, w *writing) ([]string, func() error, error) {
	if err := s.checkOpen(w.op); err != nil {
		return nil, nil, err
	}
	if w.judged && s.tree.leaf != w.judgedLeaf {
		return nil, nil, errLeafMoved
	}
	if w.decide != nil {
		if err := w.decide(s.tree, w); err != nil {
			return nil, nil, err
		}
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
		end, commit, err := store.Start(ctx, s.log, at, batch.lines...)
		if err == nil {
			if err := s.take(ctx, batch, at, end); err != nil {
				return nil, nil, errors.Join(err, commit())
			}
			s.weight.add(batch.size, at, end)
			return batch.ids, commit, nil
		}
		if err := s.meet(ctx, batch, err, known); err != nil {
			return nil, nil, err
		}
	}
}

// checkOpen makes sure that the session can be appended to.
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

// meet deals with an append that did not land. If another writer was faster, it
// reads what that one wrote; it returns nil if the append may be tried again.
func (s *Session) meet(ctx context.Context, b *batch, err error, known int) error {
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
	if s.tree.end == at { // it became shorter: what we know of it is not there any more
		return &Error{
			Op: "append", Name: s.name, Kind: ErrReplaced,
			Err:  fmt.Errorf("it is shorter than when it was read: it ended at byte %d", at),
			Hint: "another program shortened it: open it again",
		}
	}
	for _, id := range b.ids {
		if _, taken := s.tree.at(id); taken {
			return &Error{Op: "append", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("another program wrote entry %q", id)}
		}
	}
	if errors.Is(err, store.ErrCompleted) && s.opts.OnConflict != ReportAll {
		return nil // a crash left it: no other writer is at work
	}
	if s.reports(known) {
		return &ConflictError{Leaf: s.tree.leaf, Theirs: s.tree.logLeaf, Err: err}
	}
	return nil
}

// reports reports whether what others wrote, the nodes from an index on, is a
// conflict to the caller.
func (s *Session) reports(known int) bool {
	switch s.opts.OnConflict {
	case GrowBranch:
		return false
	case ReportAll:
		return true
	}
	return !s.tree.onlyRemarksSince(known)
}

// encode lets entries through the door, fills in what is missing, in the
// entries themselves, and encodes them.
func (s *Session) encode(ctx context.Context, w *writing) (*batch, error) {
	b := &s.batch
	b.reset(len(w.entries), s.tree.leaf, w.alone)
	for i := range w.entries {
		e := &w.entries[i]
		if err := s.place(ctx, w, b, i); err != nil {
			return nil, err
		}
		begin := len(b.text)
		var err error
		if b.text, err = appendEntry(b.text, e); err != nil {
			return nil, s.refuse(w, i, nil, err)
		}
		line := b.text[begin:]
		if len(line) > deepLine && !rawjson.Valid(line) {
			return nil, s.refuse(w, i, ErrInvalid, errors.New("the entry is nested too deeply to be read again"))
		}
		b.add(e, int64(len(line)))
		if w.graft && e.Type == TypeLeaf {
			if b.leaf, err = s.standsAt(ctx, b, b.leaf); err != nil {
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

// deepLine is the length from which on a line is checked: a value nested deeper
// than readers go would be lost, and it takes at least two bytes a level.
const deepLine = 20_000

// take puts a batch that was written from at to end into the tree.
func (s *Session) take(ctx context.Context, b *batch, at, end store.Pos) error {
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
	s.tree.end, s.tree.leaf, s.tree.logLeaf = end, b.leaf, b.leaf
	return nil
}

// findLines finds where the lines of a batch begin: of those after the first, only
// the store knows. They are written, and it is too late to be cancelled. (It is a
// function of its own because its loop would cost every append an allocation.)
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
