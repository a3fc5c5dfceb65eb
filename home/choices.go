package home

import (
	"reflect"
	"slices"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Choices returns the values that a field of a request, or each element of a list, may have: for
// faces that offer or describe them. field is its JSON name. nil means that any value may be
// given, or that request is not the type of a request.
func Choices(request reflect.Type, field string) []string {
	switch request {
	case reflect.TypeFor[ListRequest]():
		return map[string][]string{"sort": asTexts(sorts), "relation": relations}[field]
	case reflect.TypeFor[ShelfRequest]():
		return map[string][]string{"sort": asTexts(sorts)}[field]
	case reflect.TypeFor[RateRequest]():
		return map[string][]string{"rating": {Good, Bad}}[field]
	case reflect.TypeFor[FindRequest]():
		return map[string][]string{"kinds": asTexts(index.Kinds())}[field]
	case reflect.TypeFor[WindowRequest]():
		return map[string][]string{"counter": counters}[field]
	case reflect.TypeFor[ExportRequest]():
		return map[string][]string{"format": slices.Concat(ExportFormats(), ProgramFormats())}[field]
	case reflect.TypeFor[ResumeRequest]():
		return map[string][]string{"in": append(resumable(), session.OwnAgent)}[field]
	case reflect.TypeFor[ImportRequest]():
		return map[string][]string{"format": ImportFormats()}[field]
	case reflect.TypeFor[session.MessageEntry]():
		return map[string][]string{"role": session.Roles()}[field]
	}
	if _, asks := request.FieldByName("Thinking"); asks && request.PkgPath() == reflect.TypeFor[ChatRequest]().PkgPath() {
		return map[string][]string{"thinking": provider.ThinkingLevels, "provider": Providers()}[field]
	}
	return nil
}

func asTexts[T ~string](values []T) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return names
}
