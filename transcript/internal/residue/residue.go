// Package residue keeps what a format says and a session has no place for, so
// that the format's own writer can say it again.
//
// A reader makes an entry of a record, lets the writer make a record of that
// entry, and keeps the difference between the two with the entry. When the entry
// is written again, the difference is put back: the record has equal JSON values
// then, whatever the reader understood of it. What it understood is not kept
// twice.
package residue

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// Of returns what must be done to a value to make it equal to the original, or
// nil if it is equal: see rawjson.Difference. Both are the text of a JSON object.
func Of(made, original loose.Value) json.RawMessage { return rawjson.Difference(made, original) }

// Restore does to a value what a residue says. A residue that does not fit,
// because the value has changed since, changes what it can.
func Restore(made loose.Value, what loose.Value) json.RawMessage { return rawjson.Patch(made, what) }

// Keep adds a residue to the unknown members of something, under the name of a
// format. Nothing is added for nil.
func Keep(extra session.Fields, format string, what json.RawMessage) session.Fields {
	if what == nil {
		return extra
	}
	return append(extra, session.Field{Name: format, Value: what})
}

// In returns the residue that was kept for a format, or nil.
func In(extra session.Fields, format string) loose.Value {
	for _, f := range extra {
		if f.Name == format {
			return loose.Value(f.Value)
		}
	}
	return nil
}
