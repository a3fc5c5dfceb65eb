package app

import (
	"context"
	"encoding/base64"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/picture"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// pictures are the images that the terminal has been sent, if it shows any.
type pictures struct {
	on    bool // the terminal has said that it shows them
	known map[pictureKey]*sentPicture
	last  int           // the number that was given last
	turn  chan struct{} // one is decoded at a time: it may take much memory
}

// pictureKey is an image of an entry, by its place there, in a width.
type pictureKey struct {
	entry    string
	n, width int
}

// sentPicture is an image that was asked for. It has no lines until the terminal has it, and never
// if it cannot be shown.
type sentPicture struct {
	number int
	lines  []string
}

func newPictures() pictures {
	return pictures{known: make(map[pictureKey]*sentPicture), last: picture.Last, turn: make(chan struct{}, 1)}
}

// The most cells that an image has.
const (
	pictureColumns = 60
	pictureRows    = 18
)

// pictureWidth is how wide images may be.
func (r *transcript) pictureWidth() int { return min(pictureColumns, r.drawnFor-6) }

// lookAt asks for the images of an entry that are not there yet, unless they are folded.
func (r *transcript) lookAt(i int) (cmds []tea.Cmd) {
	row := r.pages.at(i)
	if !r.pictures.on || row == nil || r.pictureWidth() < 4 {
		return nil
	}
	if owner := r.owner(i); owner >= 0 && !r.isOpen(r.pages.at(owner)) {
		return nil
	}
	for n, image := range window.ImagesOf(&row.Entry) {
		key := pictureKey{row.Entry.ID, n, r.pictureWidth()}
		if _, asked := r.pictures.known[key]; asked || image.Source.Type == "url" {
			continue
		}
		r.pictures.known[key] = &sentPicture{}
		cmds = append(cmds, r.makePicture(key))
	}
	return cmds
}

// pictureMade is an image as the terminal wants it.
type pictureMade struct {
	key pictureKey
	*picture.Picture
}

// pictureSent is the message that the terminal has an image.
type pictureSent pictureKey

// makePicture reads and decodes an image. If that is not possible, the line that says what it is
// stays.
func (r *transcript) makePicture(key pictureKey) tea.Cmd {
	return r.call(func(ctx context.Context) tea.Msg {
		select {
		case r.pictures.turn <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		defer func() { <-r.pictures.turn }()
		var data []byte
		_, err := r.Home.Entries.Path(ctx, home.PathRequest{Session: r.id, At: key.entry, Last: 1}, func(e session.Entry) error {
			images := window.ImagesOf(&e)
			if e.ID != key.entry || key.n >= len(images) {
				return nil
			}
			var err error
			data, err = base64.StdEncoding.DecodeString(images[key.n].Source.Data)
			return err
		})
		if err != nil {
			return nil
		}
		made, err := picture.New(data, key.width, pictureRows)
		if err != nil {
			return nil
		}
		return pictureMade{key, made}
	})
}

// sendPicture gives an image a number, and sends it. The terminal has it before it is drawn.
func (r *transcript) sendPicture(made pictureMade) tea.Cmd {
	p := &r.pictures
	if p.last++; p.last > picture.Last {
		p.last = picture.First
	}
	number := p.last
	for key, other := range p.known {
		if other.number == number { // it was the oldest
			delete(p.known, key)
			clear(r.drawn)
		}
	}
	sent := &sentPicture{number: number}
	p.known[made.key] = sent
	drawn := r.call(func(context.Context) tea.Msg {
		return onward(func() tea.Cmd {
			sent.lines = made.Lines(number)
			return func() tea.Msg { return roomMsg{&r.base, pictureSent(made.key)} }
		})
	})
	return tea.Sequence(tea.Raw(made.Send(number)), drawn)
}

// showPicture draws the entry of an image again.
func (r *transcript) showPicture(key pictureSent) {
	r.list.Keep(func() {
		for i, row := range r.pages.rows {
			if row.Entry.ID == key.entry {
				r.forget(i, i+1)
			}
		}
	})
}

// hasImages reports whether an entry, or an answer that is drawn with it, has images.
func (r *transcript) hasImages(i int) bool {
	for j := i; j <= r.lastOf(i); j++ {
		if row := r.pages.at(j); row != nil && len(window.ImagesOf(&row.Entry)) > 0 {
			return true
		}
	}
	return false
}

// pictureOf returns the lines of an image in an entry, or in an answer that is drawn with it; nil if
// it is not shown.
func (r *transcript) pictureOf(i int, c *session.Content) []string {
	if !r.pictures.on || c.Image == nil {
		return nil
	}
	for j := i; j <= r.lastOf(i); j++ {
		row := r.pages.at(j)
		if row == nil {
			continue
		}
		n := slices.IndexFunc(window.ImagesOf(&row.Entry), func(image window.Image) bool { return image.Source == c.Image.Source })
		if sent := r.pictures.known[pictureKey{row.Entry.ID, n, r.pictureWidth()}]; sent != nil {
			return sent.lines
		}
	}
	return nil
}
