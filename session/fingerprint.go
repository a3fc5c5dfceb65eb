package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// Fingerprint identifies the beginning of a context as a model sees it: kinds, roles
// and contents, not ids or times. Equal fingerprints mean equal prompts, and so a warm
// prompt cache.
type Fingerprint [16]byte

func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// fingerprintsAfter appends the rolling fingerprints of entries to those of the
// first, which are known.
func fingerprintsAfter(known []Fingerprint, entries []Entry) ([]Fingerprint, error) {
	all := slices.Grow(known, len(entries)-len(known))
	var previous Fingerprint
	if n := len(known); n > 0 {
		previous = all[n-1]
	}
	hash := sha256.New()
	w := writer{sum: hash}
	for i := len(known); i < len(entries); i++ {
		hash.Reset()
		w.buf = append(w.buf[:0], previous[:]...)
		w.contribution(&entries[i])
		if w.err != nil {
			return nil, w.err
		}
		hash.Write(w.buf)
		copy(previous[:], hash.Sum(w.buf[:0]))
		all = append(all, previous)
	}
	return all, nil
}

// contribution writes what of an entry reaches the model, in one form whatever
// the form of its line was.
func (w *writer) contribution(e *Entry) {
	w.buf = append(w.buf, '{')
	w.str("type", string(e.Type))
	switch k, _ := e.payload(); {
	case k == kindMessage:
		w.str("role", e.Message.Role)
		w.contents("content", e.Message.Content)
	case kinds[k].summary != nil:
		w.str("summary", kinds[k].summary(e))
	}
	w.buf = append(w.buf, '}')
}

// ContextDiff says where two contexts part: where a prompt cache that was
// filled with the first would miss when the second is sent.
type ContextDiff struct {
	// Index is how many entries are the same.
	Index int
	// Before and After are the ids of the first entries that differ, "" where a
	// context ends.
	Before, After string
	// Why says what made the difference; "" when there is none.
	Why string
}

// Diff compares two contexts that have fingerprints.
func (c *Context) Diff(next *Context) ContextDiff {
	n := 0
	for n < len(c.Fingerprints) && n < len(next.Fingerprints) && c.Fingerprints[n] == next.Fingerprints[n] {
		n++
	}
	d := ContextDiff{Index: n}
	if n < len(c.Entries) {
		d.Before = c.Entries[n].ID
	}
	if n < len(next.Entries) {
		d.After = next.Entries[n].ID
	}
	d.Why = c.whyDiffers(next, d)
	return d
}

func (c *Context) whyDiffers(next *Context, d ContextDiff) string {
	switch {
	case d.Before == "" && d.After == "":
		return ""
	case d.Before == "":
		return "entries were appended"
	case c.Compaction != next.Compaction && next.Compaction != "":
		return fmt.Sprintf("compaction %s came into force", next.Compaction)
	case c.Compaction != next.Compaction:
		return fmt.Sprintf("compaction %s was taken back", c.Compaction)
	case d.Before == d.After && next.Edited[d.After] != c.Edited[d.After]:
		return fmt.Sprintf("entry %s was edited", d.After)
	case next.Edited[d.Before] != c.Edited[d.Before]:
		return fmt.Sprintf("entry %s was cleared", d.Before)
	case d.After == "":
		return fmt.Sprintf("the path ends before entry %s", d.Before)
	case d.Before == InterruptedPrefix || len(d.Before) > len(InterruptedPrefix) && d.Before[:len(InterruptedPrefix)] == InterruptedPrefix:
		return "a tool call that had no result got one"
	}
	return fmt.Sprintf("another branch: entry %s instead of %s", d.After, d.Before)
}
