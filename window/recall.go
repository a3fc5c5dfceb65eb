package window

import "github.com/coppice-dev/coppice/session"

// Library is where entries can be looked up: a *session.Session.
type Library interface {
	Entry(id string) (session.Entry, error)
}

// Recall returns the image that a reference names: see Omission.Reference and
// the text of placeholders. It returns an error that matches session.ErrInvalid
// if that is no reference, and session.ErrNotExist if there is no such image.
func Recall(from Library, reference string) (session.Content, error) { panic("soon") }
