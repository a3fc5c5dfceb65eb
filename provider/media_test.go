package provider_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// picture returns a picture of a size, as a file of a type.
func picture(t *testing.T, kind string, width, height int) []byte {
	t.Helper()
	p := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range p.Pix {
		p.Pix[i] = uint8(i / 7 % 2)
	}
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, p)
	case "jpeg":
		err = jpeg.Encode(&b, p, nil)
	case "gif":
		err = gif.Encode(&b, p, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is a WebP of one pixel.
var webp = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\r\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")

func block(mediaType string, data []byte) session.Content {
	return session.Image(mediaType, base64.StdEncoding.EncodeToString(data))
}

// size returns the type and the size of a picture that is sent, or the line in its place.
func size(t *testing.T, c session.Content) string {
	t.Helper()
	if c.Text != nil {
		return c.Text.Content
	}
	raw, err := base64.StdEncoding.DecodeString(c.Image.Source.Data)
	if err != nil {
		t.Fatal(err)
	}
	about, kind, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || "image/"+kind != c.Image.Source.MediaType {
		t.Errorf("%s is a %s, %v", c.Image.Source.MediaType, kind, err)
	}
	return fmt.Sprintf("%s %dx%d", kind, about.Width, about.Height)
}

// TestMediaPictures: a picture that the provider takes stays as it is; one that is too large, of a
// type that is not taken, or wrongly labelled is made to fit; and one that cannot be read is
// a line that says so.
func TestMediaPictures(t *testing.T) {
	t.Parallel()
	wide := picture(t, "png", 9000, 10)
	for name, c := range map[string]struct {
		limits *media.Limits
		given  session.Content
		want   string
		same   bool
	}{
		"small":          {media.Anthropic, block("image/png", picture(t, "png", 8, 4)), "png 8x4", true},
		"webp":           {media.Anthropic, block("image/webp", webp), "webp 1x1", true},
		"wide":           {media.Anthropic, block("image/png", wide), "png 2000x2", false},
		"wide elsewhere": {media.Chat, block("image/png", wide), "png 9000x10", true},
		"wide photo":     {media.Anthropic, block("image/jpeg", picture(t, "jpeg", 9000, 10)), "jpeg 2000x2", false},
		"tall":           {media.Anthropic, block("image/gif", picture(t, "gif", 1, 2500)), "png 1x2000", false},
		"mislabelled":    {media.Anthropic, block("image/png", picture(t, "jpeg", 8, 4)), "jpeg 8x4", false},
		"gif":            {media.Responses, block("image/gif", picture(t, "gif", 8, 4)), "gif 8x4", true},
		"gif for google": {media.Google, block("image/gif", picture(t, "gif", 8, 4)), "png 8x4", false},
		"heic":           {media.Anthropic, block("image/heic", []byte("\x00\x00\x00\x18ftypheic")), "[image (image/heic, 12 bytes) is not shown: models can look at PNG", false},
		"torn":           {media.Anthropic, block("image/png", []byte("\x89PNG\r\n\x1a\n")), "[image (image/png, 8 bytes) is not shown: it is no whole picture", false},
		"half":           {media.Chat, block("image/png", wide[:60]), "[image (image/png, 60 bytes) is not shown: it is no whole picture", false},
		"half a photo":   {media.Google, block("image/jpeg", picture(t, "jpeg", 80, 80)[:700]), "[image (image/jpeg, 700 bytes) is not shown: it is no whole picture", false},
		"text":           {media.Anthropic, block("image/gif", []byte("GIF89a is what this text begins with")), "[image (image/gif, 36 bytes) is not shown: ", false},
		"no base64":      {media.Anthropic, session.Image("image/png", "%%%%"), "[image (image/png, 3 bytes) is not shown: it is not base64", false},
		"bomb":           {media.Anthropic, block("image/png", bomb(wide)), "[image (image/png, ", false},
	} {
		for range 2 { // the second time it is known
			fit, notes := c.limits.Fit([]session.Content{session.Text("look"), c.given}, false)
			if got := size(t, fit[1]); !strings.HasPrefix(got, c.want) || (len(notes) == 0) != c.same {
				t.Errorf("%s: %q, want %q; notes %q", name, got, c.want, notes)
			}
			if again, notes := c.limits.Fit(fit, false); len(notes) > 0 {
				t.Errorf("%s: what fits does not fit: %q, %+v", name, notes, again)
			}
			if fault := c.limits.Fault(c.given, false); (fault == "") != c.same {
				t.Errorf("%s: fault %q", name, fault)
			}
		}
	}
	if fit, notes := media.Google.Fit([]session.Content{block("image/heic", []byte("ftyp"))}, false); len(notes) > 0 {
		t.Errorf("a HEIC is taken there: %+v", fit)
	}
}

// bomb returns a PNG that says that it has far more pixels than its file.
func bomb(file []byte) []byte {
	b := bytes.Clone(file)
	copy(b[16:24], "\x00\x10\x00\x00\x00\x10\x00\x00")
	return b
}

// TestMediaPictureWithTooManyBytes: a noisy picture becomes a JPEG, and smaller until it fits.
func TestMediaPictureWithTooManyBytes(t *testing.T) {
	t.Parallel()
	p := image.NewRGBA(image.Rect(0, 0, 300, 300))
	seed := uint32(1)
	for i := range p.Pix {
		seed = seed*1664525 + 1013904223
		p.Pix[i] = uint8(seed >> 24)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	tight := &media.Limits{Images: []string{"image/png", "image/jpeg"}, ImageBytes: 20_000}
	fit, _ := tight.Fit([]session.Content{block("image/png", b.Bytes())}, false)
	if got := size(t, fit[0]); got != "jpeg 150x150" && got != "jpeg 75x75" && got != "png 75x75" {
		t.Errorf("it is sent as %s", got)
	}
	none := &media.Limits{Images: []string{"image/png"}, ImageBytes: 10}
	if fit, _ := none.Fit([]session.Content{block("image/png", b.Bytes())}, false); !strings.Contains(size(t, fit[0]), "cannot be made small enough") {
		t.Errorf("it is sent as %s", size(t, fit[0]))
	}
}

// TestMediaImage: what a tool shows fits every provider.
func TestMediaImage(t *testing.T) {
	t.Parallel()
	c, err := media.Image(picture(t, "png", 9000, 10))
	if err != nil || size(t, c) != "png 2000x2" {
		t.Errorf("%v, %s", err, size(t, c))
	}
	for _, limits := range []*media.Limits{media.Anthropic, media.Chat, media.Responses, media.Google} {
		if fault := limits.Fault(c, false); fault != "" {
			t.Error(fault)
		}
	}
	if _, err := media.Image([]byte("words")); err == nil {
		t.Error("a text is no picture")
	}
}

// TestMediaFilesAndRecordings: what the provider takes stays, a text becomes one, and the rest is
// named.
func TestMediaFilesAndRecordings(t *testing.T) {
	t.Parallel()
	file := func(name, mediaType, data string) session.Content {
		return session.File(name, &session.Source{Type: "base64", MediaType: mediaType, Data: base64.StdEncoding.EncodeToString([]byte(data))})
	}
	sound := func(mediaType string) session.Content {
		return session.Media(&session.Source{Type: "base64", MediaType: mediaType, Data: "AAAA"})
	}
	at := session.File("far", &session.Source{Type: "url", Data: "https://example.com/a.zip"})
	for name, c := range map[string]struct {
		limits *media.Limits
		given  session.Content
		result bool
		want   string // "" is the same
	}{
		"pdf":              {media.Anthropic, file("a.pdf", "application/pdf", "%PDF-1.7 …"), true, ""},
		"no pdf":           {media.Google, file("a.pdf", "application/pdf", "\x00\x01\x02"), false, "[file a.pdf (application/pdf, 3 bytes) is not shown: it is no PDF]"},
		"large":            {media.Google, file("a.pdf", "application/pdf", "%PDF-"+strings.Repeat("\x00", 14<<20)), false, "[file a.pdf (application/pdf, 14680069 bytes) is not shown: a file may have 14000000 bytes]"},
		"csv":              {media.Anthropic, file("a.csv", "text/csv", "a,b\n"), false, "[a.csv]\na,b\n"},
		"words":            {media.Chat, file("", "application/octet-stream", "words"), true, "[file]\nwords"},
		"zip":              {media.Anthropic, file("a.zip", "application/zip", "PK\x03\x04"), false, "[file a.zip (application/zip, 4 bytes) is not shown: this model cannot read such a file]"},
		"pdf of a tool":    {media.Chat, file("a.pdf", "application/pdf", "%PDF-1.7"), true, "[file a.pdf (application/pdf, 8 bytes) is not shown: a tool cannot show it to this model]"},
		"sound":            {media.Anthropic, sound("audio/wav"), true, "[audio (audio/wav, 3 bytes) is not shown: this model cannot listen to it]"},
		"sound for google": {media.Google, sound("audio/ogg"), false, ""},
		"elsewhere":        {media.Anthropic, at, false, ""},
	} {
		fit, notes := c.limits.Fit([]session.Content{c.given}, c.result)
		if got := session.TextOf(fit); got != c.want || (len(notes) == 0) != (c.want == "") {
			t.Errorf("%s: %q, want %q; notes %q", name, got, c.want, notes)
		}
	}
	if fit, _ := media.Chat.Fit([]session.Content{sound("audio/mpeg")}, false); fit[0].Audio.Source.MediaType != "audio/mp3" {
		t.Errorf("%+v", fit[0])
	}
	inside := session.ToolResult("c1", "seen", false)
	inside.ToolResult.Parts = []session.Content{session.Text("seen"), file("a.png", "image/png", string(webp))}
	if fit, _ := media.Anthropic.Fit([]session.Content{inside}, false); fit[0].ToolResult.Content != "seen" || size(t, fit[0].ToolResult.Parts[1]) != "webp 1x1" || inside.ToolResult.Parts[1].File == nil {
		t.Errorf("%+v", fit[0].ToolResult)
	}
}

func TestMediaLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	small := picture(t, "png", 1, 1)
	loaded, err := media.Load(path("a.bin", small))
	if err != nil {
		t.Fatal(err)
	}
	if s := loaded.Image.Source; s.MediaType != "image/png" || s.Type != "base64" || s.Data == "" {
		t.Errorf("%+v", s)
	}
	if _, err := media.Load(path("a.png", []byte("no image"))); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a text: %v", err)
	}
	if _, err := media.Load(path("large.png", append(small, make([]byte, 32<<20)...))); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	if _, err := media.Load(dir); err == nil {
		t.Error("a directory is no image")
	}
}
