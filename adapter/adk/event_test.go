package adk_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/adapter/adk"
	coppice "github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// filler fills in values so that no field of a struct is zero.
type filler struct{ n int }

func (f *filler) next() int { f.n++; return f.n }

// special are types whose fields cannot take just any value.
var special = map[reflect.Type]func(f *filler) any{
	reflect.TypeFor[time.Time](): func(f *filler) any {
		return time.Date(2026, 1, 2, 3, 4, 5, f.next(), time.UTC)
	},
	reflect.TypeFor[time.Duration](): func(f *filler) any { return time.Duration(f.next()) * time.Second },
	reflect.TypeFor[*jsonschema.Schema](): func(f *filler) any {
		return &jsonschema.Schema{Type: "object", Description: fmt.Sprint("schema ", f.next())}
	},
	reflect.TypeFor[genai.Role]():      func(*filler) any { return genai.Role("model") },
	reflect.TypeFor[*genai.Content]():  func(f *filler) any { return genai.NewContentFromText(fmt.Sprint("text ", f.next()), "model") },
	reflect.TypeFor[map[string]any]():  func(f *filler) any { return map[string]any{"key": float64(f.next()), "list": []any{"a", true, nil}} },
	reflect.TypeFor[json.RawMessage](): func(f *filler) any { return json.RawMessage(fmt.Sprint(f.next())) },
}

// fill sets a value and everything below it.
func (f *filler) fill(v reflect.Value, depth int) {
	if make, ok := special[v.Type()]; ok {
		v.Set(reflect.ValueOf(make(f)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if depth > 12 { // schemas and the like contain themselves
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		if depth > 12 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0), depth+1)
		f.fill(v.Index(1), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text <&> ", f.next()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.next()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.next()) + 0.5)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.next() % 256))
	case reflect.Interface:
		v.Set(reflect.ValueOf(any(map[string]any{"in": float64(f.next())})))
	default:
		panic("the test cannot fill in " + v.Type().String())
	}
}

// fullEvent returns an event of which no field is zero, except Partial: such events are not
// kept.
func fullEvent() *session.Event {
	e := &session.Event{}
	(&filler{}).fill(reflect.ValueOf(e).Elem(), 0)
	e.Partial = false
	return e
}

// conversation is a session of a service for tests.
type conversation struct {
	*adk.Service
	store store.Store
	t     testing.TB
}

func converse(t testing.TB, st store.Store, o *adk.Options) conversation {
	return conversation{adk.New(st, o), st, t}
}

func (c conversation) create(id string, state map[string]any) session.Session {
	c.t.Helper()
	return mustGet(c.Create(c.t.Context(), &session.CreateRequest{AppName: "app", UserID: "user", SessionID: id, State: state}))(c.t).Session
}

func (c conversation) get(id string, recent int) session.Session {
	c.t.Helper()
	return mustGet(c.Get(c.t.Context(), &session.GetRequest{AppName: "app", UserID: "user", SessionID: id, NumRecentEvents: recent}))(c.t).Session
}

func (c conversation) append(to session.Session, e *session.Event) {
	c.t.Helper()
	mustDo(c.t, c.AppendEvent(c.t.Context(), to, e))
}

// coppice opens the session "s" as Coppice has it.
func (c conversation) coppice() *coppice.Session {
	c.t.Helper()
	name := mustGet(adk.SessionName("app", "user", "s"))(c.t)
	s := mustGet(coppice.Open(c.t.Context(), c.store, name, nil))(c.t)
	c.t.Cleanup(func() { s.Close() })
	return s
}

func text(author, text string) *session.Event {
	role := genai.Role(genai.RoleModel)
	if author == "user" {
		role = genai.RoleUser
	}
	return &session.Event{
		ID: "event " + text, Author: author, InvocationID: "i", Timestamp: time.Now(),
		LLMResponse: model.LLMResponse{Content: genai.NewContentFromText(text, role)},
	}
}

func contents(parts ...*genai.Part) *session.Event {
	e := text("agent", "")
	e.Content.Parts = parts
	return e
}

// ids returns the ids of the events of a session.
func ids(s session.Session) []string {
	var ids []string
	for e := range s.Events().All() {
		ids = append(ids, e.ID)
	}
	return ids
}

// Every field of an event comes back, new ones of a later ADK included.
func TestEveryFieldComesBack(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	s := c.create("s", nil)
	event := fullEvent()
	requireFull(t, reflect.ValueOf(event).Elem(), "Event")
	want := mustGet(json.Marshal(event))(t)
	c.append(s, event)
	got := c.get("s", 0).Events().At(0)
	if diff := cmp.Diff(event, got, cmp.AllowUnexported(jsonschema.Schema{})); diff != "" {
		t.Errorf("the event changed (-want +got):\n%s", diff)
	}
	if again := mustGet(json.Marshal(event))(t); string(again) != string(want) {
		t.Error("appending changed the caller's event")
	}
}

// requireFull makes sure that fullEvent has not overlooked a field.
func requireFull(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := path + "." + f.Name
		switch {
		case f.Name == "Partial" || !f.IsExported():
		case v.Field(i).IsZero():
			t.Errorf("%s is zero: the test does not show that it comes back", name)
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			requireFull(t, v.Field(i), name)
		}
	}
}

// Every kind of part comes back, and every field of it.
func TestEveryPartComesBack(t *testing.T) {
	var parts []*genai.Part
	typ := reflect.TypeFor[genai.Part]()
	f := &filler{}
	for i := range typ.NumField() { // each alone, and with a text
		for _, text := range []string{"", "words"} {
			p := &genai.Part{Text: text}
			f.fill(reflect.ValueOf(p).Elem().Field(i), 0)
			parts = append(parts, p)
		}
	}
	full := &genai.Part{}
	f.fill(reflect.ValueOf(full).Elem(), 0)
	signed := genai.NewPartFromFunctionCall("f", map[string]any{"n": float64(1)})
	signed.FunctionCall.ID, signed.ThoughtSignature = "c", []byte{1, 2, 3}
	parts = append(
		parts, full, signed,
		genai.NewPartFromText("<b>&amp;"), &genai.Part{Text: "hm", Thought: true, ThoughtSignature: []byte("sign")}, &genai.Part{},
		genai.NewPartFromFunctionCall("without id", nil), genai.NewPartFromFunctionResponse("without id", map[string]any{"output": "x"}),
		genai.NewPartFromFunctionResponse("f", map[string]any{"a": 1.5, "b": []any{}}), genai.NewPartFromFunctionResponse("f", nil),
		genai.NewPartFromBytes([]byte("png"), "image/png"), genai.NewPartFromURI("gs://x", "video/mp4"),
	)
	c := converse(t, memory.New(nil), nil)
	s := c.create("s", nil)
	var want []*session.Event
	for _, role := range []string{genai.RoleModel, genai.RoleUser, "", "critic"} {
		for _, p := range parts {
			e := contents(p)
			e.Content.Role = role
			want = append(want, e)
		}
		all := contents(parts...)
		all.Content.Role = role
		want = append(want, all)
	}
	want = append(want, &session.Event{ID: "no parts", LLMResponse: model.LLMResponse{Content: &genai.Content{Role: "model"}}}, &session.Event{ID: "nothing"})
	for _, e := range want {
		c.append(s, e)
	}
	got := slices.Collect(c.get("s", 0).Events().All())
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("event %d changed (-want +got):\n%s", i, diff)
		}
	}
}
