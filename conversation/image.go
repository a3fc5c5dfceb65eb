package conversation

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// MaxImageBytes is the largest image that LoadImage reads. No provider accepts larger ones.
const MaxImageBytes = 32 << 20

// LoadImage reads an image file. If its first bytes do not look like an image, the error
// matches session.ErrInvalid.
func LoadImage(path string) (session.Content, error) {
	f, err := vfs.Open(path)
	if err != nil {
		return session.Content{}, fmt.Errorf("image: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxImageBytes+1))
	if err != nil {
		return session.Content{}, fmt.Errorf("image %s: %w", path, err)
	}
	if len(data) > MaxImageBytes {
		return session.Content{}, fmt.Errorf("image %s: %w: over %d bytes", path, session.ErrTooLarge, MaxImageBytes)
	}
	media := http.DetectContentType(data)
	if !strings.HasPrefix(media, "image/") {
		return session.Content{}, fmt.Errorf("image %s: %w: it looks like %s", path, session.ErrInvalid, media)
	}
	return session.Image(media, base64.StdEncoding.EncodeToString(data)), nil
}
