package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/window"
)

// customMetadata is the type of the custom entry with the metadata that a caller gave a
// session. The latest counts.
const customMetadata = boundary.CustomSettings

// link is an open session of a chain, with the messages of its path in memory.
//
// Its session reports every line of other writers as a conflict (session.ReportAll). So an
// append lands only if entries has everything that comes before it: whatever two managers
// write to one link has one order, and both know it. That is also why a message cannot land
// after the record that names the continuation: its writer would get a conflict, read the
// record, and move on to the next link.
type link struct {
	id     string
	s      *session.Session
	header session.Header
	bytes  atomic.Int64 // roughly how much memory it takes

	mu       gate.Mutex // guards what follows; held while appending, so waiting for it can be cancelled
	entries  []session.Entry
	known    map[string]bool // the ids of entries
	leaf     string          // the end of the path in entries
	next     string          // the session that continues this one, or ""
	lost     string          // the value of next when neither that session nor any after it was there
	title    string
	metadata map[string]any // set by a caller; replaced, never changed, because readers share it
	active   time.Time      // when something was last said
	modified bool           // since it was last saved

	carried session.Carried
	isCopy  []bool          // which of entries were carried over, including the marker
	copies  int             // how many
	before  boundary.Origin // what came before this link
	sum     boundary.Amount // tokens of the first summed of entries, without copies
	summed  int

	pairs        pairing
	config       Config
	instructions []int           // which of entries are SYSTEM messages
	files        []int           // which of entries were loaded from files
	edits        []session.Entry // edits of the context and reverts, in order
	cleared      map[string]bool // messages that edits removed from the context
	composed     int             // changes whenever the context stops being simply the messages in order
	plainAt      int             // the value of composed if it never did
}

// tokens returns the tokens of the messages, without what was carried over. Each message is
// counted once, when the number is needed.
func (l *link) tokens() boundary.Amount {
	for ; l.summed < len(l.entries); l.summed++ {
		if !l.isCopy[l.summed] {
			l.sum.Add(&l.entries[l.summed])
		}
	}
	return l.sum
}

// readings counts how often any path was read. It makes the values of link.composed unique to
// each reading.
var readings atomic.Int64

// openLink reads the path of a session.
func openLink(ctx context.Context, s *session.Session) (*link, error) {
	l := &link{id: s.ID(), s: s, header: s.Header()}
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// read reads the whole path.
func (l *link) read(ctx context.Context) error {
	s := l.s.WithContext(ctx)
	path, err := s.PathTo("")
	if err != nil {
		return err
	}
	next, err := s.Continuation()
	if err != nil {
		return err
	}
	l.entries, l.known, l.instructions, l.files = nil, make(map[string]bool), nil, nil
	l.edits, l.cleared, l.config = nil, nil, Config{}
	l.pairs, l.sum, l.summed = pairing{}, boundary.Amount{}, 0
	l.carried, l.isCopy, l.copies = session.CarriedIn(&l.header), nil, 0
	l.title, l.metadata, l.next = "", nil, next
	l.active, l.before = l.header.CreatedAt, boundary.Origin{Root: l.id, Created: l.header.CreatedAt}
	l.bytes.Store(0)
	l.plainAt = int(readings.Add(1)) << 24 // a view of the previous reading must not mistake this one for it
	l.composed = l.plainAt
	for i := range path {
		l.take(path[i])
	}
	l.leaf = l.s.LeafID()
	return nil
}

// take adds an entry to the end of the path.
func (l *link) take(e session.Entry) {
	if e.Type.IsSaid() && e.Timestamp.After(l.active) {
		l.active = e.Timestamp
	}
	switch {
	case e.Message != nil:
		l.takeMessage(e)
	case e.SessionInfo != nil:
		l.title = e.SessionInfo.Name
	case e.Custom != nil:
		l.next = session.ContinuedTo(&e, l.id, l.next)
		l.takeCustom(e.Custom)
	case e.ContextEdit != nil, e.Revert != nil:
		l.composed++
		l.edits = append(l.edits, e)
		l.cleared = boundary.ClearedBy(l.edits)
	case e.Compaction != nil, e.BranchSummary != nil, e.Merge != nil:
		l.composed++
	}
}

func (l *link) takeMessage(e session.Entry) {
	l.entries = append(l.entries, e)
	l.known[e.ID] = true
	l.bytes.Add(size(&e))
	if !l.pairs.add(&e) {
		l.composed++
	}
	if e.Message.Role == session.RoleSystem && window.CategoryOf(&e) == CategorySystem {
		l.instructions = append(l.instructions, len(l.entries)-1)
	}
	if files.Source(e.Message) != "" && window.CategoryOf(&e) == CategoryContext {
		l.files = append(l.files, len(l.entries)-1)
	}
	l.takeCarried(&e)
}

// takeCarried records whether a message was carried over.
func (l *link) takeCarried(e *session.Entry) {
	carried, before := l.carried.Take(session.CarryOf(e))
	if before { // it is the marker, so everything before it was carried too
		l.before = boundary.OriginFrom(e, l.before)
		for i := range l.isCopy {
			l.isCopy[i] = true
		}
		l.copies = len(l.isCopy)
	}
	l.isCopy = append(l.isCopy, carried)
	if carried {
		l.copies++
	}
}

func (l *link) takeCustom(c *session.CustomEntry) {
	switch c.CustomType {
	case customMetadata:
		l.metadata = c.Data
	case customConfig:
		l.config = configOf(c)
	}
}

// errBehind means that the session has read more than entries has. It is never returned to a
// caller.
var errBehind = errors.New("the path has moved on")

// append stores entries at the end of the path: all of them or none.
func (l *link) append(ctx context.Context, entries ...session.Entry) error {
	if l.s.LeafID() != l.leaf {
		return errBehind
	}
	if _, err := l.s.WithContext(ctx).AppendAll(entries...); err != nil {
		return err
	}
	for _, e := range entries {
		l.take(e)
	}
	l.leaf = l.s.LeafID()
	l.modified = true
	return nil
}

// refresh reads what others appended.
func (l *link) refresh(ctx context.Context) error {
	if _, err := l.s.WithContext(ctx).Refresh(); err != nil {
		return err
	}
	fresh, ok := l.since(l.s.LeafID())
	if !ok {
		return l.read(ctx) // the leaf was moved to another branch
	}
	for i := len(fresh) - 1; i >= 0; i-- {
		l.take(fresh[i])
	}
	l.leaf = l.s.LeafID()
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

// own returns the messages that were not carried over from the link before.
func (l *link) own() []session.Entry { return l.choose(func(int) bool { return false }) }

// choose returns the messages that were not carried over, and those of the others that are
// wanted.
func (l *link) choose(wanted func(i int) bool) []session.Entry {
	if l.copies == 0 {
		return l.entries
	}
	chosen := make([]session.Entry, 0, len(l.entries))
	for i := range l.entries {
		if !l.isCopy[i] || wanted(i) {
			chosen = append(chosen, l.entries[i])
		}
	}
	return chosen
}

// visible is own for a chain with a missing link: it includes copies whose originals were not
// seen in earlier links. It adds to seen.
func (l *link) visible(seen map[string]bool) []session.Entry {
	chosen := l.choose(func(i int) bool {
		e := &l.entries[i]
		from := session.CarriedFrom(e)
		return !session.IsTransition(e) && !seen[e.ID] && !seen[from]
	})
	for i := range chosen {
		seen[chosen[i].ID] = true
		if from := session.CarriedFrom(&chosen[i]); from != "" {
			seen[from] = true
		}
	}
	return chosen
}

// count returns how many messages the conversation has up to here.
func (l *link) count() int { return l.before.Messages + len(l.entries) - l.copies }

// session returns the link as a value.
func (l *link) session() Session {
	s := Session{ID: l.id, CreatedAt: l.header.CreatedAt, LastActive: l.active, Metadata: l.describe()}
	s.Messages = clones(l.entries)
	s.Metadata[MetaMessageCount] = len(l.entries)
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
		entries = append(entries, titled(title))
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

// titled returns the entry that gives a session a title.
func titled(title string) session.Entry {
	return session.Entry{ID: newID(), Type: session.TypeSessionInfo, SessionInfo: &session.SessionInfoEntry{Name: title}}
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

// flush waits until what was appended is on the disk. If the session cannot tell any more, it
// asks another handle, which open returns and which rewrites the log if it has to.
func (l *link) flush(ctx context.Context, open func() (*session.Session, error)) error {
	err := l.s.Flush(ctx)
	if !errors.Is(err, session.ErrUnknown) {
		return err
	}
	fresh, openErr := open()
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	if flushErr := errors.Join(fresh.Flush(ctx), fresh.Close()); flushErr != nil {
		return errors.Join(err, flushErr)
	}
	return nil
}

// verify makes sure that what was appended is on the disk and can be found in the store.
func (l *link) verify(ctx context.Context, open func() (*session.Session, error)) error {
	if err := l.flush(ctx, open); err != nil {
		return err
	}
	stored, err := open()
	if err != nil {
		return err
	}
	defer stored.Close()
	if l.leaf == "" {
		return nil
	}
	if _, err := stored.Entry(l.leaf); err != nil {
		return fmt.Errorf("the last entry is not in the store: %w", err)
	}
	return nil
}
