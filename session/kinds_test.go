package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Every type of the format has a row, and the row says all that the payload has.
func TestEveryEntryTypeHasACompleteRow(t *testing.T) {
	t.Parallel()
	defs := schemaDefs(t)
	union := reflect.TypeFor[Entry]()
	rows := 0
	for i := range union.NumField() {
		f := union.Field(i)
		if f.Type.Kind() != reflect.Pointer || f.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		rows++
		name := memberName(f)
		k := EntryType(name).kind()
		row := kinds[k]
		if k == kindOther || row.name != EntryType(name) || row.get == nil {
			t.Errorf("%s has no row", name)
			continue
		}
		if !defs[name] {
			t.Errorf("the schema has no %s", name)
		}
		e := Entry{Type: row.name}
		if row.get(&e) != nil {
			t.Errorf("%s: an empty entry has a payload", name)
		}
		p := row.set(&e)
		if set := reflect.ValueOf(e).Field(i).Interface(); set != p {
			t.Errorf("%s: the row is about another field", name)
		}
		if of, got := e.payload(); of != k || got != p {
			t.Errorf("%s: the payload is not found", name)
		}
		if row.copy(&e) == p {
			t.Errorf("%s: a copy is the same", name)
		}
		checkRow(t, row)
	}
	if want := int(kindGap - kindMessage); rows != want {
		t.Errorf("Entry has %d payloads, the table %d rows", rows, want)
	}
}

// checkRow compares what a row says with the members of the payload.
func checkRow(t *testing.T, row kindRow) {
	t.Helper()
	e := Entry{Type: row.name}
	p := row.set(&e)
	payload := reflect.ValueOf(p).Elem()
	visited := make(map[*string]bool)
	ids := 0
	for i := range payload.NumField() {
		f, name := payload.Field(i), memberName(payload.Type().Field(i))
		switch {
		case f.Type() == reflect.TypeFor[[]Content]():
			if row.content == nil || row.content(&e) != f.Addr().Interface() {
				t.Errorf("%s: the row does not find %s", row.name, name)
			}
		case name == "summary":
			f.SetString("what was said")
			if row.summary == nil || row.summary(&e) != "what was said" {
				t.Errorf("%s: the row does not find the summary", row.name)
			}
		case name == "target_id" || name == "from_id" || strings.HasSuffix(name, "entry_id"):
			ids++
			visited[f.Addr().Interface().(*string)] = false
		case strings.HasSuffix(name, "entry_ids"):
			ids++
			f.Set(reflect.ValueOf([]string{"a"}))
			visited[f.Index(0).Addr().Interface().(*string)] = false
		}
	}
	e.EachRef(func(id *string) { visited[id] = true })
	for _, met := range visited {
		if !met || len(visited) != ids {
			t.Errorf("%s: the row does not visit all ids", row.name)
		}
	}
	if _, ok := p.(logChecker); ok != (row.inLog != inLogNever) {
		t.Errorf("%s: inLog is %v, but checkInLog is there: %v", row.name, row.inLog, ok)
	}
}

// Every type of block has a row.
func TestEveryBlockTypeHasARow(t *testing.T) {
	t.Parallel()
	defs := schemaDefs(t)
	union := reflect.TypeFor[Content]()
	rows := 0
	for i := range union.NumField() {
		f := union.Field(i)
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		rows++
		name := memberName(f)
		k := ContentType(name).kind()
		row := blockKinds[k]
		if k == blockOther || !defs["block_"+name] {
			t.Errorf("%s has no row, or is not in the schema", name)
			continue
		}
		c := Content{Type: row.name}
		p := row.set(&c)
		if set := reflect.ValueOf(c).Field(i).Interface(); set != p {
			t.Errorf("%s: the row is about another field", name)
		}
		if of, got := c.payload(); of != k || got != p {
			t.Errorf("%s: the member is not found", name)
		}
		_, hasSource := f.Type.Elem().FieldByName("Source")
		if hasSource != (row.source != nil) {
			t.Errorf("%s: it has a source: %v", name, hasSource)
		}
	}
	if want := len(blockKinds) - 1; rows != want {
		t.Errorf("Content has %d members, the table %d rows", rows, want)
	}
}

// schemaDefs returns the names that the schema of the format defines.
func schemaDefs(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "session.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	defs := make(map[string]bool)
	for name := range schema.Defs {
		defs[name] = true
	}
	return defs
}
