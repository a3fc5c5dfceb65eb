package postgres

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// key is where the rows of a log are in the tables.
type key struct {
	log  []byte
	slot int64 // 0, or when it was removed
}

// keyOf returns the key of a log. All that belongs to it is under the hash, which is short,
// spreads evenly over shards, and tells nothing.
func (t target) keyOf(name string) key {
	sum := sha256.Sum256([]byte(t.tenant + "\x00" + name))
	return key{log: sum[:16]}
}

// keyFor returns the key of a log of this store. In the trash, name is the ID of a removal.
func (s *Store) keyFor(op, name string) (key, error) {
	if !s.trashed {
		return s.keyOf(name), nil
	}
	k, err := s.removal(op, name)
	if errors.Is(err, store.ErrInvalid) {
		err = &store.Error{Op: op, Name: name, Kind: store.ErrNotExist}
	}
	return k, err
}

// removedFormat is how a removal's ID ends: the log's name, a dot, and this.
const removedFormat = "20060102T150405.000000000Z"

func removalID(name string, slot int64) string {
	return name + "." + time.Unix(0, slot).UTC().Format(removedFormat)
}

// removal returns the key of a removed log.
func (t target) removal(op, id string) (key, error) {
	if cut := len(id) - len(removedFormat) - 1; cut > 0 && id[cut] == '.' {
		if at, err := time.Parse(removedFormat, id[cut+1:]); err == nil {
			k := t.keyOf(id[:cut])
			k.slot = at.UnixNano()
			return k, nil
		}
	}
	kind := store.ErrInvalid
	if strings.Contains(id, ".") {
		kind = store.ErrNotExist
	}
	return key{}, &store.Error{Op: op, Kind: kind, Err: fmt.Errorf("%.80q does not name a removal", id)}
}

// number returns a unique number that is not 0: for a life, or the version
// of a note.
func number() int64 {
	var b [8]byte
	rand.Read(b[:]) // which never fails
	return int64(binary.BigEndian.Uint64(b[:])>>1) | 1
}

// digest returns the bytes of a reference, or nil if it is malformed.
func digest(ref store.Ref) []byte {
	digits, ok := ref.Hex()
	if !ok {
		return nil
	}
	sum, _ := hex.DecodeString(digits)
	return sum
}

func refOf(digest []byte) store.Ref { return store.Ref("sha256:" + hex.EncodeToString(digest)) }

// refsIn returns the digests of the blobs that lines name, each once.
func refsIn(lines [][]byte) [][]byte {
	var found [][]byte
	seen := make(map[store.Ref]bool)
	for _, line := range lines {
		store.EachRef(line, func(ref store.Ref) {
			if !seen[ref] {
				seen[ref] = true
				found = append(found, digest(ref))
			}
		})
	}
	return found
}
