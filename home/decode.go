package home

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Decode reads a request that came as JSON. An unknown member is an error, because it would
// be ignored silently. Errors are in plain words; one about a field is a *FieldError.
func Decode(text []byte, request any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return Misread(text, request, d.Decode(request))
}

// Misread says in plain words why encoding/json could not read a text into a struct. It returns
// nil if err is nil.
func Misread(text []byte, into any, err error) error {
	if err == nil {
		return nil
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if field := jsonField(kind.Field); field != "" {
			return wrong(field, "{"+field+"} is a JSON %s; it must be %s", kind.Value, jsonKind(kind.Type))
		}
		return session.Invalidf("it is a JSON %s; it must be an object", kind.Value)
	}
	// encoding/json has no type for this error.
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name := strings.Trim(quoted, `"`)
		return wrong(name, "there is no {"+name+"}")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return session.Invalidf("it is not JSON at byte %d: %w", syntax.Offset, err)
	}
	// A field that reads itself, such as a time, does not say which one it is.
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			alone, _ := json.Marshal(map[string]json.RawMessage{name: members[name]})
			if err := json.Unmarshal(alone, reflect.New(reflect.TypeOf(into).Elem()).Interface()); err != nil {
				return wrong(name, "{"+name+"} is %s: %w", members[name], inPlainWords(err))
			}
		}
	}
	return session.Invalidf("%w", err)
}

// jsonField is the path to a field without the structs that are embedded on the way: JSON does
// not have them.
func jsonField(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return name == "" || name[0] >= 'A' && name[0] <= 'Z' }), ".")
}

// jsonKind returns the kind of JSON value that a type has.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonKind(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number"
}

func inPlainWords(err error) error {
	if _, ok := errors.AsType[*time.ParseError](err); ok || strings.HasPrefix(err.Error(), "Time.UnmarshalJSON") {
		return errors.New("it must be a time as in RFC 3339, such as 2026-03-01T12:00:00Z")
	}
	return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
}
