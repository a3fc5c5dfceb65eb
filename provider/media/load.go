package media

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// maxFile is the largest image that Load reads. No provider accepts larger ones.
const maxFile = 32 << 20

// Load reads an image file. If its first bytes are not those of an image that models can
// look at, the error matches session.ErrInvalid. A large image stays as it is, and is made
// smaller for a request.
func Load(path string) (session.Content, error) {
	f, err := vfs.Open(path)
	if err != nil {
		return session.Content{}, fmt.Errorf("image: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return session.Content{}, fmt.Errorf("image %s: %w", path, err)
	}
	if len(data) > maxFile {
		return session.Content{}, fmt.Errorf("image %s: %w: over %d bytes", path, session.ErrTooLarge, maxFile)
	}
	kind := ImageType(data)
	if kind == "" {
		return session.Content{}, fmt.Errorf("image %s: %w: it looks like %s", path, session.ErrInvalid, http.DetectContentType(data))
	}
	return session.Image(kind, base64.StdEncoding.EncodeToString(data)), nil
}
