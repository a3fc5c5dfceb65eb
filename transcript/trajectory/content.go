package trajectory

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/loose"
)

// image returns the picture at a URL. The bytes of a data: URL are taken out, so
// that they can be kept once.
func image(url string) session.Content {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if mediaType, data, ok := strings.Cut(rest, ";base64,"); ok {
			return session.Image(mediaType, data)
		}
	}
	return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: &session.Source{Type: "url", Data: url}}}
}

// oneLine returns JSON without the white space between its tokens.
func oneLine(v loose.Value) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, v) != nil {
		return nil
	}
	return buf.Bytes()
}
