package server

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// described is an operation and its form over HTTP.
type described struct {
	*home.Operation
	method, path string
	inPath       []string // the names of fields that are in the path
	inBody       bool     // the others are in the body, and not in the query
	registry     huma.Registry
	schema       *huma.Schema            // of the request
	properties   map[string]*huma.Schema // of the request
}

// newRegistry returns where the schemas of types are kept.
func newRegistry() huma.Registry {
	registry := huma.NewMapRegistry(schemas, schemaName)
	for _, t := range []reflect.Type{reflect.TypeFor[session.Entry](), reflect.TypeFor[session.Content](), reflect.TypeFor[session.Header](), reflect.TypeFor[session.MessageEntry]()} {
		registry.RegisterTypeAlias(t, reflect.TypeFor[logObject]())
	}
	return registry
}

const schemas = "#/components/schemas/"

// document returns the OpenAPI document. Its schemas are others than those that requests are
// held against: they also have descriptions, and lists of values, which the home checks itself.
func document() ([]byte, error) {
	registry := newRegistry()
	registry.RegisterTypeAlias(reflect.TypeFor[session.MessageEntry](), reflect.TypeFor[messageObject]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Coppice", Version: "1", Description: "Conversations of humans, models and tools: kept, branched, searched and shared.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "This server"}},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "coppice token add NAME makes one."},
			},
		},
		Security: []map[string][]string{{"token": {}}},
	}
	for _, op := range home.Operations() {
		if op.Route != "" {
			d := describe(op, registry)
			explain(d.schema, op.Request)
			doc.AddOperation(d.openAPI())
		}
	}
	for name, s := range registry.Map() {
		explain(s, registry.TypeFromRef(schemas+name))
		plain(s)
	}
	return json.MarshalIndent(doc, "", "  ")
}

// logObject is a part of a log. Programs may add members, so its schema is open.
type logObject struct{}

// Schema implements huma.SchemaProvider.
func (logObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "As docs/format.md describes it."}
}

// messageObject is a message as the document describes it. What a request has is for the home
// to check.
type messageObject struct{}

// Schema implements huma.SchemaProvider.
func (messageObject) Schema(r huma.Registry) *huma.Schema {
	type members session.MessageEntry // without the methods that read and write it
	s := huma.SchemaFromType(r, reflect.TypeFor[members]())
	explain(s, reflect.TypeFor[session.MessageEntry]())
	s.AdditionalProperties = true
	s.Properties["content"].Items = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true, Required: []string{"type"}, Description: "A block, as docs/format.md describes it.",
		Properties: map[string]*huma.Schema{"type": {Type: huma.TypeString, Description: "What it is, such as text. The block has a member of that name."}},
	}
	return s
}

// schemaName is the name of a type, with its package unless that is home.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	pkg := path.Base(t.PkgPath())
	if t.Name() == "" || pkg == "home" || pkg == "server" {
		return name
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + name
}

var pathName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)\}`) })

// describe returns an operation with its form over HTTP.
func describe(op *home.Operation, registry huma.Registry) *described {
	d := &described{Operation: op, registry: registry}
	d.method, d.path, _ = strings.Cut(op.Route, " ")
	for _, name := range pathName().FindAllStringSubmatch(d.path, -1) {
		d.inPath = append(d.inPath, name[1])
	}
	d.inBody = d.method != http.MethodGet && d.method != http.MethodDelete && !op.Reads
	d.schema = d.requestSchema()
	d.properties = d.schema.Properties
	return d
}

// requestSchema is the schema of the request without the fields that a remote caller must not
// set. It is a separate copy: the fields in the path are not in the body.
func (d *described) requestSchema() *huma.Schema {
	whole := huma.SchemaFromType(d.registry, d.Request)
	for _, name := range d.Here {
		delete(whole.Properties, name)
	}
	whole.Required = slices.DeleteFunc(whole.Required, func(name string) bool { return slices.Contains(d.Here, name) })
	plain(whole)
	whole.PrecomputeMessages()
	return whole
}

// plain marks lists that are never null.
func plain(s *huma.Schema) {
	for _, p := range s.Properties {
		p.Nullable = p.Nullable && p.Type != huma.TypeArray
		plain(p)
	}
}

func (d *described) openAPI() *huma.Operation {
	op := &huma.Operation{
		OperationID: d.Name, Method: d.method, Path: d.path, Summary: strings.TrimSuffix(d.Doc, "."),
		Tags:        []string{d.Name[:strings.IndexByte(d.Name, '.')]},
		Description: docs()[d.Name] + "\n\nNeeds " + d.Access.String() + " access.",
		Responses:   map[string]*huma.Response{"200": d.response()},
	}
	problem := &huma.Response{
		Description: "Why not",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: d.registry.Schema(reflect.TypeFor[Problem](), true, "")}},
	}
	for _, status := range []string{"4XX", "5XX"} {
		op.Responses[status] = problem
	}
	if d.method == http.MethodGet && d.Event == nil {
		op.Responses["304"] = &huma.Response{Description: "Unchanged since the ETag in If-None-Match"}
		op.Parameters = append(op.Parameters, header("If-None-Match", "The ETag of an earlier answer"))
	}
	if d.properties["once"] != nil {
		op.Parameters = append(op.Parameters, header(idempotencyKey, "A key of your own: with the same key, nothing is done twice"))
	}
	if d.isResumable() {
		op.Parameters = append(op.Parameters, header("Last-Event-ID", "The id of the last event that you have seen"))
	}
	for _, name := range d.inPath {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: d.properties[name], Description: d.properties[name].Description})
	}
	if d.inBody {
		op.RequestBody = d.body()
		return op
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range d.properties {
			if !slices.Contains(d.inPath, name) && !yield(name) {
				return
			}
		}
	})
	for _, name := range names {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: name, In: "query", Required: slices.Contains(d.schema.Required, name), Schema: d.properties[name], Description: d.properties[name].Description,
		})
	}
	if d.Reads {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	}
	return op
}

func header(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}

// isResumable reports whether a caller that reconnects gets what it has missed.
func (d *described) isResumable() bool { return d.Event != nil && d.properties["after"] != nil }

// body describes the body: the request without the fields in the path.
func (d *described) body() *huma.RequestBody {
	rest := *d.schema
	rest.Properties = make(map[string]*huma.Schema)
	for name, p := range d.properties {
		if !slices.Contains(d.inPath, name) {
			rest.Properties[name] = p
		}
	}
	rest.Required = slices.DeleteFunc(slices.Clone(d.schema.Required), func(name string) bool { return slices.Contains(d.inPath, name) })
	return &huma.RequestBody{Required: len(rest.Required) > 0, Content: map[string]*huma.MediaType{plainJSON: {Schema: &rest}}}
}

// response describes the answer.
func (d *described) response() *huma.Response {
	result := d.registry.Schema(d.Result, true, "")
	if d.Event == nil {
		r := &huma.Response{Description: "The result", Content: map[string]*huma.MediaType{plainJSON: {Schema: result}}}
		switch d.Result {
		case reflect.TypeFor[home.ImageResult]():
			r.Content["image/*"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		case reflect.TypeFor[home.BlobResult]():
			r.Content["application/octet-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		}
		return r
	}
	piece := &huma.Schema{Type: huma.TypeObject, Description: "One piece: an event, a notice or the progress; the last has the result or an error.", Properties: map[string]*huma.Schema{
		"event": d.registry.Schema(d.Event, true, ""), "result": result,
		"notice":   d.registry.Schema(reflect.TypeFor[home.Notice](), true, ""),
		"progress": d.registry.Schema(reflect.TypeFor[home.Progress](), true, ""),
		"error":    d.registry.Schema(reflect.TypeFor[Problem](), true, ""),
	}}
	r := &huma.Response{Description: "A stream: one piece on each line, or as server-sent events", Content: map[string]*huma.MediaType{
		lines: {Schema: piece}, eventStream: {Schema: &huma.Schema{Type: huma.TypeString}},
	}}
	if d.Request == reflect.TypeFor[home.ExportRequest]() {
		r.Content["*/*"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return r
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	text, err := s.document()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	serveDocument(w, r, text)
}

func serveDocument(w http.ResponseWriter, r *http.Request, text []byte) {
	w.Header().Set("Content-Type", plainJSON)
	if !isNotModified(w, r, text) {
		_, _ = w.Write(text) // the caller may be gone
	}
}
