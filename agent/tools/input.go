package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// input is the arguments of a call. Names are matched exactly and may occur once: if
// {"path":"a","path":"b"} meant a to one reader and b to another, a person would
// approve one thing and the tool would do the other.
type input struct {
	members map[string]json.RawMessage
	known   []string
	errs    []error
}

// parse reads arguments. Unknown ones are an error.
func parse(raw json.RawMessage, known ...string) (*input, error) {
	in := &input{members: make(map[string]json.RawMessage), known: known}
	err := rawjson.Object(raw, func(key, value []byte) error {
		name := string(key)
		if _, twice := in.members[name]; twice {
			return fmt.Errorf("the argument %q is given twice", name)
		}
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no argument %q: the arguments are %s", name, strings.Join(known, ", "))
		}
		in.members[name] = value
		return nil
	})
	if syntax := (*rawjson.SyntaxError)(nil); errors.As(err, &syntax) {
		err = fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	return in, err
}

func (in *input) fail(format string, args ...any) {
	in.errs = append(in.errs, fmt.Errorf(format, args...))
}

// get returns an argument; null counts as not given.
func (in *input) get(name string) (json.RawMessage, bool) {
	value, ok := in.members[name]
	return value, ok && !rawjson.IsNull(value)
}

// text returns an argument that must be there. It may be empty.
func (in *input) text(name string) string {
	value, ok := in.get(name)
	if !ok {
		in.fail("the argument %q is missing", name)
		return ""
	}
	s, ok := rawjson.String(value)
	if !ok {
		in.fail("the argument %q must be a string", name)
	}
	return s
}

// words is text that must not be blank, nor hold a NUL, which no system passes on.
func (in *input) words(name string) string {
	s := in.text(name)
	switch {
	case len(in.errs) > 0:
	case strings.TrimSpace(s) == "":
		in.fail("the argument %q is empty", name)
	case strings.ContainsRune(s, 0):
		in.fail("the argument %q has a NUL character", name)
	case !utf8.ValidString(s):
		in.fail("the argument %q is not UTF-8", name)
	}
	return s
}

// number returns an argument from 1 to max, or a default if it is not there.
func (in *input) number(name string, standard, max int) int {
	value, ok := in.get(name)
	if !ok {
		return standard
	}
	n, ok := rawjson.Int(value)
	if !ok || n < 1 || n > int64(max) {
		in.fail("the argument %q must be a whole number from 1 to %d", name, max)
		return standard
	}
	return int(n)
}

// flag returns an argument that is true or false; false if it is not there.
func (in *input) flag(name string) bool {
	value, ok := in.get(name)
	if !ok {
		return false
	}
	v, ok := rawjson.Bool(value)
	if !ok {
		in.fail("the argument %q must be true or false", name)
	}
	return v
}

func (in *input) err() error { return errors.Join(in.errs...) }
