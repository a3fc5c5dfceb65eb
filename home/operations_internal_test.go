package home

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// groups returns the fields of a Home that are groups of operations.
func groups(h *Home) map[string]reflect.Value {
	all := make(map[string]reflect.Value)
	v := reflect.ValueOf(h).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			all[f.Name] = v.Field(i)
		}
	}
	return all
}

var capital = regexp.MustCompile(`[A-Z]`)

// operationName is how the table calls a method of a group.
func operationName(group, method string) string {
	snake := func(name string) string {
		return strings.TrimPrefix(capital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) }), "_")
	}
	return snake(group) + "." + snake(method)
}

func TestEveryMethodOfAGroupIsAnOperation(t *testing.T) {
	t.Parallel()
	h, err := Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var methods, listed []string
	for name, group := range groups(h) {
		for method := range group.Type().Methods() {
			methods = append(methods, operationName(name, method.Name))
		}
	}
	for _, o := range Operations() {
		listed = append(listed, o.Name)
	}
	slices.Sort(methods)
	slices.Sort(listed)
	if !slices.Equal(methods, listed) {
		t.Errorf("the methods of the groups are\n%s\nand the table has\n%s", methods, listed)
	}
}

var errAsked = errors.New("asked")

// asked is a Remote that notes what it is asked for.
type asked struct {
	op      *Operation
	request any
}

func (a *asked) Do(_ context.Context, op *Operation, request any, _ func(any) error) (any, error) {
	a.op, a.request = op, request
	return nil, errAsked
}

// TestAHomeElsewhereIsAskedByTheRightName: a method that asks for another operation than its
// own would do something else on a server than here.
func TestAHomeElsewhereIsAskedByTheRightName(t *testing.T) {
	t.Parallel()
	h, err := Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	remote := &asked{}
	h.site = away{h, remote}
	here := []string{ // about files of this machine, so they run here
		"entries.image", "entries.write_images", "transfer.export", "transfer.export_all", "transfer.import",
		"transfer.programs", "transfer.resume", "upkeep.backup",
	}
	for _, o := range Operations() {
		*remote = asked{}
		request := reflect.New(o.Request).Interface()
		_, err := o.Call(t.Context(), h, request, strings.NewReader(""), func(any) error { return nil })
		if slices.Contains(here, o.Name) {
			if remote.op != nil {
				t.Errorf("%s was asked for elsewhere", o.Name)
			}
			continue
		}
		if !errors.Is(err, errAsked) || remote.op != o || reflect.TypeOf(remote.request) != reflect.PointerTo(o.Request) {
			t.Errorf("%s asked for %+v with a %T: %v", o.Name, remote.op, remote.request, err)
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	named := regexp.MustCompile(`\{(\w+)\}`)
	for _, o := range Operations() {
		if o.Doc == "" || !strings.HasSuffix(o.Doc, ".") || o.Access < Read || o.Access > Admin {
			t.Errorf("%s has the doc %q and the access %v", o.Name, o.Doc, o.Access)
		}
		if o.Route == "" {
			continue
		}
		if seen[o.Route] {
			t.Errorf("%s and another operation have the route %s", o.Name, o.Route)
		}
		seen[o.Route] = true
		method, _, _ := strings.Cut(o.Route, " ")
		if safe := method == "GET"; safe && o.Access != Read && !strings.HasPrefix(o.Name, "upkeep.") {
			t.Errorf("%s writes, and its route is %s", o.Name, o.Route)
		}
		for _, name := range named.FindAllStringSubmatch(o.Route, -1) {
			if !hasField(o.Request, name[1]) {
				t.Errorf("%s has no field %s, which is in %s", o.Request, name[1], o.Route)
			}
		}
	}
}

func hasField(t reflect.Type, name string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		json, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return json == name
	})
}

func TestReceive(t *testing.T) {
	t.Parallel()
	export := OperationNamed("transfer.export")
	refused := &ExportRequest{Path: "/etc/passwd"}
	var field *FieldError
	if err := export.Receive(refused); !errors.As(err, &field) || field.Field != "path" {
		t.Errorf("a path from elsewhere is %v", err)
	}
	if err := export.Receive(&ExportRequest{Force: true}); !errors.As(err, &field) || field.Field != "force" {
		t.Errorf("force from elsewhere is %v", err)
	}
	// The default for a program's own format would be to write its files here.
	sent := &ExportRequest{Format: "claude-code"}
	if err := export.Receive(sent); err != nil || sent.Path != "-" {
		t.Errorf("the path is %q, %v", sent.Path, err)
	}
	read := &ImportRequest{}
	if err := OperationNamed("transfer.import").Receive(read); err != nil || !slices.Equal(read.Paths, []string{"-"}) {
		t.Errorf("the paths are %q, %v", read.Paths, err)
	}
	if err := OperationNamed("transfer.import").Receive(&ImportRequest{All: true}); err == nil {
		t.Error("a caller elsewhere may import what is on this machine")
	}
}
