package wire

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// The codecs read and write JSON with package rawjson, under the names below.

// Object is a JSON object: its members in the order of the text.
type Object = rawjson.Members

// Parse reads an object: see rawjson.ParseMembers.
func Parse(raw []byte) (Object, error) { return rawjson.ParseMembers(raw) }

// Members returns the members of raw, or nil if it is not an object.
func Members(raw []byte) Object { return rawjson.MembersOf(raw) }

// Elements returns the elements of raw; ok is false if it is not an array.
func Elements(raw []byte) (list []json.RawMessage, ok bool) { return rawjson.Elements(raw) }

// BlockList is Elements of a list that becomes blocks. ok is false for a list with more
// blocks than a session takes: it stays an unknown member.
func BlockList(raw []byte) (list []json.RawMessage, ok bool) {
	if session.CheckBlocks(raw) != nil {
		return nil, false
	}
	return Elements(raw)
}

// TakeBlocks takes a member whose elements become blocks, if BlockList accepts it.
func TakeBlocks(o *Object, name string) (list []json.RawMessage, ok bool) {
	if list, ok = BlockList(o.Get(name)); ok {
		o.Take(name)
	}
	return list, ok
}

// Compact returns raw without the white space between its tokens.
func Compact(raw []byte) ([]byte, error) { return rawjson.Compact(raw) }

// List returns an array as text.
func List(elements []json.RawMessage) json.RawMessage { return rawjson.List(elements) }

// Quote returns a string as JSON text.
func Quote(s string) json.RawMessage { return rawjson.Quote(s) }

// Number returns an integer as JSON text.
func Number(n int) json.RawMessage { return rawjson.AppendInt(nil, int64(n)) }
