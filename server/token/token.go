// Package token keeps the tokens with which clients identify themselves to a server: each
// has a name, and says what its bearer may do in the home: read, write, or everything.
//
// A token is 52 random characters after "cop_", so that people and package redact recognise
// one. It is shown when it is made and never again: the home keeps only its SHA-256. A fast
// hash is enough: a slow one protects secrets that can be guessed, and 256 random bits
// cannot.
//
// The tokens of a home are one note in its store, so every kind of store can keep them. A
// program that can write the notes of a store can make tokens for it.
package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Prefix is what every token begins with.
const Prefix = "cop_"

// ErrRefused is the error for a token that is unknown, revoked or expired. It does not say
// which.
var ErrRefused = errors.New("the token is unknown, revoked or expired")

// Token describes a token. It does not have the secret itself.
type Token struct {
	Name    string      `json:"name"`
	Access  home.Access `json:"access"`
	Created time.Time   `json:"created"`
	Expires time.Time   `json:"expires,omitzero"` // zero: never
	// Used is when it was last used, give or take usedEvery; zero: never.
	Used time.Time `json:"used,omitzero"`
}

// kept is a token in the note.
type kept struct {
	Token
	Hash []byte `json:"sha256"`
}

// has reports whether a sum is that of the token. Only this compares them, and it takes the same
// time wherever they differ. A test of the source checks that: no clock could.
func (k *kept) has(sum []byte) bool { return subtle.ConstantTimeCompare(k.Hash, sum) == 1 }

const (
	room = "tokens"
	note = "tokens.json"
	// readEvery is how long the note is cached: for that long a revoked token still works.
	readEvery = time.Second
	// askEvery is the same for an unknown token, which may be new.
	askEvery = 50 * time.Millisecond
	// usedEvery is how often the use of a token is recorded.
	usedEvery = time.Hour
)

// Tokens are the tokens of a home. All methods may be called concurrently.
type Tokens struct {
	notes store.Notes

	mu    sync.Mutex // guards what follows
	known []kept
	read  time.Time // when known was read
}

// Of returns the tokens of a home in a store.
func Of(st store.Store) *Tokens { return &Tokens{notes: st.Notes(room)} }

// goodName matches valid names of tokens. It is compiled only when a token is made: that
// takes milliseconds, which every command would wait for.
var goodName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$`) })

// Add makes a token and returns its secret, which cannot be read again. It uses the token's
// Name, Access and Expires. A name that is taken is session.ErrExist.
func (t *Tokens) Add(ctx context.Context, of Token) (secret string, err error) {
	switch {
	case !goodName().MatchString(of.Name):
		return "", session.Invalidf("%q cannot be the name of a token; give up to 64 letters, digits, dots, dashes and underscores", of.Name)
	case of.Access < home.Read || of.Access > home.Admin:
		return "", session.Invalidf("a token has read, write or admin access")
	case !of.Expires.IsZero() && !of.Expires.After(time.Now()):
		return "", session.Invalidf("the token would have expired already")
	}
	secret = Prefix + rand.Text() + rand.Text() // 260 bits
	of.Created, of.Used = time.Now().UTC().Truncate(time.Second), time.Time{}
	err = t.change(ctx, func(all []kept) ([]kept, error) {
		if slices.ContainsFunc(all, func(k kept) bool { return k.Name == of.Name }) {
			return nil, &session.Error{Op: "add token", Name: of.Name, Kind: session.ErrExist, Hint: "choose another name, or revoke that one first"}
		}
		return append(all, kept{of, hash(secret)}), nil
	})
	return secret, err
}

// List returns the tokens by name.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	all, err := t.load(ctx)
	list := make([]Token, len(all))
	for i := range all {
		list[i] = all[i].Token
	}
	slices.SortFunc(list, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// Revoke deletes a token. A running server refuses it within a second. An unknown name is
// session.ErrNotExist.
func (t *Tokens) Revoke(ctx context.Context, name string) error {
	return t.change(ctx, func(all []kept) ([]kept, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(k kept) bool { return k.Name == name })
		if len(left) == len(all) {
			return nil, &session.Error{Op: "find token", Name: name, Kind: session.ErrNotExist}
		}
		return left, nil
	})
}

// Check returns the token of a secret, or ErrRefused. The time it takes does not depend on
// how much of a secret is right.
func (t *Tokens) Check(ctx context.Context, secret string) (Token, error) {
	sum, now := hash(secret), time.Now()
	found, due, err := t.check(ctx, sum, now)
	if due {
		t.noteUse(context.WithoutCancel(ctx), sum, found.Used)
	}
	return found, err
}

// check is Check without its one write. due says that the use must be recorded.
func (t *Tokens) check(ctx context.Context, sum []byte, now time.Time) (_ Token, due bool, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx, now, readEvery); err != nil {
		return Token{}, false, err
	}
	found := t.find(sum)
	if found == nil {
		if err := t.refresh(ctx, now, askEvery); err != nil {
			return Token{}, false, err
		}
		found = t.find(sum)
	}
	if found == nil || !found.Expires.IsZero() && !now.Before(found.Expires) {
		return Token{}, false, ErrRefused
	}
	if due = now.Sub(found.Used) >= usedEvery; due {
		found.Used = now.UTC().Truncate(time.Second)
	}
	return found.Token, due, nil
}

// find compares a sum with every token, even after a match. The caller holds mu.
func (t *Tokens) find(sum []byte) (found *kept) {
	for i := range t.known {
		if t.known[i].has(sum) {
			found = &t.known[i]
		}
	}
	return found
}

// refresh reads the note, unless it was read less than the given time ago. The caller holds
// mu.
func (t *Tokens) refresh(ctx context.Context, now time.Time, every time.Duration) error {
	if age := now.Sub(t.read); !t.read.IsZero() && age >= 0 && age < every {
		return nil
	}
	all, err := t.load(ctx)
	if err != nil {
		return err // refuse all rather than accept a revoked token
	}
	for i := range all { // uses that were not recorded yet
		if was := t.find(all[i].Hash); was != nil && was.Used.After(all[i].Used) {
			all[i].Used = was.Used
		}
	}
	t.known, t.read = all, now
	return nil
}

// noteUse records that a token was used. A read-only home does not record it.
func (t *Tokens) noteUse(ctx context.Context, sum []byte, used time.Time) {
	_ = t.change(ctx, func(all []kept) ([]kept, error) {
		for i := range all { // it may have been revoked since
			if all[i].has(sum) && all[i].Used.Before(used) {
				all[i].Used = used
			}
		}
		return all, nil
	})
}

func (t *Tokens) load(ctx context.Context) ([]kept, error) {
	data, err := t.notes.Read(ctx, note)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parse(data)
}

func (t *Tokens) change(ctx context.Context, change func([]kept) ([]kept, error)) error {
	return t.notes.Change(ctx, note, func(old []byte) ([]byte, error) {
		all, err := parse(old)
		if err != nil {
			return nil, err
		}
		if all, err = change(all); err != nil {
			return nil, err
		}
		return json.Marshal(all)
	})
}

func parse(data []byte) (all []kept, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, &store.Error{Op: "read tokens", Kind: store.ErrCorrupt, Err: fmt.Errorf("the note %s/%s: %w", room, note, err)}
	}
	return all, nil
}

func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
