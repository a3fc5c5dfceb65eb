package window

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Library is where entries can be looked up: a *session.Session.
type Library interface {
	Entry(id string) (session.Entry, error)
}

const (
	referenceScheme = "image:"
	referenceDigits = 16 // of the hash: enough to tell the images of one entry apart
)

// referenceTo names an image by its entry and what it is. Its place would not
// do: a context may show an entry's blocks in another order than the log.
func referenceTo(entryID string, s *session.Source) string {
	return referenceScheme + entryID + "#" + imageHash(s)
}

func imageHash(s *session.Source) string {
	data := ""
	if s != nil {
		data = s.Data
	}
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])[:referenceDigits]
}

// Recall returns the image that a reference names: see Omission.Reference and
// the text of placeholders. It returns an error that matches session.ErrInvalid
// if that is no reference, and session.ErrNotExist if there is no such image.
func Recall(from Library, reference string) (session.Content, error) {
	rest, ok := strings.CutPrefix(reference, referenceScheme)
	at := strings.LastIndexByte(rest, '#')
	if !ok || at < 1 || len(rest)-at-1 != referenceDigits {
		return session.Content{}, fmt.Errorf("recall %q: not the reference of an image: %w", reference, session.ErrInvalid)
	}
	entry, err := from.Entry(rest[:at])
	if err != nil {
		return session.Content{}, fmt.Errorf("recall %q: %w", reference, err)
	}
	var blocks []session.Content
	switch {
	case entry.Message != nil:
		blocks = entry.Message.Content
	case entry.ContextEdit != nil:
		blocks = entry.ContextEdit.Replacement
	}
	if image, ok := findImage(blocks, rest[at+1:]); ok {
		return image, nil
	}
	return session.Content{}, fmt.Errorf("recall %q: the entry has no such image: %w", reference, session.ErrNotExist)
}

func findImage(blocks []session.Content, hash string) (session.Content, bool) {
	for _, b := range blocks {
		if b.Image != nil && imageHash(b.Image.Source) == hash {
			return b, true
		}
		if b.ToolResult != nil {
			if image, ok := findImage(b.ToolResult.Parts, hash); ok {
				return image, true
			}
		}
	}
	return session.Content{}, false
}
