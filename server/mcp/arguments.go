package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/render"
)

// addTool adds a tool, and notes which arguments it takes.
func addTool[In, Out any](f *face, t *sdk.Tool, h sdk.ToolHandlerFor[In, Out]) {
	f.arguments[t.Name] = reflect.TypeFor[In]()
	sdk.AddTool(f.server, t, h)
}

// checkArguments refuses wrong arguments in words for a model. The SDK would refuse them in
// words about schemas.
func (f *face) checkArguments(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		params, ok := r.GetParams().(*sdk.CallToolParamsRaw)
		if ok && f.arguments[params.Name] != nil {
			given, err := checked(params.Name, argumentsIn(f.arguments[params.Name]), params.Arguments, f.writers[params.Name])
			if err != nil {
				return f.failed(err), nil
			}
			params.Arguments = given
		}
		return next(ctx, method, r)
	}
}

// argument is one that a tool takes.
type argument struct {
	name, about string
	kind        reflect.Kind
	optional    bool
}

// argumentsIn returns the arguments of the struct that a tool takes.
func argumentsIn(in reflect.Type) (all []argument) {
	for _, field := range reflect.VisibleFields(in) {
		if !field.Anonymous {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			all = append(all, argument{name, field.Tag.Get("jsonschema"), field.Type.Kind(), options == "omitempty"})
		}
	}
	return all
}

// checked returns the arguments of a call without those that are null, which some models send
// for what they leave out. strict refuses what only might be meant.
func checked(tool string, takes []argument, text json.RawMessage, strict bool) (json.RawMessage, error) {
	var given map[string]any
	if len(text) > 0 && json.Unmarshal(text, &given) != nil {
		return nil, callError("the arguments of " + tool + " must be a JSON object; " + listOf(takes))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(takes, func(a argument) bool { return a.name == name }) {
			return nil, callError(tool + " has no argument " + render.OneLine(name, maxValue) + "; " + listOf(takes))
		}
	}
	kept := make(map[string]any)
	for _, a := range takes {
		value := given[a.name]
		switch {
		case value == nil && a.optional:
			continue
		case value == nil:
			return nil, callError(a.name + " is missing; it must be " + a.wanted())
		}
		var ok bool
		if kept[a.name], ok = a.read(value, strict); !ok {
			was, _ := json.Marshal(value) // it was JSON before
			return nil, callError(a.name + " is " + render.OneLine(string(was), maxValue) + "; it must be " + a.wanted())
		}
	}
	return json.Marshal(kept)
}

// maxValue is how many columns of a wrong argument are repeated.
const maxValue = 40

// read returns a value, and whether it has the right type. A number may be written for a string,
// as in image 1 or since 2026, unless strict is set.
func (a argument) read(value any, strict bool) (any, bool) {
	switch v := value.(type) {
	case string:
		return v, a.kind == reflect.String
	case bool:
		return v, a.kind == reflect.Bool
	case float64:
		isWhole := v == math.Trunc(v) && math.Abs(v) < math.MaxInt32
		if a.kind == reflect.String {
			return fmt.Sprint(int64(v)), isWhole && !strict
		}
		return v, isWhole && a.kind == reflect.Int
	}
	return nil, false
}

// wanted says what an argument must be.
func (a argument) wanted() string {
	kinds := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Int: "a whole number"}
	return kinds[a.kind] + " (" + a.about + ")"
}

// listOf names the arguments of a tool.
func listOf(takes []argument) string {
	var needed, others []string
	for _, a := range takes {
		if a.optional {
			others = append(others, a.name)
		} else {
			needed = append(needed, a.name)
		}
	}
	text := "it takes " + strings.Join(others, ", ")
	if len(needed) > 0 {
		text = "it needs " + strings.Join(needed, ", ")
		if len(others) > 0 {
			text += ", and takes " + strings.Join(others, ", ")
		}
	}
	return text
}
