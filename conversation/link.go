package conversation

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// customMetadata is the type of the custom entry with the metadata that a caller gave a
// session. The latest counts.
const customMetadata = boundary.CustomSettings

// link is an open session of a chain, with the messages of its path in memory.
//
// Only write appends to it, and Sessions.continueLink. Both append after everything that Entries
// has, or not at all, whoever else writes to the log. So whatever several managers write to one
// link has one order, which all of them know. That is also why no message lands after the record
// that names the continuation: its writer reads the record first, and moves on to the next link.
type link struct {
	id     string
	s      *session.Session
	header session.Header
	bytes  atomic.Int64 // roughly how much memory it takes

	mu gate.Mutex // guards what follows; held while appending, so waiting for it can be cancelled
	*boundary.Part
	leaf     string         // the end of the path that was read
	next     string         // the session that its log names as its continuation, or ""
	title    string         // "" if it has none
	metadata map[string]any // set by a caller; replaced, never changed, because readers share it
	config   Config
	active   time.Time // when something was last said
	lasting  []int     // which of Entries are SYSTEM or CONTEXT
	reshaped bool      // the path has entries that change which messages before them are sent
	modified bool      // since it was last saved
}

// newLink reads the path of a session.
func newLink(ctx context.Context, s *session.Session) (*link, error) {
	l := &link{id: s.ID(), s: s, header: s.Header()}
	if err := l.read(ctx, s.LeafID()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return l, nil
}

// read reads the whole path to a leaf; "" is before the first entry.
func (l *link) read(ctx context.Context, leaf string) (err error) {
	s := l.s.WithContext(ctx)
	var path []session.Entry
	if leaf != "" {
		if path, err = s.Forward(leaf); err != nil {
			return err
		}
	}
	next, err := s.Continuation() // the record may be beside the path
	if err != nil {
		return err
	}
	if l.Part, err = boundary.New(ctx, s, path); err != nil {
		return err
	}
	l.title, l.metadata, l.config, l.next, l.lasting, l.reshaped = "", nil, Config{}, next, nil, false
	l.active = l.header.CreatedAt
	l.bytes.Store(0)
	for i := range path {
		l.add(&path[i])
	}
	l.leaf = leaf
	return nil
}

// add adds an entry to the end of the path.
func (l *link) add(e *session.Entry) {
	if e.Type.IsSaid() && e.Timestamp.After(l.active) {
		l.active = e.Timestamp
	}
	l.Add(e)
	switch {
	case e.Message != nil:
		l.bytes.Add(size(e))
		if window.CategoryOf(e) <= CategoryContext {
			l.lasting = append(l.lasting, len(l.Entries)-1)
		}
	case e.SessionInfo != nil:
		l.title = e.SessionInfo.Name
	case e.Compaction != nil, e.Merge != nil, e.Revert != nil:
		l.reshaped = true
	case e.Custom != nil:
		l.next = session.ContinuedTo(e, l.id, l.next)
		switch e.Custom.CustomType {
		case customMetadata:
			l.metadata = e.Custom.Data
		case customConfig:
			l.config = configOf(e.Custom)
		}
	}
}

// write appends the entries that choose returns for the link as it then is: all of them or none.
// If another writer is faster, choose is called again.
func (l *link) write(ctx context.Context, choose func() ([]session.Entry, error)) error {
	var entries []session.Entry
	err := l.s.Update(ctx, func(tx *session.Tx) (err error) {
		if err = l.readTo(ctx, tx.Leaf()); err != nil {
			return err
		}
		entries, err = choose()
		for i := range entries {
			entries[i].ID = tx.Append(entries[i])
		}
		return err
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	l.modified = true
	if entries[len(entries)-1].Type == session.TypeLeaf {
		return l.read(ctx, l.s.LeafID())
	}
	for i := range entries {
		l.add(&entries[i])
	}
	l.leaf = l.s.LeafID()
	return nil
}

// refresh reads what others appended.
func (l *link) refresh(ctx context.Context) error {
	if _, err := l.s.WithContext(ctx).Refresh(); err != nil {
		return err
	}
	return l.readTo(ctx, l.s.LeafID())
}

// readTo reads on to a new leaf.
func (l *link) readTo(ctx context.Context, leaf string) error {
	fresh, ok := l.since(leaf)
	if !ok {
		return l.read(ctx, leaf) // it is on another branch
	}
	for _, e := range slices.Backward(fresh) {
		l.add(&e)
	}
	l.leaf = leaf
	return nil
}

// since returns the entries between the end of the path and a new leaf, latest first. ok is
// false if the leaf does not come after the path.
func (l *link) since(leaf string) (fresh []session.Entry, ok bool) {
	for at := leaf; at != l.leaf; {
		e, err := l.s.Entry(at)
		if err != nil || e.ParentID == nil && l.leaf != "" {
			return nil, false
		}
		fresh = append(fresh, e)
		if at = ""; e.ParentID != nil {
			at = *e.ParentID
		}
	}
	return fresh, true
}

// session returns the link as a value. The marker is shown as a message, and copies without a
// usage, which was paid for once.
func (l *link) session() Session {
	s := Session{ID: l.id, CreatedAt: l.header.CreatedAt, LastActive: l.active, Metadata: l.describe()}
	s.Messages = clones(l.Entries)
	for i := range l.Copies {
		s.Messages[i].Usage = nil
	}
	if l.Marker != nil {
		s.Messages = slices.Insert(s.Messages, l.Copies, fromEntry(boundary.MarkerMessage(l.Marker)))
	}
	s.Metadata[MetaMessageCount] = len(s.Messages)
	s.Metadata[MetaTokenCount] = s.TotalTokens()
	return s
}

func clones(entries []session.Entry) []Message {
	messages := make([]Message, len(entries))
	for i := range entries {
		messages[i] = fromEntry(entries[i].Clone())
	}
	return messages
}

// describe returns the session's metadata, without the counts.
func (l *link) describe() map[string]any {
	d := cloneMap(l.metadata)
	set := func(key, value string) {
		if value != "" {
			d[key] = value
		}
	}
	set(MetaTitle, l.title)
	set(MetaDirectory, l.header.CWD)
	set(MetaContinuedTo, l.next)
	switch l.header.Relation {
	case session.RelationContinuation:
		set(MetaContinuedFrom, l.header.ParentSession)
	case session.RelationRecovery:
		set(MetaRecoveredFrom, l.header.ParentSession)
	}
	d[MetaContinuationIndex] = l.header.Continuation
	return d
}

// derived are the members of a session's metadata that callers do not set.
var derived = []string{
	MetaTitle, MetaDirectory, MetaContinuedTo, MetaContinuedFrom, MetaRecoveredFrom,
	MetaContinuationIndex, MetaMessageCount, MetaTokenCount,
}

// changes returns the entries that change the stored metadata to what is asked for.
func (l *link) changes(metadata map[string]any) ([]session.Entry, error) {
	var entries []session.Entry
	if title, ok := metadata[MetaTitle].(string); ok && title != l.title {
		entries = append(entries, session.Name(title))
	}
	wanted, err := stored(metadata)
	if err != nil {
		return nil, err
	}
	for _, key := range derived {
		delete(wanted, key)
	}
	if !sameJSON(wanted, l.metadata) {
		entries = append(entries, session.Custom(customMetadata, wanted))
	}
	return entries, nil
}

// size returns roughly how much memory an entry takes.
func size(e *session.Entry) int64 {
	const fixed = 512 // the structs, the id, the maps' entries
	return fixed + contentSize(e.Message.Content)
}

func contentSize(blocks []session.Content) (total int64) {
	for i := range blocks {
		const block = 160
		total += block
		switch c := &blocks[i]; {
		case c.Text != nil:
			total += int64(len(c.Text.Content))
		case c.ToolResult != nil:
			total += int64(len(c.ToolResult.Content)) + contentSize(c.ToolResult.Parts)
		case c.Image != nil && c.Image.Source != nil:
			total += int64(len(c.Image.Source.Data))
		case c.Audio != nil && c.Audio.Source != nil:
			total += int64(len(c.Audio.Source.Data))
		case c.File != nil && c.File.Source != nil:
			total += int64(len(c.File.Source.Data))
		case c.Thinking != nil:
			total += int64(len(c.Thinking.Content) + len(c.Thinking.Signature))
		case c.ToolUse != nil:
			total += int64(64 * (1 + len(c.ToolUse.Input)))
		}
		total += int64(len(blocks[i].Raw))
	}
	return total
}
