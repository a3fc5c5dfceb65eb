package provider_test

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

func TestWireObject(t *testing.T) {
	t.Parallel()
	o, err := wire.Parse([]byte(`{"a":1,"b":"x","a":2,"c":{"d":[]}}`))
	if err != nil || string(o.JSON()) != `{"a":2,"b":"x","c":{"d":[]}}` {
		t.Errorf("%s, %v", o.JSON(), err)
	}
	if o.Int("a") != 2 || o.Str("b") != "x" || o.Str("a") != "" || o.Has("z") || o.Get("z") != nil || o.Take("z") != nil {
		t.Error("a member is not what it is")
	}
	shared := o
	if _, ok := o.TakeStr("b"); !ok || shared.Str("b") != "x" {
		t.Error("taking a member changed a copy")
	}
	if wire.Members([]byte(`[]`)) != nil || wire.Members([]byte(`{}`)) == nil {
		t.Error("an empty object is not nothing")
	}
}

func TestWireEvents(t *testing.T) {
	t.Parallel()
	var got []string
	collect := func(data []byte) error { got = append(got, string(data)); return nil }
	err := wire.Events(strings.NewReader("event: a\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: x\n\ndata: ping\n\ndata: 7\n\ndata:[DONE]\n\ndata: {\"b\":2}"), collect)
	if want := []string{`{"a":1}`, wire.End, `{"b":2}`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	broken := errors.New("broken")
	if err := wire.Events(iotest.ErrReader(broken), collect); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if err := wire.Events(strings.NewReader("data: {}\n\n"), func([]byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	long := io.MultiReader(strings.NewReader("data: "), &endless{n: 65 << 20})
	if err := wire.Events(long, collect); err == nil {
		t.Error("an event with a line of any size was read")
	}
	const line = 1 << 20
	many := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", line)+"\n", 65))
	if err := wire.Events(many, collect); err == nil {
		t.Error("an event with any number of lines was read")
	}
	if err := wire.Events(strings.NewReader("data: {\"torn\":\n\n"), collect); err == nil {
		t.Error("an event that is no JSON was left out")
	}
}

// endless is so many letters without a line end.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'x'
	}
	e.n -= len(p)
	return len(p), nil
}

func TestWireMerged(t *testing.T) {
	t.Parallel()
	var m wire.Merged
	for _, piece := range []string{
		`{"a":"x","role":"assistant","n":1,"list":[{"index":0,"t":"a"},7]}`, `{"a":"y","role":"","n":2,"list":[{"index":0,"t":"b"}]}`,
		`{"a":null,"role":null,"n":null,"b":null}`, `{"a":{"now":"an object"},"b":true}`,
	} {
		m.Add([]byte(piece))
	}
	if want := `{"a":{"now":"an object"},"role":"assistant","n":2,"list":[{"index":0,"t":"ab"},7],"b":true}`; string(m.JSON()) != want {
		t.Errorf("it is %s, want %s", m.JSON(), want)
	}
	if got := new(wire.Merged).JSON(); string(got) != "null" {
		t.Errorf("nothing is %s", got)
	}
}

func TestWireMessages(t *testing.T) {
	t.Parallel()
	result := session.ToolResult("c", "r", false)
	entries := []session.Entry{
		{ID: "1", Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("a"), result, session.Text("b")}}},
		{ID: "2", Message: &session.MessageEntry{Role: "tool", Content: []session.Content{result, session.Text("a picture")}}},
		{ID: "3", Message: &session.MessageEntry{Role: "custom"}},
		{ID: "4", Compaction: &session.CompactionEntry{}},
		{ID: "5", Custom: &session.CustomEntry{}},
	}
	got := ""
	for _, m := range wire.Messages(entries) {
		got += m.Entry + m.Role + " "
	}
	if want := "1assistant 1tool 1assistant 2tool 2user 3user "; got != want {
		t.Errorf("the messages are %s, want %s", got, want)
	}
}

func TestWireDescribe(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]session.Content{
		"a block of type x":       {Type: "x", Raw: []byte(`{}`)},
		"a block of unknown type": {Raw: []byte(`{}`)},
		"an image":                {Type: session.ContentTypeImage},
		"a file":                  {Type: session.ContentTypeFile},
	} {
		if got := wire.Describe(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWireForeign(t *testing.T) {
	t.Parallel()
	own := session.Fields{{Name: wire.Chat, Value: []byte(`{}`)}}
	if wire.Foreign(own, wire.Chat) || !wire.Foreign(own, wire.Google) || wire.Foreign(nil, wire.Google) {
		t.Error("where it is from is not where it is from")
	}
}

// TestWireUsage: what a response cost is kept as it was written, beside the numbers.
func TestWireUsage(t *testing.T) {
	t.Parallel()
	read := func(raw []byte) *session.Usage {
		if len(raw) == 0 {
			return nil
		}
		return &session.Usage{Input: 1}
	}
	o := wire.Object{{Name: "usage", Value: []byte(`{"n":1}`)}}
	u := wire.Usage(&o, "usage", wire.Chat, read)
	if raw := wire.Object(u.Extra).Get(wire.Chat); u.Input != 1 || string(raw) != `{"n":1}` || len(o) > 0 {
		t.Errorf("%+v of %s, and %s stays", u, raw, o.JSON())
	}
	if wire.Usage(&o, "usage", wire.Chat, read) != nil {
		t.Error("there is usage where there is none")
	}
}

// TestWireResiduesOnDisk: a residue is read from the encoding that there is now and
// from the one there was before, and is written in the first.
func TestWireResiduesOnDisk(t *testing.T) {
	t.Parallel()
	const now = `{"set":{"a":{"b":1},"c":null},"unset":["d","e"],"form":"f","text":"t","join":true,"envelope":{"id":"x"}}`
	const before = `{"fields":{"a":{"b":1},"c":null},"absent":["d","e"],"form":"f","text":"t","join":true,"envelope":{"id":"x"}}`
	for _, text := range []string{now, before} {
		r, ok := wire.ResidueOf(session.Fields{{Name: wire.Chat, Value: json.RawMessage(text)}}, wire.Chat)
		if !ok {
			t.Fatalf("%s is not read", text)
		}
		var extra session.Fields
		r.Keep(&extra, wire.Chat)
		if len(extra) != 1 || string(extra[0].Value) != now {
			t.Errorf("%s is written as %s", text, extra[0].Value)
		}
		o := wire.Members([]byte(`{"a":2,"d":3,"z":4}`))
		r.Restore(&o)
		if got := string(o.JSON()); got != `{"a":{"b":1},"z":4,"c":null}` {
			t.Errorf("%s restores %s", text, got)
		}
	}
}
