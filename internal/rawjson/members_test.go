package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	o, err := rawjson.ParseMembers([]byte(` {"a":1, "b":"x", "a":[2], "c":{"d":null}} `))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(o.JSON()); got != `{"a":[2],"b":"x","c":{"d":null}}` {
		t.Errorf("read as %s", got)
	}
	before := o
	if list, ok := o.TakeElements("a"); !ok || len(list) != 1 || string(list[0]) != "2" {
		t.Errorf("elements %s, %t", list, ok)
	}
	if _, ok := o.TakeObject("b"); ok {
		t.Error("a string is taken for an object")
	}
	inner, ok := o.TakeObject("c")
	if !ok || !inner.Has("d") || inner.Has("e") {
		t.Errorf("the object is %s, %t", inner.JSON(), ok)
	}
	if s, ok := o.TakeText("b"); !ok || s != "x" || len(o) != 0 {
		t.Errorf("the text is %q, %t, and %s is left", s, ok, o.JSON())
	}
	if string(before.JSON()) != `{"a":[2],"b":"x","c":{"d":null}}` {
		t.Errorf("taking changed %s", before.JSON())
	}
	o.Set("n", json.Number("123456789012345678"))
	o.Set("raw", json.RawMessage(`{"<": 1}`))
	o.Set("bad", func() {})
	o.SetText("empty", "")
	o.SetStr("s", "a\"<")
	o.Set("n", 2)
	o.Merge(rawjson.Members{{Name: "s", Value: json.RawMessage("true")}, {Name: "new", Value: json.RawMessage("0")}})
	if got := string(o.JSON()); got != `{"n":2,"raw":{"<": 1},"bad":null,"s":true,"new":0}` {
		t.Errorf("made %s", got)
	}
	for _, bad := range []string{"", "null", "[]", `{"a":}`} {
		if rawjson.MembersOf([]byte(bad)) != nil {
			t.Errorf("%q is taken for an object", bad)
		}
	}
	var many rawjson.Members
	for i := range 100 {
		many = append(many, rawjson.Member{Name: string(rune('a' + i%26)), Value: rawjson.AppendInt(nil, int64(i))})
	}
	if got := rawjson.MembersOf(many.JSON()); len(got) != 26 || got.Int("a") != 78 || got[0].Name != "a" {
		t.Errorf("of repeated members %s is left", got.JSON())
	}
}
