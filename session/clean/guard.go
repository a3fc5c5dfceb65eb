package clean

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Guard keeps secrets that were taken out of a store from coming back, for example with the next
// import of a source that still has it. It knows the secrets only by their digests,
// which Apply leaves in the store. The zero value, and nil, know none. All methods may
// be called concurrently.
//
// One pass over a text finds secrets known only by their digests. A small hash of every
// eight bytes is looked up in a table; where the table has the hash of a secret's
// middle, the digest decides. A text without secrets costs about as much as reading it.
//
// Text may be hostile: it may repeat the middle of a long secret, which came from a tool's
// output like the text. Computing a digest of a long part at each place would take quadratic
// time. So a long secret also has a sum, which can be computed for any part of a text in
// constant time, and each sum leads to at most one digest.
type Guard struct {
	key    []byte
	mul    uint64
	table  []uint64            // one bit per small hash
	shapes map[uint32][]shape  // of the secrets with a small hash
	kinds  map[[16]byte]string // by digest
	words  map[[16]byte]bool   // those of letters only, which are secrets only where a rule says so
	macs   sync.Pool           // of hash.Hash
	next   *Guard              // for the secrets of another list, or nil: see Adopt
}

const (
	// spanBytes is how many bytes a small hash covers. A known secret is never shorter.
	spanBytes = 8
	// spanBits is the size of a small hash. It reveals that much of a secret to anyone who
	// has the list, so it is no larger than necessary.
	spanBits = 20
)

// list is the note.
type list struct {
	Key    []byte   `json:"key"`
	Values []digest `json:"values"`
	// Others are the lists of other stores. Their digests were made with other keys: see Adopt.
	Others []list `json:"others,omitempty"`
}

// digest is the listed form of a secret.
type digest struct {
	Kind   string `json:"kind"`
	Length int    `json:"length"`
	Span   uint32 `json:"span"` // the small hash
	MAC    []byte `json:"mac"`
	Word   bool   `json:"word,omitempty"`
	Sum    uint64 `json:"sum,omitempty"` // of a long secret: see sums
}

// shape is compared with a text before a digest is computed.
type shape struct {
	length int
	sum    uint64 // 0 if the secret is short
}

// LoadGuard returns the guard of a store. For a store from which nothing was ever taken
// out, it returns nil, which lets everything pass.
func LoadGuard(ctx context.Context, st store.Store) (*Guard, error) {
	l, err := readList(ctx, st)
	if err != nil || len(l.Values) == 0 {
		return nil, err
	}
	return newGuard(l), nil
}

// Recheck takes the secrets out of sessions that were taken out of their store since a guard was loaded:
// another writer may have written them again meanwhile. Nothing happens if the guard
// knows everything.
func (g *Guard) Recheck(ctx context.Context, st store.Store, o Options) error {
	now, err := LoadGuard(ctx, st)
	if err != nil || g.Knows(now) || len(o.Sessions) == 0 {
		return err
	}
	if o.Elsewhere != nil {
		return o.Elsewhere(ctx, o.Sessions)
	}
	o.Listed = true
	sweep, err := LookWith(ctx, st, o)
	if err != nil {
		return err
	}
	_, err = sweep.Apply(ctx)
	return err
}

func readList(ctx context.Context, st store.Store) (*list, error) {
	l := &list{}
	data, err := st.Notes("").Read(ctx, store.RedactedNote)
	if errors.Is(err, store.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if err = l.parse(data); err != nil {
		err = &store.Error{
			Op: "read what was redacted", Path: listPlace(st), Kind: store.ErrCorrupt, Err: err,
			Hint: "the list keeps removed secrets from coming back; delete it if you do not need that",
		}
	}
	return l, err
}

func listPlace(st store.Store) string { return st.Parts().Where(store.PartNote, store.RedactedNote) }

func (l *list) parse(data []byte) error {
	if err := json.Unmarshal(data, l); err != nil {
		return err
	}
	return l.check()
}

func (l *list) check() error {
	for _, d := range l.Values {
		if len(d.MAC) != 16 || d.Length < spanBytes || d.Span >= 1<<spanBits {
			return fmt.Errorf("a value of kind %.80q has been changed", d.Kind)
		}
	}
	if len(l.Values) > 0 && len(l.Key) != sha256.Size {
		return errors.New("the key is missing")
	}
	for i := range l.Others {
		if err := l.Others[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func newGuard(l *list) *Guard {
	g := &Guard{
		key: l.Key, table: make([]uint64, 1<<spanBits/64), shapes: make(map[uint32][]shape),
		kinds: make(map[[16]byte]string), words: make(map[[16]byte]bool),
	}
	g.macs.New = func() any { return hmac.New(sha256.New, g.key) }
	salt := g.digest([]byte("the multiplier of small hashes"))
	g.mul = binary.LittleEndian.Uint64(salt[:]) | 1
	for _, d := range l.Values {
		mac := [16]byte(d.MAC)
		g.kinds[mac] = d.Kind
		if d.Word {
			g.words[mac] = true
			continue
		}
		g.table[d.Span/64] |= 1 << (d.Span % 64)
		if one := (shape{d.Length, d.Sum}); !slices.Contains(g.shapes[d.Span], one) {
			g.shapes[d.Span] = append(g.shapes[d.Span], one)
		}
	}
	for i := range l.Others {
		other := newGuard(&l.Others[i])
		other.next, g.next = g.next, other
	}
	return g
}

// all yields the guard and those for other lists.
func (g *Guard) all(yield func(*Guard) bool) {
	for ; g != nil; g = g.next {
		if !yield(g) {
			return
		}
	}
}

// Knows reports whether a guard knows everything that another knows.
func (g *Guard) Knows(other *Guard) bool {
	known := make(map[[16]byte]bool)
	for one := range g.all {
		for mac := range one.kinds {
			known[mac] = true
		}
	}
	for one := range other.all {
		for mac := range one.kinds {
			if !known[mac] {
				return false
			}
		}
	}
	return true
}

func (g *Guard) digest(value []byte) [16]byte {
	mac := g.macs.Get().(hash.Hash)
	defer g.macs.Put(mac)
	mac.Reset()
	mac.Write(value)
	var sum [sha256.Size]byte
	return [16]byte(mac.Sum(sum[:0]))
}

// span returns the small hash of eight bytes.
func (g *Guard) span(b []byte) uint32 {
	return uint32(binary.LittleEndian.Uint64(b) * g.mul >> (64 - spanBits))
}

// middle returns where the eight bytes of a secret are whose hash is looked up. They
// are in the middle because many secrets begin alike.
func middle(length int) int { return (length - spanBytes) / 2 }

// describe returns the digest of a secret.
func (g *Guard) describe(kind, value string, word bool) digest {
	mac := g.digest([]byte(value))
	at := middle(len(value))
	d := digest{Kind: kind, Length: len(value), Span: g.span([]byte(value[at : at+spanBytes])), MAC: mac[:], Word: word}
	if len(value) > longSecret {
		d.Sum = newSums(g.mul, []byte(value)).of(0, len(value))
	}
	return d
}

// scan calls found with each listed secret in a text. It returns how many digests it
// computed, for a test.
func (g *Guard) scan(text []byte, found func(kind string, value []byte)) (digests int) {
	var all *sums                   // of the text, once they are needed
	decided := make(map[shape]bool) // long secrets whose digest was computed
	for i := 0; i+spanBytes <= len(text); i++ {
		span := g.span(text[i : i+spanBytes])
		if g.table[span/64]&(1<<(span%64)) == 0 {
			continue
		}
		for _, one := range g.shapes[span] {
			start := i - middle(one.length)
			if start < 0 || start+one.length > len(text) || decided[one] {
				continue
			}
			if one.sum != 0 {
				if all == nil {
					all = newSums(g.mul, text)
				}
				if all.of(start, start+one.length) != one.sum {
					continue
				}
				decided[one] = true
			}
			digests++
			value := text[start : start+one.length]
			if kind, ok := g.kinds[g.digest(value)]; ok {
				found(kind, value)
			}
		}
	}
	return digests
}

// find returns the listed secrets in JSON, lines of JSON, or text.
func (g *Guard) find(data []byte) (f listed) {
	for one := range g.all {
		found := one.findOwn(data)
		f.known, f.words = append(f.known, found.known...), append(f.words, found.words...)
	}
	return f
}

// findOwn is find for the secrets of one list.
func (g *Guard) findOwn(data []byte) (f listed) {
	if len(g.kinds) == 0 {
		return f
	}
	seen := make(map[string]bool)
	add := func(kind string, value []byte) {
		if !seen[string(value)] {
			seen[string(value)] = true
			f.known = append(f.known, redact.Known{Kind: kind, Value: string(value)})
		}
	}
	g.scan(redact.Uncoloured(data), add)
	if bytes.IndexByte(data, '\\') >= 0 { // escaped strings differ from their values
		eachValue(data, func(value []byte) {
			// If it is not JSON, it has no strings.
			_ = redact.AllStrings(value, func(text []byte) { g.scan(redact.Uncoloured(text), add) })
		})
	}
	if len(g.words) > 0 {
		rules := &redact.Scanner{Seen: func(kind, secret string) {
			if g.words[g.digest([]byte(secret))] {
				f.words = append(f.words, redact.Known{Kind: kind, Value: secret})
			}
		}}
		document(rules, data)
	}
	return f
}

// scanStream calls found with the listed secrets in a stream of bytes.
func (g *Guard) scanStream(from io.Reader, size int64, found func(kind, secret string)) error {
	longest := 0
	for one := range g.all {
		for _, shapes := range one.shapes {
			for _, shape := range shapes {
				longest = max(longest, shape.length)
			}
		}
	}
	return eachPart(from, size, longest, func(part []byte) {
		for one := range g.all {
			one.scan(part, func(kind string, value []byte) { found(kind, string(value)) })
		}
	})
}

// listed are the findings of a guard.
type listed struct {
	known []redact.Known // to be found by value
	words []redact.Known // to be found by rules only
}

func (f listed) empty() bool { return len(f.known)+len(f.words) == 0 }

// cleaner returns a cleaner for these secrets only. A word that is a secret only in
// some places is left to the rules, which then take out all secrets.
func (f listed) cleaner() *cleaner {
	s := redact.NewScanner(f.known...)
	s.OnlyKnown = len(f.words) == 0
	return newCleaner(s)
}

// eachValue calls each with what may be JSON: the whole data, or each line.
func eachValue(data []byte, each func(value []byte)) {
	if json.Valid(data) {
		each(data)
		return
	}
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && (line[0] == '{' || line[0] == '[') && bytes.IndexByte(line, '\\') >= 0 {
			each(line)
		}
	}
}

// Has reports whether a line, or the content of a blob, has something that was taken out
// before. It also looks into the parts of its source that an import has kept.
func (g *Guard) Has(data []byte) (bool, error) {
	if g == nil {
		return false, nil
	}
	if !g.find(data).empty() {
		return true, nil
	}
	packed, ok := packedIn(data)
	if !ok && isPacked(data) {
		packed, ok = data, true
	}
	if !ok {
		return false, nil
	}
	plain, err := unpack(packed)
	return err == nil && !g.find(plain).empty(), err
}

// Raw takes out the listed secrets, from JSON, lines of JSON, or text. Nothing
// in it moves: see redact.Scanner.SameLength. The given bytes do not change.
func (g *Guard) Raw(data []byte) []byte {
	found := g.find(data)
	if found.empty() {
		return data
	}
	out, _ := document(found.cleaner().raw, data)
	return out
}

// JSON is Raw for a JSON value whose parts may move.
func (g *Guard) JSON(value []byte) []byte {
	found := g.find(value)
	if found.empty() {
		return value
	}
	out, _ := found.cleaner().scan.Bytes(value)
	return out
}

// Append takes the listed secrets out of an entry. It is a function for
// session.Options.Clean.
func (g *Guard) Append(e *session.Entry) error {
	_, err := g.Entry(e)
	return err
}

// Entry is Append that returns the findings: see the function Entry.
func (g *Guard) Entry(e *session.Entry) ([]redact.Finding, error) {
	if g == nil {
		return nil, nil
	}
	line, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	found := g.find(line)
	if packed, ok := packedIn(line); ok {
		plain, err := unpack(packed)
		if err != nil {
			return nil, err
		}
		kept := g.find(plain)
		found.known, found.words = append(found.known, kept.known...), append(found.words, kept.words...)
	}
	if found.empty() {
		return nil, nil
	}
	return cleanEntry(e, line, found.cleaner())
}

// remember adds the secrets of a sweep to the store's list. It must come before any of
// them is taken out: from then on none comes back, even if the sweep is interrupted.
func (s *Sweep) remember(ctx context.Context) error {
	if len(s.secrets) == 0 {
		return nil
	}
	return s.store.Notes("").Change(ctx, store.RedactedNote, func(old []byte) ([]byte, error) {
		l := &list{}
		if len(old) > 0 {
			if err := l.parse(old); err != nil {
				return nil, fmt.Errorf("%s: %w", listPlace(s.store), err)
			}
		}
		if l.Key == nil {
			l.Key = make([]byte, sha256.Size)
			rand.Read(l.Key)
		}
		g := newGuard(l)
		for k, word := range s.secrets {
			if len(k.Value) < spanBytes {
				continue // too short to be found by its small hash
			}
			d := g.describe(k.Kind, k.Value, word)
			mac := [16]byte(d.MAC)
			switch {
			case g.kinds[mac] == "":
				g.kinds[mac] = k.Kind
				l.Values = append(l.Values, d)
			case g.words[mac] && !word: // until now only where a rule found it
				at := slices.IndexFunc(l.Values, func(old digest) bool { return bytes.Equal(old.MAC, d.MAC) })
				l.Values[at] = d
			}
		}
		l.sort()
		return json.Marshal(l)
	})
}
