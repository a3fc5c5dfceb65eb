// Package picture draws images on terminals that speak the graphics protocol of kitty, by Unicode
// placeholders: the image is sent once, and then it is text like any other, which can be scrolled,
// cut off and painted over.
//
// The bytes of an image come from strangers. So it is decoded only if it is small enough, for a
// limited time, and what the terminal is sent is a new file that was made from its pixels.
package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // the decoders that image.Decode uses
	_ "image/jpeg"
	"image/png"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"github.com/coppice-dev/coppice/render/plain"
)

const (
	maxBytes  = 32 << 20
	maxPixels = 16 << 20
	// patience is how long decoding may take. A file of a few megabytes can have so many passes
	// over its pixels that it takes days.
	patience = 3 * time.Second

	// The size of a cell in pixels, roughly: the terminal scales the image to its own.
	cellWidth, cellHeight = 10, 20
)

// The numbers that images have in the terminal. They are written as one of its 256 colours; the
// first 16 may be written in another way.
const (
	First = 16
	Last  = 255
)

// Picture is an image in cells.
type Picture struct {
	Columns, Rows int
	png           []byte
}

// New makes a picture of the bytes of an image that has at most so many columns and rows.
func New(data []byte, columns, rows int) (*Picture, error) {
	if len(data) > maxBytes {
		return nil, errors.New("the file is too large to be shown")
	}
	about, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if about.Width <= 0 || about.Height <= 0 || about.Width > maxPixels/about.Height {
		return nil, fmt.Errorf("it has %d × %d pixels, which are too many", about.Width, about.Height)
	}
	decoded, _, err := image.Decode(&hurried{bytes.NewReader(data), time.Now().Add(patience)})
	if err != nil {
		return nil, err
	}
	p := &Picture{}
	size := decoded.Bounds().Size()
	p.Columns, p.Rows = cells(size, columns, rows)
	most := image.Pt(p.Columns*cellWidth, p.Rows*cellHeight)
	if size.X > most.X || size.Y > most.Y {
		decoded = scaled(decoded, most)
	}
	var b bytes.Buffer
	err = png.Encode(&b, decoded)
	p.png = b.Bytes()
	return p, err
}

// cells returns how many cells an image of a size in pixels has, so that none is needlessly large.
func cells(size image.Point, columns, rows int) (int, int) {
	wide := min(float64(columns), float64(size.X)/cellWidth)
	high := wide * cellWidth / float64(size.X) * float64(size.Y) / cellHeight
	if high > float64(rows) {
		wide, high = wide*float64(rows)/high, float64(rows)
	}
	return max(int(wide+0.5), 1), max(int(high+0.5), 1)
}

func scaled(from image.Image, most image.Point) image.Image {
	size := from.Bounds().Size()
	share := min(float64(most.X)/float64(size.X), float64(most.Y)/float64(size.Y))
	to := image.NewNRGBA(image.Rect(0, 0, max(int(share*float64(size.X)), 1), max(int(share*float64(size.Y)), 1)))
	draw.ApproxBiLinear.Scale(to, to.Bounds(), from, from.Bounds(), draw.Src, nil)
	return to
}

// hurried reads until some time.
type hurried struct {
	io.Reader
	until time.Time
}

func (h *hurried) Read(b []byte) (int, error) {
	if time.Now().After(h.until) {
		return 0, errors.New("it takes too long to decode")
	}
	return h.Reader.Read(b[:min(len(b), 1<<10)]) // so that it asks often
}

// maxChunk is how much of an image may be in one sequence.
const maxChunk = 4 << 10

// Send returns what tells the terminal to keep the picture under a number, from First to Last. It
// takes the place of the one that had the number before.
func (p *Picture) Send(number int) string {
	var b strings.Builder
	b.WriteString(ansi.KittyGraphics(nil, "a=d", "d=I", fmt.Sprintf("i=%d", number), "q=2"))
	rest := base64.StdEncoding.EncodeToString(p.png)
	options := []string{"a=T", "U=1", "f=100", "q=2", fmt.Sprintf("i=%d", number), fmt.Sprintf("c=%d", p.Columns), fmt.Sprintf("r=%d", p.Rows)}
	for {
		chunk := rest[:min(len(rest), maxChunk)]
		rest = rest[len(chunk):]
		more := "m=0"
		if rest != "" {
			more = "m=1"
		}
		b.WriteString(ansi.KittyGraphics([]byte(chunk), append(options, more)...))
		if options = []string{"q=2"}; rest == "" {
			return b.String()
		}
	}
}

// Lines returns the cells in which the terminal shows the picture that it has under a number.
func (p *Picture) Lines(number int) (lines []string) {
	for row := range p.Rows {
		var b strings.Builder
		for column := range p.Columns {
			b.WriteRune(kitty.Placeholder)
			b.WriteRune(kitty.Diacritic(row))
			b.WriteRune(kitty.Diacritic(column))
		}
		lines = append(lines, plain.Paint(fmt.Sprintf("38;5;%d", number), b.String()))
	}
	return lines
}

// MaxColumns is how many columns and rows a picture can have: so many marks there are.
const MaxColumns = 200

// asked is the number of the image that a question is about. There is none with it.
const asked = 1

// Knows reports whether a terminal with such a name has placeholders. There is no question for that
// alone, and some that understand the protocol have none.
func Knows(terminal string) bool {
	name := strings.ToLower(terminal)
	return strings.HasPrefix(name, "kitty") || strings.HasPrefix(name, "ghostty")
}

// Ask asks the terminal whether it shows images. Not every terminal ignores the question, so only
// one that Knows about them should be asked.
func Ask() string {
	return ansi.KittyGraphics([]byte("AAAA"), fmt.Sprintf("i=%d", asked), "a=q", "s=1", "v=1", "t=d", "f=24")
}

// IsYes reports whether an answer of the terminal says that it does.
func IsYes(o kitty.Options, payload []byte) bool { return o.ID == asked && string(payload) == "OK" }
