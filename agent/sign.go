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
	"strconv"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// An agent acts on some entries long after they were written, in another program: it says what
// was queued, and runs the calls of an answer, those that were approved without asking again. A
// log may come from a stranger: it was imported, or copied from another store. What is in it is
// history then, whatever it claims. So such entries count only if an agent of the same store
// wrote them, in the same conversation, and they are signed with a key that only the store has.
// A mark in the header of an imported session would not do: a copy has the header of its original,
// and after an import the conversation goes on here. An import leaves the signatures out, so that
// what was signed here once cannot come back as something that still waits (see
// session.Entry.Unsigned).

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

// signature proves that a call was approved with exactly these arguments or, in the state
// CallNew, that the model made it with them.
func (k *Keeper) signature(key []byte, state CallState, p *Pending) string {
	var input bytes.Buffer
	if json.Compact(&input, p.Input) != nil {
		return ""
	}
	return k.sign(key, session.CustomCalls, string(state), p.Entry, p.ID, p.Name, input.String())
}

// made returns the proofs that the model made some calls, by their ids.
func (k *Keeper) made(calls []Pending) (map[string]string, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	key, err := k.key(true)
	if err != nil {
		return nil, err
	}
	proofs := make(map[string]string)
	for i := range calls {
		calls[i].ours = true
		if proof := k.signature(key, CallNew, &calls[i]); proof != "" { // it has none if it cannot run
			proofs[calls[i].ID] = proof
		}
	}
	return proofs, nil
}

// queuedSignature proves that something was queued in this conversation.
func (k *Keeper) queuedSignature(key []byte, q *session.Queued) (string, error) {
	content, err := json.Marshal(q.Content)
	return k.sign(key, session.CustomQueued, q.ID, strconv.FormatBool(q.After), string(content)), err
}

// sign signs some texts about the conversation.
func (k *Keeper) sign(key []byte, about string, parts ...string) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range append([]string{about, k.s.ID()}, parts...) {
		fmt.Fprintf(mac, "%d:%s,", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// isProof compares a signature with the one that an entry should have.
func isProof(given, want string) bool { return want != "" && hmac.Equal([]byte(given), []byte(want)) }
