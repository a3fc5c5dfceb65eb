package agent

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// An approval in a log counts only if an agent of the same store wrote it: a log may come
// from a stranger. So approvals are signed with a key that only the store has.

// The note that has the key.
const (
	keyRoom = "agent"
	keyNote = "key"
)

// key returns the key of the store. If there is none, it makes one, or returns nil.
func (k *Keeper) key(create bool) ([]byte, error) {
	k.mu.Lock()
	known := k.signingKey
	k.mu.Unlock()
	if known != nil {
		return known, nil
	}
	ctx := context.Background() // record what has happened even if the caller's context has ended
	notes := k.s.Store().Notes(keyRoom)
	note, err := notes.Read(ctx, keyNote)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return nil, err
	}
	key := parseKey(note)
	if key == nil && create {
		err = notes.Change(ctx, keyNote, func(old []byte) ([]byte, error) {
			if key = parseKey(old); key == nil {
				key = newKey()
			}
			return []byte(hex.EncodeToString(key)), nil
		})
		if err != nil {
			return nil, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signingKey = key
	return key, nil
}

func newKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
}

// parseKey returns the key in a note, or nil if the note is damaged. A damaged key is
// replaced, and what it signed no longer counts.
func parseKey(note []byte) []byte {
	key, err := hex.DecodeString(string(note))
	if err != nil || len(key) != sha256.Size {
		return nil
	}
	return key
}

// signature proves that a call was approved with exactly these arguments.
func (k *Keeper) signature(key []byte, state CallState, p *Pending) string {
	var input bytes.Buffer
	if json.Compact(&input, p.Input) != nil {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{session.CustomCalls, k.s.ID(), string(state), p.Entry, p.ID, p.Name, input.String()} {
		fmt.Fprintf(mac, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}
