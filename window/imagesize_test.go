package window_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/window/imagesize"
)

// encoded returns a picture of 321 by 123 pixels in each format that the
// standard library writes.
func encoded(t testing.TB) map[string][]byte {
	t.Helper()
	picture := image.NewPaletted(image.Rect(0, 0, 321, 123), color.Palette{color.Black, color.White})
	var p, j, g bytes.Buffer
	if err := errors.Join(png.Encode(&p, picture), jpeg.Encode(&j, picture, nil), gif.Encode(&g, picture, nil)); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"png": p.Bytes(), "jpeg": j.Bytes(), "gif": g.Bytes()}
}

// The first bytes of WebP pictures of 321 by 123 pixels, as the format's
// description has them.
const (
	lossy    = "RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x41\x01\x7b\x00"
	lossless = "RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f\x40\x81\x1e\x00"
	extended = "RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x40\x01\x00\x7a\x00\x00"
)

func TestImagesizeRead(t *testing.T) {
	pictures := encoded(t)
	pictures["webp lossy"] = []byte(lossy)
	pictures["webp lossless"] = []byte(lossless)
	pictures["webp extended"] = []byte(extended)
	// A preview of 60 kB, filler and a restart marker before the frame.
	app := append([]byte{0xff, 0xd8, 0xff, 0xff, 0xe1, 0xea, 0x60}, make([]byte, 59998)...)
	app = append(app, 0xff, 0xd0)
	pictures["jpeg with a preview"] = append(app, pictures["jpeg"][2:]...)
	for name, data := range pictures {
		t.Run(name, func(t *testing.T) {
			got, err := imagesize.Read(bytes.NewReader(data))
			if want := (imagesize.Size{Width: 321, Height: 123}); err != nil || got != want {
				t.Errorf("size is %v, error %v; want %v", got, err, want)
			}
		})
	}
}

func TestImagesizeReadRefuses(t *testing.T) {
	pictures := encoded(t)
	tests := map[string]string{
		"nothing":                  "",
		"text":                     "once upon a time there was a picture",
		"png cut short":            string(pictures["png"][:20]),
		"png without header":       "\x89PNG\r\n\x1a\n0000IDAT00000000",
		"png beyond belief":        "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xff\xff\xff\x00\x00\x00\x01",
		"png without width":        "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x00\x00\x00\x00\x01",
		"gif without height":       "GIF89a\x01\x00\x00\x00......",
		"jpeg cut short":           string(pictures["jpeg"][:16]),
		"jpeg cut in the frame":    "\xff\xd8\xff\xc0\x00\x11\x08\x00\x7b",
		"jpeg with a bad length":   "\xff\xd8\xff\xe1\x00\x00" + strings.Repeat("x", 20),
		"jpeg with a lost segment": "\xff\xd8\xff\xe1\x00\x04ab" + strings.Repeat("x", 20),
		"jpeg ends at a marker":    "\xff\xd8\xff\xd0\xff\xd0\xff\xff\xff\xff",
		"jpeg ends in a length":    "\xff\xd8\xff\xd0\xff\xd0\xff\xd0\xff\xe1\x00",
		"webp cut short":           lossy[:22],
		"webp of another kind":     strings.Replace(lossy, "VP8 ", "ALPH", 1),
		"webp without start code":  strings.Replace(lossy, "\x9d\x01\x2a", "abc", 1),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := imagesize.Read(strings.NewReader(data))
			if !errors.Is(err, imagesize.ErrUnknown) || got != (imagesize.Size{}) {
				t.Errorf("size is %v, error %v; want ErrUnknown", got, err)
			}
		})
	}
}

func TestImagesizeReadIsBounded(t *testing.T) {
	endless := &segments{}
	if _, err := imagesize.Read(endless); !errors.Is(err, imagesize.ErrUnknown) {
		t.Errorf("error is %v", err)
	}
	if endless.read > 1<<20 {
		t.Errorf("%d bytes were read", endless.read)
	}
}

// segments is a JPEG that never comes to its frame.
type segments struct{ read int }

func (s *segments) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = "\xff\xd8\xff\x01"[min(s.read, 2+s.read%2)]
		s.read++
	}
	return len(b), nil
}

func FuzzImagesizeRead(f *testing.F) {
	for _, data := range encoded(f) {
		f.Add(data[:min(len(data), 200)])
	}
	f.Add([]byte(lossy))
	f.Add([]byte(lossless))
	f.Add([]byte(extended))
	f.Fuzz(func(t *testing.T, data []byte) {
		size, err := imagesize.Read(bytes.NewReader(data))
		if (err == nil) != (size.Width > 0 && size.Height > 0) {
			t.Errorf("size %v with error %v of %s", size, err, hex.EncodeToString(data))
		}
		if err == nil && (size.Width > 1<<30 || size.Height > 1<<30) {
			t.Errorf("size %v", size)
		}
	})
}
