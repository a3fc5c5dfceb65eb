package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-dev/coppice/home"
)

// TestDocumentExplains: who reads the document needs neither Go nor this repository.
func TestDocumentExplains(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	doc := s.document()
	for _, op := range home.Operations() {
		if op.Route == "" {
			continue
		}
		method, path, _ := strings.Cut(op.Route, " ")
		o := doc.Paths.Find(path).GetOperation(method)
		if o.Summary == "" || !strings.Contains(o.Description, "\n\nNeeds "+op.Access.String()) || strings.HasPrefix(o.Description, "\n") {
			t.Errorf("%s has the summary %q and the description %q", op.Name, o.Summary, o.Description)
		}
		for _, p := range o.Parameters {
			if p.Value.Description == "" {
				t.Errorf("%s: the parameter %s has no description", op.Name, p.Value.Name)
			}
		}
		if o.RequestBody != nil {
			if body := o.RequestBody.Value.Content.Get("application/json"); body != nil {
				for _, gap := range unexplained(body.Schema, op.Name, map[*openapi3.Schema]bool{}) {
					t.Errorf("%s has no description", gap)
				}
			}
		}
	}
}

// unexplained lists the members of a schema, and of those in it, without a description.
func unexplained(ref *openapi3.SchemaRef, at string, seen map[*openapi3.Schema]bool) (gaps []string) {
	if ref == nil || seen[ref.Value] {
		return nil
	}
	seen[ref.Value] = true
	for name, p := range ref.Value.Properties {
		if p.Value.Description == "" {
			gaps = append(gaps, fmt.Sprintf("%s.%s", at, name))
		}
		gaps = append(gaps, unexplained(p, at+"."+name, seen)...)
	}
	return append(gaps, unexplained(ref.Value.Items, at+"[]", seen)...)
}

// TestOperationsAreDocumented holds the table in docs/ipc.md against that of the home.
func TestOperationsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/ipc.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, op := range home.Operations() {
		route := "only here"
		if op.Route != "" {
			route = "`" + op.Route + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", op.Name, route, op.Access, op.Doc)
	}
	if !strings.Contains(string(page), "|---|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("docs/ipc.md must have this table:\n%s", want.String())
	}
}
