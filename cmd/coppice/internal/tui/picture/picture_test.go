package picture_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/picture"
)

func encoded(t *testing.T, width, height int) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i >> 3)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSizeInCells(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ width, height, columns, rows int }{
		{10, 20, 1, 1}, {1, 1, 1, 1}, {600, 400, 60, 20}, {1200, 400, 60, 10}, {100, 4000, 1, 20}, {3000, 3000, 40, 20},
	} {
		p, err := picture.New(encoded(t, test.width, test.height), 60, 20)
		if err != nil {
			t.Fatal(err)
		}
		if p.Columns != test.columns || p.Rows != test.rows {
			t.Errorf("%d × %d pixels are %d × %d cells", test.width, test.height, p.Columns, p.Rows)
		}
		lines := p.Lines(picture.First)
		if len(lines) != p.Rows || ansi.StringWidth(lines[0]) != p.Columns {
			t.Errorf("%d lines of %d columns", len(lines), ansi.StringWidth(lines[0]))
		}
	}
}

// TestSend reads what the terminal is sent: a file of our own, in pieces, and nothing else.
func TestSend(t *testing.T) {
	t.Parallel()
	p, err := picture.New(encoded(t, 900, 700), 60, 20)
	if err != nil {
		t.Fatal(err)
	}
	var data string
	for i, piece := range strings.Split(strings.TrimSuffix(p.Send(77), "\x1b\\"), "\x1b\\") {
		options, chunk, _ := strings.Cut(strings.TrimPrefix(piece, "\x1b_G"), ";")
		if len(chunk) > 4096 || !strings.Contains(options, "q=2") {
			t.Errorf("piece %d: %s, %d bytes", i, options, len(chunk))
		}
		if i < 2 && !strings.Contains(options, "i=77") {
			t.Errorf("piece %d has no number: %s", i, options)
		}
		data += chunk
	}
	file, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := png.Decode(bytes.NewReader(file))
	if err != nil || shown.Bounds().Dx() > 600 || shown.Bounds().Dy() > 400 {
		t.Errorf("%v, %v", shown.Bounds(), err)
	}
}

// TestHostileImages refuses what would take too much memory, before it takes any.
func TestHostileImages(t *testing.T) {
	t.Parallel()
	huge := encoded(t, 1, 1)
	binary.BigEndian.PutUint32(huge[16:], 60_000) // its width and height
	binary.BigEndian.PutUint32(huge[20:], 60_000)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	for name, data := range map[string][]byte{
		"huge": huge, "empty": nil, "no image": []byte("no image"), "torn": encoded(t, 100, 100)[:60],
		"long": append(encoded(t, 1, 1), make([]byte, 33<<20)...),
	} {
		if _, err := picture.New(data, 60, 20); err == nil {
			t.Errorf("%s: it is shown", name)
		}
	}
	_, err := picture.New(huge, 60, 20)
	if err == nil || !strings.Contains(err.Error(), "60000 × 60000 pixels") {
		t.Errorf("%v", err)
	}
}

func FuzzNew(f *testing.F) {
	f.Add([]byte("GIF89a"))
	f.Add([]byte("\xff\xd8\xff\xe0"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8 "))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := picture.New(data, 60, 20)
		if err != nil {
			return
		}
		if p.Columns < 1 || p.Columns > 60 || p.Rows < 1 || p.Rows > 20 {
			t.Errorf("%d × %d cells", p.Columns, p.Rows)
		}
		_, _ = io.WriteString(io.Discard, p.Send(picture.First))
	})
}
