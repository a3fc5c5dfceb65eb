package home

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/window"
)

// ImagesRequest asks for the images of a conversation, or for those that a search
// finds. One of the two is needed; with both, the search is in that conversation.
type ImagesRequest struct {
	Session string `json:"session,omitempty"` // as a person names it: see Resolve
	// Search is a query, in the form that Find takes. It finds an image by what was said in
	// the same message and in the few before and after it: the call that took a screenshot,
	// the question about a drawing, the answer that describes it.
	Search string `json:"search,omitempty"`
}

// Image is an image of a conversation.
type Image struct {
	Session   string    `json:"session"`
	Number    int       `json:"number"` // among the images of the session, from 1 on
	Entry     string    `json:"entry"`
	Role      string    `json:"role,omitempty"`
	Time      time.Time `json:"time"`
	Reference string    `json:"reference"` // as a context that left it out names it
	MediaType string    `json:"media_type,omitempty"`
	Bytes     int       `json:"bytes"`
	Width     int       `json:"width,omitempty"` // in pixels
	Height    int       `json:"height,omitempty"`
	URL       string    `json:"url,omitempty"` // of one that is not in the session
	Text      string    `json:"text"`          // what the entry says, in a line
}

// ImagesResult lists images, the earliest of each session first.
type ImagesResult struct {
	Images []Image `json:"images"`
}

// Images lists the images of a conversation, on all its branches, or those that a
// search finds.
func (e *Entries) Images(ctx context.Context, r ImagesRequest) (*ImagesResult, error) {
	return call(ctx, e.home, "entries.images", r, e.images)
}

func (e *Entries) images(ctx context.Context, r ImagesRequest) (*ImagesResult, error) {
	if r.Session == "" && r.Search == "" {
		return nil, wrong("session", "a list of images needs {session} or {search}")
	}
	result := &ImagesResult{Images: []Image{}}
	add := func(name string, near map[string]bool) error {
		list, err := e.home.imagesOf(ctx, name, near)
		result.Images = append(result.Images, list...)
		return err
	}
	if r.Search == "" {
		return result, add(r.Session, nil)
	}
	found, err := e.home.Search.Find(ctx, FindRequest{Query: r.Search, Session: r.Session, Limit: imageHits})
	if err != nil {
		return nil, err
	}
	if found.Across { // a text with only some of the words is about another image
		return result, nil
	}
	near := make(map[string]map[string]bool)
	var order []string
	for i := range found.Hits {
		h := &found.Hits[i]
		if near[h.Session] == nil {
			near[h.Session] = make(map[string]bool)
			order = append(order, h.Session)
		}
		near[h.Session][h.Entry] = true
	}
	for _, name := range order {
		if err := add(name, near[name]); err != nil && !errors.Is(err, session.ErrNotExist) { // unless it was just removed
			return nil, err
		}
	}
	return result, nil
}

const (
	// imageHits is how many hits are followed to images.
	imageHits = 500
	// imageReach is how many entries may be between an image and the words about it: a
	// call, its result, and what the model says about it.
	imageReach = 3
)

// imagesOf lists the images of a conversation. With near, it lists only those near one of
// these entries.
func (h *Home) imagesOf(ctx context.Context, given string, near map[string]bool) (list []Image, err error) {
	c, err := h.openFor(ctx, OpenRequest{Session: given})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	parents := make(map[string]string)
	for e, err := range c.WithContext(ctx).Entries() {
		if err != nil {
			return nil, err
		}
		if e.ParentID != nil {
			parents[e.ID] = *e.ParentID
		}
		for _, image := range window.ImagesOf(&e) {
			list = append(list, describe(c.ID(), len(list)+1, &e, image))
		}
	}
	if near != nil {
		list = keepNear(list, parents, near)
	}
	return list, nil
}

// keepNear keeps the images that are on one line with an entry, at most imageReach before or
// after it.
func keepNear(list []Image, parents map[string]string, near map[string]bool) []Image {
	about := make(map[string]bool) // entries that have one of those shortly after them
	for id := range near {
		for range imageReach + 1 {
			about[id] = true
			id = parents[id]
		}
	}
	kept := []Image{}
	for _, image := range list {
		id, is := image.Entry, about[image.Entry]
		for range imageReach {
			id = parents[id]
			is = is || near[id]
		}
		if is {
			kept = append(kept, image)
		}
	}
	return kept
}

func describe(name string, number int, e *session.Entry, image window.Image) Image {
	d := Image{
		Session: name, Number: number, Entry: e.ID, Time: e.Timestamp, Reference: image.Reference,
		Width: image.Width, Height: image.Height, Text: render.Gist(e, 0),
	}
	if e.Message != nil {
		d.Role = e.Message.Role
	}
	if s := image.Source; s != nil {
		d.MediaType = s.MediaType
		if s.Type == "url" {
			d.URL = s.Data
		} else {
			d.Bytes = int(render.SourceSize(s))
		}
	}
	return d
}

// ImageRequest asks for the bytes of an image.
type ImageRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	// Image is the number of the image, its reference, or an entry that has one image.
	Image string `json:"image"`
	// Path is the file to write it to, or a directory. Default, and for "-": none; the
	// result has the bytes.
	Path  string `json:"path,omitempty" here:"-"`
	Force bool   `json:"force,omitempty" here:""` // overwrite the file
}

// ImageResult is an image with its bytes, or with the file that has them now.
type ImageResult struct {
	Image
	Data []byte `json:"data,omitempty"`
	Path string `json:"path,omitempty"`
}

// WriteImagesRequest writes the images of a conversation into a directory.
type WriteImagesRequest struct {
	Session string `json:"session"`         // as a person names it: see Resolve
	Path    string `json:"path"`            // the directory; one that does not exist ends with a slash
	Force   bool   `json:"force,omitempty"` // overwrite files
	// Numbers are those of the images to write. Default: all of them.
	Numbers []int `json:"numbers,omitempty"`
}

// WriteImagesResult says how many images were written.
type WriteImagesResult struct {
	Session string `json:"session"`
	Written int    `json:"written"`
	Linked  int    `json:"linked"` // that the session only has a link to
}

// WriteImages writes the images of a conversation, on all its branches. It sends every image
// when it is written. It also sends images that are only linked to, which it does not write.
func (e *Entries) WriteImages(ctx context.Context, r WriteImagesRequest, send func(ImageResult) error) (_ *WriteImagesResult, err error) {
	if err := e.home.checkOpen("entries.write_images"); err != nil {
		return nil, err
	}
	if !isDir(r.Path) {
		return nil, wrong("path", "all images go to a directory, and {path} is %q; end it with a slash, or name one image", r.Path)
	}
	if err := e.home.mustBeElsewhere(ctx, r.Path); err != nil {
		return nil, err
	}
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	result := &WriteImagesResult{Session: c.ID()}
	number := 0
	for entry, err := range c.WithContext(ctx).Entries() {
		if err != nil {
			return result, err
		}
		for _, image := range window.ImagesOf(&entry) {
			number++
			if len(r.Numbers) > 0 && !slices.Contains(r.Numbers, number) {
				continue
			}
			got := &ImageResult{Image: describe(c.ID(), number, &entry, image)}
			if got.URL != "" {
				result.Linked++
			} else if err := got.write(c, image.Source, r); err != nil {
				return result, err
			} else {
				result.Written++
			}
			if send != nil {
				if err := send(*got); err != nil {
					return result, err
				}
			}
		}
	}
	return result, nil
}

// write writes an image into a directory.
func (i *ImageResult) write(c *Conversation, from *session.Source, r WriteImagesRequest) error {
	data, err := imageData(c, strconv.Itoa(i.Number), from)
	if err != nil {
		return err
	}
	i.Path, err = writeOut(r.Path, i.fileName(c), r.Force, vfs.Data(data), nil)
	return err
}

func (i *ImageResult) fileName(c *Conversation) string {
	return c.Handle + "-" + strconv.Itoa(i.Number) + "." + fileEnding(i.MediaType)
}

// imageError is the error for a requested image that cannot be returned.
func imageError(c *Conversation, given string, kind error, why string) error {
	return &session.Error{
		Op: "find image", Name: c.Handle, Kind: kind, Err: fmt.Errorf("%q: %s", given, why),
		Hint: "list the images to see their numbers",
	}
}

// imageData returns the bytes of an image.
func imageData(c *Conversation, given string, from *session.Source) ([]byte, error) {
	if from == nil || from.Data == "" {
		return nil, imageError(c, given, session.ErrNotExist, "the bytes of the image are missing")
	}
	data, err := base64.StdEncoding.DecodeString(from.Data)
	if err != nil {
		return nil, imageError(c, given, session.ErrCorrupt, "the bytes of the image are not base64")
	}
	return data, nil
}

// Image returns an image, or writes it to a file. An image that is only linked to is
// refused with an error that has the URL: nothing is fetched.
func (e *Entries) Image(ctx context.Context, r ImageRequest) (*ImageResult, error) {
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	result, err := findImage(ctx, c, r.Image)
	if err := errors.Join(err, c.Close()); err != nil || r.Path == "" || r.Path == "-" {
		return result, err
	}
	if err := e.home.mustBeElsewhere(ctx, r.Path); err != nil {
		return nil, err
	}
	result.Path, err = writeOut(r.Path, result.fileName(c), r.Force, vfs.Data(result.Data), nil)
	result.Data = nil
	return result, err
}

// findImage finds the image that a person named.
func findImage(ctx context.Context, c *Conversation, given string) (*ImageResult, error) {
	means := func(number int, i window.Image, _ string) bool { return i.Reference == given }
	if n, err := strconv.Atoi(given); err == nil {
		means = func(number int, _ window.Image, _ string) bool { return number == n }
	} else if !strings.HasPrefix(given, window.ReferenceScheme) {
		id, err := c.Resolve(given)
		if err != nil {
			return nil, err
		}
		means = func(_ int, _ window.Image, entry string) bool { return entry == id }
	}
	var found []ImageResult
	var sources []*session.Source
	number := 0
	for e, err := range c.WithContext(ctx).Entries() {
		if err != nil {
			return nil, err
		}
		for _, image := range window.ImagesOf(&e) {
			if number++; means(number, image, e.ID) {
				found = append(found, ImageResult{Image: describe(c.ID(), number, &e, image)})
				sources = append(sources, image.Source)
			}
		}
	}
	refuse := func(kind error, why string) error { return imageError(c, given, kind, why) }
	switch {
	case len(found) == 0:
		return nil, refuse(session.ErrNotExist, "there is no such image")
	case len(found) > 1 && found[0].Reference != given:
		return nil, refuse(session.ErrInvalid, "the entry has several images")
	case found[0].URL != "":
		return nil, refuse(session.ErrInvalid, "the session only has a link to the image, "+found[0].URL)
	}
	data, err := imageData(c, given, sources[0])
	found[0].Data = data
	return &found[0], err
}

// fileEnding returns the usual file ending for a media type. It allows only letters and
// digits, because anything else could lead out of the directory.
func fileEnding(mediaType string) string {
	kind, ok := strings.CutPrefix(mediaType, "image/")
	kind, _, _ = strings.Cut(kind, "+") // svg+xml
	switch {
	case kind == "jpeg":
		return "jpg"
	case !ok || kind == "" || len(kind) > 10 || strings.ContainsFunc(kind, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }):
		return "img"
	}
	return kind
}
