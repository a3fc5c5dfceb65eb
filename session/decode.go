package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// UnmarshalJSON reads an entry in any of the forms that a log may hold: nested
// or flat payloads, any order of members, unknown members and types.
func (e *Entry) UnmarshalJSON(line []byte) error {
	decoded, err := decodeEntry(line)
	if err != nil {
		return err
	}
	*e = *decoded
	return nil
}

// UnmarshalJSON reads a header.
func (h *Header) UnmarshalJSON(line []byte) error {
	decoded, err := decodeHeader(line)
	if err != nil {
		return err
	}
	*h = *decoded
	return nil
}

// UnmarshalJSON reads a block.
func (c *Content) UnmarshalJSON(data []byte) error {
	d := newDecoder()
	defer d.free()
	d.r.Reset(data)
	var decoded Content
	d.content(&decoded)
	if err := d.end("content"); err != nil {
		return err
	}
	*c = decoded
	return nil
}

// UnmarshalJSON reads a message, and keeps the members that it does not know.
func (m *MessageEntry) UnmarshalJSON(data []byte) error {
	d := newDecoder()
	defer d.free()
	d.r.Reset(data)
	var decoded MessageEntry
	d.object(&decoded, &decoded.Extra)
	if err := d.end("message"); err != nil {
		return err
	}
	*m = decoded
	return nil
}

// decoder reads lines. Its results share no memory with the line. It may be used for
// one line after the other: it keeps the words that occur in nearly every line, so that
// they are in memory once.
type decoder struct {
	r          rawjson.Reader
	words      wordTable
	id, parent string // of the entry read last: one of them is the next one's, nearly always
	minute     minute
	shared     *sharedMemory

	// The memory for the first blocks and the first text of the message at hand,
	// until it is taken.
	blocks []Content
	// How many blocks the entry at hand has: in its content, and as parts of results.
	listed, parts int
	text          *TextContent
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder for a few lines, to be freed afterwards.
func newDecoder() *decoder { return decoders.Get().(*decoder) }

func (d *decoder) free() {
	d.r.Reset(nil) // it must not keep the line
	decoders.Put(d)
}

func decodeHeader(line []byte) (*Header, error) {
	d := newDecoder()
	defer d.free()
	h := &Header{Type: TypeSession}
	d.begin(line)
	d.object(&headerLine{Header: h, seen: make(map[string]bool)}, &h.Extra)
	if err := d.end("header"); err != nil {
		return nil, err
	}
	return h, nil
}

// decodeEntry reads a line.
func decodeEntry(line []byte) (*Entry, error) {
	d := newDecoder()
	defer d.free()
	return d.entry(line)
}

var bom = []byte("\xef\xbb\xbf")

func (d *decoder) begin(line []byte) { d.r.Reset(bytes.TrimPrefix(line, bom)) }

// end reports whether all of the text was read.
func (d *decoder) end(what string) error {
	if err := d.r.End(); err != nil {
		return &Error{Op: "decode", Kind: ErrCorrupt, Err: fmt.Errorf("%s: %w", what, err)}
	}
	return nil
}

// messageLine is an entry of the commonest form, a message with one block of text,
// in one piece of memory.
type messageLine struct {
	entry Entry
	messageParts
}

// messageParts are the values that an entry of that form points to.
type messageParts struct {
	parent  string
	message MessageEntry
	blocks  [1]Content
	text    TextContent
}

// entry reads a line.
func (d *decoder) entry(line []byte) (*Entry, error) {
	d.begin(line)
	var l entryLine
	if bytes.HasPrefix(line, messagePrefix) {
		l.room = d.newRoom(len(line))
		l.Entry, d.blocks, d.text = &l.room.entry, l.room.blocks[:0], &l.room.text
		defer func() { d.blocks, d.text = nil, nil }()
	} else {
		l.Entry = &Entry{}
	}
	l.read(d)
	if err := d.end("entry"); err != nil {
		return nil, err
	}
	if !l.done {
		l.readPayload(d)
	}
	d.id = l.ID
	if d.parent = ""; l.ParentID != nil {
		d.parent = *l.ParentID
	}
	return l.Entry, nil
}

var messagePrefix = []byte(`{"type":"message"`)

// entryLine is an entry while its line is read.
type entryLine struct {
	*Entry
	room *messageLine // where a message goes, or nil
	seen [4]bool      // which of the leading members were there
	flat Fields       // members that may belong to a flat payload; slices of the line
	met  bool         // the member that is named like the type was there
	done bool         // it was the payload, and was read
}

// read reads the line's members. The payload is read on the way if the type is
// known by then, as it is in the lines that we write.
func (l *entryLine) read(d *decoder) {
	for more := d.r.Open('{'); more; more = d.r.More('}') {
		key := d.r.Key()
		mark := d.r.Mark()
		if l.leading(d, key) == known || l.isPayload(key) && l.inPlace(d) {
			continue
		}
		d.r.Rewind(mark)
		l.flat = append(l.flat, Field{Name: string(key), Value: d.r.Raw()})
	}
	if l.done {
		l.Extra = l.flat.clone()
	}
}

// isPayload reports whether a member is named like the type, and is the first.
func (l *entryLine) isPayload(key []byte) bool {
	if l.met || l.Type == "" || string(key) != string(l.Type) {
		return false
	}
	l.met = true
	return !l.flat.has(string(l.Type))
}

// inPlace reads the payload from where the line is being read.
func (l *entryLine) inPlace(d *decoder) bool {
	if d.r.Kind() != '{' {
		return false
	}
	p := l.newPayload(l.room)
	if p == nil {
		return false
	}
	d.object(p, p.extra())
	l.done = true
	return true
}

// leading reads the members that tell the tree. The first occurrence counts, even
// if it is of the wrong kind, as for the scanner that reads only the first bytes
// of a line; a second one is just kept.
func (l *entryLine) leading(d *decoder, key []byte) decoding {
	i := 0
	switch string(key) {
	case "type":
	case "id":
		i = 1
	case "parent_id":
		i = 2
	case "timestamp":
		i = 3
	default:
		return unknown
	}
	if l.seen[i] {
		return unknown
	}
	l.seen[i] = true
	switch i {
	case 0:
		return d.word((*string)(&l.Type))
	case 1:
		return d.entryID(&l.ID)
	case 2:
		return l.parentID(d)
	}
	return d.timestamp(&l.Timestamp)
}

func (l *entryLine) parentID(d *decoder) decoding {
	if d.r.Null() {
		return known
	}
	if d.r.Kind() != '"' {
		return unknown
	}
	if l.room != nil {
		l.ParentID = &l.room.parent
	} else {
		l.ParentID = new(string)
	}
	return d.entryID(l.ParentID)
}

// readPayload reads the payload from the members that were kept. Nested: it is
// the member named like the type. Flat: its members are among those of the entry.
func (l *entryLine) readPayload(d *decoder) {
	name := string(l.Type)
	p := l.newPayload(l.room)
	if raw, _, ok := l.flat.take(name); !ok || kindOf(raw) != '{' {
		name = string(l.Type) // it may have had an older name
	}
	if p == nil {
		l.Extra = l.flat.clone()
		return
	}
	if raw, rest, _ := l.flat.take(name); kindOf(raw) == '{' {
		d.r.Reset(raw)
		d.object(p, p.extra())
		l.Extra = rest.clone()
		return
	}
	for _, f := range l.flat {
		d.r.Reset(f.Value)
		if p.field(d, []byte(f.Name)) != known {
			l.Extra = append(l.Extra, Field{Name: f.Name, Value: bytes.Clone(f.Value)})
		}
	}
}

// members is an object whose members are read one by one.
type members interface {
	// field reads the member of a key, or leaves it as unknown. A known key with a
	// value of the wrong kind is unknown too: it is kept, not guessed.
	field(d *decoder, key []byte) decoding
}

// newPayload sets the payload of the entry's type, or returns nil for a type that
// has none. A type that has an older name gets the one that is written. room, if it
// is not nil, is where a message goes.
func (e *Entry) newPayload(room *messageLine) payload {
	k := e.Type.kind()
	switch {
	case k == kindOther:
		return nil
	case k == kindMessage && room != nil:
		e.Message = &room.message
		return e.Message
	}
	e.Type = kinds[k].name
	return kinds[k].set(e)
}

// decoding is what became of a member: taken, or to be kept as unknown.
type decoding bool

const (
	known   decoding = true
	unknown decoding = false
)

// object reads an object; the members that it does not know are added to extra.
func (d *decoder) object(m members, extra *Fields) {
	for more := d.r.Open('{'); more; more = d.r.More('}') {
		key := d.r.Key()
		mark := d.r.Mark()
		if m.field(d, key) == unknown {
			d.r.Rewind(mark)
			*extra = append(*extra, Field{Name: string(key), Value: bytes.Clone(d.r.Raw())})
		}
	}
}

// inner is object for the value of a member.
func (d *decoder) inner(m members, extra *Fields) decoding {
	d.object(m, extra)
	return known
}

// str reads a string; null leaves the one that is there.
func (d *decoder) str(into *string) decoding {
	s, ok := d.r.StringBytes()
	if ok {
		*into = d.keep(s)
	}
	return decoding(ok || d.r.Null())
}

// entryID is str for the id of an entry. Who reads a path in either direction
// sees each twice: as an id and as a parent.
func (d *decoder) entryID(into *string) decoding {
	s, ok := d.r.StringBytes()
	switch {
	case !ok:
		return decoding(d.r.Null())
	case string(s) == d.id:
		*into = d.id
	case string(s) == d.parent:
		*into = d.parent
	default:
		*into = d.keep(s)
	}
	return known
}

// word is str for a string that is likely to occur in other lines too.
func (d *decoder) word(into *string) decoding {
	s, ok := d.r.StringBytes()
	if !ok {
		return decoding(d.r.Null())
	}
	if len(s) == 0 || len(s) > 64 {
		*into = string(s)
		return known
	}
	slot := d.words.slot(s)
	if *slot != string(s) {
		*slot = string(s)
	}
	*into = *slot
	return known
}

// wordTable keeps words, each at a place of its own unless two collide.
type wordTable [64]string

func (t *wordTable) slot(word []byte) *string {
	return &t[(len(word)*7+int(word[0])*5+int(word[len(word)-1]))%len(t)]
}

// commonWords are those of nearly every line. They are part of the program: the
// garbage collector need not look at them, however many entries point to them.
var commonWords = func() (t wordTable) {
	for _, word := range []string{
		string(TypeMessage), string(ContentTypeText), string(ContentTypeToolUse), string(ContentTypeToolResult),
		RoleUser, RoleAssistant, RoleTool, RoleSystem,
	} {
		*t.slot([]byte(word)) = word
	}
	return t
}()

func (d *decoder) integer(into *int) decoding {
	n, ok := d.r.Int()
	if ok {
		*into = int(n)
	}
	return decoding(ok)
}

// count reads a number of tokens or the like: see maxCount.
func (d *decoder) count(into *int) decoding {
	n, ok := d.r.Int()
	if !ok || n < 0 || n > maxCount || int64(int(n)) != n {
		return unknown
	}
	*into = int(n)
	return known
}

// The forms of time that are read besides RFC 3339: without a zone, which means
// local time.
var naiveTimes = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}

func (d *decoder) timestamp(into *time.Time) decoding {
	s, ok := d.r.StringBytes()
	if !ok {
		return unknown
	}
	if d.minute.read(s, into) {
		return known
	}
	var t time.Time
	if t.UnmarshalText(s) == nil { // like Parse, but stricter, and it wants no string
		d.minute.set(s, t)
	}
	t, ok = parseTime(s)
	if !ok {
		return unknown
	}
	*into = t
	return known
}

// parseTime reads a time in any of the forms.
func parseTime(s []byte) (t time.Time, ok bool) {
	err := t.UnmarshalText(s)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, string(s))
	}
	for i := 0; err != nil && i < len(naiveTimes); i++ {
		t, err = time.ParseInLocation(naiveTimes[i], string(s), time.Local)
	}
	t = t.UTC()
	return t, err == nil && t.Year() >= 0 && t.Year() <= 9999 // RFC 3339 has no other years
}

// minute is the minute of the time read last. The next one is nearly always of the
// same, and then only its seconds must be read.
type minute struct {
	text  [len("2006-01-02T15:04:")]byte
	begin time.Time
}

// set takes the minute of a time in UTC.
func (m *minute) set(text []byte, t time.Time) {
	if len(text) > len(m.text) && text[len(text)-1] == 'Z' {
		copy(m.text[:], text)
		m.begin = t.UTC().Truncate(time.Minute)
	}
}

// read reads a time of that minute, such as "2026-03-01T12:00:05.123Z". It returns
// false if it is another or has another form.
func (m *minute) read(text []byte, into *time.Time) bool {
	n := len(m.text)
	if m.text[0] == 0 || len(text) <= n+2 || string(text[:n]) != string(m.text[:]) || text[len(text)-1] != 'Z' {
		return false
	}
	fraction := text[n+2 : len(text)-1]
	if len(fraction) > 0 && (fraction[0] != '.' || len(fraction) == 1 || len(fraction) > len(".123456789")) {
		return false
	}
	seconds, ok := digits(text[n : n+2])
	nanos, ok2 := 0, true
	if len(fraction) > 0 {
		nanos, ok2 = digits(fraction[1:])
		for range len(".123456789") - len(fraction) {
			nanos *= 10
		}
	}
	if !ok || !ok2 || seconds > 59 {
		return false
	}
	*into = m.begin.Add(time.Duration(seconds)*time.Second + time.Duration(nanos))
	return true
}

// digits returns the number that is written with nothing but digits, at most nine.
func digits(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// isTime reports whether a raw value is a time.
func isTime(value []byte) bool {
	d := newDecoder()
	defer d.free()
	d.r.Reset(value)
	return d.timestamp(new(time.Time)) == known
}

// has reports whether one of the fields has a name.
func (f Fields) has(name string) bool {
	for i := range f {
		if f[i].Name == name {
			return true
		}
	}
	return false
}

// kindOf returns the first byte of a value, which says what it is.
func kindOf(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

// object decodes a map and keeps its bytes. A number that a float64 cannot hold
// is a json.Number in the map: see rawjson.Number.
func object(value []byte, into *map[string]any, raw *json.RawMessage) decoding {
	if kindOf(value) != '{' {
		return decoding(rawjson.IsNull(value))
	}
	*raw = value
	*into, _ = rawjson.Map(value) // the whole line was found valid
	return known
}

// anyObject reads a map, and keeps its bytes too: they have the order of its
// members.
func (d *decoder) anyObject(into *map[string]any, raw *json.RawMessage) decoding {
	if d.r.Kind() != '{' {
		return decoding(d.r.Null())
	}
	return object(bytes.Clone(d.r.Raw()), into, raw)
}
