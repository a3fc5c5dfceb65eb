// Package clean takes secrets out of sessions. Package redact knows what a secret is; this
// package knows where secrets can be: in entries that are about to be appended, and in
// everything that a store keeps of a session.
//
// To open a session that cleans every entry it appends:
//
//	session.Open(ctx, st, "0197…", &session.Options{Clean: clean.Append})
//
// Cleaning a store takes two steps, so that a person can look at the findings before
// anything is lost for good:
//
//	sweep, err := clean.Look(ctx, st, "0197…")
//	…
//	receipt, err := sweep.Apply(ctx)
//
// Ids of entries are left alone. So are signatures and encrypted thoughts, which providers
// need back unchanged, and base64. A thought that is changed loses its signature, because its
// provider would refuse it.
//
// All functions may be called concurrently. A Sweep belongs to one goroutine. Entries that
// others append to its sessions in the meantime are kept.
package clean

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Append is a function for session.Options.Clean.
func Append(e *session.Entry) error {
	_, err := Entry(e)
	return err
}

// Entry takes the secrets out of an entry, and of what an import kept in it, and returns
// what it found. The paths are those in the session's log. What the entry pointed to before
// does not change. An entry whose type is a secret is session.ErrInvalid: nothing can replace
// a type.
func Entry(e *session.Entry) ([]redact.Finding, error) {
	line, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return cleanEntry(e, line, newCleaner(new(redact.Scanner)))
}

// cleanEntry cleans an entry, which is also given as its line.
func cleanEntry(e *session.Entry, line []byte, c *cleaner) ([]redact.Finding, error) {
	if len(c.raw.Find([]byte(e.Type))) > 0 {
		return nil, &session.Error{
			Op: "append", Kind: session.ErrInvalid, Err: errors.New("the type of the entry is a secret"),
			Hint: "put it into the entry, where it can be replaced",
		}
	}
	line, kept, err := c.keptSource(line)
	if err != nil {
		return nil, err
	}
	line, found, err := c.scan.JSON(line)
	if found = append(found, kept...); err != nil || len(found) == 0 {
		return nil, err
	}
	var cleaned session.Entry
	if err := cleaned.UnmarshalJSON(unsigned(line, found)); err != nil {
		return nil, err
	}
	cleaned.Type, cleaned.ID, cleaned.ParentID, cleaned.Timestamp = e.Type, e.ID, e.ParentID, e.Timestamp
	*e = cleaned
	return found, nil
}

// structure matches the paths of what holds a session together. Replacing one would
// break the tree.
var structure = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(type|id|parent_id|timestamp|parent_session|` +
		`[a-z_]+\.(target_id|from_id|first_kept_entry_id)|merge\.entry_ids\[\d+\])$|\.blob$`)
})

// cleaner cleans the lines and the blobs of a session.
type cleaner struct {
	scan *redact.Scanner // for what Coppice wrote
	raw  *redact.Scanner // for lines of other programs, in which nothing may move because entries refer to positions

	listed func(data []byte) // if not nil, it gets everything that is searched
}

// see passes bytes to listed.
func (c *cleaner) see(data []byte) {
	if c.listed != nil {
		c.listed(data)
	}
}

func newCleaner(s *redact.Scanner) *cleaner {
	scan, raw := *s, *s
	scan.Keep = structure().MatchString
	raw.SameLength = true
	return &cleaner{scan: &scan, raw: &raw}
}

// line cleans a line of a log.
func (c *cleaner) line(line []byte) ([]byte, []redact.Finding, error) {
	out, kept, err := c.keptSource(line)
	if err != nil {
		return nil, nil, err
	}
	c.see(out)
	out, found := c.scan.Bytes(out)
	return unsigned(out, found), append(found, kept...), nil
}

// thoughtPath matches the path of the thinking of a model.
var thoughtPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^message\.content\[(\d+)\]\.thinking\.content$`) })

// unsigned takes the signatures off the thoughts in which something was found. A provider
// refuses a thought that is not what it signed; one without a signature is not sent to it.
func unsigned(line []byte, found []redact.Finding) []byte {
	for _, f := range found {
		match := thoughtPath().FindStringSubmatch(f.Path)
		if match == nil {
			continue
		}
		at, _ := strconv.Atoi(match[1])
		entry := rawjson.MembersOf(line)
		message := rawjson.MembersOf(entry.Get("message"))
		blocks, _ := rawjson.Elements(message.Get("content"))
		if at >= len(blocks) {
			continue
		}
		block := rawjson.MembersOf(blocks[at])
		thinking := rawjson.MembersOf(block.Get("thinking"))
		if thinking.Take("signature") == nil {
			continue
		}
		block.SetObject("thinking", thinking)
		blocks[at] = block.JSON()
		message.Put("content", rawjson.List(blocks))
		entry.SetObject("message", message)
		line = entry.JSON()
	}
	return line
}

// The paths, in an entry of type CustomImport, of the kept parts of the source: in
// base64, or as the name of a blob.
const (
	keptPath     = "custom.data.data"
	keptBlobPath = "custom.data.blob"
)

// sourceIn returns a name for the part of an import's source that a line keeps, if something was
// found in it. The same name means the same bytes: sessions that were imported from one
// file each have a copy.
func sourceIn(line []byte, found []redact.Finding) store.Ref {
	if len(found) == 0 || found[len(found)-1].Path != keptPath { // findings in it come last: see line
		return ""
	}
	packed, ok := packedIn(line)
	if !ok {
		return ""
	}
	return "in place " + store.RefOf(packed) // not the name of a blob
}

// keptSource cleans the base64 in an entry of type CustomImport.
func (c *cleaner) keptSource(line []byte) ([]byte, []redact.Finding, error) {
	packed, ok := packedIn(line)
	if !ok {
		return line, nil, nil
	}
	e, _ := importEntry(line)
	packed, sum, found, err := c.packed(packed)
	if err != nil || len(found) == 0 {
		return line, nil, err
	}
	e.Custom.Data["data"] = base64.StdEncoding.EncodeToString(packed)
	e.Custom.Data["sha256"] = sum
	for i := range found {
		found[i].Path = keptPath
	}
	out, err := e.MarshalJSON()
	return out, found, err
}

// packedIn returns the base64 in a line, decoded, if the line is an entry of type
// CustomImport.
func packedIn(line []byte) ([]byte, bool) {
	e, ok := importEntry(line)
	if !ok {
		return nil, false
	}
	text, _ := e.Custom.Data["data"].(string)
	packed, err := base64.StdEncoding.DecodeString(text)
	return packed, err == nil && isPacked(packed)
}

func importEntry(line []byte) (*session.Entry, bool) {
	var e session.Entry
	if !bytes.Contains(line, []byte(session.CustomImport)) || e.UnmarshalJSON(line) != nil || e.Custom == nil {
		return nil, false
	}
	return &e, e.Custom.CustomType == session.CustomImport
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
