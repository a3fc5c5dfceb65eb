package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
)

// NewTool returns a tool whose arguments are a struct. Its schema follows from the fields: "json"
// tags name them, a field with omitempty may be left out, and a "jsonschema" tag describes one.
// run gets only arguments that fit the schema; for others, the model gets an error that says what
// is wrong. The caller sets the other fields of the tool. A type that JSON cannot describe is an
// error.
func NewTool[In any](name, description string, run func(ctx context.Context, call Call, in In) (Result, error)) (Tool, error) {
	s, err := schemaOf(reflect.TypeFor[In]())
	if err != nil {
		return Tool{}, fmt.Errorf("the arguments of the tool %q: %w", name, err)
	}
	if run == nil {
		return Tool{}, invalid("the tool %q has no function that runs it", name)
	}
	tool := Tool{
		Tool: provider.Tool{Name: name, Description: description, Schema: slices.Clone(s.raw)},
		Check: func(call Call) error {
			_, err := Arguments[In](call.Input)
			return err
		},
		Run: func(ctx context.Context, call Call) (Result, error) {
			in, err := Arguments[In](call.Input)
			if err != nil {
				return Result{Text: err.Error(), IsError: true}, nil
			}
			return run(ctx, call, in)
		},
	}
	return tool, checkTools([]Tool{tool})
}

// Arguments reads the arguments of a call, as a tool of NewTool gets them. Names must be
// exact and occur once: if {"path":"a","path":"b"} meant a to one reader and b to another,
// a person would approve one thing and the tool would do the other. null counts as not
// given.
func Arguments[In any](input json.RawMessage) (In, error) {
	var in In
	s, err := schemaOf(reflect.TypeFor[In]())
	if err != nil {
		return in, err
	}
	given, err := s.check(input)
	if err != nil {
		return in, err
	}
	d := json.NewDecoder(bytes.NewReader(given))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return *new(In), fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return in, nil
}

// schema describes the arguments of a tool.
type schema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
	names    []string
}

// schemas caches schemas by type: making one takes longer than most calls.
var schemas sync.Map

func schemaOf(t reflect.Type) (*schema, error) {
	if known, ok := schemas.Load(t); ok {
		return known.(*schema), nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		return nil, err
	}
	if s.Type != "object" || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct", t)
	}
	made := &schema{names: s.PropertyOrder}
	if made.raw, err = json.Marshal(s); err == nil {
		made.resolved, err = s.Resolve(nil)
	}
	if err != nil {
		return nil, err
	}
	schemas.Store(t, made)
	return made, nil
}

// where matches how the library names the place of an error in the arguments.
var where = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`validating (root|/\S*): `) })

// check returns arguments that fit the schema, without those that are null.
func (s *schema) check(input json.RawMessage) (json.RawMessage, error) {
	given := make(map[string]json.RawMessage)
	err := rawjson.Object(input, func(key, value []byte) error {
		name := string(key)
		if _, twice := given[name]; twice {
			return fmt.Errorf("the argument %q is given twice", name)
		}
		given[name] = value
		return nil
	})
	if syntax := (*rawjson.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	if err != nil {
		return nil, err
	}
	values := make(map[string]any, len(given))
	for name, raw := range given {
		if rawjson.IsNull(raw) {
			delete(given, name)
			continue
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("the argument %q: %w", name, err)
		}
		values[name] = v
	}
	if err := s.resolved.Validate(values); err != nil {
		text := err.Error()
		at := ""
		if found := where().FindAllStringSubmatch(text, -1); len(found) > 1 {
			at = strings.ReplaceAll(found[len(found)-1][1][1:], "properties/", "") + ": "
		}
		return nil, fmt.Errorf("the arguments do not fit: %s%s; the arguments are %s", at, where().ReplaceAllString(text, ""), strings.Join(s.names, ", "))
	}
	return json.Marshal(given)
}
