package media

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"image"
	_ "image/gif" // the decoders that image.Decode uses
	jpegcodec "image/jpeg"
	pngcodec "image/png"
	"net/http"
	"sync"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"github.com/coppice-dev/coppice/session"
)

// maxPixels is how many pixels a picture may have to be decoded: a small file can hold a
// picture that fills the memory.
const maxPixels = 64 << 20

// info has the facts about a picture that its first bytes give.
type info struct {
	mediaType     string
	width, height int
	bytes         int
}

// ImageType returns the media type of a picture that begins with these bytes, or "" if models
// cannot look at it.
func ImageType(head []byte) string {
	switch kind := http.DetectContentType(head); kind {
	case png, jpeg, gif, webp:
		return kind
	}
	return ""
}

// Image returns a picture as content, made small enough for every provider, or why it cannot
// be shown.
func Image(data []byte) (session.Content, error) {
	fit, kind, err := Anthropic.image(data) // which takes the smallest
	if err != nil {
		return session.Content{}, err
	}
	return session.Image(kind, base64.StdEncoding.EncodeToString(fit)), nil
}

// image returns a picture that fits the limits, with its type: the same bytes if they do.
func (l *Limits) image(data []byte) ([]byte, string, error) {
	i, picture, err := decode(data)
	if err != nil {
		return nil, "", err
	}
	if l.accepts(i) {
		return data, i.mediaType, nil
	}
	if picture == nil {
		return nil, "", errors.New("it is too large, and of a kind that cannot be made smaller here")
	}
	return l.encode(picture, i)
}

// decode reads a picture as a whole, so that one that is torn is found. The picture is nil if
// it looks whole, but its kind cannot be read here.
func decode(data []byte) (*info, image.Image, error) {
	i := &info{mediaType: ImageType(data), bytes: len(data)}
	if i.mediaType == "" {
		return nil, nil, errors.New("models can look at PNG, JPEG, GIF and WebP, and this is something else")
	}
	about, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("it is no whole picture: %w", err)
	}
	i.width, i.height = about.Width, about.Height
	if i.width <= 0 || i.height <= 0 || i.width > maxPixels/i.height {
		return nil, nil, fmt.Errorf("it has %d × %d pixels, which are too many", i.width, i.height)
	}
	picture, _, err := image.Decode(bytes.NewReader(data))
	var strange jpegcodec.UnsupportedError
	var strangePNG pngcodec.UnsupportedError
	switch {
	case errors.As(err, &strange), errors.As(err, &strangePNG):
		return i, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("it is no whole picture: %w", err)
	}
	return i, picture, nil
}

// encode writes a picture so that it fits the limits: as a PNG if that is small enough, or
// else as a JPEG, and smaller and smaller until it fits.
func (l *Limits) encode(picture image.Image, i *info) ([]byte, string, error) {
	side := max(i.width, i.height)
	if l.Side > 0 {
		side = min(side, l.Side)
	}
	for ; side > 0; side /= 2 {
		scaled := scale(picture, side)
		for _, as := range []struct {
			mediaType string
			write     func(*bytes.Buffer) error
		}{
			{png, func(b *bytes.Buffer) error { return pngcodec.Encode(b, scaled) }},
			{jpeg, func(b *bytes.Buffer) error { return jpegcodec.Encode(b, scaled, &jpegcodec.Options{Quality: 85}) }},
		} {
			if as.mediaType == png && i.mediaType == jpeg {
				continue // a photograph
			}
			var b bytes.Buffer
			if err := as.write(&b); err != nil {
				return nil, "", err
			}
			if b.Len() <= l.ImageBytes {
				return b.Bytes(), as.mediaType, nil
			}
		}
	}
	return nil, "", errors.New("it cannot be made small enough")
}

// scale returns a picture whose longer side has at most so many pixels.
func scale(picture image.Image, side int) image.Image {
	size := picture.Bounds().Size()
	longer := max(size.X, size.Y)
	if longer <= side {
		return picture
	}
	scaled := image.NewNRGBA(image.Rect(0, 0, max(1, size.X*side/longer), max(1, size.Y*side/longer)))
	draw.ApproxBiLinear.Scale(scaled, scaled.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	return scaled
}

// fittedPicture is a picture that fits the limits, or why there is none.
type fittedPicture struct {
	data, mediaType string // in base64
	err             error
}

// fittings remembers fitted pictures: a conversation is encoded again at every step.
var fittings = struct {
	sync.Mutex
	seed  maphash.Seed
	known map[fittingKey]fittedPicture
	bytes int
}{seed: maphash.MakeSeed(), known: make(map[fittingKey]fittedPicture)}

type fittingKey struct {
	limits *Limits
	sum    uint64
	bytes  int
}

// The most that fittings remembers.
const (
	maxFittings      = 10_000
	maxFittingsBytes = 64 << 20
)

// fitBase64 is image for base64. The same picture is decoded once.
func (l *Limits) fitBase64(data string) fittedPicture {
	key := fittingKey{l, maphash.String(fittings.seed, data), len(data)}
	fittings.Lock()
	f, ok := fittings.known[key]
	fittings.Unlock()
	if ok {
		if f.data == "" {
			f.data = data
		}
		return f
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		f.err = errors.New("it is not base64")
	} else {
		var made []byte
		if made, f.mediaType, f.err = l.image(raw); f.err == nil && !bytes.Equal(made, raw) {
			f.data = base64.StdEncoding.EncodeToString(made)
		}
	}
	fittings.Lock()
	if len(fittings.known) >= maxFittings || fittings.bytes+len(f.data) > maxFittingsBytes {
		clear(fittings.known)
		fittings.bytes = 0
	}
	fittings.known[key] = f
	fittings.bytes += len(f.data)
	fittings.Unlock()
	if f.data == "" {
		f.data = data
	}
	return f
}
