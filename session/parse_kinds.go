package session

import (
	"fmt"
	"reflect"
	"strings"
	"time"

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
	return v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]()
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

// kindName names the JSON type that a member must have.
func kindName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Time]() {
		return "a time"
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
// would take only one of them. It reads every byte once, however deep they nest.
func checkRepeats(text []byte) error {
	var r repeats
	r.Reset(text)
	if err := r.value(); err != nil {
		return err
	}
	return r.End()
}

// repeats looks for members that occur twice.
type repeats struct {
	rawjson.Reader
	path []step // to the value that is read
}

// step leads to a member or, without a name, to an element.
type step struct {
	name  string
	index int
}

func (r *repeats) value() error {
	switch r.Kind() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	}
	r.Raw()
	return nil
}

func (r *repeats) object() error {
	seen := make(map[string]bool)
	for more := r.Open('{'); more; more = r.More('}') {
		name := string(r.Key())
		r.path = append(r.path, step{name: name, index: -1})
		if seen[name] {
			return fmt.Errorf("%q occurs twice", r.where())
		}
		seen[name] = true
		if err := r.value(); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	return nil
}

func (r *repeats) array() error {
	r.path = append(r.path, step{})
	for more := r.Open('['); more; more = r.More(']') {
		if err := r.value(); err != nil {
			return err
		}
		r.path[len(r.path)-1].index++
	}
	r.path = r.path[:len(r.path)-1]
	return nil
}

// where names the value that is read.
func (r *repeats) where() string {
	var b strings.Builder
	for i, s := range r.path {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case i > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}
