package home_test

import (
	"context"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// Every operation has the shape that the package describes: a context, a request, perhaps
// what is read and who hears the events; and a result. A server encodes all of it as JSON:
// requests, results and events have names for that, all the way down, and nothing that JSON
// cannot hold or would lose.
func TestOperationsTakeAndReturnData(t *testing.T) {
	t.Parallel()
	c := jsonCheck{t: t, seen: make(map[reflect.Type]bool)}
	for _, group := range []any{&home.Sessions{}, &home.Entries{}, &home.Search{}, &home.Transfer{}, &home.Upkeep{}, &home.Turns{}} {
		for m := range reflect.TypeOf(group).Methods() {
			c.operation(m)
		}
	}
	c.data(reflect.TypeFor[home.Notice](), "Notice")
}

type jsonCheck struct {
	t    *testing.T
	seen map[reflect.Type]bool
}

func (c *jsonCheck) operation(m reflect.Method) {
	var in []reflect.Type
	for i := range m.Type.Ins() {
		in = append(in, i)
	}
	take := func(is func(reflect.Type) bool) (reflect.Type, bool) {
		if len(in) == 0 || !is(in[0]) {
			return nil, false
		}
		one := in[0]
		in = in[1:]
		return one, true
	}
	take(func(t reflect.Type) bool { return true }) // the group
	if _, ok := take(func(t reflect.Type) bool { return t == reflect.TypeFor[context.Context]() }); !ok {
		c.t.Errorf("%s takes no context", m.Name)
	}
	if request, ok := take(func(t reflect.Type) bool { return t.Kind() == reflect.Struct }); ok {
		c.data(request, m.Name)
		for f := range request.Fields() {
			if !f.IsExported() {
				c.t.Errorf("%s: the request has %s, which JSON would lose", m.Name, f.Name)
			}
		}
	}
	take(func(t reflect.Type) bool { return t == reflect.TypeFor[io.Reader]() })
	isSend := func(t reflect.Type) bool {
		return t.Kind() == reflect.Func && t.NumIn() == 1 && t.NumOut() == 1 && t.Out(0) == reflect.TypeFor[error]()
	}
	if send, ok := take(isSend); ok {
		c.data(send.In(0), m.Name+"'s event")
	}
	if len(in) > 0 {
		c.t.Errorf("%s takes %v", m.Name, in)
	}
	if m.Type.NumOut() != 2 || m.Type.Out(0).Kind() != reflect.Pointer || m.Type.Out(1) != reflect.TypeFor[error]() {
		c.t.Errorf("%s does not return a pointer to a result, and an error", m.Name)
		return
	}
	c.data(m.Type.Out(0), m.Name)
}

// keptBack are fields that a client has no use for.
var keptBack = map[string]bool{
	// What other programs have added to entries: an entry in a result has it, because it
	// encodes itself.
	"session.Usage.Extra": true, "session.MessageEntry.Extra": true, "session.ToolUseContent.Extra": true,
	"agent.Record.ID": true, "agent.Record.Time": true, // a Reuse has them beside the record
	"agent.Event.Err":     true, // its text and its kind are beside it
	"redact.Finding.Same": true, // tells equal secrets apart, and would help to guess them
}

// data checks that JSON can hold a type.
func (c *jsonCheck) data(is reflect.Type, at string) {
	pointer := reflect.PointerTo(is)
	encodes := pointer.Implements(reflect.TypeFor[json.Marshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	if c.seen[is] || encodes {
		return
	}
	c.seen[is] = true
	switch is.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		c.data(is.Elem(), at)
	case reflect.Func, reflect.Chan:
		c.t.Errorf("%s: JSON cannot hold %v", at, is)
	case reflect.Interface:
		if is.NumMethod() > 0 {
			c.t.Errorf("%s: JSON does not say what %v is", at, is)
		}
	case reflect.Struct:
		for f := range is.Fields() {
			name, named := f.Tag.Lookup("json")
			switch {
			case !f.IsExported():
			case name == "-" && !keptBack[is.String()+"."+f.Name]:
				c.t.Errorf("%s: JSON loses %v.%s", at, is, f.Name)
			case name == "-":
			case !named && !f.Anonymous:
				c.t.Errorf("%s: %v.%s has no name in JSON", at, is, f.Name)
			default:
				c.data(f.Type, at+"."+f.Name)
			}
		}
	}
}
