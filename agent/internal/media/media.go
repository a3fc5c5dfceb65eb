// Package media knows which images models can look at.
package media

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/coppice-dev/coppice/session"
)

// MaxImage is how many bytes an image may have: in base64 these are the 5 MB that
// providers take.
const MaxImage = 3_750_000

// ImageType returns the media type of an image that begins with these bytes, or "" if
// models cannot look at it. The file's name, or the type that its sender claims, does
// not count: a provider refuses a request with a wrong type, and then every later
// request of the session.
func ImageType(head []byte) string {
	switch kind := http.DetectContentType(head); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// Image returns an image as content, or why it cannot be shown.
func Image(data []byte) (session.Content, error) {
	kind := ImageType(data)
	switch {
	case kind == "":
		return session.Content{}, errors.New("models can look at PNG, JPEG, GIF and WebP, and this is something else")
	case len(data) > MaxImage:
		return session.Content{}, fmt.Errorf("it has %d bytes, which is more than the %d that can be shown: make it smaller first", len(data), MaxImage)
	}
	return session.Image(kind, base64.StdEncoding.EncodeToString(data)), nil
}
