package session

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// checkKinds makes sure that no known member of a payload has the wrong kind of
// value. When a log is read, such a member is kept among the unknown ones (see
// members.field); so what is there under a known name is wrong. v is a payload, or
// a part of one, and at says where it is.
func checkKinds(v reflect.Value, at string) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkKinds(v.Elem(), at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkKinds(v.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkStructKinds(v, at)
	}
	return nil
}

func checkStructKinds(v reflect.Value, at string) error {
	if extra, ok := v.FieldByName("Extra").Interface().(Fields); ok {
		if err := checkNames(v.Type(), extra, at); err != nil {
			return err
		}
	}
	for i := range v.NumField() {
		if !hasMembers(v.Field(i)) { // so nothing is asked about most fields
			continue
		}
		f := v.Type().Field(i)
		if name := memberName(f); name != "" && f.Type != reflect.TypeFor[[]KeptEntry]() {
			if err := checkKinds(v.Field(i), at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasMembers reports whether a value has parts that checkKinds looks at.
func hasMembers(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil()
	case reflect.Slice:
		return v.Len() > 0
	}
	return v.Kind() == reflect.Struct
}

// checkNames refuses members that were kept as unknown though a type has them. (A
// block of another type is refused elsewhere, with better words.)
func checkNames(t reflect.Type, extra Fields, at string) error {
	if len(extra) == 0 {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name := memberName(f)
		if name == "" || !extra.has(name) || t == reflect.TypeFor[Content]() && ContentType(name).isKnown() {
			continue
		}
		return fmt.Errorf("%q has the wrong kind of value: it must be %s", at+"."+name, kindName(f.Type))
	}
	return nil
}

// memberName is the name that a field of a struct has in a line, or "".
func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// kindName says what a member must be.
func kindName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return fmt.Sprintf("an integer from 0 to %d", int64(maxCount))
	case reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// checkRepeats refuses an object that has a member twice, at any depth: a reader
// would take only one of them.
func checkRepeats(value []byte, at string) error {
	switch kindOf(value) {
	case '{':
		seen := make(map[string]bool)
		return rawjson.Object(value, func(key, value []byte) error {
			name := strings.TrimPrefix(at+"."+string(key), ".")
			if seen[string(key)] {
				return fmt.Errorf("%q occurs twice", name)
			}
			seen[string(key)] = true
			return checkRepeats(value, name)
		})
	case '[':
		i := -1
		return rawjson.Array(value, func(elem []byte) error {
			i++
			return checkRepeats(elem, fmt.Sprintf("%s[%d]", at, i))
		})
	}
	return nil
}
