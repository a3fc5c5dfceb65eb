package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// target is the session that a conversation, or a family of them, becomes.
type target struct {
	w       *writer
	id, own string           // of the session, and of the one that the conversation would normally become
	conv    Conversation     // of the first of the family
	natives []string         // the ids of all of the family
	s       *session.Session // nil until there is something to write
	stage   *stage           // where s is until a batch creates it; nil if it is in the store
	created bool             // by this import
	trusted bool             // a record whose id is known needs no comparison: see newTarget

	wrote map[string]string // the entries that records of an export are: see Source

	queue      []session.Entry   // of records
	remarks    []session.Entry   // about the session
	queued     map[string]bool   // the ids of both
	aliases    map[string]string // from native ids to entry ids, where they differ
	seen       map[string]int    // how often a content without an id was met
	compared   map[string]bool   // the known entries that were compared
	base       string            // the session's leaf before this import
	last       string            // the entry of the last record
	leaf       string            // where the conversation ends: a native id, or ""
	moved      bool              // an entry was added since the leaf was last right
	time       time.Time         // of the last record
	newest     time.Time         // the latest time of a record
	sourceTime time.Time         // the latest time that the source itself gives a record of this import

	tally               tally
	added, known, again int
}

func (w *writer) newTarget(c Conversation, family string) (*target, error) {
	own := SessionID(w.format.Name, family)
	t := &target{
		w: w, id: own, own: own, conv: Conversation{ID: c.ID},
		queued: make(map[string]bool), aliases: make(map[string]string), seen: make(map[string]int), compared: make(map[string]bool), time: c.Created,
	}
	// A file that an export wrote and its program continued belongs to the exported
	// session. Its records are not compared: an export may have simplified them.
	if w.src.Exported != "" && w.src.Native == c.ID {
		t.id, t.trusted, t.wrote = w.src.Exported, true, w.src.Wrote
	}
	if err := t.open(); err != nil || t.s != nil || t.trusted {
		return t, err
	}
	// Programs copy such files, or import them into their own database.
	if x := w.im.Ledger.ExportOf(w.ctx, w.format.Name, c.ID); x != nil {
		t.id, t.trusted, t.wrote = x.Exported, true, x.Wrote
		return t, t.open()
	}
	return t, nil
}

// open opens the session, if it exists.
func (t *target) open() error {
	if b := t.w.batch; b != nil && b.ids[t.id] {
		return errWaits
	}
	s, err := session.Open(t.w.ctx, t.w.im.Store, t.id, t.options())
	switch {
	case err == nil:
		t.s, t.base = s, s.LeafID()
		if last, err := s.Entry(t.base); err == nil {
			t.newest = last.Timestamp
		}
	case !errors.Is(err, session.ErrNotExist):
		return err
	}
	return nil
}

// detach stops treating the file as our export. Its records differ from what we wrote,
// so another file has replaced it; it becomes a session of its own.
func (t *target) detach(r *Record) error {
	if err := t.close(); err != nil {
		return err
	}
	t.id, t.trusted, t.wrote, t.s, t.base = t.own, false, nil, nil, ""
	if err := t.open(); err != nil {
		return err
	}
	return t.add(r)
}

// options are those with which sessions are filled. Another importer may be
// filling the same one: entries name their parents, so the other's entries are not a
// conflict.
func (t *target) options() *session.Options {
	o := t.w.im.Options
	o.OnConflict = session.GrowBranch
	o.Now = t.when
	if own := o.Clean; own != nil || t.w.im.Clean != nil || t.w.guard != nil {
		o.Clean = func(e *session.Entry) error {
			if own != nil {
				if err := own(e); err != nil {
					return err
				}
			}
			return t.clean(e)
		}
	}
	return &o
}

// when is the time of an import's entries about a session: that of its newest
// record, because importing a conversation does not continue it.
func (t *target) when() time.Time {
	if t.newest.IsZero() {
		return t.w.im.now().UTC().Truncate(time.Millisecond)
	}
	return t.newest
}

// addFacts records the facts about the conversation that a reader found.
func (t *target) addFacts(c Conversation) {
	if !slices.Contains(t.natives, c.ID) {
		t.natives = append(t.natives, c.ID)
	}
	if c.ID == t.conv.ID {
		t.conv = t.conv.with(c)
	} else if t.conv.Title == "" {
		t.conv.Title = c.Title
	}
	if c.Leaf != "" {
		t.leaf = c.Leaf
	}
	if t.time.IsZero() {
		t.time = c.Created
	}
}

// has reports whether the session has an entry, or will have it.
func (t *target) has(id string) (bool, error) {
	if t.queued[id] {
		return true, nil
	}
	if t.s == nil {
		return false, nil
	}
	return t.s.Has(id)
}

// entryID returns the id of the entry that a native id means.
func (t *target) entryID(native string) string {
	if id, ok := t.aliases[native]; ok {
		return id
	}
	if isPlainID(native) {
		return native
	}
	if wasPlainID(native) {
		if has, err := t.has(native); has && err == nil {
			return native
		}
	}
	return HashID("entry", t.id, native)
}

// add adds a record, unless the session has it.
//
// The order matters. Ids made from content need clean content, so clean comes first. A revision's
// id depends on its parent, so linkParent comes before isKnown. And a known record still becomes
// the last one, because the next record may follow it.
func (t *target) add(r *Record) error {
	if id, ours := t.wrote[r.ID]; ours {
		return t.recognise(r, id)
	}
	e := r.Entry
	if t.w.im.Clean != nil { // ids made from content are then made from clean content
		if err := t.clean(&e); err != nil {
			return err
		}
	}
	t.setTimeAndRefs(&e)
	if err := t.linkParent(r, &e); err != nil {
		return err
	}
	native := r.ID
	if native == "" {
		native = t.contentID(&e)
	}
	delete(t.aliases, native) // it may have meant another entry before
	e.ID = t.entryID(native)
	known, err := t.isKnown(r, &e)
	if err != nil {
		return err
	}
	if !known && t.trusted && t.known+t.added == 0 {
		return t.detach(r)
	}
	if e.ID != native {
		t.aliases[native] = e.ID
	}
	for _, alias := range r.Aliases {
		if own, err := t.has(alias); err != nil {
			return err
		} else if !own && alias != e.ID {
			t.aliases[alias] = e.ID
		}
	}
	t.last = e.ID
	if known {
		t.known++
		return nil
	}
	return t.enqueue(r, &e)
}

// recognise treats a record as an entry that an export wrote, or as something that the
// export added if the id is "".
func (t *target) recognise(r *Record, id string) error {
	if id != "" {
		has, err := t.has(id)
		if err != nil {
			return err
		}
		if !has { // the session was removed, or cleaned, since
			t.wrote = nil
			return t.add(r)
		}
		t.last = id
		for _, native := range append(r.Aliases, r.ID) {
			t.aliases[native] = id
		}
	}
	t.known++
	return nil
}

// clean removes secrets from an entry. The source lines were cleaned
// already, but parts of an entry may come from elsewhere.
func (t *target) clean(e *session.Entry) error {
	if t.w.im.Clean == nil && t.w.guard == nil {
		return nil
	}
	dirty, err := e.MarshalJSON()
	if err != nil {
		return nil // it cannot be written: see stub
	}
	raw := t.w.cleanJSON(dirty)
	if bytes.Equal(raw, dirty) {
		return nil
	}
	cleaned := session.Entry{}
	if err := json.Unmarshal(raw, &cleaned); err != nil {
		return err
	}
	// What holds the session together stays.
	cleaned.Type, cleaned.ID, cleaned.ParentID, cleaned.Timestamp = e.Type, e.ID, e.ParentID, e.Timestamp
	*e = cleaned
	return nil
}

// cleanJSON removes secrets from JSON that an import writes.
func (r *run) cleanJSON(value []byte) []byte {
	if r.im.Clean != nil {
		value = r.im.Clean(value)
	}
	return r.guard.JSON(value)
}

// setTimeAndRefs gives an entry a time, and the entries that it refers to their ids.
func (t *target) setTimeAndRefs(e *session.Entry) {
	if e.Timestamp.After(t.sourceTime) {
		t.sourceTime = e.Timestamp
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = t.time
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = time.Unix(0, 0).UTC()
		if info, err := t.w.file.stat(); err == nil {
			e.Timestamp = info.ModTime().UTC()
		}
	}
	t.time = e.Timestamp
	if e.Timestamp.After(t.newest) {
		t.newest = e.Timestamp
	}
	e.EachRef(func(id *string) {
		if *id != "" {
			*id = t.entryID(*id)
		}
	})
}

// linkParent finds the entry's parent. A missing parent is replaced by the record
// before, so that the conversation stays connected.
func (t *target) linkParent(r *Record, e *session.Entry) error {
	parent := t.last
	if parent == "" { // a resumed reading begins in the middle
		parent = t.base
	}
	switch r.Parent {
	case "":
	case Root:
		e.ParentID = nil
		return nil
	default:
		id := t.entryID(r.Parent)
		ok, err := t.has(id)
		if err != nil {
			return err
		}
		if ok {
			parent = id
		} else {
			t.tally.problem(Problem{Pos: r.pos(), Reason: "the record " + strconv.Quote(r.Parent) + ", which comes before this one, is missing"})
		}
	}
	if parent != "" {
		e.ParentID = &parent
	}
	return nil
}

func (r *Record) pos() int64 {
	if len(r.From) == 0 {
		return 0
	}
	return r.From[0].Pos
}

// contentID names a record that has no id by its content, and by how often that
// was met before: so the name stays when records before it are taken away.
func (t *target) contentID(e *session.Entry) string {
	hash := sumOf(contentKey(e, false))
	t.seen[hash]++
	return HashID("record", t.id, hash, strconv.Itoa(t.seen[hash]))
}

// isKnown reports whether the record is in the session. If there is another
// version of it there, the entry's id becomes that of a revision.
func (t *target) isKnown(r *Record, e *session.Entry) (bool, error) {
	known, err := t.has(e.ID)
	if !known || err != nil {
		return false, err
	}
	if t.queued[e.ID] || t.trusted || t.created || t.compared[e.ID] || r.ID == "" {
		return true, nil // the source repeats itself, or the id says it all
	}
	t.compared[e.ID] = true
	for _, alias := range r.Aliases { // it was read in parts before
		if own, err := t.has(alias); own && alias != e.ID || err != nil {
			e.ID = alias
			return own, err
		}
	}
	stored, err := t.s.Entry(e.ID)
	if err != nil && !errors.Is(err, session.ErrCorrupt) {
		return false, err // for a damaged line the source may have the whole version
	}
	// If the source gives no time, it may be the file's, and a copy has another.
	timed := !r.Entry.Timestamp.IsZero()
	line, have := contentKey(withoutCut(e), timed), contentKey(withoutCut(&stored), timed)
	if (bytes.Equal(line, have) || isRedactedFrom(have, line)) && t.sameParent(&stored, e) {
		return true, nil
	}
	if isLater(&stored, e) && t.sameParent(&stored, e) {
		return true, t.recordCost(&stored, e)
	}
	hash := sumOf(line)
	parent := ""
	if e.ParentID != nil {
		parent = *e.ParentID
	}
	e.ID += "~" + HashID("revision", hash, parent)[:8]
	known, err = t.has(e.ID)
	if !known {
		t.again++
	}
	return known, err
}

// withoutCut leaves out where a compaction cuts: if the source's cut separated a call
// from its result, another was stored (see session.MoveCut).
func withoutCut(e *session.Entry) *session.Entry {
	if e.Compaction == nil {
		return e
	}
	plain, c := *e, *e.Compaction
	c.FirstKeptEntryID, c.State = "", nil
	plain.Compaction = &c
	return &plain
}

// sameParent reports whether a record follows the same entry as before, or at least one
// that was not revised.
func (t *target) sameParent(stored, e *session.Entry) bool {
	if e.ParentID == nil || !isRevision(*e.ParentID) {
		return true
	}
	return stored.ParentID != nil && *stored.ParentID == *e.ParentID
}

func isRevision(id string) bool { return len(id) > 9 && id[len(id)-9] == '~' }

// contentKey is equal for two entries that say the same, wherever they are in a tree and
// whatever the directory. With withTime, the time must be the same too.
func contentKey(e *session.Entry, withTime bool) []byte {
	plain := *e
	plain.ID, plain.ParentID = "", nil
	if !withTime {
		plain.Timestamp = time.Unix(0, 0)
	}
	if e.Message != nil && e.Message.Metadata[MetaWhere] != nil {
		m := *e.Message
		m.Metadata = maps.Clone(m.Metadata)
		delete(m.Metadata, MetaWhere)
		plain.Message = &m
	}
	plain.Extra = slices.DeleteFunc(slices.Clone(e.Extra), func(f session.Field) bool { return f.Name == sourceField })
	line, err := plain.MarshalJSON()
	if err != nil {
		return []byte(err.Error())
	}
	var read session.Entry // text that is not UTF-8 is changed when it is written
	if json.Unmarshal(line, &read) == nil {
		if again, err := read.MarshalJSON(); err == nil {
			line = again
		}
	}
	return line
}

// redaction matches the replacement of a secret that was removed from a session.
var redaction = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[REDACTED:[a-z0-9-]+\]`) })

// isRedactedFrom reports whether the stored entry equals the source's except for
// secrets that were removed since: they must not come back.
func isRedactedFrom(stored, line []byte) bool {
	pieces := redaction().Split(string(stored), -1)
	rest, ok := bytes.CutPrefix(line, []byte(pieces[0]))
	if len(pieces) == 1 || !ok {
		return false
	}
	for _, piece := range pieces[1 : len(pieces)-1] {
		at := bytes.Index(rest, []byte(piece))
		if at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return bytes.HasSuffix(rest, []byte(pieces[len(pieces)-1]))
}

// sourceField is the member of an entry that says which bytes it was made from.
const sourceField = session.FieldSource

// enqueue adds an entry to those that will be written.
func (t *target) enqueue(r *Record, e *session.Entry) error {
	source, err := t.source(r.From)
	if err != nil {
		return err
	}
	if source != nil {
		e.Extra = append(e.Extra, session.Field{Name: sourceField, Value: source})
	}
	t.queue = append(t.queue, *e)
	t.queued[e.ID] = true
	t.added++
	t.moved = true
	return nil
}

// source says which bytes an entry was made from.
func (t *target) source(from []Span) (json.RawMessage, error) {
	var b []byte
	for _, span := range from {
		for span.Len > 0 {
			c := t.w.chunkAt(span.Pos)
			if c == nil {
				break
			}
			id, err := t.imported(c)
			if err != nil {
				return nil, err
			}
			n := min(span.Len, c.end()-span.Pos)
			b = append(b, `,{"in":"`...)
			b = append(b, id...)
			b = append(b, `","pos":`...)
			b = rawjson.AppendInt(b, span.Pos&^keptSpace)
			b = append(b, `,"len":`...)
			b = rawjson.AppendInt(b, n)
			b = append(b, '}')
			span.Pos += n
			span.Len -= n
		}
	}
	if b == nil {
		return nil, nil
	}
	b[0] = '['
	return append(b, ']'), nil
}

// maxInline is the size up to which compressed bytes are kept in the session itself.
const maxInline = 4 << 10

// imported returns the id of the entry that says where a chunk is kept, and
// adds it if it is not there.
func (t *target) imported(c *chunk) (string, error) {
	c.assigned = true
	id := "import-" + HashID(t.w.file.Path, strconv.FormatInt(c.from, 10), c.sum)[:18]
	if has, err := t.has(id); has || err != nil {
		return id, err
	}
	if c.ref == "" && len(c.packed) > maxInline && !t.w.im.DryRun {
		ref, err := t.w.im.Store.Blobs().Put(t.w.ctx, c.packed)
		if err != nil {
			return "", err
		}
		c.ref = ref
	}
	data := map[string]any{
		"format": t.w.format.Name, "path": t.w.file.Path, "from": c.from &^ keptSpace, "len": c.size,
		"sha256": c.keptSum, "encoding": "zstd", "imported": t.w.im.now().UTC().Format(time.RFC3339),
	}
	if c.from >= keptSpace {
		data["beside"] = true
	}
	if c.ref != "" {
		data["blob"] = string(c.ref)
	} else {
		data["data"] = base64.StdEncoding.EncodeToString(c.packed)
	}
	t.remark(id, &session.CustomEntry{CustomType: CustomImport, Data: data})
	return id, nil
}

// remark adds an entry about the session.
func (t *target) remark(id string, c *session.CustomEntry) {
	t.remarks = append(t.remarks, session.Entry{Type: session.TypeCustom, ID: id, Custom: c}) // flush sets its time
	t.queued[id] = true
}
