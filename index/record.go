package index

import (
	"context"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// entryClass is the role of an entry in the tree.
type entryClass int64

const (
	classEntry   entryClass = iota
	classLeaf               // moves the leaf and is on no path itself
	classDamaged            // a line that cannot be read, except for its id
	classNoID               // a line that cannot be read at all
	classMissing            // an entry that others name as their parent
	classRemark             // says something about the session; not part of the conversation
	classLost               // a message whose rest is lost
	classStep               // neither a message nor a remark, such as a compaction; or a message that one repeats
)

// record is a line of a log with everything that the index needs of it. It is built without
// the database, so that several processes can read while one writes.
type record struct {
	pos, next store.Pos
	sum       int64 // of the line
	header    *session.Header
	found     bool // this header counts; it was found before the lines were read
	damaged   bool // the line, or what follows its head
	class     entryClass
	id        string // "" if the line has none
	parent    string
	isRoot    bool
	placed    bool // the line does not say what the parent is, so that was guessed
	time      int64
	lost      []string // possible ids in a damaged line

	isSaid      bool // a message or a summary
	isMessage   bool
	isTurn      bool   // a compaction: the context size that the provider reported no longer holds
	role        string // of a message
	title       Title
	name        *string
	tags        *session.CustomEntry // changes them
	pinned      *bool
	continuedTo *session.CustomEntry // names the session that continues this one
	isMarker    bool                 // of a continuation, whatever has become of its rest
	isUnknown   bool                 // its type is not known
	original    string               // the first session of the chain, as a marker says
	model       string               // that answered
	calls       []call
	files       []string // that the calls touch
	usage       *usageRecord
	docs        []doc
}

// call is a tool call: its id and the tool's name.
type call [2]string

// doc is a part that is ready to be written.
type doc struct {
	part
	body, whole []uint32 // its tokens, as the batch's vocabulary numbers them
	tf          []byte
	ordinal     int // among the entry's parts
}

// lineReader turns lines into records.
type lineReader struct {
	blobs   store.Blobs
	maxText int
	words   *vocabulary // of the batch
	titles  titles

	rewritten map[store.Pos]bool // lines of the log, if one is in doubt: see session.Rewritten

	body, whole []uint32 // of the current document
}

// titles knows when a log's title is settled, so that later entries need not be searched for
// a better one. An entry that repeats an earlier id does not count, so the entry that settles
// the title must be known to have a new one.
type titles struct {
	settled bool
	ids     []string // of the entries so far
	unsure  bool     // there were more than can be remembered, or the log was read from the middle
}

// maxBeforePrompt is how many entries before the first prompt are remembered.
const maxBeforePrompt = 64

func (t *titles) of(id string, e *session.Entry) Title {
	if t.settled {
		return Title{}
	}
	title := TitleIn(e)
	t.settled = title.IsSettled() && !t.unsure && !slices.Contains(t.ids, id)
	return title
}

func (t *titles) note(id string) {
	if t.settled || t.unsure {
		return
	}
	t.ids = append(t.ids, id)
	t.unsure = len(t.ids) > maxBeforePrompt
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// sumOf identifies a line by its length and a checksum.
func sumOf(line []byte) int64 {
	return int64(len(line))<<32 | int64(crc32.Checksum(line, crcTable))
}

// read turns a line into a record, as package session reads it: the head decides what is an
// entry. It returns nil for a blank line.
func (r *lineReader) read(ctx context.Context, line store.Line) *record {
	rec := &record{pos: line.Pos, next: line.Next, sum: sumOf(line.Data), damaged: true, class: classNoID}
	head, ok := rawjson.ScanHead(line.Data)
	rec.isMarker = ok && !line.Cut && len(head.ID) > 0 && string(head.Type) == string(session.TypeContinues)
	switch {
	case line.Cut || !ok || r.rewritten[line.Pos] || len(head.ID) == 0 && string(head.Type) != string(session.TypeSession):
		if rawjson.Blank(line.Data) {
			return nil
		}
		rec.salvage(line.Data)
		rec.lost = session.IDsIn(line.Data)
	case string(head.Type) == string(session.TypeSession):
		var h session.Header
		if h.UnmarshalJSON(line.Data) == nil {
			rec.header, rec.damaged = &h, false
		}
	default:
		rec.class, rec.isUnknown = classEntry, !session.EntryType(head.Type).IsKnown()
		rec.setHead(head)
		var e session.Entry
		if e.UnmarshalJSON(line.Data) == nil {
			rec.damaged = false
			r.fill(ctx, rec, &e)
			r.titles.note(rec.id)
		} else if rec.class == classEntry {
			rec.class, rec.isMessage = classLost, true
		}
		if rec.damaged && !head.Whole && !rawjson.Valid(line.Data) {
			rec.lost = session.IDsIn(line.Data)
		}
	}
	return rec
}

// isDoubtful reports whether another line may have the entry as it was: see session.Rewritten.
func (rec *record) isDoubtful() bool { return rec.isRestLost() || rec.isUnknown }

// isRestLost reports whether only the head of an entry could be read.
func (rec *record) isRestLost() bool {
	return len(rec.lost) > 0 && rec.class != classDamaged && rec.class != classNoID
}

// lostTime is the time in the table of an entry whose rest is lost.
const lostTime = math.MinInt64

// timeInTable returns the time of an entry as the table has it.
func (rec *record) timeInTable() int64 {
	if rec.isRestLost() {
		return lostTime
	}
	return rec.time
}

func (rec *record) setHead(h rawjson.Head) {
	rec.id, rec.parent, rec.isRoot = string(h.ID), string(h.Parent), h.HasParent && len(h.Parent) == 0
	switch t := session.EntryType(h.Type); {
	case t == session.TypeLeaf:
		rec.class = classLeaf
	case t.IsRemark():
		rec.class = classRemark
	case t != session.TypeMessage:
		rec.class = classStep
	}
}

// salvage reads the id of a damaged line, if it is still readable.
func (rec *record) salvage(line []byte) {
	h, ok := rawjson.LenientHead(line)
	if !ok || len(h.ID) == 0 || string(h.Type) == string(session.TypeSession) {
		return
	}
	rec.setHead(h)
	rec.class = classDamaged
}

// fill copies from an entry what the index needs.
func (r *lineReader) fill(ctx context.Context, rec *record, e *session.Entry) {
	rec.time, rec.isSaid = millis(e.Timestamp), e.Type.IsSaid()
	if e.IsRepeated() { // its text is found where it was said
		rec.class = classStep
		return
	}
	switch {
	case e.Message != nil:
		rec.isMessage, rec.role = true, e.Message.Role
		rec.title = r.titles.of(rec.id, e)
		r.fillMessage(rec, e)
	case e.SessionInfo != nil:
		rec.name = &e.SessionInfo.Name
	case e.Compaction != nil:
		rec.isTurn = true
	case e.Continues != nil:
		rec.original = e.Continues.Original
	case e.Custom != nil:
		rec.fillCustom(e.Custom)
		if bill, ok := session.BillOf(e); ok {
			rec.usage = newUsage(bill, nil)
		}
	}
	for i, p := range partsOf(ctx, r.blobs, e, r.maxText) {
		if d := r.newDoc(p); d.length() > 0 {
			d.ordinal = i
			rec.docs = append(rec.docs, d)
		}
	}
}

func (r *lineReader) fillMessage(rec *record, e *session.Entry) {
	m := e.Message
	if m.Role == session.RoleAssistant {
		rec.model = m.Model
	}
	for i := range m.Content {
		if c := m.Content[i].ToolUse; c != nil {
			rec.calls = append(rec.calls, call{c.ID, c.Name})
			rec.files = append(rec.files, touchedBy(c)...)
		}
	}
	if bill, ok := session.BillOf(e); ok {
		rec.usage = newUsage(bill, rec.calls)
	} else if m.Tokens != nil && *m.Tokens > 0 {
		rec.usage = newRecorded(e)
	}
}

func (rec *record) fillCustom(c *session.CustomEntry) {
	switch c.CustomType {
	case session.CustomTags:
		rec.tags = c
	case session.CustomPinned:
		pinned, _ := c.Data["pinned"].(bool)
		rec.pinned = &pinned
	case session.CustomContinuedTo:
		rec.continuedTo = c
	}
}

// newDoc tokenises a part. The text itself is not kept.
func (r *lineReader) newDoc(p part) doc {
	r.body, r.whole = r.body[:0], r.whole[:0]
	r.words.begin()
	s := scanner{text: canonical(p.text), emit: func(t token) {
		n := r.words.count(t.text)
		if t.whole {
			r.whole = append(r.whole, n)
		} else {
			r.body = append(r.body, n)
		}
	}, emitShort: func(key uint64, word string) {
		r.body = append(r.body, r.words.countShort(key, word))
	}}
	s.run()
	p.text = ""
	return doc{part: p, body: r.words.keepNumbers(r.body), whole: r.words.keepNumbers(r.whole), tf: r.words.counts()}
}

// length is the document's length in tokens.
func (d *doc) length() int { return len(d.body) + len(d.whole) }

// size is roughly how much memory a record takes.
func (rec *record) size() int {
	n := 300
	for i := range rec.docs {
		n += 200 + 4*rec.docs[i].length()
	}
	return n
}

// millis returns a time in milliseconds since 1970, and 0 for no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
