package store

import (
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

// Blobs keeps byte strings under the hash of their content: the same content is
// kept once, however many lines refer to it. All methods may be called
// concurrently.
type Blobs interface {
	// Put keeps data and returns its name. When it returns, the blob is as
	// durable as an append. Putting what is there already costs little.
	Put(ctx context.Context, data []byte) (Ref, error)
	// Get returns the content, or ErrNotExist; ErrCorrupt when the stored bytes
	// no longer match their name; ErrInvalid when ref is not well formed.
	Get(ctx context.Context, ref Ref) ([]byte, error)
	// All yields the name of every blob.
	All(ctx context.Context) iter.Seq2[Ref, error]
}
