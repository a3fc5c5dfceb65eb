package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// MarshalJSON writes the entry as a log has it.
func (e Entry) MarshalJSON() ([]byte, error) { return appendEntry(nil, &e) }

// AppendJSON appends the entry to a buffer as a log has it.
func (e *Entry) AppendJSON(to []byte) ([]byte, error) { return appendEntry(to, e) }

// MarshalJSON writes the header as a log has it.
func (h Header) MarshalJSON() ([]byte, error) { return appendHeader(nil, &h), nil }

// MarshalJSON writes the block as a log has it.
func (c Content) MarshalJSON() ([]byte, error) {
	w := newWriter(nil)
	w.content(&c)
	return w.done()
}

// MarshalJSON writes the message as a log has it.
func (m MessageEntry) MarshalJSON() ([]byte, error) {
	w := newWriter(nil)
	w.open(m.Extra)
	m.write(w)
	w.end(nil)
	return w.done()
}

func appendHeader(dst []byte, h *Header) []byte {
	w := newWriter(dst)
	w.open(h.Extra)
	w.str("type", string(TypeSession))
	w.str("id", h.ID)
	w.int("version", int64(h.Version))
	w.optStr("parent_session", h.ParentSession)
	w.timestamp(h.CreatedAt)
	w.optStr("relation", h.Relation)
	w.optInt("continuation_index", int64(h.Continuation))
	w.optStr("cwd", h.CWD)
	w.optStr("key", h.Key)
	w.end(nil)
	line, _ := w.done() // only unknown members can be wrong, and were read from JSON
	return line
}

// appendEntry writes an entry in its canonical form: type, id, parent_id and
// timestamp first, so that a reader learns the tree from the first bytes.
func appendEntry(dst []byte, e *Entry) ([]byte, error) {
	w := newWriter(dst)
	w.open(e.Extra)
	if e.Type != "" || !w.odd("type", 's') {
		w.str("type", string(e.Type))
	}
	if e.ID != "" || !w.odd("id", 's') {
		w.str("id", e.ID)
	}
	switch {
	case e.ParentID != nil:
		w.key("parent_id")
		w.buf = rawjson.AppendString(w.buf, *e.ParentID)
	case !w.odd("parent_id", 's', '0'):
		w.null("parent_id", 's', '0')
	}
	w.timestamp(e.Timestamp)
	w.payload(e)
	w.end(nil)
	return w.done()
}

// odd writes one of the first members as it was read, if it is among the unknown ones
// because it had the wrong kind of value. Further back a reader would not find it in
// the first bytes.
func (w *writer) odd(name string, right ...byte) bool {
	if !w.isOdd(name, right...) {
		return false
	}
	raw, rest, _ := w.extra.take(name)
	w.extra = rest
	w.key(name)
	w.raw(name, raw)
	return true
}

// timestamp writes the time. One that was not a time stays what it was.
func (w *writer) timestamp(t time.Time) {
	if raw, _, ok := w.extra.take("timestamp"); ok && t.IsZero() && !isTime(raw) {
		w.odd("timestamp")
		return
	}
	w.key("timestamp")
	w.buf = rawjson.AppendTime(w.buf, t)
}

// take returns the value of a field and the fields without it.
func (f Fields) take(name string) (value json.RawMessage, rest Fields, ok bool) {
	for i := range f {
		if f[i].Name == name {
			rest = append(append(rest, f[:i]...), f[i+1:]...)
			return f[i].Value, rest, true
		}
	}
	return nil, f, false
}

// writer appends JSON members to buf. Errors stick.
type writer struct {
	buf []byte
	err error
	// extra are the unknown members of the object that is being written. A known
	// member whose value had the wrong kind is among them: then the object's own field
	// is empty and is not written, because no member may occur twice.
	extra Fields
	// sum, if it is not nil, is given long strings piece by piece, and before them
	// what buf holds: so a fingerprint needs no copy of them.
	sum hash.Hash
}

// writers are used again: payloads are asked to write themselves, so that a writer
// is always on the heap, and every append needs one.
var writers = sync.Pool{New: func() any { return new(writer) }}

func newWriter(buf []byte) *writer {
	w := writers.Get().(*writer)
	w.buf = buf
	return w
}

// done returns what was written. The writer is used for something else then.
func (w *writer) done() ([]byte, error) {
	buf, err := w.buf, w.err
	*w = writer{}
	writers.Put(w)
	return buf, err
}

// key begins a member. The comma depends on what comes before, so that no caller has to
// know whether it is the first.
func (w *writer) key(name string) {
	buf := w.buf
	if buf[len(buf)-1] != '{' {
		buf = append(buf, ',')
	}
	buf = append(buf, '"')
	buf = append(buf, name...) // our own names need no escapes
	w.buf = append(buf, '"', ':')
}

// isOdd reports whether a known member is among the unknown ones because its value
// is of none of the right kinds (see rawjson.Kind), or too long. One of a right kind is there
// because the member was repeated: the first, which was read, counts and has to stay
// the first.
func (w *writer) isOdd(name string, right ...byte) bool {
	for _, f := range w.extra {
		if f.Name == name {
			return bytes.IndexByte(right, rawjson.Kind(f.Value)) < 0 || CheckBlocks(f.Value) != nil
		}
	}
	return false
}

// isOddCount is isOdd of a count: a number may be of the right kind and yet be none.
func (w *writer) isOddCount(name string) bool {
	for _, f := range w.extra {
		if f.Name == name {
			n, ok := rawjson.Int(f.Value)
			return !ok || n < 0 || n > maxCount
		}
	}
	return false
}

// CheckBlocks returns an error if raw is a list of more than MaxBlocks elements. Call it
// before turning foreign JSON into blocks.
func CheckBlocks(raw []byte) error {
	if len(raw) <= 2*MaxBlocks || rawjson.Kind(raw) != 'a' {
		return nil
	}
	n := 0
	return rawjson.Array(raw, func([]byte) error {
		if n++; n > MaxBlocks {
			return errTooManyBlocks
		}
		return nil
	})
}

var errTooManyBlocks = fmt.Errorf("more than %d blocks: split the message", MaxBlocks)

func (w *writer) str(name, value string) {
	if value == "" && w.isOdd(name, 's') {
		return
	}
	w.key(name)
	if w.sum != nil && len(value) > longString {
		w.long(value)
		return
	}
	w.buf = rawjson.AppendString(w.buf, value)
}

// longString is the length from which on a string is written in pieces.
const longString = 64 << 10

func (w *writer) long(value string) {
	w.sum.Write(append(w.buf, '"'))
	for len(value) > 0 {
		n := min(longString, len(value))
		for n < len(value) && n > longString-utf8.UTFMax && !utf8.RuneStart(value[n]) {
			n-- // a character stays whole
		}
		w.buf = rawjson.AppendString(w.buf[:0], value[:n])
		w.sum.Write(w.buf[1 : len(w.buf)-1])
		value = value[n:]
	}
	w.buf = append(w.buf[:0], '"')
}

func (w *writer) optStr(name, value string) {
	if value != "" {
		w.str(name, value)
	}
}

func (w *writer) int(name string, n int64) {
	if n == 0 && w.isOddCount(name) {
		return
	}
	w.key(name)
	w.buf = rawjson.AppendInt(w.buf, n)
}

func (w *writer) optInt(name string, n int64) {
	if n != 0 {
		w.int(name, n)
	}
}

func (w *writer) null(name string, right ...byte) {
	if !w.isOdd(name, right...) {
		w.key(name)
		w.buf = append(w.buf, "null"...)
	}
}

// begin opens an object that is the value of a member: see open.
func (w *writer) begin(name string, extra Fields) (outer Fields) {
	w.key(name)
	return w.open(extra)
}

// open opens an object with the unknown members that end will write. It returns
// those of the object around it, which end wants back.
func (w *writer) open(extra Fields) (outer Fields) {
	outer, w.extra = w.extra, extra
	w.buf = append(w.buf, '{')
	return outer
}

// end writes the unknown members and closes the object.
func (w *writer) end(outer Fields) {
	for _, f := range w.extra {
		if len(w.buf) > 0 && w.buf[len(w.buf)-1] != '{' {
			w.buf = append(w.buf, ',')
		}
		w.buf = rawjson.AppendString(w.buf, f.Name)
		w.buf = append(w.buf, ':')
		w.raw(f.Name, f.Value)
	}
	w.buf = append(w.buf, '}')
	w.extra = outer
}

// raw writes a value that is JSON already. A line must stay one line, and JSON
// may have newlines between its tokens: they are taken out.
func (w *writer) raw(name string, value json.RawMessage) {
	if !rawjson.Valid(value) {
		w.fail(name, fmt.Errorf("%.40q is not JSON", value))
		return
	}
	if bytes.IndexByte(value, '\n') < 0 {
		w.buf = append(w.buf, value...)
		return
	}
	var one bytes.Buffer
	_ = json.Compact(&one, value) // it is valid
	w.buf = append(w.buf, one.Bytes()...)
}

func (w *writer) fail(name string, err error) {
	if w.err == nil {
		w.err = &Error{Op: "encode", Kind: ErrInvalid, Err: fmt.Errorf("%s: %w", name, err)}
	}
}

// object writes a map. If it is still what raw was decoded to, raw is written,
// which keeps the order of its members and every digit of its numbers.
func (w *writer) object(name string, m map[string]any, raw json.RawMessage) {
	if m == nil && w.isOdd(name, 'o', '0') {
		return
	}
	w.key(name)
	if raw != nil && sameObject(m, raw) {
		w.raw(name, raw)
		return
	}
	buf, err := rawjson.AppendAny(w.buf, m)
	if err != nil {
		w.fail(name, err)
		return
	}
	w.buf = buf
}

func sameObject(m map[string]any, raw json.RawMessage) bool { return rawjson.IsValue(m, raw) }
