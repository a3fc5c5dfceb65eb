package provider

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// The types of sources. Package session names the first two; the others exist only at
// providers.
const (
	SourceBase64 = "base64"
	SourceURL    = "url"
	SourceFile   = "file" // Data is the provider's id of an uploaded file
	SourceText   = "text" // Data is the text itself
)

// SourceAt returns the source that a URL names. The bytes of a data: URL are
// taken out, so that they can be kept once.
func SourceAt(url string) *session.Source {
	rest, isData := strings.CutPrefix(url, "data:")
	mediaType, data, isBase64 := strings.Cut(rest, ";base64,")
	if isData && isBase64 && !strings.ContainsAny(mediaType, ",;") {
		return &session.Source{Type: SourceBase64, MediaType: mediaType, Data: data}
	}
	return &session.Source{Type: SourceURL, Data: url}
}

// URLOf returns a source as a URL; ok is false if it has none.
func URLOf(s *session.Source) (url string, ok bool) {
	switch s.Type {
	case SourceBase64:
		return "data:" + s.MediaType + ";base64," + s.Data, true
	case SourceURL:
		return s.Data, true
	}
	return "", false
}
