package window

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Library looks up entries; a *session.Session is one.
type Library interface {
	Entry(id string) (session.Entry, error)
}

// ReferenceScheme is the beginning of every image reference.
const ReferenceScheme = "image:"

const referenceDigits = 16 // of the hash: enough to distinguish the images of one entry

// referenceTo names an image by its entry and its content. Its position would not do,
// because a context may show an entry's blocks in another order than the log.
func referenceTo(entryID string, s *session.Source) string {
	return ReferenceScheme + entryID + "#" + imageHash(s)
}

func imageHash(s *session.Source) string {
	data := ""
	if s != nil {
		data = s.Data
	}
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])[:referenceDigits]
}

// Image is an image of an entry.
type Image struct {
	Reference     string // for Recall
	Source        *session.Source
	Width, Height int // in pixels; 0 if that is unknown
}

// ImagesOf returns the images of an entry in order, including those in tool results.
func ImagesOf(e *session.Entry) []Image {
	var images []Image
	for image := range eachImage(blocksOf(e)) {
		source := image.Image.Source
		found := Image{Reference: referenceTo(e.ID, source), Source: source}
		if size, ok := pixelsOf(source); ok {
			found.Width, found.Height = size.Width, size.Height
		}
		images = append(images, found)
	}
	return images
}

func blocksOf(e *session.Entry) []session.Content {
	switch {
	case e.Message != nil:
		return e.Message.Content
	case e.ContextEdit != nil:
		return e.ContextEdit.Replacement
	}
	return nil
}

// Recall returns the image that a reference names: see Omission.Reference and the text
// of placeholders. If that is not a reference, the error matches session.ErrInvalid; if
// there is no such image, session.ErrNotExist.
func Recall(from Library, reference string) (session.Content, error) {
	rest, ok := strings.CutPrefix(reference, ReferenceScheme)
	at := strings.LastIndexByte(rest, '#')
	if !ok || at < 1 || len(rest)-at-1 != referenceDigits {
		return session.Content{}, fmt.Errorf("recall %q: not the reference of an image: %w", reference, session.ErrInvalid)
	}
	entry, err := from.Entry(rest[:at])
	if err != nil {
		return session.Content{}, fmt.Errorf("recall %q: %w", reference, err)
	}
	for image := range eachImage(blocksOf(&entry)) {
		if imageHash(image.Image.Source) == rest[at+1:] {
			return *image, nil
		}
	}
	return session.Content{}, fmt.Errorf("recall %q: the entry has no such image: %w", reference, session.ErrNotExist)
}

// eachImage yields the images of some blocks and of the results among them.
func eachImage(blocks []session.Content) iter.Seq[*session.Content] {
	return func(yield func(*session.Content) bool) {
		for i := range blocks {
			b := &blocks[i]
			if b.Image != nil && !yield(b) {
				return
			}
			if b.ToolResult == nil {
				continue
			}
			for image := range eachImage(b.ToolResult.Parts) {
				if !yield(image) {
					return
				}
			}
		}
	}
}
