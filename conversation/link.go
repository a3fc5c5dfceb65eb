package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// customMetadata is the type of the custom entry that holds what a caller put
// into a session's metadata. The latest counts.
const customMetadata = "coppice.conversation"

// link is an open session of a chain, with the messages on its path in memory.
//
// Its session reports every line of other writers as a conflict, so an append
// lands only if entries holds everything that comes before it: what two
// managers write to one link has one order, and each knows it.
type link struct {
	id     string
	s      *session.Session
	header session.Header
	bytes  atomic.Int64 // roughly what it takes in memory

	mu       sync.Mutex // guards what follows; held while appending
	entries  []session.Entry
	known    map[string]bool // the ids of entries
	leaf     string          // where the path ends that entries is of
	next     string          // the session that continues this one, or ""
	title    string
	metadata map[string]any // what a caller set; never changed, only replaced
	active   time.Time      // of the last entry
	modified bool           // since it was last saved

	copies int    // how many of entries were carried over, the marker included
	tokens int    // of the others
	before origin // what came before this link

	pairs    pairing
	cleared  map[string]string // entries that edits took out of the context, by the id of the edit
	composed bool              // the context is not simply the messages: see context
}

// origin is what a link knows of the links before it.
type origin struct {
	root     string    // the original session
	created  time.Time // when that was made
	messages int       // in all links before, copies not counted
	tokens   int       // of these
}

// openLink reads the path of a session.
func openLink(s *session.Session) (*link, error) {
	l := &link{id: s.ID(), s: s, header: s.Header()}
	if err := l.read(); err != nil {
		return nil, err
	}
	return l, nil
}

// read takes in the whole path.
func (l *link) read() error {
	path, err := l.s.PathTo("")
	if err != nil {
		return err
	}
	next, err := l.s.Continuation()
	if err != nil {
		return err
	}
	l.entries, l.known, l.cleared = nil, make(map[string]bool), make(map[string]string)
	l.pairs, l.composed, l.copies, l.tokens = pairing{}, false, 0, 0
	l.title, l.metadata, l.next = "", nil, next
	l.active, l.before = l.header.CreatedAt, origin{root: l.id, created: l.header.CreatedAt}
	l.bytes.Store(0)
	for i := range path {
		l.take(path[i])
	}
	l.leaf = l.s.LeafID()
	return nil
}

// take adds an entry to the end of the path.
func (l *link) take(e session.Entry) {
	if e.Timestamp.After(l.active) {
		l.active = e.Timestamp
	}
	switch {
	case e.Message != nil:
		l.takeMessage(e)
	case e.SessionInfo != nil:
		l.title = e.SessionInfo.Name
	case e.Custom != nil:
		l.takeCustom(e.Custom)
	case e.ContextEdit != nil:
		l.composed = true
		if len(e.ContextEdit.Replacement) == 0 {
			l.cleared[e.ID] = e.ContextEdit.TargetID
		}
	case e.Revert != nil:
		l.composed = true
		delete(l.cleared, e.Revert.TargetID)
	case e.Compaction != nil, e.BranchSummary != nil, e.Merge != nil:
		l.composed = true
	}
}

func (l *link) takeMessage(e session.Entry) {
	l.entries = append(l.entries, e)
	l.known[e.ID] = true
	l.bytes.Add(size(&e))
	l.pairs.add(&e)
	switch {
	case isMarker(&e):
		l.copies++
		l.before = originFrom(&e, l.before)
	case copiedFrom(&e) != "":
		l.copies++
	default:
		l.tokens += fromEntry(e).tokens()
	}
}

func (l *link) takeCustom(c *session.CustomEntry) {
	switch c.CustomType {
	case session.CustomContinuedTo:
		if next, ok := c.Data["session"].(string); ok && c.Data["of"] == l.id && l.next == "" {
			l.next = next
		}
	case customMetadata:
		l.metadata = c.Data
	}
}

// errBehind says that the session knows more than entries does. It is always
// acted on, never returned to a caller.
var errBehind = errors.New("the path has moved on")

// append stores entries at the end of the path: all of them or none.
func (l *link) append(entries ...session.Entry) error {
	if l.s.LeafID() != l.leaf {
		return errBehind
	}
	if _, err := l.s.AppendAll(entries...); err != nil {
		return err
	}
	for _, e := range entries {
		l.take(e)
	}
	l.leaf = l.s.LeafID()
	l.modified = true
	return nil
}

// refresh takes in what others appended.
func (l *link) refresh() error {
	if _, err := l.s.Refresh(); err != nil {
		return err
	}
	fresh, ok := l.since(l.s.LeafID())
	if !ok {
		return l.read() // the leaf was moved to another branch
	}
	for i := len(fresh) - 1; i >= 0; i-- {
		l.take(fresh[i])
	}
	l.leaf = l.s.LeafID()
	return nil
}

// since returns the entries between the end of the path and a new leaf, the
// latest first; ok is false if the leaf does not come after the path.
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
func (l *link) own() []session.Entry {
	if l.copies == 0 {
		return l.entries
	}
	own := make([]session.Entry, 0, len(l.entries)-l.copies)
	for i := range l.entries {
		if !IsCarried(&l.entries[i]) {
			own = append(own, l.entries[i])
		}
	}
	return own
}

// count returns how many messages the conversation has up to here.
func (l *link) count() int { return l.before.messages + len(l.entries) - l.copies }

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

// derived are the members of a session's metadata that are not a caller's.
var derived = []string{
	MetaTitle, MetaDirectory, MetaContinuedTo, MetaContinuedFrom, MetaRecoveredFrom,
	MetaContinuationIndex, MetaMessageCount, MetaTokenCount,
}

// changes returns the entries that make the stored metadata what is asked for.
func (l *link) changes(metadata map[string]any) []session.Entry {
	var entries []session.Entry
	if title, ok := metadata[MetaTitle].(string); ok && title != l.title {
		entries = append(entries, session.Entry{Type: session.TypeSessionInfo, SessionInfo: &session.SessionInfoEntry{Name: title}})
	}
	wanted := cloneMap(metadata)
	for _, key := range derived {
		delete(wanted, key)
	}
	if !sameJSON(wanted, l.metadata) {
		entries = append(entries, session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: customMetadata, Data: wanted}})
	}
	return entries
}

// size is roughly what an entry takes in memory.
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

// flush waits until what was appended is on the disk. A session that cannot tell
// any more is of no use for that; another one, which open opens, finds out, and
// rewrites the log if it has to.
func (l *link) flush(open func() (*session.Session, error)) error {
	err := l.s.Flush(context.Background())
	if !errors.Is(err, session.ErrUnknown) {
		return err
	}
	fresh, openErr := open()
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	if flushErr := errors.Join(fresh.Flush(context.Background()), fresh.Close()); flushErr != nil {
		return errors.Join(err, flushErr)
	}
	return nil
}

// verify makes sure that what was appended is on the disk and in the store: it
// waits for the one, and looks for the other.
func (l *link) verify(open func() (*session.Session, error)) error {
	if err := l.flush(open); err != nil {
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
