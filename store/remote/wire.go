// Package remote is a store on another machine, over HTTP. Handler offers a store; Open
// returns the store that a Handler offers.
//
// It has what a session needs: logs, blobs and notes, for which it keeps the contract of package
// store. Upkeep of the whole store (the trash, parts, deleting blobs) is done where the store is, by
// the operations of a home: here it is refused with errors.ErrUnsupported.
//
// # The wire
//
// Every request is a POST to the address of the store and the name of an operation, such as
// https://host/v1/store/append. Both bodies are frames:
//
//	kind    1 byte
//	length  4 bytes, big endian
//	payload
//
// The kinds:
//
//	J  JSON: the arguments (always the first frame of a request), or one result
//	L  a line: where it begins and where the next does (8 bytes each, big endian), 1 or 0
//	   for a line that is cut or not, and the line
//	D  bytes: a line to write, a note, or a part of a blob
//	B  a beat: nothing. The server sends one when it has had nothing to say for a while, so
//	   that the client can tell a slow answer from a dead connection
//	E  an error in JSON, the last frame
//	Z  the end, the last frame. A body without E or Z was cut off
//
// The status is 200 even for errors of the store; any other comes from the server in front of
// it, for example its authentication.
//
// # Handles
//
// "open" and "create" return the name of a handle that the server keeps. The server forgets a
// handle that is not used for a while, and all of them when it restarts. Then it answers
// "gone", and the client opens the log again: it says which lines it has seen ("seen": from,
// to and the sum of their hashes, for each run of lines), and gets another handle if the log
// still has them there. If not, or if there are too many runs, the error is
// store.ErrReplaced.
//
// If the answer to an append is lost, the client reads what is at its position. A handle that
// is gone accepts no late requests, and only one append can have a position, so an append is
// neither lost nor doubled. If the client cannot find that out in time, the outcome is
// store.ErrUnknown.
//
// # Leases
//
// A hold on the blobs and the pin of a log last for several requests. Each has a name, and the
// client says every few seconds that it still needs it ("hold" with that name). If it is silent
// for long enough, the server ends the lease. It also does so after an hour, or after two
// minutes if it is a pin: then it answers "gone", and the client takes a new one, behind those who
// were waiting.
package remote

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

const (
	kindJSON  = 'J'
	kindLine  = 'L'
	kindData  = 'D'
	kindBeat  = 'B'
	kindError = 'E'
	kindEnd   = 'Z'
)

const (
	version    = 1
	headLength = 5
	lineHead   = 17
	maxJSON    = 1 << 20
	maxData    = 1 << 30 // of a line or blob, where the store has no limit
	chunk      = 64 << 10
	mimeType   = "application/x-coppice-store"
)

// request is the arguments of every operation.
type request struct {
	Name   string     `json:"name,omitempty"`
	Handle string     `json:"handle,omitempty"`
	Lease  string     `json:"lease,omitempty"`
	At     store.Pos  `json:"at,omitempty"`
	Back   bool       `json:"back,omitempty"` // read what is before At, the latest first
	End    *store.Pos `json:"end,omitempty"`  // where a log must end to be removed, or nil
	Seen   *seen      `json:"seen,omitempty"`
	Room   string     `json:"room,omitempty"`
	Was    *store.Ref `json:"was,omitempty"`  // the content that the note must have, or "" for none
	Gone   bool       `json:"gone,omitempty"` // there is to be no such note
}

// contentOf names the content of a note. It is empty if there is no note.
func contentOf(note []byte) store.Ref {
	if note == nil {
		return ""
	}
	return store.RefOf(note)
}

// result is one result of any operation.
type result struct {
	Version int           `json:"version,omitempty"`
	Limits  *store.Limits `json:"limits,omitempty"`
	Handle  string        `json:"handle,omitempty"`
	Lease   string        `json:"lease,omitempty"`
	End     store.Pos     `json:"end,omitempty"`
	Stat    *store.Stat   `json:"stat,omitempty"`
	Note    *store.Note   `json:"note,omitempty"`
	Error   *failure      `json:"error,omitempty"` // of this result only
}

// seen is the lines of a log that a client has seen.
type seen struct {
	// Runs may overlap: the end of a batch is known only when its append is answered, and a
	// watch may have seen its first lines before that.
	Runs []run `json:"runs,omitempty"`
	// Apart says that there were too many runs to remember.
	Apart bool `json:"apart,omitempty"`
}

// run is the lines from one position to another. The sum of their hashes does not depend on
// their order, so that it can be computed in both directions; no rewrite of a log only
// reorders lines.
type run struct {
	From store.Pos `json:"from"`
	To   store.Pos `json:"to"`
	Sum  sum       `json:"sum"`
}

// covers reports whether a run has all lines of another.
func (r run) covers(other run) bool { return r.From <= other.From && other.To <= r.To }

// touches reports whether a run begins where another ends, or ends where it begins.
func (r run) touches(other run) bool { return r.To == other.From || other.To == r.From }

type sum [4]uint64

func (s *sum) add(other sum) {
	for i := range s {
		s[i] += other[i]
	}
}

func sumOf(lines ...[]byte) (all sum) {
	for _, line := range lines {
		hash := sha256.Sum256(line)
		for i := range all {
			all[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
	}
	return all
}

// maxRuns is how many runs are remembered.
const maxRuns = 16

// add records the lines from one position to another, unless they tell nothing new.
func (s *seen) add(from, to store.Pos, lines ...[]byte) {
	next := run{From: from, To: to}
	if slices.ContainsFunc(s.Runs, func(r run) bool { return r.covers(next) }) && !slices.ContainsFunc(s.Runs, next.touches) {
		return
	}
	next.Sum = sumOf(lines...)
	s.join(next)
}

// join adds a run: those that touch it become one with it, and those it covers are not needed.
func (s *seen) join(next run) {
	s.Runs = slices.DeleteFunc(s.Runs, func(r run) bool {
		meet := r.touches(next)
		if meet {
			next.From, next.To = min(r.From, next.From), max(r.To, next.To)
			next.Sum.add(r.Sum)
		}
		return meet
	})
	s.Runs = append(slices.DeleteFunc(s.Runs, next.covers), next)
	if len(s.Runs) > maxRuns {
		s.Apart = true
		s.Runs = s.Runs[:maxRuns]
	}
}

// writeFrame writes one frame, whose payload may be in several pieces.
func writeFrame(w io.Writer, kind byte, pieces ...[]byte) error {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	head := [headLength]byte{kind}
	binary.BigEndian.PutUint32(head[1:], uint32(length))
	_, err := w.Write(head[:])
	for _, p := range pieces {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	return err
}

// frames reads frames. The payload of one is valid until the next is read.
type frames struct {
	r       *bufio.Reader
	max     int64               // of a payload other than JSON
	take    func(n int64) error // before the payload grows
	payload []byte
}

func newFrames(r io.Reader, max int64) *frames {
	return &frames{r: bufio.NewReaderSize(r, chunk), max: max, take: func(int64) error { return nil }}
}

// errFrame is the error of bytes that violate the format.
var errFrame = errors.New("malformed frame")

// next returns the next frame. io.ErrUnexpectedEOF means that the body was cut off.
func (f *frames) next() (kind byte, payload []byte, err error) {
	var head [headLength]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, cutOff(err)
	}
	kind, length := head[0], int64(binary.BigEndian.Uint32(head[1:]))
	limit := int64(0)
	switch kind {
	case kindJSON, kindError:
		limit = maxJSON
	case kindLine, kindData:
		limit = f.max
	case kindBeat, kindEnd:
	default:
		return 0, nil, fmt.Errorf("%w: kind %q", errFrame, kind)
	}
	if length > limit {
		return kind, nil, fmt.Errorf("%w: %d bytes, the limit is %d", errFrame, length, limit)
	}
	// Do not trust the announced length: memory grows with what arrives.
	f.payload = f.payload[:0]
	for have := int64(0); have < length; {
		n := min(length-have, max(chunk, have))
		if more := have + n - int64(cap(f.payload)); more > 0 {
			if err := f.take(more); err != nil {
				return kind, nil, err
			}
			f.payload = append(make([]byte, 0, have+n), f.payload...)
		}
		f.payload = f.payload[:have+n]
		if _, err := io.ReadFull(f.r, f.payload[have:have+n]); err != nil {
			return kind, nil, cutOff(err)
		}
		have += n
	}
	if kind == kindLine && length < lineHead {
		return kind, nil, fmt.Errorf("%w: a line of %d bytes", errFrame, length)
	}
	return kind, f.payload, nil
}

// detach returns the payload of the last frame, which the next one will not overwrite.
func (f *frames) detach() []byte {
	payload := f.payload
	f.payload = nil
	return payload
}

func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lineHeadOf returns the bytes before a line in its frame.
func lineHeadOf(l store.Line) []byte {
	head := make([]byte, lineHead)
	binary.BigEndian.PutUint64(head, uint64(l.Pos))
	binary.BigEndian.PutUint64(head[8:], uint64(l.Next))
	if l.Cut {
		head[16] = 1
	}
	return head
}

func parseLine(payload []byte) store.Line {
	return store.Line{
		Pos:  store.Pos(binary.BigEndian.Uint64(payload)),
		Next: store.Pos(binary.BigEndian.Uint64(payload[8:])),
		Cut:  payload[16] != 0, Data: payload[lineHead:],
	}
}

// maxFrame is the longest payload for a store with these limits.
func maxFrame(limits store.Limits) int64 {
	if limits.Entry <= 0 {
		return maxData + lineHead
	}
	return max(limits.Entry, chunk) + lineHead
}

// maxBlob is the largest blob for a store with these limits: nothing could name a larger one.
func maxBlob(limits store.Limits) int64 {
	if limits.Entry <= 0 {
		return maxData
	}
	return max(limits.Entry, store.DefaultMaxEntry)
}

// tooLarge is the error of a blob or a note that does not fit.
func tooLarge(op string, limit int64) error {
	return &store.Error{Op: op, Kind: store.ErrTooLarge, Err: &store.LimitError{Limit: store.MaxEntry, Max: limit}}
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("remote: %T cannot be written as JSON: %v", v, err)) // our own types
	}
	return data
}

// malformed is the error of a malformed answer or request.
func malformed(what string) error { return fmt.Errorf("%w: %s", errFrame, what) }

// isPlain reports whether a text does not reveal where the store is.
func isPlain(text, where string) bool {
	return where == "" || !strings.Contains(text, where)
}
