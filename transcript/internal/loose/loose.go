// Package loose reads JSON whose shape is only roughly known: that of other
// programs' files, where a member is a string in one version, an object in the
// next, and absent in a third.
//
// A reader asks a Value for the type that it hopes to find, and gets a zero value if it is
// something else. So a reader never fails on what it did not expect.
package loose

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Value is the text of a JSON value. Nil means that it is absent; all methods may be called
// on it. Values share the memory of the text.
type Value []byte

// Parse returns the one value of a text, or an error that says where the text is
// not JSON.
func Parse(text []byte) (Value, error) {
	if !rawjson.Valid(text) {
		return nil, syntaxError(text)
	}
	return Value(trim(text)), nil
}

// Try is Parse without an error: it returns nil if the text is not JSON. Finding out why text
// is not JSON takes much longer.
func Try(text []byte) Value {
	if text = trim(text); len(text) == 0 || !rawjson.Valid(text) {
		return nil
	}
	return Value(text)
}

func syntaxError(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return errors.New("not JSON")
}

func trim(text []byte) []byte {
	for len(text) > 0 && strings.IndexByte(" \t\r\n", text[0]) >= 0 {
		text = text[1:]
	}
	for n := len(text); n > 0 && strings.IndexByte(" \t\r\n", text[n-1]) >= 0; n = len(text) {
		text = text[:n-1]
	}
	return text
}

// IsString reports whether the value is a string.
func (v Value) IsString() bool { return rawjson.Kind(v) == 's' }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return rawjson.Kind(v) == 'o' }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return rawjson.Kind(v) == 'a' }

// IsNumber reports whether the value is a number.
func (v Value) IsNumber() bool { return rawjson.Kind(v) == 'n' }

// Exists reports whether the value is there and not null.
func (v Value) Exists() bool { return len(v) > 0 && !rawjson.IsNull(v) }

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// Get returns the member that a path of names leads to, or nil.
func (v Value) Get(path ...string) Value {
	for _, name := range path {
		v = v.member(name)
	}
	return v
}

func (v Value) member(name string) Value {
	var found Value
	if v.IsObject() {
		_ = rawjson.Object(v, func(key, value []byte) error {
			if string(key) != name {
				return nil
			}
			found = value
			return errEnough
		})
	}
	return found
}

// Has reports whether all of these members exist and are not null.
func (v Value) Has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !v.member(name).Exists() })
}

// Members yields the members of an object, in the order of the text.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if !v.IsObject() {
			return
		}
		_ = rawjson.Object(v, func(key, value []byte) error {
			if !yield(string(key), value) {
				return errEnough
			}
			return nil
		})
	}
}

// Items yields the elements of an array.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.IsArray() {
			return
		}
		_ = rawjson.Array(v, func(value []byte) error {
			if !yield(value) {
				return errEnough
			}
			return nil
		})
	}
}

// First returns the first element of an array, or nil.
func (v Value) First() Value {
	for item := range v.Items() {
		return item
	}
	return nil
}

// Text returns a string, or "" for anything else.
func (v Value) Text() string {
	s, _ := rawjson.String(v)
	return s
}

// Name returns a string, or a number as it is written: some programs have
// numbers where others have names.
func (v Value) Name() string {
	if v.IsNumber() {
		return string(v)
	}
	return v.Text()
}

// Int returns a number without its fraction, or 0. A string of digits is taken
// for a number.
func (v Value) Int() int {
	if n, ok := rawjson.Int(v); ok {
		return int(n) // a float64 would round a large one
	}
	return int(v.Number())
}

// Number returns a number, or 0. A string of digits is taken for a number.
func (v Value) Number() float64 {
	text := string(v)
	if v.IsString() {
		text = v.Text()
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// Bool returns whether the value is true.
func (v Value) Bool() bool {
	b, _ := rawjson.Bool(v)
	return b
}

// Any returns the value as encoding/json decodes it into an any, except that
// numbers stay as they are written.
func (v Value) Any() any {
	dec := json.NewDecoder(strings.NewReader(string(v)))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil
	}
	return out
}

// Map returns an object as Any does, or nil for anything else.
func (v Value) Map() map[string]any {
	m, _ := v.Any().(map[string]any)
	return m
}

// Pick returns some members of an object, those that exist, as Any does. It is nil if there are
// none.
func (v Value) Pick(names ...string) map[string]any {
	var found map[string]any
	for _, name := range names {
		if member := v.member(name); member.Exists() {
			if found == nil {
				found = make(map[string]any)
			}
			found[name] = member.Any()
		}
	}
	return found
}

// Rest returns the members of an object apart from some, as Any does.
func (v Value) Rest(names ...string) map[string]any {
	rest := make(map[string]any)
	for name, member := range v.Members() {
		if !slices.Contains(names, name) {
			rest[name] = member.Any()
		}
	}
	return rest
}

// Raw returns a copy of the value's text.
func (v Value) Raw() json.RawMessage { return slices.Clone(json.RawMessage(v)) }

// Except returns the members of an object apart from some, for the Extra of an entry made
// from those.
func (v Value) Except(names ...string) session.Fields {
	fields := session.Fields(v.Others(names...))
	for i := range fields {
		fields[i].Value = slices.Clone(fields[i].Value)
	}
	return fields
}

// Others is Except without copies: its values are slices of the object, which may be large.
func (v Value) Others(names ...string) rawjson.Members {
	var others rawjson.Members
	for name, value := range v.Members() {
		if !slices.Contains(names, name) {
			others = append(others, rawjson.Member{Name: name, Value: json.RawMessage(value)})
		}
	}
	return others
}

// layouts are the ways in which programs write times, the common ones first. Times without a
// zone are read in a given location.
var layouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04",
	"2006-01-02",
}

// Time returns a time: text in one of the usual forms, or a number of seconds,
// milliseconds, microseconds or nanoseconds since 1970, told apart by its size.
// Text without a zone is read as in the location. Anything else is the zero time.
func (v Value) Time(zone *time.Location) time.Time {
	if v.IsString() {
		if t := ParseTime(v.Text(), zone); !t.IsZero() {
			return t
		}
	}
	return sinceEpoch(v.Number())
}

// ParseTime parses a time as Value.Time does; anything else is the zero time.
func ParseTime(text string, zone *time.Location) time.Time {
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// sinceEpoch is exact to the microsecond: a float64 has no more digits.
func sinceEpoch(n float64) time.Time {
	micros := 1e-3
	switch {
	case n <= 0 || n >= 1e19:
		return time.Time{}
	case n < 1e11:
		micros = 1e6
	case n < 1e14:
		micros = 1e3
	case n < 1e17:
		micros = 1
	}
	return time.UnixMicro(int64(math.Round(n * micros))).UTC()
}
