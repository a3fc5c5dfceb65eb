package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// Append adds an entry as a child of the leaf, which then moves to it. The
// entry's Type and payload are the caller's; its parent is the leaf. An empty
// ID and a zero Timestamp are filled in. When Append returns nil, the entry is
// as durable as the store was told to make it.
func (s *Session) Append(entry Entry) error {
	_, err := s.append(entry)
	return err
}

// AppendAll adds entries one after the other, with one write and one sync: all
// of them or, if there is a conflict or an error, none. It returns their ids.
func (s *Session) AppendAll(entries ...Entry) ([]string, error) {
	return s.appendOwn(slices.Clone(entries))
}

// appendOwn is AppendAll with entries that may be changed.
func (s *Session) appendOwn(entries []Entry) ([]string, error) {
	blobs := heldBlobs{store: s.store}
	defer blobs.release()
	if err := s.makeReady(context.Background(), &blobs, entries); err != nil {
		return nil, err
	}
	return s.appendAll(func(*tree) ([]Entry, error) { return entries, nil })
}

func (s *Session) append(entry Entry) (string, error) {
	ids, err := s.appendOwn([]Entry{entry})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// AppendMessage appends a message.
func (s *Session) AppendMessage(role MessageRole, content []Content) (string, error) {
	return s.append(Entry{Type: TypeMessage, Message: &MessageEntry{Role: role, Content: content}})
}

// AppendThinkingLevelChange records how hard the model is to think from here on.
func (s *Session) AppendThinkingLevelChange(level string) (string, error) {
	return s.append(Entry{Type: TypeThinkingLevel, ThinkingLevel: &ThinkingLevelEntry{ThinkingLevel: level}})
}

// AppendModelChange records which model answers from here on.
func (s *Session) AppendModelChange(provider, modelID string) (string, error) {
	return s.append(Entry{Type: TypeModelChange, ModelChange: &ModelChangeEntry{Provider: provider, ModelID: modelID}})
}

// AppendSessionInfo gives the session a display name.
func (s *Session) AppendSessionInfo(name string) (string, error) {
	return s.append(Entry{Type: TypeSessionInfo, SessionInfo: &SessionInfoEntry{Name: name}})
}

// AppendCustomEntry records an extension's data. The model never sees it.
func (s *Session) AppendCustomEntry(customType string, data map[string]any) (string, error) {
	return s.append(Entry{Type: TypeCustom, Custom: &CustomEntry{CustomType: customType, Data: data}})
}

// appendAll appends the entries that make returns. It is called under the lock,
// so that what it decides from the tree still holds when they are written.
func (s *Session) appendAll(make func(*tree) ([]Entry, error)) ([]string, error) {
	return s.appendBatch(func() (*batch, error) {
		entries, err := make(s.tree)
		if err != nil {
			return nil, err
		}
		return s.prepare(entries)
	})
}

// appendBatch appends the batch that prepare returns, which is called under the
// lock.
func (s *Session) appendBatch(prepare func() (*batch, error)) ([]string, error) {
	ctx := context.Background()
	s.mu.Lock()
	ids, commit, err := s.write(ctx, prepare)
	s.mu.Unlock()
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

// write puts entries into the log and the tree, without waiting for the disk.
func (s *Session) write(ctx context.Context, prepare func() (*batch, error)) ([]string, func() error, error) {
	if s.closed {
		return nil, nil, s.errClosed("append")
	}
	if s.failed != nil {
		return nil, nil, &Error{
			Op: "append", Name: s.name, Kind: ErrClosed, Err: fmt.Errorf("an earlier append failed: %w", s.failed),
			Hint: "load the session again to see whether it landed",
		}
	}
	batch, err := prepare()
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
		if errors.Is(err, ErrUnknown) {
			s.failed = err
		}
		if !errors.Is(err, ErrConflict) {
			return nil, nil, err
		}
		if err := s.absorb(ctx); err != nil {
			return nil, nil, err
		}
		if s.tree.end == at { // it became shorter: what we know of it is not there any more
			return nil, nil, &Error{
				Op: "append", Name: s.name, Kind: ErrReplaced,
				Err:  fmt.Errorf("it ends before byte %d, where it ended when it was read", at),
				Hint: "somebody cut it back: open it again",
			}
		}
		for _, id := range batch.ids {
			if _, taken := s.tree.at(id); taken {
				return nil, nil, &Error{Op: "append", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("entry %q, of another writer", id)}
			}
		}
		if errors.Is(err, store.ErrCompleted) && s.opts.OnConflict != ReportAll {
			continue // a crash left it: no other writer is at work
		}
		if s.reports(known) {
			return nil, nil, &ConflictError{Leaf: s.tree.leaf, Theirs: s.tree.logLeaf, Err: err}
		}
	}
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

// batch is a set of entries ready to be written. A session has one and uses it
// again and again, but for the ids, which are the caller's.
type batch struct {
	ids   []string
	heads []headLine
	lines [][]byte
	leaf  string // after them
	size  int64  // what they add to the session, with their blobs
}

// reset empties the batch for so many entries. The memory of its lines stays, up
// to a limit: one huge line should not be carried along for good.
func (b *batch) reset(entries int, leaf string) {
	const enough = 64 << 10
	for i := range b.lines {
		if cap(b.lines[i]) > enough {
			b.lines[i] = nil
		}
	}
	if cap(b.lines) > 64 {
		b.heads, b.lines = nil, nil
	}
	b.ids, b.leaf, b.size = make([]string, 0, entries), leaf, 0
	b.heads, b.lines = b.heads[:0], b.lines[:0]
}

// spare returns the memory that the next line had in an earlier batch.
func (b *batch) spare() []byte {
	if n := len(b.lines); n < cap(b.lines) {
		return b.lines[:n+1][n][:0]
	}
	return nil
}

// prepare chains entries to the leaf, fills in what is missing, in the entries
// themselves, and encodes them.
func (s *Session) prepare(entries []Entry) (*batch, error) {
	b := &s.batch
	b.reset(len(entries), s.tree.leaf)
	for i := range entries {
		e := &entries[i]
		if err := s.complete(e, b); err != nil {
			return nil, err
		}
		line, err := appendEntry(b.spare(), e)
		if err != nil {
			return nil, err
		}
		if len(line) > deepLine && !rawjson.Valid(line) {
			return nil, s.errTooDeep()
		}
		b.add(e, line)
		b.size += int64(len(line)) + 1 + e.external()
	}
	return b, nil
}

// deepLine is the length from which on a line is checked: a value nested deeper
// than readers go would be lost, and it takes at least two bytes a level.
const deepLine = 20_000

func (b *batch) add(e *Entry, line []byte) {
	h := headLine{id: e.ID, isRoot: e.ParentID == nil, kind: kindOfType([]byte(e.Type))}
	if e.Message != nil {
		h.speaker = speakerOf(e.Message.Role)
	}
	b.leaf = e.ID
	if e.ParentID != nil {
		h.parent = *e.ParentID
	}
	if h.kind == kindLeaf {
		b.leaf = h.parent
	}
	b.ids = append(b.ids, e.ID)
	b.heads = append(b.heads, h)
	b.lines = append(b.lines, line)
}

// checkPayload refuses an entry that would not be read as what it is.
func (s *Session) checkPayload(e *Entry) error {
	if e.Type == "" || e.Type == TypeSession || e.Type == TypeGap {
		return &Error{Op: "append", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("an entry cannot have the type %q", e.Type)}
	}
	if t, ok := e.payloadType(); !ok || t != "" && t != e.Type && e.Type != oldThinkingLevel {
		return &Error{Op: "append", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("an entry of type %q has another payload", e.Type)}
	}
	return nil
}

// complete gives an entry its parent, its id and its time.
func (s *Session) complete(e *Entry, b *batch) error {
	if err := s.checkPayload(e); err != nil {
		return err
	}
	if e.Type != TypeLeaf {
		e.ParentID = nil
		if b.leaf != "" {
			leaf := b.leaf
			e.ParentID = &leaf
		}
	} else if e.ParentID != nil && !slices.Contains(b.ids, *e.ParentID) { // which is where the leaf moves
		if _, err := s.locate("append", *e.ParentID); err != nil {
			return err
		}
	}
	if _, _, odd := e.Extra.take("timestamp"); e.Timestamp.IsZero() && !odd {
		e.Timestamp = s.opts.Now().UTC()
	}
	if e.ID == "" {
		e.ID = s.opts.NewID(e.Type)
		return nil
	}
	if !utf8.ValidString(e.ID) { // it would come back as another
		return &Error{Op: "append", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("the id %q is not UTF-8", e.ID)}
	}
	if err := s.whole(context.Background()); err != nil {
		return err
	}
	if _, taken := s.tree.at(e.ID); taken || slices.Contains(b.ids, e.ID) {
		return &Error{Op: "append", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("entry %q", e.ID)}
	}
	return nil
}

// makeReady does what has to be done to entries before they are chained and
// encoded: they are cleaned, and measured, and only then is anything of them
// kept in blobs. So what is refused leaves nothing behind. The blobs must be held
// until the entries are appended.
func (s *Session) makeReady(ctx context.Context, blobs *heldBlobs, entries []Entry) error {
	m := mover{ctx: ctx, blobs: s.store.Blobs(), threshold: s.opts.BlobThreshold}
	for i := range entries {
		if err := s.clean(&entries[i]); err != nil {
			return err
		}
		m.move(i, &entries[i])
	}
	if err := s.admit(entries, &m); err != nil {
		return err
	}
	return m.put(blobs)
}

// clean calls Options.Clean.
func (s *Session) clean(e *Entry) error {
	if s.opts.Clean == nil {
		return nil
	}
	before, _ := e.payloadType()
	if err := s.opts.Clean(e); err != nil {
		return &Error{Op: "append", Name: s.name, Err: fmt.Errorf("cleaning the entry: %w", err)}
	}
	if after, _ := e.payloadType(); after != before {
		return &Error{Op: "append", Name: s.name, Kind: ErrInvalid, Err: errors.New("cleaning the entry changed the type of its payload")}
	}
	return nil
}

// take puts a batch that was written from at to end into the tree.
func (s *Session) take(ctx context.Context, b *batch, at, end store.Pos) error {
	b.heads[0].pos = at
	if len(b.heads) > 1 {
		// Only the store knows where the lines after the first begin.
		i := 0
		for line, err := range s.log.Forward(ctx, at) {
			if err != nil {
				return err
			}
			b.heads[i].pos = line.Pos
			if i++; i == len(b.heads) {
				break
			}
		}
	}
	for i := range b.heads {
		b.heads[i].id = s.tree.ids.copy(b.heads[i].id)
		s.tree.addEntry(b.heads[i])
	}
	s.tree.end, s.tree.leaf, s.tree.logLeaf = end, b.leaf, b.leaf
	return nil
}
