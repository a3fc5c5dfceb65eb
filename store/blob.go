package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strings"
)

// Ref names a blob by its content: "sha256:" and 64 lower-case hex digits.
type Ref string

const refScheme = "sha256:"

// RefOf returns the name of the blob that holds data.
func RefOf(data []byte) Ref {
	sum := sha256.Sum256(data)
	return Ref(refScheme + hex.EncodeToString(sum[:]))
}

// Hex returns the hex digits of the reference, and whether it is well formed.
func (r Ref) Hex() (string, bool) {
	digits, ok := strings.CutPrefix(string(r), refScheme)
	if !ok || len(digits) != 2*sha256.Size {
		return "", false
	}
	for _, c := range []byte(digits) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return "", false
		}
	}
	return digits, true
}

// maxRefSpelling is the length of the longest way to write a reference in JSON:
// each character as \u00xx.
const maxRefSpelling = 6 * (len(refScheme) + 2*sha256.Size)

// RefOverlap is for callers that pass a text to EachRef in parts: this many bytes of
// one part must be repeated in the next, so that no reference is missed where two parts
// meet.
const RefOverlap = maxRefSpelling - 1

// EachRef calls each with every reference in a text: a line, several, or a part of one.
// This is what "refers to" means where blobs are deleted. It finds too many references
// rather than too few: a message that only mentions the name of a blob keeps the blob
// too.
func EachRef(text []byte, each func(Ref)) {
	eachPlainRef(text, each)
	if bytes.Contains(text, []byte(`\u00`)) { // JSON may spell any character like this
		eachPlainRef(unescape(text), each)
	}
}

func eachPlainRef(text []byte, each func(Ref)) {
	const length = len(refScheme) + 2*sha256.Size
	for {
		at := bytes.Index(text, []byte(refScheme))
		if at < 0 || len(text)-at < length {
			return
		}
		if ref := Ref(text[at : at+length]); isRef(ref) {
			each(ref)
		}
		text = text[at+len(refScheme):]
	}
}

func isRef(r Ref) bool {
	_, ok := r.Hex()
	return ok
}

// unescape returns the text with each \u00xx replaced by its character.
func unescape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for {
		at := bytes.Index(text, []byte(`\u00`))
		if at < 0 || len(text)-at < 6 {
			return append(out, text...)
		}
		out = append(out, text[:at]...)
		var char [1]byte
		if _, err := hex.Decode(char[:], text[at+4:at+6]); err == nil {
			out = append(out, char[0])
		} else {
			out = append(out, text[at:at+6]...)
		}
		text = text[at+6:]
	}
}

// Blobs keeps byte strings under the hash of their content: the same content is
// kept once, however many lines refer to it. All methods may be called
// concurrently.
//
// A blob that nothing refers to may be deleted: see Collect. So to write a line that
// refers to a blob, take a hold before putting the blob, or before reading the
// reference, and keep the hold until the line is appended:
//
//	release, err := blobs.Hold(ctx)
//	…
//	defer release()
//	ref, err := blobs.Put(ctx, data)
//	…
//	end, err := log.Append(ctx, at, lineThatNames(ref))
type Blobs interface {
	// Until release is called, no process deletes a blob. Hold waits while blobs are
	// being deleted, and gives up with ErrLocked. There may be many holds at the same
	// time, even one within another. Take a hold before any other lock. Calling release
	// again does nothing.
	Hold(ctx context.Context) (release func(), err error)
	// Put keeps data and returns its name. When it returns, the blob is as
	// durable as an append. Putting an existing blob costs little. A damaged blob under
	// that name is replaced.
	Put(ctx context.Context, data []byte) (Ref, error)
	// Get returns the content, or ErrNotExist; ErrCorrupt when the stored bytes
	// no longer match their name; ErrInvalid when ref is not well formed.
	Get(ctx context.Context, ref Ref) ([]byte, error)
	// All yields the name of every blob.
	All(ctx context.Context) iter.Seq2[Ref, error]
	// Unreferenced returns the blobs that nothing in the store refers to, sorted. What cannot
	// be read may refer to anything, and is an error. A new line may refer to one of them at
	// any time: only Collect can tell.
	Unreferenced(ctx context.Context) ([]Part, error)
	// Collect deletes those of the given blobs that nothing in the store refers to: no
	// log, no copy of one (see Parts.Copies) and no note but PendingNote. It waits for the
	// holds to end, and gives up with ErrLocked. Even with an error it returns what it has
	// done, never nil.
	Collect(ctx context.Context, refs ...Ref) (*Collected, error)
}

// Collected is what became of blobs that were to be deleted.
type Collected struct {
	Deleted []Ref
	// Named are those that stay, and what names them.
	Named map[Ref][]Part
}
