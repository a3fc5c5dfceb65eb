package rawjson

// Reader reads one JSON text from its beginning to its end, every byte once:
//
//	r.Reset(text)
//	for more := r.Open('{'); more; more = r.More('}') {
//		switch key := r.Key(); string(key) {
//		case "name":
//			name, ok = r.String()
//		default:
//			other = r.Raw()
//		}
//	}
//	err := r.End()
//
// A method that reads a value of one kind leaves the Reader where it is when the
// value is of another. Of text that is not JSON nothing more can be read once the
// there is damage: loops end, and End says where it is.
//
// What it returns as bytes are slices of the text. A Reader can be used again for
// the next text, and keeps its working memory.
type Reader struct {
	b       []byte
	i       int // the next byte; when the text is broken, what a walker returned
	depth   int // so many more levels may be opened
	scratch []byte
}

// maxScratch is the largest working memory that a Reader keeps.
const maxScratch = 64 << 10

// Reset begins a text.
func (r *Reader) Reset(text []byte) {
	r.b, r.i, r.depth = text, space(text, 0), maxDepth
	if cap(r.scratch) > maxScratch {
		r.scratch = nil
	}
}

// Kind returns the first byte of the next value, or 0 if there is none.
func (r *Reader) Kind() byte {
	if r.i < 0 || r.i >= len(r.b) {
		return 0
	}
	return r.b[r.i]
}

// Open goes into the next value, an object or an array, and reports whether it
// has members or elements. It must begin with the given byte.
func (r *Reader) Open(opening byte) (more bool) {
	if r.Kind() != opening {
		r.fail()
		return false
	}
	if r.depth == 0 {
		r.i = tooDeep
		return false
	}
	r.depth--
	r.i = space(r.b, r.i+1)
	if r.i < len(r.b) && r.b[r.i] == opening+2 { // so far apart are both pairs in ASCII
		r.i++
		r.depth++
		return false
	}
	return true
}

// More goes on after a member or an element, and reports whether there is
// another. If not, it leaves the object or the array, which must end with the
// given byte.
func (r *Reader) More(closing byte) (more bool) {
	if r.i < 0 {
		return false
	}
	if r.i, more = skipComma(r.b, r.i, closing); !more {
		r.depth++
	}
	return more
}

// Key reads the key of a member. It is nil when the text is broken.
func (r *Reader) Key() (key []byte) {
	if r.i < 0 {
		return nil
	}
	if key = r.plainKey(); key != nil {
		return key
	}
	var scratch []byte // of its own: the caller needs it while it reads the value
	key, r.i = readKey(r.b, r.i, &scratch)
	return key
}

// plainKey reads a key as nearly all are: short, of small letters, and with its
// value right after the colon. If it is not, it returns nil and leaves the Reader
// where it is.
func (r *Reader) plainKey() []byte {
	b := r.b[r.i:]
	if len(b) == 0 || b[0] != '"' {
		return nil
	}
	i := 1
	for i < len(b) && (b[i]-'a' <= 'z'-'a' || b[i] == '_') {
		i++
	}
	if len(b)-i < 3 || b[i] != '"' || b[i+1] != ':' || b[i+2] <= ' ' {
		return nil
	}
	r.i += i + 2
	return b[1:i:i]
}

// Framed reads a string that is between two texts, without any space. Levels
// is how many levels are open around the string. If that is not what is there, it
// leaves the Reader where it is. The result is valid until the next string is read.
func (r *Reader) Framed(before, after string, levels int) (body []byte, ok bool) {
	start := r.i + len(before)
	if r.i < 0 || r.depth < levels || start > len(r.b) || string(r.b[r.i:start]) != before {
		return nil, false
	}
	mark := r.i
	r.i = start
	if body, ok = r.StringBytes(); ok && r.word(after) {
		return body, true
	}
	r.i = mark // broken or not, the next to read it finds out
	return nil, false
}

// Raw reads a value of any kind. It is nil when the text is broken.
func (r *Reader) Raw() []byte {
	if r.i < 0 {
		return nil
	}
	start := r.i
	if r.i = skip(r.b, start, r.depth); r.i < 0 {
		return nil
	}
	return r.b[start:r.i:r.i]
}

// Mark returns the place where the Reader is, for Rewind.
func (r *Reader) Mark() int { return r.i }

// Rewind goes back to a value that was read already, in the same object or array.
// It does nothing when the text is broken.
func (r *Reader) Rewind(mark int) {
	if r.i >= 0 {
		r.i = mark
	}
}

// Since returns the text between a mark and the place where the Reader is. It is
// nil when the text is broken.
func (r *Reader) Since(mark int) []byte {
	if mark < 0 || r.i < mark { // it may have been broken at the mark already
		return nil
	}
	return r.b[mark:r.i:r.i]
}

// String reads a string as [String] decodes it.
func (r *Reader) String() (s string, ok bool) {
	body, ok := r.StringBytes()
	return string(body), ok
}

// StringBytes is String without a copy: the result is valid until the next
// string is read.
func (r *Reader) StringBytes() (body []byte, ok bool) {
	if r.Kind() != '"' {
		return nil, false
	}
	start := r.i + 1
	end := plainASCII(r.b, start)
	if end < len(r.b) && r.b[end] == '"' {
		r.i = end + 1
		return r.b[start:end:end], true
	}
	if r.i = skipString(r.b, end); r.i < 0 {
		return nil, false
	}
	body = r.b[start : r.i-1 : r.i-1]
	if !plain(body) {
		r.scratch = unquote(r.scratch[:0], body)
		body = r.scratch
	}
	return body, true
}

// Int reads an integer as [Int] decodes it.
func (r *Reader) Int() (n int64, ok bool) {
	if Kind(r.rest()) != 'n' {
		return 0, false
	}
	end := skipNumber(r.b, r.i)
	if end < 0 {
		r.i = end
		return 0, false
	}
	if n, ok = Int(r.b[r.i:end]); ok {
		r.i = end
	}
	return n, ok
}

// Bool reads true or false.
func (r *Reader) Bool() (v, ok bool) {
	if r.word("true") {
		return true, true
	}
	return false, r.word("false")
}

// Null reads null.
func (r *Reader) Null() bool { return r.word("null") }

func (r *Reader) word(word string) bool {
	rest := r.rest()
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	r.i += len(word)
	return true
}

// rest is the text that was not read yet.
func (r *Reader) rest() []byte {
	if r.i < 0 {
		return nil
	}
	return r.b[r.i:]
}

// fail ends the reading at the next byte, which does not fit.
func (r *Reader) fail() {
	if r.i >= 0 {
		r.i = ^r.i
	}
}

// End returns nil if the text was read to its end, and else a *SyntaxError.
func (r *Reader) End() error {
	if end := atEnd(r.b, r.i); end < 0 {
		return explain(r.b, end, '{', "not an object")
	}
	return nil
}
