package server

import (
	_ "embed"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coppice-dev/coppice/home"
)

// docsJSON has the comments of the source that describe operations (sessions.list), types
// (home.ListRequest), their members (home.ListRequest.sort) and values (home.Kind=conflict).
//
//go:generate env COPPICE_UPDATE=1 go test -run TestDocsAreTheComments .
//go:embed docs.json
var docsJSON []byte

// docs reads docsJSON when it is first needed.
var docs = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	_ = json.Unmarshal(docsJSON, &all) // a test reads it
	return all
})

// explain adds descriptions to the schema of a type, and what its members may be.
func explain(s *huma.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.Description == "" {
		s.Description = docs()[t.String()]
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil || name == "" {
			continue
		}
		if p.Description == "" {
			p.Description = docs()[declaredBy(t, f).String()+"."+name]
		}
		enumerate(p, f.Type, home.Choices(t, name))
	}
}

// declaredBy returns the struct in which a field of a struct is written: itself, or one that
// is embedded in it.
func declaredBy(t reflect.Type, f reflect.StructField) reflect.Type {
	for _, i := range f.Index[:len(f.Index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

// enumerate lists what a member, or each element of one, may be: one of the given values, or of
// the constants of its type.
func enumerate(s *huma.Schema, t reflect.Type, values []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(values) == 0 && t.Kind() == reflect.String {
		var meaning strings.Builder
		for _, key := range slices.Sorted(maps.Keys(docs())) {
			if value, ok := strings.CutPrefix(key, t.String()+"="); ok {
				values = append(values, value)
				meaning.WriteString("\n- `" + value + "`: " + docs()[key])
			}
		}
		if len(values) > 0 {
			s.Description = strings.TrimSpace(s.Description + "\n" + strings.ReplaceAll(meaning.String(), "`: \n", "`\n"))
		}
	}
	if s.Type == huma.TypeArray {
		s = s.Items
	}
	for _, value := range values {
		s.Enum = append(s.Enum, value)
	}
}
